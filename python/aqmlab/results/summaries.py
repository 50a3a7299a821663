"""The summary of several independent runs: means, half widths of intervals, and what was worst in any of them."""

from collections.abc import Sequence
from typing import Any

from aqmlab.json_files import Json, is_number
from aqmlab.results import coarse
from aqmlab.statistics import half_width


def void_of(reasons: Sequence[tuple[str, str | None]]) -> str | None:
    """Why several runs together do not count: the reasons of those that are void, with their names."""
    said = [(name, reason) for name, reason in reasons if reason]
    if not said:
        return None
    return str(said[0][1]) if len(reasons) == 1 else "; ".join(f"{name}: {reason}" for name, reason in said)


LONGEST = ("max", "p999", "longest_away_s", "unread_max_s", "rate_error_worst", "waited_for_processor_worst_second_s")
"""What a live run says of its worst moment: of several runs the worst, and not their mean."""


def merge_summaries(summaries: Sequence[Json], names: Sequence[str] = ()) -> Json:
    """The means over independent runs, and under `half_width_95` half the widths of their 95 % intervals, no
    narrower than the bins that quantiles are read off.

    A number that is null in any run is null; counts by size that are null are none, unless they are in all runs; texts
    and flags are those of the first run. Of `live`, what was the worst in any run is the worst of all.
    """
    merged = _means(list(summaries))
    assert isinstance(merged, dict)
    merged["seed"] = summaries[0].get("seed")
    merged["seeds"] = [summary.get("seed") for summary in summaries]
    merged["runs"] = len(summaries)
    if merged.get("live"):
        every = [summary["live"] for summary in summaries]
        merged["live"] = _worst(every, merged["live"])
        called = names or [f"rep-{k}" for k in range(1, len(summaries) + 1)]
        merged["live"]["void"] = void_of([(name, one.get("void")) for name, one in zip(called, every, strict=True)])
    skipped = ("scenario", "seed", "seeds", "runs")
    merged["half_width_95"] = {
        key: _half_widths([summary[key] for summary in summaries], key) for key in summaries[0] if key not in skipped
    }
    if merged.get("live"):
        merged["half_width_95"]["live"] = _without_longest(merged["half_width_95"]["live"])
    return merged


def _means(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, dict):
        if not all(isinstance(value, dict) for value in values):
            return None
        return {key: _means([value.get(key) for value in values]) for key in first}
    if all(is_number(value) for value in values):
        return sum(values) / len(values)
    if any(isinstance(value, list) for value in values):  # counts by size, as far as there are any
        counts = [value or [] for value in values]
        longest = max(map(len, counts))
        return [_means([count[k] if k < len(count) else 0 for count in counts]) for k in range(longest)]
    return None if any(value is None for value in values) else first


def _worst(values: Sequence[Any], merged: Any) -> Any:
    """Puts what was longest in any run in the place of the mean."""
    if isinstance(merged, dict) and all(isinstance(value, dict) for value in values):
        return {
            key: _most([value.get(key) for value in values])
            if key in LONGEST
            else _worst([value.get(key) for value in values], item)
            for key, item in merged.items()
        }
    if isinstance(merged, list) and all(isinstance(value, list) and len(value) == len(merged) for value in values):
        return [_worst([value[k] for value in values], item) for k, item in enumerate(merged)]
    return merged


def _most(values: Sequence[Any]) -> Any:
    """The one farthest from zero; of pairs each by itself."""
    if all(isinstance(value, list) for value in values):
        return [_most(each) for each in zip(*values, strict=False)]
    return max(filter(is_number, values), key=abs, default=None)


def _without_longest(widths: Any) -> Any:
    """A worst moment has no interval."""
    if not isinstance(widths, dict):
        return widths
    return {key: None if key in LONGEST else _without_longest(item) for key, item in widths.items()}


def _half_widths(values: list[Any], name: str) -> Any:
    if isinstance(values[0], dict):
        if not all(isinstance(value, dict) for value in values):
            return None
        return {key: _half_widths([value.get(key) for value in values], f"{name}.{key}") for key in values[0]}
    if isinstance(values[0], list) and any(isinstance(value, dict) for value in values[0]):  # the links of a route
        if not all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
            return None
        return [_half_widths(list(each), name) for each in zip(*values, strict=True)]
    width = half_width(values) if all(is_number(value) for value in values) else None
    return None if width is None else max(width, coarse.widest_s(name, values))
