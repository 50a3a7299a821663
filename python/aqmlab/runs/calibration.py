"""Calibration: which population offers a wanted load.

A load is the mean throughput in one direction that a population of users generates on an uncongested link (Le et al.
2003, 2007). As in those studies: run several populations on a link ten times as fast, where nothing is lost and no
answer is slowed down, measure, fit a straight line, invert it. One run with the population found confirms the answer.

Two choices and their reasons:

- The line has an intercept. Throughput is proportional to the population in the long run, but in one window with
  heavy-tailed demands the users added between two points may be more or less demanding than the rest by several per
  cent. All points use the same seeds, and user k keeps his random stream whatever the population, so that the
  larger population's demands contain the smaller one's and the points lie close to a smooth curve; a line through
  points just around the target follows that curve, a line through the origin would not. The proportional slope
  (bits a second a user) is reported beside it.
- The population is right for these seeds and this window. Of several seeds, those of independent runs, it is the mean
  load over them that is met: a population that was right for one of them alone would be off in all others by the same
  amount, which their scatter does not show. What the same users would offer over an unlimited time differs by the
  sampling error of the windows, which is estimated and reported as `window_error`.

Answers are kept in a cache, keyed by everything that matters to them (demands, seed, window, uncongested rate, the
compiled engine) and by nothing else: every discipline and ECN setting on the same link shares one calibration. Each is
a file that appears whole or not at all, of some two kilobytes, and stays as long as somebody asks for it now and then.
"""

import contextlib
import itertools
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from aqmlab import engine, links, reference, scenario, scratch, statistics, toml_text, units
from aqmlab.checks import LOAD_TOLERANCE
from aqmlab.engine import OVERRIDE, Load, Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.files import cache_folder
from aqmlab.json_files import Json, read_json
from aqmlab.progress import NOTHING, Monitor, Size
from aqmlab.reference import Rates
from aqmlab.results import store, times
from aqmlab.results.readable import listed
from aqmlab.results.run import of_link
from aqmlab.runs import runner
from aqmlab.runs.runner import Slots

FEWEST = 2
"""Users of the smallest population."""

PILOT_USERS = 1000
"""Population of the short look that tells where the points should lie. A thousand users cost a twentieth of a point
and tell the throughput a user to some ten per cent, which is all that is asked of them."""

PILOT_SHARE = 0.05
"""Of the population that is looked for, the pilot's, for want of anything better known."""

SPREAD = (0.9, 1.0, 1.1)
"""The points, relative to the pilot's guess: near enough for a straight line, far enough apart that the line's slope
stands out from the noise."""

GOAL = 0.002
"""Relative error at which confirming stops; a fifth of what the self-check allows."""

UNUSED_S = 90 * 24 * 3600.0
"""Age at which an answer that nobody asked for since is removed: mostly those of engines that are no more. By their
number none is: a plan of thousands of loads goes on with those that it has found."""

ROUNDS = 3
"""Confirming runs at most; one that misses the goal moves the next along the slope of the fit by what it missed."""

NARROWED = 8
"""Further runs at most where the best misses what the self-check allows: each between the two populations next to the
load, one below it and one above. A short window has steps, where somebody begins a long download."""


@dataclass(frozen=True)
class Point:
    """A population on the uncongested link: the mean over the seeds."""

    users: int
    throughput_bps: float


@dataclass(frozen=True)
class Calibration:
    """The population that offers a load, and how well that is known."""

    traffic: int
    load_bps: float
    direction: str
    users: int
    uncongested_rate_bps: float
    """Of the link it was found on, forward."""
    uncongested_reverse_rate_bps: float
    seed: int
    measured_s: float
    points: tuple[Point, ...]
    slope_bps_per_user: float
    intercept_bps: float
    proportional_bps_per_user: float
    residual_rms_bps: float
    predicted_bps: float
    confirmed_bps: float
    confirmed_each_bps: dict[str, float]
    """What the confirming run offered in each loaded direction. Their mean is what was asked for; in a short window
    they differ by several per cent, and the one above the mean is the more congested."""
    error: float
    """(confirmed - wanted) / wanted."""
    window_error: float | None
    """Half width of the 95 % interval of the load over such windows, relative: across the seeds, or of one seed from
    the parts of its window, which is too narrow for long-range dependent traffic."""
    key: str
    cached: bool = False
    confirmed_by_seed_bps: dict[str, float] = field(default_factory=dict)
    """What each seed offered in the confirming run; their mean is `confirmed_bps`."""
    variants: tuple[str, ...] = ()
    """Of a comparison file, the variants that ask for it."""

    def as_dict(self) -> Json:
        """For JSON."""
        facts = asdict(self)
        return facts if self.variants else {key: item for key, item in facts.items() if key != "variants"}

    @property
    def name(self) -> str:
        """The block of traffic that asks for it, of a comparison file with its variants."""
        return f"traffic.{self.traffic}{f' of {listed(self.variants)}' if self.variants else ''}"

    @classmethod
    def from_dict(cls, facts: Json, cached: bool = False) -> "Calibration":
        """The inverse of `as_dict`."""
        points = tuple(Point(**point) for point in facts["points"])
        return cls(**{**facts, "points": points, "cached": cached})


