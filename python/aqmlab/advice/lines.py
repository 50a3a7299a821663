"""What is advised as the lines of a platform: `tc`, OpenWrt's SQM, FreeBSD's `ipfw`."""

from typing import Any

from aqmlab import engine, toml_text, units
from aqmlab.advice import situation
from aqmlab.advice.candidates import Candidate
from aqmlab.advice.question import Question
from aqmlab.tc.write import write

LINE = ("lan", "wan")
"""The router's port towards the users, and that towards the line."""


def of(question: Question, candidate: Candidate) -> str:
    """The lines for a candidate, or what to do where there are none."""
    if candidate.settings is None:
        return "# Nothing to set: leave the queue as it is.\n"
    if candidate.in_modem:
        return (
            "# Nothing to set on the router. Ask the provider to turn on the modem's DOCSIS-PIE (RFC 8034), upstream.\n"
        )
    link = situation.router(question, candidate, question.access.margin)
    return {"linux": _tc, "openwrt": _sqm, "freebsd": _ipfw}[question.platform](question, link)


def _resolved(link: dict[str, Any]) -> engine.Resolved:
    tree = {"name": "advice", "link": link, "tcp": {"stack": "linux"}, "traffic": [{"kind": "bulk"}]}
    return engine.resolve(toml_text.dumps(tree), "aqmlab advise")


def _tc(question: Question, link: dict[str, Any]) -> str:
    setup = write(_resolved(link), *LINE)
    first, *sections = setup.only(("ports", "qdisc")).text.split("\n\n")
    return "\n\n".join((first.replace("advice, on Linux", "The router, on Linux"), *sections))


def _sqm(question: Question, link: dict[str, Any]) -> str:
    values = link["qdisc"]
    is_cake = values["kind"] == "cake"
    options = {
        "enabled": "1",
        "interface": LINE[1],
        "download": _kbit(link["rate"]),
        "upload": _kbit(link["reverse_rate"]),
        "qdisc": values["kind"],
        "script": "piece_of_cake.qos" if is_cake else "simplest.qos",
        "linklayer": "ethernet",
        "overhead": str(question.access.overhead_bytes),
        "qdisc_advanced": "1",
        "ingress_ecn": "ECN",
        "egress_ecn": "ECN" if is_cake or values.get("ecn") else "NOECN",
        "qdisc_really_really_advanced": "1",
    }
    if is_cake:
        options["iqdisc_opts"] = f"besteffort rtt {values['rtt']}"
        filtered = " ack-filter" if link["reverse_qdisc"].get("ack_filter") == "on" else ""
        options["eqdisc_opts"] = f"besteffort rtt {link['reverse_qdisc']['rtt']}{filtered}"
    else:
        for way, queue in (("i", values), ("e", link["reverse_qdisc"])):
            options[f"{way}qdisc_opts"] = f"interval {queue['interval']}"
            options[f"{way}target"] = queue["target"]
    rows = [f"\toption {key} '{value}'" for key, value in options.items()]
    return "\n".join(["# /etc/config/sqm; then: /etc/init.d/sqm restart", "config queue 'advice'", *rows]) + "\n"


def _ipfw(question: Question, link: dict[str, Any]) -> str:
    lines = ["# kldload ipfw dummynet first; em0 is the port towards the line"]
    for number, key, rate, way in (
        (1, "qdisc", "rate", "in recv em0"),
        (2, "reverse_qdisc", "reverse_rate", "out xmit em0"),
    ):
        values = _resolved(link).scenario["link"].get(key, link[key]) | link[key]
        kind, bw = values["kind"], f"bw {_kbit(link[rate])}Kbit/s"
        if kind == "bfifo":
            size = max(1, round(int(values["limit"].removesuffix("b")) / 1024))
            lines.append(f"ipfw pipe {number} config {bw} queue {size}KBytes droptail")
            lines.append(f"ipfw add {100 * number} pipe {number} ip from any to any {way}")
        elif kind.startswith("fq_"):
            lines.append(f"ipfw pipe {number} config {bw}")
            lines.append(
                f"ipfw sched {number} config pipe {number} type {kind} {_law(values)} "
                f"quantum {_bytes(values['quantum'])} limit {_number(values['limit'])} flows {values['flows']}"
            )
            lines.append(f"ipfw queue {number} config sched {number}")
            lines.append(f"ipfw add {100 * number} queue {number} ip from any to any {way}")
        else:
            slots = _number(values["limit"])
            if number == 1:
                lines.append(f"sysctl net.inet.ip.dummynet.pipe_slot_limit={slots}")
            lines.append(f"ipfw pipe {number} config {bw} queue {slots} {kind} {_law(values)}")
            lines.append(f"ipfw add {100 * number} pipe {number} ip from any to any {way}")
    return "\n".join(lines) + "\n"


def _law(values: dict[str, Any]) -> str:
    """The words of CoDel's or PIE's own parameters, as ipfw(8) has them."""
    names = (
        ("target", "interval")
        if values["kind"].endswith("codel")
        else ("target", "tupdate", "alpha", "beta", "max_burst")
    )
    words = [f"{name} {_whole(str(values[name]))}" for name in names]
    return " ".join([*words, "ecn" if values.get("ecn") else "noecn"])


def _whole(text: str) -> str:
    """A time as a whole number of its unit, for ipfw(8) reads no other; gains are as they are."""
    if text.endswith("ms") and "." in text:
        return f"{round(units.seconds(text, 'target') * 1e6)}us"
    return text


def _kbit(rate: str) -> str:
    return str(round(units.rate_bps(rate, "rate") / 1e3))


def _bytes(size: str) -> str:
    return size.removesuffix("b")


def _number(limit: str) -> str:
    return limit.removesuffix("p")
