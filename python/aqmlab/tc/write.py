"""A scenario as `tc`, `ip` and `sysctl` lines: the router's two ports, the delay, the hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from aqmlab import links, shaping
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.tc import delays, hosts, meant, red, table
from aqmlab.tc import quantities as q
from aqmlab.tc.lines import Line, Section, Setup
from aqmlab.tc.table import ETHERNET_HEADER, Choice, Flag, Row, Value

__all__ = ["Setup", "bottlenecks", "write"]

SMALLEST_BURST = 1600
"""Bytes an htb class may send at once: at least a full frame."""

BURST_S = 1e-4
"""Time whose bytes it may send at once on fast links: timers of a host in a laboratory are late by tens of
microseconds."""

ROUTER_BURST_S = 1e-3
"""That of a router, whose timers may be late by so much; OpenWrt's sqm-scripts have it so (SHAPER_BURST_DUR_US). With
less, a shaper that is woken late does not reach its rate."""

LARGEST_MINOR = 0xFFFE
"""The most classes that a qdisc can have, by the 16 bits of their numbers."""

NOT_EXPRESSED = {
    "schedule": "this is the rate that it begins with",
    "states": "this is the rate of the first",
    "trace": "this is its mean",
    "reverse_trace": "this is its mean",
    "device_queue": "htb keeps the port's own ring short",
}
"""Keys of a link that no line is for, and what is then so."""

DELAYS = {
    "delay": "put it on the way behind the port",
    "reverse_delay": "put it on the way behind the port",
}
"""Those that have lines where the way behind the port is ours, too."""

NO_LINE = "is a law or discipline of one's own, for which Linux has no qdisc and tc no line"

IDLE_BELOW_HTB = "htb never asks an empty class, so no idle time of {} begins: its average stays until packets come"
"""sch_red.c and sch_choke.c begin an idle time when they are asked and have nothing."""

FULL_FRAME_MEMORY = 2304
"""Bytes of memory that the kernel counts for a packet of one full frame: 2 KiB of data and its descriptor."""


def write(resolved: Resolved, dev: str, reverse_dev: str, burst_s: float = BURST_S) -> Setup:
    """The lines for a checked scenario; `BadInput` where Linux has no such discipline.

    `burst_s` is the time whose bytes a shaper may send at once; it may send a full frame at least.
    """
    tree = resolved.scenario
    link, tcp, traffic = links.first(tree), tree["tcp"], tree.get("traffic", [])
    refuse_what_linux_lacks(link, resolved.origin, links.key(tree, next(iter(links.of(tree)))))
    ports = Section(
        f"router: {dev} is the port forward, towards those who receive; {reverse_dev} the one back",
        (Line(f"ethtool -K {dev} tso off gso off gro off"), Line(f"ethtool -K {reverse_dev} tso off gso off gro off")),
        (
            "each packet queues by itself, so nothing may join them",
            *not_expressed(link, "link"),
            *(f"not expressed: link.{key}; {why}" for key, why in DELAYS.items() if key in link),
        ),
    )
    (queue, rate), (reverse_queue, reverse_rate) = each_way(link)
    burst = (burst_s, SMALLEST_BURST)
    back = f"reverse: {reverse_dev}, {reverse_rate}"
    forward = port(link, queue, rate, dev, tcp, f"forward: {dev}, {rate}", burst=burst)
    reverse = port(link, reverse_queue, reverse_rate, reverse_dev, tcp, back, burst=burst)
    reverse = reverse.without_repetition(forward)
    delay = delays.of_paths(tree, traffic, dev, reverse_dev)
    own = (("ports", ports), ("qdisc", forward), ("qdisc", reverse), *(("delay", each) for each in delay))
    sections = (*own, ("hosts", hosts.section(tcp, traffic)))
    return Setup(resolved.name, tuple(replace(section, part=part) for part, section in sections))


def bottlenecks(resolved: Resolved, name: str, devs: tuple[str, str], burst_s: float) -> tuple[Section, Section]:
    """Shaper and discipline of each direction of a link, on two devices without Ethernet headers.

    `burst_s` is the time whose bytes the shaper may send at once: what its timers are late by at most.
    """
    tree, link = resolved.scenario, links.of(resolved.scenario)[name]
    refuse_what_linux_lacks(link, resolved.origin, links.key(tree, name))
    forward, reverse = (
        port(link, queue, rate, dev, tree["tcp"], f"{dev}, {rate}", header=0, burst=(burst_s, 1))
        for (queue, rate), dev in zip(each_way(link), devs, strict=True)
    )
    return forward, reverse.without_repetition(forward)


def not_expressed(link: Tree, place: str) -> list[str]:
    """What of a link no line is for, in words; `place` is the key of the link."""
    return [f"not expressed: {place}.{key}; {why}" for key, why in NOT_EXPRESSED.items() if key in link]


def each_way(link: Tree) -> tuple[tuple[str, str], tuple[str, str]]:
    """The key of the discipline and the rate of a link, forward and in reverse."""
    queue = "reverse_qdisc" if "reverse_qdisc" in link else "qdisc"
    return ("qdisc", str(link["rate"])), (queue, str(link.get("reverse_rate", link["rate"])))


def refuse_what_linux_lacks(link: Tree, origin: str, place: str) -> None:
    """Raises `BadInput` for a discipline that Linux does not have; `place` is the key of the link."""
    for key in ("qdisc", "reverse_qdisc"):
        kind = link.get(key, {}).get("kind", "pfifo")
        if table.to_write(kind, link.get(key, {})) is None:
            if "law" in link.get(key, {}):
                expected = "expected a discipline that Linux has, such as fq_codel"
                raise BadInput(f"{origin}: {place}.{key}.kind: {kind!r}: {NO_LINE}; {expected}")
            nearest = table.NEAREST.get(kind, table.NEAREST_OF_FAIR)
            raise BadInput(f"{origin}: {place}.{key}.kind: {kind!r}: Linux has no such qdisc; nearest: {nearest}")


def port(
    link: Tree,
    queue: str,
    rate: str,
    dev: str,
    tcp: Tree,
    title: str,
    *,
    header: int = ETHERNET_HEADER,
    burst: tuple[float, int] = (BURST_S, SMALLEST_BURST),
) -> Section:
    """The lines of one port, which counts `header` bytes to each packet.

    `burst` is the time whose bytes its shaper may send at once, and the fewest bytes of it.
    """
    values, overhead, cells = link[queue], round(q.size(link["overhead"])), str(link.get("framing", "noatm"))
    row = _row(values)
    is_framed = row.tc == "cake" and values["overhead"] == overhead and values["framing"] == cells
    is_alone = is_framed and q.same(values.get("bandwidth"), rate)
    said = []
    if row.tc == "cake" and not is_alone and header and values["overhead"]:
        beyond = values["overhead"] + header
        most = int(meant.TAKEN["cake"]["overhead"][1])
        said.append(
            f"overhead {min(beyond, most)} for {values['overhead']}: cake takes off the {header} bytes of "
            f"Ethernet that stab has taken off already{f', and tc takes no more than {most}' * (beyond > most)}"
        )
    if row.is_red:
        said.append(IDLE_BELOW_HTB.format(row.tc))
    made = _discipline(link, queue, rate, tcp, within=None if is_alone else header, said=said)
    if is_alone:
        root = Line(f"tc qdisc add dev {dev} root handle 10: {made.text}", made.remarks)
        return Section(title, (root,), ("cake is the shaper too; overhead counts from the IP packet",))
    below = Line(f"tc qdisc add dev {dev} parent 1:1 handle 10: {made.text}", made.remarks)
    classes = _classes_of_drr(dev, values, _site(link, queue, rate, tcp)) if row.tc == "drr" else []
    return Section(title, (*_shaper(dev, rate, (overhead, cells), header, burst), below, *classes))


def unshaped(resolved: Resolved) -> tuple[Line, Line]:
    """The discipline of each direction of a link, forward and in reverse, for ports that send at the line's own rate:
    all that stands behind `tc qdisc replace dev PORT root`."""
    tree = resolved.scenario
    link = links.first(tree)
    refuse_what_linux_lacks(link, resolved.origin, links.key(tree, next(iter(links.of(tree)))))
    forward, reverse = (
        _discipline(link, queue, rate, tree["tcp"], within=ETHERNET_HEADER) for queue, rate in each_way(link)
    )
    return forward, reverse


def _row(values: Tree) -> Row:
    row = table.to_write(str(values["kind"]), values)
    assert row is not None  # refused before
    return row


def _site(link: Tree, queue: str, rate: str, tcp: Tree) -> q.Site:
    values = link[queue]
    packet = q.size(values["mean_packet"]) if _row(values).is_red else float(hosts.packet_bytes(tcp))
    return q.Site(q.rate(values.get("capacity", rate)), packet)


def _discipline(link: Tree, queue: str, rate: str, tcp: Tree, *, within: int | None, said: Sequence[str] = ()) -> Line:
    """A discipline as `tc` has it, its name and its words, with what is to be said of it."""
    values = link[queue]
    row = _row(values)
    remarks = [f"{row.tc} needs {row.needs}"] if row.needs else []
    if "dialect" in values and values["dialect"] != "linux":
        remarks.append(f'the kernel does what dialect = "linux" does, not "{values["dialect"]}"')
    if (excess := shaping.excess(link, queue)) is not None:
        remarks.append(excess)
    words, more = _words(row, values, _site(link, queue, rate, tcp), within)
    return Line(" ".join([row.tc, *words]), (*remarks, *said, *more))


def _shaper(dev: str, rate: str, wire: tuple[int, str], header: int, of_burst: tuple[float, int]) -> list[Line]:
    """htb at the link's rate, on sizes of IP packets and, as to the rate, the link's overhead and cells."""
    overhead, cells = wire
    burst_s, fewest = of_burst
    burst = max(fewest, round(q.rate(rate) / 8 * burst_s))
    framing = (f" overhead {overhead}" if overhead else "") + (" linklayer atm" if cells == "atm" else "")
    stab = f"stab overhead -{header} linklayer ethernet " if header else ""
    said = f"stab takes the {header} bytes of Ethernet off: all below counts IP packets, as aqmlab does"
    return [
        Line(f"tc qdisc add dev {dev} root handle 1: {stab}htb default 1", (said,) if header else ()),
        Line(
            f"tc class add dev {dev} parent 1: classid 1:1 htb rate {rate}{framing} burst {burst} cburst {burst} "
            f"quantum {1500 + header}",
            _said_of_wire(overhead, cells),
        ),
    ]


def _said_of_wire(overhead: int, cells: str) -> tuple[str, ...]:
    said = [f"link.overhead: {overhead} bytes a packet, for the rate alone"] if overhead else []
    if cells == "atm":
        said.append("link.framing: in cells of 53 bytes for 48")
    if cells == "ptm":
        said.append("link.framing: htb does not know PTM, whose 64/65 the rate is to be lowered by")
    return tuple(said)


def _words(row: Row, values: Mapping[str, Any], site: q.Site, within: int | None) -> tuple[list[str], list[str]]:
    """The words after the qdisc's name, and what to say of them."""
    words: list[str] = []
    remarks: list[str] = []
    in_packets: list[str] = []
    given: dict[str, str] = {}
    for word in row.words:
        if word.ours not in values:
            continue
        value = values[word.ours]
        match word:
            case Flag():
                words += [w for w in (word.tc if value else word.off,) if w and (value or _needs_saying(row, word))]
            case Choice() if not word.is_shorthand:
                words.append(word.words[_key(value)])
            case Value():
                written = _special(row, word, value, within)
                if written is None:
                    wanted = word.kind.to_tc(value, site)
                    written = meant.nearest(row, word.tc, wanted, given, site.packet_bytes)
                    if written != wanted:
                        remarks.append(f"{word.ours} {value}: tc takes {word.tc} {written}")
                    elif word.kind is q.BYTES and str(value).endswith("p"):
                        in_packets.append(f"{word.ours} {value}")
                    elif not meant.is_sent(row, word.tc, written):
                        remarks.append(f"{word.ours} {value}: {_unsent(row, word.tc, written)}")
                    elif not q.same(word.kind.from_tc(written), value):
                        remarks.append(f"{word.ours} {value}: tc takes {word.tc} {written}")
                    given[word.tc] = written
                    words += [word.tc, written]
                else:
                    words += written.split()
                    if written == "memlimit 0":
                        remarks.append(f"{word.ours} {value}: {_unsent(row, word.tc, '0')}")
    if in_packets:
        counts = f"mean_packet, {site.packet_bytes:g} bytes" if row.is_red else f"{site.packet_bytes:g} bytes"
        remarks.append(f"{', '.join(in_packets)}: Linux's {row.tc} measures bytes; a packet counts as {counts}")
    if row.is_red:
        computed, said = red.compute(values, site, given)
        words += computed + _words_of_red(row, values)
        remarks += said + _remarks_on_red(values)
    if row.tc == "cake":
        if "raw" in words and (cells := str(values["framing"])) != "noatm":
            words.remove("raw")  # it says noatm, too, and the last word counts
            words.insert(words.index(cells), "raw")
        words[:0] = [] if "bandwidth" in values else ["unlimited"]
        remarks.append(
            f"limit {values['limit']}: memlimit is the kernel's memory, of which a packet takes more than its bytes"
        )
    remarks += meant.beyond_bounds(row, given)
    remarks += [
        f"{name} {hosts.as_word(values[name])}: {why}"
        for name, (only, why) in row.fixed.items()
        if why and name in values and only is not None and not q.same(values[name], only)
    ]
    return words, remarks


