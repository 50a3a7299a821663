"""How wide lines are drawn, so that all of those that coincide are seen."""

import copy
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.lines import Line2D

from aqmlab.figures.looks import Look
from aqmlab.figures.sheet import Sheet
from aqmlab.statistics import Array

LINE = 0.006
"""Share of the height of a panel that a line takes: curves nearer to each other than this hide each other."""
TOGETHER = 0.9
"""Share of the length of curves on which they run together, where one would be taken for missing."""
ALONG_TOGETHER = 0.75
"""The same of steep lines and of steps: of few samples, one that is apart is much of the length."""
BENEATH, WIDEST = 1.8, 5.4
"""By how many points a line is wider than the one that lies upon it, and the lowest than the topmost: of more lines all
steps are smaller."""


def widths(lines: Sequence[tuple[Look, Array, Array]], is_log: bool = False) -> list[float]:
    """How many times wider than its look each line of a panel is drawn: wider where others lie upon it.

    Lines come as look, x and y, in the order in which they are drawn. Of those that coincide the first is the widest,
    so that it shows beneath the others at both sides.
    """
    whole = np.concatenate([y[np.isfinite(y)] for _, _, y in lines] or [np.zeros(0)])
    if is_log:
        whole = np.log(whole[whole > 0])
    if whole.size < 2:
        return [1.0] * len(lines)
    near = LINE * float(whole.max() - whole.min())
    scaled = [_finite(x, y, is_log) for _, x, y in lines]
    return _wider([look for look, _, _ in lines], lambda one, other: _coincide(scaled[one], scaled[other], near))


def widths_along(
    lines: Sequence[tuple[Look, Array, Array]], is_log: bool = False, in_steps: bool = False
) -> list[float]:
    """The same of lines that are steep or go up in steps, each level from its x on.

    A steep line hides what is beside it, not what is above it: what counts is how far apart they are drawn.
    """
    seen = [_finite(x, y, is_log) for _, x, y in lines]
    left, right = (end([float(end(x)) for x, _ in seen if x.size] or [0.0]) for end in (min, max))
    bottom, top = (end([float(end(y)) for _, y in seen if y.size] or [0.0]) for end in (min, max))
    if right <= left or top <= bottom:
        return [1.0] * len(lines)
    paths = [_path((x - left) / (right - left), (y - bottom) / (top - bottom), in_steps) for x, y in seen]
    return _wider([look for look, _, _ in lines], lambda one, other: _lies_along(paths[one], paths[other]))


def _wider(looks: Sequence[Look], coincide: Callable[[int, int], bool]) -> list[float]:
    """How many times wider each line is drawn, of those of which two coincide."""
    order = sorted(range(len(looks)), key=lambda k: looks[k].layer)
    upon = [0] * len(looks)
    for place, k in reversed(list(enumerate(order))):
        hiding = [other for other in order[place + 1 :] if coincide(k, other)]
        upon[k] = max((1 + upon[other] for other in hiding), default=0)
    step = min(BENEATH, WIDEST / max([*upon, 1]))
    thinnest = min((look.width for look in looks), default=1.0)
    return [max(thinnest + step * number, look.width) / look.width for look, number in zip(looks, upon, strict=True)]


def _path(x: Array, y: Array, in_steps: bool) -> tuple[Array, Array]:
    """Points along a line, nearer to each other than it is wide; x and y are shares of the panel."""
    if x.size < 2:
        return x, y
    across, up = (np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]) if in_steps else (x, y)
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(across)) + np.abs(np.diff(up)))])
    at = np.linspace(0, length[-1], int(2 * length[-1] / LINE) + 2)
    return np.interp(at, length, across), np.interp(at, length, up)


def _lies_along(one: tuple[Array, Array], other: tuple[Array, Array]) -> bool:
    """Whether most of a path is within a line's width of another."""
    (x, y), (u, v) = one, other
    if x.size < 2 or u.size < 2:
        return False
    near = np.hypot(x[:, None] - u[None, :], y[:, None] - v[None, :]).min(axis=1) <= LINE
    return bool(near.mean() >= ALONG_TOGETHER)


def _finite(x: Array, y: Array, is_log: bool) -> tuple[Array, Array]:
    kept = np.isfinite(y) & ((y > 0) | (not is_log))
    return x[kept], np.log(y[kept]) if is_log else y[kept]


def _coincide(one: tuple[Array, Array], other: tuple[Array, Array], near: float) -> bool:
    """Whether lines run together where both are, but for a tenth of it."""
    (x, y), (u, v) = one, other
    if x.size < 2 or u.size < 2:
        return False
    both = (x >= u[0]) & (x <= u[-1])
    apart = np.abs(y[both] - np.interp(x[both], u, v))
    return bool(apart.size > 1 and np.mean(apart <= near) >= TOGETHER)


def said(widths_of_all: Sequence[float]) -> str:
    """A sentence at the end of a caption, where lines are wider than their look."""
    return (
        " Of curves that lie upon each other the lower one is drawn wider." if max(widths_of_all, default=1) > 1 else ""
    )


def key(line: Line2D, look: Look, sheet: Sheet) -> Line2D:
    """A line for a legend: as its look has it, however wide it is drawn beneath others."""
    found = copy.copy(line)
    found.set_linewidth(sheet.points(look.width))
    return found
