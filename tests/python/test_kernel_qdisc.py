"""The lines that put the kernel's own discipline in place of ours, and what is said where the kernel has it not."""

import json

import pytest

from aqmlab import engine, scenario
from aqmlab.errors import BadInput, CannotRun
from aqmlab.live import kernel_qdisc
from conftest import NATIVE


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def resolved(qdisc, live="kernel", **link):
    tree = {
        "duration": "10s",
        "link": {"rate": "20mbit", "qdisc": qdisc, **link},
        "path": {"rtt": "20ms"},
        "traffic": [{"kind": "bulk", "flows": 1}],
        "live": {"qdisc": live},
    }
    return scenario.read(tree).resolve()


def lines(qdisc, *, is_virtual=True, **link):
    (found,) = kernel_qdisc.settings(resolved(qdisc, **link), is_virtual=is_virtual)["links"]
    return found


def test_ours_needs_nothing_of_the_kernel():
    ours = resolved({"kind": "pi"}, live="aqmlab")
    assert kernel_qdisc.settings(ours, is_virtual=True) is None
    assert kernel_qdisc.remarks(ours) == []
    kernel_qdisc.check(ours)


def test_sizes_are_those_of_ip_packets_and_bursts_those_of_the_clock():
    pie = {"kind": "pie", "dialect": "linux", "target": "15ms", "limit": "1000p"}
    # 2.5 MB/s: 25 bytes in 10 us of virtual time, 2500 in a millisecond of real time.
    found = lines(pie, overhead="38b", reverse_rate="8mbit")
    assert found[:3] == [
        "tc qdisc add dev forward root handle 1: htb default 1",
        "tc class add dev forward parent 1: classid 1:1 htb rate 20mbit overhead 38 burst 25 cburst 25 quantum 1500",
        "tc qdisc add dev forward parent 1:1 handle 10: pie limit 1000 target 15ms tupdate 15ms alpha 2 beta 20",
    ]
    assert "rate 8mbit overhead 38 burst 10 cburst 10" in found[4] and "dev reverse" in found[4]
    assert "burst 2500 cburst 2500" in lines(pie, is_virtual=False)[1]
    assert not any("stab" in line for line in found)


def test_cake_counts_from_the_ip_packet_as_there_is_no_ethernet_header():
    cake = {"kind": "cake", "dialect": "linux"}
    assert " raw" in lines(cake)[2]
    assert " overhead 22" in lines({**cake, "overhead": 22})[2]


def test_which_kinds_it_makes_and_what_is_said_of_them():
    asked = resolved({"kind": "red"})
    assert kernel_qdisc.kinds(asked)[:2] == ["htb", "red"]
    assert any("dialect" in remark for remark in kernel_qdisc.remarks(asked))
    # red_dequeue() starts an idle time when it is asked and has nothing, and htb_dequeue_tree() does not ask then.
    assert any("idle" in remark for remark in kernel_qdisc.remarks(asked))
    assert not any("idle" in remark for remark in kernel_qdisc.remarks(resolved({"kind": "codel"})))


def test_a_discipline_that_no_linux_has_is_bad_input():
    with pytest.raises(BadInput, match=r"link\.qdisc\.kind: 'pi': Linux has no such qdisc; nearest: pie"):
        kernel_qdisc.settings(resolved({"kind": "pi"}), is_virtual=True)


def test_what_this_kernel_has_not_is_named_with_what_it_has(monkeypatch):
    monkeypatch.setattr(kernel_qdisc, "available", lambda: {"pfifo": True, "htb": True, "pie": False})
    kernel_qdisc.check(resolved({"kind": "pfifo"}))
    with pytest.raises(CannotRun, match=r"has no pie; it has pfifo, htb \(with --virtual") as caught:
        kernel_qdisc.check(resolved({"kind": "pie", "dialect": "linux"}, reverse_qdisc={"kind": "pfifo"}))
    assert caught.value.exit_code == 3 and "\n" not in str(caught.value)
    # Of what no kernel of Linux 6.12 has, --virtual alone is no help.
    needs = r"has no dualpi2, which needs Linux 6\.17 and iproute2 6\.17; it has pfifo, htb"
    with pytest.raises(CannotRun, match=needs):
        kernel_qdisc.check(resolved({"kind": "dualpi2", "dialect": "linux"}, reverse_qdisc={"kind": "pfifo"}))


def test_what_this_kernel_has_is_asked_for_or_nothing_is_known():
    found = kernel_qdisc.available()
    assert set(found.values()) <= {True, False}
    # Where disciplines can be tried at all, a plain queue is there: the kernel makes it for every device.
    assert not any(found.values()) or found["pfifo"]


def network(count=2, **link):
    names = [f"hop{k}" for k in range(count)]
    tree = {
        "duration": "10s",
        "links": {name: {"rate": f"{k + 1}mbit", "qdisc": {"kind": "codel"}} for k, name in enumerate(names)},
        "path": {"rtt": "20ms"},
        "traffic": [{"kind": "bulk", "flows": 1, "route": names}],
        "live": {"qdisc": "kernel"},
    }
    tree["links"][names[-1]].update(link)
    return scenario.read(tree).resolve()


def test_each_link_of_a_network_has_lines_of_its_own():
    found = kernel_qdisc.settings(network(), is_virtual=True)["links"]
    assert [("rate 1mbit" in link[1], "rate 2mbit" in link[1]) for link in found] == [(True, False), (False, True)]
    assert [[line.split()[4] for line in link] for link in found] == [["forward"] * 3 + ["reverse"] * 3] * 2
    assert kernel_qdisc.kinds(network()) == ["htb", "codel"]
    assert kernel_qdisc.settings(network(delay="5ms"), is_virtual=True)["links"] == found  # the router's


def test_what_a_link_of_a_network_cannot_have_is_named_with_the_link():
    with pytest.raises(BadInput, match=r'links\.hop1\.device_queue = "8p": expected none with live\.qdisc = "kernel"'):
        kernel_qdisc.settings(network(device_queue="8p"), is_virtual=True)
    with pytest.raises(BadInput, match=r'links = .*: expected at most 14 links with live\.qdisc = "kernel"'):
        kernel_qdisc.settings(network(15), is_virtual=True)


def test_settings_are_plain_json():
    found = kernel_qdisc.settings(resolved({"kind": "fq_codel"}), is_virtual=False)
    assert json.loads(json.dumps(found)) == found
    assert all(isinstance(words, str) for words in found["kinds"].values())
