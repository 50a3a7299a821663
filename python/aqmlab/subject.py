"""What was simulated, in a sentence: the link, direction by direction, and the traffic, block by block.

Nothing is said of a direction in which a block does not run.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aqmlab import engine, links, reference, units
from aqmlab.comparison import Column
from aqmlab.json_files import Json
from aqmlab.results.readable import listed

Block = Mapping[str, Any]


def of(columns: Sequence[Column]) -> str:
    """How much of what over which link, of the first column that is no reference; and in what of that others differ."""
    congested = [column for column in columns if not column.uncongested] or list(columns)
    first = congested[0]
    text = f"{_of_links(first)}: {_of_traffic(first)}. {_of_window(first)}."
    # A load is another share of another link's rate, and the same traffic.
    each: dict[str, Callable[[Column], str]] = {
        "links" if links.are_several_in(column.scenario for column in congested) else "link": _of_links,
        "traffic": partial(_of_traffic, has_shares=False),
        "window": _of_window,
    }
    differs = [f"the {what}" for what, said in each.items() if len({said(column) for column in congested}) > 1]
    return f"{text} That is {first.name}; others differ in {listed(differs)}." if differs else text


def _of_links(column: Column) -> str:
    scenario = column.result.scenario
    return (
        f"Links of {link(scenario)}. Over them"
        if links.are_several(scenario)
        else f"A link of {link(scenario)}. Over it"
    )


def _of_traffic(column: Column, has_shares: bool = True) -> str:
    scenario, live = column.result.scenario, column.result.live
    said = [] if not live.get("traffic", True) else _merged(blocks(scenario, column.result.calibration, has_shares))
    if command := live.get("command"):
        said.append(f"{shlex.join(command)} on the {live.get('side') or 'left'} side")
    if not live.get("traffic", True):
        said.append("none of the scenario's traffic")
    return "; ".join(said)


def _of_window(column: Column) -> str:
    measured = float(column.result.summary["measured_s"])
    warmup_s = units.seconds(column.result.scenario["warmup"], "warmup")
    after = f" after {units.say_seconds(warmup_s)} of warm-up" if warmup_s else ""
    return f"{measured:g} s measured{after}"


def _merged(texts: Sequence[str]) -> list[str]:
    """`4 × 1 endless transfer forward`: blocks of which the same is said, once."""
    return [f"{texts.count(text)} × {text}" if texts.count(text) > 1 else text for text in dict.fromkeys(texts)]


def link(scenario: Json) -> str:
    """`50 Mb/s forward and 10 Mb/s in reverse`; of several each with its name."""
    names = list(links.of(scenario))
    if len(names) == 1:
        return _link(scenario, names[0])
    return "; ".join(f"{_link(scenario, name)} ({name})" for name in names)


def _link(scenario: Json, name: str) -> str:
    facts, rates = links.of(scenario)[name], links.rates_bps(scenario, name, "scenario")
    if "schedule" in facts or "states" in facts:
        told: list[Any] = [facts, *(facts.get("schedule") or facts["states"])]
        every = [[units.rate_bps(one[key], key) for one in told] for key in ("rate", "reverse_rate")]
        said = [_range(one) for one in every]
        return f"{said[0]} each way" if said[0] == said[1] else f"{said[0]} forward and {said[1]} in reverse"
    traces = [facts.get("trace"), facts.get("reverse_trace")]
    said = [
        units.say_rate(rate) + ("" if trace is None else f" in the mean ({trace['file']})")
        for rate, trace in zip(rates, traces, strict=True)
    ]
    return f"{said[0]} each way" if said[0] == said[1] else f"{said[0]} forward and {said[1]} in reverse"


def _range(rates_bps: Sequence[float]) -> str:
    """`5 Mb/s to 50 Mb/s`: of a link that changes."""
    low, high = min(rates_bps), max(rates_bps)
    return units.say_rate(low) if low == high else f"{units.say_rate(low)} to {units.say_rate(high)}"


def blocks(scenario: Json, calibrations: Sequence[Json] = (), has_shares: bool = True) -> list[str]:
    """Each block of traffic: how much of what, which way, what tells its hosts from others', and over which links; with
    the share of their rate that a load is.
    """
    marks = _told_apart(scenario)
    found = {calibration["traffic"]: calibration for calibration in calibrations}
    said = []
    for k, each in enumerate(scenario["traffic"]):
        crossed = [links.route(scenario, each, way) for way in links.WAYS]
        rates = [
            min(links.rates_bps(scenario, name, "scenario")[way] for name in crossed[way])
            for way in range(len(crossed))
        ]
        text = block(each, (rates[0], rates[1]) if has_shares else None, found.get(k), marks[k])
        *others, last = crossed[0]
        over = f"{', '.join(others)} and {last}" if others else last
        said.append(f"{text}, over {over}" if links.are_several(scenario) else text)
    return said


def told_apart(scenario: Json, numbers: Sequence[int]) -> list[list[str]]:
    """What tells each of some blocks from the others of them, in few words: `in reverse` and `dscp CS1`.

    One that nothing tells from another is called by its number, too.
    """
    traffic = [scenario["traffic"][k] for k in numbers]
    found: list[list[str]] = [[] for _ in traffic]
    for words in (
        [str(each.get("application", "")) for each in traffic],
        [_WAYS[_direction(each)] for each in traffic],
        _told_apart({**scenario, "traffic": traffic}),
        [f"over {listed(links.route(scenario, each, links.WAYS[0]))}" for each in traffic],
    ):
        if len(set(words)) > 1:
            found = [[*own, word] if word else own for own, word in zip(found, words, strict=True)]
    return [
        own if own and found.count(own) == 1 else [links.block_title(scenario, k), *own]
        for k, own in zip(numbers, found, strict=True)
    ]


def _told_apart(scenario: Json) -> list[str]:
    """What to say of each block's packets and hosts: `cc prague, RTT 20 ms` where those of others are not so."""
    traffic: list[Block] = scenario["traffic"]
    speak_tcp = [_row(each)["speaks_tcp"] for each in traffic]
    said: list[list[str]] = [[] for _ in traffic]
    for key in ("stack", "cc", "ecn"):
        values = [str(each.get(key, scenario["tcp"].get(key))) for each in traffic]
        if len({value for value, speaks in zip(values, speak_tcp, strict=True) if speaks}) > 1:
            for marks, value, speaks in zip(said, values, speak_tcp, strict=True):
                marks += [f"{key} {value}"] * speaks
    rtts = [_round_trips(each, scenario) for each in traffic]
    if len({rtt for rtt in rtts if rtt}) > 1:
        for marks, rtt in zip(said, rtts, strict=True):
            marks += [f"RTT {rtt}"] if rtt else []
    for marks, each in zip(said, traffic, strict=True):
        marks += [f"dscp {dscp}" for dscp in [each.get("dscp", "CS0")] if dscp != "CS0"]
    return [", ".join(marks) for marks in said]


