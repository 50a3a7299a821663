"""All studies together: the page and the JSON of `aqmlab study all`, and docs/studies.md."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import store
from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN
from aqmlab.claims.reading import ClaimText
from aqmlab.claims.verdict import bound_words
from aqmlab.errors import BadInput
from aqmlab.results import Json, read_json
from aqmlab.study import definition, found, page
from aqmlab.study.definition import FULL, Study

if TYPE_CHECKING:
    from aqmlab.study.runs import Finished

PAGE = "index.html"
CHANGED = "not run since the claim was changed"
_WORDS = {HOLDS: "holds", FAILS: "**does not hold**", OPEN: "cannot be decided"}


def claim_folder(base: Path) -> None:
    """Makes sure that results of all studies can go to `base`, before anything runs."""
    store.claim(base, resume=True)
    if base.is_dir() and any(base.iterdir()):
        path = base / found.RESULT
        if not path.exists() or read_json(path).get("kind") != "studies":
            raise BadInput(f"{base}: holds something else than results of the studies; expected another folder")
    base.mkdir(parents=True, exist_ok=True)
    store.write_json(base / found.RESULT, {"kind": "studies", "complete": False})


def write(base: Path, done: Sequence["Finished"]) -> Json:
    """Writes the page over all claims and the JSON of all studies; the answer is the latter."""
    facts = [{**one.found, "report": one.report.relative_to(base).as_posix()} for one in done]
    page.write_overview(facts, base)
    cpu_s = {key: seconds for one in done for key, seconds in one.cpu_s.items()}
    answer = {
        "kind": "studies",
        "complete": True,
        "claims": found.counts(facts),
        "runs": len(cpu_s),
        "cpu_h": sum(cpu_s.values()) / 3600,
        "wall_s": max((one["wall_s"] for one in facts), default=0.0),
        "studies": facts,
    }
    store.write_json(base / found.RESULT, answer)
    return answer


def markdown(folders: Sequence[Path]) -> str:
    """docs/studies.md: every claim of the studies in these folders, with the numbers that are kept beside each."""
    read = [(definition.read(folder), _kept(folder)) for folder in folders]
    return "\n".join([_HEAD, _summary(read), *(_of_study(study, kept) for study, kept in read)]).rstrip("\n") + "\n"


_HEAD = """# The studies, claim by claim

What five published studies claim, asked of runs made here. How to run them, and what the words mean: \
[studies](guide/studies.md). This page is written by `make studies` from `claims.toml` and `found.json` in each folder \
of [studies](../studies).

An interval is one of 95 % across independent runs. A claim holds where every number lies within its bounds with its \
whole interval; it does not hold where one lies outside with its whole interval, which of k numbers is one of \
1 − 0.05/k; else it cannot be decided. Bounds were fixed before the runs, and stand with their reasons in each \
`claims.toml`.
"""


def _kept(folder: Path) -> Json | None:
    """What was found at the largest scale that was run; with the name of that."""
    path = folder / found.KEPT
    if not path.exists():
        return None
    profiles = read_json(path)
    name = FULL if FULL in profiles else next(iter(profiles), None)
    return None if name is None else dict(profiles[name])


def _summary(read: Sequence[tuple[Study, Json | None]]) -> str:
    lines = [
        "| study | claims | hold | do not hold | cannot be decided | not run | scale | runs | CPU hours |",
        "|---|--:|--:|--:|--:|--:|---|--:|--:|",
    ]
    sums = [0] * 5
    for study, kept in read:
        verdicts = [_verdict(kept, text) for text in study.claims]
        decided = [verdicts.count(verdict) for verdict in (HOLDS, FAILS, OPEN)]
        row = [len(verdicts), *decided, len(verdicts) - sum(decided)]
        sums = [a + b for a, b in zip(sums, row, strict=True)]
        scale = ("–", "–", "–") if kept is None else (kept["profile"]["name"], f"{kept['runs']:,}", _hours(kept))
        cells = [f"[{study.id}](#{_anchor(study)})", *map(str, row), *scale]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"| all | {' | '.join(map(str, sums))} | | | |")
    return "\n".join(lines) + "\n"


def _hours(kept: Json) -> str:
    return f"{kept['cpu_h']:,.2f}"


def _anchor(study: Study) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", _title(study).lower()).replace(" ", "-")


def _title(study: Study) -> str:
    return f"{study.id}: {study.title}"


def _answer(kept: Json | None, text: ClaimText) -> Json | None:
    """What was found of a claim, if it is the one that was asked."""
    found = None if kept is None else kept["claims"].get(text.id)
    return found if found is not None and found.get("digest") == text.digest else None


def _verdict(kept: Json | None, text: ClaimText) -> str:
    answer = _answer(kept, text)
    if answer is not None:
        return str(answer["verdict"])
    return CHANGED if kept is not None and text.id in kept["claims"] else NOT_RUN if kept is not None else "not run"


def _of_study(study: Study, kept: Json | None) -> str:
    parts = [f"## {_title(study)}\n", f"{study.paper}. [What it did, and what we chose](../studies/{study.id}).\n"]
    parts.append(_made(kept) + "\n")
    parts.append("| claim | what is claimed | found | bound | published | verdict |\n|---|---|---|---|---|---|")
    for text in study.claims:
        answer = _answer(kept, text)
        findings = [] if answer is None else answer["findings"]
        ours = "<br>".join(f"{_cell(f['label'])}: {_cell(f['number'])}" for f in findings)
        theirs = "<br>".join(dict.fromkeys(_cell(f["published_number"]) for f in findings if f["published_number"]))
        verdict = _verdict(kept, text)
        said = _WORDS.get(verdict, verdict) + (f" ({_cell(answer['remark'])})" if answer and answer["remark"] else "")
        parts.append(f"| {text.id} | {_cell(text.says)} | {ours} | {_cell(_bounds(text))} | {theirs} | {said} |")
    explained = [text for text in study.claims if text.explained and _verdict(kept, text) in (FAILS, OPEN)]
    if explained:
        parts.append("\nWhat explains those that do not hold or cannot be decided:\n")
        parts += [f"- **{text.id}**: {_line(text.explained)}" for text in explained]
    return "\n".join(parts) + "\n"


def _made(kept: Json | None) -> str:
    if kept is None:
        return "Not run yet."
    profile = kept["profile"]
    seeds = profile["seeds"]
    lengths = ", ".join(f"{key} {value}" for key, value in profile["set"].items())
    made = (
        f"Scale: {profile['name']} ({lengths}; {len(seeds)} seed{'s' if len(seeds) > 1 else ''}), {kept['runs']:,} "
        f"runs, {kept['simulated_h']:,.1f} h simulated in {_hours(kept)} CPU hours, aqmlab {kept['version']}, "
        f"{kept['date']}."
    )
    failed = kept["self_checks"]["failed"]
    if failed:
        first = f"{failed[0]['run']}: {failed[0]['name']}: {failed[0]['detail']}"
        made += f" **{len(failed)} self-check{'s' if len(failed) > 1 else ''} failed**, of {first}."
    return f"{made} {_line(profile['says'])}".strip()


def _bounds(text: ClaimText) -> str:
    """Each different bound once."""
    return "; ".join(dict.fromkeys(bound_words(q.low, q.high, q.unit) for q in text.questions))


def _line(text: str | None) -> str:
    return " ".join(str(text or "").split())


def _cell(text: object) -> str:
    return _line(str(text)).replace("|", "\\|")
