"""Judges advice by itself: on random links, its quick first choice beside an exhaustive search under other seeds.

nice -n 19 python benches/advice.py benches/judged.jsonl --links 200        # goes on where it was broken off
python benches/advice.py benches/judged.jsonl --table

Each link is drawn by its own number. `advise` chooses with few rounds. Then every candidate runs on seeds that the race
has not seen, and those that may be the best run once more, with the choice and today's queue, on three times as many
that nobody has seen. How far the choice's mean is below the best one's there is what the choice cost, and how far
today's queue is below it what leaving everything would cost. The best mean of several is too
high by its own noise; because few are left, and on many seeds, that is little. Where the cost exceeds what the advice
stated, the choice is outside of its own interval; whether the search itself is sure of that is said beside it, by a
paired t-interval.

With `--reality` the search is on links that are not what was said to `advise`: their rates are 15 % lower, they lose
one packet in two hundred, or their rate down wanders as that of a mobile network does. What the advice stated does not
hold there. The table says what it then costs.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from aqmlab import engine, scratch, toml_text, units
from aqmlab.advice import advising, applications, candidates, question, situation
from aqmlab.advice.candidates import Candidate
from aqmlab.advice.question import Question
from aqmlab.engine import Resolved
from aqmlab.statistics import Array, half_width

FIRST_SEED = 1000
"""Of the search; races begin at 0."""

SLOWER = 0.85
"""The rate that a line has, in that which was said."""

FINAL = 3
"""Seeds of those that may be the best, times those of the search."""

LOST = "0.005"

OPPORTUNITY_BYTES = 1500
WANDERS = 0.4
"""How far a mobile rate wanders in a second, in its mean: Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts
Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013, §3.1, have 200 packets a second in a root
second where rates are 0 to 1,000."""

Made = Callable[[Question, Candidate, int, Path], Resolved]


@dataclass(frozen=True)
class Judged:
    """A link, the quick choice for it, and what that cost."""

    number: int
    link: str
    platform: str
    chosen: str
    best: str
    cost: float
    """Of the choice, by the search."""
    today: float
    """What it would cost to leave all as it is. In the files of `benches` it is of the first seeds of the search,
    beside the best of these: today's queue ran on the others only where it might be the best, or was chosen."""
    stated: float
    sure: bool
    """Whether the search is sure that the cost exceeds what was stated."""
    tied: bool
    """Whether the best of the search had not left the race."""

    @property
    def within(self) -> bool:
        """Whether the cost is within what was stated."""
        return self.cost <= self.stated

    @property
    def of_today(self) -> float:
        """What it would cost to leave all as it is, of the same seeds as the cost wherever these have it."""
        if self.chosen == candidates.TODAY:
            return self.cost
        return 0.0 if self.best == candidates.TODAY else self.today


def drawn(seed: int, number: int) -> Question:
    """A link of a home or a few."""
    generator = random.Random(f"{seed}/{number}")
    down = 2e6 * 25 ** generator.random()
    up = max(1e6, down / generator.choice((1, 2, 5, 10)))
    shortest = generator.choice((5, 10, 20, 40))
    return question.read(
        units.rate_text(round(down, -5)),
        units.rate_text(min(round(down, -5), round(up, -5))),
        f"{shortest}ms..{shortest * generator.choice((2, 3, 5))}ms",
        access=generator.choice(("docsis", "dsl", "ethernet", "lte")),
        platform=generator.choice(("linux", "openwrt", "freebsd")),
        what_for=generator.choice((None, "calls,games", "web", "downloads,web")),
        seed=generator.randrange(1, 10_000),
    )


def as_said(asked: Question, candidate: Candidate, seed: int, folder: Path) -> Resolved:
    """The link is what it was said to be."""
    del folder
    return situation.scenario(asked, situation.draw(asked, seed), candidate)


def slower(asked: Question, candidate: Candidate, seed: int, folder: Path) -> Resolved:
    """The line is slower; the shaper is set by what was said. People who would overload it with pages stay away."""
    del folder
    down_bps, (least, most) = round(asked.down_bps * SLOWER), asked.mix.users
    fit = question.most_users(down_bps, question.USER_BPS)
    mix = replace(asked.mix, users=(min(least, fit), min(most, fit)))
    line = replace(asked, down_bps=down_bps, up_bps=round(asked.up_bps * SLOWER), mix=mix)
    return situation.scenario(line, situation.draw(line, seed), candidate, asked.access.margin / SLOWER)


def lossy(asked: Question, candidate: Candidate, seed: int, folder: Path) -> Resolved:
    """Packets are lost on the way to the link, both ways."""
    made = as_said(asked, candidate, seed, folder)
    return engine.resolve(made.toml, made.origin, [("path.loss", LOST)])


def mobile(asked: Question, candidate: Candidate, seed: int, folder: Path) -> Resolved:
    """The rate down wanders between none and twice what was said, about that."""
    made = as_said(replace(asked, access=replace(asked.access, lowest=1.0)), candidate, seed, folder)
    tree = {**made.scenario, "links": dict(made.scenario["links"])}
    trace = folder / f"down-{seed}.trace"
    trace.write_text("\n".join(map(str, opportunities(asked.down_bps, seed))) + "\n", encoding="utf-8")
    modem = {key: value for key, value in tree["links"]["modem"].items() if key != "rate"}
    tree["links"]["modem"] = {**modem, "trace": str(trace)}
    return engine.resolve(toml_text.dumps(tree), made.origin)


