"""The end hosts: `sysctl` and `ip route` lines for a scenario's [tcp]; see tcp(7) and ip-route(8)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from aqmlab import engine
from aqmlab.engine import Tree
from aqmlab.tc import quantities as q
from aqmlab.tc.lines import Line, Section

LARGEST_WINDOW = 1 << 30
"""RFC 7323 §2.3: a window of 2^16 scaled by 2^14."""

LARGEST_BUFFER = (1 << 31) - 1
"""Buffers are signed 32-bit numbers in the kernel."""

FIRST_BUFFER = 131072
"""tcp(7): the receive buffer that a connection begins with by default."""

USUAL_BUFFER = 6 << 20
"""tcp(7): the largest receive buffer by default; less would bind windows that are not bound in the scenario."""

USUAL_WINDOW = 3840 << 10
"""What Linux offers of that: of full segments of Ethernet 1448 bytes take 2304. It is the default of the stack
`linux`, which stands for hosts as they come."""

NOT_IN_LINUX = {
    "bbr3": "Linux has BBR v1 alone, as bbr; BBR v3 is in Google's tree (github.com/google/bbr), which calls it bbr",
    "ledbat": "Linux has no LEDBAT",
    "prague": "Linux has no Prague; it is in the L4S team's tree (github.com/L4STeam/linux)",
}
"""Congestion controllers that no Linux of kernel.org has, by the name that `sysctl` would have for them."""

LATER_VERSIONS = {"bbr3": "BBR v1"}
"""Of these, what Linux has by the name that the tree which has one gives it: the name without its version."""

TIMESTAMPS = 12
"""Bytes of the timestamps option in each segment, RFC 7323 §3."""

HEADERS = 40
"""Bytes of the IPv4 and TCP headers without options."""

SYN_OPTIONS = 8
"""Bytes of the options that each SYN has: the segment size (RFC 9293 §3.2) and the window's scale (RFC 7323 §2.2)."""

SACK_PERMITTED = 4
"""Bytes that the option to report what arrived takes in a SYN (RFC 2018 §2), padded; beside timestamps it is their
padding."""

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
    *("stack", "cc", "repair", "ecn", "window", "mss"),
    *("initial_window", "idle_restart", "rto_min", "ecn_option", "ecn_fallback"),
    *("receive_buffer", "dsack", "frto", "timestamps"),
}
_ACKNOWLEDGING = {"delayed_ack", "delayed_ack_timeout", "delayed_ack_counts", "quick_acks", "quick_acks_for_ecn"}


def has_timestamps(tcp: Mapping[str, Any]) -> bool:
    """Whether segments carry timestamps: they take 12 bytes of a full one."""
    return int(q.size(tcp["header"])) >= HEADERS + TIMESTAMPS


def timestamps_by_header(tcp: Mapping[str, Any]) -> str | None:
    """What hosts have where `timestamps` is not as `header` says, which alone is heard."""
    if bool(tcp["timestamps"]) == has_timestamps(tcp):
        return None
    have = "them, for which there is room" if has_timestamps(tcp) else "none, for which there is no room"
    return f"timestamps = {as_word(tcp['timestamps'])}: hosts have {have} in header = {tcp['header']}"


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


def not_in_linux(tcp: Mapping[str, Any]) -> str | None:
    """What is to be said of a congestion controller that no Linux of kernel.org has."""
    return NOT_IN_LINUX.get(str(tcp["cc"]).partition("-")[0]) if "cc" in tcp else None


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


def asks_for_ecn(tcp: Mapping[str, Any]) -> bool:
    """Whether connections ask for ECN in one of its ways."""
    return str(tcp["ecn"]) != "off"


def grows_at_first(tcp: Mapping[str, Any]) -> str | None:
    """What a kernel does where receivers are to offer all of a window from the start."""
    if int(q.size(tcp["receive_buffer"])) or int(q.size(tcp["window"])) <= FIRST_BUFFER // 2:
        return None
    return f"receive_buffer = 0b: Linux offers {FIRST_BUFFER // 2} bytes at first, and more as data comes"


def first_buffer(tcp: Mapping[str, Any]) -> int:
    """The receive buffer that all connections of an end begin with, in bytes."""
    return int(q.size(tcp["receive_buffer"])) or FIRST_BUFFER


