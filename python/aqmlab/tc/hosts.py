"""The end hosts: `sysctl` and `ip route` lines for a scenario's [tcp]; see tcp(7) and ip-route(8)."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from aqmlab import engine
from aqmlab.engine import Tree
from aqmlab.tc import quantities as q
from aqmlab.tc.lines import Line, Section

LARGEST_WINDOW = 1 << 30
"""RFC 7323 §2.3: a window of 2^16 scaled by 2^14."""

LARGEST_BUFFER = (1 << 31) - 1
"""Buffers are signed 32-bit numbers in the kernel."""

USUAL_BUFFER = 6 << 20
"""tcp(7): the largest receive buffer by default; less would bind windows that are not bound in the scenario."""

TIMESTAMPS = 12
"""Bytes of the timestamps option in each segment, RFC 7323 §3."""

HEADERS = 40
"""Bytes of the IPv4 and TCP headers without options."""

ETHERNET_MSS = 1460
"""The payload of a segment in Ethernet's 1500 bytes, with headers of 40."""

_WITH_SACK = {"sack", "rack", "ns2-sack1"}
"""Ways of repair in which receivers report what arrived."""
_KERNEL_S = {"newreno", "sack", "rack"}
"""Those that settings of a kernel make: without SACK it repairs as NewReno."""

_ECN = {"off": 0, "accurate": 3}
_ECN_OPTION = {"False": 0, "linux-minimum": 1, "linux": 2, "linux-persist": 3}
"""ip-sysctl, `tcp_ecn_option`: when hosts with accurate ECN send the option that counts bytes."""
_USUAL = {"dscp": "CS0", "hosts": "own"}
_EXPRESSED = {
    *("stack", "cc", "repair", "ecn", "window", "mss", "header", "syn_header"),
    *("initial_window", "idle_restart", "rto_min", "ecn_option"),
}
_ACKNOWLEDGING = {"delayed_ack", "delayed_ack_timeout", "delayed_ack_counts", "quick_acks", "quick_acks_for_ecn"}


def has_timestamps(tcp: Mapping[str, Any]) -> bool:
    """Whether segments carry timestamps: they take 12 bytes of a full one."""
    return int(q.size(tcp["header"])) >= HEADERS + TIMESTAMPS


def packet_bytes(tcp: Mapping[str, Any]) -> int:
    """A full segment as an IP packet."""
    return int(q.size(tcp["mss"])) + HEADERS + (TIMESTAMPS if has_timestamps(tcp) else 0)


def section(tcp: Tree, traffic: list[Tree]) -> Section:
    """The lines for the hosts at both ends."""
    remarks = not_expressed(tcp) + _exceptions(tcp, traffic)
    return Section(
        "hosts: on the machines at both ends; here the default route leads to the other end",
        (*_sysctls(tcp), *_route(tcp)),
        tuple(remarks),
    )


def _sysctl(name: str, value: Any, *remarks: str) -> Line:
    written = f"'{value}'" if " " in str(value) else value
    return Line(f"sysctl -w net.ipv4.{name}={written}", remarks)


def has_sack(tcp: Mapping[str, Any]) -> bool:
    """Whether losses are told by selective acknowledgements."""
    return str(tcp["repair"]) in _WITH_SACK


def has_rack(tcp: Mapping[str, Any]) -> bool:
    """Whether losses are found by time, and silent tails probed."""
    return str(tcp["repair"]) == "rack"


def another_repair(tcp: Mapping[str, Any]) -> str | None:
    """What a kernel does instead of a way of repair that none of its settings makes."""
    if str(tcp["repair"]) in _KERNEL_S:
        return None
    return "sack, after RFC 6675" if has_sack(tcp) else "newreno, which is all that there is without SACK"


def kernel_control(tcp: Tree) -> str:
    """The kernel's name of the congestion control. Its CUBIC is its own, whose CUBIC the scenario has."""
    return str(tcp["cc"]).partition("-")[0]


def has_accurate_ecn(tcp: Mapping[str, Any]) -> bool:
    """Whether marks are counted, RFC 9768."""
    return str(tcp["ecn"]) == "accurate"


def ecn_option(tcp: Mapping[str, Any]) -> tuple[int, list[str]]:
    """`tcp_ecn_option` for hosts with accurate ECN, and what it does otherwise than the scenario says."""
    asked = str(tcp["ecn_option"])
    usual = _ECN_OPTION["linux"]
    return _ECN_OPTION.get(asked, usual), (
        [] if asked in _ECN_OPTION else [f"ecn_option = {asked}: Linux sends the option by its own rules"]
    )


