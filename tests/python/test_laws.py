"""Laws of one's own: what users write does what the same law built in does, and what misbehaves is named. Needs the
compiled engine."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path

import polars as pl
import pytest

import aqmlab
import studies
from aqmlab import cli, engine, study, sweep
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.laws import brought, patience
from aqmlab.live import kernel
from aqmlab.progress import Silent
from aqmlab.runs import apart, calibration, law_check
from aqmlab.sweep import grid, plan, sweeps
from conftest import NATIVE, ROOT

KERNEL = os.environ.get(kernel.VARIABLE) or str(calibration.cache_folder() / "kernel/linux")
"""Looked for before tests have a cache of their own."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}

SCENARIO = """
duration = "12s"
warmup = "2s"
[link]
rate = "20mbit"
qdisc = "pfifo"
[path]
rtt = { uniform = ["10ms", "100ms"] }
[tcp]
ecn = "on"
[[traffic]]
kind = "bulk"
flows = 20
[[traffic]]
kind = "onoff"
rate = "8mbit"
flows = 4
"""

COUNTS = '''
import aqmlab


@aqmlab.law{how}
class Mine:
    """Does what the test wants."""

    seen = 0
    every = aqmlab.parameter(50, "One packet in so many is lost.", low=1)

    def on_arrival(self, packet):
        self.seen += 1
        {body}
        return aqmlab.DROP if self.seen % self.every == 0 else aqmlab.PASS
'''


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.setattr(brought, "_ALLOWED", ContextVar("allowed", default=frozenset()))


@pytest.fixture
def link(tmp_path):
    (tmp_path / "link.toml").write_text(SCENARIO)
    return tmp_path / "link.toml"


def own(tmp_path: Path, body: str = "pass", how: str = "", name: str = "mine.py") -> Path:
    (tmp_path / name).write_text(COUNTS.format(body=body, how=how))
    return tmp_path / name


def run(link, qdisc, **keys):
    return aqmlab.run(link, set={"link.qdisc": qdisc, **keys})


BUILT_IN = {"pi": {}, "codel": {}, "pie": {}, "red": {"dialect": "ns2"}}


def library(name: str, folder: Path, *words: str, source: Path | None = None) -> Path:
    """A shared library of an example in C, or of a source."""
    made = folder / f"{name}.so"
    flags = ["-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", aqmlab.include()]
    source = source or ROOT / f"examples/own-law-c/{name}.c"
    subprocess.run(["cc", *flags, *words, "-o", str(made), str(source), "-lm"], check=True)
    return made


