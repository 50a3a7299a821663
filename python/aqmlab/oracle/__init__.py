"""The oracle: the disciplines written a second time, slow and plain, from their specifications alone.

Whoever wrote it had not read the engine. It runs the vectors (``python -m aqmlab.oracle testdata/vectors``) and invents
random traces for both sides to run (:mod:`aqmlab.oracle.traces`); README.md beside this file has the protocol. One file
a discipline: :mod:`~aqmlab.oracle.fifo`, :mod:`~aqmlab.oracle.red`, :mod:`~aqmlab.oracle.ared`,
:mod:`~aqmlab.oracle.pi`, :mod:`~aqmlab.oracle.rem`.
"""

from __future__ import annotations

from collections.abc import Mapping

from aqmlab.oracle import ared, fifo, pi, red, rem
from aqmlab.oracle.frame import Discipline, Uniform
from aqmlab.oracle.parameters import Written

DISCIPLINES = ("pfifo", "bfifo", "red", "ared", "pi", "rem")


def build(name: str, given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """The discipline ``name`` with the parameters that are given, before a link of ``rate_bps``."""
    match name:
        case "pfifo" | "bfifo":
            return fifo.build(name, given)
        case "red":
            return red.build(given, rate_bps, uniform)
        case "ared":
            return ared.build(given, rate_bps, uniform)
        case "pi":
            return pi.build(given, rate_bps, uniform)
        case "rem":
            return rem.build(given, rate_bps, uniform)
    raise ValueError(f"no such discipline here: {name}")
