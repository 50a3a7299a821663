"""PI, CoDel, PIE and RED as users write them, compiled, interpreted and in C, decide as those built in, decision by
decision: on the vectors of testdata/vectors and on 1000 random traces each. Needs the compiled engine."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aqmlab import engine, toml_text
from aqmlab.engine import Resolved
from aqmlab.laws import brought
from conftest import NATIVE, ROOT
from oracle import vectors
from oracle.frame import Told
from oracle.settings import Dice, Site
from oracle.traces import Story
from own_laws import BUILT_IN, library

WAYS = ("compiled", "interpreted", "library")
TRACES, EACH = 1000, 10
"""How many traces there are, and how many of them share their parameters."""
OPERATIONS = 120
"""Of a trace, about: as many calls of a law, of which one in the interpreter costs microseconds."""

THEIR_NAMES = {"low": "min", "high": "max", "max_p": "probability"}
OUR_NAMES = {theirs: ours for ours, theirs in THEIR_NAMES.items()}
"""What RED built in calls the parameters of `my_red`, and the other way round."""
IN_PACKETS = ("qref", "low", "high")
"""Numbers of packets to the laws of users, lengths to those built in."""

OTHER_DIALECT = "of a dialect that the law does not have"
NOT_IN_PACKETS = "with a queue that is a time or in bytes"
NO_PARAMETER = "the law has no parameter "
LEFT_OUT = {
    "pi": {NO_PARAMETER + "mode": 1, NO_PARAMETER + "flows": 1, NOT_IN_PACKETS: 1},
    "codel": {NO_PARAMETER + "ce_threshold": 2, OTHER_DIALECT: 8},
    "pie": {
        NO_PARAMETER + "bytemode": 1,
        NO_PARAMETER + "derandomize": 2,
        NO_PARAMETER + "dq_rate_estimator": 1,
        OTHER_DIALECT: 9,
    },
    "red": {OTHER_DIALECT: 31, NO_PARAMETER + "wait": 6},
}
"""Vectors that are left out, how many for each reason."""


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Mapping[tuple[str, str], Path]:
    """The file of each law in each way."""
    folder = tmp_path_factory.mktemp("laws")
    found = {}
    for name in BUILT_IN:
        path = ROOT / f"examples/laws/my_{name}.py"
        plain = folder / f"plain_{name}.py"
        plain.write_text(path.read_text().replace("@aqmlab.law(", "@aqmlab.law(compiled=False, "))
        found |= {(name, "compiled"): path, (name, "interpreted"): plain}
        found[name, "library"] = library(f"my_{name}", folder)
    return found


def before_a_link(rate_bps: int, qdisc: Mapping[str, Any]) -> Resolved:
    tree = {"link": {"rate": f"{rate_bps}bit", "qdisc": dict(qdisc)}, "traffic": [{"kind": "bulk"}]}
    return engine.resolve(toml_text.dumps(tree), "test")


def own(path: Path, how: str) -> dict[str, Any]:
    """How a scenario names the law of a file."""
    law = brought.of_file(path)
    assert law.how == how
    return {"kind": law.name, "law": {"file": path.name, "sha256": law.sha256}}


def theirs(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a user's law as the one that is built in has them."""
    named = {THEIR_NAMES.get(key, key): f"{value}p" if key in IN_PACKETS else value for key, value in given.items()}
    return {"kind": name, **BUILT_IN[name], **named}


