"""Kinds of link: what the line adds to a packet, what waits in front of it today, and how far below it to shape."""

from collections.abc import Mapping
from dataclasses import dataclass

from aqmlab import links

Range = tuple[float, float]


@dataclass(frozen=True)
class Access:
    """A kind of line."""

    name: str
    doc: str
    overhead_bytes: int
    """What each packet takes on the line beyond its IP size."""
    down_queue_s: Range
    up_queue_s: Range
    """What the queues of provider and modem hold today, as time at the line's rate. They are rarely told, so that each
    run draws them. Netalyzr (Kreibich et al., IMC 2010) saw hundreds of milliseconds, upwards most of all."""
    margin: float
    """The share of the line's rate that a shaper in front of it takes, so that the queue is its own."""
    overhead_keyword: str
    """tc-cake(8)'s word for the overhead."""
    lowest: float = 1.0
    """The share of the rate that the line falls to; 1 where the rate stays."""
    cells: str = "noatm"
    """The cells that the line is cut into, as `link.framing` has them."""
    is_port: bool = False
    """Whether the queue is that of the router's own port, which sends onto the line itself: nothing shapes."""

    @property
    def place(self) -> str:
        """Where the queue of today is: the name of that link in scenarios."""
        return "port" if self.is_port else "modem"

    @property
    def cake_cells(self) -> str:
        """The cells that CAKE counts for its word: those of PTM too, of which no other shaper knows."""
        return "ptm" if self.overhead_keyword.endswith("-ptm") else self.cells

    def wire_bytes(self, size: int) -> int:
        """What a packet of `size` takes of the line."""
        return links.in_cells(size + self.overhead_bytes, self.cells)


ACCESS: Mapping[str, Access] = {
    access.name: access
    for access in (
        Access("docsis", "cable", 18, (0.05, 0.25), (0.1, 0.6), 0.95, "docsis"),
        Access("dsl", "VDSL2 with PPPoE", 30, (0.05, 0.3), (0.15, 0.8), 0.92, "pppoe-ptm"),
        Access("atm", "ADSL with PPPoE over ATM", 40, (0.05, 0.3), (0.15, 0.8), 0.92, "pppoe-llcsnap", cells="atm"),
        Access("ethernet", "fibre or Ethernet", 38, (0.02, 0.2), (0.02, 0.2), 0.95, "ethernet"),
        Access("lte", "a mobile network", 0, (0.2, 1.0), (0.2, 1.0), 0.48, "raw", lowest=0.5),
        Access("port", "between two routers' ports", 38, (0.01, 0.1), (0.01, 0.1), 1.0, "ethernet", is_port=True),
    )
}
