"""A discipline among all that come along: a row for each in a figure and in a table."""

from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from aqmlab.evaluation.disciplines import BASELINE
from aqmlab.evaluation.known import Field, Standing
from aqmlab.figures.drawn import Drawn
from aqmlab.figures.looks import INK, REFERENCE
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json
from aqmlab.study.figures.layout import logarithmic

DRAWN = ("8-2-2-to-8-2-4", "9-1")
"""The requirements that the figure shows; the table has all."""


def rows(fields: Sequence[Field]) -> list[Json]:
    """A row for each discipline, with what it came to in each case, or nothing where it was not run."""
    labels = [one.label for one in _order(fields)]
    of = [{one.label: one for one in field.standings} for field in fields]
    names = {one.label: one.name for field in fields for one in field.standings}
    return [{"name": names[label], "label": label, "cells": [there.get(label) for there in of]} for label in labels]


def drawn(fields: Sequence[Field], subject: str, hue: str) -> Drawn | None:
    """Delay and goodput of each discipline, those of `subject` in its colour."""
    shown = [field for field in fields if field.id in DRAWN] or list(fields[:2])
    if not shown:
        return None
    caption = (
        "Means over the runs with 95 % intervals, at the first rate; the shortest mean delay of the first panel stands "
        f"at the top. Coloured: {_label(shown, subject)}; black: {BASELINE}; grey: the others."
    )
    return Drawn("figure-among", "Among all disciplines", caption, partial(_panels, shown, subject, hue))


def _label(fields: Sequence[Field], name: str) -> str:
    return next((one.label for field in fields for one in field.standings if one.name == name), name)


def _order(fields: Sequence[Field]) -> list[Standing]:
    """Each discipline once, by its delay in the requirement that stands first in `DRAWN` and then in the others."""
    first = sorted(fields, key=lambda field: DRAWN.index(field.id) if field.id in DRAWN else len(DRAWN))
    return list({one.label: one for field in first for one in field.standings}.values())


def _panels(fields: Sequence[Field], subject: str, hue: str, sheet: Sheet) -> Figure:
    order = [one.label for one in _order(fields)][::-1]
    across = 2 if sheet.is_narrow else 2 * len(fields)
    down = 2 * len(fields) // across
    figure = Figure(figsize=sheet.size(down * (0.9 + 0.19 * len(order))), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for k, panel in enumerate(grid.flat):
        field = fields[k // 2]
        _dots(panel, field, ("delay", "goodput")[k % 2], order, subject, hue, sheet)
        panel.set_title(f"{field.section}, {_within(field.title)}" if k % 2 == 0 else "")
        panel.set_yticks(range(len(order)), order if k % across == 0 else [""] * len(order))
        panel.set_ylim(-0.6, len(order) - 0.4)
    return figure


def _within(title: str) -> str:
    """A title in the middle of a line: its first word is small, unless it is an abbreviation."""
    return title if title[1:2].isupper() else f"{title[:1].lower()}{title[1:]}"


def _dots(panel: Axes, field: Field, kind: str, order: Sequence[str], subject: str, hue: str, sheet: Sheet) -> None:
    for one in field.standings:
        number: Json = getattr(one, kind)
        is_subject = one.name == subject
        panel.errorbar(
            number["value"],
            order.index(one.label),
            xerr=number["half_width_95"],
            fmt="o",
            color=hue if is_subject else INK if one.name == BASELINE else REFERENCE,
            markersize=sheet.points(6 if is_subject else 4),
            linewidth=sheet.points(1.4),
            zorder=3 if is_subject else 2,
        )
    unit = getattr(field.standings[0], kind)["unit"]
    panel.set_xlabel(f"{'queueing delay' if kind == 'delay' else kind} ({unit})")
    if kind == "delay" and min(one.delay["value"] for one in field.standings) > 0:
        panel.set_xscale("log")
        logarithmic(panel.xaxis)
