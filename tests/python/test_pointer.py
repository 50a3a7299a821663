"""Figures of reports that answer to the pointer, in a real browser and without a network."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

import browser
from aqmlab.figures import drawn, plots
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.sheet import Sheet
from conftest import ROOT


def lines(sheet: Sheet) -> Figure:
    """Two straight curves over a linear and a logarithmic axis, a panel within, and a curve that nobody named."""
    figure = Figure(figsize=sheet.size(4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    at = np.linspace(0, 10, 50)
    for axes in (left, right):
        (up,) = axes.plot(at, 10 * at, color="#0072b2")
        (down,) = axes.plot(at, 100 - 10 * at, color="#d55e00", linestyle="--")
        axes.plot(at, np.full_like(at, 50), color="#5b636b")
        axes.fill_between(at, 10 * at - 5, 10 * at + 5, color="#0072b2", alpha=0.2, linewidth=0)
        axes.set(xlim=(0, 10), ylim=(0, 100), xlabel="load (Mb/s)", ylabel="wait (ms)")
    right.set(xscale="log", xlim=(0.1, 10))
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    inner = left.inset_axes((0.6, 0.1, 0.35, 0.3))
    inner.plot(at, 10 * at, color="#0072b2")
    inner.set(xlim=(0, 10), ylim=(0, 100))
    figure.legend([up, down], ["rises\nslowly", "falls"], loc="outside lower left")
    return figure


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    figure = drawn.pictures(Drawn("lines", "Lines", "Two curves.", lines))
    report = ROOT / "python/aqmlab/report"
    path = tmp_path_factory.mktemp("pointer") / "page.html"
    path.write_text(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>t</title>"
        f"<style>{(report / 'style.css').read_text()}</style></head>"
        f"<body><main><h1>t</h1><figure>{figure.for_page()}<figcaption>Two.</figcaption></figure></main>"
        f"<script>{(report / 'pointer.js').read_text()}</script></body></html>",
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.started() as found:
        yield found


def test_plots_are_told_by_the_legend(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wide, narrow = (json.loads(unescape(found)) for found in re.findall(r'data-plots="([^"]*)"', text))
    assert len(wide) == len(narrow) == 3
    first, inner, log = wide
    assert first["x"] == {"scale": "linear", "ends": [0.0, 10.0], "title": "load (Mb/s)"}
    assert log["x"]["scale"] == "log" and log["x"]["ends"] == [0.1, 10.0]
    assert [curve["label"] for curve in first["curves"]] == ["rises slowly", "falls"]
    # The panel within has one of them, and the words of that around it.
    assert [curve["label"] for curve in inner["curves"]] == ["rises slowly"] and inner["y"]["title"] == "wait (ms)"
    left, top, right, bottom = first["box"]
    assert left < inner["box"][0] < inner["box"][2] < right and top < inner["box"][1] < inner["box"][3] < bottom
    # A curve and its band.
    assert [len(curve["ids"]) for curve in first["curves"]] == [2, 1]
    ids = [name for one in (*wide, *narrow) for curve in one["curves"] for name in curve["ids"]]
    assert len(ids) == len(set(ids)) and all(f'id="{name}"' in text for name in ids)
    assert all(plots.CURVE in name for name in ids)


@pytest.mark.parametrize("width", [390, 1200])
def test_a_curve_says_its_value_where_one_points(chromium: Any, page: Path, width: int) -> None:
    with browser.opened(chromium, page) as (view, complaints):
        view.set_viewport_size({"width": width, "height": 900})
        svg = view.locator("figure svg:visible")
        said = view.locator("figure .pointer output")
        assert said.inner_text() == "Point at a curve, or tap it, to read it; tap a name to hide its curves."
        # Each button has a piece of its curve.
        looks = view.locator("figure .pointer button i").evaluate_all(
            "(all) => all.map((one) => getComputedStyle(one)).map((look) => [look.borderTopColor, look.borderTopStyle])"
        )
        assert looks == [["rgb(0, 114, 178)", "solid"], ["rgb(213, 94, 0)", "dashed"]]
        boxes = [one["box"] for one in json.loads(svg.get_attribute("data-plots"))]

        def point(plot: int, x: float, y: float) -> str:
            """At shares of a plot's width and height."""
            left, top, right, bottom = boxes[plot]
            place = svg.evaluate(
                "(svg, at) => { const p = new DOMPoint(...at).matrixTransform(svg.getScreenCTM()); return [p.x, p.y] }",
                [left + x * (right - left), top + y * (bottom - top)],
            )
            view.mouse.move(*place)
            return str(said.inner_text())

        # At 3 Mb/s one has 30 ms and the other 70: to what a pixel is worth.
        values = [float(n) for n in re.findall(r"(?<=[a-z)] )[\d.]+", point(0, 0.3, 0.2))]
        assert values == pytest.approx([3.0, 30.0, 70.0], abs=1.5)
        assert said.inner_text().endswith("; wait (ms)") and said.inner_text().startswith("load (Mb/s) ")
        # Half-way on a logarithmic axis from 0.1 to 10 is 1.
        values = [float(n) for n in re.findall(r"(?<=[a-z)] )[\d.]+", point(2, 0.5, 0.2))]
        assert values == pytest.approx([1.0, 10.0, 90.0], abs=2.0)
        # Within the panel that lies upon the other one, it is that one's curve.
        assert re.search(r": rises slowly (49\.\d|50(\.\d)?); wait", point(1, 0.5, 0.5)), said.inner_text()
        # Off the plots nothing is read anew, and the line goes.
        display = (
            "() => document.querySelector(innerWidth < 752 ? 'svg.narrow .pointed' : 'svg.wide .pointed').style.display"
        )
        assert view.evaluate(display) == ""
        view.mouse.move(1, 1)
        assert view.evaluate(display) == "none"
        assert complaints == []


