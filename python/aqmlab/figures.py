"""The figures of a report, as SVG and PNG.

Colours mean the same in all of them: the uncongested link is grey and dashed (the best there can be), drop-tail is
black (the one to beat), each discipline has a hue of its own, solid with ECN and dashed without when both are shown.
The hues are those of Okabe and Ito (2008), which colour-blind people tell apart too; ECN is never told by hue.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from aqmlab import units
from aqmlab.comparison import Column, Comparison
from aqmlab.results import Json, Run
from aqmlab.statistics import Array
from aqmlab.window import CDF_TIMES, TAIL_TIMES

INK, MUTED, GRID, PAPER = "#14171a", "#5b636b", "#e3e6e8", "#fefefe"
HUES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7")
REFERENCE = "#868e96"

ON_PAGE = {INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper", REFERENCE: "--reference"} | {
    hue: f"--hue-{k}" for k, hue in enumerate(HUES)
}
"""On a page the colours are those of its style sheet, so that one figure serves light and dark."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 10.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    "svg.hashsalt": "aqmlab",
    "path.simplify_threshold": 0.2,
}


@dataclass(frozen=True)
class Drawn:
    """A finished figure."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes

    def for_page(self) -> str:
        """The SVG to be set into a page: colours by style sheet, ids of its own, no fixed size."""
        text = self.svg[self.svg.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        head, body = text.split(">", 1)
        head = re.sub(r'\s(width|height|version)="[^"]*"', "", head)
        head += f' role="img" aria-label="{self.title}" class="figure"'
        body = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}-\1"', body)
        body = re.sub(r'href="#([^"]+)"', rf'href="#{self.name}-\1"', body)
        body = re.sub(r"url\(#([^)]+)\)", rf"url(#{self.name}-\1)", body)
        body = re.sub(r"font: ((?:\d+ )?[\d.]+px) [^;\"]+", r"font: \1 var(--figure-font)", body)
        for colour, variable in ON_PAGE.items():
            body = body.replace(colour, f"var({variable})")
        return head + ">" + body


def save(figures: Iterable[Drawn], folder: Path) -> list[Path]:
    """Writes each figure as SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        for suffix, content in ((".svg", figure.svg.encode()), (".png", figure.png)):
            path = folder / f"{figure.name}{suffix}"
            path.write_bytes(content)
            paths.append(path)
    return paths


def of_comparison(comparison: Comparison) -> list[Drawn]:
    """All figures of a comparison, the most important first."""
    return of_columns(comparison.columns)


def of_columns(columns: Sequence[Column]) -> list[Drawn]:
    """All figures of some results, the most important first."""
    looks = _looks(columns)
    figures = []
    if any(run.has_exchanges for column in columns for run in column.result.runs):
        figures += [response_cdf(columns, looks), response_tail(columns, looks)]
    figures += [queue_series(columns, looks), *_maybe(signal_series(columns, looks))]
    return figures + calibrations([column.result.calibration for column in columns])


def calibrations(groups: Sequence[Sequence[Json]]) -> list[Drawn]:
    """One figure for each different calibration."""
    found = {calibration["key"]: calibration for group in groups for calibration in group}
    return [calibration_fit(facts, k) for k, facts in enumerate(found.values())]


# --- looks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    color: str
    style: Any
    width: float
    layer: int

    def line(self) -> dict[str, Any]:
        return {"color": self.color, "linestyle": self.style, "linewidth": self.width, "zorder": self.layer}


def _family(column: Column) -> str:
    """Variants that differ in ECN alone share a hue."""
    qdisc = {key: item for key, item in column.qdisc.items() if key != "ecn"}
    return repr(sorted(qdisc.items(), key=lambda pair: pair[0]))


