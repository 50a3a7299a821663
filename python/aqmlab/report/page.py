"""Puts a page together: words and tables for the template, figures as SVG, one file."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import applications, engine, figures, files, lead, links, separately, subject, units
from aqmlab import comparison as comparisons
from aqmlab.agreement import words
from aqmlab.agreement.agreements import Agreement, of_comparison
from aqmlab.claims import FAILS, HOLDS, OPEN
from aqmlab.claims.verdict import Claim
from aqmlab.comparison import Column, Comparison, Entry, ways_of_data
from aqmlab.figures.drawers import Begun
from aqmlab.json_files import Json
from aqmlab.report import numbers
from aqmlab.report.numbers import Cell
from aqmlab.report.templates import environment
from aqmlab.results import by_link, readable, settled, store, transport, ways
from aqmlab.results.findings import findings_of
from aqmlab.results.result import Result
from aqmlab.results.window import OF_WAY, TOGETHER, described
from aqmlab.statistics import Interval

TIMES = ("completed", "p50", "p90", "p99", "share_under_500ms", "share_under_2s")
DIRECTION = (
    ("utilisation", "share"),
    ("throughput_bps", "bps"),
    ("offered_packets", "count"),
    ("loss_ratio", "share"),
    ("mark_ratio", "share"),
    ("queue_delay_mean_s", "s"),
    ("queue_delay_sd_s", "s"),
    ("queue_delay_p99_s", "s"),
    ("queue_mean_packets", "number"),
    ("loss_run_mean", "number"),
)
"""Figures of one direction, by their names in the summary, and their units."""

BETTER = {
    **dict.fromkeys(("loss_ratio", "queue_delay_mean_s", "queue_delay_p99_s", "p50", "p90", "p99"), -1),
    **dict.fromkeys(("completed", "utilisation", "share_under_500ms", "share_under_2s"), 1),
    **dict.fromkeys(("load_median_s", "startup_median_s", "stalls_per_hour", "delay_p99_s", "p99_mean_s"), -1),
    **dict.fromkeys(("share_in_2s", "bitrate_mean_bps", "bitrate_source_bps", "mos_mean", "goodput_bps"), 1),
}
"""Whether more is better (1) or worse (-1), where that can be said; in either direction."""

UNIT_WORDS = {"share": "%", "s": "ms", "count": ""}


def write(found: Result | Comparison, asked: Sequence[Claim] = (), begun: Begun | None = None) -> Path:
    """Writes `report.html`, `numbers.csv` and then `figures/` into the result's folder.

    `asked` are the claims that a comparison answers, and `begun` its figures, if they are being drawn.
    """
    facts = _of_comparison(found, asked) if isinstance(found, Comparison) else _of_result(found)
    if any(readable.is_alike(one) for *_, one in numbers.of_page(facts)):
        facts["basis"] += f" {readable.ALIKE}"
    drawn = begun.finished() if begun else list(map(figures.pictures, figures.of(found).values()))
    page = environment().get_template("report/template.html.j2").render(**facts, drawn={one.name: one for one in drawn})
    path = found.folder / "report.html"
    store.write_text(found.folder / numbers.FILE, numbers.text(numbers.of_page(facts)))
    store.write_text(path, page)
    figures.save(drawn, found.folder / "figures")
    return path


def _measures(columns: Sequence[Column]) -> tuple[str, ...]:
    """The measures of the first table: of the way of the data on the link if there is one, of exchanges if there are
    any.

    Several links have tables of their own. Where there are no exchanges either, the first link stands for them, if it
    is the same of all columns.
    """
    scenarios = [column.scenario for column in columns]
    of_link = _of_way(ways_of_data(columns)[0])
    if not any(column.completed > 0 for column in columns):
        return of_link if links.are_alike(scenarios) else ()
    is_comparison = len(columns) > 1
    return TIMES if is_comparison and links.are_several_in(scenarios) else (*of_link, *TIMES)


def _of_way(way: str) -> tuple[str, ...]:
    return tuple(f"{way}.{name}" for name in OF_WAY)


def _is_of_link(measure: str) -> bool:
    return measure not in TIMES


def _also(columns: Sequence[Column], found: Comparison | None = None) -> list[Json]:
    """What the first table leaves out of the link in it: data the other way, and both directions together."""
    if not any(map(_is_of_link, _measures(columns))):
        return []
    groups = [(f"The link, {ways.WORDS[way]}", True, _of_way(way)) for way in ways_of_data(columns)[1:]]
    first, *others = links.of(columns[0].scenario)
    both = f"Both directions of {f'{first}, the first link,' if others else 'the link'} together"
    return [
        {
            "title": title,
            "is_way": is_way,
            "headings": _headings(measures),
            "rows": _rows(columns, measures, found),
            **_differences(found, measures),
        }
        for title, is_way, measures in (*groups, (both, False, TOGETHER))
    ]


def _of_comparison(found: Comparison, asked: Sequence[Claim]) -> Json:
    measures = _measures(found.columns)
    agreements = [agreement_facts(item) for item in of_comparison(found)]
    return {
        **_shared(found.name, found.columns, found.reps),
        "transport": _transport(found.columns, are_apart=bool(separately.ways(found))),
        "is_comparison": True,
        "folder": found.folder,
        "base": found.baseline.name,
        "failures": found.failed,
        "lead": lead.of(found),
        "headings": _headings(measures),
        "rows": _rows(found.columns, measures, found),
        **_differences(found, measures),
        "also": _also(found.columns, found),
        "applications": [_part(part) for part in applications.of(found.columns, found)],
        "parts": [_part(part) for part in separately.of(found)],
        "agreements": agreements,
        "agreement_keys": agreement_keys(agreements),
        "claims": asked,
        "claim_counts": [(verdict, sum(c.verdict == verdict for c in asked)) for verdict in (HOLDS, FAILS, OPEN)],
        "digest": found.digest,
        "commands": _commands(found),
    }


def _of_result(found: Result) -> Json:
    column = Column(Entry(found.name, ".", uncongested=False), found)
    measures = _measures([column])
    return {
        **_shared(found.name, [column], len(found.runs)),
        "transport": _transport([column], are_apart=False),
        "is_comparison": False,
        "folder": found.folder,
        "base": "",
        "failures": [],
        "lead": "",
        "headings": _headings(measures),
        "rows": _rows([column], measures),
        **_differences(None, measures),
        "also": _also([column]),
        "applications": [_part(part) for part in applications.of([column])],
        "parts": [_part(part) for part in separately.goodputs([column])],
        "agreements": [],
        "agreement_keys": [],
        "claims": [],
        "claim_counts": [],
        "digest": found.digest,
        "commands": [_again(found)],
    }


def _again(found: Result) -> str:
    """The command that makes a result once more."""
    live, reps = found.live, len(found.runs)
    words = ["aqmlab", "live" if live else "run", str(found.folder / "scenario.toml")]
    words += ["--virtual"] if live.get("clock") == "virtual" else []
    words += ["--kernel", live["kernel_name"]] if live.get("kernel_name") else []
    captured = live.get("capture")
    if captured and captured != found.scenario.get("live", {}).get("capture", "off"):
        words += ["--capture", captured]
    words += ["--side", live["side"]] if live.get("side") == "right" else []
    words += ["--no-traffic"] if not live.get("traffic", True) else []
    words += ["--allow-code"] if found.laws else []
    words += ["--seed", str(found.runs[0].seed)] + (["--reps", str(reps)] if reps > 1 else []) + ["--report"]
    return shlex.join([*words, "--", *live["command"]] if live.get("command") else words)


def _shared(name: str, columns: list[Column], reps: int) -> Json:
    first = columns[0].result
    manifest = first.manifest
    conditions, differing = _conditions(columns)
    rate_unit = _rate_unit(columns)
    several = links.are_several_in(column.scenario for column in columns)
    return {
        "title": name,
        "basis": readable.basis(reps, are_settled=any(w.is_trusted for column in columns for w in column.windows)),
        "over_full": by_link.over_full([column.result for column in columns]),
        "reps": reps,
        "subject": subject.of(columns),
        "setup": [_setup(column) for column in columns],
        "conditions": [(key, said) for key, said in conditions if _is_asked_first(key)],
        "other_conditions": [(key, said) for key, said in conditions if not _is_asked_first(key)],
        "differing": differing,
        "of_each": " of each variant's folder" if len(columns) > 1 else " beside this page",
        "first_link": next(iter(links.of(first.scenario))) if several else "",
        "with_one_link": [column.label for column in columns if several and not links.are_several(column.scenario)],
        "has_link": any(map(_is_of_link, _measures(columns))),
        "way": ways_of_data(columns)[0],
        "without": separately.without_exchanges(columns),
        "waits": _waits(columns),
        "direction_names": [key for key, _ in DIRECTION],
        "directions": [_directions(column, rate_unit) for column in columns],
        "rate_unit": rate_unit,
        "said_of": {f"applications.{one.name}": one.meant for one in applications.APPLICATIONS if one.meant},
        "own_causes": _own_causes(columns),
        "findings": findings_of([(c.label, c.result) for c in columns if not c.uncongested]),
        "calibrations": _calibrations(columns),
        "checks": _checks(columns),
        "settled": _settled(columns),
        "scenario_text": files.text(columns[-1].result.folder / "scenario.toml", files.SCENARIO),
        "scenario_name": columns[-1].name,
        "seeds": [run.seed for run in first.runs],
        "version": engine.version(),
        "made_by": " and ".join(dict.fromkeys(column.result.manifest["version"] for column in columns)),
        "machine": manifest["machine"],
        "wall": units.say_seconds(sum(column.result.manifest["wall_s"] for column in columns)),
        "wall_note": "one after the other",
        "digests": [(column.label, column.result.digest) for column in columns],
        "agreement_note": words.NOTE,
        "voids": [(column.name, column.void) for column in columns if column.void],
        "beds": [_bed(column) for column in columns if column.result.live],
    }


def _bed(column: Column) -> Json:
    """How a live result was made, and how late it was."""
    live = column.result.live
    found = column.result.summary.get("live") or {}
    late, share = found.get("lateness_s") or {}, found.get("late_share")
    ends = (live.get("settings") or {}).get("sysctl", {})
    routes = dict.fromkeys(block["route"] for block in live["settings"]["blocks"] if block["route"])
    return {
        "name": column.label,
        "program": readable.program(column.result),
        "clock": f"{live['clock']} time",
        "kernel": str(live.get("kernel") or "–"),
        "lateness": [(key, _time(late.get(key))) for key in ("p50", "p99", "max")],
        "late": "–" if share is None else f"{100 * share:.3g}",
        "stalls": str(found.get("stalls", "–")),
        "settings": ", ".join(f"{name.removeprefix('net.ipv4.')} {value}" for name, value in ends.items()),
        "routes": "; ".join(routes) or "nothing",
        "remarks": live.get("remarks") or [],
    }


def _time(value: float | None) -> str:
    return "–" if value is None else units.say_seconds(value)


def agreement_facts(found: Agreement) -> Json:
    """One witness beside the simulator, as rows of a table."""
    return {
        "name": found.name,
        "witness": found.witness,
        "note": found.note,
        "rows": [
            (
                finding.key,
                f"{finding.title}{words.unit(finding)}",
                list(zip(words.names(finding), words.cells(finding), strict=True)),
                finding.verdict,
                words.said_verdict(finding),
            )
            for finding in found.findings
        ],
    }


def agreement_keys(agreements: Sequence[Json]) -> list[str]:
    """The names of all quantities that are compared."""
    return list(dict.fromkeys(key for item in agreements for key, *_ in item["rows"]))


def _setup(column: Column) -> Json:
    tcp = column.result.scenario.get("tcp", {})
    return {
        "name": column.label,
        "links": [_link(column, name) for name in links.of(column.scenario)],
        "ecn": str(tcp.get("ecn", "off")) if column.ecn else "–",
        "reference": column.uncongested,
    }


def _link(column: Column, name: str) -> Json:
    link = links.of(column.scenario)[name]
    forward, reverse = link["qdisc"], link.get("reverse_qdisc") or link["qdisc"]
    parameters = _parameters(forward)
    if reverse != forward:
        parameters += f"; in reverse {reverse['kind']}: {_parameters(reverse)}"
    key = links.key(column.scenario, name)
    return {"name": name, "key": key, "rate": _rates(link), "kind": forward["kind"], "parameters": parameters}


def _rates(link: Json) -> str:
    forward, reverse = link["rate"], link.get("reverse_rate", link["rate"])
    return str(forward) if forward == reverse else f"{forward}, {reverse} in reverse"


def _parameters(qdisc: Json) -> str:
    return ", ".join(f"{key} {_plain(item)}" for key, item in qdisc.items() if key not in ("kind", "ecn"))


def _plain(item: Any) -> str:
    if isinstance(item, Mapping) and "sha256" in item:
        # A law or policy: its file as it was called before it was copied beside the run.
        return Path(str(item["file"])).name.removeprefix(f"{str(item['sha256'])[:12]}-")
    if isinstance(item, bool):
        return str(item).lower()
    return f"{item:g}" if isinstance(item, float) else str(item)


def _conditions(columns: list[Column]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What all but the reference have in common, as keys and values; and what of it differs, with who has what."""
    asked = [column for column in columns if not column.uncongested] or columns
    each = [dict(_conditions_of(column.result.scenario)) for column in asked]
    common, differing = [], []
    for key in dict.fromkeys(key for found in each for key in found):
        values = [found.get(key, "–") for found in each]
        if len(set(values)) == 1:
            common.append((key, values[0]))
        else:
            who = [f"{value} ({column.name})" for value, column in zip(values, asked, strict=True)]
            differing.append((key, ", ".join(who)))
    return common, differing


