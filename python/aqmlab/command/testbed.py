"""The verbs around live runs: `aqmlab kernel`, `aqmlab doctor`, `aqmlab shell`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aqmlab.command.verbs import AllowCode, AsJson, changes, print_json, say
from aqmlab.errors import CannotRun

kernels = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Build or show the kernel of virtual time.")


def add_to(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.add_typer(kernels, name="kernel")
    app.command("doctor", short_help="Say what this machine can run live.")(examine)
    app.command("shell", short_help="Open a prompt on one side of a scenario's link.")(prompt)


@kernels.command("build", short_help="Build Linux as a program with virtual time.")
def build(
    source: Annotated[
        Path | None,
        typer.Option(help="Archive or folder of Linux's source; else the distribution's package.", metavar="PATH"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to put it; else the user's cache folder.", metavar="DIR")
    ] = None,
    release: Annotated[
        str | None, typer.Option(help="Debian's source of a newer Linux, downloaded, such as 7.3.", metavar="VERSION")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What --kernel of live and compare calls it; else the release.", metavar="NAME")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Also where there is one already.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build Linux as a program with virtual time, from its source: some minutes, once.

    The source is that of Debian's package (linux-source-6.12), which is installed if need be and if this is root; with
    --release that of a newer Linux, which is downloaded from Debian's mirror, and nothing is installed.
    """
    from aqmlab.live import kernel
    from aqmlab.runs.kernels import VARIABLE

    found = kernel.build(source, out, say, fresh, release=release, name=name)
    if as_json:
        print_json(found.as_dict())
        return
    print(found.path)
    if out is not None:
        say(f"to use it: export {VARIABLE}={found.path}")


@kernels.command("show", short_help="Show a kernel of virtual time.")
def show(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None, as_json: AsJson = False
) -> None:
    """Show a kernel of virtual time: where it is, its version, what it was built with; and the names of the others."""
    from aqmlab.command import terminal
    from aqmlab.command.tables import sentence
    from aqmlab.live import kernel
    from aqmlab.runs import kernels as programs

    found = kernel.needed(name)
    if as_json:
        print_json(found.as_dict())
        return
    out = terminal.console()
    took = "" if found.seconds is None else f" in {found.seconds:.0f} s"
    built = f", built {found.built}{took} from {found.source or 'a source unknown'}" if found.built else ""
    out.print(f"{found.path}: Linux {found.release}{built}", markup=False, soft_wrap=True)
    if found.changes:
        sentence(out, f"changed: {'; '.join(found.changes)}")
    for title, prefix in (("queue disciplines", "NET_SCH_"), ("congestion controllers", "TCP_CONG_")):
        if names := found.has(prefix):
            sentence(out, f"{title}: {', '.join(names)}")
    if others := [one for one in programs.names() if one != found.name]:
        sentence(out, f"kernels with names: {', '.join(others)}")


def examine(
    clean: Annotated[
        bool,
        typer.Option("--clean", help="End and remove what killed runs left behind; runs that live are left alone."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what this machine can run live, what is missing, and what to do about it."""
    from aqmlab.command import terminal
    from aqmlab.live import doctor, registry

    out = terminal.console()
    if clean:
        removed = registry.clean()
        if as_json:
            print_json(
                {
                    "removed": [one.as_dict() for one in removed],
                    "alive": registry.living(),
                    "elsewhere": registry.elsewhere(),
                }
            )
        else:
            doctor.say_cleaned(out, removed)
        return
    found = doctor.examine()
    if as_json:
        print_json({**found.as_dict(), "left_over": [one.as_dict() for one in registry.remains()]})
    else:
        doctor.show(out, found)
        remains = registry.remains()
        for one in remains:
            what = [*one.folders, *(f"process {number}" for number in one.processes)]
            out.print(f"left by a killed run: {', '.join(what)}", markup=False, soft_wrap=True)
        if remains:
            out.print("aqmlab doctor --clean ends and removes this.")
    if not found.can_run:
        raise typer.Exit(CannotRun.exit_code)


def prompt(
    scenario_file: Annotated[str | None, typer.Argument(metavar="[SCENARIO.toml]", show_default=False)] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ...]", help="A program to run in place of a prompt.", show_default=False),
    ] = None,
    side: Annotated[str, typer.Option(help="left, where forward comes from, or right.")] = "left",
    join: Annotated[
        int | None, typer.Option(help="In place of a scenario: a shell that runs, for its other side.", metavar="PID")
    ] = None,
    traffic: Annotated[bool, typer.Option("--traffic", help="With the scenario's own traffic.")] = False,
    settings: Annotated[
        list[str],
        typer.Option("--set", help="Change a key of the scenario: --set link.qdisc.qref=24p", metavar="KEY=VALUE"),
    ] = [],  # noqa: B006 - typer copies it
    allow_code: AllowCode = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="At the end, say on standard output what the link carried; all else goes to standard error."
        ),
    ] = False,
) -> None:
    """Open a prompt on one side of a scenario's link, in real time: ping, iperf3, anything.

    A second terminal joins on the other side with --join and the number that the first one shows. A program after the
    scenario, as in shell link.toml -- ping -c 20 10.255.0.1, runs in place of the prompt, and its exit code is the
    verb's.
    """
    from aqmlab.command import live_shell as shell

    edits = changes(settings)
    raise typer.Exit(shell.open_prompt(scenario_file, side, join, traffic, edits, command or (), as_json=as_json))
