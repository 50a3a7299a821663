"""Writes docs/evaluations; before that, keeps the numbers of evaluations whose result folders are given as arguments.

python tools/evaluation_pages.py results/evaluate-pie-quick
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import engine
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.study import found

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "docs" / "evaluations"
COSTS = ROOT / "benches" / "decisions.json"
FACTS = (
    *("title", "version", "engine", "date", "digest", "command", "runs", "cpu_h", "simulated_h"),
    *("profile", "choices", "evaluation"),
)
HELD_AGAINST = ("pie", "codel", "fq_codel")
SHOWN = ("5.1.1", "6.2", "8.2.2 to 8.2.4", "9.1")
"""Sections that the table over all disciplines shows."""


def keep(folder: Path) -> Path:
    """Keeps the numbers of a whole evaluation."""
    facts = read_json(folder / found.RESULT)
    if "evaluation" not in facts or not facts["complete"] or facts["only"] or facts["self_checks"]["failed"]:
        raise SystemExit(f"{folder}: expected a whole evaluation, without self-checks that failed")
    path = PLACE / f"{facts['evaluation']['subject']['name']}.json"
    PLACE.mkdir(exist_ok=True)
    store.write_json(path, {key: facts[key] for key in FACTS})
    return path


def page(facts: Json, cost: float | None) -> str:
    """The page of one discipline."""
    evaluation = facts["evaluation"]
    names = [evaluation["subject"]["label"], *evaluation["against"]]
    rows = [row for one in evaluation["requirements"] for row in _rows(one, names, evaluation["subject"]["name"])]
    said = "not measured" if cost is None else f"{max(cost, 0):.0f} ns a packet beyond drop-tail"
    minutes, file = 60 * facts["cpu_h"], f"{evaluation['subject']['name']}.json"
    lines = [
        f"# {facts['title']}",
        "",
        f"What `{facts['command']}` found: mean goodput and queueing delay with intervals of 95 %, and in how many",
        "cases of a section they are less or more than drop-tail's. [How it is made](../guide/evaluate.md).",
        "",
        facts["profile"]["says"].strip(),
        "",
        f"| section | case | {' | '.join(names)} | beside drop-tail |",
        f"|{'---|' * (3 + len(names))}",
        *rows,
        "",
        f"Implementation cost (11.2) of a decision: {said}, measured as",
        "[performance](../performance.md#what-a-decision-costs) says.",
        "",
        "What no simulation answers:",
        "",
        *(f"- {q['section']}: {q['asks']} {q['answer'] or '**Unanswered.**'}" for q in evaluation["questions"]),
        "",
        f"{facts['runs']} runs, {minutes:.1f} minutes of processor time, on {facts['date']}.",
        f"Digest `{facts['digest']}`.",
        f"All numbers: [{file}]({file}).",
    ]
    return "\n".join(lines) + "\n"


def _rows(one: Json, names: Sequence[str], subject: str) -> list[str]:
    head = f"{one['section']}: {one['title']}"
    if one["status"] != "run":
        why = one["missing"] or "The discipline has nothing of the kind."
        return [f"| {head} | {why} | {' | '.join('' for _ in names)} | |"]
    rows = []
    for k, case in enumerate(one["shown"]):
        of = {names[0] if d["name"] == subject else d["label"]: d for d in case["disciplines"]}
        cells = [_cell(of.get(name)) for name in names]
        beside = one["beside_drop_tail"]
        goodput = f"{beside['goodput_is']} {_said(beside['goodput'])}"
        counted = f"of {beside['cases']}: delay {_said(beside['delay'])}; {goodput}"
        rows.append(
            f"| {head if k == 0 else ''} | {case['label']} | {' | '.join(cells)} | {counted if k == 0 else ''} |"
        )
    return rows


def _cell(found: Json | None) -> str:
    if found is None:
        return ""
    return "; ".join(f"{found[key]['text']} {found[key]['width_text']}".strip() for key in ("goodput", "delay"))


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{word} in {count}" for word, count in counts.items() if count)


def overview(every: Mapping[str, Json], costs: Mapping[str, Any], known: Sequence[str]) -> str:
    """The page over all of them, with what is not there yet."""
    lines = [
        "# Evaluations after RFC 7928",
        "",
        "Disciplines with their defaults, in the scenarios that [RFC 7928 asks for](../guide/evaluate.md):",
        "goodput and mean queueing delay of one case of some sections, at the first rate. The counts are of all cases.",
        "",
        f"| discipline | {' | '.join(SHOWN)} | delay less than drop-tail's | goodput less | cost, ns a packet |",
        f"|{'---|' * (4 + len(SHOWN))}",
    ]
    for name, facts in every.items():
        by_section = {one["section"]: one for one in facts["evaluation"]["requirements"]}
        firsts = [_brief(by_section[section]["shown"][0]["disciplines"][0]) for section in SHOWN]
        run = [one["beside_drop_tail"] for one in by_section.values() if one["status"] == "run" and not one["is_again"]]
        cases = sum(one["cases"] for one in run)
        less = [sum(one[key]["less"] for one in run) for key in ("delay", "goodput")]
        cost = costs.get(name, {}).get("ns_per_packet")
        last = "not measured" if cost is None else f"{max(cost, 0):.0f}"
        counted = " | ".join(f"{count} of {cases}" for count in less)
        file = facts["evaluation"]["subject"]["name"]
        lines.append(f"| [{name}]({file}.md) | {' | '.join(firsts)} | {counted} | {last} |")
    missing = [name for name in known if name not in every and name != "pfifo"]
    lines += (
        [
            "",
            "## Not there yet",
            "",
            f"{', '.join(f'`{name}`' for name in missing)}. For each of them:",
            "",
            "```sh",
            f"aqmlab evaluate {missing[0]} --against {','.join(HELD_AGAINST)} --quick",
            f"python tools/evaluation_pages.py results/evaluate-{missing[0]}-quick",
            "```",
        ]
        if missing
        else []
    )
    return "\n".join(lines) + "\n"


def _brief(one: Json) -> str:
    return f"{one['goodput']['text']}, {one['delay']['text']}"


def pages() -> dict[Path, str]:
    """Every page, made of the numbers that are kept."""
    costs = json.loads(COSTS.read_text(encoding="utf-8"))["disciplines"]
    every = [read_json(path) for path in sorted(PLACE.glob("*.json"))]
    kept = {str(facts["evaluation"]["subject"]["label"]): facts for facts in every}
    made = {
        PLACE / f"{facts['evaluation']['subject']['name']}.md": page(facts, costs.get(name, {}).get("ns_per_packet"))
        for name, facts in kept.items()
    }
    known = [row["name"] for row in engine.disciplines() if row["name"] in costs]
    return {**made, PLACE / "README.md": overview(kept, costs, known)}


def main(arguments: Sequence[str]) -> None:
    """Keeps, then writes every page."""
    for folder in arguments:
        print(keep(Path(folder)).relative_to(ROOT))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main(sys.argv[1:])
