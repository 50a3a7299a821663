"""What was pasted, as queues and classes: text of `tc qdisc show` and `tc class show`, JSON, or command lines.

Nothing is refused: what cannot be read is noted with its line and word, and the rest is kept. Prompts, `sudo`,
comments, carriage returns and lines that a terminal broke are taken for what they are.

Where `tc` is asked for one port, it does not print the port's name. Lines without one are of the port that a prompt
shows to be asked for, or that a comment of one word above them names.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from aqmlab import units
from aqmlab.tc import meant, table
from aqmlab.tc.quantities import Raw, finite
from aqmlab.tc.shell import Shell, words_of

CLASSES = ("qdisc", "class")

STRANGE_LINES = 3
"""How many lines that are not tc's are named, each by itself."""

_PROMPT = re.compile(r"^(?:.*?[#$%>]\s+)??(?:sudo\s+(?:-\S+\s+)*)?(?:\S*/)?tc\s+(.*)$")
_OTHER_COMMANDS = re.compile(r"^(?:sudo\s+)?(?:\S*/)?(ip|sysctl|ethtool|modprobe|ssh|exit)\b")
_OTHER_PROMPT = re.compile(r"^(?:[#$%>]|\[?[\w.-]+[@:]\S*?( \S+\])?[#$%>])(?:\s|$)")
_HEADING = re.compile(r"^#+\s*([\w.@-]{1,15}):?$")
_SETTING = re.compile(r"\btc\s+(?:-\S+\s+)*(?:qdisc|class)\s+(?:add|replace|change|link)\b")
_LOOP = re.compile(r"^(?:.*?[#$%>]\s+)?for \w+ in \$\(seq 1 (\d+)\); do (.*); done$")
_WHOLE = re.compile(r"-?\d+")
_SUBSTITUTION = re.compile(r"\$\([^)]*\)")


PORTS = ("lan", "wan")
"""What ports are called where nobody has said their names."""


def recipe(ports: Sequence[str] = PORTS) -> str:
    """What shows all of these ports so that they can be told apart; `tc class show` has nothing to say of no port."""
    shown = 'echo "# $port"; tc -s -d qdisc show dev $port; tc class show dev $port'
    return f"for port in {' '.join(ports)}; do {shown}; done > now.txt"


@dataclass
class Node:
    """A queue discipline or a class, as dumped or as commanded."""

    what: str
    kind: str
    line: int
    handle: str = ""
    parent: str = ""
    device: str = ""
    leaf: str = ""
    words: dict[str, Raw] = field(default_factory=dict)
    """Its parameters, by tc's words; what stands alone is 1."""
    said: list[tuple[str, Raw]] = field(default_factory=list)
    """Its words of text as they were written."""
    stab: dict[str, Raw] = field(default_factory=dict)
    statistics: list[str] = field(default_factory=list)
    is_command: bool = False
    is_whole: bool = True
    """Whether all of its words were understood: if not, what is not there may have been lost."""
    count: int = 1
    """How many a loop of the shell makes of it."""

    @property
    def is_root(self) -> bool:
        """Whether it hangs on the port itself."""
        return self.parent in ("root", "")


@dataclass
class Dump:
    """All that was found, and all that was not understood."""

    nodes: list[Node] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    origin: str = ""
    """Where it is from, for what cannot be read at all."""
    strange: list[tuple[int, str]] = field(default_factory=list)
    """Lines that are nothing of tc's, each with its first word."""
    is_elsewhere: bool = False
    """Whether the last prompt was for a command other than tc: what it printed is nobody's business."""
    asked_device: str = ""
    """The port that the command before the lines at hand asked for, if a prompt or a comment shows it."""
    untold: str = ""
    """The first line that may be of one port or another."""
    shell: Shell = field(default_factory=lambda: Shell(""))

    def note(self, line: int, what: str) -> None:
        """Remembers, once, what was not understood."""
        text = f"line {line}: {what}"
        if text not in self.notes:
            self.notes.append(text)


def number(read_it: Callable[[Raw], float], node: Node, word: str, found: Dump, most: float) -> float | None:
    """A value that is read for what it says of the link, if it says anything that can be."""
    raw = {**node.stab, **node.words}.get(word)
    if raw is None:
        return None
    try:
        value = read_it(raw)
    except ValueError as error:
        found.note(node.line, f"{word} {error}")
        return None
    if abs(value) > most:
        found.note(node.line, f"{word} {raw}: expected no more than {most:g}")
        return None
    return value


