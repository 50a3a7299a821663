"""Quantities as text: the same numbers as the engine reads."""

import re
from math import nan

import pytest

from aqmlab import units
from aqmlab.errors import BadInput
from aqmlab.results import readable
from aqmlab.statistics import Interval
from conftest import ROOT

ENGINE = (ROOT / "crates/scenario/src/units.rs").read_text(encoding="utf-8")


def table(name):
    """A table of units of the engine: name -> factor."""
    (body,) = re.findall(rf"const {name}: .*? = \[(.*?)\];", ENGINE, re.DOTALL)
    return {unit: float(factor.replace("_", "")) for unit, factor in re.findall(r'\("(\w+)", ([0-9._e]+)\)', body)}


@pytest.mark.parametrize(
    ("name", "unit", "turn"),
    [
        ("BITS", "bit/s", float),
        ("BYTES", "bytes", float),
        ("HERTZ", "Hz", float),
        ("PER_SECOND", "s", lambda factor: 1 / factor),
        ("SECONDS", "s", float),
    ],
)
def test_units_are_those_of_the_engine(name, unit, turn):
    found = table(name)
    assert found
    for text, factor in found.items():
        assert units.quantity(f"3{text}") == (pytest.approx(3 * turn(factor), rel=1e-15), unit), text
        assert units.quantity(f"3 {text.upper()}") == units.quantity(f"3{text}")


def test_bytes_a_second_are_refused_with_the_reason_of_the_engine():
    (body,) = re.findall(r"const BYTES_A_SECOND: .*? = \[(.*?)\];", ENGINE, re.DOTALL)
    found = re.findall(r'\("(\w+)", "(\w+)", "(\w+)"\)', body)
    assert len(found) == 4
    for unit, given, meant in found:
        with pytest.raises(BadInput, match=f"; tc reads {unit} as {given} a second: write {meant} for bits$"):
            units.rate_bps(f"50{unit.upper()}", "--down")


def test_what_has_no_unit_of_the_engine_or_is_none():
    assert units.quantity("24p") == (24, "packets")
    assert units.quantity("16kb") == (16_384, "bytes")
    assert units.quantity("90%") == (90, "%")
    assert units.quantity("-0.5") == (-0.5, "")
    for text in ("pi", "", "5 parsec", "1..0mbit"):
        assert units.quantity(text) is None


def test_quantities_to_be_read():
    assert [units.say_rate(bps) for bps in (98.02e6, 4300, 0.25, 2.9e-11, 0)] == [
        *("98.02 Mb/s", "4.3 kb/s", "0.25 b/s", "0 b/s", "0 b/s"),
    ]
    assert [units.say_hours(hours) for hours in (1234, 3.2, 0.24, 0.00295)] == ["1,234 h", "3.2 h", "14.4 min", "11 s"]
    assert [units.say_share(share, *how) for share, *how in ((0.5,), (0.0015, 2, True), (-0.0015, 2, True))] == [
        *("50 %", "+0.15 %", "−0.15 %"),
    ]


def test_a_rate_that_is_next_to_nothing_in_its_column_has_the_decimals_it_needs():
    said = [readable.with_width(Interval(*one, 3, "runs"), "Gb/s") for one in ((3e5, 1e5), (9e5, 2e4), (2e9, 1e5))]
    assert said == [("0.00030", "± 0.00010"), ("0.000900", "± 0.000020"), ("2.000", "± 0.000")]
    assert [readable.say(bps, "Gb/s") for bps in (4e4, 9.4e9, 0.0)] == ["0.000040", "9.4", "0"]


def test_a_difference_can_be_as_far_to_either_side_as_its_numbers():
    wide = Interval(0.9, 0.55, 3, "runs")
    assert readable.with_width(wide, "share", signed=True) == ("+90", "± 55")
    assert readable.with_width(wide, "share") == ("90", readable.TOO_FEW)


@pytest.mark.parametrize(
    ("bps", "width", "signed", "said"),
    [
        (37.84e6, 174.4e3, False, ("37.84", "± 0.17 Mb/s")),
        (9.215e6, 5.922e6, False, ("9.2", "± 5.9 Mb/s")),
        (4e6, 1448.0, False, ("4.000", "± 0.001 Mb/s")),
        (2445e3, 12.0, True, ("+2.445", "± 0.000 Mb/s")),
        (-3e3, 1.2e6, True, ("0.0", "± 1.2 Mb/s")),
        (-2.4e6, 1.2e6, True, ("−2.4", "± 1.2 Mb/s")),
        (398.1e3, 407.5e3, False, ("398", "± 408 kb/s")),
        (5e6, 0.0, False, ("5.000", "± 0.000 Mb/s")),
        (5e6, None, True, ("+5 Mb/s", "")),
    ],
)
def test_a_rate_and_its_width_are_in_one_unit(bps, width, signed, said):
    assert readable.with_width(Interval(bps, width, 3, "runs"), "bps", signed) == said


def test_times_below_a_tenth_of_a_millisecond_have_three_decimals():
    assert [readable.say(time, "s") for time in (4.35e-6, 98.7e-6, 0.000123, 0.0)] == [
        "0.004",
        "0.099",
        "0.123",
        "0.000",
    ]
    assert readable.say(4.4e-6, "s", signed=True) == "+0.004" and readable.say(4e-7, "s", signed=True) == "0.000"