def _round_trips(facts: Block, scenario: Json) -> str:
    """The round-trip propagation time of a block's connections, or how those are spread; "" where they are recorded."""
    value = facts.get("rtt", scenario["path"].get("rtt", ""))
    if _is_as_recorded(facts) or value == "vectors":
        return ""
    if not isinstance(value, Mapping):
        return _drawn(value)
    (name, parameters), *_ = value.items()
    if name == "table":
        return "tabulated"
    form = {"uniform": "{}", "even": "{} in even steps"}.get(name, f"{name}, {{}}")
    return form.format(_parameters(parameters))


def _is_as_recorded(facts: Block) -> bool:
    """Whether each of a block's connections goes the way that it went, and as far."""
    return all(key["name"] != "direction" for key in _row(facts)["params"])


def block(facts: Block, rates: reference.Rates | None, calibration: Json | None = None, marks: str = "") -> str:
    """One block of traffic; `marks` is what tells it from others, `rates` those of which a load is a share, if any."""
    direction = _direction(facts)
    text = _said(facts)
    if not _is_as_recorded(facts):
        text += f" {_WAYS[direction]}"
    text += f" ({marks})" if marks else ""
    if calibration is not None:
        text += (
            f", who would offer {_load(float(calibration['load_bps']), direction, rates)} if nothing slowed them down"
        )
    elif "load" in facts:
        text += f", which offer {_load(units.rate_bps(facts['load'], 'load'), direction, rates)}"
    return text


_WAYS = {"forward": "forward", "reverse": "in reverse", "both": "in both directions"}


def _direction(facts: Block) -> str:
    # Half of the sources run each way, the first of them forward: one alone does not run in reverse.
    is_alone = int(facts.get("flows", facts.get("users", 0))) == 1
    return "forward" if is_alone and facts["direction"] == "both" else str(facts["direction"])


