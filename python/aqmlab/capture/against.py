"""A run's own figures beside those that its packets give: two ways to the same number, each in its own code.

Counts are of the same packets at the same instants, so that they are to be equal, and so are waits, to rounding. A mark
is counted by the run when it is made, and by the capture when the packet leaves: those that waited at an edge of the
window may count on either side. So may exchanges and segments sent again at an edge, which the hosts count by their own
clocks and the capture where it sees them. What a capture cannot know is not compared: waits where a link was down, and
segments sent again where some were lost before they were seen. Nor are exchanges where only what comes to the queue was
captured: what is dropped there is not at the hosts.

Of response times the capture knows what passed at the queue and estimates the way between it and the hosts, who have
clocks and work of their own: these are paired, exchange by exchange, and what they differ by is shown.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aqmlab import links, statistics, units
from aqmlab.capture.measure import Measured
from aqmlab.errors import BadInput
from aqmlab.links import WAYS
from aqmlab.results.run import Run

_EXACT = 0.0
_ROUNDED = 1e-6
"""Relative: a summary has means of sums of whole nanoseconds."""
_KERNEL_S = 2e-6
"""What a wait in the kernel's discipline is known to: there the router sees a packet leave when it reads it, by a clock
of 256 ns in virtual time."""
_FAR_S = 1.0
"""Exchanges of one size that were completed further apart than this are not the same."""

_COUNTS = ("offered_packets", "delivered_packets", "dropped_packets")


@dataclass(frozen=True)
class Check:
    """One quantity both ways."""

    title: str
    captured: float | None
    recorded: float | None
    tolerance: float
    """Relative to what was recorded."""
    least: float = 0.0
    """What it may differ by in any case, in `unit`."""
    unit: str = "s"

    @property
    def agrees(self) -> bool | None:
        """Whether they are the same within the tolerance; `None` where one is missing."""
        if self.captured is None or self.recorded is None:
            return None
        return abs(self.captured - self.recorded) <= max(self.tolerance * abs(self.recorded), self.least)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "title": self.title,
            "captured": self.captured,
            "recorded": self.recorded,
            "tolerance": self.tolerance,
            "least": self.least,
            "agrees": self.agrees,
        }


@dataclass(frozen=True)
class Paired:
    """Response times of the same exchanges, as recorded less as captured."""

    recorded: int
    captured: int
    difference_s: npt.NDArray[np.float64]
    """In order, of those that were found in both."""

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        shares = (0.01, 0.5, 0.99)
        found = statistics.quantiles(self.difference_s, shares).tolist() if self.difference_s.size else []
        return {
            "recorded": self.recorded,
            "captured": self.captured,
            "paired": self.difference_s.size,
            "difference_s": {f"p{100 * s:g}": v for s, v in zip(shares, found, strict=False)} or None,
        }


def against(measured: Measured, run: Run) -> tuple[list[Check], dict[str, Paired]]:
    """What a run recorded beside what its packets say, and the response times of each direction, paired.

    A file of one of several links is compared with the figures of that link. What hosts do is then left out: not every
    connection crosses every link. Raises `BadInput` where the run does not have the link.
    """
    said = measured.as_dict()
    checks = []
    least = _KERNEL_S if run.scenario.get("live", {}).get("qdisc") == "kernel" else 0.0
    figures = _of_link(measured, run) if links.are_several(run.scenario) else run.summary
    for way in measured.ways:
        name = WAYS[way]
        ours, theirs = said[name], figures[name]
        checks += [Check(f"{key.replace('_', ' ')}, {name}", ours[key], theirs[key], _EXACT) for key in _COUNTS]
        marks = (ours["marked_packets"], theirs["marked_packets"])
        over_an_edge = measured.queues[way].marked_over_an_edge
        waited_s = None if _was_down(run.scenario) else ours["queue_delay_mean_s"]
        delays = (waited_s, theirs["queue_delay_mean_s"])
        checks += [
            Check(f"marked packets, {name}", *marks, _EXACT, over_an_edge, "packets"),
            Check(f"throughput, {name}", ours["throughput_bps"], theirs["throughput_bps"], _ROUNDED),
            Check(f"mean queueing delay, {name}", *delays, _ROUNDED, least),
        ]
    if said["exchanges"] is None or links.are_several(run.scenario):
        return checks, {}
    recorded = run.summary["exchanges"]["completed"]
    completed = said["exchanges"]["completed"] if any(queue.has_after for queue in measured.queues) else None
    checks.append(Check("exchanges", completed, recorded, 0.001, measured.exchanges_at_edges(), "exchanges"))
    tcp = run.summary["tcp"]
    seen = [said[name]["retransmitted_segments"] for name in WAYS if said[name]["retransmitted_segments"] is not None]
    again = None if tcp["lost_before_link_packets"] or not seen else sum(seen)
    at_edges = measured.sent_again_at_edges()
    checks.append(Check("retransmitted segments", again, tcp["retransmitted_segments"], 0.01, at_edges, "segments"))
    pairs = {name: _paired(measured, run, way) for way, name in enumerate(WAYS)} if run.has_exchanges else {}
    return checks, {name: pair for name, pair in pairs.items() if pair.recorded or pair.captured}


def lacking(path: Path, run: Run) -> str | None:
    """What the run says is missing from its capture, in a sentence."""
    said = run.summary.get("live", {}).get("capture") or {}
    if "links" in said:
        link, way = [*path.name.split("."), "", ""][1:3]
        said = said["links"].get(link, {}).get(way, {})
    early = f", and the file ends early: {said['error']}" if said.get("error") else ""
    if not (early or said.get("missed")):
        return None
    return f"{path}: {said['missed']:,} of {said['seen']:,} packets are missing, as the run's summary says{early}"


def _was_down(scenario: Mapping[str, Any]) -> bool:
    """Whether any link has an outage; a resolved scenario says of every change how long one is."""
    changes = (change for link in links.of(scenario).values() for change in link.get("schedule", []))
    return any(units.seconds(change.get("outage", "0s"), "outage") > 0 for change in changes)


def _of_link(measured: Measured, run: Run) -> Any:
    """The figures of the link that the file's name says, as in `packets.core.forward.pcapng`."""
    link = measured.path.name.split(".")[1:2]
    if not link or link[0] not in run.summary["links"]:
        known = ", ".join(run.summary["links"])
        raise BadInput(
            f"{measured.path}: expected a name such as packets.LINK.forward.pcapng, with LINK one of {known}, "
            "as it says which link's packets these are"
        )
    return run.summary["links"][link[0]]


