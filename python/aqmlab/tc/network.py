"""A network as network namespaces: places between links, `veth` pairs for links, hosts of each block at its ends.

```text
left-0 ─ place-0 ═ core ═ place-1 ═ home ═ place-2 ─ right-0
                             │
                          right-1                          a block that crosses the core alone
```

A link is a pair of ports with its own name, one in the place on its left and one on its right. Each has the shaper and
the discipline of its direction, as the ports of a single link have. Two links meet in one place where a route goes from
one to the other. Each block has a host on either side, with addresses of its own, by which places know its route.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from aqmlab import links
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.tc import delays, hosts
from aqmlab.tc import quantities as q
from aqmlab.tc.lines import Line, Section, Setup
from aqmlab.tc.write import each_way, not_expressed, port, refuse_what_linux_lacks

LONGEST_NAME = 15 - len("-delay")
"""Characters of the name of a port that leave room for what stands on it."""

MOST_BLOCKS = 256
"""Addresses have a byte for the number of a block."""

SIDES = ("left", "right")

_WORDS = (
    (re.compile(r"(?<![\w-])tc (?=qdisc|class|filter)"), "tc -n {0} "),
    (re.compile(r"(?<![\w-])ip (?=link|route|address)"), "ip -n {0} "),
    (re.compile(r"(?<![\w-])(?=(?:sysctl|ethtool) )"), "ip netns exec {0} "),
)

_TAKEN = re.compile(r"lo|all|default|sysctl|ethtool|link\d+|(left|right|from)-.*|.*-delay")
"""Names of other ports, those that a kernel gives to no port, and the words before which `inside` puts a namespace."""


@dataclass(frozen=True)
class _Link:
    """A link between two places."""

    number: int
    name: str
    facts: Tree
    ends: tuple[int, int]
    """The places on its left and on its right."""

    @property
    def device(self) -> str:
        """Its ports, in either place."""
        is_option = self.name.startswith("-")
        is_own = not is_option and len(self.name) <= LONGEST_NAME and _TAKEN.fullmatch(self.name) is None
        return self.name if is_own else f"link{self.number}"

    def address(self, side: int) -> str:
        """The address of its port on the left, or on the right."""
        return f"10.0.{self.number}.{1 + side}"


def write(resolved: Resolved) -> Setup:
    """The lines for a checked scenario of several links; `BadInput` where Linux has no such discipline."""
    tree, origin = resolved.scenario, resolved.origin
    blocks: list[Tree] = tree.get("traffic", [])
    if len(blocks) > MOST_BLOCKS:
        raise BadInput(f"{origin}: traffic: {len(blocks)} blocks: lines for a network: expected at most {MOST_BLOCKS}")
    for name, link in links.of(tree).items():
        refuse_what_linux_lacks(link, origin, links.key(tree, name))
    there = _placed(tree, blocks)
    _refuse_places_passed_twice(there, tree, blocks, origin)
    _refuse_emulators(blocks, origin)
    sections = [
        ("ports", _namespaces(there, blocks)),
        *(("ports", _wires(link)) for link in there.values()),
        ("ports", _attached(there, tree, blocks)),
        ("ports", _routes(there, tree, blocks)),
        *(("qdisc", section) for link in there.values() for section in _ports(link, tree["tcp"])),
        *(("delay", section) for link in there.values() for section in _delays_of(link)),
        *(("delay", section) for section in _delays_of_blocks(there, tree, blocks)),
        *(("hosts", section) for section in _hosts(tree["tcp"], blocks)),
    ]
    return Setup(resolved.name, tuple(replace(section, part=part) for part, section in sections))


def inside(namespace: str, line: Line) -> Line:
    """A line that is carried out in a network namespace."""
    text = line.text
    for word, instead in _WORDS:
        text = word.sub(instead.format(namespace), text)
    return replace(line, text=text)


# ---- places ----


def _placed(tree: Tree, blocks: Sequence[Tree]) -> dict[str, _Link]:
    """Every link with its places: ends of links that follow each other on a route are one place."""
    names = list(links.of(tree))
    same = {(name, side): (name, side) for name in names for side in (0, 1)}

    def first(end: tuple[str, int]) -> tuple[str, int]:
        while same[end] != end:
            end = same[end]
        return end

    for block in blocks:
        forward, back = (links.route(tree, block, way) for way in links.WAYS)
        together = [((one, 1), (other, 0)) for one, other in itertools.pairwise(forward)]
        together += [((one, 0), (other, 1)) for one, other in itertools.pairwise(back)]
        # The hosts of a block stand where both its routes begin and end.
        together += [((forward[0], 0), (back[-1], 0)), ((forward[-1], 1), (back[0], 1))]
        for one, other in together:
            same[first(one)] = first(other)
    numbers: dict[tuple[str, int], int] = {}
    for name in names:
        for side in (0, 1):
            numbers.setdefault(first((name, side)), len(numbers))
    ends = {name: (numbers[first((name, 0))], numbers[first((name, 1))]) for name in names}
    return {name: _Link(k, name, links.of(tree)[name], ends[name]) for k, name in enumerate(names)}


def _passed(there: Mapping[str, _Link], route: Sequence[str], way: str) -> list[int]:
    """The places that a route comes by, from its beginning to its end."""
    begin = links.WAYS.index(way)
    return [there[route[0]].ends[begin], *(there[name].ends[1 - begin] for name in route)]


def _refuse_places_passed_twice(there: Mapping[str, _Link], tree: Tree, blocks: Sequence[Tree], origin: str) -> None:
    """Places send packets on by their address alone."""
    for number, block in enumerate(blocks):
        for way in links.WAYS:
            route = links.route(tree, block, way)
            passed = _passed(there, route, way)
            if len(set(passed)) < len(passed):
                raise BadInput(
                    f"{origin}: traffic.{number}.{links.ROUTES[way]}: {', '.join(route)}: lines for a network: "
                    f"expected a route that comes by no place twice; by the other routes two of its ends are one place"
                )


def _refuse_emulators(blocks: Sequence[Tree], origin: str) -> None:
    """netem has no clock of the clients' to work by."""
    for number, block in enumerate(blocks):
        if block.get("rtt_at") == "clients":
            raise BadInput(
                f'{origin}: traffic.{number}.rtt_at = "clients": lines for a network: expected senders, left or right'
            )


