"""Puts segments into the order of their times, where queues of a card or several interfaces wrote them otherwise."""

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush

from aqmlab.vectors.capture import FALLS_NS
from aqmlab.vectors.segments import Segment

MOST_HELD = 1 << 18
"""As many segments wait for others at most, some 160 MB: 10 s at 26,000 a second. At a million a second these are
0.26 s, and the queues of a card are off by milliseconds."""

Numbered = tuple[int, int, Segment]
"""Its time, the number of its frame, and the segment."""


def by_time(captured: Iterator[Numbered], most_held: int = MOST_HELD) -> Iterator[Numbered]:
    """The segments by their times, of the same time as they came.

    One that comes when a later one had to go already, as too many waited, goes at once.
    """
    # Those that came in order, and those that are earlier than the last of these, which is the latest of all.
    straight: deque[Numbered] = deque()
    fallen: list[Numbered] = []
    for item in captured:
        if straight and item[0] < straight[-1][0]:
            heappush(fallen, item)
        else:
            straight.append(item)
        # Nothing earlier than this may come any more.
        settled_ns = straight[-1][0] - FALLS_NS
        while True:
            is_fallen = bool(fallen) and fallen[0] < straight[0]
            first = fallen[0] if is_fallen else straight[0]
            if first[0] > settled_ns and len(straight) + len(fallen) <= most_held:
                break
            yield heappop(fallen) if is_fallen else straight.popleft()
    while straight:
        yield heappop(fallen) if fallen and fallen[0] < straight[0] else straight.popleft()