def parse(text: str) -> Dump:
    """Reads what was pasted."""
    found = Dump(shell=Shell(text))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    position = 0
    while position < len(lines):
        line, at = lines[position], position + 1
        if line.lstrip().startswith(("[{", "[ {")) or (line.strip() == "[" and position + 1 < len(lines)):
            position += _json(lines[position:], at, found)
            continue
        while line.rstrip().endswith("\\") and position + 1 < len(lines):
            position += 1
            line = line.rstrip()[:-1] + " " + lines[position]
        _line(line, at, found)
        position += 1
    for at, word in found.strange[:STRANGE_LINES]:
        found.note(at, f"{word!r}: expected lines of tc qdisc show, tc class show, or tc qdisc add")
    if len(found.strange) > STRANGE_LINES:
        found.notes.append(f"and {len(found.strange) - STRANGE_LINES} more such lines")
    found.nodes = _merged(found)
    return found


def _merged(found: Dump) -> list[Node]:
    """What was shown, not what was commanded, if both are there; and once what was shown twice, with and without -d."""
    shown = [node for node in found.nodes if not node.is_command] or found.nodes
    _tell_ports(shown, found)
    kept: dict[tuple[str, str, str, str, str], Node] = {}
    for position, node in enumerate(shown):
        # A qdisc that nobody named has the handle 0:, and may be there several times.
        place = str(position) if node.is_command else node.parent
        before = kept.setdefault((node.what, node.kind, node.device, node.handle, place), node)
        if before is not node:
            before.words |= node.words
            before.stab |= node.stab
            before.statistics = node.statistics or before.statistics
            before.leaf = before.leaf or node.leaf
            before.is_whole = before.is_whole and node.is_whole
    return list(kept.values())


def _tell_ports(nodes: Sequence[Node], found: Dump) -> None:
    """Each class without a port goes to the port whose qdisc has its number, or has its leaf if several have that."""
    qdiscs = [node for node in nodes if node.what == "qdisc"]
    roots = [node for node in qdiscs if node.parent == "root" and not (node.device or node.is_command)]
    if len(roots) > 1:
        found.untold = f"line {roots[1].line}: {roots[1].kind} {roots[1].handle} is a second root, of a port not named"
    for node in nodes:
        if node.what == "class" and not node.device:
            major = node.handle.partition(":")[0] + ":"
            ports = dict.fromkeys(n.device for n in qdiscs if n.handle == major and n.kind == node.kind)
            with_leaf = {n.device for n in qdiscs if n.handle == node.leaf} if node.leaf and len(ports) > 1 else set()
            ports = {port: None for port in ports if port in with_leaf} or ports
            if len(ports) > 1 and table.CLASS_WORDS.get(node.kind) and not found.untold:
                named = " or ".join(port or "one not named" for port in ports)
                found.untold = f"line {node.line}: class {node.kind} {node.handle} is of a port not named: {named}"
            node.device = next(iter(ports), "")


# ---- text ----


def _line(line: str, at: int, found: Dump) -> None:
    stripped = line.strip()
    if not stripped or stripped == "[]":
        return
    words = stripped.split()
    if words[0] in CLASSES and line[0] not in " \t":
        found.is_elsewhere = False
        _shown(words, at, found)
        return
    stripped = found.shell.read(stripped)
    if not stripped:
        return
    if words[0] == "deleted" and len(words) > 1 and words[1] in CLASSES:
        return
    elif (loop := _LOOP.match(stripped)) is not None:
        for command in loop[2].split(";"):
            if (match := _PROMPT.match(_SUBSTITUTION.sub("N", command.strip()))) is not None:
                _command(words_of(match[1]), at, found, count=int(loop[1]))
    elif (match := _PROMPT.match(stripped)) is not None:
        found.is_elsewhere = False
        _command(words_of(match[1]), at, found)
    elif (heading := _HEADING.match(stripped)) is not None:
        found.asked_device = heading[1]
    elif stripped.startswith(("#", "//")) or _OTHER_COMMANDS.match(stripped):
        return
    elif _OTHER_PROMPT.match(stripped):
        found.is_elsewhere = True
    elif found.nodes and not found.nodes[-1].is_command and line[0] in " \t":
        if words[0] == "linklayer":
            _pairs(words, found.nodes[-1].stab)
        else:
            found.nodes[-1].statistics.append(stripped)
    elif found.nodes and not found.nodes[-1].is_command and words[0] in _arity(found.nodes[-1]):
        _words(words, found.nodes[-1], at, found)  # a terminal broke the line
    elif not found.is_elsewhere and (not found.shell.is_script or _SETTING.search(stripped)):
        found.strange.append((at, words[0]))


