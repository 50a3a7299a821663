"""What is to be known before a run's figures are taken for those of its link and its discipline, in a line each."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from aqmlab.json_files import Json
from aqmlab.results import at_limit, empty, held_back


def of(tree: Mapping[str, Any], summary: Json) -> list[str]:
    """That no packet left, that a limit did what a law should do, that windows or access links held flows back.

    `tree` is a resolved scenario, `summary` what its runs came to.
    """
    return list(chain.from_iterable(part.seen(tree, summary) for part in (empty, at_limit, held_back)))
