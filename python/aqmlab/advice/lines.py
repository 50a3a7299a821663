"""What is advised as the lines of a platform: `tc`, OpenWrt's SQM, FreeBSD's `ipfw`, systemd-networkd, RouterOS; and
what is to be set in a port itself."""

import math
from typing import Any

from aqmlab import units
from aqmlab.advice import dummynet, situation
from aqmlab.advice.candidates import Candidate
from aqmlab.advice.question import Question
from aqmlab.advice.values import all_values, in_kbit, in_packets, is_pppoe, resolved, whole
from aqmlab.tc.table import ETHERNET_HEADER
from aqmlab.tc.write import FULL_FRAME_MEMORY, ROUTER_BURST_S, unshaped, write

LINE = ("lan", "wan")
"""The router's port towards the users, and that towards the line."""


FILES = {
    "linux": "router.sh",
    "freebsd": "router.sh",
    "openwrt": "router-sqm",
    "systemd-networkd": "router.network",
    "mikrotik": "router.rsc",
    "hardware": "port.txt",
}
"""What the lines of a platform are called as a file."""


def file(question: Question, candidate: Candidate) -> tuple[str, str] | None:
    """The lines as a file: its name, and what is in it; nothing where nothing is to be set.

    Shell scripts have the names of ports as variables, and may be run again.
    """
    if candidate.settings is None or candidate.in_modem or candidate.router is not None:
        return None
    if question.access.is_port and question.platform == "linux":
        return FILES["linux"], _port_script(question, candidate)
    made = {"linux": _tc_script, "freebsd": dummynet.script}
    if question.platform not in made:
        return FILES[question.platform], of(question, candidate)
    link = situation.router(question, candidate, situation.margin(question, candidate))
    return FILES[question.platform], made[question.platform](question, link)


def _tc_script(question: Question, link: dict[str, Any]) -> str:
    """What is there is deleted first: htb cannot be replaced by htb, and cake keeps what a change does not name.

    A script that fails leaves no queue behind: half of a setup would be another one than was advised.
    """
    text = _tc(question, link, ('"$LAN"', '"$WAN"'))
    has_offloads = "ethtool " in text
    head = f"""#!/bin/sh
# Edit the names of the two ports below, or say them: LAN=eth1 WAN=eth0 sh router.sh. Run it as root, and again if need
# be; sh router.sh undo takes away what it has set.{_OFFLOADS if has_offloads else ""}
set -eu
: "${{LAN:={LINE[0]}}}"    # the port towards the users; where there are several, the bridge of all of them
: "${{WAN:={LINE[1]}}}"    # the port towards the line{_PPP if is_pppoe(question) else ""}

undo() {{
    for port in "$LAN" "$WAN"; do tc qdisc delete dev "$port" root 2>/dev/null || true; done
}}
undo
if [ "${{1:-}}" = undo ]; then{_SAID_OFF if has_offloads else ""} exit; fi
trap 'undo; echo "router.sh: a line failed, and nothing is set{_STAY_OFF if has_offloads else ""}" >&2' EXIT
"""
    if has_offloads:
        head += """
apart() {    # packets are joined where they come in: at members of a bridge or a bond, at the port below a VLAN
    ethtool -K "$1" tso off gso off gro off || echo 'offloads stay on: packets queue in bunches' >&2
    for below in /sys/class/net/"$1"/lower_*; do
        if [ -e "$below" ]; then apart "${below##*/lower_}"; fi
    done
}
"""
    if _STAB in text:
        head += f"""
stab() {{    # an Ethernet header is counted with each packet; ppp0 and the like have none
    if ip link show dev "$1" | grep -q link/ether; then echo {_STAB}; fi
}}
"""
    rows = []
    for row in text.splitlines():
        if row.startswith("ethtool "):
            row = f"apart {row.split()[2]}"
        elif row.startswith("tc ") and _STAB in row:
            row = row.replace(_STAB, f"$(stab {row.split()[4]})")
        rows.append(row)
    return "\n".join([head, *rows, "", "trap - EXIT"]) + "\n"


_OFFLOADS = """
# Offloads of the ports stay off then; this turns them on again: ethtool -K PORT tso on gso on gro on"""

_SAID_OFF = """ echo "router.sh: offloads of the ports stay off" >&2;"""

_STAY_OFF = ", but that offloads of the ports stay off"

_STAB = f"stab overhead -{ETHERNET_HEADER} linklayer ethernet"
"""What takes the Ethernet header off each packet, so that overhead counts from the IP packet."""

_PPP = ": ppp0, not the Ethernet port below it"
"""With PPPoE."""


