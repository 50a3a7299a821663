"""How a live run is to be made: in which time, with what beside the scenario's traffic."""

from dataclasses import dataclass
from typing import Any

from aqmlab.runs import kernels

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
        """For a manifest: what makes a run another one; `captured` is what the scenario says of captures.

        The kernel of virtual time is known by its program: a name may be that of another one tomorrow.
        """
        return {
            "clock": self.clock,
            "command": list(self.command) or None,
            "side": self.side if self.command else None,
            "traffic": self.has_traffic,
            "capture": self.capture or captured,
            **({"kernel_sha256": self.kernel_sha256} if self.is_virtual else {}),
        }

    @property
    def kernel_sha256(self) -> str | None:
        """Of the kernel's program, as it is now; none where there is no such kernel."""
        return kernels.sha256(self.kernel)

    @property
    def kernel_name(self) -> str | None:
        """What the kernel of virtual time is called, also where the environment names it."""
        return self.kernel or (kernels.called() if self.is_virtual else None)

    @property
    def clock(self) -> str:
        """`real` or `virtual`."""
        return "virtual" if self.is_virtual else "real"