def _pairs(words: Sequence[str], into: dict[str, Raw]) -> None:
    into.update(zip(words[::2], words[1::2], strict=False))


def _arity(node: Node) -> Mapping[str, int]:
    """How many values follow each word of this qdisc or class."""
    if node.what == "class":
        return table.CLASS_WORDS.get(node.kind, {})
    row = table.to_read(node.kind) or table.to_read(node.kind, is_adaptive=True)
    return table.arity(row) if row is not None else table.CONTAINERS.get(node.kind, {})


def _is_known(node: Node) -> bool:
    return node.kind in table.CONTAINERS or node.kind in table.CLASS_WORDS or table.to_read(node.kind) is not None


def _shown(words: Sequence[str], at: int, found: Dump) -> None:
    """`qdisc red 10: dev eth0 parent 1:1 limit ...` or `class htb 1:1 dev eth0 root leaf 10: ...`."""
    if len(words) < 3:
        found.note(at, f"{' '.join(words)!r}: cut off")
        return
    node = Node(words[0], words[1], at, words[2], device=found.asked_device)
    found.nodes.append(node)
    position = 3
    while position < len(words):
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else ""
        match word:
            case "root" | "ingress" | "clsact":
                node.parent = word
            case "offloaded" | "----------------":
                pass
            case "dev" | "parent" | "refcnt" | "leaf" | "ingress_block" | "egress_block":
                if word in ("dev", "parent", "leaf"):
                    setattr(node, "device" if word == "dev" else word, following)
                position += 1
            case _:
                break
        position += 1
    _words(words[position:], node, at, found)


EMULATED = ("loss", "duplicate", "corrupt", "reorder", "slot", "cellsize", "celloverhead")
"""What netem does to packets besides delaying them."""
LOSS = "loss"
UNREAD = "of netem aqmlab reads the delay alone; [path] has loss and reorder"
UNREAD_RATE = "of netem aqmlab reads the delay alone, as its port has a shaper, or is none of the link's"


def _words(words: Sequence[str], node: Node, at: int, found: Dump) -> None:
    known = _arity(node)
    if not _is_known(node):
        if node.what == "qdisc":
            found.note(at, f"{node.kind!r}: a qdisc that aqmlab does not know")
        return
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if word not in known:
            # What follows a word that is not known may be its value.
            value = ""
            if position < len(words) and words[position] not in known:
                value, position = f" {words[position]}", position + 1
            if node.kind != "netem":  # its words are many, and only the delay is of use
                node.is_whole = False
                found.note(at, f"{word + value!r}: not a word of {node.kind} that aqmlab knows")
            elif (
                word == LOSS and (share := _share(value)) is not None and _share(" ".join(words[position:][:1])) is None
            ):
                node.words[LOSS] = share  # each packet's by itself: a second share would be their correlation
            elif word in EMULATED:
                found.note(at, f"{word + value!r}: {UNREAD}")
            continue
        values = words[position : position + known[word]]
        if len(values) < known[word]:
            node.is_whole = False
            found.note(at, f"{word!r}: cut off, a value should follow")
        else:
            node.said.append((word, values[0] if known[word] else 1))
        position += known[word]
        if node.kind == "netem" and word == "delay":
            # `delay 40ms  5ms 25%`: a jitter may follow, and its correlation.
            jitter = [w for w in words[position : position + 1] if w[:1].isdigit()]
            node.words |= {"jitter": jitter[0]} if jitter else {}
            position += len(jitter)
        if node.kind == "netem" and word == "rate":
            # `rate 5mbit 20 53 5`: bytes that each packet has more may follow, and the cells.
            more = list(takewhile(_WHOLE.fullmatch, words[position : position + 3]))
            node.words |= {"packetoverhead": more[0]} if more else {}
            if len(more) > 1:
                found.note(at, f"'rate ... {' '.join(more)}' of netem: aqmlab reads no cells of it")
            position += len(more)
    # A line may go on where a terminal broke it: what is said there counts after the words before.
    heard = {word for word, _ in node.said}
    words_of_text = meant.settled(table.to_read(node.kind) if node.what == "qdisc" else None, node.said)
    node.words = {word: raw for word, raw in node.words.items() if word not in heard} | words_of_text


