"""Laws and disciplines that are derived from other classes: what they inherit is theirs. Needs the compiled engine."""

from pathlib import Path

import pytest

from aqmlab.errors import BadInput
from aqmlab.laws import brought
from conftest import ROOT
from own_laws import run
from test_law_check import checked

pytestmark = pytest.mark.usefixtures("nothing_allowed")

DERIVED = '''
import aqmlab

{decorated}
class Base:
    """Loses what it is told to."""

    BURST = aqmlab.cause("One in so many.")
    every = aqmlab.parameter(50, "One packet in so many is lost.", low=1)
    also = aqmlab.parameter(7, "It is not used.")
    ready = 0
    seen = 0
    full = 0

    def prepare(self, link):
        self.ready = 1

    def on_arrival(self, packet):
        return aqmlab.DROP

    def on_overflow(self, packet):
        self.full += 1

    def on_departure(self, packet):
        return self.decide() if self.ready == 1 else aqmlab.DROP

    def tick(self, queue):
        self.seen += 0

    def decide(self):
        self.seen += 1
        return aqmlab.DROP + self.BURST if self.seen % self.every == 0 else aqmlab.PASS


@aqmlab.law(tick="5ms", gauges={{"full": "Packets lost at a full queue."}}, compiled={compiled})
class Mine(Base):
    """Loses the same where packets leave alone."""

    every = aqmlab.parameter(20, "One packet in so many is lost.", low=1)

    def on_arrival(self, packet):
        return aqmlab.PASS
'''


def derived(tmp_path: Path, is_compiled: bool, decorated: str = "") -> Path:
    (tmp_path / "mine.py").write_text(DERIVED.format(compiled=is_compiled, decorated=decorated))
    return tmp_path / "mine.py"


@pytest.mark.parametrize("decorated", ["", '@aqmlab.law(tick="1ms")'])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_law_has_the_methods_parameters_and_causes_that_it_inherits(link, tmp_path, is_compiled, decorated):
    path = derived(tmp_path, is_compiled, decorated)
    params = {param["name"]: param["default"] for param in brought.of_file(path).rows[0]["params"]}
    assert (params["every"], params["also"]) == ("20", "7")
    forward = run(link, {"kind": str(path), "limit": "20p"}, duration="3s").summary["forward"]
    assert (forward["dropped_by_cause"]["early"] > 20, forward["dropped_by_cause"]["tail"] > 20) == (True, True)
    assert forward["own_causes"]["burst"]["dropped"] == forward["dropped_by_cause"]["early"]


def test_compiled_and_as_it_is_a_derived_law_makes_the_same_run(link, tmp_path):
    found = [run(link, str(derived(tmp_path, is_compiled)), duration="3s") for is_compiled in (True, False)]
    assert found[0].digest == found[1].digest


def test_what_a_derived_class_declares_itself_stands_for_what_it_inherits(link, tmp_path):
    path = derived(tmp_path, is_compiled=True)
    path.write_text(path.read_text() + "\n    def on_departure(self, packet):\n        return aqmlab.PASS\n")
    found = run(link, str(path), duration="3s").summary["forward"]
    assert found["dropped_by_cause"]["early"] == 0 < found["offered_packets"]


def test_a_law_is_derived_from_that_of_another_file(link, tmp_path, monkeypatch):
    (tmp_path / "base_of_mine.py").write_text(
        "import aqmlab\n\n\ndef part(seen, every):\n    return seen % every\n\n\n@aqmlab.law\nclass Base:\n"
        "    seen = 0\n    every = aqmlab.parameter(50, 'One in so many is lost.', low=1)\n\n"
        "    def on_arrival(self, packet):\n        self.seen += 1\n"
        "        return aqmlab.DROP if part(self.seen, self.every) == 0 else aqmlab.PASS\n"
    )
    (tmp_path / "mine.py").write_text(
        "import aqmlab\nfrom base_of_mine import Base\n\n\ndef part(now_ns):\n    return now_ns\n\n\n@aqmlab.law\n"
        "class Mine(Base):\n    last_ns = 0\n\n    def on_departure(self, packet):\n"
        "        self.last_ns = part(packet.now_ns)\n        return aqmlab.PASS\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT / 'python'}")
    law = brought.of_file(tmp_path / "mine.py")
    assert (law.name, law.runs_apart) == ("mine", True)
    assert run(link, str(tmp_path / "mine.py"), duration="3s").summary["forward"]["dropped_packets"] > 20


def test_two_laws_of_which_none_is_derived_from_the_other_are_refused(tmp_path):
    path = derived(tmp_path, is_compiled=False)
    path.write_text(path.read_text() + "\n\n@aqmlab.law(tick='5ms')\nclass Other(Base):\n    pass\n")
    with pytest.raises(BadInput, match=r"declares 2 laws; expected one class .*, and beside it only those from which"):
        brought.of_file(path)


def test_a_wrong_name_in_a_base_is_refused_and_that_of_a_library_is_not(tmp_path):
    path = derived(tmp_path, is_compiled=False)
    text = path.read_text()
    path.write_text(text.replace("def on_overflow", "def on_overflown"))
    with pytest.raises(BadInput, match=r"mine.py:\d+: Mine.on_overflown: expected a method that the engine calls"):
        brought.of_file(path)
    library = "class Library:\n    def on_fit(self):\n        pass\n\n\nLibrary.on_fit.__module__ = 'library'\n"
    path.write_text(text.replace("import aqmlab\n", f"import aqmlab\n\n\n{library}").replace("Base:", "Base(Library):"))
    assert brought.of_file(path).name == "mine"


LIFO = """
import aqmlab


class Fifo:
    first = aqmlab.parameter(True, "Whether packets leave in the order of their arrival.")
    count = 0

    def __init__(self):
        self.waiting = []

    def offer(self, packet, queue):
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
        else:
            self.waiting.append(packet)

    def take(self, queue):
        return self.waiting.pop(0 if self.first else -1) if self.waiting else None


@aqmlab.discipline(marks=False, gauges={"count": "It stays."})
class Lifo(Fifo):
    \"\"\"Sends what came last.\"\"\"

    first = aqmlab.parameter(False, "Whether packets leave in the order of their arrival.")
"""


def test_a_discipline_has_what_it_inherits(tmp_path, capsys):
    (tmp_path / "lifo.py").write_text(LIFO)
    code, found = checked(tmp_path / "lifo.py", capsys)
    assert (code, found["problem"]) == (0, "")
    assert any("it reordered packets of one flow" in remark for remark in found["remarks"])
