"""What load the users of each seed offer, as far as it is known.

A population is looked for with one seed, or over all, and serves all seeds of a point, as one population served all
runs of the published studies. With heavy-tailed demands the users of another seed offer more or less in the same
window, by a few per cent in minutes. What they offer is what the uncongested link carries, hence known for the seeds of
the calibration and for every seed that was run on that link; for the others there is the half width of the interval
from the parts of the calibrated window.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import links, units
from aqmlab.checks import LOAD_TOLERANCE, confirmed_bps
from aqmlab.json_files import Json
from aqmlab.sweep.condensed import Condensed

Known = tuple[str, int]
"""Demands and seed."""


class Offered:
    """Loads by demands and seed."""

    def __init__(self) -> None:
        self._known: dict[Known, float] = {}

    def add(self, run: Condensed, uncongested: bool) -> None:
        """Takes what a run says of the load of its demands."""
        if run.demand_digest is None or len(run.calibration) != 1:
            return  # of several loads in one run the link tells only the sum
        (note,) = run.calibration
        key = run.demand_digest, run.seed
        if (own := confirmed_bps(note, run.seed)) is not None:
            self._known[key] = own
        elif uncongested and len(run.scenario["traffic"]) == 1:
            ways = (note["direction"],) if note["direction"] in links.WAYS else links.WAYS
            self._known.setdefault(key, sum(_throughput_bps(run, way) for way in ways) / len(ways))

    def of(self, demand_digest: str | None, seed: int) -> float | None:
        """The load of some demands, if it is known."""
        return None if demand_digest is None else self._known.get((demand_digest, seed))

    def shares(self, runs: Sequence[Condensed]) -> "Shares | None":
        """What the users of some runs offer, beside what was asked for; None where none asks for one load."""
        asked = [(run, run.calibration[0]["load_bps"]) for run in runs if len(run.calibration) == 1]
        found = [offered / load for run, load in asked if (offered := self.of(run.demand_digest, run.seed)) is not None]
        return Shares(min(found, default=None), max(found, default=None), len(found), len(asked)) if asked else None


@dataclass(frozen=True)
class Shares:
    """Loads that were offered, relative to those that were asked for."""

    least: float | None
    most: float | None
    known: int
    """Of how many runs it is known."""
    of: int

    def as_dict(self) -> Json:
        """For JSON."""
        return {"least": self.least, "most": self.most, "known": self.known, "of": self.of}


def said(shares: Json | None) -> str:
    """`99.2 to 101.4 % of the load, as far as it is known: in 10 of 20 runs`; nothing where no load was asked for."""
    if not shares:
        return ""
    least, most, known, of = shares["least"], shares["most"], shares["known"], shares["of"]
    if not known:
        return f"not known of these {of} runs"
    texts = f"{100 * least:.1f}", f"{100 * most:.1f}"
    number = texts[0] if texts[0] == texts[1] else " to ".join(texts)
    how_far = f" in all {of} runs" if known == of else f" in the {known} of {of} runs of which it is known"
    return f"{number} % of what was asked for{how_far}"


def _throughput_bps(run: Condensed, way: str) -> float:
    """What the one block of a run sends one way: as the first link of its route carries it."""
    (block,) = run.scenario["traffic"]
    entered = links.route(run.scenario, block, way)[0]
    return float(links.figures(run.summary, entered)[way]["throughput_bps"])


def columns(run: Condensed) -> Json:
    """What a row of a table says of a run's calibration; of several, that which is known worst.

    A load that was asked for, in bit/s, only where it is the run's only one.
    """
    notes = run.calibration
    errors = [note["window_error"] for note in notes if note["window_error"] is not None]
    return {
        "calibration_seed": notes[0]["seed"] if notes else None,
        "calibration_window_error": max(errors, default=None),
        "asked_load_bps": notes[0]["load_bps"] if len(notes) == 1 else None,
        "offered_load_bps": None,
    }


def off(rows: Sequence[Mapping[str, Any]], over_seeds: Container[str] = ()) -> Json | None:
    """How far the loads of a table's rows are from what was asked for; None where none is known to be off.

    Known loads are relative to those asked for. Of runs of other seeds there is half the width of the interval from the
    parts of the calibrated window, relative too; where there is none either, nobody knows how far they are off. What is
    off by no more than the self-check allows is not off. Populations of the grids `over_seeds` are right on average.
    """
    known = {_named(row): row["offered_load_bps"] / row["asked_load_bps"] for row in rows if _is_known(row)}
    others = [row for row in rows if _is_unknown(row)]
    errors = {
        _named(row): float(row["calibration_window_error"])
        for row in others
        if row["calibration_window_error"] is not None
    }
    far = max(known, key=lambda name: abs(known[name] - 1), default=None)
    wide = max(errors, key=lambda name: errors[name], default=None)
    is_known_off = far is not None and abs(known[far] - 1) > LOAD_TOLERANCE
    may_be_off = len(errors) < len(others) or (wide is not None and errors[wide] > LOAD_TOLERANCE)
    if not is_known_off and not may_be_off:
        return None
    demands: dict[tuple[str, int], set[str]] = {}
    for row in rows:
        demands.setdefault((row["grid"], row["seed"]), set()).add(row["demand_digest"])
    sharing = [row for row in rows if _has_load(row) and row["seed"] != row["calibration_seed"]]
    return {
        "least": min(known.values(), default=None),
        "most": max(known.values(), default=None),
        "farthest": far,
        "known": len(known),
        "window_error": None if wide is None else errors[wide],
        "widest": None if wide is None else wide.rpartition(", seed ")[0],
        "unknown": len(others),
        "seeds_share_a_population": bool(sharing),
        "one_seed_is_calibrated": any(row["grid"] not in over_seeds for row in sharing),
        "demands_differ": any(len(each) > 1 for each in demands.values()),
    }


def off_said(found: Json | None) -> str:
    """How far loads are off, what that does to a comparison and what helps, in a line; nothing where none is."""
    if found is None:
        return ""
    said = []
    if found["known"]:
        ends = sorted({f"{100 * found[end]:.1f}" for end in ("least", "most")}, key=float)
        where = f" (farthest off: {found['farthest']})"
        runs = f"{found['known']} run{'s' * (found['known'] > 1)}"
        how_many = f"the {runs} where it is known" if found["unknown"] else f"all {runs}"
        said.append(f"{' to '.join(ends)} % of what was asked for in {how_many}{where}")
    if found["unknown"]:
        error = found["window_error"]
        about = "by an amount that is not known" if error is None else f"by about ± {units.say_share(error, 1)} or more"
        at = "" if found["widest"] is None else f" (widest: {found['widest']})"
        runs = f"{found['unknown']} run{'s' * (found['unknown'] > 1)}"
        said.append(f"in {runs} of seeds that were not calibrated it may be off {about}{at}")
    means = (
        "Differences between points of other demands, as of another load or round trip, are of offered load too"
        if found["demands_differ"]
        else "Runs of a point differ in offered load too, which widens the intervals"
        + (
            "; that all share one population may put them off together, which no interval shows"
            if found["one_seed_is_calibrated"]
            else ""
        )
    )
    helps = "A longer duration helps"
    if found["seeds_share_a_population"]:
        others = '"over-seeds" or "each-seed"' if found["one_seed_is_calibrated"] else '"each-seed"'
        helps += f", or calibrate = {others} in [[grid]]"
    return f"Offered load: {'; '.join(said)}. {means}. {helps}."


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['point']}, seed {row['seed']}"


def _has_load(row: Mapping[str, Any]) -> bool:
    return row["calibration_seed"] is not None


def _is_known(row: Mapping[str, Any]) -> bool:
    return row["asked_load_bps"] is not None and row["offered_load_bps"] is not None


def _is_unknown(row: Mapping[str, Any]) -> bool:
    """Whether nobody has seen what a run's users offer: what one load offers with its own seed was confirmed."""
    return _has_load(row) and row["seed"] != row["calibration_seed"] and row["offered_load_bps"] is None


def of_runs(runs: Iterable[tuple[Condensed, bool]]) -> Json | None:
    """Every population of some runs, and what the seeds offer with it; None where no load was asked for.

    With each run, whether it was made on the uncongested link.
    """
    offered = Offered()
    populations: dict[str, Json] = {}
    asked: dict[str, set[Known]] = {}
    for run, uncongested in runs:
        offered.add(run, uncongested)
        for note in run.calibration:
            names = ("load_bps", "direction", "users", "seed", "window_error", "confirmed_bps")
            populations.setdefault(note["key"], {name: note[name] for name in names})
            if run.demand_digest is not None and len(run.calibration) == 1:
                asked.setdefault(note["key"], set()).add((run.demand_digest, run.seed))
    if not populations:
        return None
    for key, facts in populations.items():
        known = {seed: load for demands, seed in sorted(asked.get(key, ())) if (load := offered.of(demands, seed))}
        facts["offered_bps"] = {str(seed): known[seed] for seed in sorted(known)}
    errors = [facts["window_error"] for facts in populations.values() if facts["window_error"] is not None]
    return {"window_error": max(errors, default=None), "populations": list(populations.values())}
