"""What load the users of each seed offer, as far as it is known.

A population is looked for with one seed and serves all seeds of a point, as one population served all runs of the
published studies. With heavy-tailed demands the users of another seed offer more or less in the same window, by a few
per cent in minutes. What they offer is what the uncongested link carries, hence known for the seed of the calibration
and for every seed that was run on that link; for the others there is the half width of the interval from the parts of
the calibrated window.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aqmlab import links
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
        if note["seed"] == run.seed:
            self._known[key] = float(note["confirmed_bps"])
        elif uncongested and len(run.scenario["traffic"]) == 1:
            ways = {"forward": ("forward",), "reverse": ("reverse",)}.get(note["direction"], ("forward", "reverse"))
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
    """What a row of a table says of a run's calibration; of several, that which is known worst."""
    notes = run.calibration
    errors = [note["window_error"] for note in notes if note["window_error"] is not None]
    return {
        "calibration_seed": notes[0]["seed"] if notes else None,
        "calibration_window_error": max(errors, default=None),
        "offered_load_bps": None,
    }


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