def _unsent(row: Row, word: str, written: str) -> str:
    if (row.tc, word) == ("sfb", "limit"):
        return "the kernel takes the port's txqueuelen for limit 0"
    return f"tc does not pass {word} {written} on, and the kernel's own stands"


def _key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _needs_saying(row: Row, word: Flag) -> bool:
    """ECN is on unless refused in fq_codel alone; for the rest, absent is off."""
    return row.tc == "fq_codel" and word.ours == "ecn"


def _special(row: Row, word: Value, value: Any, within: int | None) -> str | None:
    """The words of CAKE that mean something else than ours by themselves."""
    if row.tc != "cake" or word.ours not in ("overhead", "mpu", "limit"):
        return None
    if word.ours == "limit":
        number, unit = q.split(str(value))
        return f"memlimit {round(number * FULL_FRAME_MEMORY)}" if unit == "p" else None
    if word.ours == "mpu":
        return f"mpu {value}" if value else ""
    # CAKE takes an Ethernet header off when an overhead is given, and below stab it is off already.
    if within is None:
        return f"overhead {value}"
    return f"overhead {min(value + within, int(meant.TAKEN['cake']['overhead'][1]))}" if value else "raw"


def _words_of_red(row: Row, values: Mapping[str, Any]) -> list[str]:
    words = ["adaptive"] if row.ours == "ared" else []
    if values.get("ecn") and values.get("mark_until") == "max":
        words.append("harddrop")
    return words


