"""The file that repeats a comparison or a sweep: it names copies of files, those of laws and data with their digests.

A resolved scenario does as much for one run. Here the tables are as the author wrote them, before anything was laid
over anything, so that tables of round-trip times and stacks are files too.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aqmlab import files
from aqmlab.engine import Tree
from aqmlab.laws import brought, forms
from aqmlab.results import store
from aqmlab.scenario import FILE_KEYS, QUEUES
from aqmlab.sweep.axes import value_text

DIGESTED = ("law", "vectors", "demands", "packets", "trace", "reverse_trace")
"""Keys whose files the engine takes with their digest; what is in others becomes part of a resolved scenario."""


def keep_named_files(tree: Tree, origin: str, folder: Path) -> Tree:
    """The tables of a file at `origin` as they are to stand in `folder`, with copies there of the files they name."""
    return _Keeping(Path(origin).parent, folder, not _may_lose_a_law(tree)).tables(tree)


class _Keeping:
    def __init__(self, home: Path, folder: Path, names_laws: bool) -> None:
        """`names_laws` lets a kind that is the file of a law become the law's name, with the file beside it."""
        self._home, self._folder, self._names_laws = home, folder, names_laws

    def tables(self, table: Mapping[str, Any]) -> Tree:
        if _is_short(table):
            return self._axis(table)
        found: Tree = {}
        for key, item in table.items():
            found |= self._entry(key, item)
        return found

    def _entry(self, key: str, item: Any) -> Tree:
        """A key with its value, and what else there has to be in its place."""
        above, dot, last = key.rpartition(".")
        if isinstance(item, str) and last in (*QUEUES, "kind") and forms.is_file(item):
            file, sha256, is_fair = self._copy(item)
            if (name := brought.named(sha256, is_fair)) is None or not self._names_laws:
                return {key: self._text(last, item)}
            law = {"file": file, "sha256": sha256}
            return {key: name, f"{above}{dot}law": law} if last == "kind" else {key: {"kind": name, "law": law}}
        return {key: self._value(last, item)}

    def _value(self, last: str, item: Any) -> Any:
        if isinstance(item, Mapping):
            return self.tables(item)
        if isinstance(item, list):
            return [self._value(last, entry) for entry in item]
        return self._text(last, item) if isinstance(item, str) else item

    def _text(self, last: str, item: str) -> Any:
        """What a key has that may name a file; a stack is called what its file is, which therefore keeps its name."""
        is_stack = last == "stack"
        is_law = last in (*QUEUES, "kind") and forms.is_file(item)
        if not is_law and (last not in FILE_KEYS or (is_stack and not item.endswith(".toml"))):
            return item
        file, sha256, is_fair = self._copy(item, is_stack)
        if last in DIGESTED and sha256 and not is_fair:
            return {"file": file, "sha256": sha256}
        return str(Path(file).with_name(f"{forms.FAIR}{Path(file).name}")) if is_fair and sha256 else file

    def _copy(self, name: str, is_stack: bool = False) -> tuple[str, str, bool]:
        """What the copy of a file is called, its digest, and whether its law is asked for under fair queueing."""
        source, is_fair = forms.meant(self._home / name)
        if not source.is_file():
            return name, "", is_fair  # what no run has missed: a key that a variant or a setting replaces
        sha256 = hashlib.sha256(files.content(source, files.VECTORS)).hexdigest()
        kept = f"{sha256[:12]}/{source.name}" if is_stack else store.kept_name(source, sha256)
        (self._folder / store.FILES / kept).parent.mkdir(parents=True, exist_ok=True)
        store.copy(source, self._folder / store.FILES / kept)
        return f"{store.FILES}/{kept}", sha256, is_fair

    def _axis(self, table: Mapping[str, Any]) -> Tree:
        """An axis of a grid in short; with its values written out where these name files, by which they were called."""
        key, values = str(table["key"]), table["values"]
        settings = [self._entry(key, item) for item in values]
        if settings == [{key: item} for item in values]:
            return dict(table)
        texts = [value_text(item) for item in values]
        names = table.get("names", [text.lower() for text in texts])
        labels = table.get("labels", names if "names" in table else texts)
        rest = {name: item for name, item in table.items() if name not in ("key", "values", "names", "labels")}
        rows = zip(names, labels, settings, strict=True)
        return {**rest, "value": [{"name": name, "label": label, "set": said} for name, label, said in rows]}


def _may_lose_a_law(tree: Tree) -> bool:
    """Whether a kind alone may be set over a law that a kind stands for, so that no other key may stand for it."""
    kinds = list(_kinds(tree, {}))
    laws, others = ([place for place, is_law in kinds if is_law is wanted] for wanted in (True, False))
    return any(all(law[one] == other[one] for one in law.keys() & other.keys()) for law in laws for other in others)


def _kinds(item: Any, place: Mapping[int, int]) -> Iterator[tuple[Mapping[int, int], bool]]:
    """Kinds that are files of laws, True, and kinds set alone that are none; each with its place.

    Of grids, variants and the values of an axis there is one at a time: a place says of each such list which.
    """
    if isinstance(item, list):
        for entry in item:
            yield from _kinds(entry, place)
    if not isinstance(item, Mapping):
        return
    for key, entry in item.items():
        if isinstance(entry, list) and key in ("grid", "variant", "value"):
            for k, one in enumerate(entry):
                yield from _kinds(one, {**place, id(entry): k})
        else:
            yield from _kinds(entry, place)
            yield from _kind(key, entry, place)
    if _is_short(item):
        for k, entry in enumerate(item["values"]):
            yield from _kind(item["key"], entry, {**place, id(item["values"]): k})


def _kind(key: str, item: Any, place: Mapping[int, int]) -> Iterator[tuple[Mapping[int, int], bool]]:
    *above, last = key.split(".")
    if not isinstance(item, str) or last not in (*QUEUES, "kind"):
        return
    if forms.is_file(item):
        yield place, True
    elif last == "kind" and above and above[-1] in QUEUES:
        yield place, False


def _is_short(table: Mapping[str, Any]) -> bool:
    """Whether it is an axis in short: one dotted key, and what that is set to."""
    return isinstance(table.get("key"), str) and isinstance(table.get("values"), list)
