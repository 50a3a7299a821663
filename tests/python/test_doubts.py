"""Keys of hosts that are written down and do nothing: said before the run, in a line each."""

import warnings

import pytest

from aqmlab import doubts, engine, scenario
from conftest import NATIVE

LINK = '[link]\nrate = "10mbit"\n'
BSD = '[tcp]\nstack = "freebsd4"\n'
BULK = '[[traffic]]\nkind = "bulk"\n'


KEPT = (doubts._stack, doubts._modelling)
"""What is asked of the engine once, which in another test may have been a stand-in."""


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    for kept in KEPT:
        kept.cache_clear()
    yield
    for kept in KEPT:
        kept.cache_clear()


def said(tmp_path, text: str) -> list[str]:
    path = tmp_path / "x.toml"
    path.write_text(LINK + text)
    return remarks(path)


def remarks(path) -> list[str]:
    """What is said of a scenario before it runs."""
    source = scenario.read(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        doubts.of(source.resolve(), source.tree)
    return [str(one.message).removeprefix(f"{path}: ") for one in caught]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[tcp]\nect = "ect1"\n' + BULK, 'tcp.ect = "ect1": does nothing here, without ECN: ecn = "off"'),
        (BULK + "abe = true\n", 'traffic.0.abe = true: does nothing here, without ECN: ecn = "off"'),
        (BULK + 'ledbat_target = "5ms"\n', 'traffic.0.ledbat_target = "5ms": does nothing here, where cc = "cubic"'),
        ('[tcp]\nhandshake = false\nsyn_timer = "9s"\n' + BULK, 'tcp.syn_timer = "9s": does nothing here, without a'),
        (
            '[tcp]\ndelayed_ack = "off"\ndelayed_ack_timeout = "1s"\n' + BULK,
            'tcp.delayed_ack_timeout = "1s": does nothing here, without delayed acknowledgements',
        ),
        (
            BSD + 'reduction = "prr"\nrepair = "reno"\n',
            'tcp.reduction = "prr": does nothing here, where repair = "reno"',
        ),
        (
            BSD + 'reduction = "prr"\nrepair = "sack"\ncc = "bbr"\n',
            'tcp.reduction = "prr": does nothing here, where cc = "bbr"',
        ),
        (BSD + 'frto = true\nrepair = "sack"\n', 'tcp.frto = true: does nothing here, where repair = "sack"'),
        (BSD + "frto = true\n", 'tcp.frto = true: does nothing here, where reduction = "at-once"'),
        (BSD + "undo = true\n", 'tcp.undo = true: does nothing here, where reduction = "at-once"'),
        (BSD + "dsack = true\n", 'tcp.dsack = true: does nothing here, where repair = "newreno"'),
        (BSD + 'ect_on_all = true\necn = "on"\n', 'tcp.ect_on_all = true: does nothing here, where ecn = "on"'),
        (BSD + "ect_on_all = true\n", 'tcp.ect_on_all = true: does nothing here, without ECN: ecn = "off"'),
        (BSD + "pacing_burst = 9\n", "tcp.pacing_burst = 9: does nothing here, without pacing: pacing = false"),
    ],
)
def test_what_does_nothing_is_said(tmp_path, text, line):
    (found,) = said(tmp_path, text if "[[traffic]]" in text else text + BULK)
    assert found.startswith(line)