@dataclass(frozen=True)
class Wanted:
    """A load whose population is wanted."""

    key: str
    """What the answer is kept under: the same wherever the answer is the same."""
    load: Load
    base: Tree
    """The scenario to calibrate with, of one block that asks for anything and without users."""
    rates: Rates
    """Of the uncongested link."""
    where: str
    """Where the load is asked for."""
    origin: str
    seeds: tuple[int, ...]
    """Over which the load is to be met on average."""

    @property
    def expected(self) -> tuple[int, Size]:
        """The runs that a search takes as a rule: the pilot, the points and one that confirms; and their size."""
        of_run = runner.size_of(self.base, self.origin, _loads(self.load))
        near, seeds = len(SPREAD) + 1, len(self.seeds)
        size = Size(of_run.simulated_s * seeds * (near + 1), of_run.cost * seeds * (near + PILOT_SHARE))
        return seeds * (near + 1), size


def wanted(
    resolved: Resolved,
    load: Load,
    uncongested_rate_bps: float | None = None,
    seeds: Sequence[int] = (),
    seed_is_said: bool = False,
) -> Wanted:
    """One block of traffic that asks for a load, checked; over the scenario's own seed if none is given.

    `seed_is_said`: a complaint names that seed, where other seeds have populations of their own.
    """
    base, rates, where = _asked(resolved, load, uncongested_rate_bps)
    over = tuple(seeds) or (int(base.get("seed", 1)),)
    where = f"{where}, seed {over[0]}" if seed_is_said else where
    return Wanted(_key(base, load, over), load, base, rates, where, resolved.origin, over)


def search(wanted: Wanted, slots: Slots, monitor: Monitor, stop: threading.Event) -> Calibration:
    """Finds the population, by runs that take their turns with others, and keeps it; `stop` ends it."""
    found = _search(wanted, _Runs(wanted, slots, monitor, stop))
    _remember(found)
    return found


def _asked(resolved: Resolved, load: Load, uncongested_rate_bps: float | None) -> tuple[Tree, Rates, str]:
    """The scenario to calibrate with, the rates of its link, and where the load is asked for."""
    tree = engine_tree(resolved)
    rates = reference.rates(tree, resolved.origin, uncongested_rate_bps)
    slowest = min(_on_route_bps(reference.uncongested(tree, rates, resolved.origin), load, resolved.origin))
    asked = f'traffic.{load.traffic}.load = "{units.rate_text(load.load_bps)}"'
    # Of what is set beside the file the engine names no line.
    place = resolved.origin if load.place in ("", OVERRIDE) else load.place
    where = f"{place}: {asked}"
    most = reference.HIGHEST_SHARE * slowest
    if load.load_bps > most:
        raise BadInput(
            f"{where}: cannot be offered on the uncongested link of {units.rate_text(slowest)}; "
            f"expected at most {units.rate_text(most)}"
        )
    return _calibration_tree(tree, load.traffic, rates, resolved.origin), rates, where


def _on_route_bps(tree: Tree, load: Load, origin: str) -> Iterator[float]:
    """The rates of the links and directions that the load crosses."""
    block = tree["traffic"][load.traffic]
    for way in _ways(load):
        for name in links.route(tree, block, way):
            yield links.rates_bps(tree, name, origin)[links.WAYS.index(way)]


def _ways(load: Load) -> tuple[str, ...]:
    """The directions that are loaded."""
    return links.WAYS if load.direction == "both" else (load.direction,)


