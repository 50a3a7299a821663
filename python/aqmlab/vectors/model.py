"""A connection as its applications see it: who sends how many bytes, and after which wait."""

from dataclasses import dataclass

INITIATOR = 0
"""The end that opened the connection."""

ACCEPTOR = 1
"""The other one."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An application data unit (ADU): what one end sends in one go; or, of no bytes, that it closes."""

    side: int
    """`INITIATOR` or `ACCEPTOR`."""
    wait_us: int
    """Where the ends take turns, counted from the arrival of the unit before it if that is the peer's; else, and in a
    concurrent vector always, from when the side wrote its unit before."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Vector:
    """A connection: `units` in the order of the turns; of a concurrent one the initiator's, then the acceptor's."""

    start_us: int
    is_concurrent: bool
    """Whether the ends send independently of each other."""
    units: tuple[Unit, ...]
    windows: tuple[int, int] = (65_535, 65_535)
    """Largest window that the initiator and the acceptor advertise, bytes."""
    rtt_us: int = 0
    """Smallest round-trip time."""
    losses: tuple[float, float] = (0.0, 0.0)
    """Share of data segments lost from initiator to acceptor, and back."""

    def bytes_from(self, side: int) -> int:
        """What one end sends in all."""
        return sum(unit.size_bytes for unit in self.units if unit.side == side)

    def count_from(self, side: int) -> int:
        """How many units one end sends."""
        return sum(unit.side == side and unit.size_bytes > 0 for unit in self.units)

    @property
    def epochs(self) -> int:
        """Units of the initiator, and those of the acceptor that answer none."""
        sides = [unit.side for unit in self.units if unit.size_bytes]
        answers = sum(sides[i] == ACCEPTOR and sides[i - 1] == INITIATOR for i in range(1, len(sides)))
        return len(sides) - answers
