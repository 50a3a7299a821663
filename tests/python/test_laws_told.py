"""What laws in the interpreter are told, when, and what each queue keeps for itself. Needs the compiled engine."""

import gc
import json
import sys
import weakref
from pathlib import Path

import pytest

import aqmlab
from agents import SCENARIO
from aqmlab import cli
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.gym import Link
from aqmlab.laws import brought
from own_laws import library, own, run

pytestmark = pytest.mark.usefixtures("nothing_allowed")

KEEPS = '''
from collections import deque

import aqmlab

PREPARED = []


@aqmlab.{word}
class Mine:
    """Keeps what it was told first."""

    share = aqmlab.parameter(0.5, "What the test needs.", low=0.0, high=1.0)

    def __init__(self):
        self.link, self.half, self.waiting = None, self.share / 2, deque()

    def prepare(self, link):
        assert self.link in (None, link) and self.half == 0.25
        self.link = link
        PREPARED.append((link.now_ns, link.backlog_packets, link.backlog_bytes))
{methods}
'''

OF_LAW = """
    def on_arrival(self, packet):
        assert self.link is packet and self.link.rate_bps == 20e6 and self.link.now_ns == packet.now_ns
        assert self.link.size == packet.size > 0 and self.link.chance(self.share) in (0, 1)
        return aqmlab.PASS
"""

OF_DISCIPLINE = """
    def offer(self, packet, queue):
        assert self.link is queue and self.link.rate_bps == 20e6 and self.link.now_ns == queue.now_ns
        assert self.link.chance(self.share) in (0, 1)
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
        else:
            self.waiting.append(packet)

    def take(self, queue):
        return self.waiting.popleft() if self.waiting else None
"""


def keeping(tmp_path: Path, kind: str) -> Path:
    word, methods = {"law": ("law(compiled=False)", OF_LAW), "discipline": ("discipline", OF_DISCIPLINE)}[kind]
    (tmp_path / "keeps.py").write_text(KEEPS.format(word=word, methods=methods))
    return tmp_path / "keeps.py"


@pytest.mark.parametrize("kind", ["law", "discipline"])
def test_what_prepare_was_told_is_kept_and_true(link, tmp_path, kind):
    found = run(link, str(keeping(tmp_path, kind)), duration="3s")
    assert found.summary["forward"]["offered_packets"] > 1000


@pytest.mark.parametrize("kind", ["law", "discipline"])
def test_prepare_is_told_what_waits_when_parameters_change(tmp_path, kind):
    keys = {"link.qdisc": {"kind": str(keeping(tmp_path, kind)), "limit": "100p"}}
    env = Link(SCENARIO, set=keys, action={"share": (0.5, 0.7)}, duration="4s", step="100ms")
    prepared = sys.modules["aqmlab_law_keeps"].PREPARED
    env.reset(seed=1)
    del prepared[:]
    for _ in range(20):
        env.step([-1.0])
    queue = env.step([0.0])[4]["backlog_ms"]
    first, later = prepared
    assert first == (0, 0, 0) and later[0] == pytest.approx(2e9)
    # At 20 Mb/s; while the step lasted some packets came and went.
    assert 50 < later[1] <= 100 and later[2] * 8 / 20e3 == pytest.approx(queue, abs=15)


HOSTS = """
    def on_departure(self, packet):
        assert packet.source == packet.destination == -1
        return aqmlab.PASS

    def on_idle(self, queue):
        assert queue.source == queue.destination == -1

    def on_overflow(self, packet):
        assert packet.source == packet.destination == -1
"""


def test_hosts_are_those_of_an_arriving_packet_alone(link, tmp_path):
    path = own(
        tmp_path, "assert packet.source >= 0 and packet.source != packet.destination", "(compiled=False, hosts=True)"
    )
    path.write_text(path.read_text() + HOSTS)
    found = run(link, {"kind": str(path), "limit": "20p"}, duration="3s")
    assert found.summary["forward"]["dropped_by_cause"]["tail"] > 10


SHARED = '''
import numpy

import aqmlab


class Base:
    inherited = {"seen": 0}


@aqmlab.law(compiled=False)
class Mine(Base):
    """Counts in what its class has."""

    sizes = []
    counts = numpy.zeros(2, int)
    seen = 0

    def on_arrival(self, packet):
        self.seen += 1
        self.sizes.append(packet.size)
        self.counts[0] += 1
        self.inherited["seen"] += 1
        assert self.seen == len(self.sizes) == self.counts[0] == self.inherited["seen"]
        return aqmlab.PASS
'''


def test_what_a_container_refers_to_in_another_is_copied_with_it(link, tmp_path):
    both = SHARED.replace("    sizes = []\n", '    sizes = []\n    named = {"sizes": sizes}\n    other = sizes\n')
    both = both.replace("        self.seen += 1\n", "        self.seen += 1\n        assert self.other is self.sizes\n")
    both = both.replace("return", 'assert self.named["sizes"] is self.sizes\n        return')
    (tmp_path / "both.py").write_text(both)
    assert run(link, str(tmp_path / "fq_both.py"), duration="3s").summary["forward"]["offered_packets"] > 1000


