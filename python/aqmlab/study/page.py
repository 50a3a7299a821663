"""The report of one study: one HTML page that needs nothing else, its figures as SVG and PNG, its tables as CSV."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from aqmlab import figures as files
from aqmlab import units
from aqmlab.agreement.agreements import Agreement
from aqmlab.agreement.words import NOTE
from aqmlab.claims import NOT_RUN
from aqmlab.comparison import Comparison
from aqmlab.figures.agreement import witness_panels
from aqmlab.figures.drawn import Drawn, Pictures, pictures
from aqmlab.figures.looks import looks_of
from aqmlab.json_files import Json
from aqmlab.report.page import agreement_facts, agreement_keys
from aqmlab.results import store
from aqmlab.study import figures, prose, tables, verdicts
from aqmlab.study.figures import Cell
from aqmlab.study.figures.cell import Place
from aqmlab.study.overview_page import write_overview
from aqmlab.study.tables import Tabled
from aqmlab.study.templates import environment

__all__ = ["write", "write_overview"]

PAGE = "report.html"
REPORTS_OF_WITNESSES = ("live", "virtual")
"""Folders of a study's comparison between real TCP stacks."""


class Described(Protocol):
    """What a page asks of a study."""

    @property
    def figures(self) -> Sequence[Json]:
        """Its `[[figure]]` tables."""

    @property
    def tables(self) -> Sequence[Json]:
        """Its `[[table]]` tables."""


class Finder(Protocol):
    """Where the cells are."""

    def find(self, selector: Json) -> Sequence[Cell]:
        """The cells that a selector means and that were run."""

    def left_out(self, selector: Json) -> Sequence[Place]:
        """The points that a selector means and that were not run."""

    @property
    def names(self) -> Collection[str]:
        """Names of all points that were run."""


def write(found: Json, study: Described, cells: Finder, folder: Path, agreements: Sequence[Agreement] = ()) -> Path:
    """Writes `report.html`, `figures/` and `tables/` into the result folder; `found` is the content of `study.json`."""
    drawn = list(map(pictures, figures.draw(study.figures, cells.find, cells.left_out)))
    tabled = tables.with_something_new(tables.build(study.tables, cells.find, cells.left_out))
    witnessed = list(map(pictures, draw_witnesses(agreements, folder)))
    files.save([*drawn, *witnessed], folder / "figures")
    if tabled:
        (folder / "tables").mkdir(parents=True, exist_ok=True)
    for table in tabled:
        store.write_text(folder / "tables" / f"{table.name}.csv", table.csv())
    path = folder / PAGE
    store.write_text(path, html(found, study, drawn, tabled, agreements, folder, witnessed, cells.names))
    return path


def draw_witnesses(agreements: Sequence[Agreement], folder: Path) -> list[Drawn]:
    """The responses of each comparison that agreements are of, simulated and live upon each other."""
    drawn = []
    for name in REPORTS_OF_WITNESSES:
        if any(item.witness == name for item in agreements) and (folder / name / "comparison.json").exists():
            columns = Comparison(folder / name).columns
            if (one := witness_panels(columns, looks_of(columns))) is not None:
                drawn.append(replace(one, name=f"{one.name}-{name}"))
    return drawn


def html(
    found: Json,
    study: Described,
    drawn: Sequence[Pictures],
    tabled: Sequence[Tabled],
    agreements: Sequence[Agreement],
    folder: Path,
    witnessed: Sequence[Pictures] = (),
    run: Collection[str] | None = None,
) -> str:
    """The page as text; `run` are the points that were run, all if it is not said."""
    specs = {figures.name_of(spec): spec for spec in study.figures}
    names = {figure.name for figure in drawn}
    wanted, made = {tables.name_of(spec): spec for spec in study.tables}, {table.name for table in tabled}
    words = {tables.name_of(spec): str(spec.get("caption", "")) for spec in study.tables}
    # What was not run comes last, and is folded.
    asked = sorted(found["claims"], key=lambda claim: bool(claim["verdict"] == NOT_RUN))
    claims = [verdicts.shown(claim, run=run) for claim in asked]
    choices = [_choice(choice) for choice in found.get("choices", [])]
    beside = [agreement_facts(item) for item in agreements]
    witnesses = [name for name in REPORTS_OF_WITNESSES if any(item.witness == name for item in agreements)]
    reports = [f"{name}/{PAGE}" for name in witnesses if (folder / name / PAGE).exists()]
    return (
        environment()
        .get_template("study/study.html.j2")
        .render(
            facts={**_DEFAULTS, **found},
            about=prose.html(str(found.get("about", ""))),
            claims=claims,
            columns={
                claim: [verdicts.beside(column) for column in columns]
                for claim, columns in found.get("columns", {}).items()
            },
            claims_run=sum(claim["verdict"] != NOT_RUN for claim in asked),
            any_published=any(claim.has_published or claim.published for claim in claims),
            counts=verdicts.counts(found["claims"]),
            explained_at=verdicts.explained_at(found),
            hanging=[claim for claim in found["claims"] if claim.get("hangs_on")],
            failed=found.get("self_checks", {}).get("failed", []),
            drawings=[
                {"drawn": one, "heading": _heading(specs[one.name]), "words": str(specs[one.name].get("caption", ""))}
                for one in drawn
            ],
            not_drawn=[_heading(spec) for name, spec in specs.items() if name not in names],
            not_tabled=[str(spec.get("title", spec["id"])) for name, spec in wanted.items() if name not in made],
            tabled=[{"table": one, "words": words.get(one.name, ""), "begins": _begins(one)} for one in tabled],
            agreements=beside,
            agreement_keys=agreement_keys(beside),
            witnessed=witnessed,
            agreement_note=NOTE,
            live_reports=reports,
            run_facts=_run_facts(found),
            grids=found.get("grids", []),
            choices=choices,
            any_swept=any(choice["swept_in"] for choice in choices),
        )
    )


