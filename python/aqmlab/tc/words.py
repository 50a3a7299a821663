"""A discipline in words, as `compare` takes it: `fq_codel limit 1000 noecn`, `red limit 400000 avpkt 1000 burst 50`.

The words are tc's, by the table that `write` and `read` go by, and the names of aqmlab's parameters: `pi qref 24p`. A
value is tc's where tc would take it, else a scenario's: `fq_codel limit 1000` is a number of packets, `limit 12kb` one
of bytes; `pie alpha 2` is two sixteenths, `pie alpha 0.125` as many hertz. What no word says is the discipline's
default, its dialect too.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import engine, near
from aqmlab.engine import Tree
from aqmlab.errors import BadInput, doubt
from aqmlab.laws import brought, forms
from aqmlab.tc import meant, red, table
from aqmlab.tc import quantities as q
from aqmlab.tc.quantities import Raw
from aqmlab.tc.table import Choice, Flag, Row, Value, Word

Params = Mapping[str, Mapping[str, Any]]
"""The parameters of a discipline, as the registry has them, by name."""

PFIFO_FAST = "pfifo_fast"
"""The queue of a port that nobody gave another: drop-tail, as long as the port's txqueuelen."""

ECN = ("ecn", "noecn")

TIMES = (q.TIME, q.CODEL_TIME)
SHORT_US = 1000
"""Microseconds: nobody sets a discipline's times below it without a unit and means it."""

LENGTHS = ("limit", "min", "max")
"""Parameters that RED's others are computed from."""


def said(word: Word, words: Mapping[str, Raw], is_command: bool) -> Any:
    """What the words of tc say of one parameter, None where nothing; `ValueError` for a value that tc has not."""
    match word:
        case Value():
            raw = words.get(word.tc)
            if raw is None or (word.ours == "bandwidth" and raw == "unlimited"):
                return None
            return word.kind.from_command(str(raw)) if is_command else word.kind.from_tc(raw)
        case Flag():
            if word.tc in words:
                return True
            return False if word.off in words else None
        case Choice():
            named = words.get(word.json) if word.json else None
            by_json = {word.json_words.get(ours, tc): ours for ours, tc in word.words.items()}
            chosen = [ours for ours, tc in word.words.items() if words.get(tc) == 1]
            ours = by_json.get(str(named)) if isinstance(named, str) else next(iter(chosen), None)
            return {"true": True, "false": False}.get(str(ours), ours) if ours is not None else None


KNOWN = "a scenario file, a result folder, or one of aqmlab list disciplines"
"""What may stand where `aqmlab compare` takes words."""


def parse(spec: str, expected: str = KNOWN) -> Tree:
    """The `[link.qdisc]` that the words stand for; `BadInput` names the first that stands for nothing.

    `expected` says what may stand in place of a discipline that nobody knows.
    """
    first, *rest = spec.split() or [""]
    kind, row = _discipline(spec, first, rest, expected)
    if first == PFIFO_FAST:
        # A dump's `bands 3 priomap 1 2 ...` are what every port has.
        if rest and rest[0] not in table.CONTAINERS[PFIFO_FAST]:
            raise BadInput(f"{spec!r}: {rest[0]!r}: pfifo_fast has no words; expected pfifo, which has a limit")
        return {"kind": kind}
    params = {param["name"]: param for param in _registered(kind)["params"]}
    words, given = _sorted(spec, rest, row, {name: str(param["kind"]).lower() for name, param in params.items()})
    if row is None:
        law = brought.called(kind)
        if law is not None:
            brought.allow(law.path)  # whoever says these words means it, and it is loaded
        return {"kind": kind, **({} if law is None else {"law": str(law.path.resolve())}), **given}
    by_tc = {word.ours: _value(spec, word, words, params) for word in row.words}
    for word in row.words:
        _doubt_a_bare_time(spec, word, words)
    values = {**by_tc, **(row.sets if row.tc == table.HEAD_DROP else {}), **given}
    values = {name: value for name, value in values.items() if value is not None}
    return {"kind": kind, **(_computed(spec, row, words, values, params) if row.is_red else {}), **values}


