"""How large a plan may be: more is refused in a line, before anything is built."""

from aqmlab.errors import BadInput

LARGEST_PLAN = 50_000
"""Runs of one command. At a second each that is fourteen hours; what they leave is some gigabytes."""


def check_plan(runs: int, where: str) -> None:
    """Refuses a plan of more runs than that; `where` says who asks for them."""
    if runs > LARGEST_PLAN:
        raise BadInput(f"{where}: {runs:,} runs; expected at most {LARGEST_PLAN:,} in one plan")
