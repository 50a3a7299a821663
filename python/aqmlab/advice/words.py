"""An advice in sentences and cells, the same on the screen and on the page."""

import math
from collections.abc import Sequence
from typing import Any

from aqmlab import units
from aqmlab.advice import assumptions, cells, configured, costs, gains, lines, situation
from aqmlab.advice.advising import FEWEST_JUDGED, NEAR, Advice
from aqmlab.advice.candidates import TODAY
from aqmlab.advice.costs import Cost
from aqmlab.advice.question import Question
from aqmlab.advice.race import Race
from aqmlab.advice.verified import Verified
from aqmlab.agreement.verdicts import AGREES, DIFFERS, UNDECIDED
from aqmlab.results import readable
from aqmlab.statistics import Interval
from aqmlab.tc import dump


def link(question: Question) -> str:
    """The link in a line."""
    rates = f"{units.say_rate(question.down_bps)} down, {units.say_rate(question.up_bps)} up"
    rtt = " to ".join(dict.fromkeys(units.say_seconds(one) for one in question.rtt_s))
    return f"{rates}, {question.access.doc}, round trips of {rtt}, on {question.platform}"


def verdict(advice: Advice) -> list[str]:
    """What is recommended and how sure that is, a sentence each."""
    race, question = advice.race, advice.question
    said = [*_recommended(advice), *gains.sentences(advice)]
    number = len(advice.candidates)
    least = race.shortfall()
    if out := advice.those("out"):
        said.append(f"Out, as worse than another with 95 % confidence: {readable.listed(out)}.")
    if near := advice.those("near"):
        most = max(race.gain(race.first, name)[1] for name in near)
        said.append(f"Worse, but by {_up(most)} at most, which hardly matters: {readable.listed(near)}.")
    if same := advice.same:
        have = "have" if len(same) > 1 else "has"
        said.append(
            f"{readable.listed(same)} {have} the same score as it in every run so far: more of them would hardly tell "
            "them apart."
        )
    if ties := [name for name in advice.those("tie") if name not in same]:
        said.append(f"It cannot be told from {readable.listed(ties)} on that score: any of them may be the best.")
        said.append(_told_apart(advice, ties))
    if wide := advice.those("open"):
        means = sorted(map(race.mean, wide))
        by = " to ".join(dict.fromkeys(gains.apart(race.mean(race.first), mean) for mean in (means[-1], means[0])))
        said.append(
            f"Behind by {by} in the mean, but {'they differ' if len(wide) > 1 else 'it differs'} too much from run to "
            f"run for that to be sure: {readable.listed(wide)}."
        )
    if least >= 1:
        said.append("So few runs say nothing of how far it is below the best: make more, with --rounds.")
    elif least > 0:
        unseen = ": what no run has shown may still be so in a share of others"
        why = unseen if same and least > race.close and not race.is_undecided else ""
        said.append(f"With 95 % it is at most {_up(least)} below the best of the {number} candidates{why}.")
    else:
        said.append(f"With 95 % it is the best of the {number} candidates.")
    said += _configured(advice)
    if question.access.lowest < 1:
        lowest = units.say_share(question.access.lowest)
        said.append(
            "The rate of such a line changes, and its changes were guessed, not measured: what is advised suits a line "
            f"that falls to {lowest} of its rate for seconds. What yours does is not known here."
        )
    if advice.stopped:
        said.append(f"It was stopped {advice.stopped}.")
    return said


def _recommended(advice: Advice) -> list[str]:
    """What to set; where nothing makes the mix work, that comes first, and what fails."""
    what = f"{advice.race.first}{_shaped(advice)}"
    if advice.first.settings is None:
        what = "leave it as it is, a drop-tail queue"
    if failing := advice.failing:
        return [
            "No discipline makes this mix work on this line. Under the best of them its score, from 0 to 1, is "
            f"{advice.race.mean(advice.race.first):.3f}: {readable.listed(failing)} do not work.",
            f"Least bad: {what}.",
        ]
    return [f"Recommended: {what}."]