def _loads(load: Load) -> list[Load]:
    """What the blocks of a calibration offer: those before the one in question nothing."""
    return [*(replace(load, traffic=number, load_bps=0.0) for number in range(load.traffic)), load]


def _key(base: Tree, load: Load, seeds: tuple[int, ...]) -> str:
    facts = {"scenario": {k: v for k, v in base.items() if k != "name"}, "load_bps": load.load_bps}
    if len(seeds) > 1:
        facts["seeds"] = list(seeds)
    made_by = {"version": engine.version(), "engine": engine.file_sha256()}
    return scenario.digest({**facts, **made_by, "method": [PILOT_USERS, SPREAD, GOAL, ROUNDS]})


def engine_tree(resolved: Resolved) -> Tree:
    """The resolved scenario as tables that can be edited and resolved again."""
    return scenario.copied(resolved.scenario)


def _calibration_tree(tree: Tree, traffic: int, rates: Rates, origin: str) -> Tree:
    """The scenario reduced to what the load depends on: one block, its paths and hosts, the uncongested link.

    The block stays at its place, which its users' random streams are named after: others would ask for something else.
    Before it are blocks that ask for something in the last nanosecond, of which nothing reaches a link.
    """
    base = reference.uncongested(tree, rates, origin)
    block = {name: item for name, item in base["traffic"][traffic].items() if name != "load"}
    base["name"] = "calibration"
    end_ns = round(units.seconds(base["duration"], "duration") * 1e9)
    silent = {"kind": "bulk", "size": "1b", "start": f"{end_ns - 1}ns"}
    silent |= {key: block[key] for key in ("route", "reverse_route") if key in block}
    base["traffic"] = [dict(silent) for _ in range(traffic)] + [block]
    if links.MANY in base:  # a link that nobody crosses is refused
        crossed = {name for way in links.WAYS for name in links.route(base, block, way)}
        base[links.MANY] = {name: link for name, link in links.of(base).items() if name in crossed}
    tcp = base.get("tcp", {})
    if "cc" in block:
        # The scenario's own, which is about to go, may be what this congestion control rests on.
        block.setdefault("ecn", tcp.get("ecn", "off"))
    for table in (tcp, block):
        # Nothing is ever marked where nothing queues; but there is no DCTCP and no Prague without ECN.
        if "ecn" in table and table.get("cc", tcp.get("cc")) not in ("dctcp", "prague", "prague-linux"):
            table["ecn"] = "off"
    if "record" in base:
        # Only throughput is asked for.
        kept = {key: value for key, value in base["record"].items() if key != "flows"}
        base["record"] = {**kept, "drops": False, "exchanges": False, "demands": False}
    return base


class _Runs:
    """Runs populations and remembers what they offered."""

    def __init__(self, wanted: Wanted, slots: Slots, monitor: Monitor, stop: threading.Event) -> None:
        self.base, self.load, self.origin, self.seeds = wanted.base, wanted.load, wanted.origin, wanted.seeds
        self.slots, self.monitor, self.stop = slots, monitor, stop
        self.points: dict[int, float] = {}
        self.each: dict[int, dict[str, float]] = {}
        self.by_seed: dict[int, dict[int, float]] = {}
        self.window_errors: dict[int, float | None] = {}
        self.measured_s = 0.0

    def run(self, populations: Sequence[int]) -> None:
        new = [users for users in dict.fromkeys(populations) if users not in self.points]
        scenarios = {
            (users, seed): engine.resolve(
                toml_text.dumps({**scenario.with_users(self.base, self.load.traffic, users), "seed": seed}), self.origin
            )
            for users in new
            for seed in self.seeds
        }
        self.slots.fit(list(scenarios.values()))
        sizes = {run: self._size(run[0], resolved) for run, resolved in scenarios.items()}
        self.monitor.expect(len(scenarios), sum(sizes.values(), NOTHING))
        block = self.base["traffic"][self.load.traffic]
        # What is offered is what the first link of the route carries.
        entered = {way: links.route(self.base, block, way)[0] for way in _ways(self.load)}
        each: dict[tuple[int, int], dict[str, float]] = {}
        errors: dict[tuple[int, int], float | None] = {}

        def measure(run: tuple[int, int], stop: threading.Event) -> None:
            users, seed = run
            of_seed = f", seed {seed}" if len(self.seeds) > 1 else ""
            with self.slots.one(stop, self.stop), scratch.folder("calibration") as folder:
                summary, _ = runner.observed(
                    scenarios[run],
                    folder,
                    f"calibration, {users:,} users{of_seed}",
                    (stop, self.stop),
                    self.monitor,
                    sizes[run],
                )
                each[run] = {
                    way: float(links.figures(summary, link)[way]["throughput_bps"]) for way, link in entered.items()
                }
                if len(self.seeds) == 1:
                    queue = pl.read_parquet(folder / "queue.parquet")
                    errors[run] = _window_error(queue, entered, self.base, _mean(each[run].values()))
            self.measured_s = float(summary["measured_s"])

        runner.in_parallel([partial(measure, run) for run in scenarios], len(scenarios))
        for users in new:
            of_seeds = {seed: each[users, seed] for seed in self.seeds}
            loads = {seed: _mean(found.values()) for seed, found in of_seeds.items()}
            self.by_seed[users], self.points[users] = loads, _mean(loads.values())
            self.each[users] = {way: _mean(found[way] for found in of_seeds.values()) for way in entered}
            self.window_errors[users] = (
                errors[users, self.seeds[0]] if len(self.seeds) == 1 else _error_across(list(loads.values()))
            )

    def _size(self, users: int, resolved: Resolved) -> Size:
        """The pilot is a small part of the load; the other runs come near it."""
        size = runner.size(resolved, _loads(self.load))
        return replace(size, cost=size.cost * PILOT_SHARE) if users == PILOT_USERS else size


