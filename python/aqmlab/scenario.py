"""Scenarios on the Python side: where their text comes from, and the edits that variants and calibration make.

Checking is the engine's alone; here a scenario is a tree of tables that is edited, written as text and handed over.
"""

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from aqmlab import arguments, engine, files, links, toml_text, units
from aqmlab.engine import Load, Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.json_files import at
from aqmlab.laws import brought, forms

LENGTHS = ("duration", "warmup", "cooldown")
"""The keys of a scenario that say how long a run is, and what of it is not measured."""

USUAL_DURATION = "300s"
"""Of a scenario that does not say."""
WARMUPS_A_RUN = 5
"""The warm-up of a scenario that does not say is this part of its duration."""

DEMANDS = (*LENGTHS, "path", "traffic")
"""The keys of a scenario that say what is demanded and when it is measured."""

QUEUES = ("qdisc", "reverse_qdisc")
"""The keys of a link's disciplines."""

ENDLESS = "endless"
"""The size of a transfer that never ends, which that of `bulk` is unless told otherwise."""

LONGEST_NAME = 200
"""Bytes of a result folder's name: what is not finished yet is called by it and something more."""

ScenarioLike = str | Path | Mapping[str, Any]
"""A path, the text of a scenario, or its tables."""


FILE_KEYS = ("law", "table", "vectors", "demands", "packets", "trace", "reverse_trace", "file", "stack")
"""The keys of a scenario that name files; `stack` does where its value ends in .toml."""


_LINE_OF_A_FILE = re.compile(r"(.+?):\d+: ")
_UNKNOWN = re.compile(r'(?P<said>qdisc(?:\.kind)? = "(?P<name>[^"]*)": )expected one of pfifo, ')
_UNREAD = re.compile(
    r"(?P<said>(?P<key>[\w.-]+) = .*: )(?:cannot be read|expected a file that can be read): (?P<why>.*)"
)