def _share(text: str) -> float | None:
    """The share that `3%` says; `None` of any other word."""
    number = units.quantity(text)
    return None if number is None or number[1] != "%" else number[0] / 100


# ---- command lines ----


def _command(words: Iterable[str], at: int, found: Dump, count: int = 1) -> None:
    """`qdisc add dev eth0 root handle 1: stab ... red limit ...`; commands that show are passed over."""
    words = [w for w in words if not (w.startswith("-") and not w[1:].isdigit())]
    if not words or words[0] not in CLASSES or len(words) < 2 or words[1] in ("del", "delete"):
        return
    if words[1] in ("show", "list", "ls"):
        found.asked_device = words[words.index("dev") + 1] if "dev" in words[:-1] else ""
        return
    if words[1] not in ("add", "replace", "change", "link"):
        found.note(at, f"{words[1]!r}: expected add, replace or change")
        return
    node = Node(words[0], "", at, is_command=True, count=count)
    position = 2
    while position < len(words):
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else ""
        match word:
            case "root":
                node.parent = word
            case "ingress" | "clsact":
                return
            case "dev" | "parent" | "handle" | "classid" | "estimator":
                name = {"dev": "device", "classid": "handle"}.get(word, word)
                if name != "estimator":
                    setattr(node, name, following.strip("\"'"))
                position += 1 if word != "estimator" else 2
            case "stab":
                position += 1
                while position + 1 < len(words) and words[position] in ("overhead", "linklayer", "mpu", "mtu", "tsize"):
                    node.stab[words[position]] = words[position + 1]
                    position += 2
                continue
            case _:
                break
        position += 1
    if position >= len(words):
        found.note(at, f"{' '.join(words)!r}: cut off, the name of a {words[0]} should follow")
        return
    node.kind = words[position]
    found.nodes.append(node)
    _words(words[position + 1 :], node, at, found)


# ---- JSON ----


_DECODER = json.JSONDecoder(parse_constant=str)
"""NaN and Infinity, which Python reads as numbers, are words that nothing takes."""

_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},]', re.DOTALL)
"""Strings, brackets and commas."""


def _json(lines: Sequence[str], at: int, found: Dump) -> int:
    """Reads one JSON list; the answer is how many lines it took."""
    text = "\n".join(lines)
    start = len(text) - len(text.lstrip())
    try:
        items, end, broken = _decoded(text, start)
    except (ValueError, RecursionError):
        items, end, broken = [], len(text), None
        found.note(at, f"{_around(text, start)!r}: JSON of which a number is too long, or that is nested too deeply")
    if broken is not None:
        found.note(at + text.count("\n", 0, broken), f"{_around(text, broken)!r}: JSON that is cut off or broken")
    for item in items if isinstance(items, list) else [items]:
        if isinstance(item, Mapping):
            _item(item, at + text.count("\n", 0, start), found)
    return 1 + text.count("\n", 0, end)


def _decoded(text: str, start: int) -> tuple[Any, int, int | None]:
    """What a list says, where it ends, and where it breaks off if it does."""
    try:
        return *_DECODER.raw_decode(text, start), None
    except json.JSONDecodeError as error:
        return _repaired(text[: error.pos + 1]), len(text), error.pos


def _around(text: str, position: int) -> str:
    return text[max(0, position - 24) : position + 8].replace("\n", " ").strip()