@pytest.mark.parametrize(
    "text",
    [
        BULK,
        '[tcp]\necn = "accurate"\nect = "ect1"\n' + BULK,
        '[tcp]\nect = "ect1"\n' + BULK + BULK + 'ecn = "accurate"\n',
        BULK + 'cc = "ledbat"\nledbat_target = "5ms"\n',
        BSD + 'reduction = "prr"\nfrto = true\nundo = true\n' + BULK,
        BSD + 'repair = "rack"\nfrto = true\nundo = true\ndsack = true\n' + BULK,
        BSD + 'repair = "sack"\nreduction = "prr"\ndsack = true\n' + BULK,
        BSD + 'ecn = "accurate"\nrepair = "sack"\nect_on_all = true\n' + BULK,
        BSD + "pacing = true\npacing_burst = 9\n" + BULK,
        BSD + 'cc = "bbr"\npacing_burst = 9\n' + BULK,
        BSD + "pacing_burst = 9\n" + BULK + 'max_pacing_rate = "1mbit"\n',
        # What a result has written down is as the stack has it.
        '[tcp]\nledbat_target = "100ms"\nabe = false\n' + BULK,
    ],
)
def test_what_does_something_or_is_usual_is_not(tmp_path, text):
    assert said(tmp_path, text) == []


@pytest.mark.parametrize("limit", ["0p", "0b", "0.9p", "39b"])
def test_a_queue_without_room_is_said(tmp_path, limit):
    link = f'[link.qdisc]\nkind = "pfifo"\nlimit = "{limit}"\n'
    lines = [line for line in said(tmp_path, link + BULK) if "every packet is lost" in line]
    assert lines == [f'link.qdisc.limit = "{limit}": every packet is lost, on an idle link, too']


def test_a_queue_with_room_for_a_packet_is_not_doubted(tmp_path):
    assert said(tmp_path, '[link.qdisc]\nkind = "pfifo"\nlimit = "1p"\n' + BULK) == []


@pytest.mark.parametrize(
    ("block", "line"),
    [
        ('kind = "udp-trace"\npackets = "late.csv"\n', 'packets = "late.csv": its first instant, 12 s, is not reached'),
        (
            'kind = "udp-trace"\npackets = "early.csv"\nstart = "9s"\n',
            'packets = "early.csv": its first instant, 11 s, is not reached',
        ),
        (
            'kind = "replay"\ndemands = "demands.csv"\n',
            'demands = "demands.csv": its first instant, 11 s, is not reached',
        ),
        ('kind = "cbr"\nrate = "1kbit"\npacket = "1500b"\n', 'rate = "1kbit": less than a packet of 1500b in the mean'),
        ('kind = "onoff"\nrate = "200bit"\npacket = "1500b"\n', 'rate = "200bit": less than a packet of 1500b in the'),
        ('kind = "probe"\ninterval = "20s"\n', 'interval = "20s": each probe sends a packet at most'),
        ('kind = "udp-poisson"\narrivals = "0.05hz"\n', 'arrivals = "0.05hz": less than one in the mean'),
    ],
)
def test_traffic_that_sends_next_to_nothing_is_said(tmp_path, block, line):
    lists(tmp_path)
    (found,) = said_of(tmp_path, block)
    assert found.startswith(f"traffic.0.{line}")
    assert found.endswith(", since the run ends at 10s")


@pytest.mark.parametrize(
    "block",
    [
        'kind = "udp-trace"\npackets = "early.csv"\n',
        'kind = "replay"\ndemands = "demands.csv"\n',
        'kind = "cbr"\nrate = "2kbit"\npacket = "1500b"\n',
        'kind = "probe"\ninterval = "5s"\n',
        'kind = "udp-poisson"\narrivals = "1hz"\n',
    ],
)
def test_traffic_that_sends_is_not_doubted(tmp_path, block):
    lists(tmp_path, first_s=3)
    assert said_of(tmp_path, block) == []


def lists(folder, first_s: int = 11) -> None:
    """Files of packets and of demands."""
    (folder / "late.csv").write_text("# from a capture\ntime,bytes\n12,100\n13s,100\n")
    (folder / "early.csv").write_text("2s,100\n")
    (folder / "demands.csv").write_text(f"0,{first_s},forward,0.08,350,12000,0,1\n")


def said_of(tmp_path, block: str) -> list[str]:
    """What is said of a block of traffic in a run of ten seconds."""
    path = tmp_path / "x.toml"
    path.write_text(f'duration = "10s"\n{LINK}[[traffic]]\n{block}')
    return remarks(path)