@dataclass(frozen=True)
class Source:
    """A scenario as its author gave it."""

    tree: Tree
    origin: str
    text: str | None = None
    """What the author wrote, if the tree is that with `settings`: complaints then name its lines."""
    settings: tuple[tuple[str, str], ...] = ()
    """Dotted keys set since, with their values in TOML."""
    file: str | None = None
    """The file whose lines those of the text are, where `origin` says more than its name."""

    def with_changes(self, changes: Mapping[str, Any]) -> "Source":
        """The scenario with some dotted keys set."""
        if not changes:
            return self
        changes = with_tables(changes)
        tree, left_out = _with_settings(self.tree, changes, self.origin)
        settings = tuple((key, self._written(key, item)) for key, item in changes.items())
        return self.with_tree(tree) if left_out else replace(self, tree=tree, settings=self.settings + settings)

    def _written(self, key: str, item: Any) -> str:
        try:
            return toml_text.value(item)
        except BadInput as error:
            raise BadInput(f"{self.origin}: {key}: {error}") from None

    def with_tree(self, tree: Tree) -> "Source":
        """Other tables by the same author, whose text says something else."""
        return replace(self, tree=tree, text=None, settings=())

    def is_said_by(self, text: str) -> bool:
        """Whether a text with the settings says what the tree does."""
        named = {key: self.tree[key] for key in ("name",) if key in self.tree}
        try:
            tree = {**named, **in_tables(toml_text.loads(text, self.origin))}
        except BadInput:
            return False
        for key, written in self.settings:
            tree = with_key(tree, key, tomllib.loads(f"value = {written}")["value"], self.origin)
        return tree == self.tree

    def resolve(self) -> Resolved:
        """Has the engine check it."""
        name = self.tree.get("name")
        if isinstance(name, str) and (not name.strip() or any(unicodedata.category(one) == "Cc" for one in name)):
            expected = "without control characters" if name.strip() else "that is not empty, or no name"
            raise BadInput(f"{self.origin}: name: {name!r}: expected a text {expected}")
        asked = self.with_changes(brought.under_fair_queueing(self.tree, self.origin))
        text = toml_text.dumps(asked.tree) if asked.text is None else asked.text
        brought.bring(asked.tree, self.origin)
        try:
            resolved = engine.resolve(text, self.origin, () if asked.text is None else asked.settings)
        except BadInput as error:
            raise BadInput(self._placed(self._by_its_file(str(error)))) from None
        loads = tuple(replace(load, place=asked._place_of(load)) for load in resolved.loads)
        return replace(resolved, loads=loads)

    def _place_of(self, load: Load) -> str:
        """Where a load is asked for: the author's line, or none where the line is not the author's."""
        _, colon, line = load.place.rpartition(":")
        return f"{self.file or self.origin}:{line}" if colon and self.text is not None else ""

    def _placed(self, complaint: str) -> str:
        """A complaint of the engine with the author's line, or with none where the line is not the author's."""
        if complaint.startswith("override: "):
            return f"{self.origin}: {self._not_beside(complaint.removeprefix('override: '))}"
        line = re.compile(rf"{re.escape(self.origin)}:(\d+): ").match(complaint)
        if line is None:
            return self._found_beside(complaint)
        place = self.origin if self.text is None else f"{self.file or self.origin}:{line[1]}"
        return f"{place}: {self._not_beside(complaint[line.end() :])}"

    def _by_its_file(self, complaint: str) -> str:
        """A complaint about a discipline that nobody knows, of which there may be a file."""
        unknown = _UNKNOWN.search(complaint)
        if unknown is None:
            return complaint
        hint = forms.by_its_file(unknown["name"], Path(self.origin).parent) or _in_a_table(unknown["name"])
        return f"{complaint[: unknown.end('said')]}{hint}" if hint else f"{complaint}; {forms.NAMED}"

    def _found_beside(self, complaint: str) -> str:
        """A complaint about a line of a file that the scenario names, by the path that leads to it from here."""
        line = _LINE_OF_A_FILE.match(complaint)
        if line is None or not files.is_file(path := Path(self.origin).parent / line[1]):
            return complaint
        return f"{path}{complaint[line.end(1) :]}"

    def _not_beside(self, complaint: str) -> str:
        """A complaint about a file that cannot be read, with the path at which it was looked for from here."""
        found = _UNREAD.fullmatch(complaint)
        named = None if found is None else at(self.tree, found["key"])
        name = named.get("file") if isinstance(named, Mapping) else named
        if found is None or not isinstance(name, str):
            return complaint
        return f"{found['said']}{Path(self.origin).parent / name} cannot be read: {found['why']}"


def _in_a_table(words: str) -> str:
    """What to write for a discipline in tc's words, with its parameters behind the name; nothing for other words."""
    kind, *rest = words.split()
    known = {name: row for row in engine.disciplines() for name in (row["name"], *row["aliases"])}
    if not rest or kind not in known:
        return ""
    flags, table = {param["name"] for param in known[kind]["params"] if param["kind"] == "flag"}, {"kind": kind}
    while rest:
        key = rest.pop(0)
        written = "true" if key in flags and rest[:1] not in (["true"], ["false"]) else rest.pop(0) if rest else "..."
        table[key] = parse_setting(f"{key}={written}")[1]
    return f"expected its name alone, or a table: {toml_text.value(table)}"


def read(scenario: ScenarioLike) -> Source:
    """Reads a scenario from a path, from text (it holds a line break or `=`), or from tables."""
    if isinstance(scenario, Mapping):
        arguments.values(scenario, "<scenario>")
        return Source(in_tables(copied(dict(scenario))), "<scenario>")
    if isinstance(scenario, str | Path):
        arguments.text(str(scenario), "scenario")
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return Source(in_tables(toml_text.loads(scenario, "<scenario>")), "<scenario>", scenario)
    if not isinstance(scenario, str | Path):
        raise BadInput(f"{scenario!r}: is no scenario; expected a path, a text with line breaks, or tables")
    path = Path(scenario)
    if forms.is_file(path.name):
        raise BadInput(f"{path}: is the file of a law; expected {files.SCENARIO.what}, whose link.qdisc may name it")
    text = files.text(path, files.SCENARIO)
    tree = in_tables(toml_text.loads(text, str(path)))
    if "grid" in tree:
        verb, what = ("study", path.parent) if "profiles" in tree else ("sweep", path)
        raise BadInput(f"{path}: grid: this is a {verb}; expected `aqmlab {verb} {what}`, which makes all of its runs")
    tree.setdefault("name", path.stem)
    return Source(tree, str(path), text)


