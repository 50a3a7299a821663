"""Where evaluations, studies and docs/validation.md speak of the same, and whether they agree.

    python benches/overlaps/overlaps.py                  the comparisons, and how many agree
    python benches/overlaps/overlaps.py --update-docs    and write docs/evaluations/agreement.md

overlaps.toml says what is compared and by which rule; both numbers are read where they are kept. runs.py makes the runs
that are needed besides. Exit codes: 0 all agree or a reason is given, 1 a line without a reason does not, or a reason
is given for one that does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import judged  # noqa: E402
import places  # noqa: E402
from judged import AGREES, DIFFERS, UNDECIDED, Line  # noqa: E402
from places import Number  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "evaluations" / "agreement.md"
UNITS: Mapping[str, tuple[float, str]] = {
    "delay": (1e-3, "ms"),
    "median": (1e-3, "ms"),
    "90 %": (1e-3, "ms"),
    "goodput": (1e6, "Mb/s"),
    "throughput": (1e6, "Mb/s"),
    "utilisation": (0.01, "%"),
    "loss": (0.01, "%"),
    "signals": (0.01, "%"),
    "queue": (1.0, "packets"),
    "short flows' drops": (1.0, "packets"),
}
"""What numbers are shown in."""
ALIKE = 1e-5
"""An interval that is so small a share of its number is not shown."""
HEAD_OF_WALKS = "| keys that were set | goodput, Mb/s | busy, % | loss, % | delay, ms |"
SHOWN = ("goodput", "utilisation", "loss", "delay")
"""Of a walk."""


INTRODUCTION = """\
The [evaluations](README.md), the [studies](../studies.md) and [validation](../validation.md) were made one by one.
This page compares them where they speak of the same: {lines} comparisons in {groups} groups, of which
**{agree} agree, {differ} differ and {open} are undecided**.

Numbers are read where they are kept: those of evaluations in `python/aqmlab/evaluation/known`, those of studies in
`found.json`, those of kernels and ns-2 in `benches/peers`. `benches/overlaps/overlaps.toml` says what is compared and
by which rule. Rules and bounds were written down before the comparison was first made, and are those of validation;
what was changed after it is said there.
Evaluations are quick ones, most of three runs. What their pages do not keep, such as losses, is of the same cases, run
again.