def _search(wanted: Wanted, search: _Runs) -> Calibration:
    load, rates, where = wanted.load, wanted.rates, wanted.where
    search.run([PILOT_USERS])
    per_user = search.points.pop(PILOT_USERS) / PILOT_USERS
    if per_user <= 0:
        raise BadInput(f"{where}: {PILOT_USERS} users send nothing in the measured window; expected a longer one")
    search.run([_even(share * load.load_bps / per_user) for share in SPREAD])

    if not any(search.points.values()):
        raise BadInput(
            f"{where}: {max(search.points):,} users, who would offer that, send nothing in the measured window; "
            f"expected a larger load or a longer window"
        )
    line = _line(search.points)
    users = _even((load.load_bps - line.intercept) / line.slope)
    search.run([users])
    for _ in range(ROUNDS - 1):
        miss_bps = load.load_bps - search.points[users]
        nearer = _even(users + miss_bps / line.slope)
        if abs(miss_bps) <= GOAL * load.load_bps or nearer in search.points:
            break
        search.run([nearer])
        users = min(users, nearer, key=lambda n: abs(search.points[n] - load.load_bps))
    for _ in range(NARROWED):
        between = _between(search.points, load.load_bps)
        if abs(search.points[users] / load.load_bps - 1) <= LOAD_TOLERANCE or between is None:
            break
        search.run([between])
        users = min(search.points, key=lambda n: abs(search.points[n] - load.load_bps))
    confirmed = search.points[users]
    if abs(confirmed / load.load_bps - 1) > 10 * LOAD_TOLERANCE:
        offer = f"{units.say_rate(confirmed)} on the uncongested link of {units.say_rates(rates)}"
        if users == FEWEST and confirmed > load.load_bps:
            raise BadInput(
                f"{where}: is below what {users} users offer, the fewest there are: {offer}; expected a larger load or "
                "a longer window"
            )
        raise BadInput(
            f"{where}: cannot be reached: {users:,} users offer {offer}; expected a load that grows with the "
            "population, a longer window, or users"
        )
    points = tuple(Point(n, search.points[n]) for n in sorted(search.points))
    return Calibration(
        traffic=load.traffic,
        load_bps=load.load_bps,
        direction=load.direction,
        users=users,
        uncongested_rate_bps=rates[0],
        uncongested_reverse_rate_bps=rates[1],
        seed=wanted.seeds[0],
        measured_s=search.measured_s,
        points=points,
        slope_bps_per_user=line.slope,
        intercept_bps=line.intercept,
        proportional_bps_per_user=math.fsum(p.throughput_bps for p in points) / sum(p.users for p in points),
        residual_rms_bps=line.residual_rms,
        predicted_bps=line.at(users),
        confirmed_bps=confirmed,
        confirmed_each_bps=search.each[users],
        error=confirmed / load.load_bps - 1,
        window_error=search.window_errors[users],
        key=wanted.key,
        confirmed_by_seed_bps={str(seed): bps for seed, bps in search.by_seed[users].items()},
    )


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found)