@pytest.fixture(scope="module")
def of_c(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    return {name: library(f"my_{name}", folder) for name in BUILT_IN}


@pytest.mark.parametrize("ecn", [False, True])
@pytest.mark.parametrize("name", BUILT_IN)
def test_laws_as_users_write_them_make_the_same_runs_as_those_built_in(link, tmp_path, of_c, name, ecn):
    compiled = ROOT / f"examples/laws/my_{name}.py"
    plain = tmp_path / f"plain_{name}.py"
    plain.write_text(compiled.read_text().replace("@aqmlab.law(", "@aqmlab.law(compiled=False, "))
    theirs = run(link, {"kind": name, "ecn": ecn, **BUILT_IN[name]})
    assert theirs.summary["forward"]["marked_packets" if ecn else "dropped_packets"] > 20
    for path, how in ((compiled, "compiled"), (plain, "interpreted"), (of_c[name], "library")):
        ours = run(link, {"kind": str(path), "ecn": ecn})
        assert ours.digest == theirs.digest
        (law,) = ours.manifest["laws"]
        assert (law["name"], law["how"]) == (f"my_{name}", how)
        assert ("cost" in law) == (how == "interpreted") == bool(ours.manifest["findings"])


@pytest.mark.parametrize("how", ["compiled", "library"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_laws_as_users_write_them_decide_as_those_built_in_on_long_traces(of_c, name, how):
    """With their defaults, some thousand operations and a minute of silence; `test_law_equality.py` has a thousand
    shorter traces, interpreted ones too."""
    law = brought.of_file(of_c[name] if how == "library" else ROOT / f"examples/laws/my_{name}.py")
    assert law.how == how
    kinds = [{"kind": name, **BUILT_IN[name]}, {"kind": law.name, "law": {"file": "x.py", "sha256": law.sha256}}]
    signals, seeds = 0, 20
    for ecn, limit in ((False, "60p"), (True, "200p")):
        theirs, ours = (law_check.before_a_link({**kind, "ecn": ecn, "limit": limit}) for kind in kinds)
        for seed in range(seeds):
            first, second = (engine.drive(each, seed, 2000) for each in (theirs, ours))
            assert {**first, "ns": 0} == {**second, "ns": 0}, f"seed {seed}"
            signals += first["lost"] + first["marked"]
    assert signals > seeds, "there is something to agree on"


def test_a_library_is_compared_by_its_file_and_its_name(link, tmp_path):
    made = library("my_pi", tmp_path)
    found = aqmlab.compare(link, f"{made} qref 20 ecn", "fq_my_pi qref 20", "pi qref 20p ecn", set={"duration": "6s"})
    assert [column.name for column in found.columns] == ["my_pi qref 20 ecn", "fq_my_pi qref 20", "pi qref 20p ecn"]
    ours, fair, theirs = (column.result for column in found.columns)
    packets = ("offered_packets", "dropped_packets", "marked_packets", "queue_delay_mean_s")
    assert [ours.summary["forward"][key] for key in packets] == [theirs.summary["forward"][key] for key in packets]
    assert fair.scenario["link"]["qdisc"]["kind"] == "fq_my_pi"
    assert ours.manifest["laws"][0]["built_with"].startswith("C compiler")


def test_code_that_a_scenario_names_is_not_run_unasked(link, tmp_path, capsys):
    own(tmp_path, body="open('ran', 'w')", how="(compiled=False)")
    link.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    with pytest.raises(BadInput, match="names code, which is not run unasked: expected --allow-code"):
        aqmlab.run(link)
    assert cli.invoke(["run", str(link), "-o", str(tmp_path / "out")]) == 2
    assert "link.toml:6: link.qdisc" in capsys.readouterr().err
    own(tmp_path)
    assert cli.invoke(["run", str(link), "--set", "duration=3s", "--allow-code", "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ["run", "link.toml"],
        ["live", "link.toml"],
        ["compare", "link.toml", "pie"],
        ["calibrate", "link.toml"],
        ["record", "link.toml", "-o", "recorded"],
        ["tc", "link.toml"],
        ["shell", "link.toml"],
        ["sweep", "grid.toml"],
        ["study", "own"],
    ],
    ids=lambda words: words[0],
)
def test_no_verb_runs_code_that_a_scenario_names(link, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    own(tmp_path).write_text("open('ran', 'w')\n" + COUNTS.format(body="pass", how="(compiled=False)"))
    link.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    (tmp_path / "grid.toml").write_text(
        'scenario = "link.toml"\n[[grid]]\nname = "n"\n[[grid.axis]]\nname = "s"\nkey = "seed"\nvalues = [1]\n'
    )
    content = (tmp_path / "mine.py").read_text()
    studies.write(tmp_path / "own", studies.STUDY.replace('kind = "pi", qref = "24p"', 'kind = "./mine.py"'))
    (tmp_path / "own/mine.py").write_text(content)
    assert cli.invoke(words) == 2
    said = capsys.readouterr().err
    assert "names code, which is not run unasked: expected --allow-code" in said and said.count("\n") == 1
    assert not (tmp_path / "ran").exists()


def test_a_study_from_python_may_be_given_permission(link, tmp_path):
    folder = tmp_path / "own"
    studies.write(folder, studies.STUDY.replace('kind = "pi", qref = "24p"', 'kind = "./mine.py"'))
    own(folder)
    asked = {"quick": True, "seeds": 1, "only": "web/pi/off", "changes": {"duration": "3s", "warmup": "1s"}}
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        study.read(folder, **asked)
    (one,) = study.read(folder, **asked, allow_code=True)
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        study.run({tmp_path / "no": one})
    assert study.run({tmp_path / "yes": one}, allow_code=True)[0].found["complete"]


def test_results_are_read_without_their_code(link, tmp_path, capsys):
    """Reports and figures of a result that somebody else sent."""
    path = own(tmp_path, how="(compiled=False)")
    sent = tmp_path / "sent"
    aqmlab.run(link, set={"link.qdisc.kind": str(path), "duration": "3s"}, out=sent)
    (kept,) = sent.glob("**/*.py")
    kept.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + kept.read_text())
    for words in (["report", str(sent)], ["figures", str(sent)]):
        program = [sys.executable, "-m", "aqmlab", *words]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT)
        assert "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "ran").exists()


def test_another_file_of_the_name_that_was_asked_for_does_not_run(link, tmp_path, monkeypatch):
    """The user names ./mine.py of this folder; the scenario of another folder names its own."""
    (tmp_path / "theirs").mkdir()
    theirs = tmp_path / "theirs/link.toml"
    theirs.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    own(tmp_path / "theirs", body="open('ran', 'w')", how="(compiled=False)")
    own(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        aqmlab.compare(theirs, "./mine.py", "pfifo")


def test_a_law_may_ask_for_hosts(link, tmp_path):
    asks = own(tmp_path, "assert packet.source >= 0 and packet.source != packet.destination", "(hosts=True)", "asks.py")
    asks.write_text(asks.read_text().replace("class Mine", "class Asks"))
    assert run(link, str(asks)).summary["forward"]["offered_packets"] > 1000
    with pytest.raises(Misbehaved, match="the law mine failed"):
        run(link, str(own(tmp_path, "assert packet.source >= 0")))


def test_a_result_keeps_its_law_and_runs_again_from_it(link, tmp_path):
    path = own(tmp_path)
    first = aqmlab.run(link, set={"link.qdisc.kind": str(path), "duration": "3s"}, out=tmp_path / "out")
    kept = tmp_path / "out" / first.manifest["laws"][0]["file"]
    assert kept.read_text() == path.read_text()
    path.unlink()
    scenario = str(tmp_path / "out/scenario.toml")
    assert "not run unasked" in command("run", scenario)
    again = tmp_path / "again"
    assert command("run", scenario, "--allow-code", "-o", str(again)) == ""
    assert json.loads((again / "manifest.json").read_text())["digest"] == first.digest
    kept.write_text(kept.read_text() + "\n# other\n")
    assert "has other content than the law that is asked for" in command("run", scenario, "--allow-code")
    kept.unlink()
    assert "no such file; expected a law" in command("run", scenario, "--allow-code")


def command(*words: str) -> str:
    """What the command complains of, in a process that has no law yet."""
    done = subprocess.run([sys.executable, "-m", "aqmlab", *words], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode == 0) == (done.stderr == ""), done
    return done.stderr


def test_a_sweep_takes_a_law(link, tmp_path):
    own(tmp_path)
    (tmp_path / "grid.toml").write_text(
        'scenario = "link.toml"\n[[grid]]\nname = "every"\nset = { "link.qdisc.kind" = "./mine.py" }\n'
        '[[grid.axis]]\nname = "n"\nkey = "link.qdisc.every"\nvalues = [20, 200]\n'
    )
    words = ["sweep", str(tmp_path / "grid.toml"), "-o", str(tmp_path / "out"), "--set", "duration=3s", "--json"]
    assert cli.invoke(words) == 2
    assert cli.invoke([*words, "--allow-code"]) == 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("packet.chance(2.0)", "the law mine drew with probability 2: expected one from 0 to 1"),
        ("packet.chance(float('nan'))", "the law mine drew with probability NaN"),
        ("return 77", "the law mine answered 77, which is no verdict"),
        ("return aqmlab.MARK", "the law mine marked a packet that may not be marked"),
        ("self.seen = self.seen // (packet.size - packet.size)", "the law mine failed"),
    ],
)
@pytest.mark.parametrize("how", ["", "(compiled=False)"])
def test_a_law_that_misbehaves_is_named_and_loses_no_finished_run(link, tmp_path, body, said, how):
    out = tmp_path / "out"
    with pytest.raises(Misbehaved) as failed:
        aqmlab.compare(link, "pfifo", str(own(tmp_path, body, how)), set={"duration": "3s"}, out=out, jobs=1)
    assert said in str(failed.value)
    if how and "//" in body:
        assert "ZeroDivisionError" in str(failed.value) and "mine.py:14" in str(failed.value)
    assert (out / "pfifo/manifest.json").exists()


@pytest.mark.parametrize("how", ["", "(compiled=False)"])
def test_a_law_that_never_ends_is_named(link, tmp_path, monkeypatch, how):
    monkeypatch.setattr(apart, "SILENCE_S", 1.5)
    path = own(tmp_path, "while self.seen > 500: pass", how)
    with pytest.raises(Misbehaved, match=r"gave no sign of life for 1.5 s after .* it ran the code of mine \("):
        aqmlab.compare(link, "pfifo", str(path), set={"duration": "3s"}, out=tmp_path / "out", jobs=1)
    assert (tmp_path / "out/pfifo/manifest.json").exists()
    with pytest.raises(Misbehaved, match=r"gave no sign of life for 1.5 s after .* it ran the code of mine \("):
        list(sweep.InProcess().each(of_a_sweep(link, path), Silent()))


@pytest.mark.parametrize(
    ("body", "is_straight"),
    [
        ("self.seen = max(self.seen, int(math.sqrt(4.0)) + halved(3))", True),
        ("while self.seen > 500: pass", False),
        ("for _ in range(3): self.seen += 0", False),
        ("self.seen += endless(3)", False),
        ("self.seen += TABLE[2]", False),
    ],
)
def test_a_compiled_law_runs_in_this_process_where_each_call_surely_ends(tmp_path, body, is_straight):
    path = own(tmp_path, body)
    functions = "def halved(n):\n    return n // 2\n\n\ndef endless(n):\n    return 0 if n < 0 else endless(n + 1)\n"
    path.write_text(
        path.read_text().replace(
            "import aqmlab\n", f"import math\n\nimport aqmlab\n\nTABLE = (1, 2, 3)\n\n\n{functions}"
        )
    )
    assert brought.of_file(path).runs_apart is not is_straight


@pytest.mark.parametrize(
    "verb", ["tc", "shell", "run", "record", "calibrate", "compare", "live", "study", "sweep", "evaluate"]
)
def test_every_verb_that_reads_scenarios_can_be_allowed_to_run_their_code(verb, capsys):
    cli.invoke([verb, "--help"])
    assert "--allow-code" in capsys.readouterr().out


def test_tc_loads_no_code_unasked(link, tmp_path, capsys):
    path = own(tmp_path, how="(compiled=False)")
    path.write_text(f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()\n" + path.read_text())
    link.write_text(SCENARIO.replace('"pfifo"', '"./mine.py"'))
    assert cli.invoke(["tc", str(link)]) == 2
    assert "expected --allow-code" in capsys.readouterr().err and not (tmp_path / "ran").exists()
    cli.invoke(["tc", str(link), "--allow-code"])
    assert "--allow-code" not in capsys.readouterr().err and (tmp_path / "ran").exists()


def test_a_library_that_breaks_its_process_is_named(link, tmp_path):
    code = tmp_path / "breaks.c"
    code.write_text(
        '#include "aqmlab_law.h"\nstatic int32_t arrival(void *s, const struct aqmlab_facts *f)\n'
        "{ return f->now_ns > 1000000000 ? *(volatile int32_t *)0 : 0; }\n"
        'static const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, .name = "breaks", .tick_param = -1,\n'
        ".on_arrival = arrival};\nconst struct aqmlab_law *aqmlab_law_table(void) { return &law; }\n"
    )
    made = library("breaks", tmp_path, "-Wno-unused-parameter", source=code)
    with pytest.raises(Misbehaved) as failed:
        aqmlab.compare(link, "pfifo", str(made), set={"duration": "3s"}, out=tmp_path / "out", jobs=1)
    assert "was ended by SIGSEGV" in str(failed.value) and "breaks (" in str(failed.value)
    assert (tmp_path / "out/pfifo/manifest.json").exists()
    with pytest.raises(Misbehaved, match=r"was ended by SIGSEGV .* it ran the code of breaks \("):
        list(sweep.Processes(1).each(of_a_sweep(link, made), Silent()))


def of_a_sweep(link: Path, law: Path) -> list[plan.Task]:
    """The one run of a sweep over a law."""
    tree = {"name": "one", "scenario": tomllib.loads(link.read_text()) | {"duration": "3s"}}
    tree["scenario"]["link"]["qdisc"] = {"kind": law.name}
    tree["grid"] = [{"axis": [{"name": "limit", "key": "link.qdisc.limit", "values": ["50p"]}]}]
    brought.allow(law)
    (one,) = grid.read(tree, str(law.parent / "grid.toml"))
    return plan.plan([(point, 1) for point in one.points])


@pytest.mark.skipif(not os.access(KERNEL, os.X_OK), reason="left out: no kernel of virtual time (aqmlab kernel build)")
@pytest.mark.parametrize("how", ["compiled", "interpreted"])
def test_a_law_decides_between_real_stacks_in_virtual_time(link, tmp_path, monkeypatch, how):
    monkeypatch.setenv(kernel.VARIABLE, KERNEL)
    path = own(tmp_path, how="(compiled=False)" if how == "interpreted" else "")
    traffic = [{"kind": "cbr", "rate": "10mbit", "packet": "1000b"}]
    keys = {"duration": "3s", "warmup": "0s", "tcp.ecn": "off", "traffic": traffic, "link.qdisc.kind": str(path)}
    found = aqmlab.live(link, set=keys, virtual=True)
    (law,) = found.manifest["laws"]
    assert (law["name"], law["how"]) == ("mine", how)
    # It loses one arrival in 50, none of which leaves the queue full: half of the link's rate is asked for.
    forward = found.summary["forward"]
    assert forward["offered_packets"] > 3000
    assert forward["dropped_by_cause"]["early"] == forward["dropped_packets"] == forward["offered_packets"] // 50


def naming(folder: Path) -> Path:
    """A scenario that names a law beside it."""
    own(folder, "return aqmlab.PASS", "(compiled=False)")
    scenario = folder / "named.toml"
    scenario.write_text('duration = "1s"\nlink = { rate = "1mbit", qdisc = "mine.py" }\n[[traffic]]\nkind = "bulk"\n')
    return scenario


def test_permission_to_run_code_is_that_of_one_call(link, tmp_path):
    scenario = naming(tmp_path)
    refused = pytest.raises(BadInput, match=r"mine\.py\": names code, which is not run unasked")
    with refused:
        aqmlab.run(scenario)
    assert aqmlab.run(scenario, allow_code=True).summary["forward"]
    # The law is loaded by now, and may not run for somebody who does not ask for it.
    for call in (aqmlab.run, lambda file: aqmlab.compare(file, "pfifo"), aqmlab.calibrate):
        with refused:
            call(scenario)
    assert aqmlab.run(scenario, set={"link.qdisc": "mine.py"}).summary["forward"]
    with refused:
        aqmlab.run(scenario)


def test_permission_ends_with_a_call_that_fails_and_with_a_command(link, tmp_path, capsys):
    scenario = naming(tmp_path)
    with pytest.raises(BadInput, match="reps"):
        aqmlab.run(scenario, allow_code=True, reps=0)
    with pytest.raises(BadInput, match="allow_code: 1: expected True or False"):
        aqmlab.run(scenario, allow_code=1)
    assert cli.invoke(["run", str(scenario), "--allow-code", "-o", str(tmp_path / "out")]) == 0
    assert cli.invoke(["run", str(scenario), "-o", str(tmp_path / "again")]) == 2
    assert "names code, which is not run unasked" in capsys.readouterr().err


def test_a_sweep_from_python_may_be_given_permission(link, tmp_path):
    naming(tmp_path)
    (tmp_path / "grid.toml").write_text(
        'scenario = "named.toml"\n[[grid]]\n[[grid.axis]]\nname = "rate"\nkey = "link.rate"\n'
        'values = ["1mbit", "2mbit"]\n'
    )
    asked = sweeps.read(tmp_path / "grid.toml")
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        sweeps.run(asked, tmp_path / "no")
    assert len(sweeps.run(asked, tmp_path / "yes", allow_code=True).rows) == 2
    with pytest.raises(BadInput, match="names code, which is not run unasked"):
        sweeps.run(asked, tmp_path / "again")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("open('x')", r"mine.py:14: Mine.on_arrival cannot be compiled"),
        ("self.other = 3", r"mine.py:14: Mine has no field other; expected it in the class"),
        ("self.seen += packet.sojourn", r"mine.py:14: packet has no sojourn; expected one of now_ns, .*sojourn_ns"),
        ("return aqmlab.SIGNL", r"mine.py:14: Mine.on_arrival cannot be compiled: .*SIGNL"),
        ("return 'drop'", r"mine.py:\d+: Mine.on_arrival answers .*; expected a verdict on every way through it"),
        ("return 0.5", r"mine.py:14: Mine.on_arrival answers a fraction; expected a verdict on every way through it"),
        ("if self.seen > 9: return True", r"mine.py:14: Mine.on_arrival answers True or False; expected a verdict"),
        ("self.seen = 0.9 * self.seen", r"mine.py:14: Mine.seen begins as 0 and is given a fraction; expected it"),
        ("self.every += 0.5", r"mine.py:14: Mine.every begins as a whole number and is given a fraction"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_line(link, tmp_path, body, said):
    with pytest.raises(BadInput, match=said):
        run(link, str(own(tmp_path, body)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "declares 0 laws; expected one class with @aqmlab.law"),
        ("x = (\n", "mine.py:1: '\\(' was never closed; expected Python"),
        ("import nothing_of_the_kind\n", "ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
        (COUNTS.format(body="pass", how="").replace("on_arrival", "on_arival"), "expected a method on_arrival or"),
        (COUNTS.format(body="pass", how='(tick="5ms")'), "expected a method tick and how often it is called"),
        (
            COUNTS.format(body="pass", how="") + "\n    def on_departur(self, packet): return 0\n",
            "mine.py:17: Mine.on_departur: expected a method that the engine calls, which are prepare, on_arrival",
        ),
        (
            COUNTS.format(body="pass", how="") + "\n    def on_idle(self): pass\n",
            r"mine.py:17: Mine.on_idle\(self\): expected \(self, queue\)",
        ),
        (
            COUNTS.format(body="pass", how='(tick="often")') + "\n    def tick(self, queue): pass\n",
            "Mine: tick: often: expected a time such as 15ms, or the name of a parameter",
        ),
        (
            COUNTS.format(body="pass", how="").replace("(50,", "('20 parsecs',"),
            "mine.py:10: parameter: '20 parsecs': expected a number, or a text such as 5ms",
        ),
        (COUNTS.format(body="pass", how="(tick=5)"), "Mine: tick: 5: expected a time, as in @aqmlab.law"),
        (
            COUNTS.format(body="pass", how="").replace("(50,", "('5ms',"),
            r"mine.py:10: parameter: low: 1: expected a text with a unit, as the default '5ms' has",
        ),
        (COUNTS.format(body="pass", how='(name="pi")'), "called pi, as one that is built in: expected another name"),
        (
            COUNTS.format(body="pass", how="").replace("seen = 0", "seen = []"),
            "Mine.seen: list: expected a plain number",
        ),
    ],
)
def test_what_is_no_law_is_refused(link, tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(BadInput, match=said):
        run(link, str(tmp_path / "mine.py"))


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"])
def test_a_file_that_never_ends_while_it_is_imported_is_refused(tmp_path, monkeypatch, code):
    monkeypatch.setattr(patience, "LOADING_S", 0.3)
    (tmp_path / "mine.py").write_text(f"{code}\n")
    said = r"mine.py: still runs 0.3 s after it was loaded; expected a file whose own code ends"
    with pytest.raises(BadInput, match=said):
        brought.of_file(tmp_path / "mine.py")
    if "sleep" not in code:
        with ThreadPoolExecutor(1) as pool, pytest.raises(BadInput, match=said):
            pool.submit(brought.of_file, tmp_path / "mine.py").result()
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("__builtin_trap();", "was ended by SIG(ILL|TRAP) while it was loaded; expected a library that can be loaded"),
        ("for (volatile int k = 0;;) k++;", "still runs 1 s after it was loaded"),
    ],
)
@pytest.mark.parametrize("where", ["int aqmlab_law_table", "__attribute__((constructor)) static int begins"])
def test_a_library_that_breaks_or_never_ends_while_it_is_loaded_is_refused(tmp_path, monkeypatch, code, said, where):
    monkeypatch.setattr(patience, "LOADING_S", 1.0)
    (tmp_path / "bad.c").write_text(f"{where}(void) {{ {code} return 0; }}\n")
    made = library("bad", tmp_path, source=tmp_path / "bad.c")
    with pytest.raises(BadInput, match=f"bad.so: {said}"):
        brought.of_file(made)


@pytest.mark.parametrize(
    "words", [["check"], ["explain"], ["compare", "link.toml", "pfifo"]], ids=lambda words: words[0]
)
def test_a_scenario_is_no_law(link, monkeypatch, capsys, words):
    monkeypatch.chdir(link.parent)
    assert cli.invoke([*words, "link.toml"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "link.toml" in said and "expected" in said, said
    if words == ["check"]:
        assert said.endswith("link.toml: is no law; expected a file whose name ends in .py, .so, .onnx\n")


def test_the_guide_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs/guide/laws.md").read_text()
    written, careful = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    Path("my_law.py").write_text(written)
    Path("careful.py").write_text(careful)
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    shown = [shlex.split(line, comments=True) for line in lines if line.startswith("aqmlab ")]
    assert [words[1] for words in shown] == ["check", "new", "compare", "run", "compare", "compare"]
    keys = ("duration=6s", "warmup=1s", "link.rate=5mbit", 'traffic=[{ kind = "bulk", flows = 8 }]')
    short = [word for key in keys for word in ("--set", key)]
    Path("my_pi.c").write_text((ROOT / "examples/own-law-c/my_pi.c").read_text())
    (compiler,) = (line for line in lines if line.startswith("cc "))
    subprocess.run(compiler.replace("python -c", f"{sys.executable} -c"), shell=True, check=True, env=ENVIRONMENT)
    for words in shown:
        more = [] if words[1] in ("check", "new") else short
        assert cli.invoke([*(word for word in words[1:] if word != "--report"), *more]) == 0, words


def test_the_way_from_a_law_to_a_paper_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, guide = ((ROOT / f"docs/guide/{name}.md").read_text() for name in ("laws", "from-law-to-paper"))
    written, _ = re.findall(r"^```python\n(.*?)^```", first, re.DOTALL | re.MULTILINE)
    Path("my_law.py").write_text(written)
    (grid,) = re.findall(r"^```toml\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    Path("grid.toml").write_text(grid)
    shown = [
        shlex.split(line)[1:]
        for block in re.findall(r"^```sh\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert [words[0] for words in shown] == ["sweep", "new", "compare", "figures"]
    short = ["--set", "duration=6s", "--set", "warmup=2s"]
    fewer = {"sweep": short, "compare": [*short, "--set", "link.rate=5mbit", "--set", "traffic.0.load=3mbit"]}
    for words in shown:
        assert cli.invoke([*words, *fewer.get(words[0], [])]) == 0, words
    assert pl.read_parquet("sweep/runs.parquet").height == 3 * 2 * 3
    assert sorted(path.name for path in Path("figures").iterdir()) == ["queue.pdf", "response-cdf.pdf"]
    assert list((tmp_path / "paper-runs").rglob("*my_law.py"))


def test_a_law_is_explained_as_any_other(tmp_path, capsys):
    assert cli.invoke(["explain", str(ROOT / "examples/laws/my_pie.py"), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["name"], row["kind"], row["marks"]) == ("my_pie", "law", True)
    defaults = {param["name"]: param["default"] for param in row["params"]}
    assert defaults["target"] == "15ms" and defaults["mean_packet"] == "1500b" and "ecn" in defaults
    assert cli.invoke(["explain", str(ROOT / "examples/laws/my_pi.py"), "--rate", "10mbit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"]["w"] == "170hz"


def test_a_gauge_that_begins_as_a_whole_number_shows_no_fraction(link, tmp_path):
    path = own(tmp_path, "self.seen = self.seen + 0.5", '(compiled=False, gauges={"seen": "Packets."})')
    with pytest.raises(Misbehaved, match=r"seen begins as a whole number and is 1\.5; expected .* seen = 0\.0"):
        run(link, str(path))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "self.seen = self.seen + 0.5",
            r"seen begins as a whole number and is 1\.5; expected .* seen = 0\.0, or .* int",
        ),
        ("self.every += 0.5", r"every begins as a whole number and is \d+\.5; expected"),
        ("self.seen = float('nan')", r"seen begins as a whole number and is nan; expected"),
    ],
)
def test_a_whole_field_takes_no_fraction_in_the_interpreter_either(link, tmp_path, body, said):
    path = own(tmp_path, body, "(compiled=False)")
    with pytest.raises(Misbehaved, match=said):
        run(link, str(path))


@pytest.mark.parametrize("body", ["self.seen = 4.0", "self.seen = True", "self.seen = 10**20"])
def test_a_whole_field_takes_whole_numbers_however_they_are_written(link, tmp_path, body):
    assert run(link, str(own(tmp_path, body, "(compiled=False)")))


def test_a_wrong_answer_is_placed_in_the_file_of_the_law(link, tmp_path):
    path = own(tmp_path, 'return "x"', "(compiled=False)")
    begins = path.read_text()[: path.read_text().index("def on_arrival")].count("\n") + 1
    with pytest.raises(Misbehaved, match=rf"on_arrival answered 'x', .* \({path}:{begins}\)$"):
        run(link, str(path))


def test_a_law_that_fails_is_named_with_the_run(link, tmp_path, capsys):
    path = own(tmp_path, "math.sqrt(-1.0 - self.seen) if self.every == 7 else 0", "(compiled=False)")
    path.write_text(path.read_text().replace("import aqmlab", "import math\n\nimport aqmlab"))
    with pytest.raises(Misbehaved, match=r"^mine every 7: the law mine failed"):
        aqmlab.compare(link, f"{path}", "mine every 7", set={"duration": "3s"})
    file = tmp_path / "sweep.toml"
    file.write_text(
        f'[scenario]\nduration = "3s"\nlink.qdisc = {{ kind = "{path}" }}\ntraffic = [{{ kind = "bulk" }}]\n'
        '[[grid]]\nname = "all"\n[[grid.axis]]\nname = "every"\nkey = "link.qdisc.every"\nvalues = [50, 7]\n'
    )
    capsys.readouterr()
    assert cli.invoke(["sweep", str(file), "--allow-code", "-o", str(tmp_path / "out")]) != 0
    assert "aqmlab: all/7, seed 1: the law mine failed" in capsys.readouterr().err
