"""The upper part of distributions of response times, enlarged: where timeouts show and disciplines part.

Shares are per cent at `CDF_TIMES`, an array for each curve.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from aqmlab.figures.looks import MUTED, PAPER
from aqmlab.figures.sheet import Sheet
from aqmlab.results.exchanges import index
from aqmlab.statistics import Array

FROM_S = 0.4
"""Where the enlarged part begins, seconds: before it all curves rise steeply and together."""
END_S = 2.0
"""Where it ends."""
LOWEST = 70.0
"""Per cent: an enlarged part within the whole that begins lower is hardly larger than that."""
THINNER = 0.85
"""How wide its lines are, of those of the whole."""
BEHIND_S, BEHIND = 0.75, 60.0
"""What it lies on within the whole: from this time on, and up to so many per cent."""


def floor(shares: Sequence[tuple[Array, bool]], from_s: float = FROM_S) -> float:
    """Where the enlarged part begins, per cent: a multiple of five below all curves at its left edge.

    With each curve stands whether it is a reference, which counts only where there are no others.
    """
    congested = [curve for curve, is_reference in shares if not is_reference] or [curve for curve, _ in shares]
    start = index(from_s)
    return float(5 * np.floor(_least([curve[start] for curve in congested]) / 5))


def is_larger(floor: float) -> bool:
    """Whether a part that begins there shows something, and larger than the whole does."""
    return LOWEST <= floor < 100


def is_free(lowest: Sequence[Array]) -> bool:
    """Whether no curve would lie behind the enlarged part; of a curve with a band `lowest` is the band's lower end."""
    return bool(_least([curve[index(BEHIND_S) :] for curve in lowest]) >= BEHIND)


def inset(axes: Axes, sheet: Sheet) -> Axes:
    """Axes for the enlarged part on those of the whole, which go from 0 to `END_S` and 100 %."""
    backing = Rectangle((0.375, 0.012), 0.62, 0.575, transform=axes.transAxes, color=PAPER, linewidth=0, zorder=2.5)
    axes.add_patch(backing)
    found = axes.inset_axes((0.43, 0.075, 0.55, 0.44))
    found.tick_params(labelsize="small", length=sheet.points(2))
    return found


def span(axes: Axes, floor: float, sheet: Sheet) -> None:
    """Gives the axes of an enlarged part that begins at `floor` per cent their ends, steps and title."""
    axes.set(xlim=(FROM_S, END_S), ylim=(floor, 100 + 0.02 * (100 - floor)))
    axes.set_xticks(np.arange(0.5, END_S + 0.01, 0.5 if sheet.is_narrow else 0.25))
    title = f"enlarged: from {FROM_S:g} s and {floor:.0f} %"
    axes.set_title(title, fontsize="small", color=MUTED, fontweight="normal")


def _least(shares: Sequence[npt.ArrayLike]) -> float:
    """The least of some shares in per cent; a column with a run without exchanges has none."""
    each = np.asarray(shares, dtype=float)
    return float(each[np.isfinite(each)].min(initial=100.0))
