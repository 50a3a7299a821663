"""What the terminal says of the claims that a comparison answers: one sentence."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from aqmlab.command import terminal


def claim(verdict, full=None, is_believed=True):
    return SimpleNamespace(
        verdict=verdict,
        unbelieved=() if is_believed else ("PI",),
        at_full_scale=None if full is None else {"verdict": full},
    )


HERE = "cannot be decided here, where runs are not known to be settled"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], ""),
        (
            [claim("cannot be decided", "does not hold", False)],
            f"Claims of the studies: 1 {HERE}; at the published scale, of these: 1 does not hold.\n",
        ),
        (
            [claim("holds"), claim("does not hold"), claim("does not hold"), claim("cannot be decided")],
            "Claims of the studies: 1 holds, 2 do not hold, 1 cannot be decided.\n",
        ),
        (
            [claim("holds"), claim("cannot be decided"), claim("cannot be decided", None, False)],
            f"Claims of the studies: 1 holds, 1 cannot be decided, 1 {HERE}.\n",
        ),
    ],
)
def test_claims_are_said_once_and_without_what_there_is_none_of(found, said):
    out = io.StringIO()
    terminal.verdicts(Console(file=out, width=120), found)
    assert out.getvalue() == said
