"""What is no law is refused with its line, before it runs. Needs the compiled engine."""

import json
import math
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import aqmlab
from aqmlab import cli
from aqmlab.errors import BadInput
from aqmlab.laws import brought, patience
from own_laws import COUNTS, own, run

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
