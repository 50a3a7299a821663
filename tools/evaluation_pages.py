"""Writes docs/evaluations; before that, keeps the numbers of evaluations whose result folders are given as arguments.

python tools/evaluation_pages.py results/evaluate-pie-quick

Of an evaluation with `--only`, the requirements that were run take the place of those that are kept.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import engine
from aqmlab.errors import BadInput
from aqmlab.evaluation import answers, known, outcome, template
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.study import found

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "docs" / "evaluations"
AGREEMENT = PLACE / "agreement.md"
"""Written by benches/overlaps."""
COSTS = ROOT / "benches" / "decisions.json"
DROP_TAIL = "pfifo"
"""The kind that every evaluation calls drop-tail."""
REPEATED = """\
## Made anew on 30 November and 1 December 2026

All runs are of 30 November but those of two sections. Those before were of 24 to 29 November, when the stack `linux`
repaired [lost tails](../validation.md#transfers-that-lose-their-tail) later than Linux does and CUBIC's curve went on
[in pauses](../validation.md#transfers-with-pauses). Of 2,476 numbers 1,287 were others then. In 7.2 in a data centre,
where a hundred servers answer at once and a lost tail is all there is to repair, goodput is up to four times what it
was: RED's 3,790 Mb/s in place of 1,109. There 31 numbers moved by more than both intervals together. Of all others one
did, by 0.2 %.

Of 1 December are 4.5, which has the buffer of 6.2 since and is shown with ECN and without, and 10.2, where six flows
more fill the first of the two links, which had no queue before, and where the throughput of the second stands in the
place of goodput.

`python benches/overlaps/replay.py NAME` makes the runs of a page again and says which numbers are others."""
SHOWN = known.AMONG
"""Requirements that the table over all disciplines shows."""


def keep(folder: Path) -> Path:
    """Keeps the numbers of an evaluation, and those of drop-tail, which must be the same in all of them."""
    facts = read_json(folder / found.RESULT)
    if "evaluation" not in facts or not facts["complete"] or facts["self_checks"]["failed"]:
        raise SystemExit(f"{folder}: expected an evaluation that is complete, without self-checks that failed")
    kept = known.condensed(facts)
    kind = str(kept["subject"]["label"])
    if kind not in {row["name"] for row in engine.disciplines()}:
        raise SystemExit(f"{folder}: expected a discipline that comes along, with its defaults, not {kind}")
    known.PLACE.mkdir(exist_ok=True)
    path = known.PLACE / f"{kind}.json"
    if facts["only"]:
        if not path.is_file():
            raise SystemExit(f"{folder}: expected a whole evaluation of {kind} before a part")
        try:
            kept = known.merged(read_json(path), kept)
        except BadInput as error:
            raise SystemExit(f"{folder}: {error}") from None
    tail, tail_path = known.baseline(facts), known.PLACE / f"{DROP_TAIL}.json"
    if tail_path.is_file():
        before = read_json(tail_path)
        _agree(folder, before, tail)
        tail = {**before, "requirements": _more(before, tail)}
    write(path, kept)
    write(tail_path, tail)
    known.every.cache_clear()
    return path


def write(path: Path, kept: Json) -> None:
    """A line for each requirement, so that a change of one shows as one."""
    requirements = ",\n".join(json.dumps(one, ensure_ascii=False) for one in kept["requirements"])
    facts = {key: value for key, value in kept.items() if key != "requirements"}
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    store.write_text(path, f'{text[:-2]},\n "requirements": [\n{requirements}\n ]\n}}\n')


def _agree(folder: Path, before: Json, now: Json) -> None:
    """Refuses numbers of drop-tail that are not those which other evaluations found: they are of another engine."""
    at = {one["id"]: one.get("cases", []) for one in before["requirements"]}
    for one in now["requirements"]:
        for case in one.get("cases", []):
            other = next((known_case for known_case in at.get(one["id"], []) if known_case["at"] == case["at"]), case)
            if other != case:
                raise SystemExit(f"{folder}: drop-tail at {one['id']}, {case['label']}: other numbers than before")


def _more(before: Json, now: Json) -> list[Json]:
    """Drop-tail's requirements, with those that are new."""
    there = {one["id"]: one for one in before["requirements"] if one["status"] == outcome.RUN}
    ids = [one["id"] for one in now["requirements"]]
    gone = [one for one in before["requirements"] if one["id"] not in ids]
    return [*(there.get(one["id"], one) for one in now["requirements"]), *gone]


def page(kept: Json, every: Mapping[str, Json], cost: float | None) -> str:
    """The page of one discipline."""
    subject = kept["subject"]
    columns = [
        kept,
        *(every[name] for name in (DROP_TAIL, *known.AGAINST) if name in every and every[name] is not kept),
    ]
    rows = [row for asked in template.template()["requirement"] for row in _rows(asked, kept, columns)]
    measured = "measured as\n[performance](../performance.md#what-a-decision-costs) says."
    beyond = "not measured." if cost is None else f"{max(cost, 0):.0f} ns a packet beyond drop-tail, {measured}"
    names = " | ".join(one["subject"]["label"] for one in columns)
    lines = [
        f"# {subject['label']} after RFC 7928",
        "",
        f"What `{kept['command']}` found: mean goodput and queueing delay with intervals of 95 %, and in how many",
        "cases of a section they are less or more than drop-tail's. [How it is made](../guide/evaluate.md).",
        "",
        kept["profile"]["says"].strip(),
        "",
        f"| section | case | {names} | beside drop-tail |",
        f"|{'---|' * (3 + len(columns))}",
        *rows,
        "",
        "In 4.5 drop-tail, which cannot mark, stands without ECN beside both.",
        "",
        f"Implementation cost (11.2) of a decision: {beyond}",
        "",
        "What no simulation answers:",
        "",
        *(f"- {q['section']}: {q['asks']} **Unanswered.**" for q in answers.questions({})),
        "",
        f"{kept['runs']} runs, on {kept['date']}. Digest `{kept['digest']}`.",
        *(
            f"Sections made anew by `{one['command']}`: {one['runs']} runs, on {one['date']}. Digest `{one['digest']}`."
            for one in kept.get("parts", [])
        ),
        f"All numbers: `python/aqmlab/evaluation/known/{subject['label']}.json`.",
    ]
    return "\n".join(lines) + "\n"


def _rows(asked: Json, kept: Json, columns: Sequence[Json]) -> list[str]:
    id = template.id_of(asked)
    one: Json = next((found for found in kept["requirements"] if found["id"] == id), {"status": outcome.NOT_RUN})
    head = f"{asked['section']}: {asked['title']}"
    if one["status"] != outcome.RUN:
        not_run = "The discipline has nothing of the kind." if one["status"] == outcome.NOTHING else "Not run."
        why = asked.get("missing") or not_run
        return [f"| {head} | {why} | {' | '.join('' for _ in columns)} | |"]
    rows, beside = [], one["beside_drop_tail"]
    goodput = f"{beside['goodput_is']} {_said(beside['goodput'])}"
    only = f" {beside['only']}" if "only" in beside else ""
    counted = f"of {beside['cases']}{only}: delay {_said(beside['delay'])}; {goodput}"
    if (other := one.get("beside_without")) and other["cases"]:
        counted += f"; {other['title']}, of {other['cases']}: delay {_said(other['delay'])}"
        counted += f"; {beside['goodput_is']} {_said(other['goodput'])}"
    for k, case in enumerate(one["cases"]):
        cells = [_cell(known.standing(column, id, case["at"])) for column in columns]
        first = k == 0
        rows.append(f"| {head if first else ''} | {case['label']} | {' | '.join(cells)} | {counted if first else ''} |")
    return rows


def _cell(case: Json | None) -> str:
    if case is None:
        return ""
    numbers = [outcome.number(**case[kind]) for kind in known.KINDS]
    return "; ".join(f"{one['text']} {one['width_text']}".strip() for one in numbers)


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word} in {count}" for word, count in counts.items() if count)


def overview(every: Mapping[str, Json], costs: Mapping[str, Any], names: Sequence[str]) -> str:
    """The page over all of them, with what is not there yet."""
    asked = {template.id_of(one): one for one in template.template()["requirement"]}
    sections = " | ".join(asked[id]["section"] for id in SHOWN)
    lines = [
        "# Evaluations after RFC 7928",
        "",
        "This table has each discipline with its defaults, in scenarios of [RFC 7928](../guide/evaluate.md).",
        "Under a section it shows goodput and mean queueing delay of one case, at the lower of its rates.",
        f"Two columns count cases. {_all_cases(every, asked)};",
        "there are fewer where a discipline has no setting that a section asks about.",
        "A discipline of one's own is shown among these on the page of its evaluation.",
        "Where these numbers speak of what studies and validation speak of too, [they are compared](agreement.md).",
        "",
        f"| discipline | {sections} | delay less than drop-tail's | goodput less | costs more, ns a packet |",
        f"|{'---|' * (4 + len(SHOWN))}",
    ]
    for name, kept in every.items():
        firsts = [_brief(known.standing(kept, id)) for id in SHOWN]
        label = kept["subject"]["label"]
        if name == DROP_TAIL:
            lines.append(f"| {label} | {' | '.join(firsts)} | | | 0 |")
            continue
        run = [
            one["beside_drop_tail"]
            for one in kept["requirements"]
            if one["status"] == outcome.RUN and not asked[one["id"]].get("is_again")
        ]
        cases = sum(one["cases"] for one in run)
        counted = " | ".join(f"{sum(one[kind]['less'] for one in run)} of {cases}" for kind in ("delay", "goodput"))
        cost = costs.get(name, {}).get("ns_per_packet")
        last = "not measured" if cost is None else f"{max(cost, 0):.0f}"
        lines.append(f"| [{label}]({name}.md) | {' | '.join(firsts)} | {counted} | {last} |")
    lines += [*_not_run(every, asked), "", *REPEATED.splitlines()]
    missing = [name for name in names if name not in every]
    lines += (
        [
            "",
            "## Not there yet",
            "",
            f"{', '.join(f'`{name}`' for name in missing)}. For each of them:",
            "",
            "```sh",
            f"aqmlab evaluate {missing[0]} --against {','.join(known.AGAINST)} --quick",
            f"python tools/evaluation_pages.py results/evaluate-{missing[0]}-quick",
            "```",
        ]
        if missing
        else []
    )
    return "\n".join(lines) + "\n"


def _not_run(every: Mapping[str, Json], asked: Mapping[str, Json]) -> list[str]:
    """Which sections have not been run yet, for which disciplines."""
    late: dict[str, list[str]] = {}
    for name, kept in every.items():
        run = {one["id"] for one in kept["requirements"] if one["status"] in (outcome.RUN, outcome.NOTHING)}
        sections = [one["section"] for id, one in asked.items() if "grid" in one and id not in run]
        if sections and name != DROP_TAIL:
            late.setdefault("; ".join(sections), []).append(f"`{name}`")
    return [
        line for sections, names in late.items() for line in ("", f"Not run yet: {sections} of {', '.join(names)}.")
    ]


def _all_cases(every: Mapping[str, Json], asked: Mapping[str, Json]) -> str:
    """What the counts are of; older evaluations left cases of a section out."""
    found = {
        (asked[one["id"]]["section"], beside["only"])
        for kept in every.values()
        for one in kept["requirements"]
        if "only" in (beside := one.get("beside_drop_tail", {}))
    }
    of = "".join(f", in {section} of those {only}" for section, only in sorted(found))
    return f"They are of all cases{of}"


def _brief(case: Json | None) -> str:
    if case is None:
        return "not run"
    return ", ".join(outcome.brief(case[kind]["value"], case[kind]["unit"]) for kind in known.KINDS)


def pages() -> dict[Path, str]:
    """Every page, made of the numbers that are kept."""
    costs = json.loads(COSTS.read_text(encoding="utf-8"))["disciplines"]
    every = known.every()
    made = {
        PLACE / f"{name}.md": page(kept, every, costs.get(name, {}).get("ns_per_packet"))
        for name, kept in every.items()
        if name != DROP_TAIL
    }
    names = [row["name"] for row in engine.disciplines() if row["name"] in costs]
    return {**made, PLACE / "README.md": overview(every, costs, names)}


def main(arguments: Sequence[str]) -> None:
    """Keeps, then writes every page."""
    for folder in arguments:
        print(keep(Path(folder)).relative_to(ROOT))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
