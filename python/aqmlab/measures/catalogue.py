"""The catalogue of measures, and measures as claims, figures and tables write them.

One is written as a table: its name under `measure`, its parameters beside it.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from aqmlab import near
from aqmlab.errors import BadInput
from aqmlab.measures import link, recorded, responses, sizes
from aqmlab.measures.measure import Measure, Parameter, Reading


def catalogue() -> dict[str, Measure]:
    """Every measure by its name."""
    every = (*responses.MEASURES, *link.MEASURES, *recorded.MEASURES, *sizes.MEASURES)
    return {measure.name: measure for measure in every}


def read(table: Mapping[str, Any], where: str, others: Sequence[str] = ()) -> list[Reading]:
    """The measures that a table names: several if a parameter is a list. `others` are keys of somebody else."""
    known = catalogue()
    name = table.get("measure")
    if not isinstance(name, str) or name not in known:
        raise BadInput(f"{where}: measure: {name!r}: {near.expected(name, known)}")
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