def sysctls(tcp: Tree, windows: Sequence[int] = ()) -> dict[str, int | str]:
    """What a kernel is set to for `[tcp]`, by names below `net.ipv4`, but for ECN's own settings.

    `windows` are those of connections that have others, in bytes: buffers leave room for the largest. Where that is
    the usual one, its buffer bounds it as on hosts as they come.
    """
    first = first_buffer(tcp)
    largest = max(int(q.size(tcp["window"])), *windows, 0)
    is_usual = largest == USUAL_WINDOW
    buffer = USUAL_BUFFER if is_usual else min(max(4 * largest, USUAL_BUFFER), LARGEST_BUFFER)
    return {
        "tcp_congestion_control": kernel_control(tcp),
        "tcp_sack": int(has_sack(tcp)),
        "tcp_dsack": int(bool(tcp["dsack"])),
        "tcp_timestamps": int(has_timestamps(tcp)),
        "tcp_ecn_fallback": int(bool(tcp["ecn_fallback"])),
        "tcp_slow_start_after_idle": int(bool(tcp["idle_restart"])),
        "tcp_frto": 2 if tcp["frto"] else 0,
        "tcp_recovery": int(has_rack(tcp)),
        "tcp_early_retrans": 3 if has_rack(tcp) else 0,
        "tcp_no_metrics_save": 1,
        "tcp_rmem": f"4096 {first} {max(buffer, first)}",
        "tcp_wmem": f"4096 65536 {buffer}",
    }


def route(tcp: Tree, mss: int, usual_mss: int) -> list[str]:
    """The words of a route for `[tcp]`, whose hosts advertise `mss` bytes; `usual_mss` needs no word."""
    window = int(q.size(tcp["window"]))
    return [
        *([f"window {window}"] if window < LARGEST_WINDOW else []),
        f"initcwnd {tcp['initial_window']}",
        f"rto_min {q.time_text(1000 * rto_min_ms(tcp))}",
        *([f"advmss {mss}"] if mss != usual_mss else []),
        *(["quickack 1"] if tcp["delayed_ack"] == "off" else []),
    ]


def rto_min_ms(tcp: Mapping[str, Any]) -> int:
    """The least retransmission timeout of a route: ip(8) takes whole milliseconds, rounded up, 1 at least."""
    return max(1, math.ceil(q.microseconds(str(tcp["rto_min"])) / 1000))


def rounds_rto_min(tcp: Mapping[str, Any]) -> str | None:
    """The least timeout and what a route makes of it, where that is another."""
    if q.same(q.time_text(1000 * rto_min_ms(tcp)), tcp["rto_min"]):
        return None
    return f"{tcp['rto_min']}: ip takes whole milliseconds, {rto_min_ms(tcp)} here"


def advertised(tcp: Mapping[str, Any]) -> int:
    """The MSS option, in bytes: without the timestamps that take their room in each segment, RFC 6691."""
    return int(q.size(tcp["mss"])) + (TIMESTAMPS if has_timestamps(tcp) else 0)


def _sysctls(tcp: Tree) -> list[Line]:
    repair, ecn = str(tcp["repair"]), str(tcp["ecn"])
    remarks = {
        "tcp_no_metrics_save": ["connections start without what earlier ones learned, as they do in aqmlab"],
        "tcp_rmem": ["the route below bounds the window at first; a kernel widens it again as its buffer grows"],
    }
    values = sysctls(tcp)
    if absent := not_in_linux(tcp):
        name = kernel_control(tcp)
        first = LATER_VERSIONS.get(name)
        otherwise = "it this line fails" if first is None else f"that tree this is {first}"
        remarks["tcp_congestion_control"] = [f"cc = {tcp['cc']}: {absent}; without {otherwise}"]
        values["tcp_congestion_control"] = name if first is None else name.rstrip("0123456789")
    if grown := grows_at_first(tcp):
        remarks["tcp_rmem"].append(grown)
    if by_header := timestamps_by_header(tcp):
        remarks["tcp_timestamps"] = [by_header]
    if other := another_repair(tcp):
        remarks["tcp_sack"] = [f"repair = {repair}: Linux repairs as {other}"]
    if not has_rack(tcp):
        remarks["tcp_recovery"] = [f"no RACK and no probe of tails: repair = {repair}"]
    lines = [_sysctl(name, value, *remarks.get(name, [])) for name, value in values.items()]
    said = (
        [f"ecn = {ecn}: Linux has no ECN-capable SYN/ACK, so this is RFC 3168"]
        if ecn.startswith("plus")
        else ["ecn = accurate: Linux 7.3 has it, 6.12 and 6.18 have not"]
        if has_accurate_ecn(tcp)
        else []
    )
    lines.append(_sysctl("tcp_ecn", _ECN.get(ecn, 1), *said))
    if has_accurate_ecn(tcp):
        value, remarks_on_option = ecn_option(tcp)
        lines.append(_sysctl("tcp_ecn_option", value, *remarks_on_option))
    return lines