def _told_apart(advice: Advice, ties: Sequence[str]) -> str:
    """By how little the first is ahead of those that it cannot be told from, and which of them all costs least."""
    race = advice.race
    by = gains.apart(race.mean(race.first), max(map(race.mean, ties)))
    said = f"Of them it had the best mean, by {by} of the score"
    found = {name: costs.of(advice.question, advice.candidate(name)) for name in (race.first, *ties)}
    if found[race.first] is None:
        return f"{said}."
    ns = {name: 0.0 if one is None else max(0.0, one.ns) for name, one in found.items() if one or name == TODAY}
    least = min(ns, key=lambda name: round(ns[name]))
    who = "it" if least == race.first else least
    return f"{said}; {who} costs least a packet, {ns[least]:.0f} ns over drop-tail."


def _up(bound: float) -> str:
    """An upper bound of a score, rounded up: what is said holds."""
    return f"{math.ceil(bound * 1000 - 1e-9) / 1000:.3f}"


def so_far(race: Race) -> str:
    """Who is left in the race by now, and who leads it."""
    best = sorted(race.running, key=race.mean, reverse=True)
    leaders = ", ".join(f"{name} {race.mean(name):.2f}" for name in best[:LEADERS])
    shown = f", the first {LEADERS}" if len(best) > LEADERS else ""
    return (
        f"after {race.rounds} of {race.looks[-1]} rounds {len(best)} of {len(race.names)} are left{shown}: {leaders}; "
        f"{leads(race)}"
    )


LEADERS = 3
"""Candidates that a line about a race under way names."""


def leads(race: Race) -> str:
    """How sure the race is of its first by now."""
    most = race.shortfall()
    if most >= 1:
        return "nothing is sure yet"
    return f"the first is at most {_up(most)} below the best" if most > 0 else "with 95 % it is the best"


def _configured(advice: Advice) -> list[str]:
    """What is set now, beside what is recommended; a sentence or two."""
    found, race = advice.question.configured, advice.race
    if found is None:
        return []
    said = [f"Set now, by {found.file}: {found.said}."]
    if found.stays:
        said.append(
            f"Below a shaper the average of Linux's {' and '.join(found.stays)} stays while the queue is empty, and "
            "here it falls: what is set may do worse than is said of it."
        )
    if race.first == configured.NAME:
        said.append("It is the first itself: nothing is to be changed.")
    elif configured.NAME in race.running:
        _, most = race.gain(race.first, configured.NAME)
        said.append(
            f"It cannot be told from the first, which is better by {_up(max(0.0, most))} at most: a change may not be "
            "worth it."
        )
    else:
        gained = race.lead(race.first, configured.NAME)
        said.append(
            f"It left the race after {race.left[configured.NAME]} rounds: the first is better, by {gained:.2f} in the "
            "mean of these."
        )
    if found.notes:
        more = len(found.notes) - 1
        said.append(f"Not understood: {found.notes[0]}{f', and {more} more' if more else ''}.")
    return said


def captured(question: Question) -> list[str]:
    """What runs have of a capture, and what they have not, a sentence each."""
    found = question.captured
    if found is None:
        return []
    said = [
        f"Traffic of {found.capture}: {found.connections} TCP connections of {units.say_seconds(found.duration_s)}, in "
        f"{len(found.pieces)} piece{'s' * (len(found.pieces) != 1)} of {units.say_seconds(found.piece_s)}, which ask "
        f"for {_rates(found.down_bps)} down and {_rates(found.up_bps)} up; and a call and a game that look on."
    ]
    if found.down_bps[1] < SLIGHT * question.down_bps and found.up_bps[1] < SLIGHT * question.up_bps:
        said.append("This is little for the link: where no queue fills, no discipline makes a difference.")
    left_out = []
    if found.other_frames >= 0.005:
        share = units.say_share(found.other_frames)
        left_out.append(f"{share} of its frames, which are not TCP: calls, games and QUIC are such")
    if found.unseen:
        left_out.append(f"{found.unseen} connection{'s' * (found.unseen != 1)} that had begun before the capture")
    if found.elsewhere:
        left_out.append(f"{found.elsewhere} that were opened elsewhere")
    if left_out:
        said.append(f"Not played: {readable.listed(left_out)}.")
    if max(found.lost) >= SOME_LOSS:
        up, down = (units.say_share(share, 1) for share in found.lost)
        said.append(
            f"In the capture {down} of data segments were lost on the way down and {up} up. Runs lose only what their "
            "queues drop: whether the line itself loses packets is not known here."
        )
    return said