def test_a_law_may_make_its_own_objects(link, tmp_path):
    lines = ("def __new__(cls):", "    one = object.__new__(cls)", "    one.ready = 1", "    return one")
    made = "\n    ".join(["seen = 0", *lines]) + "\n"
    path = own(tmp_path, "assert self.ready", "(compiled=False)")
    path.write_text(path.read_text().replace("seen = 0\n", made))
    assert run(link, str(path), duration="3s").summary["forward"]["offered_packets"] > 1000
    path.write_text(path.read_text().replace("one.ready = 1", "one.ready = 1 / 0"))
    with pytest.raises(Misbehaved, match=r"ZeroDivisionError: division by zero \(in __new__, .*mine.py:\d+\)"):
        run(link, str(path), duration="3s")


def test_each_queue_has_containers_of_its_own(link, tmp_path):
    (tmp_path / "shared.py").write_text(SHARED)
    for kind in (str(tmp_path / "shared.py"), str(tmp_path / "fq_shared.py")):
        found = aqmlab.run(link, set={"link.qdisc": kind, "link.reverse_qdisc": kind, "duration": "3s"})
        assert found.summary["forward"]["offered_packets"] > 1000
    # In one process too, one run after the other.
    env = Link(SCENARIO, set={"link.qdisc": str(tmp_path / "shared.py")}, action={"limit": ("9p", "99p")})
    for _ in range(2):
        env.reset(seed=1)
        env.step([1.0])


OBJECTS = '''
import itertools

import numpy

import aqmlab


class Average:
    seen = 0


class Slots:
    __slots__ = ("seen",)

    def __init__(self):
        self.seen = 0


@aqmlab.law(compiled=False)
class Mine:
    """Counts in objects that its class has."""

    average, slots, numbers, dice = Average(), Slots(), itertools.count(1), numpy.random.default_rng(1)
    seen = 0

    def on_arrival(self, packet):
        self.seen += 1
        self.average.seen += 1
        self.slots.seen += 1
        assert self.seen == self.average.seen == self.slots.seen == next(self.numbers)
        assert self.seen > 1 or self.dice.random() == numpy.random.default_rng(1).random()
        return aqmlab.PASS
'''


def test_each_queue_has_objects_of_its_own(link, tmp_path):
    (tmp_path / "objects.py").write_text(OBJECTS)
    for kind in (str(tmp_path / "objects.py"), str(tmp_path / "fq_objects.py")):
        found = aqmlab.run(link, set={"link.qdisc": kind, "link.reverse_qdisc": kind, "duration": "3s"})
        assert found.summary["forward"]["offered_packets"] > 1000


def test_what_cannot_be_copied_for_each_queue_is_named(link, tmp_path):
    path = own(tmp_path, "self.lock", "(compiled=False)")
    path.write_text(path.read_text().replace("seen = 0", "seen = 0\n    table = []\n    lock = (threading.Lock(),)"))
    path.write_text(path.read_text().replace("import aqmlab\n", "import threading\n\nimport aqmlab\n"))
    assert run(link, str(path), duration="3s").summary["forward"]["offered_packets"] > 1000
    path.write_text(path.read_text().replace("(threading.Lock(),)", "open('/dev/null')"))
    said = r"TypeError: lock: a TextIOWrapper in the class cannot be copied for each queue \(.*expected it in __init__"
    with pytest.raises(Misbehaved, match=said):
        run(link, str(path), duration="3s")


@pytest.mark.parametrize(
    ("made", "is_refused"),
    [
        ("Heap()", True),
        ("itertools.count()", True),
        ("random.Random(1)", True),
        ("numpy.random.default_rng(1)", True),
        ("Frozen(1)", False),
        ("Colour.RED", False),
        ("numpy.exp", False),
        ("logging.getLogger('mine')", False),
        ("functools.partial(max, 1)", False),
        ("functools.cached_property(len)", False),
        ("staticmethod(len)", False),
        ("pathlib.Path('x')", False),
        ("fractions.Fraction(1, 2)", False),
        ("re.compile('x')", False),
        ("Heap", False),
        ("(Heap(),)", False),
        ("math", False),
    ],
)
def test_a_discipline_has_no_object_in_its_class_that_can_be_changed(tmp_path, made, is_refused):
    path = keeping(tmp_path, "discipline")
    modules = "dataclasses enum fractions functools itertools logging math numpy pathlib random re"
    names = "\n".join(f"import {name}" for name in modules.split())
    kinds = "class Heap:\n    pass\n\n\nclass Colour(enum.Enum):\n    RED = 1\n\n\n"
    frozen = "@dataclasses.dataclass(frozen=True)\nclass Frozen:\n    one: int\n"
    path.write_text(
        path.read_text()
        .replace("import aqmlab\n", f"{names}\nimport aqmlab\n\n\n{kinds}{frozen}")
        .replace("    share =", f"    held = {made}\n    share =")
    )
    if is_refused:
        with pytest.raises(BadInput, match=r"Mine.held: a \w+ in the class is shared by all queues; expected it in __"):
            brought.of_file(path)
    else:
        assert brought.of_file(path).name == "mine"


