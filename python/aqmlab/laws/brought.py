"""Files of laws and policies: which may be loaded, and the laws that they have brought to the engine.

Code runs when somebody asked for it: the user names a file on the command line or in Python, or says `--allow-code` for
what a scenario names; in Python `allow_code`, for that call alone. A file is read once; what is loaded is what was
read, and goes by its digest from then on.
"""

import dataclasses
import functools
import hashlib
import os
import re
import sys
import tempfile
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from aqmlab import arguments, engine, files, links
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.laws import aside, compiled, forms, holding, imported, interpreted, patience, policy, table
from aqmlab.laws.declared import Declaration
from aqmlab.laws.forms import ENDINGS, is_file
from aqmlab.laws.straight import is_straight
from aqmlab.laws.watched import Watched

EXPORTS = "a shared library that exports aqmlab_law_table or aqmlab_discipline_table"
_EXPECTED = {
    r"ticks every": "tick_param = -1 where no parameter says how often, or the number of one that does and tick_ns = 0",
    r"outside the state": "a multiple of 8, at least 8 below state_bytes",
    r"cannot open shared object file": (
        "libraries that the loader finds from any folder: a copy of this one is loaded, and $ORIGIN is that of the copy"
    ),
    r"ELF|too short|aqmlab_law_table": EXPORTS,
}
"""What is expected of a library by what the engine or the loader says of it, where they do not say so themselves."""
QUEUES = ("qdisc", "reverse_qdisc")

COMPILED, INTERPRETED, LIBRARY, POLICY = "compiled", "interpreted", "library", "policy"


@dataclasses.dataclass(frozen=True)
class Brought:
    """The law of a file."""

    path: Path
    sha256: str
    how: str
    """`compiled` and `interpreted` Python, a `library`, or a `policy`."""
    built_with: str
    rows: tuple[dict[str, Any], ...]
    """Its rows in the registry: alone and, of a law, under fair queueing."""
    runs_apart: bool
    """Whether its runs need a process of their own: it could end this one, never end, or hold up the interpreter."""
    modules: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Modules of the user's own that its file imports, with their digests."""

    @property
    def name(self) -> str:
        """What the law is called."""
        return str(self.rows[0]["name"])

    @property
    def kind(self) -> str:
        """A `law`, or a `discipline`, which holds packets."""
        return str(self.rows[0]["kind"])

    def as_dict(self) -> dict[str, Any]:
        """For a manifest."""
        return {
            "name": self.name,
            "file": self.path.name,
            "sha256": self.sha256,
            "how": self.how,
            "built_with": self.built_with,
            **({"modules": dict(self.modules)} if self.modules else {}),
        }


_BROUGHT: dict[str, Brought] = {}
"""By the digest of the file, the last one last."""
_PLACES: dict[str, str] = {}
"""Paths that the engine knows, with the digest of what it knows by each: the last that was brought from there."""
_ALLOWED: ContextVar[frozenset[str]] = ContextVar("_ALLOWED", default=frozenset())
"""What may run, by name and by path: for as long as the call lasts in which it was allowed, see `scoped`."""
_EVERY = "every file"

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


@contextmanager
def permission() -> Iterator[None]:
    """What is allowed within is not allowed afterwards."""
    before = _ALLOWED.set(_ALLOWED.get())
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def scoped(call: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """The function, of which every call keeps to itself what it allows; its `allow_code` allows all."""

    @functools.wraps(call)
    def called(*asked: Asked.args, **words: Asked.kwargs) -> Answer:
        is_allowed = words.get("allow_code", False)
        arguments.truths(allow_code=is_allowed)
        with permission():
            if is_allowed:
                allow_all()
            return call(*asked, **words)

    return called


def _allow(*names: str) -> None:
    _ALLOWED.set(_ALLOWED.get() | set(names))


def allow_all() -> None:
    """Whatever a scenario names may run."""
    _allow(_EVERY)


def allow(path: Path) -> None:
    """The user has named this file: it may run."""
    _allow(str(files.end_of_links(path)))


def allow_set(changes: Mapping[str, Any]) -> None:
    """What the user has set of a scenario, by dotted key: disciplines that are code may run, in whatever folder."""
    for key, value in changes.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Mapping):
                allow_set(one)
            elif isinstance(one, type):
                raise no_class(one)
            elif key.rpartition(".")[2] in (*QUEUES, "kind", "law"):
                allow_in((one,))


def allow_in(values: Iterable[Any]) -> None:
    """Values by which the user has named disciplines: those that are code may run, in whatever folder."""
    for value in values:
        if isinstance(value, Mapping):
            allow_in(value.values())
        elif is_file(value):
            _allow(str(value))


