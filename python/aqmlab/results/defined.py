"""The catalogue of measures, as the engine has it: what each is called, its unit, how it is worked out and of what.

Here are the words; formulas over results stand in `window.py` and `measures/`, one under each name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aqmlab import engine

SHARE = "share of "
"""Begins the unit of what is between 0 and 1: `share of packets`."""


@dataclass(frozen=True)
class Defined:
    """A row of the catalogue."""

    name: str
    title: str
    """For the head of a column."""
    unit: str
    """`s`, `bit/s`, `packets`, `share of packets`; empty of a plain number."""
    formula: str
    """How it is worked out, in words and symbols."""
    source: str
    """The columns of tables and the counts that it is worked out of."""
    key: str | None
    """Where the summary has it; of a link that of one direction, `forward.utilisation`."""
    parameters: Sequence[str] | None
    """With which it can be asked for; none where only the summary has it."""

    @property
    def shown(self) -> str:
        """The unit in which people read it, in claims and figures."""
        if self.unit.startswith(SHARE):
            return f"% of {self.unit.removeprefix(SHARE)}"
        return {"s": "ms", "bit/s": "Mb/s"}.get(self.unit, self.unit)


@lru_cache(maxsize=1)
def every() -> tuple[Defined, ...]:
    """All rows of the catalogue."""
    rows: list[dict[str, Any]] = engine.measures()
    return tuple(Defined(**row) for row in rows)


@lru_cache(maxsize=1)
def asked() -> dict[str, Defined]:
    """The measures that can be asked for, by name."""
    return {row.name: row for row in every() if row.parameters is not None}