def ours(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a vector as the user's law has them."""
    named = {OUR_NAMES.get(key, key): value for key, value in parameters.items() if key != "dialect"}
    return {key: float(value.rstrip("p")) if key in IN_PACKETS else value for key, value in named.items()}


def reason_to_leave_out(name: str, vector: vectors.Vector) -> str:
    """Why the user's law cannot be held to a vector; nothing if it can."""
    given, dialect = vector.parameters, BUILT_IN[name].get("dialect")
    if given.get("dialect") != dialect:
        return OTHER_DIALECT
    rows = {row["name"]: row for row in brought.disciplines()}
    has = {param["name"] for param in rows[f"my_{name}"]["params"]}
    missing = [key for key in given if key != "dialect" and OUR_NAMES.get(key, key) not in has]
    if missing:
        return NO_PARAMETER + missing[0]
    lengths = [value for key, value in given.items() if OUR_NAMES.get(key, key) in IN_PACKETS]
    return "" if all(str(value).endswith("p") for value in lengths) else NOT_IN_PACKETS


def story(vector: vectors.Vector) -> list[tuple[list[Any], str | None, Mapping[str, Any]]]:
    """The operations of a vector, each with what is expected to be told, or with the state that is."""
    found: list[tuple[list[Any], str | None, Mapping[str, Any]]] = []
    for step in vector.steps:
        for repetition in range(1, step.get("times", 1) + 1):
            at_ns = step["at_ns"] + (repetition - 1) * step.get("every_ns", 0)
            expected = step.get("except", {}).get(str(repetition), step.get("expect"))
            if "offer" in step:
                op = ["offer", at_ns, step["offer"], step.get("ecn", "not-ect"), step.get("flow", 1)]
            else:
                op = ["take" if "take" in step else "look", at_ns]
            found.append((op, expected, {}))
        state = {key: step[key] for key in ("packets", "bytes", "probability", "control") if key in step}
        if state:
            found.append((["look", at_ns], None, {**state, "within": step.get("within", 1e-9)}))
    return found


def told(words: str) -> list[Told]:
    """What the engine tells, as the oracle's comparison of vectors takes it."""
    found = []
    for one in filter(None, words.split(", ")):
        said, _, number = one.partition(" #")
        word, _, cause = said.partition(" ")
        found.append(Told(word, cause, int(number or 0)))
    return found


@pytest.mark.parametrize("name", BUILT_IN)
def test_laws_as_users_write_them_keep_to_the_vectors(files, name):
    """In all three ways; the one that is built in besides, which shows that a vector was read as it is meant."""
    laws = {how: own(files[name, how], how) for how in WAYS}
    reasons: dict[str, int] = {}
    run = 0
    for path in vectors.find(ROOT / "testdata/vectors" / name):
        vector = vectors.read(path)
        if why := reason_to_leave_out(name, vector):
            reasons[why] = reasons.get(why, 0) + 1
            continue
        run += 1
        steps = story(vector)
        kinds = {"built in": {"kind": name, **vector.parameters}}
        kinds |= {how: {**law, **ours(vector.parameters)} for how, law in laws.items()}
        for how, kind in kinds.items():
            found = engine.replay(before_a_link(vector.rate_bps, kind), vector.seed or 0, [op for op, *_ in steps])
            for number, ((op, expected, state), came) in enumerate(zip(steps, found, strict=True)):
                where = f"{path.name}, {how}, operation {number}, {op}: {came}"
                assert expected is None or op[0] == "look" or vectors.agrees(expected, told(came)), where
                for key in state.keys() - {"within"}:
                    assert vectors.close(came[key], state[key], state["within"]), f"{where}: {key} {state[key]}"
    assert reasons == LEFT_OUT[name]
    assert run > 1


@cache
def setting(name: str, number: int) -> tuple[int, dict[str, Any]]:
    """The rate of a link, and parameters of a user's law that make it signal within a trace."""
    dice = Dice(number, f"equality/{name}")
    gain = dice.spread(1e-3, 0.1)
    interval_us = dice.whole(1000, 30_000)
    drawn: dict[str, dict[str, Any]] = {
        "pi": {
            "qref": float(dice.whole(0, 20)),
            "a": gain,
            "b": gain * dice.between(0.3, 1.0),
            "w": f"{dice.whole(50, 1000)}hz",
        },
        "codel": {
            "target": f"{dice.whole(100, min(8000, interval_us))}us",
            "interval": f"{interval_us}us",
            "mtu": f"{dice.one_of([1, 1500, 3000])}b",
        },
        "pie": {
            "target": f"{dice.whole(200, 15000)}us",
            "tupdate": f"{dice.whole(1, 20)}ms",
            "alpha": dice.spread(0.1, 100.0),
            "beta": dice.spread(0.1, 100.0),
            "max_burst": f"{dice.one_of([0, 5, 20])}ms",
            "ecn_prob": dice.between(0.02, 0.6),
            "mean_packet": f"{dice.one_of([40, 500, 1500])}b",
        },
        "red": {
            "low": dice.whole(0, 40) / 4,
            "high": 10.5 + dice.whole(0, 40) / 4,
            "max_p": dice.between(0.01, 1.0),
            "wq": dice.one_of([1.0, dice.spread(0.002, 1.0)]),
            "mean_packet": f"{dice.whole(100, 1500)}b",
        },
    }
    limit = f"{dice.one_of([5, 20, 60, 1000])}p"
    return dice.one_of([10**6, 10**7, 10**8]), {**drawn[name], "ecn": dice.flip(0.5), "limit": limit}


@cache
def trace(name: str, number: int) -> list[list[Any]]:
    """The operations of a trace before the link of its setting."""
    rate_bps, _ = setting(name, number // EACH)
    site = Site(rate_bps, mean_packet=1500, flows=5, in_bytes=False, is_extreme=False)
    return Story(Dice(number, f"equality/{name}/trace"), site, [20 * site.slot_ns], 1e9).ops(OPERATIONS)


@cache
def decided_built_in(name: str) -> list[list[Any]]:
    """What the law that is built in decides, trace by trace."""
    return decided(name, lambda given: theirs(name, given))


def decided(name: str, kind_of: Any) -> list[list[Any]]:
    found = []
    for at in range(TRACES // EACH):
        rate_bps, given = setting(name, at)
        resolved = before_a_link(rate_bps, kind_of(given))
        found += [engine.replay(resolved, n, trace(name, n)) for n in range(at * EACH, (at + 1) * EACH)]
    return found


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("name", BUILT_IN)
def test_laws_as_users_write_them_decide_as_those_built_in_on_1000_random_traces(files, name, how):
    law = own(files[name, how], how)
    signals: set[str] = set()
    with_signals = 0
    for number, (first, second) in enumerate(
        zip(decided_built_in(name), decided(name, lambda given: {**law, **given}), strict=True)
    ):
        for op, one, other in zip(trace(name, number), first, second, strict=True):
            assert one == other, f"trace {number}, {op}"
        here = {f"{one.word} {one.cause}" for said in first if isinstance(said, str) for one in told(said) if one.cause}
        signals |= here
        with_signals += bool(here - {"drop tail"})
    assert number + 1 == TRACES and with_signals > TRACES / 4
    assert {"drop tail", "drop early", "mark early"} <= signals