@pytest.mark.parametrize(
    ("time", "width", "said"),
    [
        (0.123456, 0.0123, ("123", "± 12")),
        (0.123456, 0.00123, ("123.5", "± 1.2")),
        (0.000964, 0.000123, ("0.96", "± 0.12")),
        (0.000964, 23e-6, ("0.964", "± 0.023")),
        (0.000964, 4e-6, ("0.964", "± 0.004")),
        (4e-6, 1e-6, ("+0.004", "± 0.001")),
        (-3e-6, 1e-6, ("−0.003", "± 0.001")),
        (4.2e-7, 1.4e-7, ("+0.0004", "± 0.0001")),
        (4e-6, 0.0003, ("0.00", "± 0.30")),
        (0.0123, 0.0, ("+12.30", "± 0.00")),
        (4e-6, 0.0, ("+0.004", "± 0.000")),
        (0.0123, 2e-17, ("+12.30", "± 0.00")),
    ],
)
def test_a_time_has_as_many_decimals_as_its_width_is_worth(time, width, said):
    found = readable.with_width(Interval(time, width, 3, "runs"), "s", signed=said[0].startswith(("+", "−")))
    assert found == said


@pytest.mark.parametrize(
    ("value", "width", "unit", "said"),
    [
        (0.9741, 0.0012, "share", ("97.41", "± 0.12")),
        # Packets at the ends of the window change more than that; and no width is said to be nothing.
        (1.000071, 0.000041, "share", ("100.01", "± 0.01")),
        (0.999999, 1e-12, "share", ("100.00", "± 0.00")),
        (0.000747, 0.000062, "share", ("0.0747", "± 0.0062")),
        (0.84, 1.67, "share", ("84", "(too few runs)")),
        (0.5, 0.5, "share", ("50", "± 50")),
        (1.74, 1.8, "mos", ("1.74", "(too few runs)")),
        (1.74, 1.7, "mos", ("1.74", "± 1.70")),
        (0.9713, 0.02183, "number", ("0.971", "± 0.022")),
        (0.9999, 0.00044, "number", ("0.9999", "± 0.0004")),
        (640.6, 12.3, "number", ("641", "± 12")),
        (0.5, 6.353, "count", ("0.5", "± 6.4")),
        (1234.5, 23.4, "count", ("1,234", "± 23")),
        (0.0, 0.0, "count", ("0", "")),
    ],
)
def test_a_number_has_as_many_decimals_as_its_width_is_worth(value, width, unit, said):
    assert readable.with_width(Interval(value, width, 2, "runs"), unit) == said


def test_rates_of_a_column_have_one_unit_which_its_head_says():
    column = [Interval(2.1e6, 1.3e6, 2, "runs"), None, Interval(516e3, 60e3, 2, "runs"), Interval(nan, None, 0, "none")]
    unit = readable.of_column("bps", column)
    assert unit == "Mb/s" and readable.of_column("s", column) == "s" and readable.of_column("bps", []) == "b/s"
    assert [readable.said_apart(one, unit) for one in column] == [
        ("2.1", "± 1.3"),
        ("–", ""),
        ("0.516", "± 0.060"),
        ("–", ""),
    ]
    assert readable.headed("goodput\nof all", unit) == "goodput\nof all, Mb/s"
    assert readable.headed("bitrate\n", unit) == "bitrate\nMb/s" and readable.headed("median\nms", "s") == "median\nms"
    lost = [Interval(-853e3, 290e3, 2, "runs"), Interval(-1.01e6, None, 2, "none")]
    unit = readable.of_column("difference_bps", lost)
    assert [readable.said_apart(one, unit) for one in lost] == [("−0.85", "± 0.29"), ("−1.01", "")]
    assert readable.headed("against\nbaseline", unit) == "against\nbaseline, Mb/s"


def test_a_share_and_an_interval_are_said_in_one_way_everywhere():
    """`12 %` and `± 3`: with a space, as documents have them. Python's own format of a share has none."""
    forms = re.compile(r"\{[^{}%]*:[^{}%]*%\}|[0-9]% of|±[0-9{]")
    files = [path for ending in ("py", "j2", "js") for path in (ROOT / "python/aqmlab").rglob(f"*.{ending}")]
    files += (ROOT / "docs").rglob("*.md")
    assert [f"{path}: {one}" for path in files for one in forms.findall(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("value", "width", "unit", "said"),
    [
        (0.99999, 1e-5, "number", ("0.99999", "± 0.00001")),
        (5.0, 0.01, "count", ("5.00", "± 0.01")),
        (1000.0, 0.3, "count", ("1,000.0", "± 0.3")),
        (4.37, 0.001, "mos", ("4.370", "± 0.001")),
        # What rounding leaves is none.
        (0.99999, 1e-17, "number", ("1.0000", "± 0.0000")),
        (1.0, 0.0, "number", ("1", "± 0")),
    ],
)
def test_a_width_that_is_there_is_never_said_to_be_nothing(value, width, unit, said):
    assert readable.with_width(Interval(value, width, 3, "runs"), unit) == said
