"""`aqmlab check`: laws that keep their promises pass, of others it says what is wrong. Needs the compiled engine."""

import json
from pathlib import Path

import pytest

from aqmlab import cli
from aqmlab.runs import law_check
from conftest import ROOT
from own_laws import BUILT_IN, own

pytestmark = pytest.mark.usefixtures("nothing_allowed")


def checked(path: Path, capsys) -> tuple[int, dict]:
    code = cli.invoke(["check", str(path), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", BUILT_IN)
def test_laws_that_keep_their_promises_pass_the_check(name, capsys):
    code, found = checked(ROOT / f"examples/laws/my_{name}.py", capsys)
    assert (code, found["problem"], found["how"]) == (0, "", "compiled")
    assert found["kept"][-1] == "compiled it decides as in the interpreter, packet by packet"
    assert "packets are conserved" in found["kept"][0] and found["decision_ns"] < 1000
    assert not found["remarks"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("packet.chance(self.seen * 0.1)", "the law mine drew with probability 1.1: expected one from 0 to 1"),
        ("global N; N += 1; self.seen = N", "the law mine gave other answers to the same calls"),
        ("while self.seen > 90: pass", "the law mine gave no answer for 2 s; expected calls that end"),
        ("os._exit(3) if self.seen > 90 else None", "the law mine ended its process with exit code 3"),
        ("self.nothing + 1", "AttributeError: 'Mine' object has no attribute 'nothing'"),
        ("return 0.5", "TypeError: on_arrival answered 0.5, which is no verdict; expected PASS, SIGNAL, MARK or DROP"),
        ("return True", "on_arrival answered True, which is no verdict"),
    ],
)
def test_the_check_says_what_is_wrong_with_a_law(tmp_path, monkeypatch, capsys, body, problem):
    monkeypatch.setattr(law_check, "PATIENCE_S", 2.0)
    path = own(tmp_path, body, "(compiled=False, marks=False)")
    path.write_text(path.read_text().replace("import aqmlab", "import os\n\nimport aqmlab\n\nN = 0"))
    code, found = checked(path, capsys)
    assert code == 1 and problem in found["problem"]
    if "probability" in problem:
        assert len(found["story"]) == 8 and "arrives" in found["story"][-1]


def test_the_check_finds_a_law_that_decides_otherwise_compiled(tmp_path, capsys):
    body = "self.seen = 3 * self.seen + 1; return aqmlab.DROP if self.seen < 0 else aqmlab.PASS"
    code, found = checked(own(tmp_path, body, "(marks=False)"), capsys)
    assert code == 1 and "does otherwise compiled than as it is written" in found["problem"]


def test_the_check_remarks_what_may_not_be_meant(tmp_path, capsys):
    code, found = checked(own(tmp_path, "return aqmlab.PASS", "(marks=False)"), capsys)
    assert code == 0 and found["remarks"] == ["it signalled nothing, however long the queue was"]