def no_class(given: type) -> BadInput:
    """The complaint about a class in the place of the file that has it."""
    return BadInput(f"{given.__name__}: is a class; expected the name of its file, as in 'my_law.py'")


def named_in(tree: Tree) -> list[Any]:
    """What the disciplines of a scenario name as code: files, or tables of a file and its digest."""
    found = []
    for link in links.of(tree).values():
        for qdisc in (link.get(key) for key in QUEUES) if isinstance(link, Mapping) else ():
            one = qdisc.get("law", qdisc.get("kind")) if isinstance(qdisc, Mapping) else qdisc
            if is_file(one) or isinstance(one, Mapping):
                found.append(one)
    return found


def of(tree: Tree) -> list[Brought]:
    """The laws of a resolved scenario, each once."""
    digests = dict.fromkeys(str(one["sha256"]) for one in named_in(tree) if isinstance(one, Mapping))
    return [_BROUGHT[sha256] for sha256 in digests if sha256 in _BROUGHT]


def bring(tree: Tree, origin: str, is_own: bool = False) -> None:
    """Brings the laws that a scenario names and that may run; the engine complains of the others."""
    _forget_changed()
    for one in named_in(tree):
        stated = str(one.get("sha256")) if isinstance(one, Mapping) else None
        name = str(one.get("file")) if isinstance(one, Mapping) else str(one)
        path = Path(origin).parent / name
        is_known = stated in _BROUGHT
        if is_known and (_BROUGHT[str(stated)].path == path or not files.is_file(path)):
            continue
        is_allowed = is_own or _may_run(name, path)
        if is_known and not is_allowed:
            continue
        if not is_allowed and name in _ALLOWED.get():
            raise BadInput(f'{origin}: law: "{name}": {_not_here(name, path)}')
        if not is_allowed and str(path) in _PLACES:
            # The engine knows it from a call that was allowed to run it, and would not complain.
            raise BadInput(
                f'{origin}: law: "{name}": names code, which is not run unasked: expected --allow-code, or its name on '
                "the command line (in Python allow_code=True)"
            )
        if is_allowed:
            found = of_file(path)
            if stated is not None and found.sha256 != stated:
                raise BadInput(
                    f"{origin}: law.file: {name}: has other content than the law that is asked for; "
                    f"expected the file of SHA-256 {stated[:12]}"
                )


def _may_run(name: str, path: Path) -> bool:
    """Whether a scenario that calls the file of this path so may have its law."""
    allowed, here = _ALLOWED.get(), forms.meant(Path(name))[0]
    # A name that was set means the file where the user is, if there is one, and no other that is called so.
    is_meant = not files.is_file(here) or files.end_of_links(here) == files.end_of_links(forms.meant(path)[0])
    return not allowed.isdisjoint((_EVERY, str(files.end_of_links(path)))) or (name in allowed and is_meant)


def _not_here(name: str, path: Path) -> str:
    """Why a name that the user has set is not the file of that name where the user is."""
    from_there = os.path.relpath(Path(name).resolve(), path.parent.resolve())
    what = "a file that is not run unasked" if files.is_file(forms.meant(path)[0]) else "no file"
    return f"is looked for beside the scenario, where it is {what}; expected {from_there} for the one that is here"


def under_fair_queueing(tree: Tree, origin: str) -> dict[str, Any]:
    """What says the same as `fq_` before the file of a law in a scenario: dotted keys and their values.

    Only of laws that may run, whose names have to be known; the engine complains of the others.
    """
    said: dict[str, Any] = {}
    for link, own in links.of(tree).items():
        for key in QUEUES if isinstance(own, Mapping) else ():
            qdisc = own.get(key)
            word = qdisc.get("kind") if isinstance(qdisc, Mapping) else qdisc
            if not isinstance(word, str) or not is_file(word) or not Path(word).name.startswith(forms.FAIR):
                continue
            path = Path(origin).parent / word
            file, is_fair = forms.meant(path)
            named = str(Path(word).with_name(file.name))
            if not is_fair or not (_may_run(word, path) or _may_run(named, file)):
                continue
            where = f"{links.key(tree, link)}.{key}"
            try:
                _, row = form_of(path)
            except BadInput as error:
                raise BadInput(f"{origin}: {where}: {error}") from None
            if isinstance(qdisc, Mapping) and "law" in qdisc:
                raise BadInput(
                    f"{origin}: {where}.law: {qdisc['law']!r}: the kind has the file of a law already; "
                    f'expected kind = "{row["name"]}" beside it, or no law'
                )
            allow(file)
            form = {"kind": row["name"], "law": named}
            if isinstance(qdisc, Mapping):
                said |= {f"{where}.{name}": value for name, value in form.items()}
            else:
                said[where] = form
    return said