def _repaired(text: str) -> Any:
    """What a list says that is sound but for its end: all that closes after the last whole value."""
    marks = [mark for mark in _MARKS.finditer(text) if not mark[0].startswith('"')]
    while marks:
        mark = marks.pop()
        if mark[0] in "[{":
            continue
        try:
            return _DECODER.decode(text[: mark.start()] + _closing(marks))
        except json.JSONDecodeError:
            continue
    return []


def _closing(marks: Iterable[re.Match[str]]) -> str:
    """What closes all that these brackets leave open."""
    still: list[str] = []
    for mark in marks:
        if mark[0] in "[{":
            still.append("]" if mark[0] == "[" else "}")
        elif mark[0] != "," and still:
            still.pop()
    return "".join(reversed(still))


_PLACES = ("kind", "class", "handle", "dev", "root", "parent", "refcnt", "leaf", "offloaded", "options", "stab")


def _item(item: Mapping[str, Any], at: int, found: Dump) -> None:
    what = "class" if "class" in item else "qdisc"
    kind = item.get("class", item.get("kind"))
    if not isinstance(kind, str):
        found.note(at, "a JSON object without a kind")
        return
    node = Node(what, kind, at, str(item.get("handle", "")), device=str(item.get("dev", found.asked_device)))
    node.parent = "root" if item.get("root") else str(item.get("parent", "ingress" if "ingress" in item else "root"))
    stab = item.get("stab", {})
    node.leaf, node.stab = str(item.get("leaf", "")), dict(stab) if isinstance(stab, Mapping) else {}
    found.nodes.append(node)
    options = item.get("options", {} if what == "qdisc" else item)
    known = _json_words(node)
    if not _is_known(node):
        found.note(at, f"{kind!r}: a qdisc that aqmlab does not know")
    elif isinstance(options, Mapping):
        for name, value in options.items():
            if node.kind == "netem" and name.startswith(LOSS) and isinstance(value, Mapping):
                if name == "loss-random" and not value.get("correlation"):
                    node.words[LOSS] = finite(value.get(LOSS, 0.0))
                else:
                    found.note(at, f"{name!r}: {UNREAD}")
                continue
            if name not in known and name not in _PLACES and node.kind not in table.CONTAINERS and what == "qdisc":
                found.note(at, f"{name!r}: not a word of {kind} that aqmlab knows")
            try:
                _json_value(node, name, value, known)
            except ValueError as error:
                found.note(at, f"{name}: {error}")
    # fq_codel shows the two halves of its selector by themselves.
    selector, mask = (node.words.get(f"ce_threshold_{half}") for half in ("selector", "mask"))
    if selector is not None and mask is not None:
        node.words["ce_threshold_selector"] = f"{selector}/{mask}"
    node.statistics = _json_statistics(item)


def _json_words(node: Node) -> Mapping[str, str]:
    """JSON's names to tc's words."""
    row = table.to_read(node.kind)
    known = {name: name for name in _arity(node)}
    for word in row.words if row is not None else ():
        match word:
            case table.Value():
                known |= dict.fromkeys(word.json, word.tc)
            case table.Choice() if word.json:
                known[word.json] = word.json
    return known


def _json_value(node: Node, name: str, value: Any, known: Mapping[str, str]) -> None:
    if isinstance(value, Mapping):  # netem: {"delay": 0.04, "jitter": 0.005, ...}, in seconds
        if node.kind == "netem" and name == "delay":
            node.words["delay"] = 1e6 * finite(value.get("delay", 0.0))
            if value.get("jitter"):
                node.words["jitter"] = 1e6 * finite(value["jitter"])
        if node.kind == "netem" and name == "rate":  # in bytes a second
            node.words |= {word: finite(value[word]) for word in ("rate", "packetoverhead") if value.get(word)}
    elif value is None or value is True:
        node.words[known.get(name, name)] = 1
    elif isinstance(value, str | int | float) and value is not False:
        # dualpi2 says in the name what its number counts.
        node.words[known.get(name, name)] = f"{value}p" if name.endswith("-pkts") else value


def _json_statistics(item: Mapping[str, Any]) -> list[str]:
    counts = [(name, value) for name, value in item.items() if isinstance(value, int) and not isinstance(value, bool)]
    said = [f"{name} {value}" for name, value in counts if name not in _PLACES]
    return [" ".join(said[i : i + 8]) for i in range(0, len(said), 8)] if "bytes" in item else []