Numbers stand with their intervals of 95 %. A line *agrees* where its rule holds of the whole interval, *differs* where
it holds of no part of it, and is *undecided* else. Each line is asked by itself. The reason of each that does not agree
is below its table. `make overlaps` writes this page; `python benches/overlaps/runs.py` makes the runs that it needs
besides."""


WALKS = """\
What stands on an evaluation's page, and what becomes of it as the keys of a bridge are set, one group after the other
(three runs each): goodput, how much of the time the link is busy, loss and mean delay. The first line of each is the
medium congestion of 8.2.3 at 20 Mb/s as on the page, the last the case of the table above."""


def text(found: Number, kind: str) -> str:
    """A number as it is read, with its interval."""
    scale, unit = UNITS.get(kind, (1.0, ""))
    number = found.over(scale)
    width = number.half_width or 0.0
    if width <= ALIKE * abs(number.value):  # the same in every run, or known exactly
        return f"{_digits(number.value, 4)} {unit}".strip()
    decimals = max(1 - math.floor(math.log10(width)), 0)
    shown = min(decimals, max(4 - math.floor(math.log10(abs(number.value))), 0)) if number.value else decimals
    return f"{number.value:,.{shown}f} ± {_digits(width, 2)} {unit}".strip().replace("-", "−")


def _digits(value: float, digits: int) -> str:
    """So many digits, without an exponent."""
    if value == 0:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{decimals}f}".replace("-", "−")


def beside(line: Line) -> str:
    """The other number, or the bound."""
    if line.rule == "between":
        scale, unit = UNITS.get(line.kind, (1.0, ""))
        return f"{line.low / scale:.4g} to {line.high / scale:.4g} {unit}".strip()
    if line.said == "a sign":
        return "above 0"
    return line.said or text(line.there, line.kind)


def apart(line: Line) -> str:
    """How far the numbers are apart, in the terms of the rule."""
    if line.rule == "sign":
        return {AGREES: "same sign", DIFFERS: "other sign", UNDECIDED: ""}[line.verdict]
    if line.rule == "between":
        return {AGREES: "between", DIFFERS: "not between", UNDECIDED: ""}[line.verdict]
    difference = line.here.minus(line.there)
    base = abs(line.there.value)
    if base == 0.0:
        return text(difference, line.kind)
    share, width = difference.value / base, (difference.half_width or 0.0) / base
    return f"{100 * share:+.1f} ± {100 * width:.1f} %".replace("-", "−")


def page() -> str:
    """docs/evaluations/agreement.md."""
    found, plan, reasons = judged.lines(), judged.plan(), judged.reasons()
    counts = judged.counted(found)
    parts = [
        "# Where evaluations, studies and validation overlap",
        "",
        *INTRODUCTION.format(
            lines=len(found),
            groups=len(plan["group"]),
            agree=counts[AGREES],
            differ=counts[DIFFERS],
            open=counts[UNDECIDED],
        ).splitlines(),
        "",
        "| what is compared | comparisons | agree | differ | undecided |",
        "|---|--:|--:|--:|--:|",
        *(_counts(group, [line for line in found if line.group == group["id"]]) for group in plan["group"]),
        "",
    ]
    for group in plan["group"]:
        of_group = [line for line in found if line.group == group["id"]]
        parts += [f"## {group['title']}", "", group["says"].strip(), "", f"*Rule.* {group['rule']}", ""]
        parts += ["| what | evaluation | beside | difference | verdict |", "|---|--:|--:|--:|---|"]
        parts += [_row(line) for line in of_group]
        parts += ["", *_reasons(of_group, reasons), *_steps(group["id"])]
    return "\n".join(parts).rstrip() + "\n"


def _counts(group: Mapping[str, Any], found: Sequence[Line]) -> str:
    counts = judged.counted(found)
    name = f"[{group['title']}](#{_anchor(group['title'])})"
    return f"| {name} | {len(found)} | {counts[AGREES]} | {counts[DIFFERS] or ''} | {counts[UNDECIDED] or ''} |"


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_")


def _row(line: Line) -> str:
    verdict = line.verdict if line.verdict == AGREES else f"**{line.verdict}**"
    return f"| {line.says} | {text(line.here, line.kind)} | {beside(line)} | {apart(line)} | {verdict} |"


def _reasons(found: Sequence[Line], reasons: Mapping[str, str]) -> list[str]:
    """Why lines of a group do not agree: a reason once for all that it is of."""
    lines: dict[str, list[str]] = {}
    for line in found:
        if line.verdict != AGREES:
            lines.setdefault(reasons.get(line.id, "Cause unknown."), []).append(line.says)
    return [item for why, of in lines.items() for item in (f"- {'; '.join(of)}. {why.strip()}", "")]


def _steps(group: str) -> list[str]:
    """The walks of the kernel's group: what each group of keys does to the figures."""
    if group != "kernel":
        return []
    parts = [
        "### From one figure to the other, key by key",
        "",
        *WALKS.splitlines(),
        "",
    ]
    for name, walk in places.measured()["walks"].items():
        parts += [f"`{walk['of']}`, to {judged.title(name)}:", "", HEAD_OF_WALKS, "|---|--:|--:|--:|--:|"]
        for step in walk["steps"]:
            numbers = [step["numbers"][key] for key in SHOWN]
            cells = [
                text(Number(one["value"], one["half_width_95"], one["n"]), key).rpartition(" ")[0]
                for key, one in zip(SHOWN, numbers, strict=True)
            ]
            parts.append(f"| {step['step']} | {' | '.join(cells)} |")
        parts.append("")
    return parts


def wrong(found: Sequence[Line]) -> list[str]:
    """Lines that do not agree and have no reason, and reasons of lines that agree or are not there."""
    reasons = judged.reasons()
    missing = [line.id for line in found if line.verdict != AGREES and line.id not in reasons]
    verdicts = {line.id: line.verdict for line in found}
    needless = [id for id in reasons if verdicts.get(id, AGREES) == AGREES]
    return [f"{id}: {verdicts[id]}; no reason" for id in missing] + [
        f"{id}: a reason, but it agrees" for id in needless
    ]


def main(words: Sequence[str]) -> int:
    """Prints, writes, and returns the exit code."""
    found = judged.lines()
    for line in found:
        print(f"{line.verdict:9}  {line.id:70}  {text(line.here, line.kind):>22}  {beside(line):>22}  {apart(line)}")
    print(judged.counted(found))
    complaints = wrong(found)
    print("\n".join(complaints))
    if "--update-docs" in words:
        PAGE.write_text(page(), encoding="utf-8")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
