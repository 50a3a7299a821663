"""The network of a scenario: links as boxes, each block of traffic as a pair of lines over those that it crosses."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from aqmlab import links, subject, units
from aqmlab.comparison import Column
from aqmlab.figures.drawn import POINTS_PER_INCH, Drawn
from aqmlab.figures.legends import CHARACTER, wrapped
from aqmlab.figures.looks import GRID, HUES, INK, MUTED, PAPER
from aqmlab.figures.sheet import TYPE, Sheet

LINE = 1.35
"""Between the lines of a text, in sizes of the type, as all heights and widths here."""
SPACING = 1.25
"""The same as a multiple of what the type itself takes."""
EDGE, GAP, NARROW_GAP, END = 0.3, 1.8, 1.2, 0.9
"""Left and right of all; between two boxes, where hosts stand; from a box to the hosts that stand beside it."""
AROUND, WIDEST = 1.5, 9.0
"""Left and right of the words in a box, together; a box that needs less is so wide."""
BAND, APART = 2.0, 0.75
"""Height of the band below a box for each block, and between the two lines of the block."""
BOLD, SMALLEST = 0.62, 0.75
"""Mean width of a bold character; the least share of the type's size that a name in a box has."""


@dataclass(frozen=True)
class Box:
    """A link: its name, and what is to be known of it."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Lane:
    """A block of traffic: its words, its routes as places of boxes, and which ways its data go."""

    words: str
    routes: Mapping[str, tuple[int, ...]]
    data: tuple[str, ...]
    hue: str


def network(columns: Sequence[Column]) -> Drawn | None:
    """Of the first column that is no reference, or of one with more links; none where there is one link, always the
    same, without a delay."""
    shown = [column for column in columns if not column.uncongested] or list(columns)
    column = max(shown, key=lambda column: len(links.of(column.scenario)))
    scenario, *others = [column.scenario, *(one.scenario for one in shown if one is not column)]
    if not _is_worth_it(scenario):
        return None
    order = _in_order(scenario)
    boxes = [Box(name, tuple(_said(name, [scenario, *others]))) for name in order]
    lanes = [_lane(scenario, number, order) for number in range(len(scenario["traffic"]))]
    caption = (
        "The network. Boxes are links: what they carry, their discipline and the delay behind them, → forward and ← in "
        "reverse. Each block of traffic is a pair of lines from the hosts that send (square) to those that receive "
        "(arrow), with a dot on each link that it crosses: the upper line forward, the lower one in reverse; thick "
        "where data go, thin where only acknowledgements and requests do."
    )
    if not links.are_alike([scenario, *others]):
        caption += f" That is the network of {column.label}; others have other links."
    return Drawn("topology", "The network", caption, partial(_draw, boxes, lanes))


def _is_worth_it(scenario: Mapping[str, Any]) -> bool:
    every = links.of(scenario).values()
    says = any(links.changes(link) or {"delay", "reverse_delay"} & link.keys() for link in every)
    return links.are_several(scenario) or says or any("rtt_at" in block for block in scenario["traffic"])


def _in_order(scenario: Mapping[str, Any]) -> list[str]:
    """The links from left to right: as forward packets meet them, and else as the file has them."""
    names = list(links.of(scenario))
    before: dict[str, set[str]] = {name: set() for name in names}
    for block in scenario["traffic"]:
        route = links.route(scenario, block, "forward")
        for one, other in pairwise(route):
            before[other].add(one)
    order: list[str] = []
    sorter = TopologicalSorter(before)
    try:
        sorter.prepare()
        while sorter.is_active():
            ready = sorted(sorter.get_ready(), key=names.index)
            order += ready
            sorter.done(*ready)
    except CycleError:  # links that routes cross in both orders
        return names
    return order


def _said(name: str, scenarios: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What a box says of a link, line by line."""
    link = links.of(scenarios[0])[name]
    every: list[Any] = [link, *(link.get("schedule") or link.get("states") or [])]
    rates = [
        _range([units.rate_bps(one[key], key) for one in every], units.say_rate) for key in ("rate", "reverse_rate")
    ]
    yield from _both_ways(rates)
    if how := [word for key, word in _HOW.items() if key in link]:
        yield how[0]
    kinds = {
        tuple(own[key]["kind"] for key in ("qdisc", "reverse_qdisc"))
        for scenario in scenarios
        if (own := links.of(scenario).get(name))
    }
    yield from _both_ways(list(kinds.pop())) if len(kinds) == 1 else ["discipline varies"]
    delays = [
        _range([units.seconds(one.get(key, "0s"), key) for one in every], units.say_seconds)
        for key in ("delay", "reverse_delay")
    ]
    if any(links.of(scenarios[0])[name].get(key, "0s") != "0s" for key in ("delay", "reverse_delay")) or len(every) > 1:
        yield from (f"delay {one}" for one in _both_ways(delays) if one[0] != "0")


