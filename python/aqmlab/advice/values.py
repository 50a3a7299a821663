"""The values of a link and its queues as lines of platforms have them."""

from typing import Any

from aqmlab import engine, toml_text, units
from aqmlab.advice.question import Question


def resolved(link: dict[str, Any]) -> engine.Resolved:
    """A link as a checked scenario."""
    tree = {"name": "advice", "link": link, "tcp": {"stack": "linux"}, "traffic": [{"kind": "bulk"}]}
    return engine.resolve(toml_text.dumps(tree), "aqmlab advise")


def all_values(link: dict[str, Any], key: str) -> dict[str, Any]:
    """All values of a direction's discipline, those too that nobody gave."""
    found: dict[str, Any] = resolved(link).scenario["link"].get(key, link[key])
    return {**found, **link[key]}


def is_pppoe(question: Question) -> bool:
    """Whether the router's port towards the line is one of PPP, whose packets have no Ethernet header yet."""
    return question.access.overhead_keyword.startswith("pppoe")


def whole(text: str) -> str:
    """A time as a whole number of its unit, which ipfw(8) and others want; gains are as they are."""
    if text.endswith("ms") and "." in text:
        return f"{round(units.seconds(text, 'target') * 1e6)}us"
    return text


def in_kbit(rate: str) -> str:
    """A rate as a number of kb/s."""
    return str(round(units.rate_bps(rate, "rate") / 1e3))


def in_bytes(size: str) -> str:
    """A size as a number of bytes."""
    return size.removesuffix("b")


def in_packets(limit: str) -> str:
    """A limit as a number of packets."""
    return limit.removesuffix("p")