def of(question: Question, candidate: Candidate) -> str:
    """The lines for a candidate, or what to do where there are none."""
    if candidate.settings is None:
        return "# Nothing to set: leave the queue as it is.\n"
    if candidate.in_modem:
        return (
            "# Nothing to set on the router. Ask the provider to turn on the modem's DOCSIS-PIE (RFC 8034), upstream.\n"
        )
    if candidate.router is not None:
        return "# Nothing to change: leave it as it is set.\n"
    if question.access.is_port:
        return _port(question, candidate) if question.platform == "linux" else _wred(question, candidate)
    link = situation.router(question, candidate, situation.margin(question, candidate))
    written = {
        "linux": _tc,
        "openwrt": _sqm,
        "freebsd": dummynet.of,
        "systemd-networkd": _networkd,
        "mikrotik": _routeros,
    }
    return written[question.platform](question, link)


def _tc(question: Question, link: dict[str, Any], ports: tuple[str, str] = LINE) -> str:
    setup = write(resolved(link), *ports, burst_s=ROUTER_BURST_S)
    is_cake = link["qdisc"]["kind"] == "cake"
    # cake takes apart what offloads have joined (split-gso).
    first, *sections = setup.only(("qdisc",) if is_cake else ("ports", "qdisc")).text.split("\n\n")
    first = first.replace("advice, on Linux", "The router, on Linux")
    if is_cake:
        *rows, command = sections[-1].splitlines()
        sections[-1] = "\n".join([*rows, f"#   - {NAT}", f"{command} nat"]) + "\n"
    elif ports == LINE:
        if without := _without_header(question):
            first += f"\n# {without}: leave its stab out."
        first += "\n# Of what is below a bridge, a bond or a VLAN, offloads too: ls -d /sys/class/net/*/lower_*"
    return "\n\n".join((first, *sections))


def _without_header(question: Question) -> str:
    """What is to be said of a port towards the line that has no Ethernet header, if it may be one."""
    if is_pppoe(question):
        return f"With PPPoE {LINE[1]} is ppp0, which has no Ethernet header"
    if question.access.name == "lte":
        return f"Where {LINE[1]} is wwan0 or another port of IP packets, it has no Ethernet header"
    return ""


PORTS = ("DOWN", "UP")
"""The port of a link on the router that sends towards the users, and that on the other one."""

_OF_PORTS = """# It is the physical port; of a bond, each of its members. At a VLAN, a bond or a bridge no queue forms.
# What the driver holds below the queue is one of its own, short where the port has byte queue limits:
#   ls /sys/class/net/PORT/queues/tx-0/byte_queue_limits
# On a port with several transmit queues one queue takes the place of mq, and all processors share its lock."""

FQ_CODEL_MEMORY = 32 << 20
"""What the kernel's fq_codel holds at most where nobody says, bytes of memory."""


def _each_way(question: Question, candidate: Candidate) -> tuple[list[str], list[str]]:
    """What stands behind `root` down and up, and what is to be said of it."""
    rates = {"rate": units.rate_text(question.down_bps), "reverse_rate": units.rate_text(question.up_bps)}
    ways = unshaped(resolved({**rates, **situation.port(question, candidate)}))
    texts = []
    for line in ways:
        kind, *words = line.text.split()
        if kind == "fq_codel" and (memory := int(words[1]) * FULL_FRAME_MEMORY) > FQ_CODEL_MEMORY:
            words += ["memory_limit", str(memory)]
        texts.append(" ".join([kind, *words]))
    said = dict.fromkeys(remark for line in ways for remark in line.remarks)
    return texts, [f"# - {remark}" for remark in said]


def _port(question: Question, candidate: Candidate) -> str:
    """The queue of each of the two ports, which send at the line's rate."""
    texts, said = _each_way(question, candidate)
    rows = [
        "# DOWN is the port of this link on the router that sends towards the users, UP that on the other one.",
        _OF_PORTS,
        *said,
    ]
    for port, text in zip(PORTS, texts, strict=True):
        # What is there is deleted first: a change keeps what it does not name.
        rows += [f"tc qdisc delete dev {port} root 2>/dev/null", f"tc qdisc add dev {port} root {text}"]
    return "\n".join(rows) + "\n"


def _port_script(question: Question, candidate: Candidate) -> str:
    (down, up), said = _each_way(question, candidate)
    remarks = "".join(f"{remark}\n" for remark in said)
    return f"""#!/bin/sh
# DOWN=eth1 sh router.sh on the router that sends towards the users, UP=eth1 sh router.sh on the other one, with the
# name of its port of this link. Run it as root, and again if need be; with undo behind it takes away what it has set.
{_OF_PORTS}
set -eu
if [ -z "${{DOWN-}}${{UP-}}" ]; then echo "router.sh: expected DOWN=eth1 or UP=eth1: a port" >&2; exit 2; fi
for port in ${{DOWN-}} ${{UP-}}; do tc qdisc delete dev "$port" root 2>/dev/null || true; done
if [ "${{1:-}}" = undo ]; then exit; fi

{remarks}if [ -n "${{DOWN-}}" ]; then
    tc qdisc add dev "$DOWN" root {down}
fi
if [ -n "${{UP-}}" ]; then
    tc qdisc add dev "$UP" root {up}
fi
"""