def _is_asked_first(key: str) -> bool:
    """Whether a condition is one of those that are read; the others, which stacks mostly bring along, are looked up."""
    hosts = ("tcp.stack", "tcp.cc", "tcp.mss", "tcp.window", "tcp.initial_window")
    return key in ("duration", "warmup", "cooldown", *hosts) or key.startswith(("path.", "traffic."))


def _conditions_of(scenario: Json) -> list[tuple[str, str]]:
    shown = [(key, str(scenario.get(key, "0s"))) for key in ("duration", "warmup", "cooldown")]
    for table in ("path", "tcp"):
        for key, item in scenario.get(table, {}).items():
            if (table, key) != ("tcp", "ecn"):
                shown.append((f"{table}.{key}", _inline(item)))
    for position, block in enumerate(scenario["traffic"]):
        said = [
            f"{key} ({_inline(item)})" if isinstance(item, dict) else f"{key} {_inline(item)}"
            for key, item in block.items()
        ]
        shown.append((f"traffic.{position}", ", ".join(said)))
    return shown


def _inline(item: Any) -> str:
    if isinstance(item, dict):
        return ", ".join(f"{key} {_inline(entry)}" for key, entry in item.items())
    if isinstance(item, list):
        return " to ".join(map(_inline, item)) if len(item) == 2 else ", ".join(map(_inline, item))
    return _plain(item)


