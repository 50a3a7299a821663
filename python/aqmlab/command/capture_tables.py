"""What the command line shows of a capture."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aqmlab import statistics
from aqmlab.capture.against import Check, Paired
from aqmlab.capture.measure import Measured
from aqmlab.command.tables import short_table, show
from aqmlab.links import WAYS

_ROWS = (
    ("offered_packets", "packets offered", "count"),
    ("delivered_packets", "packets delivered", "count"),
    ("throughput_bps", "throughput", "bps"),
    ("loss_ratio", "loss ratio", "share"),
    ("mark_ratio", "mark ratio", "share"),
    ("queue_delay_mean_s", "mean queueing delay", "s"),
    ("queue_delay_p99_s", "99 % waited at most", "s"),
    ("retransmitted_segments", "retransmitted segments", "count"),
    ("unmatched_packets", "delivered, not seen to come", "count"),
)


def measured(out: Console, found: Measured) -> None:
    """Prints the directions that were captured side by side, then the exchanges."""
    said = found.as_dict()
    title = f"{found.path.name}: {found.packets:,} packets, {found.start_s:g} to {found.end_s:g} s"
    ways = [WAYS[way] for way in found.ways]
    table = _table(title, "", *ways)
    for key, name, unit in _ROWS:
        table.add_row(name, *(_value(said[way][key], unit) for way in ways))
    for kind in ("dropped", "marked"):
        for reason in sorted({reason for way in ways for reason in said[way][kind]}):
            table.add_row(f"{kind}: {reason}", *(_value(said[way][kind].get(reason, 0), "count") for way in ways))
    show(out, table)
    exchanges = said["exchanges"]
    if exchanges is None:
        return
    if exchanges["completed"]:
        table = _table(
            f"{exchanges['completed']:,} exchanges of {said['connections']:,} connections", "", "at the queue", "hosts"
        )
        for share in exchanges["response_time_s"]:
            row = (exchanges[key][share] for key in ("at_queue_s", "response_time_s"))
            table.add_row(f"response time, {share}", *(_value(value, "s") for value in row))
        show(out, table)
    if exchanges["unfinished"]:
        out.print(f"{exchanges['unfinished']:,} exchanges were not finished.")


def against(out: Console, checks: Sequence[Check], pairs: dict[str, Paired]) -> None:
    """Prints quantity by quantity, then response times by direction."""
    table = _table("Against the run", "", "captured", "recorded", "", "may differ by")
    words = {
        True: Text("same", style="green"),
        False: Text("differs", style="bold red"),
        None: Text("not told", style="dim"),
    }
    for check in checks:
        allowed = _allowed(check)
        table.add_row(check.title, _exact(check.captured), _exact(check.recorded), words[check.agrees], allowed)
    show(out, table)
    for name, pair in pairs.items():
        found = pair.difference_s
        if not found.size:
            out.print(f"{name}: {pair.recorded:,} exchanges recorded, none of them found in the capture.")
            continue
        low, middle, high = 1e3 * statistics.quantiles(found, (0.01, 0.5, 0.99))
        out.print(
            f"{name}: {found.size:,} of {pair.recorded:,} exchanges found in the capture; response times recorded less "
            f"captured: median {middle:+.3f} ms, 98 % within {low:+.3f} and {high:+.3f} ms."
        )


def _allowed(check: Check) -> Text:
    """The tolerance that `same` stands for."""
    said = [f"{100 * check.tolerance:g} %"] if check.tolerance else []
    if check.least:
        unit = check.unit.removesuffix("s") if check.least == 1 else check.unit
        said.append(f"{1e6 * check.least:g} us" if check.unit == "s" else f"{check.least:g} {unit}")
    return Text(" or ".join(said) or "nothing", style="dim")


def _table(title: str, *columns: str) -> Table:
    table = short_table(title)
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.3f} %"
    if unit == "s":
        return f"{1000 * value:.3f} ms"
    if unit == "bps":
        return f"{value / 1e6:.4g} Mb/s"
    return f"{value:,}"


def _exact(value: float | None) -> str:
    return "–" if value is None else f"{value:,.9g}"