def _error_across(loads_bps: Sequence[float]) -> float | None:
    """Half width of the 95 % interval of the mean load across seeds, relative."""
    width, mean = statistics.across_runs(loads_bps).half_width, _mean(loads_bps)
    return None if width is None or mean <= 0 else width / mean


def _between(points: Mapping[int, float], load_bps: float) -> int | None:
    """A population between the two next to each other that offer less and more, the closest such; None if there is
    none to be tried."""
    places = sorted(points)
    pairs = [(a, b) for a, b in itertools.pairwise(places) if (points[a] - load_bps) * (points[b] - load_bps) < 0]
    for a, b in sorted(pairs, key=lambda pair: pair[1] - pair[0]):
        share = (load_bps - points[a]) / (points[b] - points[a])
        straight, half_way = _even(a + share * (b - a)), _even((a + b) / 2)
        # In turn: before a step the straight line comes nearer by a user at a time.
        for tried in (straight, half_way) if len(points) % 2 else (half_way, straight):
            if a < tried < b:
                return tried
    return None


def _even(users: float) -> int:
    """Populations are even, so that both halves are of the same size."""
    return max(FEWEST, 2 * round(users / 2))


def _line(points: dict[int, float]) -> statistics.Line:
    """The least-squares line; proportional where noise has made the slope meaningless (off by more than half)."""
    users, throughputs = list(map(float, points)), list(points.values())
    proportional = math.fsum(throughputs) / math.fsum(users)
    if len(points) > 1:
        line = statistics.fit_line(users, throughputs)
        if 0.5 < line.slope / proportional < 1.5:
            return line
    rest = [throughput - proportional * n for n, throughput in points.items()]
    return statistics.Line(proportional, 0.0, math.sqrt(math.fsum(r * r for r in rest) / len(rest)))


def _window_error(queue: pl.DataFrame, entered: Mapping[str, str], base: Tree, throughput_bps: float) -> float | None:
    """`entered` are the loaded directions, each with the link that carries what is offered."""
    loaded = pl.concat(
        of_link(times.with_covered(queue), link).filter(pl.col("direction") == links.WAYS.index(way))
        for way, link in entered.items()
    )
    rows, part = times.in_window(loaded, scenario.measured_window(base))
    if rows.is_empty():
        return None
    bits = np.bincount(part, rows["delivered_bytes"].to_numpy() * 8.0, statistics.BATCHES)
    covered = times.seconds(np.bincount(part, rows["covered_ns"].to_numpy(), statistics.BATCHES))
    rates = np.divide(bits, covered, out=np.full_like(bits, np.nan), where=covered > 0)
    width = statistics.within_run(throughput_bps, rates).half_width
    return None if width is None or throughput_bps <= 0 else width / throughput_bps


def recall(wanted: Wanted) -> Calibration | None:
    """What was found before, if it is kept."""
    place = _place(wanted.key)
    try:
        found = Calibration.from_dict({**read_json(place), "traffic": wanted.load.traffic}, cached=True)
    except (OSError, ValueError, TypeError, KeyError):
        return None  # no cache, or one that cannot be read: calibrating again costs time only
    with contextlib.suppress(OSError):
        os.utime(place)
    return found if found.key == wanted.key and _is_searched(found) else None


def _is_searched(found: Calibration) -> bool:
    """Whether it hits the load, or the search has tried what there is; those of earlier versions gave up before."""
    has_narrowed = len(found.points) > len(SPREAD) + ROUNDS
    points = {point.users: point.throughput_bps for point in found.points}
    return abs(found.error) <= LOAD_TOLERANCE or has_narrowed or _between(points, found.load_bps) is None


def _place(key: str) -> Path:
    return cache_folder() / f"calibration-{key}.json"


def _remember(found: Calibration) -> None:
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
        cache_folder().mkdir(parents=True, exist_ok=True)
        store.write_json(_place(found.key), found.as_dict())
        _tidy()


def _tidy() -> None:
    """Removes answers that nobody has asked for in a long time."""
    for entry in os.scandir(cache_folder()):
        if entry.name.startswith("calibration-") and time.time() - entry.stat().st_mtime > UNUSED_S:
            Path(entry.path).unlink(missing_ok=True)
