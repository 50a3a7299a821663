"""Laws of one's own: what users write does what the same law built in does, in runs, comparisons, sweeps and between
real stacks, and the guides can be followed. Needs the compiled engine."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import aqmlab
from aqmlab import cli, engine
from aqmlab.errors import Misbehaved
from aqmlab.laws import brought
from aqmlab.live import kernel
from aqmlab.runs import law_check
from conftest import ROOT
from own_laws import BUILT_IN, ENVIRONMENT, KERNEL, command, library, own, run

pytestmark = pytest.mark.usefixtures("nothing_allowed")


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


LIMITS = """
#include "aqmlab_law.h"
namespace {
struct state { std::int64_t most; };
int32_t arrival(void *at, const aqmlab_facts *facts) {
    return facts->backlog_packets < static_cast<state *>(at)->most ? AQMLAB_PASS : AQMLAB_DROP;
}
aqmlab_param most() {
    aqmlab_param it{};
    it.name = "most", it.doc = "Packets that may wait.", it.unit = "packets";
    it.kind = AQMLAB_KIND_INTEGER, it.default_value = 20.0, it.low = 1.0, it.high = 1000.0;
    return it;
}
const aqmlab_param params[] = {most()};
aqmlab_law made() {
    aqmlab_law it{};
    it.version = AQMLAB_LAW_VERSION, it.name = "limits", it.doc = "Holds so many packets.", it.tick_param = -1;
    it.state_bytes = sizeof(state), it.params = params, it.params_count = 1, it.on_arrival = arrival;
    return it;
}
const aqmlab_law law = made();
}
const aqmlab_law *aqmlab_law_table() { return &law; }
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="left out: no compiler of C++")
@pytest.mark.parametrize("standard", [11, 17, 20])
def test_a_law_may_be_written_in_cpp(link, tmp_path, standard):
    (tmp_path / "limits.cpp").write_text(f"#include <cstdint>\n{LIMITS}")
    flags = [f"-std=c++{standard}", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", aqmlab.include()]
    made = tmp_path / "limits.so"
    subprocess.run(["c++", *flags, "-o", str(made), str(tmp_path / "limits.cpp")], check=True)
    ours = aqmlab.run(link, set={"link.qdisc": {"kind": str(made), "most": 30}, "duration": "5s"})
    theirs = aqmlab.run(link, set={"link.qdisc": {"kind": "pfifo", "limit": "30p"}, "duration": "5s"})
    packets = ("offered_packets", "dropped_packets", "queue_delay_mean_s")
    assert [ours.summary["forward"][key] for key in packets] == [theirs.summary["forward"][key] for key in packets]
    assert ours.summary["forward"]["dropped_packets"] > 0


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


def test_a_sweep_takes_a_law(link, tmp_path):
    own(tmp_path)
    (tmp_path / "grid.toml").write_text(
        'scenario = "link.toml"\n[[grid]]\nname = "every"\nset = { "link.qdisc.kind" = "./mine.py" }\n'
        '[[grid.axis]]\nname = "n"\nkey = "link.qdisc.every"\nvalues = [20, 200]\n'
    )
    words = ["sweep", str(tmp_path / "grid.toml"), "-o", str(tmp_path / "out"), "--set", "duration=3s", "--json"]
    assert cli.invoke(words) == 2
    assert cli.invoke([*words, "--allow-code"]) == 0


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


def lines_of(guide):
    """Commands of a page; one that goes on in the next line is one."""
    blocks = re.findall(r"^```sh\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


def test_the_guide_can_be_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / "docs/guide/laws.md").read_text()
    written, derived, careful = re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    Path("quick.py").write_text(f"{written}\n\n{derived}")
    assert cli.invoke(["explain", "quick.py"]) == 0
    Path("my_law.py").write_text(written)
    Path("careful.py").write_text(careful)
    lines = lines_of(guide.replace(" --set traffic.0.load=18.5mbit", ""))  # bulk flows, as below, have no load
    shown = [shlex.split(line, comments=True) for line in lines if line.startswith("aqmlab ")]
    assert [words[1] for words in shown] == ["check", "new", "compare", "run", "run", "compare", "compare"]
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
    written, *_ = re.findall(r"^```python\n(.*?)^```", first, re.DOTALL | re.MULTILINE)
    Path("my_law.py").write_text(written)
    (grid,) = re.findall(r"^```toml\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    Path("grid.toml").write_text(grid)
    shown = [shlex.split(line)[1:] for line in lines_of(guide)]
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
