"""Figures and tables of a study show the numbers of the runs, and say of which runs."""

import csv
import importlib
import io
import math
import re

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from scipy import stats

from aqmlab.errors import BadInput
from aqmlab.figures.drawn import COLOURS, pictures
from aqmlab.figures.sheet import PAGE, PHONE, Sheet
from aqmlab.figures.ticks import plain
from aqmlab.results.exchanges import CDF_TIMES, SIZE_BINS
from aqmlab.statistics import Interval
from aqmlab.study import figures, tables
from aqmlab.study.figures import losses, responses
from aqmlab.study.figures.over_time import series_of
from aqmlab.study.figures.sizes import number_and_bytes
from aqmlab.study.measured import Asked, bases_said, with_width
from study_cells import cell, finder, spec


def test_a_distribution_is_the_mean_over_runs():
    one = cell("pi-24", losses=(0.01, 0.02))
    one.windows[1] = cell("pi-24", times=(0.1, 0.1, 0.1, 5.0)).windows[0]
    shares = responses.mean_cdf(one)
    assert shares[np.searchsorted(CDF_TIMES, 0.2 - 1e-9)] == pytest.approx((1 / 4 + 3 / 4) / 2)
    assert shares[-1] == pytest.approx((4 / 4 + 3 / 4) / 2)


def test_losses_in_a_row_are_pooled_over_runs():
    found = losses.counts(cell("pi-24", runs=(6, 3, 0, 1), losses=(0.1, 0.1)), "forward")
    assert list(found[:4]) == [12, 6, 0, 2]
    assert list(losses.longer(found)[:5]) == pytest.approx([1.0, 0.4, 0.1, 0.1, 0.0])


def test_sizes_count_responses_and_their_bytes():
    one = cell("uncongested", sizes=(1000, 1000, 8000, 990_000), losses=(0.0, 0.0))
    numbers, amounts = number_and_bytes(one)
    up_to_10kb = int(np.searchsorted(SIZE_BINS, 10_000)) + 1
    assert numbers[:up_to_10kb].sum() / numbers.sum() == pytest.approx(3 / 4)
    assert amounts[:up_to_10kb].sum() / amounts.sum() == pytest.approx(10_000 / 1_000_000)


def test_every_kind_is_drawn_and_says_what_it_is_of():
    cells = [cell(aqm, load=load, sizes=(100, 5000)) for load in ("90", "98") for aqm in ("uncongested", "pi-24")]
    specs = [
        spec("cdf", id="a", panels="load"),
        spec("cdf", id="b"),
        spec("ccdf", id="c"),
        spec("against", id="d", x="load", measure="loss_ratio"),
        spec("loss_runs", id="e", panels="load"),
        spec("over_time", id="f", column="queue_packets", direction="reverse"),
        spec("sizes", id="g/h"),
    ]
    found = figures.draw(specs, finder(cells))
    assert [one.name for one in found] == [f"figure-{name}" for name in ("a", "b", "c", "d", "e", "f", "g-h")]
    # 4 exchanges in each of 20 parts of 3 runs; 8 + 1 + 1 runs of losses in each of 3 runs.
    assert "n = 240 exchanges, 3 runs each" in found[0].caption and "across runs)" in found[0].caption
    assert "n = 30 runs of losses, 3 runs each" in found[4].caption
    assert "Bars: 95 % t-intervals across runs; 3 runs each" in found[3].caption
    assert "Reverse direction" in found[5].caption and "seed 1" in found[5].caption
    for one in map(pictures, found):
        assert one.svg.count("<svg") == one.narrow.count("<svg") == 1 and one.png[:4] == b"\x89PNG"
        assert "90 %" in one.svg
        assert not re.search(r"(#0072b2|#14171a)", one.for_page())


def test_many_panels_are_drawn_in_rows_and_say_that_they_are_enlarged():
    cells = [cell("pi-24", load=str(load)) for load in range(80, 86)]
    found = figures.draw([spec("cdf", panels="load"), spec("ccdf", id="2", panels="load")], finder(cells))
    # Half of the exchanges take longer than 0.4 s in the imagined runs.
    assert found[0].caption.endswith("Shown from 0.4 s and 50 % on.")
    for figure in found:
        svg = figure.svg  # drawn at each look
        assert all(f"8{k} %" in svg for k in range(6))