def in_tables(tree: Mapping[str, Any]) -> Tree:
    """The scenario with a table for each discipline that is said by its name alone, as in `qdisc = "codel"`."""
    result = dict(tree)
    if isinstance(tree.get(links.ONE), Mapping):
        result[links.ONE] = _link_in_tables(tree[links.ONE])
    if isinstance(tree.get(links.MANY), Mapping):
        every = tree[links.MANY].items()
        result[links.MANY] = {
            name: _link_in_tables(item) if isinstance(item, Mapping) else item for name, item in every
        }
    return result


def _link_in_tables(link: Mapping[str, Any]) -> Tree:
    return {key: _as_table(item) if key in QUEUES else item for key, item in link.items()}


def with_tables(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys and their values, with a table for each discipline that is said by its name alone."""
    return {key: _as_table(item) if _is_queue(key) else item for key, item in changes.items()}


def _is_queue(key: str) -> bool:
    """Whether a dotted key is that of a discipline: `link.qdisc`, `links.core.qdisc`."""
    *table, last = key.split(".")
    return last in QUEUES and (table == [links.ONE] or (len(table) == 2 and table[0] == links.MANY))


def _as_table(item: Any) -> Any:
    return {"kind": item} if isinstance(item, str) else item


def parse_setting(text: str) -> tuple[str, Any]:
    """Reads `key=value` as given to `--set`: the value is TOML, or else taken as text (`24p`, `98mbit`)."""
    key, equals, written = text.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"--set {text}: expected key=value, as in --set link.qdisc.qref=24p")
    if len(key.split(".")) > arguments.DEEPEST:
        raise BadInput(f"--set {text}: expected a key of at most {arguments.DEEPEST} parts")
    try:
        return key.strip(), tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), written.strip()
    except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
        raise BadInput(f"--set {text}: expected a value that a scenario can have") from None


T = TypeVar("T")


def copied(item: T) -> T:
    """Tables and lists anew, the values in them the same: of thousands of variants each has its own."""
    anew: T = _anew(item)
    return anew


def _anew(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _anew(entry) if isinstance(entry, dict | list) else entry for key, entry in item.items()}
    if isinstance(item, list):
        return [_anew(entry) if isinstance(entry, dict | list) else entry for entry in item]
    return dict(item) if isinstance(item, Mapping) else item


_ONE_FOR_THE_OTHER = {"load": "users", "users": "load"}


def stands_for(key: str) -> str | None:
    """Of the users of a block of traffic the key of its load, and the other way round: one stands for the other."""
    first, _, rest = key.partition(".")
    number, _, last = rest.partition(".")
    other = _ONE_FOR_THE_OTHER.get(last)
    return f"{first}.{number}.{other}" if first == "traffic" and other is not None else None


def superseded(settings: Mapping[str, Any]) -> list[str]:
    """The dotted keys that settings leave out: users of a block whose load they set, and the other way round."""
    return [other for key in settings if (other := stands_for(key)) is not None and other not in settings]


def settings_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys to be set, and others laid over them."""
    left_out = superseded(above)
    return {**{key: item for key, item in below.items() if key not in left_out}, **above}


def with_settings(tree: Tree, settings: Mapping[str, Any], origin: str = "<scenario>") -> Tree:
    """The tables with dotted keys set, and without what these stand for."""
    return _with_settings(tree, settings, origin)[0]


def _with_settings(tree: Tree, settings: Mapping[str, Any], origin: str) -> tuple[Tree, bool]:
    """Also whether something was left out."""
    for key, item in settings.items():
        tree = with_key(tree, key, item, origin)
    left_out = False
    for key in superseded(settings):
        block, _, last = key.rpartition(".")
        left_out |= at(tree, block).pop(last, None) is not None  # a copy since its other key was set
    return tree, left_out


def with_key(tree: Tree, key: str, item: Any, origin: str = "<scenario>") -> Tree:
    """The tables with a dotted key set; numbers count the entries of a list: `traffic.0.users`.

    What lies beside the key is shared by both, so that thousands of points of one scenario are little more than one.
    """
    result = dict(tree)
    here: Any = result
    *parents, last = key.split(".")
    for position, step in enumerate(parents):
        place: Any = _index(here, step, key, origin) if isinstance(here, list) else step
        below = here[place] if isinstance(here, list) else here.get(step, {})
        if not isinstance(below, dict | list):
            raise BadInput(f"{origin}: {key}: {'.'.join(parents[: position + 1])} is a value, expected a table")
        here[place] = below.copy()
        here = here[place]
    here[_index(here, last, key, origin) if isinstance(here, list) else last] = item
    return result


def _index(entries: Sequence[Any], step: str, key: str, origin: str) -> int:
    if not (step.isascii() and step.isdecimal()) or int(step) >= len(entries):
        there = f"a number from 0 to {len(entries) - 1}" if len(entries) > 1 else "0, the only one there is"
        raise BadInput(f"{origin}: {key}: {step!r}: expected {there}")
    return int(step)


def merged(base: Tree, change: Mapping[str, Any]) -> Tree:
    """`base` with the tables of `change` laid over it; a table with a `kind` replaces the old one whole.

    What neither has changed is shared with them.
    """
    result = dict(base)
    for name, item in change.items():
        old = result.get(name)
        if isinstance(item, Mapping) and isinstance(old, dict) and "kind" not in item:
            item = merged(old, item)
        result[name] = item
    return result


def with_users(tree: Tree, traffic: int, users: int) -> Tree:
    """The scenario where a block of traffic has this population instead of a load to be calibrated."""
    result = copied(tree)
    block = result["traffic"][traffic]
    block.pop("load", None)
    block["users"] = users
    return result


def kinds_without_exchanges(tree: Tree, block: int | None = None) -> list[str] | None:
    """The kinds of traffic, of all blocks or of one, where no exchange is ever completed; `None` where some may be.

    There are none over UDP, and what is endless never ends. The scenario may not have been checked yet.
    """
    blocks = tree.get("traffic")
    if not isinstance(blocks, list) or not all(isinstance(one, Mapping) for one in blocks):
        return None
    kinds = [str(one.get("kind")) for one in blocks]
    if block is not None and "homes" not in kinds:  # which stands for several
        blocks, kinds = blocks[block : block + 1], kinds[block : block + 1]
    ends = [
        one.get("size", ENDLESS) != ENDLESS if kind == "bulk" else kind not in engine.kinds_over_udp()
        for one, kind in zip(blocks, kinds, strict=True)
    ]
    return None if any(ends) else list(dict.fromkeys(kinds))


def changes_of(base: Tree, change: Mapping[str, Any], path: str = "") -> dict[str, Any] | None:
    """The dotted keys to set in `base` for what `merged` makes of it; None where a key cannot be written with dots."""
    result: dict[str, Any] = {}
    for name, item in change.items():
        if "." in name:
            return None
        old = base.get(name)
        if isinstance(item, Mapping) and isinstance(old, dict) and "kind" not in item:
            below = changes_of(old, item, f"{path}{name}.")
            if below is None:
                return None
            result |= below
        else:
            result[f"{path}{name}"] = item
    return result


def text_without(text: str, table: str) -> str:
    """The text with blank lines in place of `[[table]]` and its sub-tables, the other lines where they were.

    Lines within a text may look like the head of a table: whoever takes the answer asks what it says.
    """
    header = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_-]+)")
    own = re.compile(rf"\s*\[\[?\s*{re.escape(table)}\s*[.\]]")
    kept, inside = [], False
    for line in text.split("\n"):
        if header.match(line):
            inside = own.match(line) is not None
        kept.append("" if inside else line)
    # Lines are counted from the start: those at the end need not be there, and thousands of variants have many.
    return "\n".join(kept).rstrip("\n") + "\n"


