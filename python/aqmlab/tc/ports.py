"""What stands at a port, of what `tc` shows of it: its shaper, the discipline under it, and what a packet takes."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aqmlab import engine, toml_text
from aqmlab.engine import Tree
from aqmlab.errors import BadInput
from aqmlab.tc import meant, others, red, table, words
from aqmlab.tc import quantities as q
from aqmlab.tc.dump import Dump, Node, number
from aqmlab.tc.table import ETHERNET_HEADER, WITHOUT_HEADER, Flag, Row, Value

STATISTICS_LINES = 12

LONGEST_DELAY_US = 1e9

LARGEST_OVERHEAD = 1000
"""More than framing ever adds; what tc prints beyond is none."""


@dataclass(frozen=True)
class Port:
    """What was found on one port."""

    device: str
    leaf: Node | None
    qdisc: Tree
    rate_bps: float | None
    overhead: int
    framing: str
    """The cells of the wire, as `link.framing` has them."""
    statistics: tuple[str, ...]
    remarks: tuple[str, ...]
    emulator: Node | None
    """The netem whose rate is the port's."""


def of(device: str, found: Dump) -> Port:
    """What stands at a port of a dump."""
    qdiscs = [node for node in found.nodes if node.what == "qdisc" and node.device == device]
    classes = [node for node in found.nodes if node.what == "class" and node.device == device]
    remarks: list[str] = []
    root = next((node for node in qdiscs if node.is_root), qdiscs[0])
    shaper, shaping = _shaper(root, qdiscs, classes)
    leaf = _leaf(shaping, qdiscs, found)
    rate_bps: float | None = None
    taken = _bytes(replace(root, words={}), "overhead", found)
    header = _header(device)
    overhead = header + taken
    framing = _framing(root.stab) if root.stab else "noatm"
    if shaping is not None:
        path = _path(shaping, classes)
        rate_bps, bound = _bound(path, found)
        own = replace(bound, stab={})
        overhead += _bytes(own, "overhead", found)
        framing = _framing(own.words) if framing == "noatm" else framing
        _note_unread(root, own, found)
        _note_passed_over(path, bound, found)
    if header and not (root.stab or root.is_command) and (leaf is None or leaf.kind != "cake"):
        remarks.append("overhead: tc counts Ethernet's header of 14 bytes, unless stab takes it off, which -d shows")
    qdisc: Tree = {}
    cake_rate = leaf.words.get("bandwidth", "unlimited") if leaf is not None and leaf.kind == "cake" else "unlimited"
    emulator = others.emulator(qdiscs) if shaping is None and cake_rate == "unlimited" else None
    if emulator is not None:
        rate_bps = number(q.rate, emulator, "rate", found, math.inf)
        overhead += _bytes(emulator, "packetoverhead", found)
    if emulator is not None and not (leaf is not None and _is_below(emulator, leaf)):
        below = leaf if leaf is not None and table.to_read(leaf.kind) is not None else None
        qdisc, leaf = others.queue_of_netem(emulator, below, found, remarks), None
    elif leaf is None:
        qdisc = _own_queue(shaper, rate_bps, found, remarks)
    else:
        qdisc = _qdisc(leaf, [c for c in classes if _major(c.handle) == _major(leaf.handle)], qdiscs, found, remarks)
        if shaper is not None and qdisc["kind"] in table.AVERAGES:
            remarks.append(
                f"{leaf.kind}: below {shaper.kind} its average stays until packets come, for no idle time begins; "
                f"aqmlab's falls"
            )
    if leaf is not None and leaf.kind == "cake":
        inner = _cake_overhead(leaf, header, taken if root is not leaf else 0, qdisc, found)
        if rate_bps is None and "bandwidth" in qdisc:
            rate_bps, overhead, framing = q.rate(qdisc["bandwidth"]), inner, str(_alone(qdisc)["framing"])
    shown = (emulator or shaper) if leaf is None else leaf
    statistics = tuple(_statistics(shown)) if shown is not None else ()
    return Port(device, leaf, qdisc, rate_bps, overhead, framing, statistics, tuple(remarks), emulator)


def row_of(node: Node) -> Row | None:
    """The row of the table that reads a discipline, if there is one."""
    return table.to_read(node.kind, node.kind == "red" and not table.ADAPTIVE.isdisjoint(node.words))


def _header(device: str) -> int:
    """Bytes before the IP packet that a port counts: a tunnel's packets have no Ethernet header, nor have they on the
    way in, through an `ifb` that is named after it."""
    return 0 if device.removeprefix("ifb4").startswith(WITHOUT_HEADER) else ETHERNET_HEADER


