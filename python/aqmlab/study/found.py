"""What came out of a study, as JSON: `study.json` in its result folder, and the numbers kept with the study itself.

`study.json` is all that pages are made of. `found.json`, beside `study.toml`, holds its numbers alone, a profile each:
what is claimed and why it is so stays in `claims.toml`, so that words are written once. A study of many hours may be
run in parts: each is a take, and a claim names the take that answered it.
"""

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aqmlab import engine
from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN, VERDICTS, Claim
from aqmlab.claims.asked import TOO_FEW
from aqmlab.errors import BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.scenario import digest
from aqmlab.study.cells import Cells
from aqmlab.study.definition import FULL, Study, by_scale
from aqmlab.sweep import offered

RESULT = "study.json"
KEPT = "found.json"
BEDS = "beds"
"""In `found.json`: the same by test bed."""
BARE = "the bare model"
"""The column of a study's scenario as it stands."""
TAKE_DIGITS = 12
"""Of the digest of a take's runs: its name."""
_KEPT_FACTS = ("version", "engine", "date", "runs", "cpu_h", "simulated_h", "digest", "only", "profile", "self_checks")
_KEPT_FINDING = (
    "label", "value", "half_width_95", "n", "basis", "low", "high", "verdict", "number", "bound", "published_number",
    "curve",
)  # fmt: skip


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


def numbers(found: Json, before: Json | None = None) -> Json:
    """What of a finished study is kept with it, beside what `before` keeps of other parts of the same profile.

    A part answers a claim anew if it asked all the numbers that an earlier one did, of the same question: these and
    more, or of as many runs.
    """
    name = str(found["digest"])[:TAKE_DIGITS]
    answers = {claim["id"]: _answer(claim, name) for claim in found["claims"]}
    takes = {name: {key: found[key] for key in _KEPT_FACTS}}
    if found["only"]:
        answers = {key: answer for key, answer in answers.items() if asked(answer)}
    if found["only"] and before is not None:
        for key, was in before["claims"].items():
            if key not in answers or not _covers(answers[key], was):
                answers[key] = was
        takes = {**before["takes"], **takes}
    used = {answer["take"] for answer in answers.values()}
    return {"takes": {key: take for key, take in takes.items() if key in used}, "claims": answers}


def _answer(claim: Json, take: str) -> Json:
    return {
        "verdict": claim["verdict"],
        "digest": claim["digest"],
        "take": take,
        "remark": claim["remark"],
        "unbelieved": claim["unbelieved"],
        "hangs_on": claim.get("hangs_on", []),
        **({"offered": claim["offered"]} if claim.get("offered") else {}),
        "findings": [{key: finding.get(key) for key in _KEPT_FINDING} for finding in claim["findings"]],
    }


def pace(study: Study) -> float | None:
    """Processor time for a time that is simulated, in the runs of the same profile that are kept with the study."""
    takes = of_bed(study.folder, None).get(study.profile.name, {}).get("takes", {}).values()
    simulated_h = sum(take["simulated_h"] for take in takes)
    return sum(take["cpu_h"] for take in takes) / simulated_h if simulated_h > 0 else None


def asked(answer: Json) -> set[str]:
    """The numbers of an answer that were run, by their labels."""
    return {finding["label"] for finding in answer["findings"] if finding["verdict"] != NOT_RUN}


def hangs_on(answer: Json) -> list[str]:
    """The sizes of words with which a claim has another verdict, in words."""
    return [str(turn["said"]) for turn in answer.get("hangs_on") or []]


def _covers(now: Json, was: Json) -> bool:
    if now["digest"] != was["digest"]:
        return True
    ours, theirs = asked(now), asked(was)
    return ours > theirs or (ours == theirs and _fewest_runs(now) >= _fewest_runs(was))


def _fewest_runs(answer: Json) -> int:
    return min((int(finding["n"]) for finding in answer["findings"] if finding["verdict"] != NOT_RUN), default=0)


