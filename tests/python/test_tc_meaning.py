"""What tc and the kernel make of words and classes, as `aqmlab tc --read` and `compare` take them.

Rules are those of iproute2's tc/q_*.c and of the kernel's net/sched; the numbers are worked out beside them.
"""

import pytest

from aqmlab import engine
from aqmlab.tc import table
from aqmlab.tc.read import read
from conftest import NATIVE


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def link_of(text, rate=None):
    found = read(text, "dump", None, None, rate)
    engine.resolve(found.text, "dump")
    return found.tree["link"], found


# ---- classes of htb ----

HTB = "qdisc htb 1: root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n"
ADDED = "tc qdisc add dev eth0 root handle 1: htb default 10\n"


@pytest.mark.parametrize(
    ("classes", "rate"),
    [
        # Each class from the outermost to the default one, by its rate and its ceil.
        ([("900Mbit", "900Mbit"), ("45Mbit", "45Mbit")], "45mbit"),
        ([("50Mbit", "50Mbit"), ("1Mbit", "5Mbit")], "5mbit"),
        ([("50Mbit", None), ("1Mbit", None)], "1mbit"),
        ([("20Mbit", "20Mbit"), ("5Mbit", "10Mbit"), ("1Mbit", "100Mbit")], "10mbit"),
        # Who has no parent does not borrow; and what a class may send by itself it never borrows.
        ([("10Mbit", "50Mbit"), ("1Mbit", "50Mbit")], "10mbit"),
        ([("10Mbit", "10Mbit"), ("20Mbit", "30Mbit")], "20mbit"),
    ],
)
def test_a_class_of_htb_gets_what_it_can_borrow(classes, rate):
    handles = [f"1:{k}" for k in range(1, len(classes))] + ["1:10"]
    places = ["root", *(f"parent {handle}" for handle in handles[:-1])]
    words = [f"rate {own}" + (f" ceil {ceil}" if ceil else "") for own, ceil in classes]
    rows = list(zip(handles, places, words, strict=True))
    shown = HTB + "".join(f"class htb {handle} {place} {said}\n" for handle, place, said in rows)
    lines = ADDED + "".join(
        f"tc class add dev eth0 {place.replace('root', 'parent 1:')} classid {handle} htb {said.lower()}\n"
        for handle, place, said in rows
    )
    assert link_of(shown)[0]["rate"] == link_of(lines)[0]["rate"] == rate


def test_the_overhead_is_that_of_the_class_of_htb_that_bounds():
    text = HTB + "class htb 1:1 root rate 50Mbit ceil 50Mbit overhead 8\n"
    text += "class htb 1:10 parent 1:1 rate 5Mbit ceil 5Mbit overhead 24\n"
    assert link_of(text)[0]["overhead"] == f"{table.ETHERNET_HEADER + 24}b"