def _route(tcp: Tree) -> list[Line]:
    remarks = []
    if int(q.size(tcp["window"])) >= LARGEST_WINDOW:
        remarks.append(f"window {tcp['window']}: TCP has no more than {LARGEST_WINDOW} bytes, and buffers set it")
    if rounded := rounds_rto_min(tcp):
        remarks.append(f"rto_min {rounded}")
    words = " ".join(route(tcp, advertised(tcp), ETHERNET_MSS))
    return [Line(f"ip route change $({ROUTE}) {words}", tuple(remarks))]


ROUTE = r"ip route show default | sed -E '1!d; s/ (window|initcwnd|rto_min|advmss|quickack)( lock)? [^ ]+//g'"
"""The route as it is, without what an earlier run has set: ip shows a `lock` there that it does not take."""


def linux_defaults(control: str = "cubic") -> Tree:
    """[tcp] of the profile `linux`, for what a kernel does when nothing but the congestion control is set."""
    text = f'[tcp]\nstack = "linux"\ncc = "{control}"\n[[traffic]]\nkind = "bulk"\n'
    tcp: Tree = engine.resolve(text, "the profile linux").scenario["tcp"]
    return tcp


def not_expressed(tcp: Tree, end: Tree | None = None, headers: int = HEADERS) -> list[str]:
    """Keys in which the scenario differs from what a kernel does, and that no setting changes.

    `tcp` is `[tcp]`, or what a block has in its place at an end whose `[tcp]` is `end`: that sets what only sysctls do,
    and in what it differs in the same way is left out. `headers` are the bytes of IP's and TCP's without options.
    """
    known = [] if end is None else _not_expressed(end, end, headers)
    names = [name for name in _not_expressed(tcp, end or tcp, headers) if name not in known]
    return [f"Linux has no setting for {', '.join(names)}"] if names else []


def _not_expressed(tcp: Tree, end: Tree, headers: int) -> list[str]:
    """These keys, with their values here and in Linux."""
    kernel = {**linux_defaults(kernel_control(tcp)), **_headers(tcp, end, headers)}
    quick = _ACKNOWLEDGING if tcp["delayed_ack"] == "off" else set()
    expressed = _EXPRESSED | quick
    if tcp["cc"] == "cubic-rfc":
        expressed = expressed - {"cc"}
    names = [key for key in tcp if key not in expressed and not q.same(tcp[key], kernel.get(key))]
    return [f"{key} {as_word(tcp[key])} (Linux {as_word(kernel.get(key, 'without'))})" for key in names]


def _headers(tcp: Tree, end: Tree, headers: int) -> Tree:
    """The headers of a kernel; `header` says only whether they have timestamps, which are as `end` has them."""
    bare, full = f"{headers}b", f"{headers + TIMESTAMPS}b"
    options = TIMESTAMPS if has_timestamps(end) else SACK_PERMITTED if has_sack(end) else 0
    is_either = q.same(tcp["header"], full if has_timestamps(tcp) else bare)
    return {
        "header": tcp["header"] if is_either else full if has_timestamps(end) else bare,
        "syn_header": f"{headers + SYN_OPTIONS + options}b",
    }


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
        if absent := not_in_linux(block):
            remarks.append(f"traffic.{position}: cc = {block['cc']}: {absent}")
    return remarks
