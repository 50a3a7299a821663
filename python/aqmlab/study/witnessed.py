"""The comparison of a study between real TCP stacks, as numbers kept beside the study and as a section of a page."""

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path

from aqmlab import files, toml_text
from aqmlab.agreement import agreements, words
from aqmlab.agreement.words import counted
from aqmlab.comparison import Column, Comparison
from aqmlab.json_files import Json, read_json
from aqmlab.results import readable, store
from aqmlab.scenario import digest

KEPT = "witnessed.json"
"""Beside `study.toml`: what each witness found."""

HOW = {"live": "in real time", "virtual": "in virtual time"}
"""The witnesses, which are also the folders of their comparisons."""

_MEASURES = (("p50", "s"), ("p90", "s"), ("share_under_500ms", "share"))
_HEADS = ("median, ms", "90 %, ms", "within 0.5 s, %")


def keep(result: Path, study_folder: Path) -> Path | None:
    """Puts what the comparisons in a study's result folder found beside the study; `None` where it has none."""
    found = {name: result / name for name in HOW if (result / name / "comparison.json").exists()}
    if not found:
        return None
    path = study_folder / KEPT
    before = read_json(path) if path.exists() else {}
    asked = _asked(study_folder)
    now = {name: {**numbers(Comparison(place)), "asked": asked} for name, place in found.items()}
    store.write_json(path, {**before, **now})
    return path


def _asked(study_folder: Path) -> str | None:
    """A digest of the comparison that the study has now, whatever its comments say."""
    name = toml_text.read(study_folder / "study.toml", files.STUDY).get("live", {}).get("file")
    return None if name is None else digest(toml_text.read(study_folder / name, files.SCENARIO))


def numbers(comparison: Comparison) -> Json:
    """What is kept of a comparison: response times under each witness, and how well the witnesses agree."""
    found = agreements.of_comparison(comparison)
    verdicts = [finding.verdict for item in found for finding in item.findings]
    simulated = {column.subject for column in comparison.columns if column.witness != "simulated"}
    return {
        "version": next(column.result.manifest["version"] for column in comparison.columns),
        "date": _date(comparison),
        "runs": max(len(column.result.runs) for column in comparison.columns),
        "counts": counted(verdicts),
        "baseline": comparison.baseline.subject,
        "responses": [
            list(_responses(comparison, column)) for column in comparison.columns if column.subject in simulated
        ],
        "agreement": [
            [
                item.name + (f" ({item.note})" if item.note else ""),
                f"{finding.title}{words.unit(finding)}",
                *words.cells(finding),
                words.said_verdict(finding),
            ]
            for item in found
            for finding in item.findings
        ],
    }


def _date(comparison: Comparison) -> str:
    """The day on which its last run was finished."""
    written = max(path.stat().st_mtime for path in comparison.folder.glob("*/manifest.json"))
    return datetime.datetime.fromtimestamp(written, datetime.UTC).date().isoformat()


def _responses(comparison: Comparison, column: Column) -> Iterator[str]:
    yield column.subject
    yield "simulator" if column.witness == "simulated" else "real stacks"
    for measure, unit in _MEASURES:
        yield " ".join(filter(None, readable.with_width(column.estimate(measure), unit)))
    base = comparison.base_of(column)
    gain = None if base is column else comparison.difference(column, base, measure)
    yield "" if gain is None else " ".join(filter(None, readable.with_width(gain, unit, signed=True)))


def markdown(study_folder: Path, title: str) -> str:
    """What is kept beside a study, as a section; empty where nothing is."""
    path = study_folder / KEPT
    if not path.exists():
        return ""
    parts = [f"### {title}\n"]
    for name, found in read_json(path).items():
        changed = "" if found["asked"] == _asked(study_folder) else " The comparison was changed since."
        parts += [
            f"The main comparison between the TCP of a real kernel at both ends, {HOW[name]}, beside the simulator "
            f"under the same demands ([live.toml](../studies/{study_folder.name}/live.toml); {found['runs']} runs of "
            f"each; aqmlab {found['version']}, {found['date']}). Quantities: {found['counts']}.{changed}\n",
            _table(("discipline", "hosts", *_HEADS, f"over {found['baseline']}, points"), found["responses"]),
            _table(
                ("discipline", "quantity", "simulator", "real stacks", "difference", "tolerance", "verdict"),
                found["agreement"],
            ),
        ]
    return "\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * 2 + ["--:"] * (len(head) - 2), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"
