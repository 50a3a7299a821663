"""Writes docs/studies.md and docs/studies/figures.md; before that, keeps what result folders given as arguments found.

Their numbers are put beside their studies, and of runs at the published scale the distributions of response times.

A folder is that of a study (`results/study-le2003`) or of all of them (`results/studies`). Results with self-checks
that failed are taken over only if each of these is listed: `--failed="web/pi-24/off, seed 3: NAME"`.
"""

import sys
from pathlib import Path

import study_figures

from aqmlab.errors import AqmlabError
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
    checks = facts["self_checks"]
    print(f"{path.relative_to(ROOT)}: {checks['held']} self-checks hold, {len(checks['failed'])} failed")


def main(arguments: list[str]) -> None:
    """Takes over, then writes."""
    flag = "--failed="
    listed = [argument.removeprefix(flag) for argument in arguments if argument.startswith(flag)]
    for folder in (argument for argument in arguments if not argument.startswith(flag)):
        take(Path(folder), listed)
    places = [ROOT / "studies" / name for name in folders.known()]
    PAGE.write_text(overview.markdown(places), encoding="utf-8")
    study_figures.write([definition.read(place) for place in places], FIGURES, IMAGES)
    print(PAGE.relative_to(ROOT), FIGURES.relative_to(ROOT), sep="\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except AqmlabError as error:
        sys.exit(f"study_pages: {error}")