def form_of(path: Path) -> tuple[Brought, dict[str, Any]]:
    """Brings the law that a path stands for, and finds its row in the registry: of `fq_sqd.py` that of `fq_sqd`."""
    file, is_fair = forms.meant(path)
    if is_fair and not files.is_file(file):
        raise BadInput(f"{path}: no such file, and no {file.name} either; expected the file of a law, or fq_ before it")
    found = of_file(file)
    if not is_fair:
        return found, found.rows[0]
    if len(found.rows) == 1:
        lacks = forms.without_fair_queueing(found.name, found.kind == "discipline")
        raise BadInput(f"{path}: {lacks}; expected {file.name}")
    return found, found.rows[1]


def of_file(path: Path) -> Brought:
    """Brings the law of a file; raises `BadInput` where it is none."""
    if path.suffix not in ENDINGS:
        raise BadInput(f"{path}: is no law; expected a file whose name ends in {', '.join(ENDINGS)}")
    content = files.content(path, files.LAW)
    sha256 = hashlib.sha256(content).hexdigest()
    _forget_changed()
    if sha256 in _BROUGHT and _PLACES.get(str(path)) == sha256:
        return _BROUGHT[sha256]
    modules: Mapping[str, str] = {}
    if path.suffix == ".so":
        how, apart, said = LIBRARY, True, _library(content, path, sha256)
    elif path.suffix == policy.ENDING:
        how, apart, said = POLICY, True, policy.bring(content, path, sha256)
        said["built_with"] = policy.built_with()
    else:
        how, apart, said = _python(declaration(content, path), path, sha256)
        modules = imported.modules_of(content)
    _BROUGHT.pop(sha256, None)
    found = _BROUGHT[sha256] = Brought(
        path, sha256, how, str(said["built_with"]), tuple(said["disciplines"]), apart, modules
    )
    _PLACES[str(path)] = sha256
    return found


def _forget_changed() -> None:
    """Forgets laws that import modules, if any of these has changed since."""
    if imported.forget_changed():
        for sha256 in [sha256 for sha256, law in _BROUGHT.items() if law.modules]:
            del _BROUGHT[sha256]


def as_it_is(law: Brought, seen: Watched | None = None) -> Brought:
    """Brings a compiled law once more, under another name, as one that runs in the interpreter."""
    return _once_more(law, INTERPRETED, seen)


def as_compiled(law: Brought, seen: Watched) -> Brought:
    """Brings a compiled law once more, under another name, as one whose fields are seen after each call."""
    return _once_more(law, COMPILED, seen)


def _once_more(law: Brought, how: str, seen: Watched | None) -> Brought:
    declared = declaration(files.content(law.path, files.LAW), law.path)
    twin = dataclasses.replace(declared, name=f"{declared.name}_{how}", compiled=how == COMPILED)
    sha256 = hashlib.sha256(f"{law.sha256} {how}{'' if seen is None else ' watched'}".encode()).hexdigest()
    how, apart, said = _python(twin, law.path, sha256, seen)
    found = _BROUGHT[sha256] = Brought(
        law.path, sha256, how, str(said["built_with"]), tuple(said["disciplines"]), apart
    )
    return found


def _python(
    declared: Declaration, path: Path, sha256: str, seen: Watched | None = None
) -> tuple[str, bool, dict[str, Any]]:
    """Brings what a file of Python declares: how, whether its runs need a process of their own, the engine's answer."""
    how, kind = (COMPILED, compiled) if declared.compiled else (INTERPRETED, interpreted)
    shown = declared
    if seen is not None and not declared.compiled:  # there fields are in an object, and those that are drawn in a state
        shown = dataclasses.replace(declared, gauges=dict.fromkeys(declared.fields, ""))
    if declared.compiled:
        functions = compiled.functions(declared)
    else:
        functions = (holding if declared.holds else interpreted).functions(shown, sha256)
    if seen is not None:
        functions = seen.watch(declared, functions)
    at = table.address_of(declared, functions, kind.built_with())
    bring = engine.bring_discipline if declared.holds else engine.bring_table
    return how, not (declared.compiled and is_straight(declared)), bring(at, path, sha256)