def opportunities(mean_bps: float, seed: int) -> Iterator[int]:
    """Milliseconds at which a packet may leave, of a rate that wanders between 0 and twice its mean."""
    generator = random.Random(f"mobile/{seed}")
    mean_hz = mean_bps / (8 * OPPORTUNITY_BYTES)
    rate_hz, due = mean_hz, 0.0
    for ms in range(1, round(question.DURATION_S * 1000) + 1):
        rate_hz += generator.gauss(0, WANDERS * mean_hz * 0.001**0.5)
        rate_hz = abs(rate_hz)
        rate_hz = min(rate_hz, 4 * mean_hz - rate_hz)
        due += rate_hz / 1000
        yield from [ms] * int(due)
        due -= int(due)


REALITIES: Mapping[str, Made] = {"as-said": as_said, "slower": slower, "lossy": lossy, "mobile": mobile}


def judged(asked: Question, number: int, words: argparse.Namespace) -> Judged:
    """What the quick choice cost, by the search."""
    found = advising.advise(asked, jobs=1, rounds=words.quick, rate_error=0)
    every = candidates.of(asked.platform, asked.access.name, asked.rtt_s[1])
    names = [one.name for one in every]
    made = REALITIES[words.reality]
    first = searched(asked, every, range(words.rounds), made)
    chosen, today = names.index(found.race.first), names.index(candidates.TODAY)
    left = finalists(first, chosen)
    # What there is today runs with them, and is the best only if it may be.
    run = [*left, *({today} - {*left})]
    final = searched(asked, [every[place] for place in run], range(words.rounds, (1 + FINAL) * words.rounds), made)
    ahead = final - final[:, [run.index(chosen)]]
    best = int(ahead.mean(axis=0)[: len(left)].argmax())
    cost, stated = float(ahead[:, best].mean()), found.race.shortfall()
    return Judged(
        number=number,
        link=f"{units.say_rate(asked.down_bps)} / {units.say_rate(asked.up_bps)}, {asked.access.name}",
        platform=asked.platform,
        chosen=names[chosen],
        best=names[left[best]],
        cost=cost,
        today=float((final[:, best] - final[:, run.index(today)]).mean()),
        stated=stated,
        sure=cost - (half_width(ahead[:, best]) or 0.0) > stated,
        tied=names[left[best]] in found.race.running,
    )


def finalists(scores: Array, chosen: int) -> list[int]:
    """Who may be the best by the scores of a search, a row for each seed; the choice is among them, whatever it has."""
    best = int(scores.mean(axis=0).argmax())
    behind = scores[:, [best]] - scores
    may_be = [one for one in range(scores.shape[1]) if behind[:, one].mean() <= (half_width(behind[:, one]) or 0.0)]
    return sorted({*may_be, best, chosen})


def searched(asked: Question, every: Sequence[Candidate], seeds: range, made: Made) -> Array:
    """Scores, a row for each seed, a column for each candidate."""
    return np.array([[scored(asked, one, FIRST_SEED + seed, made) for one in every] for seed in seeds])


def scored(asked: Question, candidate: Candidate, seed: int, made: Made) -> float:
    """The score of a candidate under a seed."""
    with scratch.folder("judge") as above:
        folder = above / "run"
        folder.mkdir()
        resolved = made(asked, candidate, seed, above)
        summary = engine.simulate(resolved, folder)
        return applications.score(asked, applications.of_run(folder, summary, resolved.scenario["traffic"]))


def main() -> None:
    """Judges links until there are enough or the time is over, and prints the table of all that were judged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where each link that was judged has a line")
    parser.add_argument("--links", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", type=int, default=9, help="rounds of the quick choice")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the search")
    parser.add_argument("--reality", choices=REALITIES, default="as-said", help="what the link is in the search")
    parser.add_argument("--table", action="store_true", help="only print what was judged")
    words = parser.parse_args()
    until = time.monotonic() + 60 * words.minutes
    words.file.parent.mkdir(parents=True, exist_ok=True)
    have = read(words.file)
    for number in range(words.links) if not words.table else ():
        if number in have:
            continue
        if time.monotonic() > until:
            break
        have[number] = judged(drawn(words.seed, number), number, words)
        with words.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(have[number])) + "\n")
    say([have[number] for number in sorted(have)], words)


def read(file: Path) -> dict[int, Judged]:
    """The links that were judged, by number."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {one.number: one for one in (Judged(**json.loads(line)) for line in lines)}


def say(found: Sequence[Judged], words: argparse.Namespace) -> None:
    """The table, and what it comes to."""
    print("| | link | on | chosen | best | cost | of today's queue | stated |")
    print("|--:|---|---|---|---|--:|--:|--:|")
    for one in found:
        cells = (one.number, one.link, one.platform, one.chosen, one.best)
        print(f"| {' | '.join(map(str, cells))} | {one.cost:.3f} | {one.of_today:.3f} | {one.stated:.3f} |")
    if not found:
        return
    search = f"a search of {words.rounds} on other seeds, {FINAL * words.rounds} more of those that may be the best"
    print(f"\n{len(found)} links, {words.quick} rounds against {search}:")
    for attribute, what in (
        ("within", "the choice is within its own stated interval of the best"),
        ("tied", "the best of the search had not left the race"),
        ("sure", "the choice is outside, and the search is sure of it"),
    ):
        print(f"- {what}: {sum(getattr(one, attribute) for one in found)} of {len(found)}")
    for attribute, what in (("cost", "cost"), ("of_today", "cost of today's queue"), ("stated", "stated")):
        values = [getattr(one, attribute) for one in found]
        print(f"- {what}: median {statistics.median(values):.4f}, largest {max(values):.4f}")


if __name__ == "__main__":
    main()
