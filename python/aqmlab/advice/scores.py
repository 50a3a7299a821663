"""What the score of an advice is, in words."""

from aqmlab.advice.applications import CALL_SPAN_MOS, GAME_UNPLAYABLE_S
from aqmlab.advice.question import APPLICATIONS, Question
from aqmlab.results import readable


def definition(question: Question) -> str:
    """Of what a score is the mean, and what does not count; a sentence each."""
    counted = {name: question.weights[name] for name in _done(question) if question.weights[name]}
    is_even = len(set(counted.values())) == 1
    of = [_called(question, name) + ("" if is_even else f" (weight {weight:g})") for name, weight in counted.items()]
    if len(of) > 1:
        said = f"A score is the mean of {readable.listed(of)}, each from 0 to 1."
    else:
        said = f"A score is that of {of[0]} alone, from 0 to 1."
    left_out = [_called(question, name) for name in _done(question) if name not in counted]
    return f"{said} {readable.listed(left_out).capitalize()} do not count." if left_out else said


def how(question: Question) -> str:
    """How what each application gets becomes a number from 0 to 1."""
    web, downloads = _called(question, "web"), _fillers(question)
    ways = {
        "calls": f"calls by (MOS − 1) / {CALL_SPAN_MOS:g}, as the best of G.711 is {1 + CALL_SPAN_MOS:g}",
        "web": f"{web} by the share of those within 2 s",
        "video": "films by their bitrate as a share of the highest one, less one for each second without a picture",
        "games": f"games by 1 less the 99th percentile of delay over {GAME_UNPLAYABLE_S * 1e3:.0f} ms, and 0 beyond",
        "downloads": f"{readable.listed(downloads)} by their share of the line's rate"
        f"{', in the mean of both' if len(downloads) > 1 else ''}",
    }
    said = "; ".join(ways[name] for name in _done(question) if question.weights[name])
    return f"In the score count {said} (docs/guide/advise.md, What comes out)."


def _done(question: Question) -> list[str]:
    """What somebody does: a capture's connections are asked for as web and downloads, whoever opened them."""
    return [name for name in APPLICATIONS if question.mix.has(name) or (question.captured and name != "video")]


def _fillers(question: Question) -> list[str]:
    """Those who fill the line, which count as one: a capture has both."""
    return [one for one in ("downloads", "uploads") if question.captured is not None or question.mix.most(one)]


def _called(question: Question, name: str) -> str:
    """What users call what a weight is for."""
    if name == "downloads":
        return " with ".join(_fillers(question))
    if name == "web":
        return "pages" if question.captured is None else "answers"
    return "films" if name == "video" else name
