"""Self-checks: is a run what it claims to be? Each is a fact that must hold, and travels in the manifest."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from aqmlab import links, units
from aqmlab.engine import Reached

LOAD_TOLERANCE = 0.01
"""Relative error allowed between the wanted load and the one the calibrated population offers: loads are spoken of in
whole per cent (90, 98, 105 in Le et al.), so half of the distance between two of them is the most that may be lost."""


CHOSEN_TOLERANCE = 0.05
"""The same for connections chosen from a set of vectors: they are whole, large ones leave gaps, and a set that comes no
nearer than this is refused."""


IP_HEADER_BYTES = 20
"""The shortest that an IP packet can be."""

FULL_PACKET_BYTES, LARGEST_IP_BYTES, HEADERS_BYTES = 1500, 65_535, 100
"""A packet on Ethernet; the largest that IP has; more than the headers of a segment take."""


@dataclass(frozen=True)
class Check:
    """One self-check."""

    name: str
    holds: bool
    detail: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def of_run(
    summary: dict[str, Any],
    exchanges: Path | None,
    queue: pl.DataFrame,
    calibrations: Sequence[dict[str, Any]],
    reached: Sequence[Reached] = (),
    tree: Mapping[str, Any] = MappingProxyType({}),
) -> list[Check]:
    """Makes all checks of one run. The table of exchanges is read in slices, for it may be large."""
    checks = [_conservation(queue, tree), _utilisation(summary, tree)]
    if exchanges is not None:
        facts = _facts(exchanges)
        checks += [_completed(summary, facts), _response_times(facts)]
    if summary.get("live"):
        checks.append(_budget(summary["live"]))
        if summary["live"].get("command_status") is not None:
            checks.append(_command(summary["live"]))
    return (
        checks
        + of_loads(calibrations, int(summary.get("seed", tree.get("seed", 1))))
        + [_reached(found) for found in reached]
    )


def _conservation(queue: pl.DataFrame, tree: Mapping[str, Any] = MappingProxyType({})) -> Check:
    """Offered = delivered + dropped + still held at the end, over the whole run, on each link and in each direction.

    The packet being sent when the run ends is neither delivered nor queued, hence at most one is missing; or as many as
    a device queue holds.
    """
    details, holds = [], True
    several = links.are_several(tree)
    for (link, facts), (direction, way) in product(links.of(tree).items(), enumerate(links.WAYS)):
        rows = queue.filter(pl.col("direction") == direction)
        if several:
            rows = rows.filter(pl.col("link") == link)
        if rows.is_empty():
            holds &= not several
            continue
        most, where = _beyond_discipline(facts)
        name = f"{link} {way}" if several else way
        offered, delivered, dropped = (
            int(rows[column].cast(pl.UInt64).sum())
            for column in ("offered_packets", "delivered_packets", "dropped_packets")
        )
        held = int(rows.sort("time_s")["queue_packets"][-1])
        missing = offered - delivered - dropped - held
        holds &= 0 <= missing <= most
        details.append(f"{name}: {offered:,} offered = {delivered:,} delivered + {dropped:,} dropped + {held:,} held")
        if missing:
            details[-1] += f" + {missing:,} {where}"
    return Check("packets are conserved", holds and bool(details), "; ".join(details) or "the queue table is empty")


def _beyond_discipline(link: Mapping[str, Any]) -> tuple[int, str]:
    """How many packets may have left the discipline and not yet the link, and where they are."""
    found = units.quantity(str(link.get("device_queue", "")))
    if found is None:
        return 1, "on the wire"
    limit, unit = found
    # Of bytes: packets are IP's header at least, and one may exceed the limit.
    most = limit if unit == "packets" else limit // IP_HEADER_BYTES + 1
    return int(most), "in the device queue and on the wire"


def _utilisation(summary: dict[str, Any], tree: Mapping[str, Any]) -> Check:
    values, traced, most = {}, [], {}
    measured_s = summary["measured_s"]
    for link, facts in links.of(tree).items():
        figures = links.figures(summary, link)
        for way in links.WAYS:
            name = f"{link} {way}" if links.are_several(tree) else way
            if figures.get(way):
                values[name] = figures[way]["utilisation"]
                traced += [name] if links.TRACES[way] in facts else []
                # What the link carries in the window, of what was sent over the share that this is; 0 if none was.
                carried = (figures[way]["throughput_bps"] or 0.0) * measured_s / (values[name] or math.inf)
                most[name] = 1.001 + (_straddling_bits(facts, tree) / carried if carried else 0.0)
    # Above 1 only by packets that straddle an instant; of a trace's mean, in a rich part of it.
    holds = all(value is None or name in traced or 0 <= value <= most[name] for name, value in values.items())
    said = ", ".join(
        f"{name} {value:.4f}" + (" of the trace's mean" if name in traced else "")
        for name, value in values.items()
        if value is not None
    )
    return Check("no more is sent than the link carries", holds, f"utilisation {said}")


def _straddling_bits(link: Mapping[str, Any], tree: Mapping[str, Any]) -> float:
    """The most that may be sent beyond what a link carries in the window: a packet at its start and one at each change,
    since packets leave at the rate at which they began.
    """
    if "states" in link:
        return math.inf
    rounds = 1.0
    if "period" in link:
        rounds = units.seconds(tree["duration"], "duration") / units.seconds(link["period"], "period") + 1
    return (1 + rounds * len(link.get("schedule", ()))) * _largest_packet_bytes(tree) * 8


def _largest_packet_bytes(tree: Mapping[str, Any]) -> float:
    """No packet of the scenario is larger: IP, of hosts or of unresponsive sources."""
    if any(isinstance(block.get("packet"), dict) or "packets" in block for block in tree.get("traffic", ())):
        return LARGEST_IP_BYTES  # of a distribution, or of a file
    hosts = [tree.get("tcp", {}), *tree.get("traffic", ())]
    sizes = [units.quantity(str(block.get(key, ""))) for block in hosts for key in ("mss", "packet", "size")]
    found = [size for size, unit in filter(None, sizes) if unit == "bytes" and size <= LARGEST_IP_BYTES]
    return max([FULL_PACKET_BYTES, *(size + HEADERS_BYTES for size in found)])


def _facts(exchanges: Path) -> dict[str, Any]:
    return (
        pl.scan_parquet(exchanges)
        .select(
            rows=pl.len(),
            low=pl.col("response_time_s").min(),
            high=pl.col("response_time_s").max(),
            setup_low=pl.col("setup_s").min(),
        )
        .collect(engine="streaming")
        .row(0, named=True)
    )


def _completed(summary: dict[str, Any], facts: dict[str, Any]) -> Check:
    completed = summary["exchanges"]["completed"] or 0
    detail = f"{facts['rows']:,} rows, {completed:,} completed in the summary"
    return Check("every completed exchange is in the table", completed == facts["rows"], detail)


def _response_times(facts: dict[str, Any]) -> Check:
    if not facts["rows"]:
        return Check("response times are possible", True, "no exchanges")
    low, high = facts["low"], facts["high"]
    holds = math.isfinite(high) and low > 0 and facts["setup_low"] >= 0
    detail = f"from {low:.6f} s to {high:.3f} s, no connection set-up takes less than no time"
    return Check("response times are possible", holds, detail)


def _budget(live: dict[str, Any]) -> Check:
    """A live run that was late is another experiment: its delays are those of a busy machine."""
    if live.get("void"):
        return Check("the test bed kept its budget", False, f"void: {live['void']}")
    late = live.get("lateness_s") or {}
    said = [f"{name} {1e6 * late[name]:,.0f} us" for name in ("p50", "p99", "max") if late.get(name) is not None]
    return Check("the test bed kept its budget", True, f"lateness {', '.join(said)}" if said else "nothing was late")


ENDED_WITH_THE_RUN = "ended with the run"
"""How a program inside ended that was still there at the end of the run (crates/live/src/program.rs)."""


def _command(live: dict[str, Any]) -> Check:
    """A program that failed has not done what the run was made for. One that is not over with the run is killed."""
    status = live["command_status"]
    name = Path((live.get("command") or ["the program"])[0]).name
    how = f"exit status {status}" if isinstance(status, int) else str(status)
    return Check("the program inside ended well", status in (0, ENDED_WITH_THE_RUN), f"{name}: {how}")


LOAD = "the offered load is the wanted one"
"""What `of_load` is called among the checks of a run."""


def of_loads(calibrations: Sequence[dict[str, Any]], seed: int) -> list[Check]:
    """Whether populations offer their loads, for a run of a seed with which that was seen; of others nobody knows."""
    return [of_load(found) for found in calibrations if seed in seeds_of(found)]


def confirmed_bps(calibration: Mapping[str, Any], seed: int) -> float | None:
    """What the population was seen to offer with a seed; None of a seed that it was not looked for with."""
    by_seed = calibration.get("confirmed_by_seed_bps") or {str(calibration["seed"]): calibration["confirmed_bps"]}
    return None if str(seed) not in by_seed else float(by_seed[str(seed)])


def seeds_of(calibration: Mapping[str, Any]) -> list[int]:
    """The seeds over which a load is met on average."""
    return [int(seed) for seed in calibration.get("confirmed_by_seed_bps") or [calibration["seed"]]]


def seeds_said(calibration: Mapping[str, Any]) -> str:
    """`seed 7`, `seeds 7 to 11`, or `seeds 7, 9 and 20`."""
    seeds = seeds_of(calibration)
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds[:-1]))} and {seeds[-1]}"


def of_load(calibration: dict[str, Any]) -> Check:
    """Whether a population that was calibrated offers the load that it was asked for."""
    error = calibration["error"]
    within = _within(error, LOAD_TOLERANCE)
    each = ", ".join(f"{way} {bps / 1e6:.2f}" for way, bps in calibration["confirmed_each_bps"].items())
    over = f" on average over {seeds_said(calibration)}" if len(seeds_of(calibration)) > 1 else ""
    detail = (
        f"{calibration['users']:,} users offer {calibration['confirmed_bps'] / 1e6:.3f} Mb/s on the uncongested link"
        f"{over}, wanted {calibration['load_bps'] / 1e6:g} Mb/s ({within}; {each})"
    )
    holds = abs(error) <= LOAD_TOLERANCE
    return Check(LOAD, holds, detail if holds else f"{detail}; a longer window comes nearer, or users in place of load")


def _within(error: float, tolerance: float) -> str:
    return f"{units.say_share(error, 2, signed=True)}, at most {units.say_share(tolerance)}"


def _reached(found: Reached) -> Check:
    error = found.offered_bps / found.load_bps - 1
    detail = (
        f"traffic.{found.traffic}: {found.scale:g} copies of the connections, {found.left_out:,} of them left out, "
        f"offer {found.offered_bps / 1e6:.3f} Mb/s, wanted {found.load_bps / 1e6:g} Mb/s "
        f"({_within(error, CHOSEN_TOLERANCE)})"
    )
    return Check("the chosen connections offer the wanted load", abs(error) <= CHOSEN_TOLERANCE, detail)
