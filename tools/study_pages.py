"""Writes docs/studies.md and docs/studies/figures.md; before that, keeps what result folders given as arguments found.

Their numbers are put beside their studies, and of runs of the published and the medium scale the distributions of
response times; of the published scale also the papers' figures that need more than these. Of a folder with fewer runs
than verdicts need, `--curves=FOLDER` takes the distributions alone.

A folder is that of a study (`results/study-le2003`) or of all of them (`results/studies`). Results with self-checks
that failed are taken over only if each of these is listed: `--failed="web/pi-24/off, seed 3: NAME"`.
"""

import sys
from pathlib import Path

import study_figures

from aqmlab.errors import AqmlabError, BadInput
from aqmlab.json_files import read_json
from aqmlab.study import curves, definition, folders, found, overview, witnessed

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "studies.md"
FIGURES = ROOT / "docs" / "studies" / "figures.md"
IMAGES = ROOT / "docs" / "img" / "studies"


def take(folder: Path, listed: list[str]) -> None:
    """Keeps the numbers of a result folder."""
    facts = read_json(folder / found.RESULT)
    if facts.get("kind") == "studies":
        for one in facts["studies"]:
            take(folder / one["id"], listed)
        return
    place = ROOT / "studies" / facts["id"]
    path = found.keep(folder, place, listed)
    for kept in (witnessed.keep(folder, place), curves.keep(folder, place, facts)):
        if kept is not None:
            print(kept.relative_to(ROOT))
    for drawn in study_figures.take_drawn(folder, definition.read(place), facts, IMAGES):
        print(drawn.relative_to(ROOT))
    checks = facts["self_checks"]
    print(f"{path.relative_to(ROOT)}: {checks['held']} self-checks hold, {len(checks['failed'])} failed")


def take_curves(folder: Path) -> None:
    """Keeps the distributions of a result folder, and none of its numbers."""
    facts = read_json(folder / found.RESULT)
    if not facts.get("complete") or facts["self_checks"]["failed"] or facts["changes"]:
        raise BadInput(f"{folder}: expected a finished study as it is, without self-checks that failed")
    kept = curves.keep(folder, ROOT / "studies" / facts["id"], facts)
    if kept is None:
        raise BadInput(f"{folder}: has no distributions of the full or the medium scale; expected some")
    print(kept.relative_to(ROOT))


def main(arguments: list[str]) -> None:
    """Takes over, then writes."""
    flag = "--failed="
    listed = [argument.removeprefix(flag) for argument in arguments if argument.startswith(flag)]
    alone = "--curves="
    for argument in arguments:
        if argument.startswith(alone):
            take_curves(Path(argument.removeprefix(alone)))
        elif not argument.startswith(flag):
            take(Path(argument), listed)
    places = [ROOT / "studies" / name for name in folders.known()]
    PAGE.write_text(overview.markdown(places), encoding="utf-8")
    study_figures.write([definition.read(place) for place in places], FIGURES, IMAGES)
    print(PAGE.relative_to(ROOT), FIGURES.relative_to(ROOT), sep="\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AqmlabError as error:
        sys.exit(f"study_pages: {error}")
