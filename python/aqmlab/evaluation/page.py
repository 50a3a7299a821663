"""The page of an evaluation: a table of requirement by requirement, then each with its figure, table and command."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aqmlab import figures as files
from aqmlab.agreement.agreements import Agreement
from aqmlab.evaluation import among as together
from aqmlab.evaluation import answers, known, outcome
from aqmlab.evaluation.template import Discipline
from aqmlab.figures.drawn import pictures
from aqmlab.json_files import Json
from aqmlab.results import store
from aqmlab.study import figures, tables
from aqmlab.study.cells import Cells
from aqmlab.study.definition import Study
from aqmlab.study.page import PAGE
from aqmlab.study.templates import environment


def writer(
    among: Sequence[Discipline], given: Mapping[str, str]
) -> Callable[[Json, Study, Cells, Path, Sequence[Agreement]], Path]:
    """What writes the page, and adds to `study.json` what was evaluated and what came out."""

    def write(found: Json, study: Study, cells: Cells, folder: Path, _: Sequence[Agreement]) -> Path:
        found["evaluation"] = {
            "subject": {"name": among[0].name, "label": among[0].label, "parameters": _parameters(cells, among[0])},
            "against": [one.label for one in among[1:]],
            "requirements": outcome.requirements(study, cells),
            "questions": answers.questions(given),
        }
        fields = known.fields(found)
        every = together.drawn(fields, among[0].name)
        figured = figures.draw(study.figures, cells.find, cells.left_out)
        drawn = {one.name: one for one in map(pictures, [*figured, *([every] if every else [])])}
        made = {one.name: one for one in tables.build(study.tables, cells.find, cells.left_out)}
        files.save(list(drawn.values()), folder / "figures")
        if made:
            (folder / "tables").mkdir(parents=True, exist_ok=True)
        for table in made.values():
            store.write_text(folder / "tables" / f"{table.name}.csv", table.csv())
        answers.write(folder, given)
        shown = [
            {
                "facts": one,
                "cases": [_in_columns(case, among) for case in one.get("shown", [])],
                "drawn": drawn.get(figures.name_of({"id": one["id"]})),
                "table": made.get(tables.name_of({"id": one["id"]})),
            }
            for one in found["evaluation"]["requirements"]
        ]
        text = (
            environment()
            .get_template("evaluation/evaluation.html.j2")
            .render(
                facts=found,
                evaluation=found["evaluation"],
                shown=shown,
                quick=study.profile.says,
                fields=fields,
                rows=together.rows(fields),
                every=drawn.get(every.name) if every else None,
            )
        )
        store.write_text(folder / PAGE, text)
        return folder / PAGE

    return write


def _in_columns(case: Json, among: Sequence[Discipline]) -> Json:
    """A case with a place for each discipline that is compared, and the labels of what has no such place."""
    of_name = {one["name"]: one for one in case["disciplines"]}
    names = [one.name for one in among]
    others = [one["label"] for one in case["disciplines"] if one["name"] not in names]
    return {**case, "columns": [of_name.get(name) for name in names], "others": others}


def _parameters(cells: Cells, subject: Discipline) -> list[Json]:
    """All parameters of the discipline as it stood before the first link that had it, and which were said."""
    cell = next((one for one in cells if one.at["aqm"] == subject.name and "link" in one.scenario), None)
    if cell is None:
        return []
    params = {str(param["name"]): param for param in subject.row["params"]}
    return [
        {
            "name": name,
            "value": str(value),
            "said": name in subject.qdisc,
            "what": params[name]["doc"] if name in params else "",
        }
        for name, value in cell.scenario["link"]["qdisc"].items()
        if name not in ("kind", "law")
    ]
