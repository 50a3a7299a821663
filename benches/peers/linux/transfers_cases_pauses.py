"""Transfers with pauses: the server has the answer in parts, and waits before each of the others until the client has
had all before it for so long. What comes before a pause says how windows, thresholds and CUBIC's curve go on after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from transfers_cases import FAST, NEAR, Case, Route

PAUSES_MS = (60, 400, 2000, 6000)
"""Shorter than a timeout, longer, and much longer."""


def cases() -> Iterator[Case]:
    """All cases, in order."""
    for cc in ("reno", "cubic"):
        for route in (FAST, NEAR):
            for pause_ms in PAUSES_MS:
                yield from pauses(route, cc, pause_ms)


def pauses(route: Route, cc: str, pause_ms: int) -> Iterator[Case]:
    """No loss, one early, one in each of two parts; parts that use the window and such that do not."""

    def case(name: str, parts: tuple[int, ...], *rules: str) -> Case:
        name = f"{name}, {len(parts)} times {parts[0]}, pauses of {pause_ms} ms"
        return Case("pauses", name, route, cc, sum(parts), rules, parts=parts, pause_ms=pause_ms)

    yield case("no loss", (100,) * 4)
    yield case("segment 60", (100,) * 6, "lose data 60")
    yield case("segment 150", (300,) * 6, "lose data 150")
    yield case("segments 150 and 800", (300,) * 6, "lose data 150,800")
    yield case("segment 60", (40,) * 12, "lose data 60")
