"""SFB: BLUE in many bins, and the least of a flow's bins counts.

Source: Feng, Kandlur, Saha and Shin 1999, §4; Linux (net/sched/sch_sfb.c) for its dialect. A packet belongs to one bin
on every level. On its arrival each of them, holding more than ``target`` packets, goes up by ``increment`` (d1), or
holding none goes down by ``decrement`` (d2); p_min is the least of their probabilities. At p_min = 1 a bucket of tokens
decides whether the packet may pass; otherwise it is signalled with probability p_min. What is accepted counts in all
its bins until it leaves. A packet whose bins all hold ``max``, one more than ``target``, is lost: the size of a bin is
the room in it.

Which bins are a flow's says the engine's hash: sixteen bits of it for each level, scaled to the bins of a level.

Linux: an empty bin goes down, any other from ``target`` on goes up; ``max`` is 25 or, if that is more, ``target``;
with p_min above one half, a draw below twice the excess is a loss, mark or no mark. Its bucket is asked only when it
has run empty, and then holds the whole tokens of the time since it was last asked so, of ten seconds at most.

Every ``rehash`` the next table of bins takes over, and ``db`` before that it begins to count what is accepted; flows at
1 move its probabilities too. Linux sees to it on an arrival that the limit allows, and asks for later, not for equal.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracle.frame import Discipline, Law, Packet, Signal, Uniform, chance
from oracle.parameters import Parameters, Waiting, Written
from oracle.stream import flow_hash, mixed

DEFAULTS: dict[str, Written] = {
    "limit": "1000p",
    "ecn": False,
    "dialect": "paper",
    "levels": "",
    "bins": "",
    "target": 20,
    "max": "",
    "increment": 0.0005,
    "decrement": 0.00005,
    "penalty_rate": 10,
    "penalty_burst": 20,
    "rehash": "600s",
    "db": "60s",
}


def build(given: Mapping[str, Written], rate_bps: int, uniform: Uniform) -> Discipline:
    """SFB; the rate does not matter."""
    known = Parameters(DEFAULTS, given)
    is_linux = known.word("dialect") == "linux"
    levels, bins = (8, 16) if is_linux else (2, 23)
    target = known.number("target")
    computed: dict[str, Written] = {
        "levels": levels,
        "bins": bins,
        "max": max(25.0, target) if is_linux else target + 1,
    }
    parameters = Parameters({**DEFAULTS, **computed}, given)
    return Discipline(Sfb(parameters, uniform), parameters.length("limit"))


class Bin:
    """A bin."""

    def __init__(self) -> None:
        self.held: set[int] = set()
        """Numbers of its packets."""
        self.p = 0.0


class Table:
    """All bins, and the hash that finds a flow's."""

    def __init__(self, levels: int, bins: int, salt: int) -> None:
        self.levels = [[Bin() for _ in range(bins)] for _ in range(levels)]
        self.salt = salt
        self.found: dict[int, list[Bin]] = {}
        """By flow, what was looked up."""

    def of(self, flow: int) -> list[Bin]:
        """A flow's bins, one a level."""
        if flow not in self.found:
            bits = flow_hash(flow, self.salt)
            bits |= mixed(bits) << 64
            self.found[flow] = [
                bins[(bits >> 16 * level & 0xFFFF) * len(bins) >> 16] for level, bins in enumerate(self.levels)
            ]
        return self.found[flow]


class Sfb(Law):
    """The law."""

    def __init__(self, parameters: Parameters, uniform: Uniform) -> None:
        self.is_linux = parameters.word("dialect") == "linux"
        self.target = parameters.number("target")
        self.max = parameters.number("max")
        self.increment = parameters.number("increment")
        self.decrement = parameters.number("decrement")
        self.rate = parameters.number("penalty_rate")
        self.burst = parameters.number("penalty_burst")
        self.rehash_ns = parameters.time_ns("rehash")
        self.warmup_ns = parameters.time_ns("db")
        self.marks = parameters.flag("ecn")
        self.uniform = uniform

        self.salts = uniform.fork()
        self.sizes = int(parameters.number("levels")), int(parameters.number("bins"))
        self.table = self.fresh_table()
        self.fresh_table()  # two hashes are drawn to begin with, the second for nothing
        self.next_table: Table | None = None
        """The table that warms up."""
        self.table_began_ns = 0
        self.tokens = self.burst
        self.tokens_ns = 0
        self.p_min = 0.0

    def arrival(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """Judges, and counts what passes."""
        self.turn_tables(now_ns)
        signal = self.judge(packet, now_ns)
        if signal is None or signal.word == "mark":
            for table in self.tables():
                for one in table.of(packet.flow):
                    one.held.add(packet.number)
        return signal

    def departure(self, packet: Packet, waiting: Waiting, now_ns: int) -> Signal | None:
        """A packet leaves the bins in which it was counted."""
        for table in self.tables():
            for one in table.of(packet.flow):
                one.held.discard(packet.number)
        return None

    def probability(self) -> float:
        """p_min of the last packet that was judged."""
        return self.p_min

    def judge(self, packet: Packet, now_ns: int) -> Signal | None:
        """Moves the bins and decides."""
        mine = self.table.of(packet.flow)
        self.move(mine)
        self.p_min = min(one.p for one in mine)
        if all(len(one.held) >= self.max for one in mine):
            return Signal("drop", "tail")
        if self.p_min >= 1.0:
            if self.next_table is not None:
                self.move(self.next_table.of(packet.flow))
            return None if self.may_pass(now_ns) else Signal("drop", "forced")
        can_mark = self.marks and packet.has_ect
        if self.is_linux and self.p_min > 0.5:
            draw = self.uniform.unit()
            if draw >= self.p_min:
                return None
            if draw < 2.0 * (self.p_min - 0.5):
                return Signal("drop", "overload" if can_mark else "early")
        elif not chance(self.p_min, self.uniform):
            return None
        return Signal("mark" if can_mark else "drop", "early")

    def move(self, bins: list[Bin]) -> None:
        """The steps of bins, of those that take one."""
        for one in bins:
            held = len(one.held)
            if held == 0:
                one.p = max(0.0, one.p - self.decrement)
            elif held > self.target or (self.is_linux and held == self.target):
                one.p = min(1.0, one.p + self.increment)

    def fresh_table(self) -> Table:
        """A table of a new hash."""
        return Table(*self.sizes, self.salts.bits())

    def may_pass(self, now_ns: int) -> bool:
        """Takes a token if there is one."""
        passed = (now_ns - self.tokens_ns) / 1e9
        if not self.is_linux:
            self.tokens = min(self.burst, self.tokens + passed * self.rate)
            self.tokens_ns = now_ns
        elif self.tokens < 1.0:
            self.tokens = min(self.burst, float(int(min(10.0, passed) * self.rate)))
            self.tokens_ns = now_ns
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    def tables(self) -> list[Table]:
        """The tables that count."""
        return [self.table] if self.next_table is None else [self.table, self.next_table]

    def turn_tables(self, now_ns: int) -> None:
        """Lets the next table begin, or take over."""
        if self.rehash_ns == 0:
            return
        ends_ns = self.table_began_ns + self.rehash_ns
        if now_ns > ends_ns:
            self.table = self.fresh_table() if self.next_table is None else self.next_table
            self.next_table = None
            self.table_began_ns = now_ns
        elif self.next_table is None and self.warmup_ns > 0 and now_ns > ends_ns - self.warmup_ns:
            self.next_table = self.fresh_table()
