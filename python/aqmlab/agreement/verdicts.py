"""When two witnesses agree: tolerances that were fixed before any run, and the one rule by which they are applied.

The verdict follows from the 95 % interval of the difference alone:

- agrees: all of it lies within the tolerance;
- differs: all of it lies beyond;
- undecided: it crosses the tolerance, or there is none.

The interval comes from the runs (`pairs`, `gap` and `distance_gap`):

- Under one seed, both witnesses have the same users with the same demands, which is most of what makes two runs differ.
  Their runs are then pairs, and the interval is Student's over the differences.
- Otherwise the runs are two independent sets, and the interval is Welch's. The same holds of fewer than `FEW` pairs, if
  one witness has at least `FEW` runs besides.
- A set may have few runs, because live runs take long. The spread of fewer than `FEW` runs is hardly known. Both sets
  are then taken to have the same spread, since they are the same network under the same chance, and the interval is
  Student's pooled one. If one set is a single run, the spread is that of the other set. If the smaller set visibly
  scatters more, by a factor of `MORE`, the interval is Welch's after all.
- If both sets have fewer than `FEW` runs and one of them has a single run, there is no interval, and the verdict is
  undecided.
- The simulator may have *twins*: its own runs once more, under the same demands and with a disturbance too small to
  matter, so that only chance makes them differ. They say how far a pair may lie apart. For a few pairs under the same
  demands, the interval is then Student's with the spread of the twins (`twin_gap` and `twin_distance_gap`).

Distributions are compared by the largest distance between them (Kolmogorov and Smirnov). The tolerance is a distance
too, because with some ten thousand exchanges a test of significance finds any difference. The unit of the interval is
the run, because the exchanges of a run meet in one queue. By the triangle inequality, the distance of two estimated
distributions is off by no more than the largest error of their difference at any time. The quantile of that largest
error is Student's, taken over all times at once. It is found by Gaussian multipliers of the runs' deviations (van der
Vaart and Wellner 1996, Weak Convergence and Empirical Processes, 2.9; Chernozhukov, Chetverikov and Kato 2013), divided
by the root of a chi-square. At a single time this is the same interval as that of any other quantity.
"""

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from aqmlab import statistics
from aqmlab.statistics import Array, Interval

AGREES, DIFFERS, UNDECIDED, VOID = "agrees", "differs", "undecided", "void"

RELATIVE = {"utilisation": 0.02, "loss_ratio": 0.15, "mark_ratio": 0.15, "goodput": 0.02, "retransmitted": 0.15}
"""Tolerances relative to the simulated value. The rate at which a law signals goes with the square of the rate that it
allows each flow (Mathis et al. 1997), so that 15 % of it are 7 % of a window; what a full link carries is certain to
its last idle microseconds. Goodput goes as utilisation, retransmissions as losses."""

LEAST_SHARE = 1e-4
"""Of packets lost or marked, and of segments sent again over packets offered: the least tolerance. A TCP that loses one
packet in 10,000 has a window of 122 segments (Mathis et al. 1997), beyond what these links let it have."""

DELAY_RELATIVE, DELAY_S = 0.10, 1e-3
"""Of a mean queueing delay, the greater of both: below a millisecond a delay is some packets' transmission."""

DISTANCE = 0.05
"""Between distributions of response times: what the eye tells apart in the studies' figures."""

FEW = 5
"""Runs below which their own spread is hardly known: with four, Student's quantile is 1.6 times the normal one."""

MORE = 2.0
"""How many times as great a spread of few runs has to be to count as another one: the F test's 5 % of two to four runs
against twenty lie between 1.8 and 2.1."""

TIMES, DRAWS, SEED = 500, 4000, 1
"""Times at which distributions are compared for their interval, draws for it, and their seed: 95 % of 4,000 draws are
known to within a fiftieth of their spread."""


def verdict(difference: Interval, tolerance: float) -> str:
    """`agrees`, `differs` or `undecided`. What one run says of itself, by its parts, decides nothing."""
    distance, width = abs(difference.value), difference.half_width
    if difference.basis != "runs" or width is None or not math.isfinite(distance) or not math.isfinite(width):
        return UNDECIDED
    if distance + width <= tolerance:
        return AGREES
    return DIFFERS if distance - width > tolerance else UNDECIDED


def pairs(simulated: Sequence[int], live: Sequence[int], *, same_demands: bool) -> list[tuple[int, int]] | None:
    """Which runs are compared with each other, by their places; `None`: as two independent sets."""
    if not same_demands:
        return None
    common = [(k, live.index(seed)) for k, seed in enumerate(simulated) if seed in live]
    is_enough = len(common) >= FEW or max(len(simulated), len(live)) < FEW
    return common if len(common) >= 2 and is_enough else None


def gap(simulated: Sequence[float], live: Sequence[float], paired: Collection[tuple[int, int]] | None) -> Interval:
    """live - simulated, with its interval."""
    if paired:
        return statistics.across_runs([live[j] - simulated[k] for k, j in paired])
    samples = [np.asarray(values, dtype=float)[:, None] for values in (simulated, live)]
    difference = float(samples[1].mean() - samples[0].mean())
    fewest = min(len(simulated), len(live))
    plan = _plan(samples)
    if plan is None or not all(np.isfinite(sample).all() for sample in samples):
        return Interval(difference, None, fewest, "none")
    if not plan.is_pooled:
        return statistics.unpaired(live, simulated)
    squares = sum(float(np.sum((sample - sample.mean()) ** 2)) for sample in samples)
    spread = math.sqrt(squares / plan.freedom * sum(1 / sample.size for sample in samples))
    quantile = statistics.student(0.5 + statistics.CONFIDENCE / 2, plan.freedom)
    return Interval(difference, quantile * spread, fewest, "runs")