def _framing(words: Mapping[str, q.Raw]) -> str:
    """`linklayer atm`, which older ones call adsl."""
    return "atm" if words.get("linklayer") in ("atm", "adsl") else "noatm"


def _alone(qdisc: Tree) -> Tree:
    """CAKE with the words of its framing alone: what else was read may be refused."""
    own = {key: qdisc[key] for key in ("kind", "overhead_keyword", "framing") if key in qdisc}
    scenario = engine.resolve(toml_text.dumps({"link": {"qdisc": own}, "traffic": [{"kind": "bulk"}]}), "tc").scenario
    found: Tree = scenario["link"]["qdisc"]
    return found


def _bytes(node: Node, word: str, found: Dump) -> int:
    """A number of bytes that framing adds or takes."""
    return round(number(_plain, node, word, found, LARGEST_OVERHEAD) or 0.0)


def _note_unread(root: Node, shaper: Node, found: Dump) -> None:
    """Says what of a shaper no key of a link is for, where it is not 0."""
    for node in (replace(root, words=dict(root.stab), stab={}), shaper):
        if _least_size(node, found):
            found.note(node.line, f"'mpu {node.words['mpu']}': a link has no least size of a packet")
    if shaper.kind == "tbf" and number(q.rate, shaper, "peakrate", found, math.inf):
        found.note(shaper.line, f"'peakrate {shaper.words['peakrate']}' of tbf: aqmlab's shaper has no bucket to empty")


def _note_passed_over(path: Sequence[Node], bound: Node, found: Dump) -> None:
    """Says what classes beside the one that bounds count packets by, where that one has it otherwise."""
    for node in path:
        own, other = replace(node, stab={}), replace(bound, stab={})
        differs = {
            "overhead": _bytes(own, "overhead", found) != _bytes(other, "overhead", found),
            "mpu": _least_size(own, found) != _least_size(other, found),
            "linklayer": _framing(own.words) != _framing(other.words),
        }
        for word, is_other in differs.items():
            if is_other and node.words.get(word):
                said = f"'{word} {node.words[word]}' of class {node.handle}"
                found.note(node.line, f"{said}: left aside, as class {bound.handle} bounds the rate")


def _least_size(node: Node, found: Dump) -> float:
    return number(q.size, node, "mpu", found, math.inf) or 0.0


def _plain(raw: q.Raw) -> float:
    return q.split(raw)[0] if isinstance(raw, str) else q.finite(raw)


def _major(handle: str) -> str:
    return handle.split(":")[0]


def _shaper(root: Node, qdiscs: Sequence[Node], classes: Sequence[Node]) -> tuple[Node | None, Node | None]:
    """The qdisc that shapes, and what says its rate: tbf itself, or the class of htb that packets go to."""
    shaper = next((n for n in [root, *qdiscs] if n.kind in ("htb", "tbf")), None)
    if shaper is None or shaper.kind == "tbf":
        return shaper, shaper
    own = [c for c in classes if c.kind == "htb" and _major(c.handle) == _major(shaper.handle)]
    default = str(shaper.words.get("default", "0")).removeprefix("0x")
    chosen = [c for c in own if c.handle.split(":")[-1].lstrip("0") == default.lstrip("0")]
    leaves = [c for c in own if c.leaf or any(n.parent == c.handle for n in qdiscs)]
    return shaper, next(iter([*chosen, *leaves, *own]), None)


def _path(shaping: Node, classes: Sequence[Node]) -> list[Node]:
    """The shaper's class, and those that it borrows from, the outermost last."""
    path = [shaping]
    for _ in classes:
        parent = next((c for c in classes if c.handle == path[-1].parent and c not in path), None)
        if parent is None:
            break
        path.append(parent)
    return path


def _bound(path: Sequence[Node], found: Dump) -> tuple[float | None, Node]:
    """What the shaper's class can get while no other class sends, and the class that bounds it.

    A class of htb sends its own rate, and borrows up to its ceil (its rate where none is said) what its parent can
    get. The outermost class has nobody to borrow from, so that its ceil gives it nothing beyond its rate.
    """
    # A parent that was not pasted may lend whatever the ceil allows.
    is_whole = path[-1].is_root or path[-1].parent.endswith(":")
    most, bound = None if is_whole else number(q.rate, path[-1], "ceil", found, math.inf), path[-1]
    for each in reversed(path):
        rate = number(q.rate, each, "rate", found, math.inf)
        ceil = number(q.rate, each, "ceil", found, math.inf) or rate
        own = most if rate is None or (most is not None and most > rate) else rate
        if own is not most or most is None:
            bound = each
        if ceil is not None and (own is None or ceil < own):
            own, bound = ceil, each
        most = own
    return most, bound


