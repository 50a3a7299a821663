"""The page of an evaluation: a table of requirement by requirement, then each with its figure, table and command."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aqmlab import figures as files
from aqmlab.agreement.agreements import Agreement
from aqmlab.evaluation import among as together
from aqmlab.evaluation import answers, known, outcome
from aqmlab.evaluation.controllers import Controller
from aqmlab.evaluation.disciplines import Discipline
from aqmlab.evaluation.template import DISCIPLINES, Compared
from aqmlab.figures.drawn import pictures
from aqmlab.json_files import Json
from aqmlab.results import store
from aqmlab.study import figures, tables
from aqmlab.study.cells import Cells
from aqmlab.study.definition import Study
from aqmlab.study.figures.curves import hue_of, hues_of
from aqmlab.study.page import PAGE
from aqmlab.study.templates import environment
from aqmlab.sweep import failing


def writer(
    among: Sequence[Compared], said: Mapping[str, str]
) -> Callable[[Json, Study, Cells, Path, Sequence[Agreement]], Path]:
    """What writes the page, and adds to `study.json` what was evaluated and what came out.

    Answers are those that were `said`, and those that stand in the folder by then.
    """
    form = among[0].form

    def write(found: Json, study: Study, cells: Cells, folder: Path, _: Sequence[Agreement]) -> Path:
        given = answers.together(folder, said, form)
        found["evaluation"] = {
            "of": form.kinds,
            "rfc": form.rfc,
            "subject": {"name": among[0].name, "label": among[0].label, "parameters": _parameters(cells, among[0])},
            "against": [one.label for one in among[1:]],
            "requirements": outcome.requirements(study, cells, among, {one["grid"] for one in found["failed"]}),
            "questions": answers.questions(given, form),
        }
        fields = known.fields(found) if form is DISCIPLINES else []
        every = together.drawn(fields, among[0].name, hue_of(among[0].name, hues_of(study.figures, cells.find)))
        figured = figures.draw(study.figures, cells.find, cells.left_out)
        drawn = {one.name: one for one in map(pictures, [*figured, *([every] if every else [])])}
        made = {one.name: one for one in tables.build(study.tables, cells.find, cells.left_out)}
        files.save(list(drawn.values()), folder / "figures")
        if made:
            (folder / "tables").mkdir(parents=True, exist_ok=True)
        for table in made.values():
            store.write_text(folder / "tables" / f"{table.name}.csv", table.csv())
        answers.write(folder, given, form)
        shown = [
            {
                "facts": one,
                "beside": one.get(form.beside),
                "without": one.get("beside_without"),
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
                form=form,
                shown=shown,
                quick=study.profile.says,
                failures=failing.of_laws(found["failed"], study.runs),
                fields=fields,
                rows=together.rows(fields),
                every=drawn.get(every.name) if every else None,
            )
        )
        store.write_text(folder / PAGE, text)
        return folder / PAGE

    return write


def _in_columns(case: Json, among: Sequence[Compared]) -> Json:
    """A case with a place for each that is compared, and the labels of what has no such place."""
    of_name = {one["name"]: one for one in case[among[0].form.kinds]}
    names = [one.name for one in among]
    others = [one["label"] for one in case[among[0].form.kinds] if one["name"] not in names]
    return {**case, "columns": [of_name.get(name) for name in names], "others": others}


def _parameters(cells: Cells, subject: Compared) -> list[Json]:
    """All parameters of what is evaluated, and which were said."""
    match subject:
        case Discipline():
            return _of_discipline(cells, subject)
        case Controller():
            return _of_controller(cells, subject)
    raise TypeError(subject)


def _of_controller(cells: Cells, subject: Controller) -> list[Json]:
    """The keys of its hosts' TCP in the first grid."""
    cell = next((one for one in cells if one.at["cc"] == subject.name), None)
    tcp = {} if cell is None else cell.scenario["tcp"]
    return [{"name": key, "value": _said(value), "said": key == "cc", "what": ""} for key, value in tcp.items()]


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_discipline(cells: Cells, subject: Discipline) -> list[Json]:
    """Those of the discipline as it stood before the first link that had it."""
    cell = next((one for one in cells if one.at["aqm"] == subject.name and "link" in one.scenario), None)
    if cell is None:
        return []
    params = {str(param["name"]): param for param in subject.row["params"]}
    return [
        {
            "name": name,
            "value": _said(value),
            "said": name in subject.qdisc,
            "what": params[name]["doc"] if name in params else "",
        }
        for name, value in cell.scenario["link"]["qdisc"].items()
        if name not in ("kind", "law")
    ]
