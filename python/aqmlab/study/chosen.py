"""Which studies a word names: one by its id or folder, or all there are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aqmlab import arguments
from aqmlab.errors import BadInput
from aqmlab.laws import brought
from aqmlab.study import definition, folders
from aqmlab.study.definition import Study
from aqmlab.study.folders import ALL


@brought.scoped
def read(
    what: str | Path,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
    changes: Mapping[str, Any] = MappingProxyType({}),
    bed: str | None = None,
    medium: bool = False,
    allow_code: bool = False,
) -> list[Study]:
    """The studies that a word on the command line names, of one of them perhaps only a part.

    Of all of them, those that have the scale that is asked for. `allow_code` runs the code that they name, where
    `changes` have to be checked, in this call alone.
    """
    arguments.truths(quick=quick, medium=medium)
    changes, only = arguments.changes(changes, "changes"), (only,) if isinstance(only, str) else tuple(map(str, only))
    seeds = None if seeds is None else arguments.whole(seeds, "seeds")
    what = str(what)
    if what == ALL and only:
        raise BadInput(
            f"{arguments.named('only', only[0])}: names points of one study; expected its id in the place of {ALL}"
        )
    if what == ALL and bed is not None:
        raise BadInput(
            f"{arguments.named('bed', bed)}: names a test bed of one study; expected its id in the place of {ALL}"
        )
    if quick and medium:
        both = f"{arguments.named('quick')} {arguments.named('medium')}"
        raise BadInput(f"{both}: two scales; expected one of them, or none for the published one")
    profile = definition.QUICK if quick else definition.MEDIUM if medium else definition.FULL
    of_all = folders.folder_of_all()
    asked = [of_all / name for name in folders.known()] if what == ALL else [folders.find(what)]
    if not asked:
        raise BadInput(f"study {what}: {of_all}: holds no study; expected folders with study.toml")
    if what == ALL:
        asked = [folder for folder in asked if definition.has_scale(folder, profile)]
        if not asked:
            raise BadInput(f"study {what}: {of_all}: no study has a table profiles.{profile}")
    return [definition.read(folder, profile, seeds, only, changes, bed) for folder in asked]