def with_files_renamed(item: Any, renamed: Callable[[str, bool], str], key: str = "") -> Any:
    """The tables with other names for files; `renamed` is told the name, and whether it is that of a stack."""
    if isinstance(item, str):
        last = key.rpartition(".")[2]
        is_file = last in FILE_KEYS and (last != "stack" or item.endswith(".toml"))
        is_file = is_file or (last in ("kind", *QUEUES) and forms.is_file(item))
        return renamed(item, last == "stack") if is_file else item
    if isinstance(item, dict | Mapping):
        return {name: with_files_renamed(entry, renamed, name) for name, entry in item.items()}
    return [with_files_renamed(entry, renamed, key) for entry in item] if isinstance(item, list) else item


def with_files_called(item: Any, names: Mapping[tuple[str, str], str]) -> Any:
    """The tables with the names of files replaced, found by their old name and digest."""
    if isinstance(item, Mapping):
        if {"file", "sha256"} <= item.keys():
            return {**item, "file": names[item["file"], item["sha256"]]}
        return {key: with_files_called(entry, names) for key, entry in item.items()}
    return [with_files_called(entry, names) for entry in item] if isinstance(item, list) else item


def measured_window(tree: Mapping[str, Any]) -> tuple[float, float]:
    """Start and end of what is measured, seconds since the start of the run; lengths that are not given are those of
    the engine."""
    duration = units.seconds(tree.get("duration", USUAL_DURATION), "duration")
    warmup = units.seconds(tree["warmup"], "warmup") if "warmup" in tree else duration / WARMUPS_A_RUN
    return warmup, duration - units.seconds(tree.get("cooldown", "0s"), "cooldown")


