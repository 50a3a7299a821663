"""What the evaluations after RFCs have in common: the form of each, its grids and requirements as a file has them, and
the figures, tables and measures that follow from a requirement.

`rfc7928.toml` is for disciplines, `rfc9743.toml` for congestion controllers; both leave out the axis of what is
compared.
"""

import copy
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from aqmlab import files, scenario, toml_text
from aqmlab.json_files import Json
from aqmlab.study import definition
from aqmlab.study.definition import FULL, QUICK, Study

GOODPUT = "goodput_bps"
DELAY: Json = {"measure": "queue_delay_mean_s", "direction": "forward", "title": "delay, mean"}
MEASURES: tuple[Json, ...] = (
    DELAY,
    {"measure": "queue_delay_quantile_s", "q": 0.99, "direction": "forward", "title": "delay, 99 %"},
    {"measure": "loss_ratio", "direction": "forward", "title": "loss"},
)
"""Of every requirement, after its goodput and before its own."""


@dataclass(frozen=True)
class Form:
    """What is evaluated, and after which RFC."""

    rfc: str
    kind: str
    """`discipline` or `controller`."""
    file: Path
    axis: str
    """The axis of every grid on which they stand."""
    beside: str
    """The key of a requirement's counts beside the baseline."""

    @property
    def kinds(self) -> str:
        """The plural, the key of a case's rows."""
        return f"{self.kind}s"


DISCIPLINES = Form("RFC 7928", "discipline", Path(__file__).with_name("rfc7928.toml"), "aqm", "beside_drop_tail")
CONTROLLERS = Form("RFC 9743", "controller", Path(__file__).with_name("rfc9743.toml"), "cc", "beside_baseline")
FORMS = {form.kinds: form for form in (DISCIPLINES, CONTROLLERS)}


@dataclass(frozen=True)
class Compared:
    """One that is evaluated, or held against the one that is."""

    name: str
    """Its value on the axis: `pie-target-5ms`."""
    label: str
    form: ClassVar[Form]

    @property
    def unmarked(self) -> str:
        """What is to be said where it cannot be compared with ECN; nothing where it can."""
        return ""


@cache
def template(form: Form = DISCIPLINES) -> Json:
    """The tables of its file."""
    return toml_text.read(form.file, files.STUDY)


C = TypeVar("C", bound=Compared)


def study(
    chosen: Callable[[str, Sequence[str] | None], list[C]],
    grid: Callable[[Json, Mapping[str, Json], Sequence[C]], Json | None],
    folder: Path,
    subject: str,
    against: Sequence[str] | None = None,
    *,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
) -> Study:
    """The evaluation of what `subject` says, beside what `against` says, as a study whose results go to `folder`.

    `chosen` says what is compared, the evaluated one first; `grid` completes a grid of the file for these, as in
    `filled`.
    """
    among = chosen(subject, against)
    return definition.of_tree(
        folder,
        filled(among[0], lambda table, rates: grid(table, rates, among)),
        QUICK if quick else FULL,
        seeds,
        only,
        asked_as=command(subject, against),
    )


def command(subject: str, against: Sequence[str] | None) -> str:
    """What evaluates it in full."""
    beside = [] if against is None else ["--against", ",".join(against)]
    return shlex.join(["aqmlab", "evaluate", subject, *beside])


def filled(subject: Compared, fill: Callable[[Json, Mapping[str, Json]], Json | None]) -> Json:
    """The tables of the study: grids that `fill` completes, a figure and a table for each requirement.

    `fill` takes a grid of the file and the rates, and gives nothing where there is nothing to run in it.
    """
    form = subject.form
    tree = copy.deepcopy(template(form))
    rates, requirements = tree.pop("rates"), tree.pop("requirement")
    tree.pop("question")
    tree.pop("against", None)
    tree.pop("scaling", None)
    found = [fill(table, rates) for table in tree["grid"]]
    grids = {grid["name"]: grid for grid in found if grid is not None}
    shown = [one for one in requirements if one.get("grid") in grids]
    return {
        **tree,
        "id": f"{tree['id']}-{subject.name}",
        "title": f"{subject.label} after {form.rfc}",
        # Words may say a default, or what another grid asks for: the grids are ours, and nobody could leave a run out.
        "grid": [{**grid, "same": True} for grid in grids.values()],
        "figure": [_figure(one, grids[one["grid"]], form) for one in shown if not one.get("is_again")],
        "table": [_table(one) for one in shown],
    }


def id_of(requirement: Mapping[str, Any]) -> str:
    """What its figure and table are called."""
    return scenario.slug(str(requirement["section"]))


def _figure(requirement: Json, grid: Json, form: Form) -> Json:
    axes = [axis["name"] for axis in grid["axis"]]
    along = [name for name in axes if name not in ("rate", form.axis, "ecn")]
    return {
        "id": id_of(requirement),
        "title": f"{requirement['section']}: {requirement['title']}",
        "kind": "tradeoff",
        "curves": [{"grid": grid["name"]}],
        **({"panels": "rate"} if "rate" in axes else {}),
        **({"along": along[0]} if along else {}),
        **({"link": requirement["link"]} if "link" in requirement else {}),
        **({"y": requirement["goodput"]} if "goodput" in requirement else {}),
    }


def _table(requirement: Json) -> Json:
    return {
        "id": id_of(requirement),
        "title": f"{requirement['section']}: {requirement['title']}",
        "rows": [{"grid": requirement["grid"]}],
        "measures": [
            goodput_of(requirement),
            *_at(requirement, MEASURES),
            *([also] if "quotient" not in (also := requirement.get("also", {})) and also else []),
            *requirement.get("measures", []),
        ],
    }


def delay_of(requirement: Mapping[str, Any]) -> Json:
    """The measure of the delay at the link that is meant."""
    (found,) = _at(requirement, [DELAY])
    return found


def _at(requirement: Mapping[str, Any], measures: Sequence[Json]) -> list[Json]:
    link = {"link": requirement["link"]} if "link" in requirement else {}
    return [{**one, **link} for one in measures]


def goodput_of(requirement: Mapping[str, Any]) -> Json:
    """The measure of what comes through; that of what the link sends where all of it is UDP, or one of its own."""
    name = requirement.get("goodput", GOODPUT)
    if isinstance(name, Mapping):
        return dict(name)
    return {"measure": name, "direction": "forward", "title": "goodput" if name == GOODPUT else "throughput"}


def axis_of_rates(names: Sequence[str], rates: Mapping[str, Json]) -> list[Json]:
    """The axis `rate` of a grid that is run at these rates; no axis where it names none."""
    values = [{"name": name, "label": rates[name]["label"], "set": rates[name]["set"]} for name in names]
    return [{"name": "rate", "value": values}] if values else []
