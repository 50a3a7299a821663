"""What a discipline costs a processor: its share of a packet's way, as the benchmark of decisions measured it.

`costs.json` is made of `benches/decisions.json` by `tools/advice_costs.py`: nanoseconds and instructions that a packet
takes over drop-tail, with the code of the simulator. A router's kernel does more with each packet, whatever the
discipline; what is said here compares disciplines.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from aqmlab.advice import situation
from aqmlab.advice.candidates import Candidate
from aqmlab.advice.question import Question

FRAME_BYTES = 1500
SHORT_BYTES = 100
"""Of a packet that a game or a call sends: so many as fit are the most that a link can bring."""


@dataclass(frozen=True)
class Cost:
    """Of one candidate, of all that a router queues of a full link: both directions, or that of its port."""

    ns: float
    """A packet, over drop-tail."""
    instructions: float
    """A packet, over drop-tail."""
    packets_per_s: tuple[float, float]
    """Of full frames, and of short packets alone."""

    @property
    def share_of_core(self) -> tuple[float, float]:
        """Of the processor that it was measured on."""
        usual, most = (max(0.0, self.ns) * packets / 1e9 for packets in self.packets_per_s)
        return usual, most

    def as_dict(self) -> dict[str, Any]:
        """For a program."""
        return {
            "ns_per_packet": self.ns,
            "instructions_per_packet": self.instructions,
            "packets_per_s": list(self.packets_per_s),
            "share_of_core": list(self.share_of_core),
            "measured_on": measured_on(),
        }


@cache
def _measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("aqmlab.advice").joinpath("costs.json").read_text(encoding="utf-8"))
    return found


def measured_on() -> str:
    """The processor and the day."""
    found = _measured()
    return f"{found['cpu']}, {found['date']}"


def carried_bps(question: Question) -> float:
    """What one router queues of a full link: each of two ports is on a router of its own."""
    if question.access.is_port:
        return max(question.down_bps, question.up_bps)
    return question.down_bps + question.up_bps


def of(question: Question, candidate: Candidate) -> Cost | None:
    """What a candidate costs; nothing where there is nothing to configure, or where no processor decides."""
    if candidate.settings is None or question.platform == "hardware":
        return None
    way = situation.way(question, question.down_bps)
    found = _measured()["disciplines"].get(candidate.qdisc(way)["kind"])
    if found is None:  # what is set now may be anything
        return None
    usual, most = (
        carried_bps(question) / 8 / (size + question.access.overhead_bytes) for size in (FRAME_BYTES, SHORT_BYTES)
    )
    return Cost(float(found["ns"]), float(found["instructions"]), (usual, most))
