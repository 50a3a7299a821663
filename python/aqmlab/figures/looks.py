"""Gives the lines of all figures their colours and styles."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from aqmlab import links
from aqmlab.comparison import Column
from aqmlab.figures.sheet import Sheet
from aqmlab.json_files import Json

INK, MUTED, GRID, PAPER = "#14171a", "#5b636b", "#e3e6e8", "#ffffff"
HUES = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7b5ea7", "#8c5a3c", "#c2185b", "#5c7a1f"
)  # fmt: skip
REFERENCE = "#868e96"
_NAMED = {"ink": INK, "muted": MUTED, "grid": GRID, "paper": PAPER, "reference": REFERENCE}
Family = TypeVar("Family", bound=Hashable)
DROP_TAIL = ("pfifo", "bfifo")

PREFERRED = {
    "pi": 0, "ared": 1, "red": 1, "rem": 2, "dcn": 3, "redopt": 2, "afd": 4, "rio_ps": 5, "rio": 5,
    "codel": 6, "fq_codel": 7, "pie": 8, "dualpi2": 9, "cake": 4,
}  # fmt: skip
"""The hue that a kind has in all figures of all pages, unless another beside it came first."""


def hues_of(
    families: Sequence[tuple[Family, str]],
    others: Sequence[int] = range(len(HUES)),
    are_together: Callable[[Family, Family], bool] = lambda _, __: True,
) -> dict[Family, str]:
    """A hue for each family, of which the kind is said: what the kind prefers, else the first of `others` that is free.

    Families that are nowhere together may have the same.
    """
    given: dict[Family, str] = {}

    def taken(family: Family) -> set[str]:
        return {hue for other, hue in given.items() if are_together(family, other)}

    for family, kind in families:
        if family not in given and kind in PREFERRED and (wanted := HUES[PREFERRED[kind]]) not in taken(family):
            given[family] = wanted
    for family, _ in families:
        free = (HUES[place] for place in others if HUES[place] not in taken(family))
        given.setdefault(family, next(free, HUES[len(given) % len(HUES)]))
    return given


SHADES = {1: ("",), 2: ("pale", "deep"), 3: ("pale", "", "deep")}
"""By how many values curves of one hue differ in, the shade of each; more of them do not tell them apart."""
_TOWARDS = {"pale": (0.62, PAPER, "--paper"), "deep": (0.6, INK, "--ink")}


def shaded(hue: str, shade: str) -> str:
    """A hue, paler or deeper."""
    if not shade:
        return hue
    share, other, _ = _TOWARDS[shade]
    mixed = (
        round(share * int(hue[k : k + 2], 16) + (1 - share) * int(other[k : k + 2], 16)) for k in range(1, len(hue), 2)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


ON_PAGE = {
    **{colour: f"var(--{name})" for name, colour in _NAMED.items()},
    **{hue: f"var(--hue-{k})" for k, hue in enumerate(HUES)},
    **{
        shaded(hue, shade): f"color-mix(in srgb, var(--hue-{k}) {100 * share:g}%, var({other}))"
        for k, hue in enumerate(HUES)
        for shade, (share, _, other) in _TOWARDS.items()
    },
}
"""On a page the colours are those of its style sheet, so that one figure serves light and dark."""


@dataclass(frozen=True)
class Look:
    """How a variant's line looks in every figure."""

    color: str
    style: Any
    width: float
    layer: int
    spaced: int = 0
    """The number of its mark, which it has here and there along it: it tells hues apart where there are none to see."""

    def line(self, sheet: Sheet) -> dict[str, Any]:
        """For `Axes.plot`."""
        width = sheet.points(self.width)
        plain = {"color": self.color, "linestyle": self.style, "linewidth": width, "zorder": self.layer}
        if not self.spaced:
            return plain
        return {
            **plain,
            **hollow(MARKS[self.spaced % len(MARKS)], sheet),
            "markevery": (SPACING * (self.spaced % 4) / 4, SPACING),
        }


def hollow(mark: str, sheet: Sheet) -> dict[str, Any]:
    """Open marks, for `Axes.plot`."""
    size, edge = sheet.points(4.5), sheet.points(1.1)
    return {"marker": mark, "markersize": size, "markerfacecolor": PAPER, "markeredgewidth": edge}


MARKS = ("", "o", "s", "^", "D", "v", "X", "P")
SPACING = 0.12
"""How far apart the marks of a line are, as a share of its panel's diagonal."""
FEW_HUES = 2
"""So many hues in a figure are told apart in grey, one of them being black or pale; of more each has a mark, too."""


def marks_of(hues: Sequence[str]) -> list[int]:
    """The number of each one's mark, by its hue: 0 is none, as black and the first of the others have it."""
    if len(set(hues)) <= FEW_HUES:
        return [0] * len(hues)
    order = [hue for hue in dict.fromkeys(hues) if hue != INK]
    return [0 if hue == INK else order.index(hue) for hue in hues]


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
    plain = [c for c in columns if not c.uncongested]
    drop_tails = [c for c in plain if c.qdisc["kind"] in DROP_TAIL]
    families = [_family(c) for c in plain]
    hues = hues_of([(_family(c), str(c.qdisc["kind"])) for c in plain if c not in drop_tails[:1]])
    for column in columns:
        if column.uncongested:
            looks[column.name] = Look(REFERENCE, (0, (5, 2)), 2.4, 3)
        elif drop_tails and column is drop_tails[0]:
            looks[column.name] = Look(INK, "-", 2.8, 4)
        else:
            family = _family(column)
            has_both = families.count(family) > 1
            dashed = has_both and not column.ecn
            looks[column.name] = Look(hues[family], (0, (2.2, 1.3)) if dashed else "-", 1.8, 5)
    told = marks_of([looks[column.name].color for column in plain])
    return looks | {c.name: replace(looks[c.name], spaced=mark) for c, mark in zip(plain, told, strict=True)}


def _looks_of_witnesses(columns: Sequence[Column]) -> dict[str, Look]:
    """A hue for each variant, black for the first drop-tail queue; a style for each witness."""
    looks: dict[str, Look] = {}
    plain = [c for c in columns if not c.uncongested]
    first = next((c.subject for c in plain if c.qdisc["kind"] in DROP_TAIL), None)
    hues = hues_of([(c.subject, str(c.qdisc["kind"])) for c in plain if c.subject != first])
    if first is not None:
        hues[first] = INK
    for column in columns:
        if column.uncongested:
            looks[column.name] = Look(REFERENCE, (0, (5, 2)), 2.4, 3)
            continue
        is_simulated = column.witness == "simulated"
        style = WITNESSES.get(column.witness, WITNESSES["live"])
        looks[column.name] = Look(hues[column.subject], style, 2.0 if is_simulated else 1.7, 4 if is_simulated else 5)
    return looks