def _headings(measures: Sequence[str], points: bool = False) -> list[tuple[str, str, str]]:
    """Title, direction and unit, and name of each column."""
    words = {**UNIT_WORDS, "share": "points"} if points else UNIT_WORDS
    found = []
    for name in measures:
        title, unit = described(name)
        place = ways.place(name)
        found.append((title, ", ".join(filter(None, (ways.WORDS[place.way] if place else "", words[unit]))), name))
    return found


def _rows(columns: Sequence[Column], measures: Sequence[str], found: Comparison | None = None) -> list[Json]:
    return [
        {
            "name": column.label,
            "is_base": found is not None and column is found.baseline,
            "is_reference": column.uncongested,
            "cells": [_of_cases(column.estimate(name), name, column.completed) for name in measures],
        }
        for column in columns
    ]


def _differences(found: Comparison | None, measures: Sequence[str]) -> Json:
    """What differs from the baseline; nothing of one result."""
    others = [] if found is None else [column for column in found.columns if column is not found.base_of(column)]
    columns = others if measures else []
    return {
        "difference_headings": _headings(measures, points=True) if columns else [],
        "differences": [
            {
                "name": column.label,
                "unlike": (unlike := found.unlike(column, found.base_of(column))),
                "note": f"{unlike}: not paired" if unlike else "",
                "cells": [_difference(found, column, found.base_of(column), measure) for measure in measures],
            }
            for column in columns
            if found is not None
        ],
    }


