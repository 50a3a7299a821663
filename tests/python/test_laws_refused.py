"""What is no law is refused with its line; a law that misbehaves, breaks or never ends is named, and no finished run is
lost. Needs the compiled engine."""

import json
import math
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import polars as pl
import pytest

import aqmlab
from aqmlab import cli, comparison, sweep
from aqmlab.comparison import Incomplete
from aqmlab.errors import BadInput, Interrupted, Misbehaved
from aqmlab.laws import brought, patience
from aqmlab.progress import Silent
from aqmlab.runs import apart
from aqmlab.sweep import making, sweeps
from own_laws import COUNTS, command, library, of_a_sweep, own, run

pytestmark = pytest.mark.usefixtures("nothing_allowed")


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
        ("if self.seen > 9: return", r"mine.py:\d+: Mine.on_arrival answers nothing; expected a verdict on every way"),
        ("self.seen = 0.9 * self.seen", r"mine.py:14: Mine.seen begins as 0 and is given a fraction; expected it"),
        ("self.every += 0.5", r"mine.py:14: Mine.every begins as a whole number and is given a fraction"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_line(link, tmp_path, body, said):
    with pytest.raises(BadInput, match=said):
        run(link, str(own(tmp_path, body)))


@pytest.mark.parametrize(("decorator", "calls"), [("", "put"), ("", "hand_on"), ("@numba.njit\n", "put")])
def test_a_fraction_that_a_function_puts_into_a_whole_field_is_refused_with_its_line(tmp_path, decorator, calls):
    path = own(tmp_path, f"{calls}(self, packet.backlog_packets / 2)")
    put = f"{decorator}def put(law, value):\n    law.seen = value\n\n\n"
    hand_on = "def hand_on(law, value):\n    put(law, value)\n"
    path.write_text(path.read_text().replace("import aqmlab\n", f"import aqmlab\nimport numba\n\n{put}{hand_on}"))
    line = path.read_text()[: path.read_text().index("law.seen")].count("\n") + 1
    with pytest.raises(BadInput, match=rf"mine.py:{line}: Mine.seen begins as 0 and is given a fraction; expected it"):
        brought.of_file(path)
    path.write_text(path.read_text().replace("= value", "= int(value)"))
    assert brought.of_file(path).how == "compiled"


def test_a_way_without_a_return_is_refused(link, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(COUNTS.format(body="pass", how="").replace("return aqmlab", "if self.seen: return aqmlab", 1))
    with pytest.raises(
        BadInput, match=r"mine.py:\d+: Mine.on_arrival answers nothing; expected a verdict on every way"
    ):
        run(link, str(file))


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
        (COUNTS.format(body="pass", how="(source=3)"), "mine.py:12: Mine: source: 3: expected a text"),
        (COUNTS.format(body="pass", how="(year=-1)"), "Mine: year: -1: expected a whole number, from 0 to 9999"),
        (COUNTS.format(body="pass", how="(marks='no')"), "Mine: marks: 'no': expected True or False"),
        (COUNTS.format(body="pass", how="(gauges=['seen'])"), "Mine: gauges: .'seen'.: expected fields and what they"),
        (
            COUNTS.format(body="pass", how="").replace("seen = 0", "B = aqmlab.cause(7)"),
            "Mine.B: doc: 7: expected a",
        ),
        (
            COUNTS.format(body="pass", how="").replace("seen = 0", "seen = 2**70"),
            r"mine.py:12: Mine.seen: 1180591620717411303424: expected a whole number of 64 bits, or a fraction",
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


@pytest.mark.parametrize("declare", [aqmlab.law, aqmlab.discipline])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("-1", "default: -1: expected a whole number, from 0 to 9007199254740992"),
        ("-3, low=-10, high=10", "low: -10: expected a whole number, at least 0"),
        ("10**30", f"default: {10**30}: expected a whole number, from 0 to 9007199254740992"),
        ("10**400", f"default: {str(10**400)[:20]}"),
        ("2**53 + 1, high=2**60", "default: 9007199254740993: expected a whole number, from 0 to 9007199254740992"),
        ("5, low=10", "default: 5: expected a whole number, from 10 to 9007199254740992"),
        ("5.0, high=3.0", "default: 5.0: expected a number, at most 3.0"),
        ("5.0, low='1ms'", "low: '1ms': expected a number, as the default 5.0 is"),
        ("'5ms', low='1b'", "low: '1b': expected a time, as the default '5ms' is"),
        ("float('nan')", "default: nan: expected a finite number"),
        ("5.0, low=float('nan')", "low: nan: expected a number"),
        ("'-5ms'", "default: '-5ms': expected a time, from 0s to 1000s"),
        ("'5000000000b'", "default: '5000000000b': expected a size in whole bytes, from 0b to 65535b"),
        ("'1e400s'", "default: '1e400s': expected a time, from 0s to 1000s"),
        ("'1.1kb'", "default: '1.1kb': expected a size in whole bytes, from 0b to 65535b"),
        ("'0bit'", "default: '0bit': expected a rate, from 1bit to 1tbit"),
        ("numpy.int64(-5)", "default: np.int64(-5): expected a whole number, from 0"),
        ("5, 7", "doc: 7: expected a text"),
        ("5, unit=3", "unit: 3: expected a text"),
        ("None", "None: expected a number, or a text such as 5ms, 170hz, 10mbit or 1500b"),
        ("(1, 2)", "(1, 2): expected a number, or a text such as"),
        ("5j", "5j: expected a number, or a text such as"),
    ],
)
def test_a_parameter_is_refused_as_it_is_written(tmp_path, capsys, declare, given, said):
    path = own(tmp_path)
    declared = path.read_text().replace("aqmlab.law", f"aqmlab.{declare.__name__}").replace("(50,", f"({given})  # ")
    path.write_text(declared.replace("import aqmlab\n", "import numpy\n\nimport aqmlab\n"))
    for verb in ("explain", "check"):
        assert cli.invoke([verb, str(path)]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"aqmlab: {path}:12: parameter: {said}") and told.count("\n") == 1, told
    with pytest.raises(BadInput, match=r"^parameter: "):
        eval(f"aqmlab.parameter({given})", {"aqmlab": aqmlab, "numpy": numpy})


@pytest.mark.parametrize(
    ("given", "kind", "default", "low", "high"),
    [
        ("numpy.int64(5)", "integer", 5, 0, 2**53),
        ("numpy.float32(0.5)", "number", 0.5, -math.inf, math.inf),
        ("numpy.bool_(True)", "flag", 1, 0, 1),
        ("-0.5, low=-1", "number", -0.5, -1, math.inf),
        ("2**53, high=2**60", "integer", 2**53, 0, 2**53),
        ("'100000b', high='1mb'", "size", 100_000, 0, 2**20),
        ("'2.3mbit'", "rate", 2_300_000, 1, 1e12),
        ("'5ms', low=0", "time", 5_000_000, 0, 1e12),
    ],
)
def test_a_parameter_is_what_is_written(given, kind, default, low, high):
    found = eval(f"aqmlab.parameter({given})", {"aqmlab": aqmlab, "numpy": numpy})
    assert (found.kind, found.default, found.low, found.high) == (kind, default, low, high)


@pytest.mark.parametrize(
    ("begins", "lasts"),
    [
        ("numpy.float64(0.5)", "self.seen == 0.5"),
        ("numpy.int64(3)", "self.seen == 3"),
        ("float('inf')", "self.seen > 1e308"),
        ("-(2**63)", "self.seen < -(2**62)"),
        ("2**63 - 1", "self.seen > 2**62"),
        ("True", "self.seen == 1"),
    ],
)
@pytest.mark.parametrize("how", ["", "(compiled=False)"])
def test_a_field_begins_as_the_number_that_is_written(link, tmp_path, begins, lasts, how):
    path = own(tmp_path, f"return aqmlab.DROP if {lasts} else aqmlab.PASS", how)
    text = path.read_text().replace("self.seen += 1", "pass").replace("seen = 0", f"seen = {begins}")
    path.write_text(text.replace("import aqmlab\n", "import numpy\n\nimport aqmlab\n"))
    forward = run(link, str(path), duration="3s").summary["forward"]
    assert forward["offered_packets"] == forward["dropped_packets"] > 10


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


@pytest.mark.parametrize("code", ["sys.exit(0)", "sys.exit('no')", "raise SystemExit(3)"])
def test_a_file_that_ends_its_process_is_refused(tmp_path, capsys, code):
    path = own(tmp_path)
    path.write_text(f"import sys\n\n{code}\n{path.read_text()}")
    assert cli.invoke(["explain", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith(f"aqmlab: {path}: SystemExit: ")
    assert said.err.endswith(f"({path}:3); expected a file that can be imported\n")


def test_what_a_file_prints_is_no_part_of_an_answer(tmp_path, capsys):
    path = own(tmp_path)
    path.write_text(f"print('here I am')\n{path.read_text()}")
    assert cli.invoke(["explain", str(path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["name"] == "mine" and said.err == "here I am\n"


def test_what_a_file_prints_in_one_thread_is_told_from_what_others_print(tmp_path, capsys, monkeypatch):
    """Two threads load files, of which the first one ends first, while a third one prints."""
    gates = [threading.Event() for _ in range(4)]
    monkeypatch.setattr(aqmlab, "gates", gates, raising=False)
    loads, before = [], sys.stdout
    with ThreadPoolExecutor(2) as pool:
        for k, begun in enumerate(gates[:2]):
            path = own(tmp_path, how="(compiled=False)", name=f"mine{k}.py")
            waits = f"aqmlab.gates[{k}].set()\nassert aqmlab.gates[{k + 2}].wait(60)\n"
            path.write_text(f"import aqmlab\n\nprint('of a file')\n{waits}{path.read_text()}")
            loads.append(pool.submit(brought.of_file, path))
            assert begun.wait(60)
        print("an answer")
        for load, end in zip(loads, gates[2:], strict=True):
            end.set()
            load.result()
    assert sys.stdout is before
    assert capsys.readouterr() == ("an answer\n", "of a file\n" * 2)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("_Exit(0);", "ended its process with exit code 0 while it was loaded; expected a library that can be loaded"),
        ("_Exit(1);", "ended its process with exit code 1 while it was loaded"),
        ("__builtin_trap();", "was ended by SIG(ILL|TRAP) while it was loaded; expected a library that can be loaded"),
        ("for (volatile int k = 0;;) k++;", "still runs 1 s after it was loaded"),
    ],
)
@pytest.mark.parametrize("where", ["int aqmlab_law_table", "__attribute__((constructor)) static int begins"])
def test_a_library_that_breaks_or_never_ends_while_it_is_loaded_is_refused(tmp_path, monkeypatch, code, said, where):
    monkeypatch.setattr(patience, "LOADING_S", 1.0)
    (tmp_path / "bad.c").write_text(f"#include <stdlib.h>\n{where}(void) {{ {code} return 0; }}\n")
    made = library("bad", tmp_path, source=tmp_path / "bad.c")
    with pytest.raises(BadInput, match=f"bad.so: {said}"):
        brought.of_file(made)


TABLE = """
#include "aqmlab_law.h"
static int32_t passes(void *state, const struct aqmlab_facts *facts) {{ return (state && facts) ? AQMLAB_PASS : 0; }}
static const struct aqmlab_param one[] = {{{{"one", "a rate", "", AQMLAB_KIND_RATE, 0, 9e6, 1, 1e9}}}};
static const struct aqmlab_law law = {{
    .version = AQMLAB_LAW_VERSION, .state_bytes = 8, .name = "mine", .doc = {doc}, .params = {params},
    .params_count = 1, .tick_param = -1, .on_arrival = passes}};
const struct aqmlab_law *aqmlab_law_table(void) {{ return one[0].name ? &law : 0; }}
"""


@pytest.mark.parametrize("wrong", [{}, {"doc": "(const char *)16"}, {"params": "(const struct aqmlab_param *)16"}])
def test_a_library_whose_table_points_nowhere_is_refused_with_its_file(tmp_path, wrong):
    (tmp_path / "mine.c").write_text(TABLE.format(**{"doc": '"Passes all."', "params": "one", **wrong}))
    made = library("mine", tmp_path, source=tmp_path / "mine.c")
    refused = f"aqmlab: {made}: was ended by SIGSEGV while it was loaded; expected a library that can be loaded\n"
    assert command("explain", str(made)) == (refused if wrong else "")


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
    assert list(failed.value.comparison) == ["pfifo"]
    again = pickle.loads(pickle.dumps(failed.value))
    assert str(again) == str(failed.value) and list(again.comparison) == ["pfifo"]


@pytest.mark.parametrize("reps", [1, 2])
def test_the_others_of_a_comparison_are_finished_and_a_repaired_law_is_resumed(link, tmp_path, capsys, undrawn, reps):
    fails = own(tmp_path, "return 77 if self.every == 7 and self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    out = tmp_path / "out"
    words = ["compare", str(link), f"{fails} every 7", "mine every 9", "fq_mine", "pie", "--set", "duration=3s"]
    words += ["-o", str(out), "--reps", str(reps), "--jobs", "1"]
    assert cli.invoke([*words, "--json", "--report"]) == 1
    said = capsys.readouterr()
    answer, run = json.loads(said.out), ", run 1" if reps > 1 else ""
    message = f"mine every 7{run}: the law mine answered 77, which is no verdict"
    assert said.err.startswith(f"aqmlab: {message}") and said.err.count("\n") == 1
    assert [one["name"] for one in answer["variants"]] == ["mine every 9", "fq_mine", "pie"]
    assert answer["baseline"] == "mine every 9" and [one["name"] for one in answer["failed"]] == ["mine every 7"]
    page = (out / "report.html").read_text()
    assert "<b>Failed: mine every 7.</b>" in page and message in page
    assert [one.name for one in aqmlab.load(out).failed] == ["mine every 7"]
    runs = [path for path in out.rglob("manifest.json") if reps == 1 or path.parent.name.startswith("rep-")]
    made = {path: path.stat().st_mtime_ns for path in runs}
    assert len(made) == 3 * reps
    # What is not repaired fails again, and another comparison is refused.
    assert cli.invoke([*words, "--resume"]) == 1
    assert cli.invoke([*words, "--resume", "--set", "duration=4s"]) == 2
    assert "holds another comparison" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in made} == made
    fails.write_text(fails.read_text().replace("return 77", "return aqmlab.DROP"))
    assert cli.invoke([*words, "--resume", "--json", "--report"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in answer["variants"]] == ["mine every 7", "mine every 9", "fq_mine", "pie"]
    assert answer["failed"] == [] and "Failed:" not in (out / "report.html").read_text()
    kept = [path for path in made if path.stat().st_mtime_ns == made[path]]
    assert len(kept) == reps and all("pie" in path.parts for path in kept)


def test_a_law_is_repaired_again_after_its_comparison_was_interrupted(link, tmp_path, monkeypatch):
    law = own(tmp_path, "return 77 if self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    out = tmp_path / "out"

    def compare(**words):
        return aqmlab.compare(link, f"{law}", "pie", set={"duration": "3s"}, out=out, jobs=1, **words)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(comparison, "settle_failures", interrupted)
        compare()
    law.write_text(law.read_text().replace("return 77", "return 78"))
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(comparison, "note_failure", interrupted)
        compare(resume=True)
    law.write_text(law.read_text().replace("return 78", "return aqmlab.DROP"))
    found = compare(resume=True)
    assert list(found) == ["mine", "pie"] and found.failed == []


def interrupted(*_):
    raise KeyboardInterrupt


def test_the_baseline_that_fails_is_said_to_be_another(link, tmp_path):
    law = own(tmp_path, "return 77 if self.seen > 99 else aqmlab.PASS", "(compiled=False)")
    with pytest.raises(
        Incomplete, match=r"which is no verdict .*; the others are compared with pfifo instead$"
    ) as failed:
        aqmlab.compare(link, "pfifo", f"{law}", "pie", set={"duration": "3s"}, baseline="mine", jobs=1)
    assert failed.value.comparison.baseline.name == "pfifo"


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


GRID_OF_A_LAW = """
name = "mine"
seeds = 2
[scenario]
duration = "3s"
traffic = [{{ kind = "bulk" }}]
[[grid]]
[[grid.axis]]
name = "aqm"
value = [
    {{ name = "mine", link.qdisc = {{ kind = "{law}" }} }},
    {{ name = "pie", link.qdisc = {{ kind = "pie" }} }},
]
[[grid.axis]]
name = "rate"
key = "link.rate"
values = ["5mbit", "10mbit"]
"""


@pytest.mark.parametrize("jobs", ["in this process", "1"])
def test_the_others_of_a_sweep_are_finished_and_a_repaired_law_is_resumed(link, tmp_path, capsys, monkeypatch, jobs):
    if jobs != "1":
        monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    law = own(tmp_path, "return math.sqrt(-1.0)", "(compiled=False)")
    broken = law.read_text().replace("import aqmlab", "import math\n\nimport aqmlab")
    law.write_text(broken)
    grid_file, out = tmp_path / "grid.toml", tmp_path / "out"
    grid_file.write_text(GRID_OF_A_LAW.format(law=law))
    words = ["sweep", str(grid_file), "--allow-code", "-o", str(out), "--jobs", "1"]
    assert cli.invoke(words) == 1
    shown, said = capsys.readouterr()
    assert said.startswith("aqmlab: all 4 runs at mine, the first: the law mine failed") and said.count("\n") == 1
    assert "mine: 4 runs of 4 points" in shown
    assert set(pl.read_parquet(out / "runs.parquet")["aqm"]) == {"pie"}
    facts = json.loads((out / "sweep.json").read_text())
    assert not facts["complete"] and (facts["runs_made"], facts["runs_kept"]) == (4, 0)
    assert {(one["point"], one["seed"]) for one in facts["failed"]} == {
        (f"grid/mine/{rate}", seed) for rate in ("5mbit", "10mbit") for seed in (1, 2)
    }
    # What has failed is made again, and nothing else.
    assert cli.invoke([*words, "--resume", "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    assert (again["runs_made"], again["runs_kept"], len(again["failed"])) == (0, 4, 4)
    with pytest.raises(sweeps.Incomplete, match=r"^grid/mine/5mbit, seed 1: the law mine failed") as failed:
        sweeps.run(sweeps.read(grid_file), out, resume=True, jobs=1, allow_code=True)
    assert len(failed.value.found.rows) == 4
    # No run of another scenario comes in with the repaired law.
    law.write_text(broken.replace("return math.sqrt(-1.0)", "pass"))
    assert cli.invoke([*words, "--resume", "--set", "duration=4s"]) == 2
    assert "holds a sweep of other runs" in capsys.readouterr().err
    assert cli.invoke([*words, "--resume", "--json"]) == 0
    repaired = json.loads(capsys.readouterr().out)
    assert (repaired["runs_made"], repaired["runs_kept"], repaired["failed"]) == (4, 4, [])
    assert repaired["complete"] and len(repaired["rows"]) == 8


def test_a_sweep_of_which_every_run_fails_has_no_rows(link, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    law, grid_file = own(tmp_path, 'return "x"', "(compiled=False)"), tmp_path / "grid.toml"
    text = GRID_OF_A_LAW.format(law=law)
    grid_file.write_text("".join(line for line in text.splitlines(keepends=True) if 'name = "pie"' not in line))
    assert cli.invoke(["sweep", str(grid_file), "--allow-code", "-o", str(tmp_path / "out")]) == 1
    shown, said = capsys.readouterr()
    assert "Rows in" not in shown and said.startswith("aqmlab: all 4 runs, the first: the law mine failed")


def test_a_wrong_answer_is_placed_in_the_file_of_the_law(link, tmp_path):
    path = own(tmp_path, 'return "x"', "(compiled=False)")
    begins = path.read_text()[: path.read_text().index("def on_arrival")].count("\n") + 1
    with pytest.raises(Misbehaved, match=rf"on_arrival answered 'x', .* \({path}:{begins}\)$"):
        run(link, str(path))


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


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "mine: decides nothing: expected on_arrival or on_departure, which answer a verdict"),
        (".params_count = 3,", "says params_count = 3 and has params = NULL: expected 3 of them, or 0"),
    ],
)
def test_a_table_in_c_that_lacks_what_it_says_is_refused(tmp_path, table, said):
    (tmp_path / "mine.c").write_text(
        '#include "aqmlab_law.h"\nstatic const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, '
        f'.name = "mine", {table} .tick_param = -1}};\n'
        "const struct aqmlab_law *aqmlab_law_table(void) { return &law; }\n"
    )
    made = library("mine", tmp_path, source=tmp_path / "mine.c")
    with pytest.raises(BadInput) as refused:
        brought.of_file(made)
    assert str(refused.value) == f"{made}: {said}"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            ".on_arrival = arrival, .tick = tick",
            "mine: ticks every 0 ns, or by parameter 0; expected tick_param = -1 wh",
        ),
        (
            ".on_arrival = arrival, .tick_param = -1, .params = params, .params_count = 1",
            "mine: the parameter share lies outside the state, or not at 8 bytes; expected a multiple of 8, at least 8",
        ),
    ],
)
def test_what_is_expected_of_a_table_is_about_what_is_wrong_with_it(tmp_path, table, said):
    (tmp_path / "mine.c").write_text(
        '#include "aqmlab_law.h"\n'
        "static int32_t arrival(void *s, const struct aqmlab_facts *f) { (void)s; (void)f; return 0; }\n"
        "static int32_t tick(void *s, const struct aqmlab_facts *f) { (void)s; (void)f; return 0; }\n"
        'static const struct aqmlab_param params[] = {{.name = "share", .offset = 4}};\n'
        'static const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, .name = "mine", .state_bytes = 8,\n'
        f"{table}}};\nconst struct aqmlab_law *aqmlab_law_table(void) {{ (void)tick; (void)params; return &law; }}\n"
    )
    made = library("mine", tmp_path, "-Wno-missing-field-initializers", source=tmp_path / "mine.c")
    with pytest.raises(BadInput) as refused:
        brought.of_file(made)
    assert str(refused.value).startswith(f"{made}: {said}") and "exports" not in str(refused.value)


def test_a_library_that_lacks_another_one_is_refused_with_where_that_is_looked_for(tmp_path):
    (tmp_path / "other.c").write_text("int other(void);\nint other(void) { return 1; }\n")
    library("libother", tmp_path, source=tmp_path / "other.c")
    (tmp_path / "mine.c").write_text("int other(void);\nint mine(void);\nint mine(void) { return other(); }\n")
    words = (f"-L{tmp_path}", "-Wl,--no-as-needed", "-lother", "-Wl,-rpath,$ORIGIN")
    made = library("mine", tmp_path, *words, source=tmp_path / "mine.c")
    with pytest.raises(BadInput, match=r"libother.so: cannot open shared .*; expected libraries that the loader finds"):
        brought.of_file(made)


def test_a_class_in_the_place_of_its_file_is_refused_with_a_hint(link, tmp_path):
    class MyLaw:
        """A law."""

    for call in (
        lambda: aqmlab.compare(link, MyLaw, "pie"),
        lambda: aqmlab.run(link, set={"link.qdisc": MyLaw}),
        lambda: aqmlab.run(link, set={"link.qdisc": {"kind": MyLaw}}),
    ):
        with pytest.raises(BadInput, match=r"^MyLaw: is a class; expected the name of its file, as in 'my_law.py'$"):
            call()
