"""`@aqmlab.discipline`: what a class says of a discipline that holds packets, and its methods as the engine calls them.

They run in the interpreter. The engine holds the packets and counts them; the class has objects that stand for them.
"""

import ctypes
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

from aqmlab.errors import BadInput
from aqmlab.laws import interpreted, interrupted
from aqmlab.laws.declared import EARLY, Class, Declaration, declared_by
from aqmlab.laws.table import CALL, FAILED, QUEUE_CALL, QueueFacts, offset

NEEDED = ("offer", "take")
"""Methods that a discipline has."""

_PLACE_BITS = 28
"""Of a handle, below the number of the packet."""


class Packet:
    """A packet that has arrived: the same object for as long as the discipline keeps it. It may get attributes.

    - `number` says which packet of this queue it is, by arrival; the first is 1. Packets are in this order.
    - `size` is in bytes, of the IP packet; `arrived_ns` is when it came.
    - `ecn` is the ECN field as it arrived: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 marked.
    - `may_mark` says whether it may be marked: it is ECN-capable, and the parameter `ecn` is set.
    - `flow` has 63 bits that identify its flow, `dscp` the Differentiated Services codepoint, from 0 to 63.
    - `source` and `destination` are its hosts by number, if the discipline is declared with `hosts=True`; -1 if they
      are unknown.
    """

    def __init__(self, facts: QueueFacts) -> None:
        self._handle: int = facts.handle
        self._address = ctypes.addressof(facts)
        self.number: int = self._handle >> _PLACE_BITS
        self.arrived_ns: int = facts.now_ns
        self.size: int = facts.size
        self.ecn: int = facts.ecn
        self.may_mark = bool(facts.may_mark)
        self.flow: int = facts.flow
        self.dscp: int = facts.dscp
        self.source: int = facts.source
        self.destination: int = facts.destination

    def __lt__(self, other: "Packet") -> bool:
        return self.number < other.number

    def __repr__(self) -> str:
        return f"packet {self.number} of {self.size} bytes"


@dataclass(frozen=True)
class later:  # noqa: N801 - it reads as a word of an answer
    """What `take` returns if what waits is held back: the link asks again in `ns` nanoseconds, at least 1.

    It asks before if a packet arrives. Fractions of a nanosecond are rounded up.
    """

    ns: float


@overload
def discipline(cls: Class, /) -> Class: ...


@overload
def discipline(
    cls: None = None,
    /,
    *,
    name: str | None = None,
    tick: str | None = None,
    marks: bool = True,
    hosts: bool = False,
    gauges: Mapping[str, str] | None = None,
    source: str = "",
    year: int = 0,
) -> Callable[[Class], Class]: ...


def discipline(
    cls: Any = None,
    /,
    *,
    name: str | None = None,
    tick: str | None = None,
    marks: bool = True,
    hosts: bool = False,
    gauges: Mapping[str, str] | None = None,
    source: str = "",
    year: int = 0,
) -> Any:
    """Declares a class to be a discipline, which holds packets and orders them. Its methods run in the interpreter.

    `offer(self, packet, queue)` hears of a packet that arrives, `take(self, queue)` returns the packet to send, None if
    nothing waits, or `later(ns)`. The words are those of `law`:

    - `name` is the discipline's name; by default it is made from that of the class: `TwoBands` is `two_bands`.
    - `tick` says how often the method `tick` is called: a time such as "15ms", or the name of a parameter that is a
      time or a frequency.
    - `marks=False` says that it never marks; it then has no parameter `ecn`.
    - `hosts=True` tells it the hosts of arriving packets.
    - `gauges` names fields that reports draw over time, and says of each what it is. One may be `probability`, one
      `flows`, one anything else.
    - `source` and `year` say where it comes from.

    Raises `BadInput` if the class cannot be a discipline.
    """

    def declare(cls: Class) -> Class:
        found = declared_by(cls, name, False, tick, marks, hosts, gauges or {}, source, year, holds=True)
        _check(found)
        cls.__aqmlab_law__ = found  # type: ignore[attr-defined]
        return cls

    return declare if cls is None else declare(cls)


def _check(found: Declaration) -> None:
    where = f"{found.place}: {found.cls.__name__}"
    for name in NEEDED:
        if name not in found.methods:
            raise BadInput(f"{where}: expected a method {name}; a discipline has {' and '.join(NEEDED)}")
    for name, item in interpreted.containers(found.cls).items():
        raise BadInput(
            f"{where}.{name}: a {type(item).__name__} in the class is shared by all queues; expected it in "
            f"__init__(self), as in self.{name} = ..."
        )


class _RefusedError(Exception):
    """What a discipline wanted to do to a packet is wrong; the engine says why."""