def _wred(question: Question, candidate: Candidate) -> str:
    """Thresholds of hardware in bytes and as times, in the words that most manuals have."""
    ways = [("down, the port that sends towards the users", question.down_bps), ("up, the other one", question.up_bps)]
    rows = [
        "# In the scheduler or drop profile of the physical port on both routers; words differ from maker to maker.",
    ]
    for said, bps in ways:
        values = candidate.qdisc(situation.way(question, bps))
        rows.append(f"# {said}:")
        if values["kind"] == "red":
            rows.append(f"minimum threshold {_held(values['min'], bps)}")
            rows.append(f"maximum threshold {_held(values['max'], bps)}")
            rows.append(f"drop probability at the maximum 1/{round(1 / values['probability'])}")
            rows.append(f"exponential weighting constant {round(-math.log2(values['wq']))}")
            rows.append(f"explicit congestion notification {'on' if values.get('ecn') else 'off'}")
        rows.append(f"queue limit {_held(values['limit'], bps)}")
    return "\n".join(rows) + "\n"


def _held(size: str, bps: float) -> str:
    number = int(size.removesuffix("b"))
    return f"{number} bytes ({units.say_seconds(number * 8 / bps)})"


NAT = "nat: hosts behind the router's address translation are told apart"


def _sqm(question: Question, link: dict[str, Any]) -> str:
    values = link["qdisc"]
    is_cake = values["kind"] == "cake"
    overhead = question.access.overhead_bytes
    if not is_cake and not is_pppoe(question):
        overhead -= ETHERNET_HEADER  # tc's stab adds to what the port counts, which is with its Ethernet header
    options = {
        "enabled": "1",
        "interface": _sqm_port(question),
        "download": in_kbit(link["rate"]),
        "upload": in_kbit(link["reverse_rate"]),
        "qdisc": values["kind"],
        "script": "piece_of_cake.qos" if is_cake else "simplest.qos",
        "linklayer": "ethernet" if question.access.cells == "noatm" else question.access.cells,
        "overhead": str(overhead),
        "qdisc_advanced": "1",
        "ingress_ecn": "ECN",
        "egress_ecn": "ECN" if is_cake or values.get("ecn") else "NOECN",
        "qdisc_really_really_advanced": "1",
    }
    if is_cake:
        for way, key in (("i", "qdisc"), ("e", "reverse_qdisc")):
            queue = all_values(link, key)
            words = ["besteffort nat", f"rtt {queue['rtt']}"]
            words += [f"mpu {queue['mpu']}"] if queue["mpu"] else []
            words += ["ptm"] if question.access.cake_cells == "ptm" else []
            words += ["ack-filter"] if queue["ack_filter"] == "on" else []
            options[f"{way}qdisc_opts"] = " ".join(words)
    else:
        for way, queue in (("i", all_values(link, "qdisc")), ("e", all_values(link, "reverse_qdisc"))):
            options[f"{way}qdisc_opts"] = f"interval {queue['interval']}"
            options[f"{way}target"] = whole(queue["target"])  # digits after a point are lost to sqm-scripts
            options[f"{way}limit"] = in_packets(queue["limit"])  # theirs is 1001 packets
    head = ["# /etc/config/sqm; then: /etc/init.d/sqm restart"]
    if overhead < 0 and (without := _without_header(question)):
        head.append(f"# {without}: overhead '{question.access.overhead_bytes}' then.")
    rows = [f"\toption {key} '{value}'" for key, value in options.items()]
    return "\n".join([*head, "config queue 'advice'", *rows]) + "\n"


def _sqm_port(question: Question) -> str:
    """OpenWrt's name of the port towards the line."""
    return f"pppoe-{LINE[1]}" if is_pppoe(question) else LINE[1]


WITH_TC = ("linux", "systemd-networkd", "openwrt")
"""Platforms that have tc(8)."""


def queue_ports(question: Question) -> tuple[str, str]:
    """The ports that have the queues on a platform that has tc(8): what the users receive, and what they send."""
    if question.access.is_port:
        return PORTS
    if question.platform == "openwrt":
        return f"ifb4{_sqm_port(question)}", _sqm_port(question)
    return LINE


