"""A law of one's own that fails between real hosts is what failed, and not the machine."""

from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli
from aqmlab.errors import BadInput, CannotRun, Misbehaved
from aqmlab.laws.brought import Brought
from aqmlab.live import at_fault, process
from own_laws import own

SHORT = """
name = "short"
duration = "3s"
warmup = "1s"
link.rate = "5mbit"
path.rtt = "20ms"
[[traffic]]
kind = "bulk"
flows = 2
"""


def law(name: str, runs_apart: bool) -> Brought:
    rows = ({"name": name}, {"name": f"fq_{name}"})
    return Brought(Path(f"{name}.py"), "0" * 64, "interpreted", "", rows, runs_apart)


LAWS = [law("mine", True), law("straight", False)]
UNABLE = {"exit_code": 3}


@pytest.mark.parametrize(
    ("facts", "kind", "said"),
    [
        ({"message": "router: the law mine failed: it raised", **UNABLE}, Misbehaved, "the law mine failed: it raised"),
        ({"message": "router: the law fq_straight answered 7", **UNABLE}, Misbehaved, "the law fq_straight answered 7"),
        ({"message": "router: the discipline mine sends it twice", **UNABLE}, Misbehaved, "the discipline mine sends"),
        ({"message": "router: the law pie failed", **UNABLE}, CannotRun, "router: the law pie failed"),
        ({"message": "router: no device", **UNABLE}, CannotRun, "router: no device"),
        ({"message": "mine.py: has changed", "exit_code": 2}, BadInput, "mine.py: has changed"),
        (
            {"message": "a part did not end", "left": ["left hosts", "router"], **UNABLE},
            Misbehaved,
            r"the test bed did not end when it was told to; it ran the code of mine \(mine.py\)$",
        ),
        ({"message": "a part did not end", "left": ["left hosts"], **UNABLE}, CannotRun, "a part did not end"),
        ({"message": "no progress", "is_silent": True, **UNABLE}, Misbehaved, "no progress; it ran the code of mine"),
    ],
)
def test_what_the_test_bed_leaves_is_a_laws_fault_where_a_law_decided(facts, kind, said):
    found = at_fault.told(facts, LAWS)
    assert type(found) is kind
    with pytest.raises(kind, match=f"^{said}"):
        raise found


def test_without_a_law_that_could_it_is_the_machine():
    for laws in ((), LAWS[1:]):
        for facts in ({"left": ["router"]}, {"is_silent": True}):
            assert type(at_fault.told({"message": "silent", **facts, **UNABLE}, laws)) is CannotRun
        assert str(at_fault.ended(f"it {process.how(-11)}", laws)) == "live: it was ended by SIGSEGV"
    # A shell within a kernel of virtual time says of a signal what shells do.
    assert process.how(128 + 11) == "was ended by SIGSEGV" and process.how(101) == "ended with exit code 101"


@pytest.mark.alone
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("assert packet.now_ns < 10**9, 'no more'", r"short: the law mine failed: .*; AssertionError: no more \("),
        ("while packet.now_ns > 10**9: pass", "short: the test bed did not end when it was told to; it ran the code"),
        ("if packet.now_ns > 10**9: import os; os.abort()", "short: the test bed was ended by SIGABRT before it had a"),
    ],
)
def test_a_law_that_fails_between_real_hosts_is_named(real_hosts, tmp_path, body, said):
    path = own(tmp_path, body, "(compiled=False)")
    with pytest.raises(Misbehaved, match=f"^{said}.*{path}"):
        aqmlab.live(SHORT, set={"link.qdisc": str(path)}, out=tmp_path / "l")
    assert not (tmp_path / "l").exists()


@pytest.mark.alone
def test_a_law_that_fails_live_ends_the_command_as_one_in_the_simulator_does(real_hosts, tmp_path, capsys):
    fails = "import os; assert 'AQMLAB_LIVE' not in os.environ or packet.now_ns < 10**9"
    path, scenario = own(tmp_path, fails, "(compiled=False)"), tmp_path / "short.toml"
    scenario.write_text(SHORT)
    assert cli.invoke(["live", str(scenario), "--set", f"link.qdisc={path}", "-o", str(tmp_path / "l")]) == 1
    assert "aqmlab: short: the law mine failed" in capsys.readouterr().err
    # What the simulator made stays.
    assert cli.invoke(["compare", str(scenario), str(path), "--live", "-o", str(tmp_path / "c")]) == 1
    assert "aqmlab: mine, live: the law mine failed" in capsys.readouterr().err
    assert (tmp_path / "c/mine/manifest.json").exists()