def distance(one: Array, other: Array) -> float:
    """The largest distance between the distribution functions of two ordered samples."""
    if not one.size or not other.size:
        return math.nan
    at = np.concatenate([one, other])
    return float(np.max(np.abs(_shares(one, at) - _shares(other, at))))


def distance_gap(
    simulated: Sequence[Array], live: Sequence[Array], paired: Sequence[tuple[int, int]] | None
) -> Interval:
    """The distance between the distributions of all runs, each an ordered sample, with its interval."""
    if paired:
        simulated, live = [simulated[k] for k, _ in paired], [live[j] for _, j in paired]
    both = (simulated, live)
    pooled = [np.sort(np.concatenate(samples)) for samples in both]
    value = distance(*pooled)
    fewest = min(map(len, both))
    at = np.quantile(np.concatenate(pooled), (np.arange(TIMES) + 0.5) / TIMES)
    errors = [_deviations(samples, whole, at) for samples, whole in zip(both, pooled, strict=True)]
    if paired:
        plan: _Plan | None = _Plan(fewest - 1, is_pooled=False)
        errors = [errors[1] - errors[0]]
    else:
        plan = _plan(errors)
    if plan is None or not math.isfinite(value):
        return Interval(value, None, fewest, "none")
    return Interval(value, _largest_error(errors, plan), fewest, "runs")


def twin_gap(simulated: Sequence[float], twins: Sequence[float], differences: Sequence[float]) -> Interval:
    """The mean of a few pairs' `differences`, live - simulated, with the spread of twins: runs in the same order."""
    squares = [(twin - one) ** 2 for one, twin in zip(simulated, twins, strict=True)]
    mean = math.fsum(differences) / len(differences)
    if len(squares) < FEW:
        return Interval(mean, None, len(differences), "none")
    spread = math.sqrt(math.fsum(squares) / len(squares) / len(differences))
    quantile = statistics.student(0.5 + statistics.CONFIDENCE / 2, len(squares))
    return Interval(mean, quantile * spread, len(differences), "runs")


def twin_distance_gap(
    simulated: Sequence[Array], twins: Sequence[Array], paired: Sequence[tuple[Array, Array]]
) -> Interval:
    """The distance between the distributions of a few pairs, (simulated, live), with the spread of twins."""
    pooled = [np.sort(np.concatenate(samples)) for samples in zip(*paired, strict=True)]
    value, count = distance(*pooled), len(paired)
    if len(simulated) < FEW or not math.isfinite(value):
        return Interval(value, None, count, "none")
    at = np.quantile(np.concatenate(pooled), (np.arange(TIMES) + 0.5) / TIMES)
    errors = np.asarray([_shares(twin, at) - _shares(one, at) for one, twin in zip(simulated, twins, strict=True)])
    random = np.random.default_rng(SEED)
    drawn = random.standard_normal((DRAWS, len(errors))) @ errors / math.sqrt(len(errors) * count)
    student = np.sqrt(random.chisquare(len(errors), DRAWS) / len(errors))
    width = min(1.0, float(np.quantile(np.abs(drawn).max(axis=1) / student, statistics.CONFIDENCE)))
    return Interval(value, width, count, "runs")


def repeated(samples: Sequence[Array]) -> float | None:
    """Mean distance between two repetitions of one witness; `None` with fewer than two."""
    found = [distance(one, other) for one, other in itertools.combinations(samples, 2)]
    return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class _Plan:
    """How the spread of two sets of runs is to be found."""

    freedom: int
    is_pooled: bool


def _plan(samples: Sequence[Array]) -> _Plan | None:
    """By the values of each run of both, [run, time]."""
    fewer, others = sorted(samples, key=len)
    if len(others) < FEW and len(fewer) < 2:
        return None
    welch = _Plan(len(fewer) - 1, is_pooled=False)
    if len(fewer) >= FEW or len(others) < FEW:
        return welch
    if len(fewer) > 1 and _spread(fewer) > MORE * _spread(others):
        return welch
    return _Plan(len(fewer) + len(others) - 2, is_pooled=True)


def _spread(values: Array) -> float:
    return math.sqrt(float(values.var(axis=0, ddof=1).mean()))


def _deviations(samples: Sequence[Array], pooled: Array, at: Array) -> Array:
    """How far each run's distribution is from that of all: [run, time]; a run weighs as many as it has exchanges."""
    whole = _shares(pooled, at)
    weights = [len(samples) * sample.size / pooled.size for sample in samples]
    return np.asarray([w * (_shares(s, at) - whole) for w, s in zip(weights, samples, strict=True)], dtype=np.float64)


def _largest_error(errors: Sequence[Array], plan: _Plan) -> float:
    """The quantile of the largest error of the mean of each set, or of their difference, at any time."""
    random = np.random.default_rng(SEED)
    drawn = np.zeros((DRAWS, errors[0].shape[1]))
    if plan.is_pooled:
        size = 1 / sum(1 / len(error) for error in errors)
        every = np.concatenate(errors)
        drawn += random.standard_normal((DRAWS, len(every))) @ every / math.sqrt(plan.freedom * size)
    else:
        for error in errors:
            runs = len(error)
            drawn += random.standard_normal((DRAWS, runs)) @ error / math.sqrt(runs * (runs - 1))
    student = np.sqrt(random.chisquare(plan.freedom, DRAWS) / plan.freedom)
    # No two distributions are further apart than 1.
    return min(1.0, float(np.quantile(np.abs(drawn).max(axis=1) / student, statistics.CONFIDENCE)))


def _shares(sample: Array, at: Array) -> Array:
    return np.asarray(np.searchsorted(sample, at, side="right") / sample.size, dtype=np.float64)
