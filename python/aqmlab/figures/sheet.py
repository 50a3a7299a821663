"""A sheet is what a figure is drawn on: its width and its type. Everything else follows from these two."""

import math
from dataclasses import dataclass
from typing import Any

TYPE = 10.5
"""Points of the type of a page's figures; widths of lines and the like are given for it."""
NARROW = 45.0
"""Sizes of the type: in a figure less wide than these there is no room beside a panel."""
LOWEST = 1.9
"""Inches where the type is that of a page: a panel less high than that shows nothing."""
FAMILIES = ("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")


@dataclass(frozen=True)
class Sheet:
    """The width of a figure in inches and its type in points."""

    width: float = 9.4
    type: float = TYPE
    font: str = ""
    """A family of type that is installed; without it one of `FAMILIES`."""
    tallest: float = math.inf
    """Inches that a figure of several panels may be high; a screen has no such."""

    @property
    def ems(self) -> float:
        """Its width, in sizes of the type."""
        return 72 * self.width / self.type

    @property
    def is_narrow(self) -> bool:
        """Whether legends go below, and panels below each other."""
        return self.ems < NARROW

    def size(self, height: float) -> tuple[float, float]:
        """The size of a figure of this height in inches, where its type is that of a page."""
        return self.width, height * self.type / TYPE

    def grid(self, panels: int, height: float, below: float) -> tuple[int, int, tuple[float, float]]:
        """Columns and rows of so many panels, and the size of the figure.

        Each is of this height in inches, where the type is that of a page, or less so that all have room with what
        stands below them. Two stand beside each other where the sheet is wide, or else too low for one column.
        """
        room = self.tallest * TYPE / self.type - below
        across = 2
        if self.is_narrow:
            across = 1 if panels * LOWEST <= room else min(2, panels)
        down = -(-panels // across)
        each = min(height, max(LOWEST, room / down))
        return across, down, self.size(each * down + below)

    def points(self, value: float) -> float:
        """A length of so many points where the type is that of a page."""
        return value * self.type / TYPE

    def style(self, colours: dict[str, str]) -> dict[Any, Any]:
        """Settings of matplotlib."""
        return _LOOK | colours | {key: self.points(value) for key, value in _POINTS.items()} | self._family()

    def _family(self) -> dict[str, Any]:
        families = [self.font, *FAMILIES] if self.font else [*FAMILIES]
        return {"font.family": "sans-serif", "font.sans-serif": families, "font.size": self.type}


PAGE, PHONE = Sheet(9.4), Sheet(4.4)
"""The two that a page has of each figure: its own width, and that of a telephone."""

_LOOK: dict[Any, Any] = {
    "axes.titlesize": "medium",
    "axes.labelsize": "medium",
    "xtick.labelsize": "medium",
    "ytick.labelsize": "medium",
    "legend.fontsize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # said, it is not looked for among the ticks of each panel
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "lines.solid_capstyle": "round",
    "text.parse_math": False,  # names are text, whatever is in them
    "svg.fonttype": "none",
    "svg.hashsalt": "aqmlab",
    "pdf.fonttype": 42,
    "path.simplify_threshold": 0.2,
}
_POINTS = {
    "axes.linewidth": 0.8,
    "axes.labelpad": 4.0,
    "axes.titlepad": 5.0,
    "grid.linewidth": 0.8,
    "hatch.linewidth": 1.0,
    "lines.linewidth": 1.8,
    "lines.markersize": 6.0,
    "xtick.major.size": 3.5,
    "xtick.major.width": 0.8,
    "xtick.major.pad": 3.5,
    "xtick.minor.size": 2.0,
    "xtick.minor.width": 0.6,
    "ytick.major.size": 3.5,
    "ytick.major.width": 0.8,
    "ytick.major.pad": 3.5,
    "ytick.minor.size": 2.0,
    "ytick.minor.width": 0.6,
    "figure.constrained_layout.h_pad": 0.04167,
    "figure.constrained_layout.w_pad": 0.04167,
}
