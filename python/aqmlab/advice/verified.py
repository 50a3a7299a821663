"""The main comparison of an advice once more, between real TCP stacks in virtual time.

What is recommended and what there is today run on the first links that the race drew, under the same demands, with the
kernel's TCP at both ends. Each figure of an application is then what it is worth by two witnesses. They agree where the
95 % interval of the difference between the two lies within a tolerance that was fixed before any run:

- MOS, half the narrowest category of users' satisfaction, which is 0.31 wide (ITU-T G.107, annex B);
- pages within two seconds, the distance that `agreement` allows distributions;
- a game's delay and goodputs, the share that `agreement` allows a mean delay, of what is simulated today, and 5 ms and
  0.1 Mb/s at least.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from aqmlab import scratch
from aqmlab.advice import applications, situation
from aqmlab.advice.advising import Advice, over
from aqmlab.advice.applications import Figure, Row
from aqmlab.advice.candidates import TODAY, Candidate
from aqmlab.advice.question import Question
from aqmlab.agreement import verdicts
from aqmlab.agreement.verdicts import DELAY_RELATIVE, DISTANCE
from aqmlab.errors import BadInput, CannotRun
from aqmlab.live import runs as live
from aqmlab.progress import Unseen, View
from aqmlab.results import pages
from aqmlab.results.run import Run
from aqmlab.runs.bed import Bed
from aqmlab.runs.runner import Job
from aqmlab.statistics import EXACT, Interval, across_runs

ROUNDS = 3
"""Links of the race that are tried between real stacks."""

TOLERANCES = {"mos": 0.155, "share": DISTANCE, "s": 5e-3, "bps": 1e5, "per_hour": 30.0}
"""By unit; of delays and goodputs the least."""

UNSEEN = Unseen()


@dataclass(frozen=True)
class Finding:
    """What the first is worth beside today, in one figure, by both witnesses."""

    figure: Figure
    simulated: Interval | None
    live: Interval | None
    gap: Interval | None
    """live - simulated."""
    tolerance: float | None

    @property
    def verdict(self) -> str:
        """`agrees`, `differs`, `undecided`; or nothing where nobody asked for it."""
        if self.gap is None or self.tolerance is None:
            return ""
        # Two pairs are easily the same by chance: a run has few pages. So are three that have no spread.
        if self.gap.n < ROUNDS or (self.gap.half_width or 0.0) <= EXACT:
            return verdicts.UNDECIDED
        return verdicts.verdict(self.gap, self.tolerance)

    @property
    def same_way(self) -> bool | None:
        """Whether both witnesses find it better, or both worse; nothing where that is not known.

        Signs that differ are chance unless each interval leaves out nought, and no matter where both agree.
        """
        if self.simulated is None or self.live is None or not self.simulated.value or not self.live.value:
            return None
        if (self.simulated.value > 0) == (self.live.value > 0):
            return True
        are_sure = all(one.low > 0 or one.high < 0 for one in (self.simulated, self.live))
        return False if are_sure and self.verdict != verdicts.AGREES else None

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        intervals = {"simulated": self.simulated, "live": self.live, "gap": self.gap}
        return {
            **{key: None if found is None else found.as_dict() for key, found in intervals.items()},
            "tolerance": self.tolerance,
            "verdict": self.verdict or None,
            "same_way": self.same_way,
        }


@dataclass
class Verified:
    """What real stacks say of an advice."""

    missing: str = ""
    """Why they say nothing, in a line."""
    kernel: str = ""
    rounds: int = 0
    rows: dict[str, list[Row]] = field(default_factory=dict)
    """Figures of today and of the first between real stacks, round by round."""
    findings: list[Finding] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "missing": self.missing or None,
            "kernel": self.kernel or None,
            "rounds": self.rounds,
            "figures": {one.figure.key: one.as_dict() for one in self.findings},
        }


def verify(found: Advice, rounds: int = ROUNDS, view: View = UNSEEN) -> Verified:
    """Runs the first and what there is today between real stacks, and lays both beside what the race found."""
    if found.first.settings is None:
        return Verified(missing="nothing is recommended that differs from what there is today")
    pair = (found.candidates[0], found.first)
    rounds = min(rounds, *(len(found.rows[one.name]) for one in pair))
    try:
        with scratch.folder("verify") as above:
            jobs = [_job(found.question, one, seed, above) for seed in range(rounds) for one in pair]
            live.check(jobs)
            live.run_all(jobs, view)
            made = [Run(job.folder) for job in jobs]
            if void := [run.void for run in made if run.void]:
                return Verified(missing=f"runs between real stacks are void: {void[0]}")
            rows = [_row(found.question, place // len(pair), run) for place, run in enumerate(made)]
            by_round = [rows[at : at + len(pair)] for at in range(0, len(rows), len(pair))]
            rows = [row for of_round in by_round for row in applications.beside_each_other(of_round)]
            kernel = str((made[0].manifest.get("live") or {}).get("kernel") or "")
    except (BadInput, CannotRun) as error:  # a link that no live run has, no kernel
        return Verified(missing=str(error))
    by_name = {one.name: rows[place::2] for place, one in enumerate(pair)}
    findings = [
        _finding(found, figure, by_name, rounds) for figure in found.figures if any(figure.key in row for row in rows)
    ]
    return Verified("", kernel, rounds, by_name, findings)


def _job(question: Question, candidate: Candidate, seed: int, above: Path) -> Job:
    resolved = situation.scenario(question, situation.draw(question, seed), candidate)
    # Repetitions of one path would share the names of their files.
    folder = above / f"{seed}-{'today' if candidate.name == TODAY else 'first'}"
    return Job(f"{candidate.name}, link {seed + 1}", resolved, folder, bed=Bed(is_virtual=True))


def _row(question: Question, seed: int, run: Run) -> Row:
    """The figures of a live run; goodputs from what the kernel says of the senders, which it says of endless ones."""
    traffic = run.scenario["traffic"]
    piece = situation.draw(question, seed).piece
    found = applications.measured(run.folder, traffic, piece, pages.LIVE_GAP_S)
    if piece is not None:
        return found
    sent = pl.read_parquet(run.folder / "tcp.parquet").filter(pl.col("time_s") >= situation.WARMUP_S)
    for key, direction in (("down_bps", "forward"), ("up_bps", "reverse")):
        blocks = [
            place for place, block in enumerate(traffic) if block["kind"] == "bulk" and block["direction"] == direction
        ]
        found[key] = _goodput(sent.filter(pl.col("traffic").is_in(blocks))) if blocks else None
    return found


def _goodput(sent: pl.DataFrame) -> float:
    """What was acknowledged of all flows, bits a second, from the first to the last that was seen of each."""
    flows = sent.group_by("traffic", "source", "side").agg(
        size=pl.col("acknowledged_bytes").max() - pl.col("acknowledged_bytes").min(),
        passed=pl.col("time_s").max() - pl.col("time_s").min(),
    )
    return float(sum(8 * size / passed for size, passed in flows.select("size", "passed").rows() if passed > 0))


def _finding(found: Advice, figure: Figure, live_rows: dict[str, list[Row]], rounds: int) -> Finding:
    first = found.race.first
    simulated = _differences(found.rows[first][:rounds], found.rows[TODAY][:rounds], figure)
    between = _differences(live_rows[first], live_rows[TODAY], figure)
    pairs = [(a, b) for a, b in zip(simulated, between, strict=True) if a is not None and b is not None]
    today = over([row.get(figure.key) for row in found.rows[TODAY][:rounds]])
    if not pairs or today is None or any(math.isnan(b - a) for a, b in pairs):
        return Finding(figure, over(simulated), over(between), None, None)
    tolerance = TOLERANCES[figure.unit]
    if figure.unit in ("s", "bps"):
        tolerance = max(tolerance, DELAY_RELATIVE * abs(today.value))
    return Finding(figure, over(simulated), over(between), across_runs([b - a for a, b in pairs]), tolerance)


def _differences(rows: Sequence[Row], base: Sequence[Row], figure: Figure) -> list[float | None]:
    pairs = [(row.get(figure.key), other.get(figure.key)) for row, other in zip(rows, base, strict=True)]
    return [None if a is None or b is None else a - b for a, b in pairs]
