"""A dump of `tc` as a scenario: the rate of its shaper, the discipline under it, and what else it says."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqmlab import engine, toml_text, units
from aqmlab.engine import Tree
from aqmlab.errors import BadInput
from aqmlab.tc import dump, others, ports, table
from aqmlab.tc import quantities as q
from aqmlab.tc.dump import Dump
from aqmlab.tc.ports import Port

SHAPERS = ("htb", "tbf", "cake")

DEFAULTS = ("noqueue", "pfifo_fast", "mq", "netem", "ingress", "clsact", "fq")
"""What a port without a queue discipline of interest has."""

MOST_REFUSALS = 32
"""More than any qdisc has parameters."""


def _comment(text: str) -> str:
    """TOML's comments hold no control characters."""
    return "# " + "".join(c if c.isprintable() else "?" for c in text)


@dataclass(frozen=True)
class Reading:
    """A scenario, and what was not understood on the way to it."""

    tree: Tree
    comments: Mapping[str, Sequence[str]]
    """Comments by the table that they go before."""
    notes: tuple[str, ...]
    statistics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_both_ways: bool = False
    """Whether a port of each direction was found."""

    @property
    def text(self) -> str:
        """The scenario as TOML with comments."""
        lines = []
        for line in toml_text.dumps(self.tree).splitlines():
            head = line.strip("[]") if line.startswith("[") else ""
            lines += [_comment(comment) for comment in self.comments.get(head, ())] if head else []
            lines.append(line)
        first = [_comment(comment) for comment in self.comments.get("", ())]
        return "\n".join([*first, *lines]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """What was read as a dictionary, for a program."""
        return {
            "scenario": self.tree,
            "toml": self.text,
            "statistics": {device: list(lines) for device, lines in self.statistics.items()},
            "remarks": [comment for lines in self.comments.values() for comment in lines],
            "not_understood": list(self.notes),
        }


class NoRate(BadInput):
    """No shaper says the link's rate."""


def read(text: str, origin: str, dev: str | None, reverse_dev: str | None, rate: str | None) -> Reading:
    """Makes a scenario of a dump; `BadInput` where there is no qdisc in it, or nothing that says the link's rate."""
    found, devices = _parsed(text, origin)
    forward = _choose(devices, dev, found, origin)
    back = _choose_reverse(devices, reverse_dev, forward, found, origin)
    port = ports.of(forward, found)
    rate_bps = units.rate_bps(rate, "--rate") if rate is not None else port.rate_bps
    other = ports.of(back, found) if back is not None else None
    for each in (port, other):
        if each is not None and each.rate_bps is None and rate is None:
            _refuse_without_classes(each.device, found, origin)
    if rate_bps is None:
        raise NoRate(f"{origin}: no shaper {_on(forward)}says the link's rate; expected --rate, as in --rate 100mbit")
    used = [each.emulator for each in (port, other) if each is not None]
    for node in found.nodes:
        if node.kind == "netem" and "rate" in node.words and all(node is not each for each in used):
            found.note(node.line, f"'rate {node.words['rate']}': {dump.UNREAD_RATE}")
    return _reading(port, other, rate_bps, found, origin)


def queues(text: str, origin: str) -> tuple[Mapping[str, Port], Sequence[str]]:
    """What stands at each port of a dump that has a queue, by its name, and what was not understood; `BadInput` where
    there is no qdisc in it, or where netem delays."""
    found, devices = _parsed(text, origin)
    kinds = {device: {node.kind for node in found.nodes if node.device == device} for device in devices}
    for device in devices:
        if "netem" in kinds[device]:
            raise BadInput(f"{origin}: netem delays {_on(device)}what comes by; expected the queue of a port in use")
    there = {device: ports.of(device, found) for device in devices if kinds[device] - WITHOUT_QUEUE}
    return there, tuple(found.notes)


WITHOUT_QUEUE = {"noqueue", "ingress", "clsact"}


def _parsed(text: str, origin: str) -> tuple[Dump, list[str]]:
    """A dump, and its ports."""
    found = dump.parse(text)
    found.origin = origin
    found.notes += _foreign_words(found)
    devices = list(dict.fromkeys(node.device for node in found.nodes if node.what == "qdisc"))
    if not devices:
        said = f"; {found.notes[0]}" if found.notes else ""
        if re.search(r"\btc\s+(-n|-netns)\b", text):
            raise BadInput(f"{origin}: has lines for namespaces (tc -n), a router each; expected the lines of one")
        if _is_scenario(text):
            raise BadInput(
                f"{origin}: is a scenario; expected what tc says or is told: `aqmlab tc {origin}` writes a scenario's "
                "lines"
            )
        raise BadInput(f"{origin}: no qdisc in it, expected text of tc -s qdisc show, JSON of tc -j, or tc lines{said}")
    if found.untold:
        raise BadInput(f"{origin}: {found.untold}; expected the ports' names above their lines, as by: {dump.recipe()}")
    return found, devices


def _is_scenario(text: str) -> bool:
    """Whether a text is TOML with a link or traffic."""
    try:
        return bool({"link", "links", "traffic", "scenario"} & tomllib.loads(text).keys())
    except (ValueError, RecursionError):
        return False


def _foreign_words(found: Dump) -> list[str]:
    """One line for each word that is known and that no parameter stands for."""
    notes = []
    for node in found.nodes:
        row = ports.row_of(node) if node.what == "qdisc" else None
        for word, raw in node.words.items() if row is not None else ():
            _, why = row.foreign.get(word, (0, "")) if row is not None else (0, "")
            if why and not table.is_plain(word, raw):
                notes.append(f"line {node.line}: {word!r} of {node.kind}: {why}")
    return list(dict.fromkeys(notes))


def _on(device: str) -> str:
    return f"on {device} " if device else ""


def _refuse_without_classes(device: str, found: Dump, origin: str) -> None:
    """Says how to show the classes of a port that htb shapes, and those of the others."""
    ports = list(dict.fromkeys(node.device for node in found.nodes if node.kind == "htb"))
    if device in ports:
        shown = dump.recipe(list(filter(None, ports)) or dump.PORTS)
        raise BadInput(f"{origin}: htb shapes {_on(device)}at a rate that its classes say; expected them too: {shown}")


# ---- which port ----


def _interest(device: str, found: Dump) -> int:
    kinds = {node.kind for node in found.nodes if node.device == device and node.what == "qdisc"}
    if kinds & set(SHAPERS) or others.emulator([node for node in found.nodes if node.device == device]):
        return 2
    return 1 if kinds - set(DEFAULTS) else 0


def _choose(devices: Sequence[str], dev: str | None, found: Dump, origin: str) -> str:
    if dev is not None:
        if dev in devices:
            return dev
        # A dump of one device does not say which.
        if devices == [""]:
            return ""
        raise BadInput(f"{origin}: --dev {dev}: expected one of {', '.join(filter(None, devices))}")
    return max(devices, key=lambda device: _interest(device, found))


def _choose_reverse(devices: Sequence[str], wanted: str | None, forward: str, found: Dump, origin: str) -> str | None:
    if wanted is not None:
        if wanted not in devices:
            raise BadInput(f"{origin}: --reverse-dev {wanted}: expected one of {', '.join(filter(None, devices))}")
        return wanted
    least = max(1, _interest(forward, found))
    others = [d for d in devices if d != forward and _interest(d, found) >= least]
    for spare in others[1:]:
        found.notes.append(f"{spare}: a third port with a queue is left aside; choose with --dev and --reverse-dev")
    return others[0] if others else None


# ---- the scenario ----


def _reading(port: Port, back: Port | None, rate_bps: float, found: Dump, origin: str) -> Reading:
    link: Tree = {"rate": units.rate_text(rate_bps)}
    comments: dict[str, list[str]] = {"": ["Read from tc. What it cannot say, traffic above all, is a placeholder."]}
    comments["link"] = [f"{port.device}: forward"] if port.device else []
    statistics = {port.device: port.statistics}
    overhead = {"overhead": f"{port.overhead}b"} if port.overhead else {}
    overhead |= {"framing": port.framing} if port.framing != "noatm" else {}
    if back is not None:
        comments["link"].append(f"{back.device}: reverse")
        link |= {"reverse_rate": units.rate_text(back.rate_bps)} if back.rate_bps is not None else {}
        if back.overhead != port.overhead and back.rate_bps is not None:
            found.notes.append(
                f"{back.device}: its overhead of {back.overhead} bytes is left aside, for {port.overhead}"
            )
        statistics[back.device] = back.statistics
    link |= overhead
    for key, each in (("qdisc", port), ("reverse_qdisc", back)):
        if each is None:
            continue
        lines = [f"  {line}" for line in each.statistics]
        if key == "reverse_qdisc" and each.qdisc == port.qdisc:
            said = f"{each.device or 'the other port'} has the same{':' if lines else ''}"
            comments.setdefault("link.qdisc" if port.qdisc else "link", []).extend([said, *lines])
            continue
        if each.qdisc:
            link[key] = each.qdisc
        else:
            comments["link"].append("no qdisc that aqmlab has, so drop-tail stands here")
        title = f"link.{key}" if each.qdisc else "link"
        comments.setdefault(title, []).extend([*each.remarks, *([f"{each.device}:"] if back and lines else []), *lines])
    tree: Tree = {"name": "read from tc", "link": link}
    rtt, said = _rtt(found)
    if rtt is not None:
        tree["path"] = {"rtt": rtt}
        comments["path"] = [said]
    loss, where = _loss(found)
    if loss is not None:
        tree["path"] = {**tree.get("path", {}), "loss": loss}
        comments["path"] = [*comments.get("path", []), where]
    tree["traffic"] = [{"kind": "bulk", "flows": 16}]
    comments["traffic"] = ["A dump does not know who sends: put your traffic here."]
    return Reading(_accepted(tree, found, origin), comments, tuple(found.notes), statistics, back is not None)


def _rtt(found: Dump) -> tuple[str | None, str]:
    delays = [
        (n, us) for n in found.nodes if n.kind == "netem" and (us := ports.time_us(n, "delay", found)) is not None
    ]
    for node, _ in delays:
        if "jitter" in node.words:
            found.note(
                node.line, f"'jitter' {node.words['jitter']} of netem: aqmlab's delays are each connection's own"
            )
    total = sum(us for _, us in delays)
    where = ", ".join(n.device or n.handle for n, _ in delays)
    return (q.time_text(total), f"the delays of netem ({where}) in sum") if delays else (None, "")


def _loss(found: Dump) -> tuple[float | None, str]:
    """The losses of netem, where two ports have the same, one for each way; a port does not say which way it is."""
    lossy = [
        (node, float(node.words[dump.LOSS])) for node in found.nodes if node.kind == "netem" and dump.LOSS in node.words
    ]
    shares, ports = {share for _, share in lossy}, [node.device or node.handle for node, _ in lossy]
    if len(lossy) == len(set(ports)) == 2 and len(shares) == 1 and 0 <= min(shares) <= 1:
        return shares.pop(), f"the losses of netem ({', '.join(ports)}), taken for one each way"
    for node, share in lossy:
        found.note(
            node.line,
            f"'{dump.LOSS} {100 * share:.10g}%': of netem aqmlab reads losses that two ports have alike, one for each "
            "way; [path] has loss and reverse_loss",
        )
    return None, ""


def _accepted(tree: Tree, found: Dump, origin: str) -> Tree:
    """The scenario without those parameters that aqmlab refuses, by themselves or beside the others; each is noted."""
    for _ in range(MOST_REFUSALS):
        refusal = _refusal(tree)
        if refusal is None:
            return tree
        refusal = re.sub(r"^tc:\d+: ", "", refusal)
        queue, _, named = refusal.partition("link.")[2].partition(".")
        known = tree["link"].get(queue, {})
        named = named.split(" ")[0]
        # The one that is named, or else the one without which the rest fits: the other of a pair may be a default.
        tries = [name for name in (named, *reversed(known)) if name in known and name != "kind"]
        left_out = next((name for name in tries if _refusal(_without(tree, queue, name)) is None), None)
        if left_out is None:
            if not tries:
                raise BadInput(f"{origin}: {refusal}")
            left_out = tries[0]
        found.notes.append(f"{left_out} {known[left_out]} is left out: {refusal}")
        tree = _without(tree, queue, left_out)
    return tree


def _refusal(tree: Tree) -> str | None:
    try:
        engine.resolve(toml_text.dumps(tree), "tc")
    except BadInput as error:
        return str(error)
    return None


def _without(tree: Tree, queue: str, name: str) -> Tree:
    kept = {key: value for key, value in tree["link"][queue].items() if key != name}
    return {**tree, "link": {**tree["link"], queue: kept}}