def _looks(columns: Sequence[Column]) -> dict[str, _Look]:
    looks: dict[str, _Look] = {}
    hues: dict[str, str] = {}
    plain = [c for c in columns if not c.uncongested]
    drop_tails = [c for c in plain if c.qdisc["kind"] in ("pfifo", "bfifo")]
    families = [_family(c) for c in plain]
    for column in columns:
        if column.uncongested:
            looks[column.name] = _Look(REFERENCE, (0, (5, 2)), 2.4, 3)
        elif drop_tails and column is drop_tails[0]:
            looks[column.name] = _Look(INK, "-", 2.8, 4)
        else:
            family = _family(column)
            hue = hues.setdefault(family, HUES[len(hues) % len(HUES)])
            has_both = families.count(family) > 1
            dashed = has_both and not column.ecn
            looks[column.name] = _Look(hue, (0, (2.2, 1.3)) if dashed else "-", 1.8, 5)
    return looks


def _finish(name: str, title: str, caption: str, draw: Callable[[], Figure]) -> Drawn:
    with mpl.rc_context(STYLE):
        figure = draw()
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "aqmlab"})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": "aqmlab"})
    return Drawn(name, title, caption, svg.getvalue(), png.getvalue())


def _maybe(figure: Drawn | None) -> list[Drawn]:
    return [] if figure is None else [figure]


def _count(columns: Sequence[Column]) -> str:
    counts = sorted(column.completed for column in columns)
    runs = {len(column.result.runs) for column in columns}
    low, high = units.say_count(counts[0]), units.say_count(counts[-1])
    said = f"n = {low} exchanges" if low == high else f"n = {low} to {high} exchanges a curve"
    each = " each" if len(columns) > 1 else ""
    return f"{said}, {'/'.join(map(str, sorted(runs)))} run{'s' if runs != {1} else ''}{each}"


# --- response times --------------------------------------------------------------------------------------------------


def response_cdf(columns: Sequence[Column], looks: dict[str, _Look]) -> Drawn:
    """Distribution of response times to 2 s, as in the studies' figures."""
    widths = [_cdf_half_width(column) for column in columns]
    known = [width for width in widths if width is not None]
    precision = ""
    if known:
        several = min(len(c.result.runs) for c in columns) > 1
        where = "across runs" if several else "from 20 parts within the one run"
        precision = f"; 95 % interval at most ±{100 * max(known):.1f} points ({where})"
    caption = (
        "Share of exchanges whose response is complete within the time on the horizontal axis; higher is better. "
        f"{_count(columns)}{precision}."
    )

    def draw() -> Figure:
        figure = Figure(figsize=(9.4, 5.4), layout="constrained")
        axes = figure.add_subplot()
        for column in columns:
            axes.plot(CDF_TIMES, 100 * column.cdf, label=column.name, **looks[column.name].line())
        axes.set(xlim=(0, 2), ylim=(0, 100), xlabel="response time (s)", ylabel="exchanges completed (%)")
        axes.set_xticks(np.arange(0, 2.01, 0.25))
        axes.set_yticks(range(0, 101, 10))
        _legend_beside(axes, columns, lambda column: float(column.cdf[-1]))
        backing = Rectangle((0.375, 0.012), 0.62, 0.575, transform=axes.transAxes, color=PAPER, linewidth=0, zorder=2.5)
        axes.add_patch(backing)
        inset = axes.inset_axes((0.43, 0.075, 0.55, 0.44))
        _zoom(inset, columns, looks)
        return figure

    return _finish("response-cdf", "Response times", caption, draw)


def _cdf_half_width(column: Column) -> float | None:
    marks = [int(np.searchsorted(CDF_TIMES, t - 1e-9)) for t in (0.1, 0.2, 0.3, 0.5, 1.0)]
    widths = [
        column.statistic(lambda w, k=k: float(w.cdf[k]), lambda w, k=k: w.cdf_parts[:, k]).half_width  # type: ignore[misc]
        for k in marks
    ]
    known = [width for width in widths if width is not None]
    return max(known) if known else None


