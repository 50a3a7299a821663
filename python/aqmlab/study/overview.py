"""All studies together: the page and the JSON of `aqmlab study all`, and docs/studies.md."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab.claims import FAILS, HOLDS, NOT_RUN, OPEN, UNEXPLAINED
from aqmlab.claims.reading import ClaimText
from aqmlab.claims.verdict import bound_words, called
from aqmlab.errors import BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.results import store
from aqmlab.study import definition, found, outcome, page, published, witnessed
from aqmlab.study.definition import FULL, Study, by_scale
from aqmlab.sweep import offered

if TYPE_CHECKING:
    from aqmlab.study.runs import Finished

PAGE = "index.html"
NOWHERE = "–"
"""The scale of a claim that was not run."""
CHANGED = "not run since the claim was changed"
_WORDS = {
    HOLDS: "holds", FAILS: "**does not hold**", UNEXPLAINED: f"**{UNEXPLAINED}**", OPEN: "cannot be decided",
}  # fmt: skip


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
        "claims": outcome.counts(facts),
        "runs": len(cpu_s),
        "cpu_h": sum(cpu_s.values()) / 3600,
        "wall_s": max((one["wall_s"] for one in facts), default=0.0),
        "studies": facts,
    }
    store.write_json(base / found.RESULT, answer)
    return answer


def markdown(folders: Sequence[Path]) -> str:
    """docs/studies.md: every claim of the studies in these folders, with the numbers that are kept beside each."""
    read = [(definition.read(folder), _Kept.of(folder)) for folder in folders]
    return "\n".join([_HEAD, _summary(read), *(_of_study(study, kept) for study, kept in read)]).rstrip("\n") + "\n"


_HEAD = """# The studies, claim by claim

What five published studies and the RFCs of L4S claim, asked of runs made here. How to run them, and what the words \
mean: [studies](guide/studies.md). This page is written by `make studies` from `claims.toml` and `found.json` in each \
folder of [studies](../studies). Distributions on the papers' axes: [figures](studies/figures.md). What the papers \
state and the runs leave out: [not modelled](studies/not-modelled.md). Bounds that were set anew after results: \
[a list](studies/changes.md). What was not run yet, with its cost: [what is left](studies/left.md). \
Claims and scenarios against the texts: [a second reading](studies/second-reading.md).

An interval is one of 95 % across independent runs. A claim holds where every number lies within its bounds with its \
whole interval. It does not hold if one number lies outside with its whole interval. Where a claim has k numbers that \
interval is wider, one of 1 − 0.05/k, so that chance alone fails it in 5 % of cases at most. Otherwise it cannot be \
decided. Where it does not hold and no run shows why, it is called not reproduced, cause unknown. Bounds were fixed \
before the runs, but for those on that list, and stand with their reasons in each `claims.toml`.