def _cell(interval: Interval, unit: str, measure: str) -> Cell:
    return Cell(*readable.with_width(interval, unit), measure=measure, interval=interval)


def _of_cases(interval: Interval, measure: str, completed: float) -> Cell:
    """A number of the link, or of so many exchanges."""
    if _is_of_link(measure):
        return _cell(interval, described(measure)[1], measure)
    said = readable.of_cases(interval, described(measure)[1], completed, is_counted=False)
    return Cell(*said, measure=measure, interval=interval)


def _difference(found: Comparison, column: Column, base: Column, measure: str) -> Cell:
    if column.uncongested and _is_of_link(measure):
        return Cell("–", "")  # another link: its figures do not compare
    interval = found.difference(column, base, measure)
    value, width = readable.with_width(interval, described(measure)[1], signed=True)
    return Cell(value, width, _judged(interval, measure), measure, interval)


def _judged(difference: Interval, measure: str) -> str:
    """Whether a difference is for better or worse beyond its interval; one of no width is chance in a few runs."""
    sign = BETTER.get(measure.rpartition(".")[2])
    if not difference.half_width or not sign:
        return ""
    low, high = sorted((sign * difference.low, sign * difference.high))
    return "better" if low > 0 else "worse" if high < 0 else ""


def _rate_unit(columns: Sequence[Column]) -> str:
    """The unit of the throughputs of all directions."""
    ports = [port for column in columns for port in by_link.ports(column.scenario, column.result.summary)]
    found = [Interval(float(port.figures["throughput_bps"] or 0.0), None, 1, "none") for port in ports]
    return readable.of_column("bps", found)


