"""pfifo and bfifo: what fits is accepted, the rest is lost ("tail drop", RFC 2309 §2; tc-pfifo(8), tc-bfifo(8)).

A packet fits if packets + 1, or bytes + its size, do not exceed the limit; the unit of the limit decides which. The
packet in transmission is not counted. With ``drop = "head"`` the oldest packets give way instead, as many as it takes
(Lakshman, Neidhardt and Ott 1996; Linux pfifo_head_drop). All that is the frame's own behaviour, so the law here is the
one that never signals. In the dialect ns2 (queue/drop-tail.cc) what would reach the limit is refused: one less fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oracle.frame import Discipline, Law
from oracle.parameters import Length, Parameters, Written

DEFAULTS: dict[str, dict[str, Written]] = {
    "pfifo": {"limit": "1000p", "ecn": False, "drop": "tail", "dialect": "linux"},
    "bfifo": {"limit": "1500000b", "ecn": False, "drop": "tail", "dialect": "linux"},
}


def build(name: str, given: Mapping[str, Written]) -> Discipline:
    """The discipline ``name``, pfifo or bfifo."""
    parameters = Parameters(DEFAULTS[name], given)
    limit = parameters.length("limit")
    if parameters.word("dialect") == "ns2":
        limit = Length(max(0.0, math.floor(limit.amount) - 1.0), limit.in_bytes)
    return Discipline(Law(), limit, parameters.word("drop") == "head")
