"""What is advised for FreeBSD: pipes of dummynet(4), and the rules of ipfw(8) that lead to them."""

from typing import Any

from aqmlab.advice.question import Question
from aqmlab.advice.values import all_values, in_bytes, in_kbit, in_packets, is_pppoe, whole

PORT = "em0"

RULE_SET = 7
"""The set of ipfw's rules that is advised: FreeBSD's own, and those of most others, are in set 0."""

DUMMYNET = ((7001, 10), (7002, 20))
"""Down and up: the number of the pipe, and that of the rule, which stands before nat and all that accepts
(50 and 100 in FreeBSD's rc.firewall)."""

LOAD = "kenv net.inet.ip.fw.default_to_accept=1; kldload ipfw dummynet"
"""Without the first, a loaded ipfw ends in `65535 deny ip from any to any`."""

NOT_ONE_PASS = "sysctl net.inet.ip.fw.one_pass=0"

PIPE_BYTES = 1 << 20
"""What ipfw takes for the queue of a pipe at most, as FreeBSD comes: net.inet.ip.dummynet.pipe_byte_limit."""


def of(question: Question, link: dict[str, Any], port: str = PORT) -> str:
    """The lines, for the port towards the line."""
    ppp = ", which with PPPoE is ng0 or tun0" if is_pppoe(question) else ""
    lines = [f"# {port} is the port towards the line{ppp}"]
    if port == PORT:
        lines += [
            f"# If ipfw is not loaded: {LOAD}",
            "# Without the kenv, all traffic stops until there are rules that accept.",
            f"# First, if it is 1: {NOT_ONE_PASS}",
            "# With 1, what leaves a queue is let through, past all rules behind, those that deny and nat too.",
        ]
    ways = [
        (all_values(link, "qdisc"), link["rate"], f"in recv {port}"),
        (all_values(link, "reverse_qdisc"), link["reverse_rate"], f"out xmit {port}"),
    ]
    largest = max((1024 * _kbytes(values) for values, _, _ in ways if values["kind"] == "bfifo"), default=0)
    if largest > PIPE_BYTES:
        lines += _raised("pipe_byte_limit", largest, port)
    for (number, rule), (values, rate, way) in zip(DUMMYNET, ways, strict=True):
        kind, bw, to = values["kind"], f"bw {in_kbit(rate)}Kbit/s", "pipe"
        if kind == "bfifo":
            lines.append(f"ipfw pipe {number} config {bw} queue {_kbytes(values)}KBytes droptail")
        elif kind.startswith("fq_"):
            lines.append(f"ipfw pipe {number} config {bw}")
            lines.append(
                f"ipfw sched {number} config pipe {number} type {kind} {_law(values)} "
                f"quantum {in_bytes(values['quantum'])} limit {in_packets(values['limit'])} flows {values['flows']}"
            )
            lines.append(f"ipfw queue {number} config sched {number}")
            to = "queue"
        else:
            slots = in_packets(values["limit"])
            if number == DUMMYNET[0][0]:
                lines += _raised("pipe_slot_limit", int(slots), port)
            lines.append(f"ipfw pipe {number} config {bw} queue {slots} {kind} {_law(values)}")
        lines.append(f"ipfw add {rule} set {RULE_SET} {to} {number} ip from any to any {way}")
    return "\n".join(lines) + "\n"


def _raised(limit: str, wanted: int, port: str) -> list[str]:
    """Lines that let pipes be as long as is wanted: others may have longer ones by now.

    Lines that are shown are for any shell; that of FreeBSD's root was csh up to FreeBSD 13.
    """
    name = f"net.inet.ip.dummynet.{limit}"
    if port == PORT:
        return [f"# Unless sysctl -n {name} says more:", f"sysctl {name}={wanted}"]
    return [f'[ "$(sysctl -n {name})" -ge {wanted} ] || sysctl {name}={wanted}']


def script(question: Question, link: dict[str, Any]) -> str:
    """The lines as a script, which may be run again and touches nothing but what it has set."""
    numbers, rules = (" ".join(map(str, each)) for each in zip(*DUMMYNET, strict=True))
    head = f"""#!/bin/sh
# Edit the name of the port below, or say it: WAN=igb0 sh router.sh. Run it as root, and again if need be; sh router.sh
# undo takes away what it has set: rules of set {RULE_SET} ({rules}), and pipes ({numbers}). Where a limit of dummynet's
# was raised for these, it stays so: other pipes may need it by then.
set -eu
: "${{WAN:={PORT}}}"    # the port towards the line

undo() {{
    for rule in {rules}; do ipfw -q set {RULE_SET} delete "$rule" 2>/dev/null || true; done
    for number in {numbers}; do
        for what in queue sched pipe; do ipfw -q "$what" delete "$number" 2>/dev/null || true; done
    done
}}
undo
if [ "${{1:-}}" = undo ]; then exit; fi
trap 'undo; echo "router.sh: nothing is set" >&2' EXIT
if ! sysctl -n net.inet.ip.fw.one_pass net.inet.ip.dummynet.pipe_slot_limit >/dev/null 2>&1; then
    echo "router.sh: ipfw and dummynet are not loaded. Without the first of these, all traffic stops:" >&2
    echo "    {LOAD}" >&2
    exit 1
fi
if [ "$(sysctl -n net.inet.ip.fw.one_pass)" != 0 ]; then
    echo "router.sh: what leaves a queue would be let through, past all rules behind, those that deny and nat too:" >&2
    echo "    {NOT_ONE_PASS}" >&2
    exit 1
fi
"""
    return head + "\n" + of(question, link, '"$WAN"') + "\ntrap - EXIT\n"


def _kbytes(values: dict[str, Any]) -> int:
    """A limit in bytes as whole kilobytes, one at least."""
    return max(1, round(int(in_bytes(values["limit"])) / 1024))


def _law(values: dict[str, Any]) -> str:
    """The words of CoDel's or PIE's own parameters, as ipfw(8) has them."""
    names = (
        ("target", "interval")
        if values["kind"].endswith("codel")
        else ("target", "tupdate", "alpha", "beta", "max_burst")
    )
    words = [f"{name} {whole(str(values[name]))}" for name in names]
    return " ".join([*words, "ecn" if values.get("ecn") else "noecn"])
