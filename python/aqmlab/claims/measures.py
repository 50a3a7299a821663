"""What is measured: the catalogue of measures that claims, figures and tables name, and a measure with its parameters.

A measure is a number of one run, and where the run's window says so, the same number of each of its parts. It is
written as a table: its name under `measure`, its parameters beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from aqmlab.claims.subject import Seen, Subject, runs_of
from aqmlab.errors import BadInput
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


@dataclass(frozen=True)
class Measure:
    """A row of the catalogue."""

    name: str
    title: str
    """For the head of a column."""
    unit: str
    """Of its values, a key of `verdict.UNITS`."""
    parameters: tuple[Parameter, ...]
    formula: Callable[[Params], Formula]
    """Raises `ValueError`, with what was expected, for parameters that do not go together."""
    is_exact: bool = False
    """Whether it is read off the scenario, so that no seed changes it: what is measured and the same in every run may
    be so by chance."""


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
        """Of its values."""
        return self.measure.unit

    def values(self, subject: Subject) -> list[float]:
        """One number a run."""
        return [self.formula.whole(seen) for seen in runs_of(subject)]

    def parts(self, subject: Subject) -> list[Array] | None:
        """The numbers of each run's parts, where they have such."""
        if self.formula.parts is None:
            return None
        return [seen.window.trusted(self.formula.parts(seen)) for seen in runs_of(subject)]

    def estimate(self, subject: Subject) -> Interval:
        """The mean over the runs, with the best interval that they allow."""
        values, parts = self.values(subject), self.parts(subject)
        if parts is None:
            return across_runs(values)
        return estimate(values, parts)


def catalogue() -> dict[str, Measure]:
    """Every measure by its name."""
    from aqmlab.claims import link, recorded, responses, sizes

    every = (*responses.MEASURES, *link.MEASURES, *recorded.MEASURES, *sizes.MEASURES)
    return {measure.name: measure for measure in every}


def read(table: Mapping[str, Any], where: str, others: Sequence[str] = ()) -> list[Reading]:
    """The measures that a table names: several if a parameter is a list. `others` are keys of somebody else."""
    known = catalogue()
    name = table.get("measure")
    if not isinstance(name, str) or name not in known:
        raise BadInput(f"{where}: measure: {name!r}: expected one of {', '.join(known)}")
    measure = known[name]
    accepted = {parameter.name: parameter for parameter in measure.parameters}
    for key in table:
        if key not in accepted and key not in ("measure", *others):
            expected = ", ".join([*accepted, *others]) or "none"
            raise BadInput(f"{where}: {key}: {table[key]!r}: unknown key; expected for {name} one of {expected}")
    given = {key: table[key] for key in accepted if key in table}
    choices = [[(key, one) for one in (item if isinstance(item, list) else [item])] for key, item in given.items()]
    if any(not choice for choice in choices):
        empty = next(key for key, item in given.items() if item == [])
        raise BadInput(f"{where}: {empty}: []: expected {accepted[empty].says}")
    return [_with(measure, accepted, dict(chosen), where) for chosen in product(*choices)]


def named(name: str) -> Reading:
    """A measure that needs no parameter, by its name."""
    return read({"measure": name}, name)[0]


def _with(measure: Measure, accepted: Mapping[str, Parameter], given: dict[str, Any], where: str) -> Reading:
    for key, item in given.items():
        if not accepted[key].fits(item):
            raise BadInput(f"{where}: {key}: {item!r}: expected {accepted[key].says}")
    missing = [parameter for parameter in accepted.values() if parameter.is_needed and parameter.name not in given]
    if missing:
        raise BadInput(f"{where}: {missing[0].name}: missing; expected {missing[0].says}")
    complete = {parameter.name: given.get(parameter.name, parameter.default) for parameter in accepted.values()}
    try:
        formula = measure.formula(complete)
    except ValueError as error:
        raise BadInput(f"{where}: measure: {measure.name!r}: {error}") from None
    return Reading(measure, tuple(given.items()), formula)


def is_number(item: Any) -> bool:
    """A number, and no truth value."""
    return isinstance(item, int | float) and not isinstance(item, bool)


def choice(name: str, words: Sequence[str], default: str) -> Parameter:
    """A parameter that is one of some words."""
    return Parameter(name, f"one of {', '.join(words)}", lambda item: item in words, default)


def needed(parameter: Parameter) -> Parameter:
    """The same without a default."""
    return replace(parameter, is_needed=True)


BOTH, WAYS = "both", ("forward", "reverse")
WINDOW_WAY = choice("direction", (*WAYS, BOTH), BOTH)
"""Of measures that are sums over both directions unless one is named."""
ONE_WAY = choice("direction", WAYS, "forward")
"""Of measures that one direction has by itself."""