LARGE = """
import types

import numpy

import aqmlab


class Table(list):
    def __deepcopy__(self, memo):
        aqmlab.copies.append(1)
        return Table(self)


@aqmlab.law(compiled=False)
class Mine:
    \"\"\"Looks things up in what its class has.\"\"\"

    table = Table([1, 2])
    fixed = numpy.ones(3)
    fixed.flags.writeable = False
    words = types.MappingProxyType({"one": []})
    pair = ([], numpy.ones(3))

    def __init__(self):
        aqmlab.laws_there.add(self)

    def on_arrival(self, packet):
        assert self.fixed is Mine.fixed and self.words is Mine.words and self.pair is Mine.pair
        assert self.table == Mine.table and self.table is self.table is not Mine.table
        return aqmlab.PASS
"""


def test_what_cannot_change_is_shared_and_the_rest_is_copied_where_packets_come(tmp_path, monkeypatch):
    (tmp_path / "large.py").write_text(LARGE)
    copies, there = [], weakref.WeakSet()
    monkeypatch.setattr(aqmlab, "copies", copies, raising=False)
    monkeypatch.setattr(aqmlab, "laws_there", there, raising=False)
    for kind, queues in (("large.py", 1), ("fq_large.py", 1024)):
        env = Link(SCENARIO, set={"link.qdisc": str(tmp_path / kind)}, action={"limit": ("9p", "99p")})
        copies.clear()
        env.reset(seed=1)
        [env.step([1.0]) for _ in range(50)]
        assert 0 < len(copies) <= min(queues, 20) and len(there) >= queues
        # What an episode had is gone with it.
        env.close()
        gc.collect()
        assert not there


@pytest.mark.parametrize("answer", ["2**32", "2**32 + aqmlab.DROP", "-(2**31) - 1", "2**64"])
def test_a_verdict_beyond_its_bits_is_none(link, tmp_path, answer):
    with pytest.raises(Misbehaved, match=r"TypeError: on_arrival answered -?\d+, which is no verdict; expected PASS"):
        run(link, str(own(tmp_path, f"return {answer}", "(compiled=False)")))


TICKS = '(tick="often", compiled=False)'


def ticking(tmp_path: Path, declared: str) -> Path:
    path = own(tmp_path, how=TICKS)
    fields = f"seen = 0\n    often = aqmlab.parameter({declared})\n"
    path.write_text(path.read_text().replace("seen = 0\n", fields) + "\n    def tick(self, queue):\n        pass\n")
    return path


def test_ticks_are_a_nanosecond_apart_or_more(link, tmp_path):
    path = ticking(tmp_path, '"170hz", high="1e12hz"')
    said = r'link.qdisc.often = "1500000000hz": expected a frequency .* from 0.1 to 1000000000 hz'
    with pytest.raises(BadInput, match=said):
        run(link, {"kind": str(path), "often": "1500000000hz"})
    with pytest.raises(BadInput, match=r"mine: often: the default is 2000000000 hz: expected .* to 1000000000 hz"):
        run(link, str(ticking(tmp_path, '"2000000000hz", high="1e12hz"')))
    with pytest.raises(BadInput, match=r"mine: often: the default is 0 ns: expected a time .* from 1e-9 to 1000 s"):
        run(link, str(ticking(tmp_path, '"0ms"')))


@pytest.mark.parametrize("how", ["compiled", "interpreted", "library"])
def test_what_a_law_prints_goes_to_standard_error(link, tmp_path, capfd, how):
    if how == "library":
        code = tmp_path / "mine.c"
        code.write_text(
            '#include <stdio.h>\n#include "aqmlab_law.h"\n'
            "static int32_t arrival(void *s, const struct aqmlab_facts *f)\n"
            '{ printf("size %d\\n", (int)f->size); return s == NULL; }\n'
            'static const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, .name = "mine", .state_bytes = 8,\n'
            ".tick_param = -1, .on_arrival = arrival};\n"
            "const struct aqmlab_law *aqmlab_law_table(void) { return &law; }\n"
        )
        path = library("mine", tmp_path, source=code)
    else:
        path = own(tmp_path, "print('size', packet.size)", "" if how == "compiled" else "(compiled=False)")
    words = [
        "run",
        str(link),
        "--set",
        f"link.qdisc={path}",
        "--set",
        "duration=3s",
        "-o",
        str(tmp_path / "out"),
        "--json",
    ]
    assert cli.invoke(words) == 0
    shown, said = capfd.readouterr()
    forward = json.loads(shown)["forward"]
    assert said.count("size 1500\n") > 1000 and said.count("size ") >= forward["offered_packets"] > 1000
