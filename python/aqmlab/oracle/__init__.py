"""The oracle: the disciplines written a second time, slow and plain, from their specifications alone.

Whoever wrote it had not read the engine. It runs the vectors (``python -m aqmlab.oracle testdata/vectors``) and invents
random traces for both sides to run (:mod:`aqmlab.oracle.traces`); README.md beside this file has the protocol. One file
a discipline, named like it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aqmlab.oracle import (
    afd,
    ared,
    blue,
    dcn,
    drr,
    feng_red,
    fifo,
    fq,
    gsp,
    pi,
    red,
    redopt,
    rem,
    rio,
    rio_ps,
    sfb,
    sfq,
    step,
)
from aqmlab.oracle.frame import Discipline, Uniform
from aqmlab.oracle.parameters import Written

_BUILDERS: dict[str, Callable[[Mapping[str, Written], int, Uniform], Discipline]] = {
    "red": red.build,
    "ared": ared.build,
    "feng_red": feng_red.build,
    "redopt": redopt.build,
    "pi": pi.build,
    "rem": rem.build,
    "rio": rio.build,
    "rio_ps": rio_ps.build,
    "afd": afd.build,
    "dcn": dcn.build,
    "blue": blue.build,
    "step": step.build,
    "drr": drr.build,
    "sfq": sfq.build,
    "gsp": gsp.build,
    "sfb": sfb.build,
    "fq": fq.build,
}

DISCIPLINES = ("pfifo", "bfifo", *_BUILDERS)


def build(name: str, given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """The discipline ``name`` with the parameters that are given, before a link of ``rate_bps``."""
    if name in ("pfifo", "bfifo"):
        return fifo.build(name, given)
    if name not in _BUILDERS:
        raise ValueError(f"no such discipline here: {name}")
    return _BUILDERS[name](given, rate_bps, uniform)