_DEFAULTS: dict[str, Any] = {
    "paper": "", "version": "", "digest": "", "command": "", "profile": {"name": "", "says": ""},
}  # fmt: skip


def _heading(spec: Mapping[str, Any]) -> str:
    """The papers number their figures; what they do not have is called by its title alone."""
    name = str(spec["id"])
    return f"Figure {name}: {spec['title']}" if name[:1].isdigit() else str(spec["title"])


def _begins(table: Tabled) -> set[int]:
    """Columns with which a group begins."""
    sizes = [size for _, size in table.groups]
    return {sum(sizes[:k]) for k in range(len(sizes))} if len(sizes) > 1 else set()


def _choice(choice: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(choice.get(key, "")) for key in ("what", "ours", "why", "swept_in")}


def _run_facts(found: Json) -> list[tuple[str, str]]:
    """Scale, effort and machine, as far as they are known."""
    profile, facts = found.get("profile", {}), []
    if profile:
        settings = ", ".join(f"{key} {item}" for key, item in profile.get("set", {}).items())
        facts.append(("scale", f"{profile['name']}{f' ({settings})' if settings else ''}"))
        facts.append(("seeds of a point", _seeds_said(found.get("grids", []), profile.get("seeds", []))))
    if "runs" in found:
        kept = found.get("runs_kept", 0)
        said = f"{found['runs']:,}" + (f", {kept:,} of them kept from before" if kept else "")
        for other, count in found.get("shared", {}).items():
            said += f"; {count:,} are runs of {other} too"
        facts.append(("different runs", said))
    if "simulated_h" in found:
        simulated, used = found["simulated_h"], found["cpu_h"]
        speed = f", {simulated / used:,.0f} s in a second of it" if used > 0 else ""
        said = f"{units.say_hours(simulated)} simulated in {units.say_hours(used)} of processor time{speed}"
        facts.append(("effort", said))
    if found.get("wall_s"):
        facts.append(("wall time", units.say_seconds(found["wall_s"])))
    if found.get("peak_rss_bytes"):
        facts.append(("memory of a run", f"at most {units.say_mebibytes(found['peak_rss_bytes'])}"))
    facts += _population_facts(found.get("calibration") or {})
    checks = found.get("self_checks")
    if checks:
        failed = len(checks["failed"])
        facts.append(
            ("self-checks", f"{checks['held']:,} hold, {failed} fail" if failed else f"all {checks['held']:,} hold")
        )
    machine = found.get("machine")
    if machine:
        said = f"{machine['system']} {machine['architecture']}, {machine['cores']} cores, Python {machine['python']}"
        facts.append(("made", f"{found.get('date', '')} on {said}, aqmlab {found.get('version', '')}".strip()))
    return facts


def _seeds_said(grids: Sequence[Json], of_profile: Sequence[int]) -> str:
    """The seeds that points were run with: one list, or each with its grids."""
    of_grids: dict[tuple[int, ...], list[str]] = {}
    for grid in grids:
        of_grids.setdefault(tuple(grid.get("seeds", of_profile)), []).append(str(grid["name"]))
    if len(of_grids) < 2:
        return _counted(next(iter(of_grids), of_profile))
    return "; ".join(f"{_counted(seeds)} ({', '.join(names)})" for seeds, names in of_grids.items())


def _counted(seeds: Sequence[int]) -> str:
    return f"{len(seeds)}: {_listed(seeds)}"


def _population_facts(calibration: Json) -> list[tuple[str, str]]:
    """For which demands populations were made, and how near to them the windows come."""
    populations, error = calibration.get("populations") or [], calibration.get("window_error")
    if not populations:
        return []
    said = ["made for the loads in the window of the seed that they were found with"]
    if error:
        said.append(f"in a window of this length a seed's own demand scatters by ± {100 * error:.2g} %")
    shares = [bps / one["load_bps"] for one in populations for bps in one["offered_bps"].values()]
    if shares:
        said.append(f"known demands are {100 * min(shares):.1f} to {100 * max(shares):.1f} % of the load")
    return [("populations", "; ".join(said))]


def _listed(seeds: Sequence[int]) -> str:
    if len(seeds) > 3 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