def _load(load_bps: float, direction: str, rates: reference.Rates | None) -> str:
    """A load is that of one direction: where it is offered in both, it is offered twice."""
    if rates is None:
        return f"{units.say_rate(load_bps)}{' each way on average' if direction == 'both' else ''}"
    shares = [f"{100 * load_bps / rate:.3g} %" for rate in reference.in_direction(rates, direction)]
    if direction != "both":
        return f"{units.say_rate(load_bps)} ({shares[0]} of the rate {_WAYS[direction]})"
    if shares[0] == shares[1]:
        return f"{units.say_rate(load_bps)} each way on average ({shares[0]} of its rate)"
    of_both = f"{shares[0]} of the rate forward, {shares[1]} of that in reverse"
    return f"{units.say_rate(load_bps)} each way on average ({of_both})"


def _said(facts: Block) -> str:
    """How much of what: the words of its kind in the engine's catalogue, with its values."""
    row = _row(facts)
    takes = {key["name"]: key["kind"] for key in row["params"]}
    return "".join(
        _BRACES.sub(lambda found: _filled(found, facts, takes), text)
        for when, text in row["words"]
        if all(_holds(condition, facts) for condition in when.split(",") if condition)
    )


def _row(facts: Block) -> dict[str, Any]:
    name = f"{facts['kind']}/{facts['model']}" if facts.get("model") else facts["kind"]
    return next(row for row in engine.traffic_models() if row["name"] == name)


def _holds(condition: str, facts: Block) -> bool:
    key, differs, value = condition.partition("!=") if "!=" in condition else condition.partition("=")
    if differs:
        return (_plain(facts[key]) == value) == (differs == "=")
    return (condition.removeprefix("!") in facts) != condition.startswith("!")


_BRACES = re.compile(r"\{(?P<key>\w+)(?:\|(?P<noun>[^}]+)|:(?P<several>[^}]+))?\}")


def _filled(found: re.Match[str], facts: Block, takes: Mapping[str, str]) -> str:
    key, noun, several = found["key"], found["noun"], found["several"]
    if several is not None:
        return several if int(facts[key]) > 1 else ""
    if noun is not None:
        many = f"{noun}s"
        return f"{int(facts[key]):,} {noun if int(facts[key]) == 1 else many}" if key in facts else many
    return _SAID.get(takes.get(key, ""), _plain)(facts[key])


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rate(written: str) -> str:
    return units.say_rate(units.rate_bps(written, "rate"))


def _frequency(written: str) -> str:
    found = units.quantity(str(written))
    return str(written) if found is None else _short(found[0])


def _short(number: float) -> str:
    """Three digits, but all of a whole part: `0.267`, `1,480`."""
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def _files(facts: Any) -> str:
    return " and ".join(_file(each) for each in (facts if isinstance(facts, list) else [facts]))


def _file(facts: Any) -> str:
    """A file's name as its author has it, which the copy in a result's folder has behind the start of its SHA-256."""
    if not isinstance(facts, Mapping):
        return Path(str(facts)).name
    return Path(facts["file"]).name.removeprefix(f"{facts.get('sha256', '')[:12]}-")


_SIZES = (("GiB", 1024.0**3, 1), ("MiB", 1024.0**2, 1), ("KiB", 1024.0, 10))
"""Units of sizes, and from how many of it on each is used: whole bytes are said as long as they can be read."""


def _drawn(value: Any) -> str:
    """A time or size, or the distribution of it."""
    if isinstance(value, Mapping):
        (name, parameters), *_ = value.items()
        if name == "table":
            return "tabulated sizes"
        return f"{name} sizes, {_parameters(parameters)}"
    found = units.quantity(value) if isinstance(value, str) else None
    if found is None:
        return str(value)
    number, unit = found
    if unit == "s":
        return units.say_seconds(number)
    if unit == "bytes":
        name, size = next(((name, size) for name, size, least in _SIZES if number >= least * size), ("bytes", 1.0))
        return f"{_short(number / size)} {name}" if size > 1 else f"{number:,.6g} {name}"
    return str(value)


def _parameters(of_form: Any) -> str:
    """What is said beside the name of a distribution's form."""
    if isinstance(of_form, Mapping):
        return ", ".join(f"{key} {_drawn(item)}" for key, item in of_form.items())
    return " to ".join(map(_drawn, of_form if isinstance(of_form, list) else [of_form]))


_SAID: dict[str, Callable[[Any], str]] = {
    "rate": _rate,
    "frequency": _frequency,
    "file": _files,
    "size": _drawn,
    "time": _drawn,
    "quantity": _drawn,
}
"""How values are read, by what their key takes."""