SECTIONS = {
    "fq_codel": "FairQueueingControlledDelay",
    "codel": "ControlledDelay",
    "pie": "PIE",
    "fq_pie": "FlowQueuePIE",
}
"""The sections of systemd.network(5) for what stands below a shaper."""

CAKE_RTT_S = 0.1
"""CAKE's own, which systemd 252 and older cannot change."""


def _networkd(question: Question, link: dict[str, Any]) -> str:
    """Sections of systemd.network(5) for the two ports; each shapes what it sends."""
    ways = ((LINE[0], "qdisc", "rate"), (LINE[1], "reverse_qdisc", "reverse_rate"))
    said = f"# {LINE[1]} is ppp0, not the Ethernet port below it.\n\n" if is_pppoe(question) else ""
    return said + "\n".join(
        _sections(question, port, all_values(link, key), in_kbit(link[rate])) for port, key, rate in ways
    )


def _sections(question: Question, port: str, values: dict[str, Any], kbit: str) -> str:
    rows = [f"# In the .network file of {port}; then: networkctl reload"]
    if values["kind"] == "cake":
        own = {}
        if units.seconds(values["rtt"], "rtt") != CAKE_RTT_S:
            own["RTTSec"] = values["rtt"]
        if values["ack_filter"] == "on":
            own["AckFilter"] = "yes"
        if own:
            rows.append(f"# systemd 252 and older do not know {' and '.join(f'{key}=' for key in own)}")
        rows += ["[CAKE]", "Parent=root", f"Bandwidth={kbit}K", f"OverheadBytes={values['overhead']}"]
        if values["mpu"]:
            rows.append(f"MPUBytes={values['mpu']}")
        if values["framing"] != "noatm":
            rows.append(f"CompensationMode={values['framing']}")
        rows.append(f"PriorityQueueingPreset={values['diffserv']}")
        rows += ["NAT=yes"] if port == LINE[1] else []
        rows += [f"{key}={value}" for key, value in own.items()]
        return "\n".join(rows) + "\n"
    rows += ["[HierarchyTokenBucket]", "Parent=root", "Handle=0001", "DefaultClass=0001", ""]
    rows += ["[HierarchyTokenBucketClass]", "Parent=root", "ClassId=0001:0001", f"Rate={kbit}K"]
    header = 0 if port == LINE[1] and is_pppoe(question) else ETHERNET_HEADER
    if (beyond := question.access.overhead_bytes - header) > 0:
        rows.append(f"OverheadBytes={beyond}")
    rows += ["", f"[{SECTIONS[values['kind']]}]", "Parent=0001:0001", "Handle=0010"]
    if values["kind"].endswith("codel"):
        rows += [f"TargetSec={whole(values['target'])}", f"IntervalSec={whole(values['interval'])}"]
        rows.append(f"ECN={_yes(values['ecn'])}")
    return "\n".join(rows) + "\n"


def _routeros(question: Question, link: dict[str, Any]) -> str:
    """Queue types and trees of RouterOS 7: each port's tree shapes what it sends."""
    line = "pppoe-out1" if is_pppoe(question) else "ether1"
    rows = [
        f"# RouterOS 7, where {line} is the port towards the line and bridge that towards the users.",
        "# FastTrack goes past queues: turn its firewall rule off.",
    ]
    ways = (("down", "bridge", "qdisc", "rate"), ("up", line, "reverse_qdisc", "reverse_rate"))
    for way, port, key, rate in ways:
        values, kbit, name = all_values(link, key), in_kbit(link[rate]), f"advice-{way}"
        tree = f"/queue tree add name={name} parent={port} packet-mark=no-mark queue={name}"
        if values["kind"] == "cake":
            words = [f"cake-bandwidth={kbit}k", f"cake-overhead={values['overhead']}"]
            words += [f"cake-mpu={values['mpu']}"] if values["mpu"] else []
            words += [f"cake-atm={values['framing']}"] if values["framing"] != "noatm" else []
            words += [f"cake-diffserv={values['diffserv']}", f"cake-rtt={whole(values['rtt'])}"]
            words += ["cake-nat=yes"] if way == "up" else []
            words += ["cake-ack-filter=filter"] if values["ack_filter"] == "on" else []
            rows += [" ".join((f"/queue type add name={name} kind=cake", *words)), tree]
        else:
            words = [f"fq-codel-{one}={whole(values[one])}" for one in ("target", "interval")]
            words.append(f"fq-codel-ecn={_yes(values['ecn'])}")
            rows += [" ".join((f"/queue type add name={name} kind=fq-codel", *words)), f"{tree} max-limit={kbit}k"]
    return "\n".join(rows) + "\n"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
