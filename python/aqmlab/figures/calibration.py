"""Calibration: throughput against population, the fit, and where it is inverted."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from aqmlab import units
from aqmlab.figures.looks import HUES, INK, MUTED, Drawn, finish
from aqmlab.results import Json


def calibration_fit(facts: Json, number: int = 0) -> Drawn:
    """Throughput on the uncongested link against the population, the fit, and where it is inverted."""
    error = facts["window_error"]
    each = ", ".join(f"{way} {units.say_rate(bps)}" for way, bps in facts["confirmed_each_bps"].items())
    window = "" if error is None else f" Over other windows of this length the load would vary by about ±{error:.1%}."
    caption = (
        f"Mean throughput in one direction on the uncongested link of {units.say_rate(facts['uncongested_rate_bps'])}, "
        f"IP packets, seed {facts['seed']}, window of {facts['measured_s']:g} s. {facts['users']:,} users were "
        f"predicted to offer {units.say_rate(facts['predicted_bps'], 5)} and offered "
        f"{units.say_rate(facts['confirmed_bps'], 5)} ({facts['error']:+.2%}; {each}).{window}"
    )
    name = "calibration" if number == 0 else f"calibration-{number + 1}"

    def draw() -> Figure:
        figure = Figure(figsize=(9.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        users = np.array([point["users"] for point in facts["points"]], dtype=float)
        rates = np.array([point["throughput_bps"] for point in facts["points"]]) / 1e6
        reach = np.array([users.min(), users.max()])
        reach = reach + np.array([-0.03, 0.03]) * reach.mean()
        fit = (facts["intercept_bps"] + facts["slope_bps_per_user"] * reach) / 1e6
        wanted = facts["load_bps"] / 1e6
        axes.plot(reach, fit, color=HUES[0], label="linear fit")
        axes.axhline(wanted, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(
            f"wanted: {wanted:g} Mb/s",
            (reach[0], wanted),
            (4, 4),
            textcoords="offset points",
            color=MUTED,
            fontsize=9.5,
        )
        others = users != facts["users"]
        axes.plot(users[others], rates[others], "o", color=INK, markersize=6, label="runs")
        axes.plot(
            [facts["users"]],
            [facts["confirmed_bps"] / 1e6],
            "D",
            color=HUES[1],
            markersize=8,
            label=f"confirmed with {facts['users']:,} users",
        )
        axes.set(xlim=tuple(reach), xlabel="users", ylabel="throughput (Mb/s)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.legend(loc="lower right")
        return figure

    return finish(name, "Calibration", caption, draw)