def test_numbers_of_an_axis_are_written_alike():
    assert [plain(10.0**power) for power in (-6, -5, -4, 0, 2, 6)] == [
        "0.000001",
        "0.00001",
        "0.0001",
        "1",
        "100",
        "1000000",
    ]
    assert (plain(0.30000000000000004), plain(2.5), plain(0.0)) == ("0.3", "2.5", "0")
    rare = [cell("pi-24", runs=[10**7, *[0] * 8, 1]), cell("rem-24", runs=[100, 10, 1])]
    for drawn in figures.draw([spec("loss_runs")], finder(rare)):
        svg = drawn.svg
        assert "0.00001" in svg and "1e-05" not in svg


def test_against_draws_the_t_interval_where_it_was_measured():
    one = cell("pi-24", load="90", losses=(0.01, 0.02, 0.03))
    found = figures.draw([spec("against", x="load", measure="loss_ratio")], finder([one, cell("pi-24")]))
    assert len(found) == 1
    table = tables.build([{"id": "t", "rows": [{}], "measures": ["loss_ratio"], "by": "load"}], finder([one]))[0]
    entry = table.rows[0][1][0]
    width = stats.t.ppf(0.975, 2) * 1.0 / math.sqrt(3)
    assert entry.interval.value == pytest.approx(2.0) and entry.interval.half_width == pytest.approx(width)
    assert (entry.value, entry.width) == ("2.0", "± 2.5")


def test_points_that_a_profile_leaves_out_leave_a_figure_out():
    assert figures.draw([spec(curves=[{"aqm": "pi-24"}])], finder([cell("rem-24")])) == []
    assert tables.build([{"id": "t", "rows": [{"aqm": "pi"}], "measures": ["loss_ratio"]}], finder([])) == []


@pytest.mark.parametrize(
    ("run", "left_out", "said"),
    [
        (
            [("pi-24", "98")],
            [("pi-24", "80"), ("pi-24", "90")],
            "2 of 3 points are not run in this profile: 80 %; 90 %.",
        ),
        (
            [("pi-24", "98"), ("rem-24", "98")],
            [("rem-24", "80")],
            "1 of 3 points is not run in this profile: REM 24, 80 %.",
        ),
        (
            [("pi-24", "98"), ("rem-24", "80")],
            [("pi-24", "80"), ("rem-24", "98")],
            "2 of 4 points are not run in this profile: PI 24, 80 %; REM 24, 98 %.",
        ),
        (
            [("pi-24", "98")],
            [(f"pi-{k}", load) for k in range(1, 7) for load in ("80", "98")][:11],
            "11 of 12 points are not run in this profile: PI 1; PI 2; PI 3; PI 4; PI 5; PI 6.",
        ),
    ],
)
def test_captions_say_which_points_were_not_run(run, left_out, said):
    ours, theirs = ([cell(aqm, load=load) for aqm, load in places] for places in (run, left_out))
    specs = [spec("ccdf", curves=[{}, {"label": "again"}]), spec("against", id="2", x="load", measure="loss_ratio")]
    for figure in figures.draw(specs, finder(ours), finder(theirs)):
        assert figure.caption.endswith(said)
    asked = {"id": "t", "rows": [{}], "measures": ["loss_ratio"], "by": "load"}
    assert tables.build([asked], finder(ours), finder(theirs))[0].caption.endswith(said)
    assert "not run" not in figures.draw(specs, finder(ours))[0].caption


def test_a_caption_says_that_a_curve_under_another_is_wider():
    said = "Of curves that lie upon each other the lower one is drawn wider."
    specs = [spec(), spec(printed=True), spec("ccdf")]
    for times, is_said in (((0.1, 0.3, 0.7, 1.4), True), ((1.9, 1.9, 1.9, 1.9), False)):
        cells = [cell("pi-24"), cell("rem-24", times=times)]
        assert [said in drawn.caption for drawn in figures.draw(specs, finder(cells))] == [is_said] * len(specs)