_HOW = {"schedule": "by schedule", "states": "at random", "trace": "by a trace", "reverse_trace": "by a trace"}
"""How a link changes."""


def _range(values: Sequence[float], say: Any) -> str:
    low, high = min(values), max(values)
    return str(say(low)) if low == high else f"{say(low)} to {say(high)}"


def _both_ways(texts: Sequence[str]) -> list[str]:
    # Without a break before the arrow.
    return [texts[0]] if texts[0] == texts[1] else [f"{texts[0]}\u00a0→", f"{texts[1]}\u00a0←"]


def _lane(scenario: Mapping[str, Any], number: int, order: Sequence[str]) -> Lane:
    block = scenario["traffic"][number]
    rates = links.rates_bps(scenario, order[0], "scenario")
    what = subject.block({key: item for key, item in block.items() if key != "load"}, rates)
    words = f"{links.block_title(scenario, number)}: {what}{_round_trip(scenario, block)}"
    routes = {way: tuple(order.index(name) for name in links.route(scenario, block, way)) for way in links.WAYS}
    if list(routes["forward"]) != sorted(routes["forward"]):
        words += f", over {', then '.join(order[k] for k in routes['forward'])}"
    direction = block.get("direction", "both")
    data = links.WAYS if direction == "both" else (str(direction),)
    return Lane(words, routes, data, HUES[number % len(HUES)])


def _round_trip(scenario: Mapping[str, Any], block: Mapping[str, Any]) -> str:
    rtt = block.get("rtt", scenario.get("path", {}).get("rtt"))
    if isinstance(rtt, Mapping):
        ends = rtt.get("uniform") or rtt.get("even")
        said = " to ".join(_seconds(end) for end in ends) if isinstance(ends, list) else ""
    else:
        said = _seconds(rtt) if isinstance(rtt, str) else ""
    where = f" at its {block['rtt_at']}" if block.get("rtt_at", "senders") != "senders" else ""
    return f"; RTT of its paths {said}{where}" if said else ""


def _seconds(text: Any) -> str:
    return units.say_seconds(units.seconds(text, "rtt"))