@pytest.mark.parametrize(
    ("path", "own", "line"),
    [
        ('"10ms"', "", 'round trips become 0, since path.rtt = "10ms" is less than a tick'),
        ('"90ms"', 'rtt = "10ms"\n', 'round trips become 0, since rtt = "10ms" is less than a tick'),
        ('{ uniform = ["10ms", "15ms"] }', "", 'round trips become 0, since path.rtt begins at "10ms"'),
        (
            '{ uniform = ["10ms", "150ms"] }',
            "",
            'round trips of less than a tick become 0, since path.rtt begins at "10ms"',
        ),
        ('"10ms"', 'rtt = { even = ["20ms", "40ms"] }\n', None),
        ('"20ms"', "", None),
        ('{ exponential = "40ms" }', "", None),
    ],
)
def test_round_trips_of_less_than_a_tick_are_said(tmp_path, path, own, line):
    block = BULK + own + 'rtt_at = "clients"\nrtt_tick = "20ms"\n'
    lines = said(tmp_path, f"[path]\nrtt = {path}\n{block}")
    assert lines == ([] if line is None else [f'traffic.0.rtt_tick = "20ms": {line}'])


def test_round_trips_of_a_file_are_not_those_of_the_path(tmp_path):
    (tmp_path / "demands.csv").write_text("0,3,forward,0.08,350,12000,0,1\n")
    block = '[[traffic]]\nkind = "replay"\ndemands = "demands.csv"\nrtt_at = "clients"\nrtt_tick = "20ms"\n'
    assert said(tmp_path, f'[path]\nrtt = "10ms"\n{block}') == []


WEB = '[[traffic]]\nkind = "web"\nload = '


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (WEB + '"10mbit"\n', []),
        (WEB + '"30mbit"\n', ['traffic.0.load = "30mbit": 300 % of link.rate = 10 Mb/s, more than it carries']),
        (
            WEB + '"6mbit"\n' + WEB + '"7mbit"\n',
            [
                'traffic.0.load = "6mbit" and traffic.1.load = "7mbit": together 130 % of link.rate = 10 Mb/s, more '
                "than it carries"
            ],
        ),
        (WEB + '"6mbit"\ndirection = "forward"\n' + WEB + '"7mbit"\ndirection = "reverse"\n', []),
        (
            'reverse_rate = "2mbit"\n' + WEB + '"3mbit"\ndirection = "reverse"\n',
            ['traffic.0.load = "3mbit": 150 % of link.reverse_rate = 2 Mb/s, more than it carries'],
        ),
        ('schedule = [{ at = "5s", rate = "20mbit" }]\n' + WEB + '"15mbit"\n', []),
    ],
)
def test_a_load_beyond_the_link_is_said(tmp_path, text, lines):
    assert [line for line in said(tmp_path, text) if ".load = " in line] == lines


def test_a_load_beyond_one_of_several_links_is_said_of_that(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(
        '[links.home]\nrate = "50mbit"\n[links.core]\nrate = "10mbit"\n'
        f'{WEB}"20mbit"\nroute = ["home", "core"]\n{WEB}"20mbit"\nroute = ["home"]\n'
    )
    assert [line for line in remarks(path) if ".load = " in line] == [
        'traffic.0.load = "20mbit": 200 % of links.core.rate = 10 Mb/s, more than it carries'
    ]


def test_points_of_a_sweep_beyond_the_link_are_meant(tmp_path):
    from aqmlab.sweep import plan, sweeps

    path = tmp_path / "grid.toml"
    path.write_text(
        '[scenario]\nduration = "3s"\nlink.rate = "10mbit"\n[[scenario.traffic]]\nkind = "web"\nload = "9mbit"\n'
        '[[grid]]\n[[grid.axis]]\nname = "load"\nkey = "traffic.0.load"\nvalues = ["9mbit", "10500kbit"]\n'
    )
    runs = sweeps.read(path).runs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(plan._resolved({(0, point.name, seed): point for point, seed in runs})) == 2
