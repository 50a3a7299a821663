"""The verbs `list` and `explain`: what there is, and what each is."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from aqmlab import engine, scenario, toml_text
from aqmlab.command import completion, glossary
from aqmlab.command import study as study_commands
from aqmlab.command.verbs import AsJson, print_json
from aqmlab.errors import BadInput
from aqmlab.laws import brought, forms


def add_to(app: typer.Typer) -> None:
    """Makes them verbs of `app`."""
    app.command("list", short_help="List disciplines, stacks, controllers, models, measures.")(list_what_there_is)
    app.command(short_help="Explain a discipline, stack, controller, model or measure.")(explain)


def _disciplines() -> list[dict[str, Any]]:
    """The disciplines with a row of their own. Laws under fair queueing are only named, in one line."""
    return [row for row in engine.disciplines() if row["law"] is None]


KINDS = {
    "disciplines": _disciplines,
    "stacks": engine.stacks,
    "controllers": engine.controllers,
    "traffic": engine.traffic_models,
}
LISTED = {**KINDS, "measures": engine.measures, "studies": study_commands.rows}


OF_CONTROLLERS = "cc:"
"""What stands before a congestion controller where `evaluate` names it."""


def list_what_there_is(
    kind: Annotated[
        str | None,
        typer.Argument(metavar=f"[{'|'.join(LISTED)}]", show_default=False, autocompletion=lambda: list(LISTED)),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the disciplines, TCP stacks, congestion controllers, traffic models, measures and studies there are."""
    if kind is not None and kind not in LISTED:
        raise BadInput(f"list {kind}: expected one of {', '.join(LISTED)}")
    shown = {name: rows() for name, rows in LISTED.items() if kind in (None, name)}
    if as_json:
        print_json(shown)
        return
    from aqmlab.command import explanations, terminal

    console = terminal.console()
    for name, rows in shown.items():
        if name == "measures":
            explanations.measures(console, rows)
            continue
        explanations.registry(console, name, rows)
        if name == "disciplines":
            there = {row["name"] for row in engine.disciplines()}
            fair = ", ".join(row["name"] for row in engine.disciplines() if row["law"] is not None)
            alone = [row["name"] for row in rows if row["kind"] == "law" and f"{forms.FAIR}{row['name']}" not in there]
            but = f" but {' and '.join(alone)}" if alone else ""
            console.print(
                f"Any law{but} also runs under fair queueing, a law on each flow's queue: {fair}.", style="dim"
            )


def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A discipline, stack, controller, model, measure or word; or a file .py, .so, .csv, .cvec.",
            autocompletion=completion.what_is_explained,
        ),
    ],
    rate: Annotated[
        str | None, typer.Option(help="Rate of a link, as 10mbit: show the discipline's values as they are before it.")
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option("--set", help="With --rate: give a parameter, as in --set flows=64", metavar="KEY=VALUE"),
    ] = [],  # noqa: B006 - typer copies it
    as_json: AsJson = False,
) -> None:
    """Explain one discipline, stack, controller, traffic model or measure: parameters, ranges, defaults, sources.

    For a congestion controller it shows which keys of [tcp] it changes in the stack linux, and those that are its own.

    For a traffic model it also shows what the model draws: means, quantiles, the share of the sum that the largest
    carry. A distribution in a CSV file (value, cumulative probability) and a file of connection vectors are shown in
    that way too. A law in Python or in a shared library is explained as any other, under fair queueing
    with fq_ before the name of its file.

    A word of the glossary, such as MOS or goodput, is explained in a sentence.

    For a measure it shows the unit, the formula, and what the number is worked out of. A name in the summary, as
    udp.loss_ratio, stands for that one alone.

    With --rate it shows the values of all parameters of a discipline before a link of that rate, the computed ones too,
    how long a full queue takes to leave, and for redopt the equilibrium that they are for.
    """
    rows = {
        alias: row
        for read in (*reversed(KINDS.values()), engine.disciplines)
        for row in read()
        for alias in (row["name"], *row.get("aliases", []))
    }
    if name.startswith(OF_CONTROLLERS) and name.removeprefix(OF_CONTROLLERS) in {
        row["name"] for row in engine.controllers()
    }:
        name = name.removeprefix(OF_CONTROLLERS)
    if forms.is_file(name):
        _, rows[name] = brought.form_of(Path(name))
    if name not in rows and Path(name).suffix in (".csv", ".cvec"):
        if rate is not None or settings:
            unused = f"--rate {rate}" if rate is not None else f"--set {settings[0]}"
            raise BadInput(f"explain {name}: {unused}: expected a discipline, which a file is not")
        _explain_file(Path(name), as_json)
        return
    if measures := [] if name in rows else _measures(name):
        if rate is not None or settings:
            unused = f"--rate {rate}" if rate is not None else f"--set {settings[0]}"
            raise BadInput(f"explain {name}: {unused}: expected a discipline, which a measure is not")
        _explain_measures(measures, as_json)
        return
    if name not in rows and (term := glossary.meaning(name)):
        _explain_term(
            name,
            *term,
            unused=f"--rate {rate}" if rate else f"--set {settings[0]}" if settings else "",
            as_json=as_json,
        )
        return
    if name not in rows:
        known = [*rows, *(row["name"] for row in engine.measures()), *glossary.terms()]
        raise BadInput(f"explain {name}: {_expected(name, known)}")
    row = rows[name]
    if rate is None and settings:
        raise BadInput(f"explain {name}: --set {settings[0]}: expected --rate with it, as in --rate 10mbit")
    if rate is None:
        if any(row["name"] == one["name"] for one in engine.controllers()):
            row = {
                **row,
                "headings": ("key of [tcp]", "value", "in stack linux"),
                "values": _in_linux(str(row["name"])),
            }
        drawn = engine.quantities(str(row["name"]))
        if as_json:
            print_json({**row, "quantities": drawn} if drawn else row)
        else:
            from aqmlab.command import explanations, terminal

            console = terminal.console()
            explanations.explanation(console, row)
            explanations.quantities(console, drawn)
        return
    if "marks" not in row:
        raise BadInput(f"explain {name}: --rate {rate}: expected a discipline, which {name} is not")
    from aqmlab.explained import worked_out

    found = worked_out(row, rate, dict(map(scenario.parse_setting, settings)))
    if as_json:
        print_json(found.as_dict())
    else:
        from aqmlab.command import explanations, terminal

        explanations.worked_out(terminal.console(), found)


