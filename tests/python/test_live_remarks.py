"""What a kernel does otherwise than [tcp] or a block says is remarked before a live run."""

import pytest

from aqmlab import engine
from aqmlab.live import settings
from conftest import NATIVE

BULK = '[[traffic]]\nkind = "bulk"\n'


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def remarks(tcp="", *blocks, live=""):
    traffic = "".join(f"{BULK}{block}\n" for block in blocks or ("",))
    scenario = f'[live]\n{live}\n[link]\nrate = "10mbit"\n[tcp]\n{tcp}\n{traffic}'
    return settings.settings(engine.resolve(scenario, "x.toml")).remarks


@pytest.mark.parametrize(
    "keys",
    [
        'stack = "freebsd4"',
        'cc = "cubic-rfc"',
        'cc = "cubic-rfc"\necn = "on"\nect = "ect1"\none_way = true',
        'delayed_ack_timeout = "200ms"',
        "delayed_ack = 4",
        'rto_initial = "3s"',
        'rto_max = "10s"',
        'syn_timer = "3s"',
        "pacing = true",
        "abe = true",
        "syn_losses_forgiven = 0",
        "limited_transmit = false",
        "handshake = false",
        'ect = "ect1"',
        'reduction = "at-once"',
        "one_way = true",
        "window_updates = true",
        'ecn = "on"\nect_on_control = true',
        'window = "2gb"',
    ],
)
def test_what_is_said_of_tcp_is_said_of_a_block(keys):
    def where(remark, place):
        # Of a block, whether SYNs have timestamps is as [tcp] has it.
        remark = remark.replace("syn_header 44b (Linux 48b)", "syn_header 44b (Linux 60b)")
        return f"{place}{remark.removeprefix('tcp')}" if remark.startswith("tcp.") else f"{place}: {remark}"

    of_tcp = remarks(keys)
    assert of_tcp
    of_block = [remark for remark in remarks("", keys) if "one setting for all connections" not in remark]
    assert of_block == [where(remark, "traffic.0") for remark in of_tcp]
    # Each thing is said once: of a block only what is not so of [tcp].
    assert remarks(keys, "", "initial_window = 3") == of_tcp
    assert remarks(keys, keys) == of_tcp


def test_a_block_that_does_as_linux_does_is_not_remarked():
    other = 'syn_timer = "3s"\nect = "ect1"'
    said = "Linux has no setting for ect ect1 (Linux ect0), syn_timer 3s (Linux 1s)"
    assert remarks(other, 'syn_timer = "1s"\nect = "ect0"') == (said,)
    # Of two keys the block has one as [tcp] has it.
    more = remarks(other, 'syn_timer = "2s"')
    assert more == (said, "traffic.0: Linux has no setting for syn_timer 2s (Linux 1s)")
    # BBR paces in Linux, and Reno does not.
    assert remarks('cc = "bbr"', 'cc = "reno"') == ()
    assert remarks('cc = "bbr"', 'cc = "reno"\npacing = true') == (
        "traffic.0: Linux has no setting for pacing true (Linux false)",
    )


@pytest.mark.parametrize(
    ("tcp", "block", "begins"),
    # tcp(7): 131072 bytes by default, of which half is offered.
    [
        ("128kb", 'receive_buffer = "2mb"', 131072),
        ("128kb", 'receive_buffer = "0b"', 131072),
        ("2mb", 'receive_buffer = "128kb"', 2097152),
        ("2mb", 'receive_buffer = "0b"', 2097152),
        # The window is offered from the start with both.
        ("128kb", 'receive_buffer = "2mb"\nwindow = "64kb"', None),
        ("128kb", 'receive_buffer = "0b"\nwindow = "64kb"', None),
        ("128kb", "", None),
    ],
)
def test_a_receive_buffer_of_a_block_is_that_of_tcp(tcp, block, begins):
    said = [f"traffic.0.{block.replace(chr(34), '')}: all receivers of a host begin with that of [tcp], {begins} bytes"]
    assert list(remarks(f'receive_buffer = "{tcp}"', block)) == (said if begins else [])


@pytest.mark.parametrize(
    ("keys", "family", "said"),
    # As captured on Linux 6.18: SYNs of 60 bytes with timestamps, of 52 without, of 48 without SACK as well.
    [
        ("", "ipv4", ""),
        ('header = "60b"', "ipv4", "header 60b (Linux 52b)"),
        ('header = "40b"\ntimestamps = false\nsyn_header = "52b"', "ipv4", ""),
        ('header = "44b"\ntimestamps = false', "ipv4", "header 44b (Linux 40b), syn_header 60b (Linux 52b)"),
        ('syn_header = "40b"', "ipv4", "syn_header 40b (Linux 60b)"),
        ('cc = "reno"\nrepair = "newreno"', "ipv4", ""),
        ('cc = "reno"\nrepair = "newreno"\nheader = "40b"\ntimestamps = false\nsyn_header = "48b"', "ipv4", ""),
        ('mss = "1428b"\nheader = "72b"\nsyn_header = "80b"', "ipv6", ""),
        ('mss = "1428b"', "ipv6", "header 52b (Linux 72b), syn_header 60b (Linux 80b)"),
    ],
)
def test_headers_are_those_of_linux_with_timestamps_or_without(keys, family, said):
    expected = [f"Linux has no setting for {said}"] if said else []
    assert list(remarks(keys, live=f'family = "{family}"')) == expected


def test_of_a_block_headers_are_those_of_the_end():
    none = 'header = "40b"\ntimestamps = false'
    one_for_all = "traffic.0: of timestamps a kernel has one setting for all connections of a host: that of [tcp]"
    # The SYN of the block has timestamps, as all have.
    assert remarks("", none) == (one_for_all,)
    said = "traffic.0: Linux has no setting for header 44b (Linux 52b), syn_header 48b (Linux 60b)"
    assert remarks("", 'header = "44b"\ntimestamps = false\nsyn_header = "48b"') == (said, one_for_all)


def test_timestamps_are_where_the_header_has_room_for_them():
    said = "timestamps = false: hosts have them, for which there is room in header = 52b"
    assert remarks("timestamps = false") == (f"tcp.{said}",)
    assert remarks("", "timestamps = false") == (f"traffic.0.{said}",)
    said = "tcp.timestamps = true: hosts have none, for which there is no room in header = 40b"
    assert remarks('header = "40b"\nsyn_header = "52b"') == (said,)
