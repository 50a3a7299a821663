"""Tables on a terminal that say where simulator and test bed agree."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from aqmlab.agreement import words
from aqmlab.agreement.agreements import Agreement
from aqmlab.agreement.verdicts import AGREES, DIFFERS, UNDECIDED, VOID
from aqmlab.command.tables import short_table, show

STYLES = {AGREES: "green", DIFFERS: "bold red", UNDECIDED: "yellow", VOID: "dim"}


def agreements(out: Console, found: Sequence[Agreement]) -> None:
    """A table for each variant and witness."""
    for item in found:
        table = short_table(f"{item.name}: simulated and {item.witness}" + (f" ({item.note})" if item.note else ""))
        table.add_column("", no_wrap=True)
        for title in ("simulated", item.witness, "difference", "tolerance"):
            table.add_column(title, justify="right")
        table.add_column("", no_wrap=True)
        for finding in item.findings:
            verdict = Text(words.said_verdict(finding), style=STYLES[finding.verdict])
            table.add_row(f"{finding.title}{words.unit(finding)}", *words.cells(finding), verdict)
        show(out, table)
    if found:
        counts = words.counted([finding.verdict for item in found for finding in item.findings])
        out.print(Text(f"Simulator and test bed: {counts}.", style="bold"))
        out.print(Text(words.NOTE, style="dim"))
