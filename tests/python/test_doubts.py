"""Keys of hosts that are written down and do nothing: said before the run, in a line each."""

import warnings

import pytest

from aqmlab import doubts, engine, scenario
from conftest import NATIVE

LINK = '[link]\nrate = "10mbit"\n'
BULK = '[[traffic]]\nkind = "bulk"\n'


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def said(tmp_path, text: str) -> list[str]:
    path = tmp_path / "x.toml"
    path.write_text(LINK + text)
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
    ],
)
def test_what_does_nothing_is_said(tmp_path, text, line):
    (found,) = said(tmp_path, text)
    assert found.startswith(line)


@pytest.mark.parametrize(
    "text",
    [
        BULK,
        '[tcp]\necn = "accurate"\nect = "ect1"\n' + BULK,
        '[tcp]\nect = "ect1"\n' + BULK + BULK + 'ecn = "accurate"\n',
        BULK + 'cc = "ledbat"\nledbat_target = "5ms"\n',
        # What a result has written down is as the stack has it.
        '[tcp]\nledbat_target = "100ms"\nabe = false\n' + BULK,
    ],
)
def test_what_does_something_or_is_usual_is_not(tmp_path, text):
    assert said(tmp_path, text) == []


@pytest.mark.parametrize("limit", ["0p", "0b"])
def test_a_queue_without_room_is_said(tmp_path, limit):
    link = f'[link.qdisc]\nkind = "pfifo"\nlimit = "{limit}"\n'
    lines = [line for line in said(tmp_path, link + BULK) if "every packet is lost" in line]
    assert lines == [f'link.qdisc.limit = "{limit}": every packet is lost, on an idle link, too']


def test_a_queue_with_room_for_a_packet_is_not_doubted(tmp_path):
    assert said(tmp_path, '[link.qdisc]\nkind = "pfifo"\nlimit = "1p"\n' + BULK) == []
