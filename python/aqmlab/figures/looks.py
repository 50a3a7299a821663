"""What all figures have in common: colours, type, and how they become files and parts of a page."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from aqmlab.comparison import Column

INK, MUTED, GRID, PAPER = "#14171a", "#5b636b", "#e3e6e8", "#fefefe"
HUES = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7", "#8c5a3c", "#c2185b", "#5c7a1f"
)  # fmt: skip
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
        head += f' role="img" aria-label="{escape(self.title)}" class="figure"'
        body = re.sub(r'\bid="([^"]+)"', rf'id="{self.name}-\1"', body)
        body = re.sub(r'href="#([^"]+)"', rf'href="#{self.name}-\1"', body)
        body = re.sub(r"url\(#([^)]+)\)", rf"url(#{self.name}-\1)", body)
        body = re.sub(r"font: ((?:\d+ )?[\d.]+px) [^;\"]+", r"font: \1 var(--figure-font)", body)
        for colour, variable in ON_PAGE.items():
            body = body.replace(colour, f"var({variable})")
        return head + ">" + body


@dataclass(frozen=True)
class Look:
    """How a variant's line looks in every figure."""

    color: str
    style: Any
    width: float
    layer: int

    def line(self) -> dict[str, Any]:
        """For `Axes.plot`."""
        return {"color": self.color, "linestyle": self.style, "linewidth": self.width, "zorder": self.layer}


def _family(column: Column) -> str:
    """Variants that differ in ECN alone, forward and in reverse, share a hue."""
    both = (column.qdisc, column.scenario["link"].get("reverse_qdisc", column.qdisc))
    return repr([sorted((key, item) for key, item in qdisc.items() if key != "ecn") for qdisc in both])


WITNESSES: dict[str, Any] = {
    "simulated": "-",
    "live": (0, (4.5, 1.3)),
    "virtual": (0, (1.1, 1.1)),
    "kernel": (0, (5, 1.3, 1, 1.3)),
}
"""Where several witnesses speak of a variant, they share its hue, and the line says who speaks."""


def void_note(columns: Sequence[Column]) -> str:
    """A sentence at the end of a caption, of live runs that do not count."""
    void = [column.name for column in columns if column.void]
    if not void:
        return ""
    return f" Void, for the test bed broke its budget: {', '.join(void)}."


def looks_of(columns: Sequence[Column]) -> dict[str, Look]:
    """The look of each variant, by name."""
    looks: dict[str, Look] = {}
    hues: dict[str, str] = {}
    plain = [c for c in columns if not c.uncongested]
    drop_tails = [c for c in plain if c.qdisc["kind"] in ("pfifo", "bfifo")]
    families = [_family(c) for c in plain]
    if any(column.witness != "simulated" for column in columns):
        return _looks_of_witnesses(columns)
    for column in columns:
        if column.uncongested:
            looks[column.name] = Look(REFERENCE, (0, (5, 2)), 2.4, 3)
        elif drop_tails and column is drop_tails[0]:
            looks[column.name] = Look(INK, "-", 2.8, 4)
        else:
            family = _family(column)
            hue = hues.setdefault(family, HUES[len(hues) % len(HUES)])
            has_both = families.count(family) > 1
            dashed = has_both and not column.ecn
            looks[column.name] = Look(hue, (0, (2.2, 1.3)) if dashed else "-", 1.8, 5)
    return looks


def _looks_of_witnesses(columns: Sequence[Column]) -> dict[str, Look]:
    """A hue for each variant, black for the first drop-tail queue; a style for each witness."""
    looks: dict[str, Look] = {}
    hues: dict[str, str] = {}
    first = next((c.subject for c in columns if not c.uncongested and c.qdisc["kind"] in ("pfifo", "bfifo")), None)
    for column in columns:
        if column.uncongested:
            looks[column.name] = Look(REFERENCE, (0, (5, 2)), 2.4, 3)
            continue
        if column.subject not in hues:
            taken = len([subject for subject in hues if subject != first])
            hues[column.subject] = INK if column.subject == first else HUES[taken % len(HUES)]
        is_simulated = column.witness == "simulated"
        style = WITNESSES.get(column.witness, WITNESSES["live"])
        looks[column.name] = Look(hues[column.subject], style, 2.0 if is_simulated else 1.7, 4 if is_simulated else 5)
    return looks


def finish(name: str, title: str, caption: str, draw: Callable[[], Figure]) -> Drawn:
    """Draws in the common style and keeps the figure as SVG and PNG."""
    with mpl.rc_context(STYLE):
        figure = draw()
        svg, png = io.StringIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "aqmlab"})
        figure.set_layout_engine("none")  # it stays as it is: laying out takes as long as drawing
        figure.savefig(png, format="png", dpi=160, metadata={"Software": "aqmlab"})
    return Drawn(name, title, caption, svg.getvalue(), png.getvalue())