def demand_digest(tree: Tree) -> str:
    """Two runs with the same demand digest and seed draw the same demands and can be compared pair by pair.

    It covers who asks for what over which paths in which window, and leaves out what says how demands are met: the
    links, which are crossed, their disciplines, and all of the hosts' TCP, in `[tcp]`, `[stacks]` and the blocks alike.
    TCP changes who asks for what only where connections are chosen from a set for a load: by what they can send in the
    measured window, which depends on the hosts' windows and segments. What a file is called is left out too, for the
    digest of its content stands beside it.
    """
    facts = {key: _without(tree.get(key), ("file", *ROUTES, *tcp_keys(tree))) for key in DEMANDS}
    hosts = [{**tree.get("tcp", {}), **block} for block in tree["traffic"]]
    chosen = [[each.get("window"), each.get("mss")] for each in hosts if "vectors" in each and "load" in each]
    return digest({**facts, "chosen": chosen})


ROUTES = ("route", "reverse_route")
"""Keys of a block of traffic that say which links it crosses."""


def tcp_keys(tree: Tree) -> set[str]:
    """The keys that say something of a block's TCP: a resolved scenario has each in `[tcp]` but `max_pacing_rate`."""
    return {"stack", "cc", "ecn", "max_pacing_rate", *tree.get("tcp", {})}


def _without(item: Any, keys: Sequence[str]) -> Any:
    if isinstance(item, Mapping):
        return {key: _without(entry, keys) for key, entry in item.items() if key not in keys}
    return [_without(entry, keys) for entry in item] if isinstance(item, list) else item


def digest(facts: Any) -> str:
    """SHA-256 of a value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def slug(name: str) -> str:
    """A name as a folder is called: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
