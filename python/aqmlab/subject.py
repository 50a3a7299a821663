"""What was simulated, in a sentence: the link, direction by direction, and the traffic, block by block.

Nothing is said of a direction in which a block does not run.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aqmlab import links, reference, units
from aqmlab.comparison import Column
from aqmlab.json_files import Json

Block = Mapping[str, Any]


def of(columns: Sequence[Column]) -> str:
    """How much of what over which link, of the first column that is no reference; and whether others differ in that."""
    congested = [column for column in columns if not column.uncongested] or list(columns)
    first = congested[0]
    text = _of_column(first)
    if any(_of_column(other) != text for other in congested[1:]):
        text += f" That is {first.name}; others differ in link, traffic or window."
    return text


def _of_column(column: Column) -> str:
    scenario, live = column.result.scenario, column.result.live
    said = [] if not live.get("traffic", True) else blocks(scenario, column.result.calibration)
    if command := live.get("command"):
        said.append(f"{shlex.join(command)} on the {live.get('side') or 'left'} side")
    if not live.get("traffic", True):
        said.append("none of the scenario's traffic")
    measured = float(column.result.summary["measured_s"])
    warmup = units.say_seconds(units.seconds(scenario["warmup"], "warmup"))
    begins = (
        f"Links of {link(scenario)}. Over them"
        if links.are_several(scenario)
        else f"A link of {link(scenario)}. Over it"
    )
    return f"{begins}: {'; '.join(said)}. {measured:g} s measured after {warmup} of warm-up."


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


def blocks(scenario: Json, calibrations: Sequence[Json] = ()) -> list[str]:
    """Each block of traffic: how much of what, which way, and over which of several links."""
    found = {calibration["traffic"]: calibration for calibration in calibrations}
    said = []
    for k, each in enumerate(scenario["traffic"]):
        crossed = [links.route(scenario, each, way) for way in links.WAYS]
        rates = [
            min(links.rates_bps(scenario, name, "scenario")[way] for name in crossed[way])
            for way in range(len(crossed))
        ]
        text = block(each, (rates[0], rates[1]), found.get(k))
        *others, last = crossed[0]
        over = f"{', '.join(others)} and {last}" if others else last
        said.append(f"{text}, over {over}" if links.are_several(scenario) else text)
    return said


def block(facts: Block, rates: reference.Rates, calibration: Json | None = None) -> str:
    """One block of traffic."""
    # Half of the sources run each way, the first of them forward: one alone does not run in reverse.
    is_alone = int(facts.get("flows", facts.get("users", 0))) == 1
    direction = "forward" if is_alone and facts["direction"] == "both" else str(facts["direction"])
    text = WORDS[facts["kind"]](facts)
    if facts["kind"] == "replay":
        return text  # each connection as it was
    text += f" {_WAYS[direction]}"
    if calibration is not None:
        text += (
            f", who would offer {_load(float(calibration['load_bps']), direction, rates)} if nothing slowed them down"
        )
    elif "load" in facts:
        text += f", which offer {_load(units.rate_bps(facts['load'], 'load'), direction, rates)}"
    return text


_WAYS = {"forward": "forward", "reverse": "in reverse", "both": "in both directions"}


def _load(load_bps: float, direction: str, rates: reference.Rates) -> str:
    """A load is that of one direction: where it is offered in both, it is offered twice."""
    shares = [f"{100 * load_bps / rate:.3g} %" for rate in reference.in_direction(rates, direction)]
    if direction != "both":
        return f"{units.say_rate(load_bps)} ({shares[0]} of the rate {_WAYS[direction]})"
    if shares[0] == shares[1]:
        return f"{units.say_rate(load_bps)} in each ({shares[0]} of its rate)"
    return f"{units.say_rate(load_bps)} in each ({shares[0]} of the rate forward, {shares[1]} of that in reverse)"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _web(facts: Block) -> str:
    model = facts["model"]
    if model == "packmime":
        return f"new web connections ({model}, {_frequency(facts['arrivals'])} a second)"
    what = "web user" if model == "unc2001" else "web session"
    return f"{_count(int(facts['users']), what)} ({model})" if "users" in facts else f"{what}s ({model})"


def _bulk(facts: Block) -> str:
    many, size = int(facts["flows"]), facts["size"]
    said = "" if size == "endless" else _drawn(size)
    if "max_pacing_rate" in facts:
        said += f"{', ' if said else ''}held to {_rate(facts['max_pacing_rate'])}{' each' if many > 1 else ''}"
    what = "endless transfer" if size == "endless" else "transfer"
    return _count(many, what) + (f" ({said})" if said else "")


def _poisson(facts: Block) -> str:
    what = "transfers" if facts["request"] == "0b" else "exchanges"
    return f"{what} at random times ({_frequency(facts['arrivals'])} a second, {_drawn(facts['size'])})"


def _cbr(facts: Block) -> str:
    return f"{_sources(facts)} of a constant rate ({_rate(facts['rate'])}{_together(facts)})"


def _onoff(facts: Block) -> str:
    when = "while on" if int(facts["flows"]) == 1 else "while all are on"
    return f"{_sources(facts, 'on/off UDP source')} ({_rate(facts['rate'])} {when})"


def _udp_poisson(facts: Block) -> str:
    return f"{_sources(facts)} of packets at random times ({_frequency(facts['arrivals'])} a second{_together(facts)})"


def _udp_trace(facts: Block) -> str:
    return f"{_sources(facts)} of the packets in {_file(facts['packets'])}"


def _probe(facts: Block) -> str:
    return f"{_sources(facts, 'probe')} (a packet of {_drawn(facts['packet'])} every {_drawn(facts['interval'])})"


def _tmix(facts: Block) -> str:
    vectors = facts["vectors"]
    files = [_file(each) for each in (vectors if isinstance(vectors, list) else [vectors])]
    scale = float(facts.get("scale", 1.0))
    times = "" if scale == 1 or "load" in facts else f" ({scale:g} for each that was seen)"
    return f"the connections in {' and '.join(files)}{times}"


def _replay(facts: Block) -> str:
    return f"the exchanges recorded in {_file(facts['demands'])}, in the directions recorded"


WORDS: dict[str, Callable[[Block], str]] = {
    "web": _web,
    "bulk": _bulk,
    "poisson": _poisson,
    "cbr": _cbr,
    "onoff": _onoff,
    "udp-poisson": _udp_poisson,
    "udp-trace": _udp_trace,
    "probe": _probe,
    "tmix": _tmix,
    "replay": _replay,
}
"""How much of what: each kind of traffic in words."""


def _sources(facts: Block, what: str = "UDP source") -> str:
    return _count(int(facts["flows"]), what)


def _together(facts: Block) -> str:
    return " together" if int(facts["flows"]) > 1 else ""


def _rate(written: str) -> str:
    return units.say_rate(units.rate_bps(written, "rate"))


def _frequency(written: str) -> str:
    found = units.quantity(str(written))
    return str(written) if found is None else f"{found[0]:,.6g}"


def _file(facts: Any) -> str:
    return Path(facts["file"] if isinstance(facts, Mapping) else str(facts)).name


_SIZES = (("GiB", 1024.0**3), ("MiB", 1024.0**2), ("KiB", 1024.0))


def _drawn(value: Any) -> str:
    """A time or size, or the distribution of it."""
    if isinstance(value, Mapping):
        (name, parameters), *_ = value.items()
        if name == "table":
            return "tabulated sizes"
        if isinstance(parameters, Mapping):
            return f"{name} sizes, {', '.join(f'{key} {_drawn(item)}' for key, item in parameters.items())}"
        low_high = parameters if isinstance(parameters, list) else [parameters]
        return f"{name} sizes, {' to '.join(map(_drawn, low_high))}"
    found = units.quantity(value) if isinstance(value, str) else None
    if found is None:
        return str(value)
    number, unit = found
    if unit == "s":
        return units.say_seconds(number)
    if unit == "bytes":
        name, size = next(((name, size) for name, size in _SIZES if number >= 10 * size), ("bytes", 1.0))
        return f"{number / size:.3g} {name}" if size > 1 else f"{number:,.6g} {name}"
    return str(value)
