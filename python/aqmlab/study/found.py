"""`found.json`: the numbers that are kept with a study itself, beside `study.toml`, a profile each.

What is claimed and why it is so stays in `claims.toml`, so that words are written once. A study of many hours may be
run in parts: each is a take, and a claim names the take that answered it.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN, Claim
from aqmlab.claims.asked import TOO_FEW
from aqmlab.claims.verdict import FULL_SCALE, full_scale_said
from aqmlab.errors import BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.study.definition import FULL, Study, by_scale

RESULT = "study.json"
"""In a result folder: what numbers are taken from. `outcome.py` writes it."""
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
        "remark": remark(claim),
        "unbelieved": claim["unbelieved"],
        "hangs_on": claim.get("hangs_on", []),
        **({"offered": claim["offered"]} if claim.get("offered") else {}),
        "findings": [{key: finding.get(key) for key in _KEPT_FINDING} for finding in claim["findings"]],
    }


def remark(answer: Json, full: Json | None = None) -> str:
    """What to know beside the verdict of an answer, with what came out at the published scale as `full` has it now.

    What the remark says of that scale by itself is left out: it was so when the answer was made, and was kept once.
    """
    own = _OF_FULL_SCALE.sub("", str(answer["remark"])).removeprefix("; ")
    is_open = answer["verdict"] == OPEN and full is not None and full["digest"] == answer["digest"] and asked(full)
    return "; ".join(filter(None, [own, full_scale_said(full) if full is not None and is_open else ""]))


_OF_FULL_SCALE = re.compile(rf"(^|; ){FULL_SCALE} .*?\)(?=; asked under other conditions: |$)")


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
