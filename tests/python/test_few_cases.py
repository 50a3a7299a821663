"""A share without an interval has no more digits than its cases are worth."""

import math

import pytest

from aqmlab.results import readable
from aqmlab.statistics import Interval


def of(value: float, n: int = 1, half_width: float | None = None) -> Interval:
    return Interval(value, half_width, n, "runs")


@pytest.mark.parametrize(
    ("interval", "cases", "said"),
    [
        (of(4 / 7), 7, ("4 of 7", "")),
        (of(0.0), 19, ("0 of 19", "")),
        (of(4 / 7), 20, ("57", "")),
        (of(4 / 7, n=5), 7, ("57", "")),  # a mean over runs is no share of whole cases
        (of(0.5714), 999, ("57", "")),
        (of(0.5714), 1000, ("57.14", "")),
        (of(0.5714, n=5, half_width=0.021), 7, ("57.1", "± 2.1")),
        (of(math.nan), 0, ("–", "")),
    ],
)
def test_a_share_of_few_cases_has_no_decimals(interval: Interval, cases: float, said: tuple[str, str]) -> None:
    assert readable.of_cases(interval, "share", cases) == said
    if " of " in said[0]:
        assert readable.of_cases(interval, "share", cases, is_counted=False)[0] == f"{100 * interval.value:.0f}"


def test_times_are_as_everywhere() -> None:
    assert readable.of_cases(of(0.1234), "s", 7) == readable.with_width(of(0.1234), "s")
