"""Calibration: throughput against population, the fit, and where it is inverted."""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from aqmlab import units
from aqmlab.checks import seeds_of, seeds_said
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.legends import inside
from aqmlab.figures.looks import HUES, INK, MUTED
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.reference import rates_in


def calibration_fit(facts: Json, number: int = 0) -> Drawn:
    """Throughput on the uncongested link against the population, the fit, and where it is inverted."""
    error = facts["window_error"]
    each = ", ".join(f"{way} {units.say_rate(bps)}" for way, bps in facts["confirmed_each_bps"].items())
    are_several = len(seeds_of(facts)) > 1
    of_seeds = f"mean over {seeds_said(facts)}" if are_several else seeds_said(facts)
    others = "Over other seeds" if are_several else "Over other windows of this length"
    window = (
        ""
        if error is None
        else f" {others} the load would vary by about ± {units.say_share(error, 1)}, which no interval here has in it."
    )
    off = f"{units.say_share(abs(facts['error']), 2)} {'less' if facts['error'] < 0 else 'more'}"
    wanted = units.say_rate(facts["load_bps"])
    caption = (
        f"Mean throughput in one direction on the uncongested link of {units.say_rates(rates_in(facts))}, "
        f"IP packets, {of_seeds}, window of {facts['measured_s']:g} s. {facts['users']:,} users offered "
        f"{units.say_rate(facts['confirmed_bps'], 5)}, {off} than the {wanted} that were wanted "
        f"({each}); the line has {units.say_rate(facts['predicted_bps'], 5)} there.{window}"
    )
    name = "calibration" if number == 0 else f"calibration-{number + 1}"

    return Drawn(name, "Calibration", caption, partial(_fit, facts))


def _fit(facts: Json, sheet: Sheet) -> Figure:
    figure = Figure(figsize=sheet.size(3.6), layout="constrained")
    axes = figure.add_subplot()
    users = np.array([point["users"] for point in facts["points"]], dtype=float)
    rates = np.array([point["throughput_bps"] for point in facts["points"]]) / 1e6
    reach = np.array([users.min(), users.max()])
    reach = reach + np.array([-0.03, 0.03]) * reach.mean()
    fit = (facts["intercept_bps"] + facts["slope_bps_per_user"] * reach) / 1e6
    wanted = facts["load_bps"] / 1e6
    others = users != facts["users"]
    mark: dict[str, Any] = {"linestyle": "none", "markersize": sheet.points(6)}
    keys = [
        (axes.plot(reach, fit, color=HUES[0])[0], "linear fit"),
        (axes.plot(users[others], rates[others], marker="o", color=INK, **mark)[0], "runs"),
        (
            axes.plot([facts["users"]], [facts["confirmed_bps"] / 1e6], marker="D", color=HUES[1], **mark)[0],
            f"confirmed with {facts['users']:,} users",
        ),
    ]
    axes.axhline(wanted, color=MUTED, linewidth=sheet.points(1), linestyle=(0, (4, 3)))
    # Where neither marks nor the fit are: below the line at the far end, or above it at the near one.
    is_near = facts["users"] < reach.mean()
    axes.annotate(
        f"wanted: {wanted:g} Mb/s",
        (reach[1] if is_near else reach[0], wanted),
        (sheet.points(-4), sheet.points(-4)) if is_near else (sheet.points(4), sheet.points(4)),
        textcoords="offset points",
        ha="right" if is_near else "left",
        va="top" if is_near else "bottom",
        color=MUTED,
    )
    axes.set(xlim=tuple(reach), xlabel="users", ylabel="throughput (Mb/s)")
    axes.xaxis.set_major_locator(MaxNLocator(4 if sheet.is_narrow else 8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    inside(axes, keys, "upper left" if is_near else "lower right")
    return figure
