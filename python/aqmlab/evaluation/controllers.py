"""The scenarios of RFC 9743 with a congestion controller filled in, and those that it is held against: a study.

A controller takes the place of `tcp.cc` in every grid; blocks of traffic that name their own keep it.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from aqmlab import engine, toml_text
from aqmlab.errors import BadInput
from aqmlab.evaluation import template
from aqmlab.evaluation.template import Compared, Form
from aqmlab.json_files import Json

PREFIX = "cc:"
"""In front of a controller's name, where disciplines could stand."""
BASELINE, BASELINE_OF_CUBIC = "cubic", "reno"


@dataclass(frozen=True)
class Controller(Compared):
    """One that is evaluated, or held against the one that is."""

    form: ClassVar[Form] = template.CONTROLLERS


def controller(spec: str) -> Controller:
    """What `cc:bbr` stands for; the prefix may be left out."""
    name = spec.strip().removeprefix(PREFIX)
    try:
        engine.resolve(f'[tcp]\ncc = {toml_text.value(name)}\n[[traffic]]\nkind = "bulk"\n', PREFIX)
    except BadInput as error:  # the engine has the one list of controllers
        _, _, hint = str(error).partition("expected one of ")
        raise BadInput(f"{spec!r}: unknown congestion controller, expected one of {hint}") from None
    return Controller(name, name)


def chosen(subject: str, against: Sequence[str] | None) -> list[Controller]:
    """The controller that is evaluated, the baseline, and the others that it is held against.

    The baseline is CUBIC, and for CUBIC itself Reno.
    """
    first = controller(subject)
    baseline = controller(BASELINE_OF_CUBIC if first.name == BASELINE else BASELINE)
    others = [
        controller(spec)
        for spec in (template.template(template.CONTROLLERS)["against"] if against is None else against)
    ]
    found = [first, baseline, *(one for one in others if one not in (first, baseline))]
    for one, other in itertools.combinations(found, 2):
        if one.name == other.name:
            raise BadInput(f"--against {other.label!r}: is there twice; expected different congestion controllers")
    return found


def _grid(table: Json, rates: Mapping[str, Json], among: Sequence[Controller]) -> Json:
    """A grid with the axes of rates and of controllers."""
    names = table.pop("rates", [])
    buffers = [
        {"at": {"rate": name}, "set": {"link.qdisc.limit": rates[name]["buffer"]}}
        for name in names
        if table.get("buffer", True)
    ]
    table.pop("buffer", None)
    of_cc = [{"name": one.name, "label": one.label, "set": {"tcp.cc": one.name}} for one in among]
    axis = [*template.axis_of_rates(names, rates), *table.get("axis", []), {"name": "cc", "value": of_cc}]
    return {**table, "axis": axis, "cell": [*buffers, *table.get("cell", [])]}


study = partial(template.study, chosen, _grid)
"""The evaluation of a congestion controller as a study: see `template.study`."""
