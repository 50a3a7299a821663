"""These functions print what `aqmlab list` and `aqmlab explain` say of disciplines, stacks, traffic and measures.

They also describe a file of connection vectors, and say what a capture was converted to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from aqmlab import units
from aqmlab.command.tables import sentence, short_table, show

if TYPE_CHECKING:
    from aqmlab.explained import WorkedOut
    from aqmlab.measures.measure import Parameter
    from aqmlab.vectors import Converted

Row = dict[str, Any]

_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_RATES = (("tbit", 1e12), ("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0))
_MIB = 2**20
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_NUMBER = re.compile(r"([0-9]+\.[0-9]+)([a-z]*)")


def registry(out: Console, title: str, rows: Sequence[Row]) -> None:
    """Prints a table of what there is of one kind: a name and a line each, for disciplines with the year and ECN."""
    table = short_table(title)
    # The less between the columns, the more for the last one, where the words are.
    table.padding = (0, 1, 0, 0)
    table.add_column("name", style="bold", no_wrap=True)
    have_years = all("marks" in row for row in rows)
    if have_years:
        table.add_column("year", style="dim", no_wrap=True)
        table.add_column("kind", no_wrap=True)
        table.add_column("ECN", no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        facts = [str(row["year"]), row["kind"], "marks" if row["marks"] else "–"] if have_years else []
        aliases = f" Also called {', '.join(row['aliases'])}." if row.get("aliases") else ""
        table.add_row(row["name"], *facts, Text.assemble(row["doc"], (aliases, "dim")))
    out.print(table)


def explanation(out: Console, row: Row) -> None:
    """Prints one discipline, stack or traffic model, with all its parameters and the sources of their defaults."""
    out.print(_head(row))
    out.print(row["doc"], markup=False)
    if row.get("source"):
        out.print(Text(str(row["source"]), style="dim"))
    if row.get("aliases"):
        out.print(f"Also called {', '.join(row['aliases'])}.", markup=False)
    if params := row.get("params"):
        lines = [(param["name"], _default(param), range_text(param)) for param in params]
        _entries(out, ("parameter", "default", "range"), lines, [(p["doc"], p.get("source")) for p in params])
        if gauges := row.get("gauges"):
            shown = [(g["name"], g["unit"] or "–", g["column"]) for g in gauges]
            _entries(out, ("it shows", "unit", "column of queue.parquet"), shown, [(g["doc"], None) for g in gauges])
        if causes := row.get("causes"):
            told = [(cause["name"], cause["kind"], "") for cause in causes]
            _entries(out, ("its own cause", "counts as", ""), told, [(cause["doc"], None) for cause in causes])
    elif values := row.get("values"):
        table = short_table()
        for heading, style in zip(row.get("headings", ("value of", "", "source")), ("bold", "", "dim"), strict=True):
            table.add_column(heading, style=style, no_wrap=style == "bold")
        for value in values:
            table.add_row(value["name"], str(value["value"]), str(value.get("source") or ""))
        out.print(table)


def measures(out: Console, rows: Sequence[Row]) -> None:
    """Prints the catalogue of measures: a line each, with unit and formula."""
    table = short_table("measures")
    table.padding = (0, 1, 0, 0)
    table.add_column("name", style="bold", no_wrap=True)
    table.add_column("unit", style="dim")
    table.add_column("what it is")
    for row in rows:
        # What can be asked for has its own name alone; of the others several tables of the summary may have one.
        name = row["name"] if row["parameters"] is not None else row["key"].removeprefix("forward.")
        table.add_row(name, row["unit"] or "–", Text(plain(row["formula"])))
    out.print(table)


def measure(out: Console, row: Row) -> None:
    """Prints one measure: its unit and formula, its source, its key in summary.json, and how a claim asks for it."""
    out.print(Text.assemble((row["name"], "bold"), f" · {row['title']}", f" · {row['unit']}" if row["unit"] else ""))
    out.print(plain(row["formula"]), markup=False)
    out.print(Text(f"Worked out of: {plain(row['source'])}", style="dim"))
    if key := row["key"]:
        also = f" and {key.replace('forward.', 'reverse.', 1)}" if key.startswith("forward.") else ""
        out.print(f"In summary.json: {key}{also}.", markup=False)
    if row["parameters"] is None:
        return
    from aqmlab.measures import catalogue

    parameters = catalogue.catalogue()[row["name"]].parameters
    needed = "".join(f", {one.name} = ..." for one in parameters if one.is_needed)
    out.print(f'In claims, figures and tables: {{ measure = "{row["name"]}"{needed} }}.', markup=False)
    if parameters:
        lines = [(one.name, _default_of(one), one.says) for one in parameters]
        _entries(out, ("parameter", "default", "what may be written"), lines, [("", None)] * len(lines))


def plain(text: str) -> str:
    """Strips links and backticks from a text of the documentation."""
    return _LINK.sub(r"\1", text).replace("`", "")


def _default_of(parameter: Parameter) -> str:
    if parameter.default in (None, ""):
        return "needed" if parameter.is_needed else "absent"
    return _shown(parameter.default)


def worked_out(out: Console, found: WorkedOut) -> None:
    """Prints the parameters that a discipline has before a link: those computed, those given, then the defaults."""
    out.print(Text.assemble(_head(found.row), f", before a link of {units.say_rate(found.rate_bps)}"))
    others = tuple(key for key in found.values if key not in (*found.given, *found.computed))
    groups = [("computed", found.computed), ("given", found.given), ("default", others)]
    width = max(len(key) for key in found.values)
    shown = {key: _shown(value) for key, value in found.values.items()}
    widest = max(map(len, shown.values()))
    for title, keys in groups:
        if keys:
            out.print()
        for position, key in enumerate(keys):
            line = Text.assemble((f"{title if position == 0 else '':10}", "dim"), (f"{key:{width}}  ", "bold"))
            line.append(f"{shown[key]:{widest}}", style="dim" if title == "default" else "")
            out.print(line)
    absent = [param["name"] for param in found.row["params"] if param["name"] not in found.values]
    if absent:
        out.print(Text(f"\nAbsent: {', '.join(absent)}.", style="dim"))
    if (room := found.room) is not None and room.holds_s:
        wanted = f"; expected {room.wanted}" if room.is_short else ""
        out.print(Text(f"\nlimit = {room.limit} {room.said}{wanted}.", style="" if room.is_short else "dim"))
        if room.is_slow:
            out.print(f"{room.slow}.", markup=False, highlight=False)
    if found.equilibrium is not None:
        _equilibrium(out, found, found.equilibrium)


def _equilibrium(out: Console, found: WorkedOut, at: dict[str, float]) -> None:
    # What waits is sent at the link's rate, whatever UDP has of it; the model's round trip has TCP's part of the rate.
    packet_bytes, _ = units.quantity(str(found.values["mean_packet"])) or (0.0, "")
    queue_s = 8 * at["queue_packets"] * packet_bytes / found.rate_bps
    rows = [
        ("drop probability", f"{100 * at['drop_probability']:.3g} %"),
        ("queue", f"{at['queue_packets']:.4g} packets, {units.say_seconds(queue_s)}"),
        ("its round trip", units.say_seconds(at["rtt_s"])),
        ("window of a flow", f"{at['window_packets']:.3g} packets"),
        ("left for TCP", f"{units.say_rate(at['tcp_bps'])}, {100 * at['tcp_bps'] / found.rate_bps:.3g} % of the link"),
    ]
    whose = "what UDP leaves of the link" if "udp_rate" in found.values else "the link"
    out.print(Text(f"\nEquilibrium: {_shown(found.values['flows'])} TCP flows just fill {whose}", style="bold"))
    for title, value in rows:
        out.print(f"{title:18}{value}", markup=False)
    if changed := [key for key in found.given if key in ("min", "max", "probability", "wq", "limit")]:
        verb = "was" if len(changed) == 1 else "were"
        out.print(Text(f"It is the model's own: {', '.join(changed)} {verb} given, not computed for it.", style="dim"))


def quantities(out: Console, rows: Sequence[Row]) -> None:
    """Prints the distributions of a traffic model: mean and quantiles of each quantity, for sizes who has the bytes."""
    if not rows:
        return
    table = short_table()
    table.padding = (0, 1, 0, 0)
    table.add_column("", no_wrap=False)
    table.add_column("mean", justify="right", no_wrap=True)
    for share in ("10 %", "25 %", "median", "75 %", "90 %", "99 %"):
        table.add_column(share, justify="right", no_wrap=True)
    table.add_column("largest\n10 % have", justify="right", no_wrap=True)
    table.add_column("largest\n1 % have", justify="right", no_wrap=True)
    for row in rows:
        values = [row["quantiles"][f"p{q}"] for q in (10, 25, 50, 75, 90, 99)]
        mean = "infinite" if row["mean"] is None else _measured(row["mean"], row["unit"])
        carried = [row["share_of_largest"][key] for key in ("10%", "1%")]
        table.add_row(
            str(row["name"]),
            mean,
            *(_measured(value, row["unit"]) for value in values),
            *("–" if share is None else f"{100 * share:.3g} %" for share in carried),
        )
    show(out, table)
    for row in rows:
        up_to = row.get("up_to")
        if up_to and up_to["10kb"]["of_values"] < 1:
            parts = []
            for key, size in (("10kb", "10 kB"), ("1mb", "1 MB")):
                share = up_to[key]["of_bytes"]
                carry = "" if share is None else f" and have {_percent(share)} of the bytes"
                parts.append(f"{_percent(up_to[key]['of_values'])} are up to {size}{carry}")
            sentence(out, f"{row['name']}: {'; '.join(parts)}", "dim")


def _percent(share: float) -> str:
    # Close to all is not all.
    return f"{100 * share:.3g} %" if share < 0.995 or share == 1 else f"{100 * share:.5g} %"


def _measured(value: float, unit: str) -> str:
    match unit:
        case "bytes":
            for name, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
                if value >= size:
                    return f"{value / size:.3g} {name}"
            return f"{value:.3g} B"
        case "s":
            return units.say_seconds(value)
        case "share":
            return f"{100 * value:.3g} %"
    return f"{value:.3g}"


def described(out: Console, path: Path, found: Row) -> None:
    """Describes a set of connection vectors: how many, over what time, with how many bytes."""
    both = found["initiator_bytes"] + found["acceptor_bytes"]
    out.print(Text.assemble((str(path), "bold")))
    out.print(
        f"{found['connections']:,} connections in {found['span_s']:,.6g} s, "
        f"{found['concurrent']:,} of them concurrent; "
        f"{_measured(both, 'bytes')}, {_percent(found['acceptor_bytes'] / both)} of them from acceptors"
    )
    quantities(out, found["quantities"])


def converted(out: Console, found: Converted) -> None:
    """Says in a few lines what a capture was converted to, and what was left out."""
    count = {name: f"{value:,}" for name, value in found.as_dict().items() if isinstance(value, int)}
    out.print(
        f"{count['sequential']} sequential and {count['concurrent']} concurrent connections of "
        f"{found.duration_s:,.6g} s in {found.vectors}",
        markup=False,
        soft_wrap=True,
    )
    sentence(
        out,
        f"{count['initiator_bytes']} B from initiators, {count['acceptor_bytes']} B from acceptors; "
        f"{count['unfinished']} connections whose end is missing",
    )
    left = [
        f"{count[key]} {text}"
        for key, text in (
            ("without_beginning", "whose SYNs are missing"),
            ("without_answer", "never answered"),
            ("without_data", "without data"),
            ("elsewhere", "from elsewhere"),
        )
        if count[key] != "0"
    ]
    if left:
        sentence(out, f"Left out: connections {', '.join(left)}.", "dim")
    odd = [
        f"{count[key]} {text}"
        for key, text in (
            ("unreadable_frames", "frames without whole headers or fragments"),
            ("missed_bytes", "bytes acknowledged but not captured"),
            ("earlier_frames", "frames earlier than one before them, put into their order"),
            ("unsorted_segments", "segments that came too late for that"),
            ("copies", "copies of packets that came just before, left out"),
            ("stray_resets", "resets outside of the receiver's window, not heeded"),
            (
                "without_scale",
                "connections whose windows may be larger, as the scale in their SYNs was cut off: were more bytes of "
                "each frame kept (tcpdump -s 128), it could be read",
            ),
            ("beyond_limits", "connections with times or sizes beyond what is read, cut to that"),
        )
        if count[key] != "0"
    ]
    if odd:
        sentence(out, f"In the capture: {', '.join(odd)}.", "dim")


def _head(row: Row) -> Text:
    facts = []
    if "marks" in row:
        ecn = "with ecn it marks" if row["marks"] else "drops only"
        facts = [str(row.get("kind") or ""), str(row["year"] or ""), ecn]
    return Text.assemble((row["name"], "bold"), *((f" · {fact}", "") for fact in facts if fact))


def _entries(
    out: Console,
    titles: tuple[str, str, str],
    lines: Sequence[tuple[str, str, str]],
    notes: Sequence[tuple[str, str | None]],
) -> None:
    """Prints entries one after another: name, default and range, and below in full lines what the entry is.

    So it can be read at any width of the terminal. `notes` has text and source of each line.
    """
    first, second = (max(len(line[column]) for line in (titles, *lines)) for column in (0, 1))

    def line(cells: tuple[str, str, str], styles: tuple[str, str, str]) -> Table:
        # A range that is too long goes on below itself.
        grid = Table.grid(padding=(0, 2, 0, 0))
        for width, style in zip((first, second, None), styles, strict=True):
            grid.add_column(width=width, style=style)
        grid.add_row(*map(Text, cells))
        return grid

    out.print()
    out.print(line(titles, ("dim underline",) * 3))
    for cells, (doc, source) in zip(lines, notes, strict=True):
        out.print(line(cells, ("bold", "", "dim")))
        if not doc:
            continue
        out.print(Padding(Text.assemble(doc, (f" [{source}]", "dim") if source else ""), (0, 0, 0, 4)))


def _default(param: Row) -> str:
    if param.get("default") not in (None, ""):
        return str(param["default"])
    return "computed" if param.get("computed") else "absent"


def range_text(param: Row) -> str:
    """Says what a parameter may be set to, as in `0 to 4e9 packets or bytes`, `1us to 10s` or `1 byte to 1 MiB`.

    Tables in the pages of disciplines say the same.
    """
    if words := param.get("words"):
        return ", ".join(words)
    low, high = param.get("range") or (None, None)
    unit = str(param.get("unit") or "")
    # Times and rates as a scenario has them: each end with a unit of its own.
    sizes = {"s": _TIMES, "bit/s": _RATES}.get(unit)
    if sizes is not None:
        ends = [None if end is None else _scaled(end, sizes) for end in (low, high)]
        unit = ""
    elif unit == "bytes" and any(end and end % _MIB == 0 for end in (low, high)):
        ends = [None if end is None else _sized(end) for end in (low, high)]
        unit = ""
    else:
        ends = [None if end is None else _short(end) for end in (low, high)]
    match ends:
        case [None, None]:
            text = ""
        case [None, _]:
            text = f"at most {ends[1]}"
        case [_, None]:
            text = f"at least {ends[0]}"
        case _:
            text = f"{ends[0]} to {ends[1]}"
    return f"{text} {unit}".strip()


def _scaled(x: float, sizes: Sequence[tuple[str, float]]) -> str:
    # Zero is in the unit itself.
    unit, size = next((pair for pair in sizes if pair[1] <= (x or 1.0)), sizes[-1])
    return f"{_short(x / size)}{unit}"


def _sized(x: float) -> str:
    """A size, in MiB where it is whole ones."""
    if x and x % _MIB == 0:
        return f"{_short(x / _MIB)} MiB"
    return f"{_short(x)} byte{'s' * (x != 1)}"


def _short(x: float) -> str:
    """Writes a number as people do, with an exponent where one would have to count zeros."""
    if x == 0 or 1e-3 <= abs(x) < 1e5:
        return f"{x:.12g}"
    mantissa, exponent = f"{x:.12e}".split("e")
    return f"{float(mantissa):.12g}e{int(exponent)}"


def _shown(value: Any) -> str:
    """Writes a value of a scenario for a reader: numbers to four digits, units as they stand in the scenario."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.12g}" if float(value).is_integer() else f"{value:.4g}"
    number = _NUMBER.fullmatch(str(value))
    if number is None or len(number[1].replace(".", "")) <= 5:
        return str(value)
    return f"{float(number[1]):.5g}{number[2]}"