def _remarks_on_red(values: Mapping[str, Any]) -> list[str]:
    if values["kind"] == "ared":
        # It sends the flag as TCA_RED_FLAGS alone, and sch_red.c starts its timer by the flags of TCA_RED_PARMS.
        return [
            "adaptive: seen to do nothing with iproute2 6.1 on Linux 6.12, where the probability stays what it was; "
            "watch it with tc -d qdisc show"
        ]
    if values.get("ecn") and values.get("mark_until") == "end":
        return ["mark_until end: Linux marks always, or with harddrop up to max"]
    return []


def _classes_of_drr(dev: str, values: Mapping[str, Any], site: q.Site) -> list[Line]:
    """Linux's drr has neither queues nor a hash of its own: a class for each queue, and a filter that hashes."""
    count, quantum = min(int(values["flows"]), LARGEST_MINOR), round(q.size(str(values["quantum"])))
    limit = q.PACKETS.to_tc(values["limit"], site)
    child = "10:$(printf %x $i)"
    remarks = []
    if values.get("dialect") != "linux":
        remarks.append(f"limit {values['limit']}: here of each class; aqmlab's is of all, and the longest queue loses")
    if (taken := meant.quantum_of_drr(quantum)) != quantum:
        remarks.append(f"'quantum {quantum}' of drr: the kernel takes {taken}")
    queue = table.HEAD_DROP if values["drop"] == "head" and not remarks else "pfifo"
    return [
        Line(
            f"for i in $(seq 1 {count}); do "
            f"tc class add dev {dev} parent 10: classid {child} drr quantum {quantum}; "
            f"tc qdisc add dev {dev} parent {child} {queue} limit {limit}; done",
            tuple(remarks),
        ),
        Line(
            f"tc filter add dev {dev} parent 10: protocol all prio 1 handle 1 flow hash "
            f"keys src,dst,proto,proto-src,proto-dst divisor {count} baseclass 10:1",
        ),
    ]