@pytest.mark.parametrize("sheet", [PAGE, PHONE])
def test_a_panel_says_which_curves_of_the_legend_were_not_run_in_it(sheet):
    run = [cell(aqm, load=load) for aqm, load in (("pi-24", "90"), ("pi-24", "98"), ("rem-24", "90"))]
    lost = [cell("rem-24", load="98"), cell("ared-12", load="98"), cell("rem-24", load="98", grid="general")]
    of_panels = [spec(kind, panels="load") for kind in ("cdf", "ccdf")]
    for drawn in figures.draw(of_panels, finder(run), finder(lost)):
        with mpl.rc_context(sheet.style(COLOURS)):
            titles = [(axes.get_title("left"), axes.get_title("right")) for axes in drawn.draw(sheet).axes]
        assert titles[0] == ("90 % load", "") and titles[1][0] == "98 % load"
        assert titles[1][1].split() == ["not", "run:", "REM", "24"]
    for drawn in figures.draw([spec(panels="load")], finder(run)):
        assert "not run" not in drawn.svg


def test_what_has_no_interval_does_not_look_exact():
    cells = [cell(aqm, load=load) for aqm in ("pi-24", "rem-24") for load in ("90", "98")]
    cells[1].windows[1:] = []  # one run: of its parts there is an interval
    cells[1].summaries[1:] = []
    for one in cells[2:]:  # one run and a measure without parts
        one.windows[1:] = []
        one.summaries[1:] = []
        one.summaries[0]["forward"]["utilisation"] = 0.9
    against = spec("against", x="load", measure="loss_ratio")
    drawn = figures.draw([against], finder(cells[:2]))[0]
    assert "95 % t-intervals across runs; from 20 parts within the one run: PI 24; 1 to 3 runs each" in drawn.caption
    found = tables.build([{"id": "t", "rows": [{}], "measures": ["loss_ratio"]}], finder(cells))[0]
    assert found.caption.startswith("± 95 % intervals from 20 parts within the one run; across runs: PI 24, 90 %; ")


def test_values_without_an_interval_are_open_marks(monkeypatch):
    cells = [cell("pi-24", load=load) for load in ("80", "90", "98")]
    intervals = {
        "80": Interval(1.0, 0.2, 3, "runs"),
        "90": Interval(2.0, None, 1, "none"),
        "98": Interval(3.0, 0.0, 3, "runs"),
    }
    monkeypatch.setattr(Asked, "of", lambda self, one: intervals[one.at["load"]])
    axes = []
    module = importlib.import_module("aqmlab.study.figures.against")  # the package has the function by that name
    monkeypatch.setattr(module, "legend", lambda figure, grid, *rest, **more: axes.append(grid[0]))
    drawn = figures.draw([spec("against", x="load", measure="loss_ratio")], finder(cells))[0]
    assert "Bars: 95 % t-intervals across runs; no interval (open marks): PI 24; 3 runs each" in drawn.caption
    assert drawn.svg
    line, bare = (line for line in axes[0].lines if line.get_marker() == "o")
    assert list(line.get_ydata()) == [1, 2, 3] and list(bare.get_ydata()) == [2]
    assert bare.get_markerfacecolor() == axes[0].get_facecolor() != line.get_markerfacecolor()
    bars = axes[0].containers[0].lines[2][0].get_segments()
    heights = [segment[1][1] - segment[0][1] for segment in bars if len(segment) and not np.isnan(segment).any()]
    assert heights == pytest.approx([0.4, 0.0])


def test_the_basis_of_intervals_is_that_of_what_is_shown():
    run, part, none = Interval(1, 0.1, 3, "runs"), Interval(1, 0.1, 20, "parts"), Interval(1, None, 1, "none")
    assert bases_said([("A", run), ("B", run)]) == "95 % t-intervals across runs"
    assert bases_said([("A", part)]) == "95 % intervals from 20 parts within the one run"
    assert bases_said([("A", none)]) == "no intervals" and bases_said([]) == "no values"
    assert bases_said([("A", run), ("B", run), ("C", none), ("D", part)]) == (
        "95 % t-intervals across runs; no interval: C; from 20 parts within the one run: D"
    )
    assert bases_said([("A", run), ("B", Interval(math.nan, None, 3, "none"))]) == "95 % t-intervals across runs"
    many = [("A", run)] * 9 + [(f"B{k}", none) for k in range(8)]
    assert bases_said(many).endswith("no interval: B0; B1; B2; B3 and 4 more")