def _zoom(axes: Axes, columns: Sequence[Column], looks: dict[str, _Look]) -> None:
    """The upper part once more, enlarged: where timeouts show and disciplines part."""
    congested = [column for column in columns if not column.uncongested] or list(columns)
    start = int(np.searchsorted(CDF_TIMES, 0.4))
    low = min(float(column.cdf[start]) for column in congested)
    for column in columns:
        look = looks[column.name].line()
        axes.plot(CDF_TIMES, 100 * column.cdf, **{**look, "linewidth": look["linewidth"] * 0.85})
    floor = 5 * np.floor(100 * low / 5)
    axes.set(xlim=(0.4, 2), ylim=(floor, 100.4))
    axes.set_xticks(np.arange(0.5, 2.01, 0.25))
    axes.tick_params(labelsize=8.5, length=2)
    title = f"enlarged: from 0.4 s and {floor:.0f} %"
    axes.set_title(title, fontsize=9, color=MUTED, fontweight="normal", pad=4)


def _legend_beside(axes: Axes, columns: Sequence[Column], rank: Callable[[Column], float]) -> None:
    """A legend beside the curves, best first, as the curves stand at the right edge."""
    if len(columns) < 2:
        return
    handles, labels = axes.get_legend_handles_labels()
    at = {label: handle for handle, label in zip(handles, labels, strict=True)}
    order = sorted(columns, key=rank, reverse=True)
    axes.legend(
        [at[column.name] for column in order],
        [column.name for column in order],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        labelspacing=0.75,
    )


def response_tail(columns: Sequence[Column], looks: dict[str, _Look]) -> Drawn:
    """The tail on logarithmic axes: share of exchanges slower than a time."""
    caption = (
        "Share of exchanges that take longer than the time on the horizontal axis, both axes logarithmic; lower is "
        f"better. A curve ends where fewer than 10 exchanges are left. {_count(columns)}. Exchanges that the end of "
        "the window cut off are not in it, so the far tail is too low."
    )

    def draw() -> Figure:
        figure = Figure(figsize=(9.4, 5.0), layout="constrained")
        axes = figure.add_subplot()
        lowest, longest = 1.0, 2.0
        for column in columns:
            shown = column.tail >= 10 / max(column.completed, 1)
            times, shares = TAIL_TIMES[shown], 100 * column.tail[shown]
            if not times.size:
                continue
            lowest, longest = min(lowest, float(shares[-1])), max(longest, float(times[-1]))
            axes.plot(times, shares, label=column.name, **looks[column.name].line())
        axes.set(xscale="log", yscale="log", xlim=(0.02, longest * 1.1), ylim=(max(lowest * 0.7, 1e-4), 110))
        axes.set(xlabel="response time (s)", ylabel="exchanges that take longer (%)")
        axes.xaxis.set_major_formatter(FuncFormatter(_plain))
        axes.yaxis.set_major_formatter(FuncFormatter(_plain))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        _legend_beside(axes, [c for c in columns if (c.tail > 0).any()], lambda column: -_quantile(column, 0.999))
        return figure

    return _finish("response-tail", "The slowest exchanges", caption, draw)


def _plain(value: float, _position: int | None = None) -> str:
    return f"{value:g}"


def _quantile(column: Column, share: float) -> float:
    return float(TAIL_TIMES[min(int(np.searchsorted(-column.tail, -(1 - share))), TAIL_TIMES.size - 1)])


# --- what happens in the queue ---------------------------------------------------------------------------------------


def queue_series(columns: Sequence[Column], looks: dict[str, _Look]) -> Drawn:
    """Queue length over time, a panel each."""
    shown = [column for column in columns if not column.uncongested] or list(columns)
    caption = (
        "Packets waiting at the bottleneck, forward direction, first run: mean of each second (line) and the range "
        "between its 10th and 90th percentile (band). Shaded: warm-up, not measured."
    )
    if len(shown) > 1:
        caption += " Disciplines that hold their queue short share one scale; the others have their own."
    return _finish("queue", "The queue", caption, lambda: _panels(shown, looks, "queue_packets", 1, "queue (packets)"))


def signal_series(columns: Sequence[Column], looks: dict[str, _Look]) -> Drawn | None:
    """The probability with which packets are dropped or marked, as the law has it; None if no law has any."""
    shown = [c for c in columns if not c.uncongested and c.result.runs[0].queue["probability"].count() > 0]
    if not shown:
        return None
    caption = (
        "Probability of a drop or mark that the law has set, forward direction, first run: mean of each second (line) "
        "and the range between its 10th and 90th percentile (band). Shaded: warm-up, not measured."
    )
    return _finish(
        "probability",
        "Drop and mark probability",
        caption,
        lambda: _panels(shown, looks, "probability", 100, "probability (%)"),
    )