def _accurate(tcp: Tree) -> list[Line]:
    if not has_accurate_ecn(tcp):
        return []
    value, remarks = ecn_option(tcp)
    return [_sysctl("tcp_ecn_option", value, *remarks)]


def _sysctls(tcp: Tree) -> list[Line]:
    ecn, repair, with_rack = str(tcp["ecn"]), str(tcp["repair"]), has_rack(tcp)
    other = another_repair(tcp)
    buffer = min(max(4 * int(q.size(tcp["window"])), USUAL_BUFFER), LARGEST_BUFFER)
    lines = [
        _sysctl("tcp_congestion_control", kernel_control(tcp)),
        _sysctl("tcp_sack", int(has_sack(tcp)), *([f"repair = {repair}: Linux repairs as {other}"] if other else [])),
        _sysctl("tcp_timestamps", int(has_timestamps(tcp))),
        _sysctl(
            "tcp_ecn",
            _ECN.get(ecn, 1),
            *(
                [f"ecn = {ecn}: Linux has no ECN-capable SYN/ACK, so this is RFC 3168"]
                if ecn.startswith("plus")
                else ["ecn = accurate: Linux 7.3 has it, 6.12 and 6.18 have not"]
                if ecn == "accurate"
                else []
            ),
        ),
        *_accurate(tcp),
        _sysctl("tcp_slow_start_after_idle", int(bool(tcp["idle_restart"]))),
        _sysctl("tcp_no_metrics_save", 1, "connections start without what earlier ones learned, as they do in aqmlab"),
        _sysctl("tcp_recovery", *((1,) if with_rack else (0, f"no RACK and no probe of tails: repair = {repair}"))),
        _sysctl("tcp_early_retrans", 3 if with_rack else 0),
        _sysctl("tcp_rmem", f"4096 131072 {buffer}", "the window is bounded by the route below, not by buffers"),
        _sysctl("tcp_wmem", f"4096 65536 {buffer}"),
    ]
    return lines


def _route(tcp: Tree) -> list[Line]:
    words: list[str] = []
    remarks: list[str] = []
    window = int(q.size(tcp["window"]))
    if window < LARGEST_WINDOW:
        words.append(f"window {window}")
    else:
        remarks.append(f"window {tcp['window']}: TCP has no more than {LARGEST_WINDOW} bytes, and buffers set it")
    words.append(f"initcwnd {tcp['initial_window']}")
    words.append(f"rto_min {tcp['rto_min']}")
    mss = int(q.size(tcp["mss"])) + (TIMESTAMPS if has_timestamps(tcp) else 0)
    if mss != ETHERNET_MSS:
        words.append(f"advmss {mss}")
    if tcp["delayed_ack"] == "off":
        words.append("quickack 1")
    return [Line(f"ip route change $(ip route show default | head -n 1) {' '.join(words)}", tuple(remarks))]


def linux_defaults(control: str = "cubic") -> Tree:
    """[tcp] of the profile `linux`, for what a kernel does when nothing but the congestion control is set."""
    text = f'[tcp]\nstack = "linux"\ncc = "{control}"\n[[traffic]]\nkind = "bulk"\n'
    tcp: Tree = engine.resolve(text, "the profile linux").scenario["tcp"]
    return tcp


def not_expressed(tcp: Tree, also_expressed: AbstractSet[str] = frozenset()) -> list[str]:
    """Keys in which the scenario differs from what a kernel does, and that no setting changes."""
    kernel = linux_defaults(kernel_control(tcp))
    quick = _ACKNOWLEDGING if tcp["delayed_ack"] == "off" else set()
    expressed = _EXPRESSED | quick | also_expressed
    if tcp["cc"] == "cubic-rfc":
        expressed = expressed - {"cc"}
    names = [key for key in tcp if key not in expressed and not q.same(tcp[key], kernel.get(key))]
    if not names:
        return []
    said = ", ".join(f"{key} {as_word(tcp[key])} (Linux {as_word(kernel.get(key, 'without'))})" for key in names)
    return [f"Linux has no setting for {said}"]


def as_word(value: Any) -> str:
    """A value as scenarios have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _exceptions(tcp: Tree, traffic: list[Tree]) -> list[str]:
    remarks = []
    for position, block in enumerate(traffic):
        own = [f"{key} = {block[key]}" for key in tcp if key in block]
        own += [f"{key} = {block[key]}" for key, usual in _USUAL.items() if block.get(key, usual) != usual]
        if own:
            remarks.append(f"traffic.{position} ({block['kind']}) has its own: {', '.join(own)}; set it on its hosts")
    return remarks
