"""`aqmlab check`: laws that keep their promises pass, of others it says what is wrong. Needs the compiled engine."""

import json
import re
from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli
from aqmlab.runs import law_check
from conftest import ROOT
from own_laws import BUILT_IN, SCENARIO, own

pytestmark = pytest.mark.usefixtures("nothing_allowed")


def checked(path: Path, capsys) -> tuple[int, dict]:
    code = cli.invoke(["check", str(path), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", BUILT_IN)
def test_laws_that_keep_their_promises_pass_the_check(name, capsys):
    code, found = checked(ROOT / f"examples/laws/my_{name}.py", capsys)
    assert (code, found["problem"], found["how"]) == (0, "", "compiled")
    same = "compiled it decides as in the interpreter, packet by packet, and has the same in its fields"
    assert found["kept"][-1] == same
    assert "packets are conserved" in found["kept"][0] and found["decision_ns"] < 1000
    # PI's probability comes down by b - a a tick: after the traces of the slow link a minute is too short for that.
    assert [line.partition(" found an empty queue")[1] != "" for line in found["remarks"]] == [True] * (name == "pi")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("packet.chance(self.seen * 0.1)", "the law mine drew with probability 1.1: expected one from 0 to 1"),
        ("global N; N += 1; self.seen = N", "the law mine gave other answers to the same calls"),
        ("while self.seen > 90: pass", "the law mine gave no answer for 2 s in on_arrival ("),
        ("os._exit(3) if self.seen > 90 else None", "the law mine ended its process with exit code 3, with a link of"),
        ("os.kill(os.getpid(), 11) if self.seen > 90 else None", "the law mine ended its process by SIGSEGV in on_ar"),
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
    assert "with a link of 10mbit and limit 60p and seed 1" in found["problem"]
    if "no answer" in problem or "SIGSEGV" in problem:
        line = path.read_text()[: path.read_text().index(body)].count("\n") + 1
        assert f"mine.py:{line})" in found["problem"]
    if "probability" in problem:
        assert len(found["story"]) == 8 and "arrives" in found["story"][-1]


@pytest.mark.parametrize(
    ("when", "form"), [("self.every", "with a link"), ("packet.backlog_packets > 70 and packet.flow > 0", "with a l")]
)
def test_the_check_says_where_a_compiled_law_failed(tmp_path, capsys, when, form):
    path = own(tmp_path, f"if {when}: self.seen = 5 // (packet.size - packet.size)", "(marks=False)")
    code, found = checked(path, capsys)
    line = path.read_text()[: path.read_text().index("5 //")].count("\n") + 1
    said = f"; as it is written: ZeroDivisionError: integer division or modulo by zero ({path}:{line})"
    assert code == 1 and found["problem"].endswith(said) and form in found["problem"], found["problem"]
    assert found["how"] == "compiled" and found["problem"].startswith("the law mine failed")


def test_the_check_says_where_a_compiled_law_goes_on_for_ever(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(law_check, "PATIENCE_S", 4.0)
    body = "while self.seen > 90: self.seen = self.seen + 1"
    path = own(tmp_path, body, "(marks=False)")
    code, found = checked(path, capsys)
    line = path.read_text()[: path.read_text().index(body)].count("\n") + 1
    assert code == 1 and found["how"] == "compiled"
    assert f"gave no answer for 4 s in on_arrival ({path}:{line}), with a link" in found["problem"]


def test_the_check_finds_a_law_that_decides_otherwise_compiled(tmp_path, capsys):
    body = "self.seen = 3 * self.seen + 1; return aqmlab.DROP if self.seen < 0 else aqmlab.PASS"
    code, found = checked(own(tmp_path, body, "(marks=False)"), capsys)
    assert code == 1 and "does otherwise compiled than as it is written" in found["problem"]


@pytest.mark.parametrize(
    ("body", "differs"),
    [
        (
            "self.x = 0.1 * packet.now_ns ** 3 / 1e25; self.x = (self.x + 0.3) ** 3",
            r"^x is [\d.]+ compiled and [\d.]+ as ",
        ),
        (
            "self.x = math.hypot(0.1 * packet.backlog_packets, 0.7)",
            r" as it is written, after on_arrival, with a link of ",
        ),
        (
            "self.y = (packet.now_ns + 2**53) / 3; self.x = 0.1 * self.y ** 2",
            ": runs may differ, though no decision did",
        ),
        ("self.x = 0.0 * -packet.size; self.y = 1e308 * 10 * 0", ""),
        ("self.x = 3.0 ** -packet.ecn", ""),
    ],
)
def test_the_check_names_the_first_field_that_is_otherwise_compiled(tmp_path, capsys, body, differs):
    path = own(tmp_path, body, "(marks=False)")
    text = path.read_text().replace("seen = 0", "seen = 0\n    x = 0.5\n    y = 0.5")
    path.write_text(text.replace("import aqmlab\n", "import math\n\nimport aqmlab\n"))
    code, found = checked(path, capsys)
    assert (code, found["problem"]) == (0, "")
    assert found["kept"][-1].endswith("has the same in its fields") == (differs == "")
    said = [remark for remark in found["remarks"] if "compiled" in remark]
    assert (len(said) == 1 and re.search(differs, said[0])) if differs else not said, found["remarks"]


def test_the_check_names_the_field_for_which_a_compiled_law_decides_otherwise(tmp_path, capsys):
    path = own(tmp_path, "self.mean += 2 ** -self.shift * (packet.backlog_packets - self.mean)", "(marks=False)")
    text = path.read_text().replace("self.seen % self.every == 0", "self.mean > 30")
    path.write_text(text.replace("seen = 0", 'seen = 0\n    mean = 0.0\n    shift = aqmlab.parameter(3, "Weight.")'))
    code, found = checked(path, capsys)
    said = (
        r"compiled than as it is written, with a link of .*; mean is 0.0 compiled and 0.125 as it is written, after on_"
    )
    assert code == 1 and re.search(said, found["problem"]), found["problem"]


def test_the_check_remarks_what_may_not_be_meant(tmp_path, capsys):
    code, found = checked(own(tmp_path, "return aqmlab.PASS", "(marks=False)"), capsys)
    assert code == 0 and found["remarks"] == ["it signalled nothing, however long the queue was"]


SQUARE = '''
import aqmlab


@aqmlab.law(marks=False)
class Square:
    """Loses by the square of the waiting time."""

    waited = 0

    def on_arrival(self, packet):
        p = {factor}self.waited * self.waited / (100_000_000 * 100_000_000) * 0.001
        return aqmlab.DROP if {decides} else aqmlab.PASS

    def on_departure(self, packet):
        self.waited = packet.sojourn_ns
        return aqmlab.PASS

    def on_idle(self, queue):
        self.waited = 0
'''


@pytest.mark.parametrize(
    ("factor", "decides", "problem"),
    [
        ("", "packet.chance(min(p, 1.0))", "; as it is written it does not: expected whole numbers below 2**63"),
        ("", "p > packet.uniform()", "does otherwise compiled than as it is written, with a link of 64kbit and limit"),
        ("1.0 * ", "packet.chance(min(p, 1.0))", ""),
    ],
)
def test_the_check_finds_whole_numbers_that_overflow_where_packets_wait_for_seconds(
    tmp_path, capsys, factor, decides, problem
):
    path = tmp_path / "square.py"
    path.write_text(SQUARE.format(factor=factor, decides=decides))
    code, found = checked(path, capsys)
    assert code == (problem != "") and problem in found["problem"], found["problem"]
    assert bool(found["problem"]) == bool(problem)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ('"5ms", "What it aims at."', 'on_arrival, at 0.000000 s), with aim = "0s", a link of 10mbit'),
        ('"5ms", "What it aims at.", low="1ms"', ""),
        ("5, 'What it aims at.'", "with aim = 0, a link of 10mbit"),
        ("5.0, 'What it aims at.'", "with aim = 0.0, a link of 10mbit"),
        ("5.0, 'What it aims at.', low=1.0, high=7.0", ""),
        ('"10mbit", "What it aims at."', ""),
        ('"1500b", "What it aims at.", low="1b"', ""),
        ('"170hz", "What it aims at."', ""),
        ("True, 'What it aims at.'", "with aim = false, a link of 10mbit"),
    ],
)
def test_the_check_tries_other_values_of_parameters(tmp_path, capsys, declared, problem):
    path = own(tmp_path, "self.seen += int(1 / self.aim) * 0", "(marks=False)")
    path.write_text(path.read_text().replace("seen = 0\n", f"seen = 0\n    aim = aqmlab.parameter({declared})\n"))
    code, found = checked(path, capsys)
    assert code == (problem != "") and problem in found["problem"], found["problem"]
    assert bool(found["problem"]) == bool(problem)


def test_a_law_that_loses_everything_does_not_pass(tmp_path, capsys):
    code, found = checked(own(tmp_path, "return aqmlab.DROP", "(marks=False)"), capsys)
    assert code == 1 and "packets that arrived; expected one that lets packets pass" in found["problem"]


def test_a_slow_law_may_take_longer_than_a_trace_may(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(law_check, "PATIENCE_S", 1.0)
    code, found = checked(own(tmp_path, "sum(range(300))", "(compiled=False, marks=False)"), capsys)
    assert (code, found["problem"]) == (0, "")


def test_python_checks_a_law_as_the_command_does(tmp_path):
    found = aqmlab.check(str(own(tmp_path, "return 7", "(compiled=False)")))
    assert isinstance(found, aqmlab.Checked) and "verdict" in found.problem
    with pytest.raises(aqmlab.BadInput, match="no such file"):
        aqmlab.check(tmp_path / "other.py")


def test_a_library_that_is_none_is_refused_by_its_own_name(tmp_path):
    path = tmp_path / "mine.so"
    path.write_text("no library")
    with pytest.raises(aqmlab.BadInput) as refused:
        aqmlab.check(path)
    said = str(refused.value)
    assert said.startswith(f"{path}: ") and "/tmp/tmp" not in said.replace(str(path), "")
    assert said.endswith("expected a shared library that exports aqmlab_law_table or aqmlab_discipline_table")


def test_a_time_between_ticks_is_not_zero(tmp_path, capsys):
    path = own(tmp_path, how='(tick="update", marks=False)')
    made = path.read_text().replace("seen = 0\n", 'seen = 0\n    update = aqmlab.parameter("16ms", "How often.")\n')
    path.write_text(f"{made}\n    def tick(self, queue):\n        pass\n")
    code, found = checked(path, capsys)
    assert (code, found["problem"]) == (0, "")
    link = tmp_path / "link.toml"
    link.write_text(SCENARIO)
    with pytest.raises(aqmlab.BadInput, match=r'link.qdisc.update = "0s": expected a time .* from 1e-9 to 1000 s'):
        aqmlab.run(link, set={"link.qdisc.kind": str(path), "link.qdisc.update": "0s"})