def _draw(boxes: Sequence[Box], lanes: Sequence[Lane], sheet: Sheet) -> Figure:
    gap = GAP if not sheet.is_narrow else NARROW_GAP
    width = (sheet.ems - 2 * EDGE - (len(boxes) + 1) * gap) / len(boxes)
    needed = max(len(line) for box in boxes for line in (box.name, *box.lines)) * CHARACTER + AROUND
    heads, notes = [box.name for box in boxes], []
    if needed <= width:
        width = min(width, max(needed, WIDEST))
        texts = [box.lines for box in boxes]
    else:  # what boxes have no room for stands below them
        texts = [()] * len(boxes)
        if max(map(len, heads)) * BOLD * SMALLEST + 0.4 > width:
            heads = [str(k) for k in range(1, len(boxes) + 1)]
        called = [
            box.name if box.name == head else f"{head}, {box.name}" for box, head in zip(boxes, heads, strict=True)
        ]
        every = [f"{name}: {', '.join(box.lines)}" for name, box in zip(called, boxes, strict=True)]
        notes = [wrapped(note, sheet.ems - 2 * EDGE) for note in every]
    room = (sheet.ems - 2 * EDGE - len(boxes) * width) / (len(boxes) + 1)
    bands = [(left, left + width) for left in (EDGE + room + k * (width + room) for k in range(len(boxes)))]
    top = (1 + max(map(len, texts))) * LINE + 0.9
    words = [wrapped(lane.words, sheet.ems - 2 * EDGE) for lane in lanes]
    heights = [_height(text) + BAND + 0.6 for text in words]
    height = top + 0.8 + sum(map(_height, notes)) + (0.5 if notes else 0.0) + sum(heights)
    figure = Figure(figsize=sheet.size(height * TYPE / POINTS_PER_INCH))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, sheet.ems)
    axes.set_ylim(height, 0)
    for band, head, lines in zip(bands, heads, texts, strict=True):
        _box(axes, band, top, head, lines, sheet)
    y = top + 0.8
    for note in notes:
        axes.text(EDGE, y, note, va="top", color=INK, linespacing=SPACING)
        y += _height(note)
    y += 0.5 if notes else 0.0
    for lane, said, high in zip(lanes, words, heights, strict=True):
        axes.text(EDGE, y, said, va="top", color=INK, linespacing=SPACING, zorder=6)
        y += high
        middle = y - 0.5 - BAND / 2
        for left, _ in bands:
            place = (left, middle - BAND / 2), width, BAND
            axes.add_patch(Rectangle(*place, facecolor=GRID, edgecolor="none", zorder=2))
        for way, at in zip(links.WAYS, (middle - APART / 2, middle + APART / 2), strict=True):
            _line(axes, lane, way, at, bands, room, sheet)
    return figure


def _height(text: str) -> float:
    return (text.count("\n") + 1) * LINE


def _box(axes: Axes, band: tuple[float, float], bottom: float, head: str, lines: Sequence[str], sheet: Sheet) -> None:
    left, right = band
    look: dict[str, Any] = {"facecolor": PAPER, "edgecolor": MUTED, "linewidth": sheet.points(1.2), "zorder": 4}
    axes.add_patch(Rectangle((left, 0.15), right - left, bottom - 0.15, **look))
    size = sheet.type * min(1.0, (right - left - 0.4) / (len(head) * BOLD))
    for k, line in enumerate((head, *lines)):
        weight: dict[str, Any] = {"fontweight": "bold", "fontsize": size} if k == 0 else {}
        middle = (left + right) / 2, 0.55 + (k + 0.5) * LINE
        axes.text(*middle, line, ha="center", va="center", color=INK, zorder=5, **weight)


def _line(
    axes: Axes,
    lane: Lane,
    way: str,
    y: float,
    bands: Sequence[tuple[float, float]],
    room: float,
    sheet: Sheet,
) -> None:
    """One direction of a block: over the links of its route and behind the others."""
    route = lane.routes[way]
    end = min(END, room / 2 - 0.15)
    left, right = bands[min(route)][0] - end, bands[max(route)][1] + end
    ends = (left, right) if way == "forward" else (right, left)
    has_data = way in lane.data
    wide = sheet.points(2.2 if has_data else 0.9)
    arrow = FancyArrowPatch(
        (ends[0], y),
        (ends[1], y),
        arrowstyle="-|>",
        mutation_scale=sheet.points(9.0),
        shrinkA=0,
        shrinkB=0,
        color=lane.hue,
        linewidth=wide,
        zorder=1,
    )
    axes.add_patch(arrow)
    for k in route:
        axes.plot(bands[k], (y, y), color=lane.hue, linewidth=wide, zorder=3, solid_capstyle="butt")
        middle = sum(bands[k]) / 2
        size = sheet.points(5.0 if has_data else 3.2)
        axes.plot([middle], [y], "o", color=lane.hue, markersize=size, zorder=4, markeredgewidth=0)
    axes.plot([ends[0]], [y], "s", color=lane.hue, markersize=sheet.points(4.0), zorder=4, markeredgewidth=0)