def test_curves_are_turned_off_and_on(chromium: Any, page: Path) -> None:
    with browser.opened(chromium, page) as (view, complaints):
        view.set_viewport_size({"width": 1200, "height": 900})
        shown = "[...document.querySelectorAll('svg.wide [id*=curve]')].filter((e) => e.style.display !== 'none')"
        count = f"() => {shown}.length"
        everything = view.evaluate(count)
        rises = view.get_by_role("button", name="rises slowly")
        rises.click()
        # Two curves with their bands, and the one in the panel.
        assert everything - view.evaluate(count) == 5 and rises.get_attribute("aria-pressed") == "false"
        view.locator("figure svg:visible").hover(position={"x": 200, "y": 60})
        assert "rises" not in view.locator("output").inner_text() and "falls" in view.locator("output").inner_text()
        rises.press("Enter")
        assert view.evaluate(count) == everything and rises.get_attribute("aria-pressed") == "true"
        assert complaints == []


def marks(sheet: Sheet) -> Figure:
    """Marks with bars of two entries, of which one goes back and forth, over a logarithmic axis."""
    figure = Figure(figsize=sheet.size(4.0), layout="constrained")
    axes = figure.subplots()
    axes.set_label(plots.MARKS)
    keys = []
    for colour, at in (("#0072b2", [(1.0, 20.0), (10.0, 80.0), (3.0, 50.0)]), ("#d55e00", [(30.0, 90.0)])):
        keys += axes.plot([x for x, _ in at], [y for _, y in at], color=colour, linewidth=0.8)
        for x, y in at:
            axes.errorbar([x], [y], xerr=[0.1 * x], yerr=[2.0], color=colour, marker="s", linestyle="none")
    axes.set(xscale="log", xlim=(1, 100), ylim=(0, 100), xlabel="delay (ms)", ylabel="goodput (Mb/s)")
    figure.legend(keys, ["one", "other"], loc="outside lower left")
    return figure


def test_a_mark_says_its_values_and_goes_with_its_bars(chromium: Any, page: Path, tmp_path: Path) -> None:
    figure = drawn.pictures(Drawn("marks", "Marks", "Two.", marks))
    path = tmp_path / "marks.html"
    text = page.read_text(encoding="utf-8")
    path.write_text(re.sub(r"<figure>.*</figure>", lambda _: f"<figure>{figure.for_page()}</figure>", text, flags=re.S))
    with browser.opened(chromium, path) as (view, complaints):
        view.set_viewport_size({"width": 1200, "height": 900})
        svg, said = view.locator("figure svg:visible"), view.locator("figure .pointer output")
        assert said.inner_text() == "Point at a mark, or tap it, to read it; tap a name to hide its marks."
        left, top, right, bottom = json.loads(svg.get_attribute("data-plots"))[0]["box"]

        def point(x: float, y: float) -> str:
            place = svg.evaluate(
                "(svg, at) => { const p = new DOMPoint(...at).matrixTransform(svg.getScreenCTM()); return [p.x, p.y] }",
                [left + x * (right - left), top + y * (bottom - top)],
            )
            view.mouse.move(*place)
            return str(said.inner_text())

        # Near the middle is (10, 80), and what is read is the mark's own place, not the pointer's.
        name, x, y = re.fullmatch(r"(\w+): delay \(ms\) ([\d.]+); goodput \(Mb/s\) ([\d.]+)", point(0.52, 0.3)).groups()
        assert name == "one" and (float(x), float(y)) == pytest.approx((10.0, 80.0), rel=0.02)
        assert point(0.9, 0.9).startswith("other: ")
        # Of the first: its line, three marks, and the bars of each across and along.
        shown = (
            "[...document.querySelectorAll('svg.wide [id*=curve]')].filter((e) => e.style.display !== 'none').length"
        )
        everything = view.evaluate(shown)
        view.get_by_role("button", name="one").click()
        assert everything - view.evaluate(shown) == 1 + 3 + 3 * 2
        assert point(0.5, 0.2).startswith("other: ")
        assert complaints == []


def test_points_that_no_line_joins_are_read_as_marks() -> None:
    figure = Figure()
    axes = figure.subplots()
    (points,) = axes.plot([1, 2], [3, 4], linestyle="none", marker="o", color="#0072b2")
    axes.axhline(3.5)
    axes.legend([points], ["runs"])
    (plot,) = json.loads(plots.described(figure))
    assert plot["marks"] and [curve["label"] for curve in plot["curves"]] == ["runs"]
    (line,) = axes.plot([1, 2], [4, 3], color="#d55e00")
    axes.legend([points, line], ["runs", "fit"])
    (plot,) = json.loads(plots.described(figure))
    assert "marks" not in plot


def test_without_scripts_there_is_the_figure_alone(chromium: Any, page: Path) -> None:
    context = chromium.new_context(offline=True, java_script_enabled=False)
    view = context.new_page()
    view.goto(page.as_uri())
    assert view.locator("figure svg:visible").count() == 1 and view.locator(".pointer").count() == 0
    context.close()


def test_a_page_with_it_has_no_faults(chromium: Any, page: Path) -> None:
    assert browser.faults(chromium, page) == []