def _forward(run: Run) -> pl.DataFrame:
    return run.queue.filter(pl.col("direction") == 0)


def _by_second(rows: pl.DataFrame, column: str) -> dict[str, Array]:
    """Mean and range of each second, or of each 1/300 of a long run, so that it stays drawable."""
    duration = float(rows["time_s"][-1]) if rows.height else 0.0
    step = max(1.0, duration / 300)
    table = (
        rows.group_by((((pl.col("time_s") - 1e-6) / step).floor() * step + step / 2).alias("s"))
        .agg(
            pl.col(column).mean().alias("mean"),
            pl.col(column).quantile(0.1).alias("low"),
            pl.col(column).quantile(0.9).alias("high"),
        )
        .sort("s")
    )
    return {name: table[name].to_numpy().astype(float) for name in table.columns}


def _panels(columns: Sequence[Column], looks: dict[str, _Look], name: str, scale: float, ylabel: str) -> Figure:
    series = {column.name: _by_second(_forward(column.result.runs[0]), name) for column in columns}
    tops = {key: _top(table["high"]) * scale for key, table in series.items()}
    cells = _cells(columns)
    across = 2 if len(cells) > 1 else 1
    down = -(-len(cells) // across)
    figure = Figure(figsize=(9.4, 0.65 + 1.4 * down), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, squeeze=False)
    short = [top for top in tops.values() if top <= 3 * min(tops.values())]
    for axes, column in zip(grid.flat, cells, strict=False):
        if column is None:
            axes.set_visible(False)
            continue
        table, look, top = series[column.name], looks[column.name], tops[column.name]
        axes.fill_between(
            table["s"], scale * table["low"], scale * table["high"], color=look.color, alpha=0.28, linewidth=0
        )
        axes.plot(table["s"], scale * table["mean"], color=look.color, linewidth=1.2)
        axes.set_title(column.name, pad=3)
        start, _ = column.result.runs[0].window
        axes.axvspan(0, start, color=MUTED, alpha=0.13, linewidth=0)
        axes.set_xlim(0, units.seconds(column.result.scenario["duration"], "duration"))
        axes.set_ylim(0, max((max(short) if top in short else top) * 1.08, 1e-9))
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in grid.flat[len(cells) :]:
        axes.set_visible(False)
    for k in range(across):
        lowest = [axes for axes in grid[:, k] if axes.get_visible()][-1]
        lowest.set_xlabel("simulated time (s)")
        lowest.tick_params(labelbottom=True)
    figure.supylabel(ylabel, fontsize=10.5)
    return figure


def _top(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.quantile(finite, 0.995)) if finite.size else 1.0


def _cells(columns: Sequence[Column]) -> list[Column | None]:
    """The panels, two a row; a drop-tail queue that would break the pairs stands in a row alone."""
    cells: list[Column | None] = list(columns)
    if len(columns) > 2 and len(columns) % 2 and columns[0].qdisc["kind"] in ("pfifo", "bfifo"):
        cells.insert(1, None)
    return cells


# --- calibration -----------------------------------------------------------------------------------------------------


def calibration_fit(facts: Json, number: int = 0) -> Drawn:
    """Throughput on the uncongested link against the population, the fit, and where it is inverted."""
    error = facts["window_error"]
    window = "" if error is None else f" Over other windows of this length the load would vary by about ±{error:.1%}."
    caption = (
        f"Mean throughput in one direction on the uncongested link of {units.say_rate(facts['uncongested_rate_bps'])}, "
        f"IP packets, seed {facts['seed']}, window of {facts['measured_s']:g} s. {facts['users']:,} users were "
        f"predicted to offer {units.say_rate(facts['predicted_bps'], 5)} and offered "
        f"{units.say_rate(facts['confirmed_bps'], 5)} ({facts['error']:+.2%}).{window}"
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

    return _finish(name, "Calibration", caption, draw)
