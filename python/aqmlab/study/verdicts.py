"""Claims with their findings as a page shows them: words, marks that are not colour alone, intervals beside bounds."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN, UNEXPLAINED
from aqmlab.json_files import Json
from aqmlab.study.definition import FULL
from aqmlab.sweep import offered

MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?", NOT_RUN: "–"}
CLASSES = {HOLDS: "holds", FAILS: "fails", OPEN: "open", NOT_RUN: "unrun"}
CALLED = {
    HOLDS: (MARKS[HOLDS], "holds"), FAILS: (MARKS[FAILS], "fails"), UNEXPLAINED: (MARKS[FAILS], "fails unknown"),
    OPEN: (MARKS[OPEN], "open"), NOT_RUN: (MARKS[NOT_RUN], "unrun"),
}  # fmt: skip
"""Mark and classes of what claims are called; those of which no run shows the cause are apart."""
TALLIED = {HOLDS: "within the bounds", FAILS: "outside", OPEN: "undecided", NOT_RUN: "not run"}
WORST_FIRST = (FAILS, OPEN, HOLDS, NOT_RUN)
FEW = 6
"""Findings that are shown at once; of more, the worst are."""
MORE = 2
"""So few more are shown too, rather than folded."""

WIDTH, HEIGHT = 132.0, 16.0


@dataclass(frozen=True)
class Shown:
    """A claim as a page shows it."""

    facts: Json
    css: str
    mark: str
    called: str
    """The verdict as people read it."""
    first: list[Json]
    """Findings that are shown at once, each with `strip`, `css`, `mark` and `why`."""
    rest: list[Json]
    tally: str
    """How many findings there are of each verdict, where there are many."""
    published: str
    """The published number, where all findings have the same; it is said once then."""
    has_published: bool
    """Whether findings have published numbers of their own."""
    remark: str
    """What to know beside the verdict."""
    offered: str
    """What the users offered in the runs that it asks of."""
    explained: str
    """Why it is not that it holds; empty where it holds or was not run."""
    evidence: list[str]
    """The points that show it, as far as they were run."""
    evidence_note: str
    """Of those that were not."""

    @property
    def is_unexplained(self) -> bool:
        """Whether no run shows why it does not hold, here or at the scale where it does not."""
        return self.called == UNEXPLAINED or bool(self.facts.get("cause_unknown"))


def shown(claim: Json, few: int = FEW, run: Collection[str] | None = None) -> Shown:
    """Prepares a claim of `study.json`; of many findings `few` are shown at once, the worst first.

    `run` are the points that were run: evidence of others is none here. Without it all count as run.
    """
    findings = [dict(finding) for finding in claim["findings"]]
    for unit in dict.fromkeys(finding.get("unit", "") for finding in findings):
        same = [finding for finding in findings if finding.get("unit", "") == unit]
        span = _span(same)
        for finding in same:
            finding["strip"] = strip(finding, span)
            finding["why"] = _why(finding)
            finding["css"] = CLASSES.get(finding["verdict"], "open")
            finding["mark"] = MARKS.get(finding["verdict"], "?")
    first, rest = findings, []
    if len(findings) > few + MORE:
        findings.sort(key=_how_good)
        first, rest = findings[:few], findings[few:]
    if claim["verdict"] == NOT_RUN and len(findings) > 1:  # that is said once
        first, rest = [], findings
    theirs = [str(finding.get("published_number") or "") for finding in findings]
    # As text it may differ: it has as many decimals as the interval beside it.
    is_common = len(theirs) > 1 and all(theirs) and len({finding["published"] for finding in findings}) == 1
    verdicts = [finding["verdict"] for finding in findings]
    tally = ", ".join(f"{verdicts.count(key)} {word}" for key, word in TALLIED.items() if key in verdicts)
    evidence = [name for name in claim.get("evidence") or [] if run is None or name in run]
    without = len(claim.get("evidence") or []) - len(evidence)
    no_data = claim.get("no_data") or 0
    called = str(claim.get("called") or claim["verdict"])
    mark, css = CALLED.get(called, ("?", "open"))
    remarks = [claim.get("remark") or "", f"{no_data} without data though they were run" if no_data else ""]
    return Shown(
        facts=claim,
        css=css,
        mark=mark,
        called=called,
        first=first,
        rest=rest,
        tally=f"{len(findings)} numbers: {tally}" if len(findings) > 1 else "",
        remark="; ".join(filter(None, remarks)),
        offered=offered.said(claim.get("offered")) if claim["verdict"] != NOT_RUN else "",
        explained=str(claim.get("explained") or "") if claim["verdict"] in (FAILS, OPEN) else "",
        evidence=evidence,
        evidence_note=_not_here(without, bool(evidence)),
        published=min(theirs, key=len) if is_common else "",
        has_published=any(theirs) and not is_common,
    )


def _why(finding: Json) -> str:
    """What stands below a number: its remark, or that it has no interval."""
    note = finding.get("note") or ""
    if finding.get("value") is None:
        return ""  # the note is all that its text says
    finding["number"] = str(finding["number"]).removesuffix(f" ({note})")
    return str(note) if note or finding.get("half_width_95") is not None else "no interval"


def _how_good(finding: Json) -> tuple[int, float]:
    """The worst verdict first, and of one verdict what lies farthest outside or nearest to a bound."""
    place = WORST_FIRST.index(finding["verdict"]) if finding["verdict"] in WORST_FIRST else 1
    value = finding.get("value")
    if value is None:
        return place, math.inf
    return place, min(value - _or(finding.get("low"), -math.inf), _or(finding.get("high"), math.inf) - value)


def _not_here(without: int, has_others: bool) -> str:
    if without == 0:
        return ""
    if has_others:
        return f"and {without} more that {'is' if without == 1 else 'are'} not run in this profile"
    return f"{'one point that is' if without == 1 else f'{without} points that are'} not run in this profile"


def beside(column: Json) -> Json:
    """The verdict of another column as a page shows it: with its mark, and the class that has its colour."""
    verdict = column["verdict"]
    return {**column, "mark": MARKS.get(verdict, "?"), "css": CLASSES.get(verdict, "open")}


def counts(claims: Sequence[Json], among: Sequence[Json] | None = None) -> list[tuple[str, str, str, int]]:
    """What claims are called, mark, classes and how many, of each; without claims of an unknown cause none is said.

    `among`: all claims of the page, where these are those of one of its rows.
    """
    words = [_called(claim) for claim in claims]
    shown = [(word, *looks, words.count(word)) for word, looks in CALLED.items()]
    said = {_called(claim) for claim in (claims if among is None else among)}
    return [row for row in shown if row[0] != UNEXPLAINED or row[0] in said]


def explained_at(found: Json) -> str:
    """Before what explains a claim: whose numbers these are, where those beside them are of another scale."""
    is_full = found.get("profile", {}).get("name", FULL) in (FULL, "")
    return "" if is_full else "(At the published scale, where no other runs are named:) "


_NOT_REPRODUCED = UNEXPLAINED.replace(", ", " (") + ")"
_IN_ALL = {
    HOLDS: ("holds", "hold"), FAILS: ("does not hold", "do not hold"), UNEXPLAINED: (_NOT_REPRODUCED, _NOT_REPRODUCED),
    OPEN: ("cannot be decided", "cannot be decided"), NOT_RUN: (NOT_RUN, NOT_RUN),
}  # fmt: skip
"""What one claim does, and what several do."""


def counted(claims: Sequence[Json]) -> str:
    """The same counts as a sentence has them: `14 hold, 5 do not hold`; those that there are."""
    return ", ".join(f"{count} {_IN_ALL[word][count > 1]}" for word, _, _, count in counts(claims) if count)


def _called(claim: Json) -> str:
    return str(claim.get("called") or claim["verdict"])


def strip(finding: Json, span: tuple[float, float] | None) -> Markup:
    """A small drawing: bounds as a band, our interval as a line with a dot, the published number as a diamond."""
    value = finding.get("value")
    if value is None or span is None:
        return Markup("")

    def at(x: float) -> float:
        return 4 + (WIDTH - 8) * (min(max(x, span[0]), span[1]) - span[0]) / (span[1] - span[0])

    low, high = _or(finding.get("low"), -math.inf), _or(finding.get("high"), math.inf)
    left = 0.0 if low == -math.inf else at(low)
    right = WIDTH if high == math.inf else at(high)
    parts = [f'<rect class="band" x="{left:.1f}" y="0" width="{max(right - left, 0.6):.1f}" height="{HEIGHT:g}"/>']
    edges = [bound for bound in (low, high) if math.isfinite(bound)]
    parts += [f'<path class="edge" d="M{at(bound):.1f} 0V{HEIGHT:g}"/>' for bound in edges]
    if span[0] < 0 < span[1]:
        parts.append(f'<path class="zero" d="M{at(0):.1f} 0V{HEIGHT:g}"/>')
    width, middle = finding.get("half_width_95"), HEIGHT / 2
    if width is not None:
        parts.append(f'<path class="line" d="M{at(value - width):.1f} {middle:g}H{at(value + width):.1f}"/>')
    theirs = finding.get("published")
    if theirs is not None:
        parts.append(f'<path class="theirs" d="M{at(theirs):.1f} {middle - 4.5:g}l4.5 4.5l-4.5 4.5l-4.5 -4.5z"/>')
    parts.append(f'<circle cx="{at(value):.1f}" cy="{middle:g}" r="3.2"/>')
    return Markup(
        f'<svg class="strip {CLASSES.get(finding["verdict"], "open")}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def _span(findings: Sequence[Json]) -> tuple[float, float] | None:
    """What the drawings of findings in one unit reach over: all numbers and bounds, and a little more."""
    seen: list[float] = []
    for finding in findings:
        value, width = finding.get("value"), finding.get("half_width_95") or 0.0
        if value is not None:
            seen += [value - width, value + width]
        seen += [x for x in (finding.get("low"), finding.get("high"), finding.get("published")) if x is not None]
    known = [x for x in seen if math.isfinite(x)]
    if not known:
        return None
    low, high = min(known), max(known)
    # A bound of 0 alone says a side: the drawing shows as much of the other one as makes it visible.
    margin = 0.08 * (high - low) or abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