def long_cell(duration_s, together, with_extremes):
    """A queue that goes up and down between 0 and 100 packets from row to row, thinned as a long run's is."""
    one = cell("pi-24")
    one.scenario = {**one.scenario, "duration": f"{duration_s}s", "warmup": "0s"}
    times = np.arange(1, duration_s * 10 // together + 1) * 0.1 * together
    values = np.where(np.arange(times.size) % 2, 100.0, 0.0) if together == 1 else np.full(times.size, 50.0)
    columns = {"time_s": times, "direction": np.zeros(times.size, dtype=np.int64), "queue_packets": values}
    if with_extremes:
        columns |= {"queue_packets_min": values * 0, "queue_packets_max": values * 0 + 100}
    one.queue = pl.DataFrame({**columns, "dropped_packets": np.full(times.size, 3 * together)})
    return one


@pytest.mark.parametrize(
    ("duration_s", "together", "with_extremes", "reach", "said"),
    [
        (
            60,
            1,
            False,
            (0, 100),
            "mean of each 200 ms (line), and the least and the largest of its intervals of 100 ms (band)",
        ),
        (
            7200,
            72,
            True,
            (0, 100),
            "mean of each 24 s (line), and the least and the largest of its intervals of 100 ms (band)",
        ),
        (7200, 72, False, None, "mean of each 24 s (line); how it went within is not kept of runs as long as these"),
    ],
)
def test_the_band_of_a_long_run_is_not_that_of_means(duration_s, together, with_extremes, reach, said):
    one = long_cell(duration_s, together, with_extremes)
    found = series_of(one, "queue_packets", reverse=False)
    assert found.s.size == pytest.approx(300, abs=1) and found.mean.mean() == pytest.approx(50)
    if reach is None:
        assert found.low is None and found.high is None
    else:
        assert (found.low.min(), found.high.max()) == reach
    assert said in figures.draw([spec("over_time", column="queue_packets")], finder([one]))[0].caption


@pytest.mark.parametrize("together", [1, 72])
def test_counts_over_time_are_a_rate_however_rows_are_put_together(together):
    found = series_of(long_cell(7200, together, with_extremes=False), "dropped_packets", reverse=False)
    assert found.mean == pytest.approx(30.0) and found.low is None


def test_curves_with_nothing_to_show_are_named():
    empty = cell("rem-24", runs=(0,), sizes=())
    for window in empty.windows:
        window.completed[:] = 0
    cells = [cell("pi-24", sizes=(100,)), empty]
    specs = [spec("cdf"), spec("ccdf", id="2"), spec("loss_runs", id="3"), spec("sizes", id="4")]
    captions = [figure.caption for figure in figures.draw(specs, finder(cells))]
    assert captions[0].endswith("No exchange is complete: REM 24.") and captions[1].endswith(
        "No exchange is complete: REM 24."
    )
    assert captions[2].endswith("No losses: REM 24.") and captions[3].endswith("No response is complete: REM 24.")
    assert figures.draw(specs, finder([empty])) == []


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (spec("pie"), r"x: kind: 'pie': expected one of cdf, ccdf, against"),
        (spec("against", x="load"), r"x: measure: missing; expected a text"),
        (spec("over_time"), r"x: column: missing; expected a text"),
        ({**spec(), "curves": []}, r"x: curves: expected a list of selectors"),
        ({**spec(), "title": None}, r"x: title: missing; expected a text"),
        (spec("against", x="load", measure="delay"), r"x: measure: 'delay': expected one of"),
        (spec("against", x="load", measure="loss_ratio", way=1), r"x: way: 1: unknown key"),
        (spec(panel="load"), r"x: panel: 'load': unknown key; did you mean panels"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_one_line(table, complaint):
    with pytest.raises(BadInput, match=complaint):
        figures.check(table, "x")


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (spec("against", x="aqm", measure="loss_ratio"), r"figure 1: x: 'aqm': expected an axis of numbers"),
        (spec("over_time", column="price"), r"figure 1: column: 'price': expected one of queue_packets"),
        (spec("loss_runs", direction="up"), r"figure 1: direction: 'up': expected one of forward"),
    ],
)
def test_a_figure_that_does_not_fit_its_cells_is_one_line(table, complaint):
    with pytest.raises(BadInput, match=complaint):
        figures.draw([table], finder([cell("pi-24")]))