def _directions(column: Column, rate_unit: str) -> Json:
    """Figures of each direction, by their names in the summary."""
    return {
        "name": column.label,
        "ways": [
            (
                port.link,
                port.way,
                [
                    Cell(
                        readable.say(port.figures.get(key), rate_unit if unit == "bps" else unit),
                        "",
                        measure=f"{port.key}.{key}",
                    )
                    for key, unit in DIRECTION
                ],
            )
            for port in by_link.ports(column.scenario, column.result.summary)
        ],
    }


def _own_causes(columns: Sequence[Column]) -> list[tuple[str, str, str, list[Cell]]]:
    """What disciplines lost and marked for causes of their own: variant, place, cause and kind, and the counts."""
    rows = []
    several = links.are_several_in(column.scenario for column in columns)
    for column in columns:
        for port in by_link.ports(column.scenario, column.result.summary):
            place = f"{port.link}, {port.way}" if several else port.way
            for name, own in (port.figures.get("own_causes") or {}).items():
                counts = [(key, own[key]) for key in ("dropped", "marked")]
                cells = [
                    Cell(readable.say(count, "count"), "", measure=f"{port.key}.own_causes.{name}.{key}")
                    for key, count in counts
                ]
                rows.append((column.label, place, f"{name} ({own['kind']})", cells))
    return rows


def _waits(columns: Sequence[Column]) -> Json:
    """What packets of each block waited at each link of their route; no rows where there is one link."""
    names = list(dict.fromkeys(name for column in columns for name in links.of(column.scenario)))
    rows = []
    for column in columns:
        found = by_link.crossings(column.result)
        rows.append((column.label, [(one.title, one.way, _waits_of(one, names), _together(one)) for one in found]))
    return {"links": names, "columns": [(name, own) for name, own in rows if own]}


def _waits_of(crossing: by_link.Crossing, names: Sequence[str]) -> list[Cell]:
    found = {wait.link: _cell(wait.mean_s, "s", wait.key) for wait in crossing.waits}
    return [found.get(name, Cell("", "")) for name in names]


def _together(crossing: by_link.Crossing) -> Cell:
    return _cell(crossing.together_s, "s", "")


