"""`study.json`: what came out of a study, in its result folder. All pages are made of it."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab import engine
from aqmlab.claims import FAILS, HOLDS, OPEN, VERDICTS, Claim
from aqmlab.errors import BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.scenario import digest
from aqmlab.study.cells import Cells
from aqmlab.study.definition import FULL, Study
from aqmlab.study.found import BARE, RESULT, columns
from aqmlab.sweep import offered


@dataclass(frozen=True)
class Effort:
    """How the runs of a study came about."""

    runs: int
    """Different ones that it needs."""
    kept: int
    """Of these, found in the cache."""
    shared: Mapping[str, int]
    """Of these, needed by another study of the same plan too: by its id."""
    wall_s: float
    """Of the whole plan."""


def of_study(study: Study, cells: Cells, claims: Sequence[Claim], effort: Effort) -> Json:
    """All there is to say of a finished study."""
    runs = [run for cell in cells for run in cell.runs]
    loads = _loads(study, cells)
    different = {run.key: run for run in runs}
    checks = [(cell, run, check) for cell in cells for run in cell.runs for check in run.self_checks]
    return {
        "kind": "study",
        "complete": True,
        "id": study.id,
        "title": study.title,
        "paper": study.paper,
        "about": study.about,
        "choices": [dict(choice) for choice in study.tree.get("choice", [])],
        "profile": {
            "name": study.profile.name,
            "says": study.profile.says,
            "seeds": list(study.profile.seeds),
            "set": study.profile.set,
        },
        "version": engine.version(),
        "engine": engine.file_sha256(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "digest": digest([[cell.name, *(run.digest for run in cell.runs)] for cell in cells]),
        "command": study.command,
        "only": list(study.only),
        "changes": study.changes,
        "bed": None if study.bed is None else study.bed.name,
        "machine": store.machine(),
        "runs": effort.runs,
        "runs_kept": effort.kept,
        "shared": dict(effort.shared),
        "cpu_h": sum(run.cpu_s for run in different.values()) / 3600,
        "wall_s": effort.wall_s,
        "simulated_h": sum(run.simulated_s for run in different.values()) / 3600,
        "peak_rss_bytes": max((run.peak_rss_bytes for run in different.values()), default=0),
        "grids": [
            {
                "name": grid.name,
                "title": grid.title,
                "points": len(grid.points),
                "seeds": list(study.seeds[grid.name]),
                "runs": len(grid.points) * len(study.seeds[grid.name]),
            }
            for grid in study.grids
        ],
        "calibration": offered.of_runs((run, cell.uncongested) for cell in cells for run in cell.runs),
        "claims": [
            judged(claim, study.profile.name, bool(study.only)) | {"offered": loads[claim.id]}
            if study.bed is None
            # What is known to come out is of the bare model.
            else {**claim.as_dict(), "as_known": True, "offered": loads[claim.id]}
            for claim in claims
        ],
        "column": BARE if study.bed is None else study.bed.title,
        "columns": columns(study),
        "self_checks": {
            "held": sum(check["holds"] for _, _, check in checks),
            "failed": [
                {"run": f"{cell.name}, seed {run.seed}", "name": check["name"], "detail": check["detail"]}
                for cell, run, check in checks
                if not check["holds"]
            ],
        },
        "live": None,
    }


def _loads(study: Study, cells: Cells) -> dict[str, Json | None]:
    """What the users offer in the runs that each claim asks of, without those on the uncongested link."""
    known, by_name = offered.Offered(), cells.by_name
    for cell in cells:
        for run in cell.runs:
            known.add(run, cell.uncongested)
    found: dict[str, Json | None] = {}
    for text in study.claims:
        asked = [by_name[name] for name in sorted(text.points) if name in by_name]
        shares = known.shares([run for cell in asked if not cell.uncongested for run in cell.runs])
        found[text.id] = None if shares is None else shares.as_dict()
    return found


def judged(claim: Claim, profile: str, is_part: bool = False) -> Json:
    """A claim with whether it came out as `claims.toml` says it does."""
    is_whole = profile == FULL and not (is_part and claim.asked < len(claim.findings))
    is_known = as_known(claim.verdict, claim.known_outcome, is_whole, claim.no_data)
    return {**claim.as_dict(), "as_known": is_known}


def as_known(verdict: str, known: str, is_whole: bool, no_data: int = 0) -> bool:
    """Whether a verdict is the known outcome.

    Runs shorter or fewer than the published ones may fail to decide what full ones decide, and the other way round:
    only the opposite verdict is unexpected there, and numbers that are missing though their points were run.
    """
    if is_whole:
        return verdict == known
    return {verdict, known} != {HOLDS, FAILS} and (not no_data or known == OPEN)


def counts(found: Sequence[Json]) -> dict[str, int]:
    """How many claims hold, do not hold, cannot be decided, were not run."""
    verdicts = [claim["verdict"] for one in found for claim in one["claims"]]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def unexpected(found: Sequence[Json]) -> list[str]:
    """One line for each claim whose verdict is not the known outcome."""
    return [
        f"{claim['id']}: {claim['verdict']}, known outcome: {claim['known_outcome']}: {claim['number']}"
        for one in found
        for claim in one["claims"]
        if not claim["as_known"]
    ]


def claim_folder(folder: Path, study_id: str) -> None:
    """Makes sure that the study's results can go to `folder`: a place that is free, or that holds such already.

    All in it is derived from runs that are kept elsewhere, so that it is made anew rather than refused.
    """
    store.claim(folder, resume=True)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        was = read_json(folder / RESULT).get("id")
    except BadInput:
        was = None
    if was != study_id:
        raise BadInput(f"{folder}: holds something else than results of the study {study_id}; expected another folder")


def begin(folder: Path, study: Study) -> None:
    """Says whose results the folder is to hold, before anything runs."""
    folder.mkdir(parents=True, exist_ok=True)
    store.write_json(
        folder / RESULT,
        {"kind": "study", "complete": False, "id": study.id, "profile": {"name": study.profile.name}},
    )