def _leaf(shaping: Node | None, qdiscs: Sequence[Node], found: Dump) -> Node | None:
    """The qdisc below the shaper, or the one at the root; of several leaves, the one of the class that shapes."""
    inner = [n for n in qdiscs if table.to_read(n.kind) is not None]
    if shaping is not None and shaping.what == "class":
        below = [n for n in inner if n.parent == shaping.handle or (shaping.leaf and n.handle == shaping.leaf)]
    else:
        below = [n for n in inner if n is not shaping]
    chosen = next(iter([*below, *inner]), None)
    for other in inner:
        if chosen is not None and other is not chosen and not _is_below(other, chosen):
            found.notes.append(
                f"line {other.line}: {' '.join(filter(None, (other.kind, other.handle)))} below {other.parent} is a "
                "further queue, left aside"
            )
    if chosen is None:
        chosen = next((n for n in qdiscs if n.kind in ("pfifo_fast", "fq")), None)
    return chosen


def _is_below(node: Node, upper: Node) -> bool:
    return bool(_major(node.parent)) and _major(node.parent) == _major(upper.handle)


def _statistics(node: Node) -> list[str]:
    """Counters, and what share was lost; CAKE's table of tins is left out."""
    lines: list[str] = []
    for line in node.statistics:
        if node.kind == "cake" and re.match(r"(Bulk|Tin|Best|thresh)\b", line):
            break
        lines.append(line)
    said = " ".join(lines)
    sent, dropped = re.search(r"(\d+) pkt|packets (\d+)", said), re.search(r"dropped (\d+)|drops (\d+)", said)
    if sent and dropped:
        packets, drops = (int(next(filter(None, match.groups()))) for match in (sent, dropped))
        if packets + drops:
            lines.append(
                f"that is {packets + drops} packets, of which {100 * drops / (packets + drops):.3g} % were lost"
            )
    return lines[:STATISTICS_LINES]


# ---- its parameters ----


def _qdisc(node: Node, classes: Sequence[Node], qdiscs: Sequence[Node], found: Dump, remarks: list[str]) -> Tree:
    row = row_of(node)
    if row is None:
        return _default_queue(node, found, remarks)
    if node.is_command:
        remarks += meant.left_aside(row, node.words)
        node.words, refused = meant.taken(row, node.words)
        for remark in refused:
            found.note(node.line, remark)
        try:
            node.words = meant.commanded(row, node.words)
        except ValueError as error:
            found.note(node.line, str(error))
        node.words, bounded = meant.kept(row, node.words)
        for remark in bounded:
            found.note(node.line, remark)
    qdisc: Tree = {"kind": row.ours}
    for word in row.words:
        value = _value(node, word, found)
        if value is not None:
            qdisc[word.ours] = value
    qdisc |= {name: value for name, value in row.sets.items() if not (name == "ecn" and name in qdisc)}
    if row.is_red:
        readable = _readable(node, row, found)
        values, said = red.derive(readable, row.ours, node.is_command)
        if node.is_command and "limit" in readable and "wq" not in values:
            raise BadInput(f"{found.origin}: line {node.line}: {red.refused(readable, row.ours)}")
        if node.is_command and row.tc == "red" and "avpkt" not in node.words:
            found.note(node.line, "red: tc wants avpkt")
        if node.is_command and "capacity" not in values:
            values |= _usual_capacity(node, found, remarks)
        # A command's own words stand before what tc makes of them.
        qdisc = {"kind": row.ours, **values, **qdisc} if node.is_command else {**qdisc, **values}
        remarks += said
        qdisc |= {"mark_until": "max"} if "harddrop" in node.words else {}
    if row.tc == "drr":
        own = [c for c in classes if c.kind == "drr"]
        quanta = [size for c in own if (size := _quantum_of_drr(c, found)) is not None]
        count = sum(c.count for c in own)
        qdisc |= {"flows": count, "quantum": q.size_text(quanta[0])} if quanta else {}
        below = [n for n in qdiscs if n.kind in ("pfifo", table.HEAD_DROP) and _is_below(n, node)]
        if below and (limit := number(q.packets, below[0], "limit", found, math.inf)) is not None:
            qdisc["limit"] = f"{limit:.0f}p"
            qdisc["drop"] = "head" if below[0].kind == table.HEAD_DROP else "tail"
    return qdisc


def _quantum_of_drr(node: Node, found: Dump) -> int | None:
    """Bytes of the quantum that a class has, if it says one that can be read."""
    size = number(q.size, node, "quantum", found, 1 << 32)
    if size is None:
        return None
    if (taken := meant.quantum_of_drr(size)) != size:
        found.note(node.line, f"'quantum {node.words['quantum']}' of drr: the kernel takes {taken}")
    return taken


