"""Axes of a grid: their values, written out as tables or in short as one key and what it is set to."""

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from aqmlab import near, scenario, units
from aqmlab.errors import BadInput, shown
from aqmlab.json_files import is_number
from aqmlab.sweep import layers

AXIS_KEYS = ("name", "title", "value", "key", "values", "names", "labels", "zip")
VALUE_KEYS = ("name", "label", "number", "uncongested", "uncongested_rate", "set")
NAME = re.compile(r"[a-z0-9][a-z0-9._+%-]*")
AXIS_NAME = re.compile(r"[a-z][a-z0-9_]*")
RESERVED = (
    *("grid", "label", "point", "seed", "measured_s", "self_checks_hold", "self_checks_failed"),
    *("calibration_seed", "calibration_window_error", "asked_load_bps", "offered_load_bps"),
    *("findings", "routes"),
    *("demand_digest", "digest", "wall_s", "cpu_s", "peak_rss_bytes"),
)
"""What no axis may be called: selectors and tables of runs have something else under these names."""

ONE_SET_OF_SEEDS = "all points of a grid run under the same seeds; expected seeds of the file, or of the grid"
"""What is said of a seed on an axis or in a cell."""

SECTIONS = ("applications", "exchanges", "forward", "frames", "links", "probes", "reverse", "tcp", "udp")
"""Of what is found: a name that goes on from one of these with _ is a column of it."""
OF_BLOCK = re.compile(r"traffic_\d")
"""What columns of a block of traffic begin with."""


@dataclass(frozen=True)
class Value:
    """One place on an axis."""

    name: str
    """Short and stable: what selectors say."""
    label: str
    """What people read."""
    number: float | None = None
    """What it is as a number, where all values of its axis are numbers of one unit."""
    change: Mapping[str, Any] = field(default_factory=dict)
    """Tables laid over the scenario."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys set after that."""
    uncongested: bool = False
    uncongested_rate: str | None = None

    @cached_property
    def said(self) -> layers.Said:
        """What it sets, told once for all points that have it."""
        return layers.said(self.change, self.settings)


@dataclass(frozen=True)
class Axis:
    """What a grid varies."""

    name: str
    title: str
    values: tuple[Value, ...]
    unit: str | None = None
    """Of its numbers: `bit/s`, `s`, `packets`, `bytes`, `%`, or nothing for plain ones; None: they are no numbers."""
    zipped: str | None = None


def read(table: Mapping[str, Any], where: str) -> Axis:
    """Reads a `[[grid.axis]]` table."""
    known(table, AXIS_KEYS, where)
    name = table.get("name")
    if not isinstance(name, str) or not AXIS_NAME.fullmatch(name):
        raise BadInput(f'{where}.name: {shown(name)}expected small letters, digits and _, as in name = "aqm"')
    of_section = name.startswith(tuple(f"{each}_" for each in SECTIONS)) or OF_BLOCK.match(name)
    if name in RESERVED or name.endswith("_number") or of_section:
        raise BadInput(
            f"{where}.name: {name!r}: is what a column of runs.parquet is called; expected another name, "
            f"and none that ends in _number or goes on from {', '.join(SECTIONS)} with _, or from traffic_ with digits"
        )
    zipped = table.get("zip")
    if zipped is not None and not isinstance(zipped, str):
        raise BadInput(f'{where}.zip: {zipped!r}: expected a word that zipped axes share, as in zip = "A"')
    where = f"{where} ({name})"
    if ("value" in table) == ("values" in table):
        raise BadInput(f"{where}: expected either [[grid.axis.value]] tables, or key and values")
    values, texts = _written(table, where) if "value" in table else _short(table, where)
    all_different([value.name for value in values], where)
    values, unit = _with_numbers(values, texts)
    return Axis(name, str(table.get("title", name)), tuple(values), unit, zipped)


def _written(table: Mapping[str, Any], where: str) -> tuple[list[Value], list[str]]:
    for key in ("key", "names", "labels"):
        if key in table:
            raise BadInput(f"{where}.{key}: {table[key]!r}: expected only beside values, not beside value")
    rows = tables(table, "value", where)
    if not rows:
        raise BadInput(f"{where}.value: empty; expected one or more")
    values = [_value(row, f"{where}.value.{k}") for k, row in enumerate(rows)]
    return values, [value.name for value in values]


def _value(table: Mapping[str, Any], where: str) -> Value:
    name = check_name(table.get("name"), f"{where}.name")
    where = f"{where} ({name})"
    settings, uncongested, number = table.get("set", {}), table.get("uncongested", False), table.get("number")
    if not isinstance(settings, Mapping):
        raise BadInput(f'{where}.set: {settings!r}: expected a table, as in set = {{ "tcp.ecn" = "on" }}')
    if not isinstance(uncongested, bool):
        raise BadInput(f"{where}.uncongested: {uncongested!r}: expected true or false")
    if number is not None and not (is_number(number) and abs(number) <= sys.float_info.max):
        raise BadInput(f"{where}.number: {number!r}: expected a finite number")
    change = scenario.in_tables({key: item for key, item in table.items() if key not in VALUE_KEYS})
    check_no_seed(change, where)
    check_no_seed(settings, f"{where}.set")
    return Value(
        name=name,
        label=check_text(table.get("label", name), f"{where}.label"),
        number=None if number is None else float(number),
        change=change,
        settings=scenario.with_tables(settings),
        uncongested=uncongested,
        uncongested_rate=check_rate(table.get("uncongested_rate"), f"{where}.uncongested_rate"),
    )