def test_a_distribution_may_be_drawn_as_papers_print_it_too():
    cells = [cell("uncongested"), cell("pi-24"), cell("pi-240")]
    specs = figures.every([spec(printed=True, caption="Which."), {**spec(), "id": "other"}])
    assert [one["id"] for one in specs] == ["1", "1, as printed", "other"]
    usual, printed, other = figures.draw(specs, finder(cells))
    assert [one.name for one in (usual, printed, other)] == ["figure-1", "figure-1-as-printed", "figure-other"]
    for sheet in (Sheet(), Sheet(width=3.4)):
        (axes,) = printed.draw(sheet).axes
        assert axes.child_axes == [] and axes.get_xlim() == (0, 2) and axes.get_ylim() == (0, 100)
        assert axes.get_xlabel() == "response time (ms)"
        formatter = axes.xaxis.get_major_formatter()
        assert formatter(axes.get_xticks()[-1], None) == "2000" and list(axes.get_yticks()) == [0, 20, 40, 60, 80, 100]
        # The same curves as in the other.
        same = {line.get_color(): tuple(line.get_ydata()) for line in usual.draw(sheet).axes[0].lines}
        assert {line.get_color(): tuple(line.get_ydata()) for line in axes.lines} == same
    with pytest.raises(BadInput, match="figure 1: printed: 'yes': expected true or false"):
        figures.draw([spec(printed="yes")], finder(cells))
    with pytest.raises(BadInput, match="printed: True: unknown key"):
        figures.draw([spec(kind="ccdf", printed=True)], finder(cells))


def test_a_table_has_a_group_of_columns_for_each_value_of_an_axis():
    cells = [cell(aqm, load=load) for load in ("98", "90") for aqm in ("uncongested", "pi-24")]
    cells.pop()
    asked = {
        "id": "losses & more",
        "title": "Losses",
        "rows": [{}],
        "by": "load",
        "measures": ["loss_ratio", {"measure": "within", "time_s": [0.5, 1.0]}, {"measure": "p90", "title": "slow"}],
    }
    table = tables.build([asked], finder(cells))[0]
    assert table.name == "table-losses-more"
    assert table.groups == [("90 %", 4), ("98 %", 4)]
    assert [title for title, _ in table.columns[:4]] == ["loss", "within 500 ms", "within 1 s", "slow"]
    rows = dict(table.rows)
    assert list(rows) == ["uncongested", "PI 24"] and table.references == {"uncongested"}
    # PI 24 at 90 % does not exist: its cells are empty, and no rows of the CSV.
    assert [entry.value for entry in rows["PI 24"]][:4] == [""] * 4 and rows["PI 24"][5].value == "50"
    written = list(csv.DictReader(io.StringIO(table.csv())))
    assert len(written) == 12
    assert {(row["row"], row["group"]) for row in written} == {
        ("uncongested", "90 %"),
        ("uncongested", "98 %"),
        ("PI 24", "98 %"),
    }
    first = written[0]
    assert (first["measure"], first["unit"], float(first["value"])) == ("loss", "%", pytest.approx(2.0))


def test_a_table_that_is_wider_than_a_page_has_its_groups_below_one_another():
    cells = [cell(aqm, load=load) for load in ("98", "90") for aqm in ("uncongested", "pi-24")][:-1]
    times = [0.1, 0.2, 0.5, 1.0, 1.5, 2.0]
    asked = {"id": "t", "rows": [{}], "by": "load", "measures": [{"measure": "within", "time_s": times}]}
    wide = tables.build([asked], finder(cells))[0]
    assert wide.is_turned and [title for title, _ in wide.across] == [title for title, _ in wide.columns[6:]]
    assert [(title, [name for name, _ in rows]) for title, rows in wide.down] == [
        ("90 %", ["uncongested"]),
        ("98 %", ["uncongested", "PI 24"]),
    ]
    assert wide.down[1][1][1][1] == dict(wide.rows)["PI 24"][6:]
    asked["measures"][0]["time_s"] = times[1:]
    assert not tables.build([asked], finder(cells))[0].is_turned