def kinds() -> dict[str, str]:
    """Every name that a discipline has, here or in tc, and what a scenario calls it."""
    own = {name: row["name"] for row in engine.disciplines() for name in (row["name"], *row.get("aliases", []))}
    ours = {row["name"]: row["name"] for row in brought.disciplines()}
    return {table.HEAD_DROP: "pfifo", PFIFO_FAST: "pfifo", **own, **ours}


def _registered(kind: str) -> dict[str, Any]:
    return next(row for row in (*engine.disciplines(), *brought.disciplines()) if row["name"] == kind)


def _discipline(spec: str, name: str, rest: Sequence[str], expected: str) -> tuple[str, Row | None]:
    """What a scenario calls it, and the table's row if Linux has it."""
    known = kinds()
    if name not in known:
        raise BadInput(f"{spec!r}: {_nobody_knows(name, known, expected)}")
    if name == "red" and not table.ADAPTIVE.isdisjoint(rest):
        return "ared", table.to_read("red", is_adaptive=True)
    rows = [row for row in table.ROWS if row.ours == known[name]]
    return known[name], next((row for row in rows if row.tc == name), rows[0] if rows else None)


def _nobody_knows(name: str, known: Iterable[str], expected: str) -> str:
    bare = name.removeprefix(forms.FAIR)
    if bare != name and bare in known:
        law = brought.called(bare)
        return f"{forms.without_fair_queueing(bare, law is not None and law.kind == 'discipline')}; expected {bare}"
    if said := forms.by_its_file(name, Path()):
        return said
    if said := engine.known_as(name):
        return f"{name}: {said}"
    if meant := near.meant(name, known):
        return f"unknown discipline, {meant} {forms.NAMED.capitalize()}"
    return f"unknown discipline, expected {expected}; {forms.NAMED}"


def _sorted(spec: str, rest: Sequence[str], row: Row | None, own: Mapping[str, str]) -> tuple[dict[str, Raw], Tree]:
    """The words of tc, each with its value (1 where it stands alone), and values by the names of parameters.

    `own` has the kind of each parameter.
    """
    arity = {"noecn": 0, **(table.arity(row) if row is not None else {})}
    # What has no meaning of tc's here but is a parameter's name (ecn of sfq) is that parameter.
    foreign = {name: why for name, (_, why) in row.foreign.items() if name not in own} if row is not None else {}
    of_tc = arity.keys() - (row.foreign.keys() - foreign.keys() if row is not None else set())
    said: list[tuple[str, Raw]] = []
    values: Tree = {}
    position = 0
    while position < len(rest):
        name, position = rest[position], position + 1
        following = rest[position] if position < len(rest) else None
        is_flag = own.get(name) == "flag"
        if name in ECN:  # the last of them counts
            values.pop("ecn", None)
            said = [pair for pair in said if pair[0] not in ECN]
        if is_flag and following in ("true", "false"):
            values[name], position = following == "true", position + 1
        elif name in of_tc:
            if len(rest) < position + arity[name]:
                raise BadInput(f"{spec!r}: {name}: expected a value after it")
            said.append((name, rest[position] if arity[name] else 1))
            position += arity[name]
        elif is_flag:
            values[name] = True
        elif name not in own:
            raise BadInput(f"{spec!r}: {name!r}: {_unknown(spec, name, {*own, *of_tc})}")
        elif following is None:
            raise BadInput(f"{spec!r}: {name}: expected a value after it")
        else:
            values[name], position = _typed(following, own[name]), position + 1
    words = meant.settled(row, said)
    if row is not None:
        _, refused = meant.taken(row, words)
        if refused:
            raise BadInput(f"{spec!r}: {refused[0]}")
        words, unsent = meant.passed(row, words)
        for line in unsent:
            doubt(f"{spec!r}: {line}")
    for name, raw in words.items():
        if foreign.get(name) and not table.is_plain(name, raw):
            doubt(f"{spec!r}: {name!r} is left aside: {foreign[name]}")
    if row is not None:
        for line in meant.left_aside(row, words):
            doubt(f"{spec!r}: {line}")
        try:
            words = meant.commanded(row, words)
        except ValueError as error:
            raise BadInput(f"{spec!r}: {error}") from None
    return words, {"ecn": False, **values} if "noecn" in words else values