def _short(table: Mapping[str, Any], where: str) -> tuple[list[Value], list[str]]:
    key, given = table.get("key"), table["values"]
    if not isinstance(key, str) or not key:
        raise BadInput(f'{where}.key: {shown(key)}expected a dotted key, as in key = "traffic.0.load"')
    if key == "seed":
        raise BadInput(f"{where}.key: {key!r}: {ONE_SET_OF_SEEDS}")
    if not isinstance(given, list) or not given:
        raise BadInput(
            f'{where}.values: {given!r}: expected a list of one or more, as in values = ["90mbit", "98mbit"]'
        )
    texts = [value_text(item) for item in given]
    names = _beside(table, "names", [text.lower() for text in texts], where)
    labels = _beside(table, "labels", names if "names" in table else texts, where)
    values = []
    for k, (item, name, label) in enumerate(zip(given, names, labels, strict=True)):
        if "names" not in table and not NAME.fullmatch(name):
            raise BadInput(
                f"{where}.values.{k}: {item!r}: cannot be a name; expected names beside values, of small letters, "
                "digits and . _ + % -"
            )
        named = check_name(name, f"{where}.names.{k}")
        settings = scenario.with_tables({key: item})
        values.append(Value(named, check_text(label, f"{where}.labels.{k}"), settings=settings))
    return values, texts


def _beside(table: Mapping[str, Any], key: str, otherwise: list[str], where: str) -> list[Any]:
    given = table.get(key, otherwise)
    if not isinstance(given, list) or len(given) != len(otherwise):
        raise BadInput(f"{where}.{key}: {given!r}: expected a list as long as values, {len(otherwise)}")
    return given


def _with_numbers(values: list[Value], texts: Sequence[str]) -> tuple[list[Value], str | None]:
    """Numbers given explicitly; or else, where every text is a quantity of the same unit, those."""
    if any(value.number is not None for value in values):
        return values, ""
    read_off = [units.quantity(text) for text in texts]
    found = [one for one in read_off if one is not None and math.isfinite(one[0])]
    if len(found) < len(values) or len({unit for _, unit in found}) != 1:
        return values, None
    return [replace(v, number=number) for v, (number, _) in zip(values, found, strict=True)], found[0][1]


def value_text(item: Any) -> str:
    """A value as its name: `98`, `0.5`, `true`, `90mbit`."""
    return str(item).lower() if isinstance(item, bool) else f"{item:.12g}" if isinstance(item, float) else str(item)


def said_unit(unit: str) -> str:
    """A unit in a complaint."""
    return f"in {unit}" if unit else "plain numbers"


def known(table: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    """Refuses a key that is none of `keys`."""
    for key in table:
        if key not in keys:
            value = "" if isinstance(table[key], Mapping | list) else f" {table[key]!r}:"  # tables are long
            raise BadInput(f"{where}: {key}:{value} unknown key; {near.expected(key, keys)}")


def tables(table: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """A list of tables, which may be missing."""
    given = table.get(key, [])
    if not isinstance(given, list) or not all(isinstance(item, Mapping) for item in given):
        raise BadInput(f"{where}.{key}: {given!r}: expected a list of tables, as [[grid.{key}]] makes them")
    return given


def check_name(name: Any, where: str) -> str:
    """A name that can stand in a point's name."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadInput(f"{where}: {shown(name)}expected a name of small letters, digits and . _ + % - only")
    return name


def check_text(text: Any, where: str) -> str:
    """A text that says something."""
    if not isinstance(text, str) or not text.strip():
        raise BadInput(f"{where}: {shown(text)}expected a text")
    return text


def check_no_seed(said: Mapping[str, Any], where: str) -> None:
    """Refuses a seed among what a value or a cell sets, where it would do nothing."""
    if "seed" in said:
        raise BadInput(f"{where}.seed: {said['seed']!r}: {ONE_SET_OF_SEEDS}")


def check_rate(text: Any, where: str) -> str | None:
    """A rate, or nothing."""
    if text is not None and units.rate_bps(text, where) <= 0:
        raise BadInput(f"{where}: {text!r}: expected a rate above zero")
    return None if text is None else str(text)


def all_different(names: Sequence[str], where: str) -> None:
    """Refuses a name that is there twice."""
    for k, name in enumerate(names):
        if name in names[:k]:
            raise BadInput(f"{where}: name: {name!r} twice; expected different names")