SLIGHT = 0.2
"""A share of the rate that hardly fills a queue."""

SOME_LOSS = 0.001
"""A share of lost segments that is worth a word."""


def _rates(ends: tuple[float, float]) -> str:
    low, high = (units.say_rate(round(one)) for one in ends)
    return low if low == high else f"{low} to {high}"


def _shaped(advice: Advice) -> str:
    if advice.first.settings is None or advice.first.in_modem:
        return ""
    if advice.first.router is not None:
        return ""
    if advice.question.access.is_port:
        return ", in the ports themselves"
    share = situation.margin(advice.question, advice.first)
    down, up = (rate * share for rate in (advice.question.down_bps, advice.question.up_bps))
    return f", shaped to {units.say_rate(down)} down and {units.say_rate(up)} up"


def notes(advice: Advice) -> list[str]:
    """What numbers of `gains.rows` are of, where they are not of all rounds, a sentence each."""
    rows, said = gains.rows(advice), []
    if any(row["of"] or row["harm_of"] for row in rows):
        of_two = " under both of its queues" if advice.race.first != TODAY else ""
        said.append(
            f"A row is of the rounds in which somebody asked for it{of_two}; in the table of all candidates each is of "
            "all its runs in which somebody did."
        )
    if advice.has_waited:
        said.append(
            "Where nobody began a page under one queue, as people wait for one before the next, and somebody did under "
            "another, the first has none in time in that round."
        )
    if advice.too_fast:
        number = len(advice.too_fast)
        said.append(f"The last column is of the first {number} rounds, beside {advice.race.first} as advised.")
    counts = [advice.worth(one).rounds for one in advice.figures]
    counts += [harm.n for one in advice.figures if (harm := advice.harm(one)) is not None]
    if advice.race.first != TODAY and any(0 < count < FEWEST_JUDGED for count in counts):
        said.append(f"Of fewer than {FEWEST_JUDGED} rounds nothing is marked ▲ or ▼.")
    return said


STATES = {
    "tie": "may be the best as well",
    "near": f"worse with 95 % confidence, but by {NEAR:g} of the score at most",
    "open": "behind in the mean, but differs too much from run to run for that to be sure",
    "out": "worse than another with 95 % confidence, run by run under the same demands, whatever fewer runs say",
}
"""What the last word of a row of `field` means."""


def states(advice: Advice) -> str:
    """What the words of the rows of `field` mean, of those that are there."""
    there = {advice.state(name) for name in advice.ranking}
    return " ".join(f"{state.capitalize()}: {meaning}." for state, meaning in STATES.items() if state in there)


def field(advice: Advice) -> list[dict[str, Any]]:
    """All candidates, the first first; `of` says of how many runs a cell is, where not of all."""
    race = advice.race
    digits = {
        one.key: cells.together(one, [advice.value(name, one) for name in advice.ranking]) for one in advice.figures
    }
    return [
        {
            "name": name,
            "score": f"{race.mean(name):.3f}",
            "rounds": len(race.scores[name]),
            "state": advice.state(name),
            "cells": [cells.cell(one, advice.value(name, one), digits=digits[one.key]) for one in advice.figures],
            "of": [_of_runs(advice.value(name, one), len(race.scores[name])) for one in advice.figures],
            "cost": _cost_cell(costs.of(advice.question, advice.candidate(name))),
        }
        for name in advice.ranking
    ]


def _of_runs(found: Interval | None, every: int) -> str:
    return "" if found is None or found.n == every else f"{found.n} run{'s' * (found.n != 1)}"


