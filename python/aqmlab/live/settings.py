"""What [tcp] means to a Linux host: sysctls of both ends, attributes of each block's route, and what no setting does.

The words are those of tcp(7), ip-sysctl and ip-route(8), as in `aqmlab tc`; the test bed sets them and reads them back.
A sysctl holds for a whole end, so what only a sysctl says is that of `[tcp]`, and a block that says otherwise is named
in a remark. What a route says (window, initial window, smallest timeout, segment size, ECN) each block has of its own.
What no setting does is in a remark as well, of `[tcp]` and of each block that differs from it.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aqmlab import engine
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import CannotRun
from aqmlab.json_files import Json
from aqmlab.scenario import tcp_keys
from aqmlab.tc import hosts
from aqmlab.tc import quantities as q

_ECN_OPTION = "net.ipv4.tcp_ecn_option"
"""When the option that counts marked bytes is sent; kernels without accurate ECN (RFC 9768) have no such setting."""

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""The controllers the kernel has at hand."""

MTU = 1500
"""Of the interfaces of the test bed, bytes."""

_OF_AN_END = ("repair", "idle_restart", "ecn_fallback", "dsack", "frto")
"""Keys of `[tcp]` that a kernel has for a whole end only, beside timestamps and the receive buffer."""


@dataclass(frozen=True)
class Block:
    """What the hosts of one block of traffic are set to."""

    route: str
    """Attributes of the routes between them, in the words of ip-route(8)."""
    congestion: str
    """Their congestion controller, by Linux's name; empty for UDP."""
    ecn: bool
    """Whether their connections ask for ECN."""


@dataclass(frozen=True)
class Settings:
    """What both ends are set to, and what cannot be."""

    sysctl: dict[str, str]
    route: str
    """Attributes of the routes of all else: of programs of the user's."""
    blocks: tuple[Block, ...]
    remarks: tuple[str, ...]

    def as_dict(self) -> Json:
        """For JSON."""
        return asdict(self)


def settings(resolved: Resolved) -> Settings:
    """The settings of a scenario."""
    tree = resolved.scenario
    tcp, traffic = tree["tcp"], tree["traffic"]
    whole = [_of_block(tcp, block) for block in traffic]
    with_tcp = [own for own, block in zip(whole, traffic, strict=True) if engine.speaks_tcp(block)]
    header = 60 if tree.get("live", {}).get("family") == "ipv6" else hosts.HEADERS
    # Where some connections ask for ECN and others do not, their routes say which do.
    all_ask = bool(with_tcp) and all(hosts.asks_for_ecn(own) for own in with_tcp)
    accurate = _with_accurate_ecn(tcp, with_tcp)
    blocks = tuple(
        Block("", "", False)
        if not engine.speaks_tcp(block)
        else Block(
            _route(own, header, hosts.asks_for_ecn(own) and not all_ask),
            hosts.kernel_control(own),
            hosts.asks_for_ecn(own),
        )
        for own, block in zip(whole, traffic, strict=True)
    )
    sysctls = {**_sysctls(tcp, with_tcp, all_ask), **_accurate(accurate)}
    usual = _route(tcp, header, hosts.asks_for_ecn(tcp) and not all_ask)
    return Settings(sysctls, usual, blocks, tuple(_remarks(tcp, traffic, whole, header)))


def missing_controllers(found: Settings, available: Collection[str]) -> list[str]:
    """The controllers that a kernel would need beside those it has."""
    wanted = [found.sysctl["net.ipv4.tcp_congestion_control"], *(block.congestion for block in found.blocks)]
    return [name for name in dict.fromkeys(wanted) if name and name not in available]


def refuse_missing(found: Settings, available: Collection[str], origin: str, whose: str | None = None) -> None:
    """Ends in one line where the kernel has not the congestion control that a scenario asks for.

    `whose` kernel that is, is said of another than this machine's, which may have modules.
    """
    if absent := missing_controllers(found, available):
        place = next((f"traffic.{k}" for k, block in enumerate(found.blocks) if block.congestion in absent), "tcp")
        if found.sysctl["net.ipv4.tcp_congestion_control"] in absent:
            place = "tcp"
        hint = "--kernel names another" if whose else "a module tcp_... may be missing"
        raise CannotRun(
            f"{origin}: {place}.cc: {', '.join(absent)}: {whose or 'this kernel'} has it not; it has "
            f"{', '.join(available)} ({hint})"
        )


def place_of_accurate_ecn(found: Settings, resolved: Resolved) -> str | None:
    """The section of a scenario that has hosts count marks (RFC 9768), if any has."""
    if _ECN_OPTION not in found.sysctl:
        return None
    tree = resolved.scenario
    own = (f"traffic.{k}" for k, block in enumerate(tree["traffic"]) if "ecn" in block)
    return "tcp" if hosts.has_accurate_ecn(tree["tcp"]) else next(own)


def _of_block(tcp: Tree, block: Mapping[str, Any]) -> Tree:
    """`[tcp]` as a block has it; a window of connection vectors is each connection's own."""
    own = {key: block[key] for key in tcp_keys({"tcp": tcp}) if key in block and block[key] != "vectors"}
    return {**tcp, **own}