def _part(part: separately.Part) -> Json:
    """An application, a link, a block of traffic, or probes one way, by itself."""
    columns = part.columns
    rows = [
        (
            column.label,
            [
                Cell(
                    *said,
                    _judged(one, name) if one is not None and name.startswith(separately.AGAINST) else "",
                    measure=name,
                    interval=one,
                )
                for said, one, (_, _, name) in zip(part.said(row, is_counted=False), found, columns, strict=True)
            ],
        )
        for row, (column, found) in enumerate(part.rows)
    ]
    headings = [(*_unit_apart(title), name) for title, _, name in columns]
    return {"title": part.title, "table": part.table, "headings": headings, "rows": rows, "note": part.note}


def _transport(columns: list[Column], are_apart: bool) -> Json:
    """What TCP, UDP and probes came to, by their names in the summary."""
    found = transport.columns([column.result for column in columns], are_apart)
    rows = []
    for k, column in enumerate(columns):
        cells = [
            Cell("–", "", measure=one.figure.key)
            if (interval := one.numbers[k]) is None
            else Cell(*readable.with_width(interval, one.unit), measure=one.figure.key, interval=interval)
            for one in found
        ]
        rows.append((column.label, cells))
    return {"headings": [(*_unit_apart(one.title), one.figure.key) for one in found], "rows": rows}


_UNIT = re.compile(r"[,\s]*\s\(?(%|ms|points|[kMG]?b/s)\)?$")


def _unit_apart(title: str) -> tuple[str, str]:
    """The head of a column without the unit at its end, and that: `load time, median` and `ms`."""
    said = " ".join(title.split())
    unit = _UNIT.search(said)
    return (said[: unit.start()], unit[1]) if unit else (said, "")


def _calibrations(columns: list[Column]) -> list[Json]:
    found = {facts["key"]: facts for column in columns for facts in column.result.calibration}
    return list(found.values())


def _checks(columns: list[Column]) -> list[Json]:
    return [
        {"run": f"{column.label}{', ' + check['run'] if check.get('run') else ''}", **_only(check)}
        for column in columns
        for check in column.result.manifest["self_checks"]
    ]


def _settled(columns: list[Column]) -> Json:
    """What is to be said of each column that is not settled, and every series of every run that was followed."""
    rows = [
        {
            "run": f"{column.label}{f', run {k}' if len(column.result.runs) > 1 else ''}",
            **{key: one[key] for key in ("name", "answer", "p")},
            **{
                key: "".join(settled.read(one["name"], one[key])).removesuffix(" packets") for key in ("begins", "ends")
            },
            "cut": "more than half" if one["cut_s"] is None else f"{one['cut_s']:.3g}",
        }
        for column in columns
        for k, found in enumerate(column.result.settled, start=1)
        for one in (found or {}).get("series", [])
    ]
    said = [(column.label, settled.said(column.result.settled)) for column in columns]
    answers = [settled.pooled(column.result.settled)[0] for column in columns]
    return {
        "counted": settled.counted(answers, columns[0].result.summary["measured_s"]),
        "said": [(name, words) for name, words in said if words],
        "rows": rows,
    }


def _only(check: Json) -> Json:
    return {key: check[key] for key in ("name", "holds", "detail")}


def _commands(found: Comparison) -> list[str]:
    folder = found.folder
    if (folder / comparisons.SOURCE).exists():
        reps = f" --reps {found.reps}" if found.reps > 1 else ""
        also = "".join(f" --{'kernel-qdisc' if witness == 'kernel' else witness}" for witness in found.witnesses)
        kernels = {str(one.result.live["kernel_name"]) for one in found.columns if one.result.live.get("kernel_name")}
        also += "".join(f" --kernel {shlex.quote(name)}" for name in sorted(kernels))
        also += " --allow-code" if any(column.result.laws for column in found.columns) else ""
        return [f"aqmlab compare {shlex.quote(str(folder / comparisons.SOURCE))}{also}{reps} -o again --report"]
    places = " ".join(shlex.quote(str(column.result.folder)) for column in found.columns)
    return [f"aqmlab compare {places} -o again --report"]