def test_a_table_of_which_nothing_new_was_run_is_not_shown():
    own, other = cell("pi-24"), cell("ared")
    specs = [
        {"id": "all", "rows": [{"aqm": "pi-24"}], "measures": ["loss_ratio", "p90"]},
        {"id": "again", "rows": [{"aqm": ["pi-24", "ared"]}], "measures": ["p90"]},
        {"id": "more", "rows": [{"aqm": ["pi-24", "ared"]}], "measures": ["p90", "p50"]},
    ]
    part = tables.build(specs, finder([own]), finder([other]))
    assert [one.name for one in tables.with_something_new(part)] == ["table-all", "table-more"]
    whole = tables.build(specs[:2], finder([own, other]))
    assert tables.with_something_new(whole) == whole


@pytest.mark.parametrize(
    ("value", "width", "said"),
    [
        (97.4123, 0.1234, ("97.41", "± 0.12")),
        (1234567.0, 2345.0, ("1,234,567", "± 2,345")),
        (-0.5, 0.03, ("−0.500", "± 0.030")),
        (0.25, 0.0, ("0.25", "")),
        (54.309869, 1e-14, ("54.31", "")),
        (0.010391, 1e-14, ("0.01039", "")),
        (130.99, 0.0, ("131", "")),
        (8.61687, 0.00076, ("8.617", "± 0.0008")),
        (8.6124, 0.0075, ("8.612", "± 0.007")),
        (3.14159, None, ("3.142", "")),
        (math.nan, None, ("–", "")),
    ],
)
def test_numbers_have_as_many_decimals_as_their_interval_is_worth(value, width, said):
    assert with_width(Interval(value, width, 3, "runs")) == said


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"id": "t", "rows": [{}], "measures": []}, r"x: measures: \[\]: expected a list"),
        ({"id": "t", "rows": [{}], "measures": ["loss"]}, r"x: measures.0: measure: 'loss': expected one of"),
        ({"id": "t", "rows": [{}], "measures": ["p90"], "sort": 1}, r"x: sort: 1: unknown key"),
        ({"rows": [{}], "measures": ["p90"]}, r"x: id: missing; expected a text"),
    ],
)
def test_a_table_that_cannot_be_made_is_one_line(table, complaint):
    with pytest.raises(BadInput, match=complaint):
        tables.check(table, "x")


def test_a_figure_of_which_nothing_but_the_reference_was_run_is_not_drawn():
    reference, discipline = cell("uncongested"), cell("pi-24")
    assert figures.draw([spec()], finder([reference]), finder([discipline])) == []
    assert len(figures.draw([spec()], finder([reference]), finder([cell("uncongested", load="90")]))) == 1
    assert len(figures.draw([spec()], finder([reference, discipline]), finder([cell("rem-24")]))) == 1


@pytest.mark.parametrize(("runs", "said", "bars"), [(2, "No bars: fewer than 3 runs", 0), (3, "Bars: 95 %", 4)])
def test_a_tradeoff_draws_no_interval_of_two_runs_and_says_what_marks_mean(runs, said, bars):
    """Student's t of two runs has one degree of freedom: its interval is as wide as the figure."""
    cells = []
    for k, load in enumerate(("90", "98")):
        one = cell("pi-24", load=load, losses=[0.01 * (k + 1 + run) for run in range(runs)], runs=(8,) * runs)
        one.summaries = [
            {"tcp": {"forward_goodput_bps": 1e6 * (k + 5 + run)}, "forward": {"queue_delay_mean_s": 0.01}}
            for run in range(runs)
        ]
        cells.append(one)
    (drawn,) = figures.draw([spec("tradeoff", along="load")], finder(cells))
    assert said in drawn.caption
    (axes,) = drawn.draw(PAGE).axes
    assert sum(isinstance(one, LineCollection) for one in axes.collections) == bars
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["PI 24", *(one.labels["load"] for one in cells)]
