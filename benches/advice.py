"""Judges advice by itself: on random links, its quick first choice beside an exhaustive search under other seeds.

python benches/advice.py --minutes 15 --seed 1

Draws links, asks `advise` with few rounds, and then runs every candidate on seeds that the race has not seen. How
far the choice's mean is below the best one's is what the choice cost. The best mean of several is too high by its
own noise, so that the cost comes out too large rather than too small. Where it exceeds what the advice stated, the
choice is outside of its own interval; whether the search itself is sure of that is said beside it, by a paired
t-interval.
"""

import argparse
import random
import statistics
import time

import numpy as np

from aqmlab import units
from aqmlab.advice import advising, applications, candidates, question
from aqmlab.advice.question import Question
from aqmlab.statistics import half_width

FIRST_SEED = 1000
"""Of the search; races begin at 0."""


def drawn(generator: random.Random) -> Question:
    """A link of a home or a few."""
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


def judged(asked: Question, quick: int, rounds: int) -> dict[str, float | str | bool]:
    """What the quick choice cost, by the search."""
    found = advising.advise(asked, jobs=1, rounds=quick)
    every = candidates.of(asked.platform, asked.access.name, asked.rtt_s[1])
    work = [(one, FIRST_SEED + seed, None) for seed in range(rounds) for one in every]
    rows = advising.made(work, asked, 1, advising.SILENT)
    scores = np.array([applications.score(asked, row) for row in rows]).reshape(rounds, len(every))
    means = scores.mean(axis=0)
    names = [one.name for one in every]
    best, chosen = int(means.argmax()), names.index(found.race.first)
    width = half_width(scores[:, best] - scores[:, chosen]) or 0.0
    cost = float(means[best] - means[chosen])
    return {
        "chosen": names[chosen],
        "best": names[best],
        "stated": found.race.shortfall(),
        "cost": cost,
        "within": cost <= found.race.shortfall(),
        "sure": cost - width > found.race.shortfall(),
        "tied": names[best] in found.race.running,
    }


def main() -> None:
    """Judges links until the time is over, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", type=int, default=9, help="rounds of the quick choice")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of the search")
    words = parser.parse_args()
    generator, until, found = random.Random(words.seed), time.monotonic() + 60 * words.minutes, []
    print("| link | on | chosen | best | cost | stated |")
    print("|---|---|---|---|---|---|")
    while time.monotonic() < until:
        asked = drawn(generator)
        one = judged(asked, words.quick, words.rounds)
        found.append(one)
        link = f"{units.say_rate(asked.down_bps)} / {units.say_rate(asked.up_bps)}, {asked.access.name}"
        cells = (link, asked.platform, one["chosen"], one["best"], f"{one['cost']:.3f}", f"{one['stated']:.3f}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print()
    print(f"{len(found)} links, {words.quick} rounds against a search of {words.rounds} on other seeds:")
    for key, what in (
        ("within", "the choice is within its own stated interval of the best"),
        ("tied", "the best of the search had not left the race"),
        ("sure", "the choice is outside, and the search is sure of it"),
    ):
        print(f"- {what}: {sum(bool(one[key]) for one in found)} of {len(found)}")
    print(f"- cost: mean {statistics.mean(float(one['cost']) for one in found):.4f}, ", end="")
    print(f"largest {max(float(one['cost']) for one in found):.4f}")


if __name__ == "__main__":
    main()