A take is what one command ran of a study. Runs and CPU hours are sums over all takes that the answers of a study \
stand on. Some points are in several of them, with the same seeds.
"""


@dataclass(frozen=True)
class _Kept:
    """What is kept of a study: of each scale its takes and answers, the largest first."""

    scales: Mapping[str, Json]

    @classmethod
    def of(cls, folder: Path) -> "_Kept":
        profiles = found.of_bed(folder, None)
        return cls({name: profiles[name] for name in by_scale(profiles)})

    def answer(self, text: ClaimText) -> tuple[str, Json] | None:
        """The scale that decides, and its answer: the largest one that all numbers were run at.

        Else the largest at which any was run, if the claim is the one that was asked.
        """
        there = [
            (name, answer)
            for name, scale in self.scales.items()
            if (answer := scale["claims"].get(text.id)) is not None and answer["digest"] == text.digest
        ]
        ran = [(name, answer) for name, answer in there if found.asked(answer)]
        whole = [(name, answer) for name, answer in ran if len(found.asked(answer)) == len(answer["findings"])]
        return next(iter([*whole, *ran, *((NOWHERE, answer) for _, answer in there)]), None)

    def verdict(self, text: ClaimText) -> str:
        """In words, of a claim that nothing answers too."""
        answer = self.answer(text)
        if answer is not None:
            scale, kept = answer
            return found.believed(kept, scale)
        if any(text.id in scale["claims"] for scale in self.scales.values()):
            return CHANGED
        return NOT_RUN if self.scales else "not run"

    def called(self, text: ClaimText) -> str:
        """The same as people read it: of what does not hold, whether a run shows why."""
        return called(self.verdict(text), text.cause_unknown)

    def takes(self, texts: Sequence[ClaimText]) -> list[Json]:
        """The takes whose numbers stand on the page, in the order of their scales."""
        used = [answered for answered in map(self.answer, texts) if answered is not None]
        names = {answer["take"] for _, answer in used}
        return [take for scale in self.scales.values() for name, take in scale["takes"].items() if name in names]


def _summary(read: Sequence[tuple[Study, _Kept]]) -> str:
    lines = [
        "| study | claims | hold | do not hold | not reproduced, cause unknown | cannot be decided | not run "
        "| at full scale | runs | CPU hours |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    sums = [0] * 7
    for study, kept in read:
        verdicts = [kept.called(text) for text in study.claims]
        decided = [verdicts.count(verdict) for verdict in (HOLDS, FAILS, UNEXPLAINED, OPEN)]
        full = sum(answer is not None and answer[0] == FULL for answer in map(kept.answer, study.claims))
        row = [len(verdicts), *decided, len(verdicts) - sum(decided), full]
        sums = [a + b for a, b in zip(sums, row, strict=True)]
        takes = kept.takes(study.claims)
        effort = (f"{sum(take['runs'] for take in takes):,}", f"{sum(take['cpu_h'] for take in takes):,.2f}")
        cells = [f"[{study.id}](#{_anchor(study)})", *map(str, row), *(effort if takes else ("–", "–"))]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"| all | {' | '.join(map(str, sums))} | | |")
    return "\n".join(lines) + "\n"


def _anchor(study: Study) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", _title(study).lower()).replace(" ", "-")


def _title(study: Study) -> str:
    return f"{study.id}: {study.title}"


def _of_study(study: Study, kept: _Kept) -> str:
    parts = [f"## {_title(study)}\n", f"{study.paper}. [What it did, and what we chose](../studies/{study.id}).\n"]
    takes = kept.takes(study.claims)
    parts += [f"{_made(take)}\n" for take in takes] or ["Not run yet.\n"]
    beside = found.columns(study)
    if study.beds:
        parts.append(f"{_on_beds(study, beside)}\n")
    parts.append(
        "| claim | what is claimed | found | bound | published | verdict | scale |\n|---|---|---|---|---|---|---|"
    )
    for text in study.claims:
        scale, answer = kept.answer(text) or (NOWHERE, None)
        findings = [] if answer is None else answer["findings"]
        ours = "<br>".join(f"{_cell(f['label'])}: {_cell(f['number'])}" for f in findings)
        theirs = "<br>".join(dict.fromkeys(_cell(f["published_number"]) for f in findings if f["published_number"]))
        verdict = kept.verdict(text)
        full = kept.scales.get(FULL, {}).get("claims", {}).get(text.id) if scale != FULL else None
        remark = _remark(study, verdict, answer, full)
        word = kept.called(text)
        said = _WORDS.get(word, word) + (f" ({_cell(remark)})" if remark else "")
        if load := offered.said((answer or {}).get("offered")):
            said += f"<br>load offered: {load}"
        said += "".join(
            f"<br>{_cell(other['title'])}: {_WORDS.get(other['verdict'], other['verdict'])} ({other['profile']})"
            for other in beside.get(text.id, [])
        )
        cells = (text.id, _said(text), ours, _cell(_bounds(text)), theirs, said, scale)
        parts.append(f"| {' | '.join(cells)} |")
    on_beds = {bed.title: found.of_bed(study.folder, bed.name) for bed in study.beds}
    if numbers := published.markdown(study, kept.scales, on_beds):
        parts.append(f"\n{numbers.rstrip()}")
    explained = [text for text in study.claims if text.explained and kept.verdict(text) in (FAILS, OPEN)]
    if explained:
        parts.append("\nWhat explains those that do not hold or cannot be decided:\n")
        parts += [f"- **{text.id}**{_unknown(kept, text)}: {_line(text.explained)}" for text in explained]
    short = [text.id for text in study.claims if (answered := kept.answer(text)) and answered[0] not in (FULL, NOWHERE)]
    if short:
        parts.append(f"\nNot asked at the published scale: {', '.join(short)}. [What is left](studies/left.md).")
    if hanging := [(text, found.hangs_on(answered[1])) for text in study.claims if (answered := kept.answer(text))]:
        lines = [f"- **{text.id}**, {kept.called(text)}: {'; '.join(turns)}" for text, turns in hanging if turns]
        parts += (
            ["\nVerdicts that depend on the size of a word, swept over half to twice its size:\n", *lines]
            if lines
            else []
        )
    if between := witnessed.markdown(study.folder, f"{study.id} between real TCP stacks"):
        parts.append(f"\n{between}")
    return "\n".join(parts) + "\n"


def _on_beds(study: Study, beside: Mapping[str, Sequence[Json]]) -> str:
    """Of how many claims each test bed was asked, in whole or in part."""
    titles = [other["title"] for others in beside.values() for other in others]
    each = "; ".join(f"{bed.title} (`--bed {bed.name}`): {titles.count(bed.title) or 'none'}" for bed in study.beds)
    return f"How many of the {len(study.claims)} claims were asked of each test bed, in whole or in part: {each}."


def _unknown(kept: _Kept, text: ClaimText) -> str:
    """That what follows explains nothing, and says what was tried."""
    return " (cause unknown)" if kept.called(text) == UNEXPLAINED else ""


def _remark(study: Study, verdict: str, answer: Json | None, full: Json | None) -> str:
    """What stands beside a verdict; `full` is what is kept of the published scale beside that of shorter runs."""
    if answer is None:
        return ""
    if verdict == OPEN and answer["verdict"] != OPEN:
        again = f"`aqmlab study {study.id} --quick` says"
        return f"whether the windows of these shorter runs were settled was not kept: {again}"
    return found.remark(answer, full)


def _made(take: Json) -> str:
    profile = take["profile"]
    seeds = profile["seeds"]
    lengths = ", ".join(f"{key} {value}" for key, value in profile["set"].items())
    made = (
        f"Scale {profile['name']}: {lengths}{'; ' if lengths else ''}{len(seeds)} seed{'s' if len(seeds) > 1 else ''}, "
        f"{take['runs']:,} runs, {take['simulated_h']:,.1f} h simulated in {take['cpu_h']:,.2f} CPU hours, aqmlab "
        f"{take['version']}{_engine(take)}, {take['date']}."
    )
    failed = take["self_checks"]["failed"]
    if failed:
        first = f"{failed[0]['run']}: {failed[0]['name']}: {failed[0]['detail']}"
        made += f" **{len(failed)} self-check{'s' if len(failed) > 1 else ''} failed**, of {first}."
    return f"{made} {_line(profile['says'])}".strip()


def _engine(take: Json) -> str:
    """Which compiled engine it was, where that was written down: takes of two may differ."""
    return f" (engine {take['engine'][:12]})" if take.get("engine") else ""


def _bounds(text: ClaimText) -> str:
    """Each different bound once."""
    return "; ".join(dict.fromkeys(bound_words(q.low, q.high, q.unit, q.stretch, q.elsewhere) for q in text.questions))


def _said(text: ClaimText) -> str:
    """The claim and where the paper says it."""
    return _cell(text.says) + (f"<br>*{_cell(text.source)}*" if text.source else "")


def _line(text: str | None) -> str:
    return " ".join(str(text or "").split())


def _cell(text: object) -> str:
    return _line(str(text)).replace("|", "\\|")
