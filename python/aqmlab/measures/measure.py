"""A measure, its parameters, and a measure with its parameters given.

A measure is a number of one run, and where the run's window says so, the same number of each of its parts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from aqmlab.links import WAYS
from aqmlab.measures.subject import Seen, Subject, runs_of
from aqmlab.results import coarse
from aqmlab.results.defined import asked
from aqmlab.statistics import Array, Interval, across_runs, estimate

Params = Mapping[str, Any]
Whole = Callable[[Seen], float]
Parts = Callable[[Seen], Array]


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure."""

    name: str
    says: str
    """What it is, in words for a complaint: `seconds above 0`."""
    fits: Callable[[Any], bool]
    default: Any = None
    is_needed: bool = False


@dataclass(frozen=True)
class Formula:
    """How a measure with given parameters is computed, and what it is called then."""

    whole: Whole
    parts: Parts | None
    words: str
    """`share of exchanges done within 0.5 s`."""
    brief: str
    """In front of a finding, to tell it from those of other measures: `within 0.5 s`."""
    resolution: Whole | None = None
    """How far apart two numbers are at least that it can tell apart; none where nothing but rounding sets that."""


@dataclass(frozen=True)
class Measure:
    """How a measure of the catalogue is worked out of results."""

    name: str
    parameters: tuple[Parameter, ...]
    formula: Callable[[Params], Formula]
    """Raises `ValueError`, with what was expected, for parameters that do not go together."""
    is_exact: bool = False
    """Whether it is read off the scenario, so that no seed changes it: what is measured and the same in every run may
    be so by chance."""
    of_exchanges: bool = False
    """Whether there is no such number where no exchange is completed."""

    @property
    def title(self) -> str:
        """For the head of a column."""
        return asked()[self.name].title

    @property
    def unit(self) -> str:
        """In which its values are shown, a key of `verdict.UNITS`."""
        return asked()[self.name].shown


@dataclass(frozen=True)
class Reading:
    """A measure with its parameters."""

    measure: Measure
    given: tuple[tuple[str, Any], ...]
    formula: Formula = field(compare=False, repr=False)

    @property
    def title(self) -> str:
        """For the head of a column."""
        return self.measure.title if not self.given else self.formula.brief

    @property
    def unit(self) -> str:
        """The unit of its values."""
        return self.measure.unit

    def values(self, subject: Subject) -> list[float]:
        """One number a run."""
        return [self.formula.whole(seen) for seen in runs_of(subject)]

    def resolution(self, subject: Subject) -> float:
        """How far apart two of its values are at least that can be told apart: the widest over the runs."""
        if self.formula.resolution is None:
            return 0.0
        return max(self.formula.resolution(seen) for seen in runs_of(subject))

    def parts(self, subject: Subject) -> list[Array] | None:
        """The numbers of each run's parts, where they have such."""
        if self.formula.parts is None:
            return None
        return [seen.window.trusted(self.formula.parts(seen)) for seen in runs_of(subject)]

    def estimate(self, subject: Subject) -> Interval:
        """The mean over the runs, with the best interval that they allow: no finer than what it can tell apart."""
        values, parts = self.values(subject), self.parts(subject)
        found = across_runs(values) if parts is None else estimate(values, parts)
        return coarse.no_finer(found, self.resolution(subject))


def choice(name: str, words: Sequence[str], default: str) -> Parameter:
    """A parameter that is one of some words."""
    return Parameter(name, f"one of {', '.join(words)}", lambda item: item in words, default)


def needed(parameter: Parameter) -> Parameter:
    """The parameter without a default."""
    return replace(parameter, is_needed=True)


LINK = Parameter("link", "the name of a link", lambda item: isinstance(item, str) and bool(item), "")
"""Of measures of a link; without it that is the first."""


def at_link(formula: Callable[[Params], Formula]) -> Callable[[Params], Formula]:
    """The formula, for the link that the parameters name."""

    def of_link(params: Params) -> Formula:
        link, found = params[LINK.name], formula(params)
        if not link:
            return found

        def whole(seen: Seen) -> float:
            own = seen.at(link)
            return float("nan") if own is None else found.whole(own)

        def parts(seen: Seen) -> Array:
            own = seen.at(link)
            none = np.full(seen.window.completed.size, np.nan)
            return none if own is None or found.parts is None else found.parts(own)

        def resolution(seen: Seen) -> float:
            own = seen.at(link)
            return 0.0 if own is None or found.resolution is None else found.resolution(own)

        words, brief = f"{found.words}, at {link}", f"{found.brief}, {link}"
        none_or_parts = None if found.parts is None else parts
        return Formula(whole, none_or_parts, words, brief, None if found.resolution is None else resolution)

    return of_link


BOTH = "both"
WINDOW_WAY = choice("direction", (*WAYS, BOTH), BOTH)
"""Of measures that are sums over both directions unless one is named."""
ONE_WAY = choice("direction", WAYS, "forward")
"""Of measures that one direction has by itself."""