def _cost_cell(cost: Cost | None) -> str:
    return "–" if cost is None else f"{max(0.0, cost.ns):.0f}"


def cost(advice: Advice) -> list[str]:
    """What the first costs a processor, and those that cannot be told from it, a sentence each."""
    found = costs.of(advice.question, advice.first)
    if found is None:
        return []
    usual, most = found.share_of_core
    rate = units.say_rate(costs.carried_bps(advice.question))
    said = [
        f"{advice.first.name} costs {max(0.0, found.ns):.0f} ns and {max(0.0, found.instructions):,.0f} instructions a "
        f"packet over drop-tail: {_share(usual)} of a core at {rate} of full frames, {_share(most)} of packets of "
        f"{costs.SHORT_BYTES} bytes. Measured in the simulator's code on {costs.measured_on()}; "
        f"{'the shaper and the rest' if advice.is_shaped else 'the rest'} of a router's work on a packet comes on top."
    ]
    if advice.question.down_bps >= SOFT_BPS and advice.question.platform in ("openwrt", "mikrotik"):
        said.append(
            f"Many home routers cannot shape {units.say_rate(advice.question.down_bps)}: all packets pass their "
            "processor then. Watch its idle time while a download runs (top); where none is left, the line carries "
            "less than was said, whatever the discipline."
        )
    others = [(name, costs.of(advice.question, advice.candidate(name))) for name in advice.those("tie")]
    ties = [f"{name} {max(0.0, one.ns):.0f} ns" for name, one in others if one is not None]
    return [*said, f"The others that may be the best: {', '.join(ties)}."] if ties else said


SOFT_BPS = 250e6
"""From where on a router's processor is worth a look when it shapes."""


def _share(share: float) -> str:
    return f"{share:.2g}" if share >= 1 else f"{share * 100:.2g} %"


def today(question: Question) -> str:
    """What the first column is, a sentence."""
    where = "both its ports" if question.access.is_port else "the modem and at the provider"
    return f"Today is the line as it is, drop-tail in {where}."


def checks(question: Question, written: str) -> list[str]:
    """How to see on the real link whether it is so, once the lines that were written are set."""
    if question.access.is_port:
        return _port_checks(question, written)
    said = [
        "flent rrul -l 60 -H A-NETPERF-SERVER -p all_scaled -o rrul.png     # before and after: the ping under load"
    ]
    if question.platform in lines.WITH_TC and not written.startswith("# Nothing"):
        said.append(dump.recipe(lines.queue_ports(question)))
        said.append("aqmlab tc --read now.txt     # is it what was advised?")
    return said


def _port_checks(question: Question, written: str) -> list[str]:
    """Of a port in use, which nobody floods to see: what it counts, and a ping across it."""
    said = ["ping -i 0.1 -c 600 A-HOST-BEHIND-IT     # in the busy hour, before and after: 99th percentile, losses"]
    if question.platform == "hardware":
        return [*said, "# the port's counters of packets sent, dropped at its end and by WRED, before and after"]
    for port, bps in zip(lines.PORTS, (question.down_bps, question.up_bps), strict=True):
        said.append(f"tc -s -d qdisc show dev {port} > now.txt     # twice: what waits, what was dropped and marked")
        if not written.startswith("# Nothing"):
            said.append(f"aqmlab tc --read now.txt --rate {units.rate_text(bps)}     # is it what was advised?")
    return said