def _is_nothing(rate: q.Raw) -> bool:
    """Whether it is a rate of 0, which is none to tc."""
    try:
        return not q.rate(rate)
    except ValueError:
        return False


def _usual_capacity(node: Node, found: Dump, remarks: list[str]) -> Tree:
    """The rate by which tc takes an idle queue's average to fall, where a command does not say it."""
    if "bandwidth" in node.words and not _is_nothing(node.words["bandwidth"]):
        return {}  # no rate, which was noted
    if node.kind == "choke":
        found.note(node.line, "choke: tc wants bandwidth; the rate of the link stands for it")
        return {}
    remarks.append(f"capacity: tc takes {red.USUAL_RATE} for a bandwidth that is not said, whatever the link has")
    return {"capacity": red.USUAL_RATE}


def _readable(node: Node, row: Row, found: Dump) -> dict[str, q.Raw]:
    """The words of a RED that its weight is computed from, less those that are no numbers."""
    kept = dict(node.words)
    length = q.packets if row.ours == "choke" else q.size
    for word, read_it, most in (
        *(
            ("ewma", _plain, 31),
            ("Plog", _plain, 31),
            ("avpkt", lambda raw: red.average_packet({"avpkt": raw}), 65535),
            ("burst", q.packets, 1e9),
            ("bandwidth", q.rate, 1e15),
        ),
        *(("min", length, 1e12), ("max", length, 1e12), ("limit", length, 1e12)),
    ):
        if word in kept and number(read_it, node, word, found, most) is None:
            del kept[word]
    return kept


def _own_queue(shaper: Node | None, rate_bps: float | None, found: Dump, remarks: list[str]) -> Tree:
    """The drop-tail queue of a shaper that nothing was put under."""
    if shaper is None:
        return {}
    if shaper.kind == "htb":
        remarks.append("htb's own drop-tail; its limit is the port's txqueuelen, which tc does not show")
        return {"kind": "pfifo"}
    limit = number(q.size, shaper, "limit", found, math.inf)
    if limit is not None:
        return {"kind": "bfifo", "limit": q.size_text(limit)}
    latency = next((us for w in ("lat", "latency") if (us := time_us(shaper, w, found)) is not None), None)
    if latency is None or rate_bps is None:
        return {"kind": "bfifo"}
    # tc-tbf(8): the latency is what the queue takes beyond the bucket.
    bucket = next((b for w in ("burst", "buffer") if (b := number(_bucket, shaper, w, found, math.inf))), 0.0)
    return {"kind": "bfifo", "limit": q.size_text(rate_bps / 8e6 * latency + bucket)}


def _bucket(raw: q.Raw) -> float:
    """`5Kb/8`, with the size of its cells behind."""
    return q.size(raw.partition("/")[0]) if isinstance(raw, str) else q.size(raw)


def time_us(node: Node, word: str, found: Dump) -> float | None:
    """A time of a discipline in microseconds; nothing where it has none."""
    us = number(q.microseconds, node, word, found, LONGEST_DELAY_US)
    return us if us is not None and us >= 0 else None


def _default_queue(node: Node, found: Dump, remarks: list[str]) -> Tree:
    if node.kind == "fq":
        return others.drr_for_fq(node, found, remarks)
    remarks.append(f"{node.kind}: drop-tail; its limit is the port's txqueuelen, which tc does not show")
    return {"kind": "pfifo"}


def _value(node: Node, word: table.Word, found: Dump) -> Any:
    try:
        value = words.said(word, node.words, node.is_command)
    except ValueError as error:
        found.note(node.line, f"{word.tc if isinstance(word, Value) else word.ours} {error}")
        return None
    # A command that says nothing means tc's default; a dump that shows nothing means off.
    is_off = value is None and isinstance(word, Flag) and node.is_whole and not node.is_command
    return False if is_off else value


def _cake_overhead(leaf: Node, header: int, taken: int, qdisc: Tree, found: Dump) -> int:
    """CAKE's bytes beyond the IP packet: with `raw` those of the port, else its own; below a stab it takes a header off
    that is off already."""
    shown = header
    if "overhead" in qdisc:
        shown = int(qdisc["overhead"]) + (header if leaf.words.get("raw") else 0)
    elif "overhead_keyword" in qdisc:
        shown = int(_alone(qdisc)["overhead"])
    if 0 < shown + taken <= LARGEST_OVERHEAD:
        qdisc["overhead"] = shown + taken
    else:
        qdisc.pop("overhead", None)
        if shown + taken:
            found.note(
                leaf.line, f"overhead {shown + taken}: expected 0 to {LARGEST_OVERHEAD} bytes beyond the IP packet"
            )
    return int(qdisc.get("overhead", 0))