def _with_accurate_ecn(tcp: Tree, with_tcp: list[Tree]) -> Tree | None:
    """The `[tcp]` whose hosts count marks, which a kernel's do at all connections of an end or at none."""
    accurate = [hosts.has_accurate_ecn(own) for own in with_tcp or [tcp]]
    if not all(accurate):
        return None
    return tcp if hosts.has_accurate_ecn(tcp) else with_tcp[0]


def _accurate(tcp: Tree | None) -> dict[str, str]:
    return {} if tcp is None else {"net.ipv4.tcp_ecn": "3", _ECN_OPTION: str(hosts.ecn_option(tcp)[0])}


def _sysctls(tcp: Tree, with_tcp: list[Tree], all_ask: bool) -> dict[str, str]:
    values = {**hosts.sysctls(tcp, [int(q.size(own["window"])) for own in with_tcp]), "tcp_ecn": int(all_ask)}
    return {f"net.ipv4.{name}": str(value) for name, value in values.items()}


def _route(tcp: Tree, header: int, asks_for_ecn: bool) -> str:
    room = MTU - header
    words = hosts.route(tcp, min(hosts.advertised(tcp), room), room)
    return " ".join([*words, *(["features ecn"] if asks_for_ecn else [])])


def _remarks(tcp: Tree, traffic: list[Tree], whole: list[Tree], header: int) -> list[str]:
    blocks = {f"traffic.{k}": own for k, own in enumerate(whole) if engine.speaks_tcp(traffic[k])}
    accurate = _with_accurate_ecn(tcp, list(blocks.values()))
    usual = _remarks_on(tcp, tcp, accurate, header)
    found = [f"tcp.{remark}" for remark in usual] + hosts.not_expressed(tcp, headers=header)
    for place, own in blocks.items():
        # What is said of [tcp] is so of all its blocks.
        found += [f"{place}.{remark}" for remark in _remarks_on(own, tcp, accurate, header) if remark not in usual]
        found += [f"{place}: {remark}" for remark in hosts.not_expressed(own, tcp, header)]
        differs = [key for key in _OF_AN_END if own[key] != tcp[key]]
        differs += ["timestamps"] if hosts.has_timestamps(own) != hosts.has_timestamps(tcp) else []
        if differs:
            said = " and ".join(differs)
            found.append(f"{place}: of {said} a kernel has one setting for all connections of a host: that of [tcp]")
    return found


def _remarks_on(own: Tree, tcp: Tree, accurate: Tree | None, header: int) -> list[str]:
    """What a kernel makes of keys of `own`, which is `tcp` or what a block has in its place."""
    found = []
    if str(own["stack"]) != "linux":
        found.append(f"stack = {own['stack']}: the hosts are this kernel's own, which the profile linux is like")
    if int(q.size(own["window"])) >= hosts.LARGEST_WINDOW:
        found.append(f"window = {own['window']}: TCP has no more than {hosts.LARGEST_WINDOW} bytes (RFC 7323)")
    if hosts.has_accurate_ecn(own):
        found += _remarks_on_accurate_ecn(own, accurate)
    elif str(own["ecn"]) not in ("off", "on"):
        found.append(f"ecn = {own['ecn']}: Linux has no ECN-capable SYN/ACK, so this is RFC 3168")
    if other := hosts.another_repair(own):
        found.append(f"repair = {own['repair']}: Linux repairs as {other}")
    if offered := _offered_at_first(own, tcp):
        found.append(offered)
    by_header = hosts.timestamps_by_header(own)
    if by_header and hosts.has_timestamps(own) == hosts.has_timestamps(tcp):
        found.append(by_header)
    if rounded := hosts.rounds_rto_min(own):
        found.append(f"rto_min = {rounded}")
    if hosts.advertised(own) > MTU - header:
        room = MTU - header - (hosts.TIMESTAMPS if hosts.has_timestamps(own) else 0)
        found.append(f"mss = {own['mss']}: no more than {room} bytes fit in packets of {MTU}")
    return found


def _offered_at_first(own: Tree, tcp: Tree) -> str | None:
    """What receivers offer at first, where that is another window than `own` says: their buffers are as in `tcp`."""
    if own["receive_buffer"] == tcp["receive_buffer"]:
        return hosts.grows_at_first(own)
    window, buffer, first = int(q.size(own["window"])), int(q.size(own["receive_buffer"])), hosts.first_buffer(tcp)
    if min(window, buffer // 2 or window) == min(window, first // 2):
        return None
    return f"receive_buffer = {own['receive_buffer']}: all receivers of a host begin with that of [tcp], {first} bytes"


def _remarks_on_accurate_ecn(own: Tree, accurate: Tree | None) -> list[str]:
    if accurate is None:
        return ["ecn = accurate: a kernel counts marks at all connections of a host or at none; not at these"]
    _, found = hosts.ecn_option(own)
    if own["ecn_option"] != accurate["ecn_option"]:
        one = hosts.as_word(accurate["ecn_option"])
        found.append(f"ecn_option = {hosts.as_word(own['ecn_option'])}: all connections of a host have {one}")
    return found