def _place(number: int) -> str:
    return f"place-{number}"


def _host(side: int, block: int) -> str:
    return f"{SIDES[side]}-{block}"


def _network(side: int, block: int) -> str:
    """The addresses of a block's hosts on one side, but for their last number."""
    return f"10.{1 + side}.{block}"


# ---- sections ----


def _namespaces(there: Mapping[str, _Link], blocks: Sequence[Tree]) -> Section:
    places = [_place(number) for number in sorted({end for link in there.values() for end in link.ends})]
    ends = [_host(side, number) for number in range(len(blocks)) for side in (0, 1)]
    lines = []
    for name in (*places, *ends):
        lines += [Line(f"ip netns add {name}"), inside(name, Line("ip link set dev lo up"))]
        lines.append(inside(name, Line("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")))
    for name in places:
        settings = "net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.send_redirects=0"
        lines.append(inside(name, Line(f"sysctl -qw {settings} net.ipv4.conf.default.rp_filter=0")))
    return Section(
        "network namespaces: places between the links, and the hosts of each block of traffic",
        tuple(lines),
        (
            "each is deleted, with all that is in it, by ip netns del NAME",
            *(f"{_host(0, k)} and {_host(1, k)}: traffic.{k} ({block['kind']})" for k, block in enumerate(blocks)),
        ),
    )


def _wires(link: _Link) -> Section:
    """The pair of ports of a link."""
    left, right = map(_place, link.ends)
    lines = [Line(f"ip link add name {link.device} netns {left} type veth peer name {link.device} netns {right}")]
    for side, place in enumerate((left, right)):
        lines += _up(place, link.device, f"{link.address(side)}/30")
    return Section(
        f"link {link.name}: port {link.device} in {left} is the one forward, in {right} the one back",
        tuple(lines),
        tuple(not_expressed(link.facts, f"{links.MANY}.{link.name}")),
    )


def _up(namespace: str, device: str, address: str) -> list[Line]:
    """A port that is up, and on which each packet queues by itself."""
    lines = [
        Line(f"ethtool -K {device} tso off gso off gro off"),
        Line(f"ip address add {address} dev {device}"),
        Line(f"ip link set dev {device} up"),
    ]
    return [inside(namespace, line) for line in lines]


def _ends(there: Mapping[str, _Link], tree: Tree, blocks: Sequence[Tree]) -> Iterator[tuple[int, int, str]]:
    """The hosts, by block and side, each with its place."""
    for number, block in enumerate(blocks):
        passed = _passed(there, links.route(tree, block, links.WAYS[0]), links.WAYS[0])
        for side, place in enumerate((passed[0], passed[-1])):
            yield number, side, _place(place)


