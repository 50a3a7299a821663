"""Gives the lines of all figures their colours and styles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aqmlab import links
from aqmlab.comparison import Column
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json

INK, MUTED, GRID, PAPER = "#14171a", "#5b636b", "#e3e6e8", "#ffffff"
HUES = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7", "#8c5a3c", "#c2185b", "#5c7a1f"
)  # fmt: skip
REFERENCE = "#868e96"


@dataclass(frozen=True)
class Look:
    """How a variant's line looks in every figure."""

    color: str
    style: Any
    width: float
    layer: int

    def line(self, sheet: Sheet) -> dict[str, Any]:
        """For `Axes.plot`."""
        width = sheet.points(self.width)
        return {"color": self.color, "linestyle": self.style, "linewidth": width, "zorder": self.layer}


def _family(column: Column) -> str:
    """Variants that differ in ECN alone, forward and in reverse, share a hue."""
    every: list[Json] = []
    for link in links.of(column.scenario).values():
        every += [link["qdisc"], link.get("reverse_qdisc") or link["qdisc"]]
    return repr([sorted((key, item) for key, item in qdisc.items() if key != "ecn") for qdisc in every])


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
    if any(column.witness != "simulated" for column in columns):
        return _looks_of_witnesses(columns)
    looks: dict[str, Look] = {}
    hues: dict[str, str] = {}
    plain = [c for c in columns if not c.uncongested]
    drop_tails = [c for c in plain if c.qdisc["kind"] in ("pfifo", "bfifo")]
    families = [_family(c) for c in plain]
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
