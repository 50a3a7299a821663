"""Numbers of a report's tables are those that the Python interface has under the name that their cell gives."""

import re

import pytest

import aqmlab
from aqmlab import report, terminal
from aqmlab.report.page import LINK, TIMES
from aqmlab.window import MEASURES

CELL = re.compile(r'<td data-measure="(\w+)"[^>]*>(?:<i>.</i>)?([^<]*)(?:<small>([^<]*)</small>)?</td>')


@pytest.mark.parametrize("reps", [1, 3])
def test_each_cell_is_its_measure(base, tmp_path, reps):
    found = aqmlab.compare(base, "pfifo limit 240p", "pi qref 24p ecn", "uncongested", reps=reps, out=tmp_path / "out")
    page = report.write(found).read_text(encoding="utf-8")
    shown = [(name, value, width) for name, value, width in CELL.findall(page)]
    expected = [
        (name, *terminal.with_width(column.estimate(name), MEASURES[name][1]))
        for column in found.columns
        for name in (*LINK, *TIMES)
    ]
    for column in found.columns:
        for name in (*LINK, *TIMES):
            if column is not found.baseline and not (column.uncongested and name in LINK):
                interval = found.difference(column, found.baseline, name)
                expected.append((name, *terminal.with_width(interval, MEASURES[name][1], signed=True)))
    assert shown == expected