def _library(content: bytes, path: Path, sha256: str) -> dict[str, Any]:
    # A copy: a library that is built anew at the same place would be taken for the one that is loaded already.
    with tempfile.NamedTemporaryFile(suffix=".so") as copy:
        copy.write(content)
        copy.flush()
        patience.try_library(copy.name, path)
        try:
            return engine.bring_library(copy.name, path, sha256)
        except BadInput as error:
            why = str(error).replace(f"{copy.name}: ", "").removeprefix(f"{path}: ")
            hint = next((hint for words, hint in _EXPECTED.items() if re.search(words, why)), "")
            more = f"; expected {hint}" if hint and "expected" not in why else ""
            raise BadInput(f"{path}: {why}{more}") from None


def declaration(content: bytes, path: Path) -> Declaration:
    """The law that a file of Python declares; runs the file."""
    module = types.ModuleType(f"aqmlab_law_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        with aside.printed(), patience.ends_in_time(path):
            exec(compile(content, str(path), "exec"), module.__dict__)
    except BadInput as error:
        if str(path) in str(error):
            raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        raise BadInput(f"{path}:{lines[-1]}: {error}" if lines else f"{path}: {error}") from None
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno}: {error.msg}; expected Python") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"{path}: {interpreted.told(error)}; expected a file that can be imported") from None
    own = {item: None for item in vars(module).values() if isinstance(item, type) and "__aqmlab_law__" in vars(item)}
    # A law from which another one is derived is a part of that.
    found = [one for one in own if not any(issubclass(other, one) for other in own if other is not one)]
    if len(found) != 1:
        raise BadInput(
            f"{path}: declares {len(found)} laws; expected one class with @aqmlab.law or @aqmlab.discipline, and beside"
            " it only those from which it is derived"
        )
    declared: Declaration = vars(found[0])["__aqmlab_law__"]
    return declared


def disciplines() -> list[dict[str, Any]]:
    """The rows of all laws that were brought; of one name the last."""
    return list({str(row["name"]): row for found in _BROUGHT.values() for row in found.rows}.values())


def called(kind: str) -> Brought | None:
    """The law or discipline of this name that was brought last, alone or under fair queueing."""
    return next((found for found in reversed(_BROUGHT.values()) if kind in (row["name"] for row in found.rows)), None)


def named(sha256: str, is_fair: bool) -> str | None:
    """What the law of a file that was brought is called, alone or under fair queueing."""
    found = _BROUGHT.get(sha256)
    if found is None or (is_fair and len(found.rows) == 1):
        return None
    return str(found.rows[is_fair]["name"])


def bring_all(specs: Iterable[str]) -> None:
    """Brings the laws whose files the words of a comparison name, so that names stand for them wherever they are."""
    for spec in specs:
        spelled(spec)


def spelled(words: str) -> str:
    """Words of a comparison in which laws stand by their names instead of their files, which are brought."""
    parts = words.split()
    for at, part in enumerate(parts):
        if is_file(part):
            law, row = form_of(Path(part))
            path, _ = forms.meant(Path(part))
            allow(path)
            # Of two laws of one name, and of two files of one content, these words mean this one.
            _BROUGHT.pop(law.sha256)
            _BROUGHT[law.sha256] = dataclasses.replace(law, path=path)
            parts[at] = str(row["name"])
    return " ".join(parts)


def said(laws: Iterable[Brought]) -> str:
    """The laws with their files, as a complaint names them."""
    return " and ".join(f"{law.name} ({law.path})" for law in laws)


def runs_apart(resolved: Resolved) -> bool:
    """Whether a run is made in a process of its own, because one of its laws needs that."""
    return any(found.runs_apart for found in of(resolved.scenario))


def modules_sha256(tree: Tree) -> str:
    """A digest of the modules that the laws of a resolved scenario import; an empty one if they import none."""
    return imported.together({f"{law.sha256} {name}": own for law in of(tree) for name, own in law.modules.items()})


def handed_on(tree: Tree) -> list[dict[str, str]]:
    """What a process of its own needs to bring the laws of a resolved scenario."""
    return [
        {"path": str(found.path.resolve()), "sha256": found.sha256, "modules": imported.together(found.modules)}
        for found in of(tree)
    ]


def take_over(handed: Iterable[Mapping[str, str]]) -> None:
    """Brings what another process has handed on."""
    for one in handed:
        found = of_file(Path(one["path"]))
        if found.sha256 != one["sha256"]:
            raise BadInput(f"{one['path']}: has changed while runs were under way; start again")
        if imported.together(found.modules) != one["modules"]:
            raise BadInput(f"{one['path']}: imports what has changed while runs were under way; start again")
