"""The oracle: the disciplines written a second time, slow and plain, from their specifications alone.

Whoever wrote it had not read the engine. It runs the vectors (``python -m oracle testdata/vectors``) and invents
random traces for both sides to run (:mod:`oracle.traces`); README.md beside this file has the protocol. One file
a discipline, named like it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from oracle import (
    afd,
    ared,
    blue,
    cake,
    choke,
    cobalt,
    codel,
    curvy_red,
    dcn,
    docsis_pie,
    drr,
    dualpi2,
    feng_red,
    fifo,
    fq,
    fq_codel,
    fq_pie,
    fred,
    gsp,
    pi,
    pi2,
    pie,
    red,
    red_pd,
    redopt,
    rem,
    rio,
    rio_ps,
    sfb,
    sfq,
    sred,
    step,
)
from oracle.frame import Discipline, Uniform
from oracle.parameters import Parameters, Written

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
    "choke": choke.build,
    "fred": fred.build,
    "sred": sred.build,
    "red_pd": red_pd.build,
    "codel": codel.build,
    "fq_codel": fq_codel.build,
    "pie": pie.build,
    "docsis_pie": docsis_pie.build,
    "fq_pie": fq_pie.build,
    "pi2": pi2.build,
    "dualpi2": dualpi2.build,
    "curvy_red": curvy_red.build,
    "cobalt": cobalt.build,
    "cake": cake.build,
}

DISCIPLINES = ("pfifo", "bfifo", *_BUILDERS)


def build(name: str, given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """The discipline ``name`` with the parameters that are given, before a link of ``rate_bps``, or of what is given as
    its ``capacity``."""
    if "capacity" in given:
        rate_bps = round(Parameters({"capacity": ""}, {"capacity": given["capacity"]}).bits_per_second("capacity"))
        given = {key: value for key, value in given.items() if key != "capacity"}
    if name in ("pfifo", "bfifo"):
        return fifo.build(name, given)
    if name not in _BUILDERS:
        raise ValueError(f"no such discipline here: {name}")
    return _BUILDERS[name](given, rate_bps, uniform)