def _unknown(spec: str, name: str, known: Iterable[str]) -> str:
    kind = spec.split()[0]
    if name in table.CONTAINERS.get(kind, {}):
        return f"a word of Linux's {kind}, which is something else than {kind} here; drr comes nearest"
    there_are = f"expected one of {', '.join(sorted(known))}"
    return f"no parameter of {kind}, {near.meant(name, known) or there_are}"


def _value(spec: str, word: Word, words: Mapping[str, Raw], params: Params) -> Any:
    """What the words say of one parameter: as tc reads it or, where tc does not, as a scenario has it."""
    try:
        found = said(word, words, is_command=True)
        return words[word.tc] if isinstance(word, Value) and _is_refused(found, words.get(word.tc)) else found
    except ValueError as error:
        assert isinstance(word, Value)  # words that stand alone have nothing to be refused
        if word.tc not in params or isinstance(error, q.RefusedError):
            raise BadInput(f"{spec!r}: {word.tc} {error}") from None
        return _typed(str(words[word.tc]), str(params[word.tc]["kind"]).lower())


def _doubt_a_bare_time(spec: str, word: Word, words: Mapping[str, Raw]) -> None:
    """Says what a number without a unit is where a time stands, if hardly anybody means so short a one."""
    if not isinstance(word, Value) or word.kind not in TIMES:
        return
    raw = words.get(word.tc)
    if isinstance(raw, str) and raw.isdecimal() and 0 < int(raw) < SHORT_US:
        doubt(f"{spec!r}: {word.tc} {raw} is {raw} microseconds, as in tc; {raw} milliseconds are {raw}ms")


def _is_refused(value: Any, raw: Raw | None) -> bool:
    """Whether it is a quantity below nothing: a scenario refuses it, and may do so as it was written."""
    return isinstance(value, str) and isinstance(raw, str) and raw.startswith("-") and raw[-1].isalpha()


def _typed(word: str, kind: str) -> Any:
    """A word as the TOML value it stands for; what is no number stays text and is judged by the engine."""
    if kind == "flag":
        return word == "true"
    if kind in ("number", "integer"):
        for read in (int, float):
            try:
                return read(word)
            except ValueError:
                continue
    return word


def _computed(spec: str, row: Row, words: Mapping[str, Raw], values: Tree, params: Params) -> Tree:
    """RED's weight, and lengths from its limit, as tc makes them of avpkt and burst, or a dump shows them as ewma."""
    found: Tree = {"mark_until": "max"} if "harddrop" in words and "mark_until" in params else {}
    if table.OF_RED.isdisjoint(words):
        return found
    is_command = table.OF_A_DUMP.isdisjoint(words)
    has_limit = "limit" in values
    lengths = {name: values.get(name, "" if has_limit else params[name]["default"]) for name in LENGTHS}
    if is_command and not lengths["limit"]:
        raise BadInput(f"{spec!r}: {', '.join(sorted(table.OF_RED & words.keys()))}: expected limit beside it")
    kind_of = {word.ours: word.kind for word in row.words if isinstance(word, Value)}
    try:
        site = q.Site(0.0, red.average_packet(words))
        in_tc = {name: kind_of[name].to_tc(length, site) for name, length in lengths.items() if length}
        computed, _ = red.derive({**words, **in_tc}, row.ours, is_command)
    except ValueError as error:
        raise BadInput(f"{spec!r}: {error}") from None
    if "wq" not in {**computed, **values} and "burst" in words:
        raise BadInput(f"{spec!r}: {red.refused({**words, **in_tc}, row.ours)}")
    return found | {name: value for name, value in computed.items() if has_limit or name not in LENGTHS}