def _paired(measured: Measured, run: Run, way: int) -> Paired:
    rows = run.exchanges.filter(run.exchanges["direction"] == way)
    recorded = defaultdict(list)
    columns = (rows[name].to_numpy() for name in ("response_bytes", "start_s", "response_time_s"))
    for size, start, took in zip(*columns, strict=True):
        recorded[int(size)].append((float(start + took), float(took)))
    # Also those shortly before and after the window: an estimated end may lie on the other side of its edge.
    captured = defaultdict(list)
    for exchange in measured.connections.exchanges:
        if exchange.way == way:
            captured[exchange.response_bytes].append((exchange.completed_ns / 1e9, exchange.response_time_s))
    differences: list[float] = []
    for size, ours in recorded.items():
        differences += _nearest(sorted(ours), sorted(captured[size]))
    found = np.sort(np.array(differences, dtype=np.float64))
    return Paired(len(rows), len(measured.exchanges(way)), found)


def _nearest(ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> list[float]:
    """Differences of what was completed at about the same time, both in the order of time, each taken once."""
    found, at = [], 0
    for end, took in ours:
        while at + 1 < len(theirs) and abs(theirs[at + 1][0] - end) <= abs(theirs[at][0] - end):
            at += 1
        if at < len(theirs) and abs(theirs[at][0] - end) < _FAR_S:
            found.append(took - theirs[at][1])
            at += 1
    return found
