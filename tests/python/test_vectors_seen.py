"""Captures as they are: frames out of order or seen twice, headers cut off, segments of any size, stray resets."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aqmlab.vectors import convert, order
from aqmlab.vectors.order import Numbered, by_time
from aqmlab.vectors.segments import Segment
from captures import ACC, INIT, US, WEB, converted, frames_of, many, packets_of, pcap

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize("first", [INIT, ACC])
@pytest.mark.parametrize("block_us", [1_000, 100_000, 9_000_000])
def test_two_interfaces_that_are_written_in_turns_are_one_capture(tmp_path: Path, first: int, block_us: int) -> None:
    """Within a block all frames of one end come before those of the other, whenever they went by."""
    packets = many(8)
    blocks = sorted(packets, key=lambda p: (p.time_ns // (block_us * US), p.side != first))
    assert blocks != packets
    assert converted(tmp_path, pcap(frames_of(blocks))) == converted(tmp_path, pcap(frames_of(packets)))


def numbered(times: list[int]) -> list[Numbered]:
    host = (bytes(4), 1)
    return [(at, number, Segment(at, host, host, 0, 0, 0, 0, 0, None)) for number, at in enumerate(times)]


falling = st.lists(st.integers(0, 10**10), max_size=60)


@settings(max_examples=300, deadline=None)
@given(later=falling)
def test_segments_come_by_their_times_and_as_they_are_where_these_are_equal(later: list[int]) -> None:
    """Times rise by 5 s in the mean and fall by up to 10 s."""
    rising = [10**10 + 5 * 10**9 * number for number in range(len(later))]
    items = numbered([at - min(fall, 10**10) // 10**9 * 10**9 for at, fall in zip(rising, later, strict=True)])
    assert list(by_time(iter(items))) == sorted(items)


@settings(max_examples=300, deadline=None)
@given(times=falling, most=st.integers(1, 20))
def test_of_segments_that_wait_there_is_a_most(times: list[int], most: int) -> None:
    taken: list[int] = []

    def arriving() -> Iterator[Numbered]:
        for item in numbered(times):
            taken.append(item[1])
            yield item

    found = []
    for item in by_time(arriving(), most):
        found.append(item)
        assert len(taken) - len(found) <= most or len(taken) == len(times)
    # None is lost, and what is behind fewer others than may wait is in order.
    assert sorted(found) == sorted(numbered(times))
    if len(times) <= most:
        assert found == sorted(found)


def test_what_comes_too_late_to_be_sorted_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order.by_time, "__defaults__", (2,))
    whole = [replace(packet, time_ns=10**6 * number) for number, packet in enumerate(packets_of(WEB))]
    source = tmp_path / "x.pcap"
    for places, late in ((2, 0), (3, 1)):
        moved = [*whole[:6], *whole[7 : 7 + places], whole[6], *whole[7 + places :]]
        source.write_bytes(pcap(frames_of(moved)))
        counts = convert(source, tmp_path / f"{places}.cvec").as_dict()
        assert (counts["earlier_frames"], counts["unsorted_segments"]) == (1, late)