def _attached(there: Mapping[str, _Link], tree: Tree, blocks: Sequence[Tree]) -> Section:
    """The hosts at their places."""
    lines = []
    for number, side, place in _ends(there, tree, blocks):
        host, network = _host(side, number), _network(side, number)
        lines.append(Line(f"ip link add name net netns {host} type veth peer name {host} netns {place}"))
        lines += [*_up(host, "net", f"{network}.2/30"), *_up(place, host, f"{network}.1/30")]
        lines.append(inside(host, Line(f"ip route add default via {network}.1")))
    return Section(
        "hosts at their places",
        tuple(lines),
        (f"access_rate {tree['path']['access_rate']}: not expressed; these ports are as fast as the machine",),
    )


def _routes(there: Mapping[str, _Link], tree: Tree, blocks: Sequence[Tree]) -> Section:
    """The way of each block's packets, at each place by the addresses of its hosts."""
    lines = []
    for number, block in enumerate(blocks):
        for side, way in enumerate(links.WAYS):
            for name in links.route(tree, block, way):
                link, to = there[name], _network(1 - side, number)
                hop = Line(f"ip route add {to}.0/30 via {link.address(1 - side)} dev {link.device}")
                lines.append(inside(_place(link.ends[side]), hop))
    return Section("routes", tuple(lines))


def _ports(link: _Link, tcp: Tree) -> tuple[Section, Section]:
    """Shaper and discipline of each direction."""
    sections = []
    for (queue, rate), end, way in zip(each_way(link.facts), link.ends, links.WAYS, strict=True):
        place = _place(end)
        found = port(link.facts, queue, rate, link.device, tcp, f"{link.name}, {way}: in {place}, {rate}")
        sections.append(replace(found, lines=tuple(inside(place, line) for line in found.lines)))
    return sections[0], sections[1].without_repetition(sections[0])


def _delays_of(link: _Link) -> list[Section]:
    """The delay behind a link, at the end where packets come out."""
    lines: list[Line] = []
    for key, end in zip(("delay", "reverse_delay"), reversed(link.ends), strict=True):
        if (delay_us := q.microseconds(str(link.facts.get(key, "0s")))) > 0:
            made = delays.on_arrival(link.device, f"{link.device}-delay", delay_us)
            lines += [inside(_place(end), line) for line in made]
    return [Section(f"delay of link {link.name}", tuple(lines))] if lines else []


def _delays_of_blocks(there: Mapping[str, _Link], tree: Tree, blocks: Sequence[Tree]) -> list[Section]:
    """What of a round trip lies beside the links: behind who sends, or all of it on one side of the links."""
    path = tree["path"]
    losses = [float(path.get(key, 0.0)) for key in ("loss", "reverse_loss")]
    places = {(number, side): place for number, side, place in _ends(there, tree, blocks)}
    sections = []
    for number, block in enumerate(blocks):
        rtt = block.get("rtt", path["rtt"])
        at = block.get("rtt_at", "senders")
        lines: list[Line] = []
        for side in (0, 1):
            # By whom the packets pass that this host sends, or the one on the other side.
            near, far = (places[number, side], _host(side, number)), (_host(1 - side, number), "net")
            namespace, device = near if at in ("senders", SIDES[side]) else far
            if delays.mean_us(rtt) > 0 or losses[side] > 0:
                made = delays.on_arrival(device, f"from-{_host(side, number)}", delays.mean_us(rtt) / 2, losses[side])
                lines += [inside(namespace, line) for line in made]
        if lines:
            title = f"round trip of traffic.{number} ({block['kind']}) beside the links"
            said = delays.of_each_connection(rtt)
            if "reorder" in path:
                said.append("not expressed: path.reorder; netem's is the share that is not delayed")
            sections.append(Section(title, tuple(lines), tuple(said)))
    return [one.without_repetition(sections[0]) if one is not sections[0] else one for one in sections]


def _hosts(tcp: Tree, blocks: Sequence[Tree]) -> Iterator[Section]:
    """The TCP of each block's hosts."""
    first: Section | None = None
    for number, block in enumerate(blocks):
        own = {**tcp, **{key: block[key] for key in tcp if key in block}}
        section = hosts.section(own, [])
        names = [_host(side, number) for side in (0, 1)]
        left = tuple(inside(names[0], line) for line in section.lines)
        right = tuple(Line(inside(names[1], line).text) for line in section.lines)  # remarks are said once
        section = replace(section, title=f"hosts of traffic.{number} ({block['kind']})", lines=left + right)
        yield section if first is None else section.without_repetition(first)
        first = first or section