def keep(result: Path, study_folder: Path, listed: Collection[str] = ()) -> Path:
    """Puts the numbers of a result folder's `study.json` into `found.json` beside `study.toml`.

    Not those of fewer runs than the claims ask for, nor those with self-checks that failed, unless each of these is
    `listed`: by its run and its name, as in `web/pi/off, seed 3: conservation`.
    """
    found = read_json(result / RESULT)
    if found.get("kind") != "study" or not found.get("complete"):
        raise BadInput(f"{result / RESULT}: expected that of a finished study")
    if missing := [key for key in (*_KEPT_FACTS, "changes") if key not in found]:
        raise BadInput(
            f"{result / RESULT}: {missing[0]}: missing: made by an older aqmlab; expected results of this one, which "
            "the same command makes of the runs that are kept"
        )
    if found["changes"]:
        raise BadInput(
            f"{result / RESULT}: made with {', '.join(found['changes'])} in the place of what the study says; "
            "expected results of the study as it is"
        )
    failed = [f"{check['run']}: {check['name']}" for check in found["self_checks"]["failed"]]
    unlisted = [what for what in failed if what not in listed]
    if unlisted:
        raise BadInput(
            f"{result / RESULT}: {len(failed)} self-check(s) failed, {unlisted[0]}; "
            "expected none, or each of them listed"
        )
    few = [claim["id"] for claim in found["claims"] if any(_is_of_few(finding) for finding in claim["findings"])]
    if few:
        raise BadInput(
            f"{result / RESULT}: fewer runs of a point than a verdict needs: {', '.join(few)}; expected as many as the "
            "claims ask for"
        )
    path, profile, bed = study_folder / KEPT, found["profile"]["name"], found.get("bed")
    profiles = of_bed(study_folder, bed)
    profiles[profile] = numbers(found, profiles.get(profile))
    kept = read_json(path) if path.exists() else {}
    if bed is None:
        kept.update(profiles)
    else:
        kept[BEDS] = {**kept.get(BEDS, {}), bed: {name: profiles[name] for name in sorted(profiles)}}
    store.write_json(path, {name: kept[name] for name in sorted(kept)})
    return path


def of_bed(study_folder: Path, bed: str | None) -> Json:
    """What is kept of a study, by profile: of its scenario as it stands, or of one of its test beds."""
    path = study_folder / KEPT
    kept = read_json(path) if path.exists() else {}
    there = {name: item for name, item in kept.items() if name != BEDS} if bed is None else kept.get(BEDS, {}).get(bed)
    return dict(there or {})


def columns(study: Study) -> dict[str, list[Json]]:
    """What is kept of each claim in the other columns: on the bare model, and on the other test beds.

    By the claim's id: `title` of the column, `profile`, `verdict`. The published scale stands before shorter runs; a
    claim that was changed since has none.
    """
    beside: dict[str, list[Json]] = {}
    others = [(bed.name, bed.title) for bed in study.beds if study.bed is None or bed.name != study.bed.name]
    for name, title in [*([] if study.bed is None else [(None, BARE)]), *others]:
        profiles = of_bed(study.folder, name)
        for text in study.claims:
            for profile in by_scale(profiles):
                answer = profiles[profile]["claims"].get(text.id)
                if answer is not None and answer["digest"] == text.digest and asked(answer):
                    verdict = believed(answer, profile)
                    beside.setdefault(text.id, []).append({"title": title, "profile": profile, "verdict": verdict})
                    break
    return beside


def contradictions(answer: Json, full: Json) -> list[str]:
    """What an answer of shorter runs decides otherwise than the published scale: the claim, or numbers of it."""
    decided = (HOLDS, FAILS)
    theirs = {finding["label"]: finding["verdict"] for finding in full["findings"]}
    pairs = [(finding["label"], finding["verdict"], theirs.get(finding["label"])) for finding in answer["findings"]]
    found = [label for label, ours, other in pairs if ours in decided and other in decided and ours != other]
    verdicts = answer["verdict"], full["verdict"]
    is_other = verdicts[0] in decided and verdicts[1] in decided and verdicts[0] != verdicts[1]
    return (["the claim"] if is_other else []) + found


def believed(answer: Json, profile: str) -> str:
    """The verdict of an answer that is kept.

    One of shorter runs that does not say whether they were settled was kept before that was asked. It decides nothing,
    and nothing else that is kept says more: the same command makes it anew.
    """
    is_known = profile == FULL or "unbelieved" in answer
    return str(answer["verdict"]) if is_known or answer["verdict"] not in (HOLDS, FAILS) else OPEN


def at_full_scale(study_folder: Path, claims: Sequence[Claim], bed: str | None = None) -> list[Claim]:
    """The claims with what is kept of them from runs at the published scale, on the same test bed.

    Not those that were changed since, nor those that are asked under other conditions.
    """
    answers = of_bed(study_folder, bed).get(FULL, {}).get("claims", {})
    kept = [answers.get(claim.id) for claim in claims]
    return [
        replace(claim, at_full_scale=answer)
        if answer and answer["digest"] == claim.digest and asked(answer) and not claim.conditions
        else claim
        for claim, answer in zip(claims, kept, strict=True)
    ]


def _is_of_few(finding: Json) -> bool:
    return str(finding["note"] or "").endswith(TOO_FEW)


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