def verified(found: Verified) -> list[str]:
    """Where simulator and real stacks agree, a sentence each."""
    if found.missing:
        return [f"Not verified between real stacks: {found.missing}."]
    by_verdict: dict[str, list[str]] = {}
    for one in found.findings:
        by_verdict.setdefault(one.verdict, []).append(one.figure.in_prose)
    where = f"Linux {found.kernel} in virtual time, {found.rounds} links of the race"
    said = [f"Verified between real stacks ({where})."]
    if agreeing := by_verdict.get(AGREES):
        said.append(f"Simulator and real stacks agree on what it is worth for {readable.listed(agreeing)}.")
    if differing := by_verdict.get(DIFFERS):
        said.append(f"They differ for {readable.listed(differing)}.")
    if undecided := by_verdict.get(UNDECIDED):
        said.append(f"So few links do not decide it for {readable.listed(undecided)}.")
    if other := [one.figure.in_prose for one in found.findings if one.same_way is False]:
        said.append(f"One finds it better and the other worse for {readable.listed(other)}.")
    if silent := by_verdict.get(""):
        said.append(f"Nobody asked on these links for {readable.listed(silent)}.")
    return said


def witnesses(found: Verified) -> list[dict[str, str]]:
    """What both say of the difference to today, a row for each figure."""
    rows = []
    for one in found.findings:
        tolerance = None if one.tolerance is None else Interval(one.tolerance, None, 1, "none")
        digits = cells.together(one.figure, (one.simulated, one.live, one.gap, tolerance))
        rows.append(
            {
                "title": cells.title(one.figure),
                "simulated": cells.cell(one.figure, one.simulated, signed=True, digits=digits),
                "live": cells.cell(one.figure, one.live, signed=True, digits=digits),
                "gap": cells.cell(one.figure, one.gap, signed=True, digits=digits),
                "tolerance": cells.cell(one.figure, tolerance, digits=digits),
                "verdict": one.verdict or "–",
            }
        )
    return rows


def _gain(advice: Advice) -> dict[str, float]:
    """What the first's score has beyond today's: the mean, and the ends of which each holds with 95 %."""
    race = advice.race
    least, most = race.gain(race.first, TODAY) if race.first != TODAY else (0.0, 0.0)
    return {"mean": race.mean(race.first) - race.mean(TODAY), "least_95": least, "most_95": most}


def as_dict(advice: Advice, checked: Verified | None = None) -> dict[str, Any]:
    """For a program: numbers in bits a second, seconds, shares of one."""
    question, race = advice.question, advice.race
    first = advice.first

    def said(found: Interval | None) -> dict[str, Any] | None:
        return None if found is None else found.as_dict()

    return {
        "link": {
            "down_bps": question.down_bps,
            "up_bps": question.up_bps,
            "rtt_s": list(question.rtt_s),
            "access": question.access.name,
            "platform": question.platform,
            "weights": dict(question.weights),
            "mix": {name: list(getattr(question.mix, name)) for name in question.mix.__dataclass_fields__},
            "seed": question.seed,
            "configured": None if question.configured is None else question.configured.said,
            "capture": None if question.captured is None else question.captured.as_dict(),
        },
        "recommended": race.first,
        "failing": advice.failing,
        "ties": advice.ties,
        "shortfall_95": race.shortfall(),
        "gain_over_today": _gain(advice),
        "undecided": race.is_undecided,
        "stopped": advice.stopped or None,
        "rounds": race.rounds,
        "runs": advice.runs,
        "candidates": {
            name: {
                "score": race.mean(name),
                "rounds": len(race.scores[name]),
                "left_after": race.left.get(name),
                "state": advice.state(name),
                "figures": {one.key: said(advice.value(name, one)) for one in advice.figures},
                "difference_to_today": {one.key: said(advice.difference(name, one)) for one in advice.figures},
            }
            for name in advice.ranking
        },
        "worth": {one.key: advice.worth(one).as_dict() for one in advice.figures},
        "rate_error": advice.rate_error,
        "too_fast_bps": list(advice.too_fast_bps) if advice.too_fast else None,
        "too_fast": {one.key: said(advice.harm(one)) for one in advice.figures} if advice.too_fast else None,
        "costs": {
            one.name: found.as_dict() for one in advice.candidates if (found := costs.of(question, one)) is not None
        },
        "verdict": [*verdict(advice), *captured(question)],
        "not_known": [assumptions.granted(advice), *assumptions.unknown(question)],
        "verified": None if checked is None else checked.as_dict(),
        "lines": lines.of(question, first),
    }