class Queue:
    """What a discipline learns in a call, and what it may do in it."""

    def __init__(self, address: int) -> None:
        self._address = address
        self._facts = facts = QueueFacts.from_address(address)
        self._drop, self._mark, self._later = (
            partial(call, address) for call in (facts._drop, facts._mark, facts._later)
        )
        self.chance: Callable[[float], bool] = partial(facts._chance, address)
        self.uniform: Callable[[], float] = partial(facts._uniform, address)

    now_ns = property(lambda self: self._facts.now_ns, doc="The time, in nanoseconds.")
    backlog_packets = property(
        lambda self: self._facts.backlog_packets,
        doc="Packets that wait, in `offer` without the arriving one. It follows what the call drops.",
    )
    backlog_bytes = property(lambda self: self._facts.backlog_bytes, doc="The same in bytes.")
    limit_packets = property(lambda self: self._facts.limit_packets, doc="`limit`, if in packets; else 2**63 - 1.")
    limit_bytes = property(lambda self: self._facts.limit_bytes, doc="`limit`, if in bytes; else 2**63 - 1.")
    is_full = property(
        lambda self: self._facts.is_full != 0,
        doc="In `offer`: the arriving packet goes beyond `limit`, so that it or others have to be dropped.",
    )
    rate_bps = property(lambda self: self._facts.rate_bps, doc="The rate of the link, in bits a second.")

    def drop(self, packet: Packet, cause: int = EARLY) -> None:
        """Loses a packet that waits, or the arriving one, for a cause: EARLY, FORCED, OVERLOAD, TAIL or its own."""
        if self._drop(self._own(packet), cause):
            raise _RefusedError(f"drop of {packet!r}")

    def mark(self, packet: Packet, cause: int = EARLY) -> None:
        """Marks a packet that waits or arrives and `may_mark`, for a cause."""
        if self._mark(self._own(packet), cause):
            raise _RefusedError(f"mark of {packet!r}")

    def _own(self, packet: Any) -> int:
        if not isinstance(packet, Packet):
            raise TypeError(f"expected a packet, not {packet!r}")
        if packet._address != self._address:
            raise ValueError(f"{packet!r} is of another queue; expected each queue to keep its own, made in __init__")
        return packet._handle

    def _word(self, said: Any) -> int:
        """What `take` has returned, as the interface has it."""
        if said is None:
            return 0
        if isinstance(said, later):
            return int(self._later(math.ceil(said.ns)))
        if not isinstance(said, Packet):
            raise TypeError(f"take returned {said!r}; expected a packet, None or aqmlab.later(ns)")
        return self._own(said)


def functions(declared: Declaration, sha256: str) -> dict[str, Any]:
    """The functions of a discipline, as ctypes has them; `sha256` is the digest of its file."""
    cost = interpreted.COSTS[sha256] = interpreted.Cost()
    made: dict[int, tuple[Any, list[tuple[str, Any, Any]]]] = {}
    queues: dict[int, Queue] = {}
    clock = time.perf_counter_ns
    methods = declared.methods

    def field(state: int, name: str) -> Any:
        kind = ctypes.c_int64 if declared.is_integer(name) else ctypes.c_double
        return kind.from_address(state + offset(declared, name))

    def make(state: int, address: int) -> Any:
        """The object of a state, with its parameters: a new one where the state is new."""
        begun = ctypes.c_int64.from_address(state + 8 * len(declared.fields))
        if begun.value == 0:
            begun.value = 1
            # What `__init__` computes from its parameters finds the values.
            new = interpreted.begun_of(declared.cls)
            set_parameters(new, state)
            new.__init__()
            kinds = {name: int if declared.is_integer(name) else float for name in declared.gauges}
            made[state] = (new, [(name, kind, field(state, name)) for name, kind in kinds.items()])
            interpreted.note(made, state, queues, address)
        set_parameters(made[state][0], state)
        return made[state][0]

    def set_parameters(one: Any, state: int) -> None:
        for name in declared.parameters:
            setattr(one, name, field(state, name).value)

    def prepare(one: Any, queue: Queue) -> int:
        if "prepare" in methods:
            methods["prepare"](one, queue)
        return 0

    def offer(one: Any, queue: Queue) -> int:
        said = methods["offer"](one, Packet(queue._facts), queue)
        if said is not None:
            raise TypeError(f"offer answered {said!r}; expected nothing: queue.drop(packet) refuses a packet")
        return 0

    def take(one: Any, queue: Queue) -> int:
        return queue._word(methods["take"](one, queue))

    def tick(one: Any, queue: Queue) -> int:
        methods["tick"](one, queue)
        return 0

    def function(call: Callable[[Any, Queue], int], kind: Any) -> Any:
        def called(state: int, address: int) -> int:
            began = clock()
            try:
                if interrupted.KEPT.error is not None:
                    interrupted.end_here()
                queue = queues.get(address)
                if queue is None:
                    queue = queues[address] = Queue(address)
                if call is prepare:
                    make(state, address)
                one, gauges = made[state]
                said = call(one, queue)
                for name, number, shown in gauges:
                    shown.value = number(getattr(one, name))
                return said
            except BaseException as error:
                if error is not interrupted.KEPT.error:
                    interpreted.FAILURES[declared.name] = told(error, methods.get(call.__name__))
                return FAILED
            finally:
                cost.calls += 1
                cost.ns += clock() - began

        interrupted.CALLED.add(called.__code__)
        return kind(called)

    ticks = {"tick": function(tick, CALL)} if "tick" in methods else {}
    calls = {"offer": function(offer, QUEUE_CALL), "take": function(take, QUEUE_CALL)}
    return {"prepare": function(prepare, CALL), **calls, **ticks}


def told(error: BaseException, method: Callable[..., Any] | None) -> str:
    """What was raised, and where in the discipline's own file."""
    if isinstance(error, _RefusedError):
        return f"{error}{interpreted.place(error)}"
    return interpreted.told(error, method)


interrupted.CATCHING.add(told.__code__)
