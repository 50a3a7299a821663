"""The verb `aqmlab tc`: its words and what it prints; `tc_files.py` does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from aqmlab.command.verbs import AllowCode, AsJson, Settings, changes, complain, print_json
from aqmlab.errors import BadInput
from aqmlab.tc.lines import PARTS


def add_to(app: typer.Typer) -> None:
    """Makes it a verb of `app`."""
    app.command(name="tc", short_help="Write the tc lines of a scenario, or read tc's output.")(tc)


def tc(
    scenario_file: Annotated[str | None, typer.Argument(metavar="[SCENARIO.toml]", show_default=False)] = None,
    dump: Annotated[
        str | None, typer.Option("--read", metavar="FILE", help="Make a scenario of tc's output; - is standard input.")
    ] = None,
    dev: Annotated[str | None, typer.Option(help="The router's port forward; eth0 if none is said.")] = None,
    reverse_dev: Annotated[str | None, typer.Option(help="The one back; eth1 if none is said.")] = None,
    rate: Annotated[str | None, typer.Option(help="With --read: the link's rate, as where there is no shaper.")] = None,
    variant: Annotated[str | None, typer.Option(help="Which of a comparison file's variants.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help=f"Only the lines of a part: {', '.join(PARTS)}. May be repeated."),
    ] = None,
    settings: Settings = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Write the tc, ip route and sysctl lines for Linux, or read tc's output.

    The lines set up on Linux what SCENARIO.toml describes. --read goes the other way: tc -s qdisc show, with class
    show or -d or -j, or tc qdisc add lines become a scenario.
    """
    from aqmlab.command import tc_files

    if (scenario_file is None) == (dump is None):
        raise BadInput("tc: expected either a scenario, or --read with a file (- for standard input)")
    for part in only or ():
        if part not in PARTS or dump is not None:
            expected = "no --only beside --read" if dump is not None else f"one of {', '.join(PARTS)}"
            raise BadInput(f"--only {part}: expected {expected}")
    if scenario_file is not None and rate is not None:
        raise BadInput(f"--rate {rate}: expected it beside --read alone; a scenario's is --set link.rate={rate}")
    if dump is not None and (settings or variant is not None):
        what = f"--set {settings[0]}" if settings else f"--variant {variant}"
        raise BadInput(f"{what}: expected it with a scenario, not beside --read")
    if scenario_file is not None:
        setup = tc_files.write(scenario_file, changes(settings), variant, dev, reverse_dev)
        setup = setup.only(only or ())
        if as_json:
            print_json(setup.as_dict())
        else:
            print(setup.text, end="")
        return
    name = "standard input" if dump == "-" else str(dump)
    found = tc_files.read(str(dump), name, dev, reverse_dev, rate)
    if as_json:
        print_json(found.as_dict())
    else:
        print(found.text, end="")
    for note in found.notes:
        complain(f"{name}: {note}", 0)