def _in_linux(controller: str) -> list[dict[str, Any]]:
    """What a controller changes of the stack linux, whose own is CUBIC, and the keys that are for it alone."""
    usual, chosen = (
        engine.resolve(f'[tcp]\nstack = "linux"\ncc = "{name}"\n[[traffic]]\nkind = "bulk"\n', name).scenario["tcp"]
        for name in ("cubic", controller)
    )
    changed = [
        {"name": key, "value": toml_text.value(value), "source": f"in place of {toml_text.value(usual[key])}"}
        for key, value in chosen.items()
        if value != usual[key]
    ]
    own = [
        {"name": key, "value": toml_text.value(value), "source": "for it alone"}
        for key, value in chosen.items()
        if key.startswith(f"{controller}_")
    ]
    return [*changed, *own]


def _measures(name: str) -> list[dict[str, Any]]:
    """The measures of this name: several tables of the summary may have a number of one name."""
    # What the catalogue has as forward stands for reverse too.
    key = f"forward.{name.removeprefix('reverse.')}" if name.startswith("reverse.") else name
    return [row for row in engine.measures() if name == row["name"] or key == row["key"]]


def _explain_measures(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({"measures": rows})
        return
    from aqmlab.command import explanations, terminal

    console = terminal.console()
    for position, row in enumerate(rows):
        if position:
            console.print()
        explanations.measure(console, row)


def _explain_term(name: str, term: str, said: str, unused: str, as_json: bool) -> None:
    """What a word of the glossary means."""
    if unused:
        raise BadInput(f"explain {name}: {unused}: expected a discipline, which a word of the glossary is not")
    if as_json:
        print_json({"term": term, "meaning": said})
        return
    from aqmlab.command import explanations, tables, terminal

    tables.sentence(terminal.console(), f"{term}: {explanations.plain(said)}.")


def _expected(name: str, known: Sequence[str]) -> str:
    """What a name that nobody knows was meant to be."""
    if said := forms.by_its_file(name, Path()):
        return said
    if said := engine.known_as(name):
        return said
    if models := [one for one in known if one.startswith(f"{name}/")]:
        return f"expected one of its models: {', '.join(models)}"
    alike = difflib.get_close_matches(name, known, n=2)
    if alike:
        return f"unknown; did you mean {' or '.join(alike)}?"
    return "expected what aqmlab list names, or a file .py, .so, .csv or .cvec"


def _explain_file(path: Path, as_json: bool) -> None:
    from aqmlab.command import explanations, terminal
    from aqmlab.vectors import reading
    from aqmlab.vectors.described import described

    if path.suffix == ".csv":
        row = engine.table_quantity(path)
        if as_json:
            print_json(row)
        else:
            explanations.quantities(terminal.console(), [row])
        return
    found = described(reading.read(path))
    if as_json:
        print_json(found)
    else:
        explanations.described(terminal.console(), path, found)
