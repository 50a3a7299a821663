"""The numbers that a study's paper has, once and in a table, and what came out beside them at one scale."""

from collections.abc import Mapping
from typing import Any

from aqmlab.claims.reading import ClaimText
from aqmlab.claims.verdict import scale_of
from aqmlab.json_files import Json
from aqmlab.study import found
from aqmlab.study.definition import Study

NOT_THERE = "not run at this scale"


def markdown(study: Study, scales: Mapping[str, Json]) -> str:
    """The table; empty for a paper without numbers.

    All of ours are of one scale: the first of these at which any of the numbers was asked.
    """
    asked = [(text, numbers) for text in study.claims if (numbers := _numbers(text))]
    if not asked:
        return ""
    ours = {name: {text.id: _ours(text, scale) for text, _ in asked} for name, scale in scales.items()}
    scale = next((name for name in scales if any(ours[name].values())), None)
    lines = [
        f"The numbers that the paper's text has, and ours{f' at the scale {scale}' if scale else ''}:\n",
        "| number of | published | ours | claim |\n|---|---|---|---|",
    ]
    for text, numbers in asked:
        here = [] if scale is None else ours[scale][text.id]
        cells = (text.says.replace("|", "\\|"), " and ".join(numbers), "<br>".join(here) or NOT_THERE, text.id)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _numbers(text: ClaimText) -> list[str]:
    """The published numbers of a claim, each once."""
    given = dict.fromkeys((q.published, q.unit) for q in text.questions if q.published is not None)
    return [f"{scale_of(unit) * value:,.10g} {unit}".rstrip() for value, unit in given]


def _ours(text: ClaimText, scale: Json) -> list[str]:
    """The findings that have a published number, of the claim that is asked now."""
    answer: dict[str, Any] = scale["claims"].get(text.id) or {}
    if answer.get("digest") != text.digest:
        return []
    ran = found.asked(answer)
    return [
        f"{one['label']}: {one['number']}".replace("|", "\\|")
        for one in answer["findings"]
        if one.get("published_number") and one["label"] in ran
    ]
