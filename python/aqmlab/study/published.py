"""The numbers that a study's paper has, once and in a table, and what came out beside them at one scale."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from aqmlab.claims.reading import ClaimText
from aqmlab.claims.verdict import scale_of
from aqmlab.json_files import Json
from aqmlab.study import found
from aqmlab.study.definition import Study

NOT_THERE = "not run at this scale"
_NO_BEDS: Mapping[str, Mapping[str, Json]] = MappingProxyType({})


def markdown(study: Study, scales: Mapping[str, Json], beds: Mapping[str, Mapping[str, Json]] = _NO_BEDS) -> str:
    """The table; empty for a paper without numbers.

    All of ours are of one scale: the first of these at which any of the numbers was asked. `beds` are the scales of
    test beds, by their titles; each has a column.
    """
    asked = [(text, numbers) for text in study.claims if (numbers := _numbers(text))]
    if not asked:
        return ""
    ours = {name: {text.id: _ours(text, scale) for text, _ in asked} for name, scale in scales.items()}
    scale = next((name for name in scales if any(ours[name].values())), None)
    columns = [("ours", {} if scale is None else ours[scale])]
    for title, of_bed in beds.items():
        there = {text.id: _ours(text, of_bed[scale]) for text, _ in asked if scale is not None and scale in of_bed}
        columns.append((title, there))
    heads = ["number of", "published", *(title for title, _ in columns), "claim"]
    lines = [
        f"The numbers that the paper's text has, and ours{f' at the scale {scale}' if scale else ''}:\n",
        f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}",
    ]
    for text, numbers in asked:
        here = ["<br>".join(one_column.get(text.id, [])) or NOT_THERE for _, one_column in columns]
        cells = (text.number_of.replace("|", "\\|"), " and ".join(numbers), *here, text.id)
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
