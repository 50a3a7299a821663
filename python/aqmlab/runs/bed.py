"""How a live run is to be made: in which time, with what beside the scenario's traffic."""

from dataclasses import dataclass
from typing import Any

CAPTURES = ("off", "before", "after", "both")
SIDES = ("left", "right")


@dataclass(frozen=True)
class Bed:
    """A live run, as far as the scenario does not say it."""

    is_virtual: bool = False
    """In a kernel of virtual time, instead of this machine's in real time."""
    capture: str | None = None
    """Where packets are captured, if not where the scenario says."""
    command: tuple[str, ...] = ()
    """A program that runs inside, on one side."""
    side: str = "left"
    """Which one; forward goes from left to right."""
    has_traffic: bool = True
    """Whether the scenario's own traffic runs too."""
    kernel: str | None = None
    """The name of the kernel of virtual time, if not the one without a name."""

    def as_dict(self, captured: str) -> dict[str, Any]:
        """For a manifest: what makes a run another one; `captured` is what the scenario says of captures."""
        return {
            "clock": self.clock,
            "command": list(self.command) or None,
            "side": self.side if self.command else None,
            "traffic": self.has_traffic,
            "capture": self.capture or captured,
            **({"kernel_name": self.kernel} if self.kernel else {}),
        }

    @property
    def clock(self) -> str:
        """`real` or `virtual`."""
        return "virtual" if self.is_virtual else "real"
