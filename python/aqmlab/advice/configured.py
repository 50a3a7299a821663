"""What is set on the router now, from a dump of `tc` or the lines that set it up: one more candidate of the race."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqmlab import files, units
from aqmlab.advice.candidates import Candidate, Way
from aqmlab.errors import BadInput
from aqmlab.tc import read as reading
from aqmlab.tc import table

NAME = "as set now"

NO_SHAPER = 10
"""A direction without a shaper is so many times faster than the line: the queue is the modem's."""


@dataclass(frozen=True)
class Configured:
    """A router as it is set."""

    file: Path
    down: Mapping[str, Any]
    """The discipline towards the users."""
    up: Mapping[str, Any]
    rates_bps: tuple[float | None, float | None]
    """Of the shapers, down and up; nothing where there is none."""
    link: Mapping[str, Any]
    """What all of it is as a link of a scenario."""
    notes: tuple[str, ...]
    """What of the dump was not understood."""

    @property
    def said(self) -> str:
        """What is set, in a few words."""
        ways = []
        for way, qdisc, rate in zip(("down", "up"), (self.down, self.up), self.rates_bps, strict=True):
            ways.append(f"no shaper {way}" if rate is None else f"{qdisc['kind']} at {units.say_rate(rate)} {way}")
        return " and ".join(ways)

    @property
    def stays(self) -> list[str]:
        """Disciplines below a shaper whose average Linux keeps while the queue is empty, as the simulator does not."""
        if "rate" not in self.link:  # a port, which sends at the line's own
            return []
        kinds = (queue["kind"] for queue, rate in zip((self.down, self.up), self.rates_bps, strict=True) if rate)
        return [kind for kind in dict.fromkeys(kinds) if kind in table.AVERAGES]

    def candidate(self) -> Candidate:
        """It as a candidate."""
        queue = self.down if self.rates_bps[0] is not None else self.up

        def settings(way: Way) -> dict[str, Any]:
            del way  # it is set, whatever the line
            return dict(queue)

        return Candidate(NAME, settings, router=self.link)


def read(file: Path, down_bps: float, up_bps: float, *, is_port: bool = False) -> Configured:
    """Reads a dump or lines of `tc`; `BadInput` where nothing in them shapes, or, of the port of a link, where
    something does.

    Of two shapers the faster one is towards the users. A single one is that of the direction whose rate it is nearer
    to; the other direction then has none.
    """
    text = files.content(file, files.TC).decode("utf-8", "replace")
    if is_port:
        return _of_port(file, text, (down_bps, up_bps))
    try:
        found = reading.read(text, str(file), None, None, None)
    except reading.NoRate:
        raise BadInput(
            f"{file}: nothing in it shapes, so that the queue is the modem's, whatever stands on the router; expected "
            "a shaper (htb, tbf, or cake with bandwidth), or no --have"
        ) from None
    link = found.tree["link"]
    rate = units.rate_bps(link["rate"], "rate")
    first = _qdisc(link, "qdisc")
    wire = {key: link[key] for key in ("overhead", "framing") if key in link}
    if "reverse_rate" in link or "reverse_qdisc" in link or found.is_both_ways:
        back_bps = units.rate_bps(link["reverse_rate"], "reverse_rate") if "reverse_rate" in link else rate
        ways = [(rate, first), (back_bps, _qdisc(link, "reverse_qdisc") if "reverse_qdisc" in link else first)]
        (down, queue), (up, back) = sorted(ways, key=lambda one: -one[0])
        return _made(file, (queue, back), (down, up), wire, (down_bps, up_bps), found.notes)
    is_up = abs(rate - up_bps) / up_bps < abs(rate - down_bps) / down_bps
    rates = (None, rate) if is_up else (rate, None)
    return _made(file, (first, first), rates, wire, (down_bps, up_bps), found.notes)


WAYS = ("down", "up")
"""What the ports of a link are called in a file that has both: `# down` above what tc shows of one."""


def _of_port(file: Path, text: str, rates_bps: tuple[float, float]) -> Configured:
    """The queues of the link's ports: of two that are called `down` and `up`, or that of one for both."""
    ports, notes = reading.queues(text, str(file))
    named = {name.strip('"${}').lower(): port for name, port in ports.items()}
    if not named:
        raise BadInput(
            f"{file}: no queue stands there, as at a VLAN, a bond or a bridge; expected what tc shows of the physical "
            "port"
        )
    if len(named) > 1 and set(named) != set(WAYS):
        raise BadInput(
            f"{file}: has {len(named)} ports: {', '.join(ports)}; expected the one of this link, which both directions "
            "then have, or two that are called so by lines '# down' and '# up' above what tc shows of each"
        )
    if any(port.rate_bps is not None for port in named.values()):
        raise BadInput(
            f"{file}: something shapes there, so that the queue is not that of the port itself; expected another "
            "--access, or what is set at the port"
        )
    one, *_ = named.values()
    down, up = (dict(named.get(way, one).qdisc) for way in WAYS)
    return Configured(file, down, up, rates_bps, {"qdisc": down, "reverse_qdisc": up}, tuple(notes))


def _qdisc(link: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return dict(link.get(key) or {"kind": "pfifo"})


def _made(
    file: Path,
    queues: tuple[Mapping[str, Any], Mapping[str, Any]],
    rates: tuple[float | None, float | None],
    wire: Mapping[str, Any],
    line_bps: tuple[float, float],
    notes: tuple[str, ...],
) -> Configured:
    link: dict[str, Any] = dict(wire)
    for key, rate_key, queue, rate, line in zip(
        ("qdisc", "reverse_qdisc"), ("rate", "reverse_rate"), queues, rates, line_bps, strict=True
    ):
        link[rate_key] = units.rate_text(round(NO_SHAPER * line if rate is None else rate))
        link[key] = {"kind": "pfifo", "limit": "1000p"} if rate is None else dict(queue)
    return Configured(file, *queues, rates, link, tuple(notes))
