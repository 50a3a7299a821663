"""What an advice takes for granted of a line, what it does not know and draws, and what if a shaper is set wrongly."""

from aqmlab import units
from aqmlab.advice import situation
from aqmlab.advice.advising import Advice
from aqmlab.advice.question import DURATION_S, Question
from aqmlab.results import readable


def granted(advice: Advice) -> str:
    """What is taken for granted of the line."""
    said = "Taken for granted, as it is not known: the line has the rates that were said, and loses no packets itself."
    if advice.too_fast:
        said = f"{said} What changes if the shaper is {wrong(advice)}, is in the table."
    said += " Video calls are not in it: a call is one of audio, G.711."
    if advice.question.access.is_port:
        said += (
            " The queue is taken to form in the port itself: where less was bought than the port can send, something "
            "has to shape (--access ethernet). How good such a choice is was tried on lines of homes alone, and is not "
            "known of ports."
        )
        if advice.question.platform == "linux" and advice.question.configured is None:
            said += " Today is taken for drop-tail; where tc qdisc show says otherwise, give it with --have."
    elif beyond := _beyond(advice.question):
        low, high = (units.say_rate(end) for end in JUDGED_BPS)
        said += (
            f" How good such a choice is was tried on links of {low} to {high} down, with a tenth of that and "
            f"{units.say_rate(JUDGED_UP_BPS)} up at least, and round trips of "
            f"{' to '.join(map(units.say_seconds, JUDGED_RTT_S))}. This one is beyond by {readable.listed(beyond)}, "
            "where it is not known."
        )
    measured_s, longest_s = DURATION_S - situation.WARMUP_S, advice.question.rtt_s[1]
    if longest_s * FEW_ROUND_TRIPS > measured_s:
        said += (
            f" Of round trips of {units.say_seconds(longest_s)} a run has {measured_s / longest_s:.0f}, in the "
            f"{units.say_seconds(measured_s)} that it measures: that is few for senders to find their rates in."
        )
    return said


JUDGED_BPS, JUDGED_UP_BPS, JUDGED_RTT_S = (2e6, 50e6), 1e6, (0.005, 0.2)
"""Links whose advice was judged by a search: `benches/advice.py` draws their rates down and their round trips between
these. Up they have the whole to a tenth of down, and so much at least."""

ROUNDED_BPS = 5e4
"""By so much their rates are rounded at most."""

FEW_ROUND_TRIPS = 100


def _beyond(question: Question) -> list[str]:
    """By what a link is beyond those that were judged."""
    down_bps, up_bps, (shortest_s, longest_s) = question.down_bps, question.up_bps, question.rtt_s
    is_up_judged = up_bps >= JUDGED_UP_BPS and up_bps + ROUNDED_BPS >= down_bps / 10
    found = {
        "its rate down": JUDGED_BPS[0] <= down_bps <= JUDGED_BPS[1],
        "its rate up": is_up_judged,
        "its round trips": JUDGED_RTT_S[0] <= shortest_s <= longest_s <= JUDGED_RTT_S[1],
    }
    return [what for what, is_judged in found.items() if not is_judged]


def unknown(question: Question) -> list[str]:
    """What was not known, and between which ends each run drew it."""
    mix, access = question.mix, question.access
    if question.captured is not None:
        said = [f"which of {len(question.captured.pieces)} pieces of the capture is asked for again, under CUBIC"]
    else:
        ranges = {
            "people who browse": mix.users,
            "downloads": mix.downloads,
            "uploads": mix.uploads,
            "calls": mix.calls,
            "games": mix.games,
            **({"films": mix.video} if mix.video[1] else {}),
        }
        said = [f"{name}: {_between(*ends)}" for name, ends in ranges.items()]
        low, high = map(units.say_share, mix.bbr)
        said.append(f"share of BBR in downloads and uploads, CUBIC has the rest: {low} to {high}")
    for name, ends in (("down", access.down_queue_s), ("up", access.up_queue_s)):
        said.append(
            f"what today's queue {name} holds: {ends[0] * 1e3:.0f} to {ends[1] * 1e3:.0f} ms at the line's rate"
        )
    said.append("rates of the line: taken for what was said; and the line for one that loses nothing by itself")
    return said


def _between(low: float, high: float) -> str:
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def wrong(advice: Advice) -> str:
    """What the wrong setting is, or nothing where none was tried."""
    if not advice.too_fast:
        return ""
    down, up = _wrong_rates(advice)
    return f"set to {down} down and {up} up, {advice.rate_error * 100:g} % above what was said of the line"


def wrong_head(advice: Advice) -> str:
    """The same as the head of a column, a line each of three; nothing where none was tried."""
    return "change if shaped\nto {} down,\n{} up".format(*_wrong_rates(advice)) if advice.too_fast else ""


def _wrong_rates(advice: Advice) -> list[str]:
    return [units.say_rate(rate) for rate in advice.too_fast_bps]
