"""What an agent may do at a step: say a probability, set parameters, or choose among laws."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from aqmlab import engine, links, units
from aqmlab.engine import Stepped, Tree
from aqmlab.errors import BadInput
from aqmlab.laws import brought
from aqmlab.laws.observed import PROBABILITY, Range
from aqmlab.scenario import Source
from aqmlab.tc import words

PROBABILITY_NAME = "probability"
STEERED = "steered"
"""What the engine calls a discipline that is steered."""

ActionLike = str | Mapping[str, Sequence[Any]] | Sequence[str]

_UNITS = {"s": "s", "bytes": "b", "packets": "p", "bit/s": "bit", "Hz": "hz", "%": "%", "": ""}
_EXAMPLE = '{"target": ("1ms", "50ms", "log")}'


Whole = frozenset[str]
"""Parameters of a discipline that are whole numbers without a unit."""

Laws = Sequence[tuple[str, Tree]]
"""Words for laws, and the disciplines that they stand for."""

MOST_CORNERS = 256
"""So many corners of the ranges of parameters are tried, all of eight parameters; of more only the outermost two."""


class Action(Protocol):
    """What an agent may do."""

    space: spaces.Space[Any]
    laws: Laws | None
    """Laws to choose among; none where a probability is said; None where the scenario's discipline stays."""
    values: dict[str, float | str]
    """What was last done, for people."""

    def check(self, run: Stepped, whole: Whole) -> None:
        """Tries in a run that nobody uses what an agent may do; raises `BadInput` where it cannot be done."""

    def begin(self, whole: Whole) -> None:
        """Forgets what was done, at the start of a run."""

    def read(self, action: Any) -> Any:
        """What an agent says, for `apply`; raises `BadInput` where it is no action."""

    def apply(self, run: Stepped, said: Any) -> None:
        """Does what an agent says."""


class Probability:
    """A number from -1 to 1 stands for the probability with which arriving packets are signalled."""

    def __init__(self, scale: Range) -> None:
        self.range = scale
        self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.laws: Laws | None = ()
        self.values: dict[str, float | str] = {PROBABILITY_NAME: 0.0}

    def check(self, run: Stepped, whole: Whole) -> None:
        """Any probability can be said."""

    def begin(self, whole: Whole) -> None:
        """Nothing is signalled before the first action."""
        self.values = {PROBABILITY_NAME: 0.0}

    def read(self, action: Any) -> list[float]:
        """One number."""
        return _numbers(action, 1)

    def apply(self, run: Stepped, said: list[float]) -> None:
        """Signals with the probability that the number stands for."""
        probability = self.range.value(said[0])
        self.values = {PROBABILITY_NAME: probability}
        run.steer(probability)


class Parameters:
    """Numbers from -1 to 1 stand for values of the discipline's parameters."""

    def __init__(self, ranges: Mapping[str, tuple[Range, str]], link: str, way: int) -> None:
        self.ranges, self.link, self.way = ranges, link, way
        self.space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (len(ranges),), np.float32)
        self.laws: Laws | None = None
        self.values: dict[str, float | str] = {}
        self._whole: Whole = frozenset()

    def check(self, run: Stepped, whole: Whole) -> None:
        """Tries the ends of the ranges, each with each, so that what cannot be set is said before anything runs."""
        ends = [((name, scale.low), (name, scale.high)) for name, (scale, _) in self.ranges.items()]
        corners = itertools.product(*ends) if 2 ** len(ends) <= MOST_CORNERS else zip(*ends, strict=True)
        for corner in corners:
            written = {name: self._written(name, end, whole) for name, end in corner}
            try:
                run.set(self.link, self.way, written)
            except BadInput as error:
                # A parameter that is not among them has to go with what they were set to.
                is_of_range = str(error).partition(" ")[0] in written
                tried = "" if is_of_range else f"{', '.join(f'{name} = {text}' for name, text in written.items())}: "
                raise BadInput(f"action: {tried}{error}") from None

    def begin(self, whole: Whole) -> None:
        """The scenario's values stand before the first action."""
        self.values, self._whole = {}, whole

    def read(self, action: Any) -> list[float]:
        """A number for each parameter."""
        return _numbers(action, len(self.ranges))

    def apply(self, run: Stepped, said: list[float]) -> None:
        """Sets the parameters to the values that the numbers stand for."""
        written = {
            name: self._written(name, scale.value(number), self._whole)
            for (name, (scale, _)), number in zip(self.ranges.items(), said, strict=True)
        }
        if written != self.values:
            run.set(self.link, self.way, written)
            self.values = {**written}

    def _written(self, name: str, value: float, whole: Whole) -> str:
        unit = self.ranges[name][1]
        return str(round(value)) if name in whole and not unit else _written(value, unit)


class Choice:
    """A number says which of several laws decides."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.space: spaces.Space[Any] = spaces.Discrete(len(names))
        self.laws: Laws | None = [(name, words.parse(brought.spelled(name))) for name in names]
        self.values: dict[str, float | str] = {"law": names[0]}

    def check(self, run: Stepped, whole: Whole) -> None:
        """The engine has said which are no laws."""

    def begin(self, whole: Whole) -> None:
        """The first decides before the first action."""
        self.values = {"law": self.names[0]}

    def read(self, action: Any) -> int:
        """The number of a law."""
        return _number_of(action, len(self.names))

    def apply(self, run: Stepped, said: int) -> None:
        """Lets the law of this number decide."""
        self.values = {"law": self.names[said]}
        run.choose(said)


def _numbers(action: Any, count: int) -> list[float]:
    """Numbers that an agent says, so many; those beyond -1 and 1 are taken for these."""
    try:
        given = np.asarray(action)
        is_rounded = given.dtype == np.float32
        found: list[float] = (given if is_rounded else given.astype(float)).reshape(-1).tolist()
    except (TypeError, ValueError, OverflowError):
        found = []
    if len(found) != count or not all(map(math.isfinite, found)):
        raise BadInput(f"action: {action!r}: expected {count} number{'s' if count > 1 else ''} from -1 to 1")
    if is_rounded:
        return found
    # Cut first: a number can be too large for 32 bits.
    rounded: list[float] = np.array([min(max(number, -1.0), 1.0) for number in found], np.float32).tolist()
    return rounded


def _number_of(action: Any, count: int) -> int:
    """Which of several an agent says."""
    found = np.asarray(action)
    if found.size != 1 or not np.issubdtype(found.dtype, np.integer) or not 0 <= int(found.reshape(-1)[0]) < count:
        raise BadInput(f"action: {action!r}: expected a whole number from 0 to {count - 1}")
    return int(found.reshape(-1)[0])


def read(asked: ActionLike, link: str, way: int) -> Action:
    """What an agent may do, as the argument `action` has it; raises `BadInput` where that makes no sense."""
    if isinstance(asked, str):
        if asked != PROBABILITY_NAME:
            raise BadInput(
                f"action: {asked!r}: expected {PROBABILITY_NAME!r}, a parameter with its range as in {_EXAMPLE}, or a "
                f"list of laws to choose among"
            )
        return Probability(PROBABILITY)
    if isinstance(asked, Mapping):
        ranges = {str(name): _range(str(name), item) for name, item in asked.items()}
        if not ranges:
            raise BadInput(f"action: nothing; expected parameters with their ranges, as in {_EXAMPLE}")
        if PROBABILITY_NAME not in ranges:
            return Parameters(ranges, link, way)
        scale, unit = ranges[PROBABILITY_NAME]
        if len(ranges) > 1 or unit or not 0.0 <= scale.low < scale.high <= 1.0:
            raise BadInput("action: probability: expected it alone, with a range from 0 to 1")
        return Probability(scale)
    if not isinstance(asked, Sequence) or len(asked) < 2 or not all(isinstance(item, str) for item in asked):
        raise BadInput(f"action: {asked!r}: expected two or more laws to choose among, as in ['pie', 'codel']")
    return Choice(list(asked))


def _range(name: str, item: Any) -> tuple[Range, str]:
    if isinstance(item, str) or not isinstance(item, Sequence) or len(item) not in (2, 3):
        raise BadInput(f"action: {name}: {item!r}: expected the lowest and the highest value, and a scale if it is to "
                       f"be another than linear, as in {_EXAMPLE}")  # fmt: skip
    ends = [units.quantity(str(end)) for end in item[:2]]
    found = [end for end in ends if end is not None]
    if len(found) != 2 or found[0][1] != found[1][1]:
        raise BadInput(f"action: {name}: {item!r}: expected two values of one unit, as in {_EXAMPLE}")
    scale = Range(found[0][0], found[1][0], str(item[2]) if len(item) == 3 else "linear")
    scale.check(f"action: {name}")
    return scale, found[0][1]


def _written(value: float, unit: str) -> str:
    """A value as a scenario has it: exact, in the base unit; times and sizes are whole nanoseconds and bytes."""
    if unit == "s":
        return f'"{round(value * 1e9)}ns"'
    if unit in ("bytes", "packets", "bit/s"):
        return f'"{round(value)}{_UNITS[unit]}"'
    return f'"{value:.12g}{_UNITS[unit]}"' if unit else f"{value:.12g}"


def before(link: Tree, qdisc: Tree, origin: str) -> Source:
    """A scenario of one link, as a resolved one has it, with this discipline both ways."""
    tree = {links.ONE: {**link, "qdisc": qdisc, "reverse_qdisc": qdisc}, "traffic": [{"kind": "bulk"}]}
    return Source(tree, origin)


def whole_numbers(qdisc: Tree) -> Whole:
    """The parameters of a discipline of a resolved scenario that are whole numbers."""
    rows = {str(row["name"]): row for row in (*engine.disciplines(), *brought.disciplines())}
    return frozenset(param["name"] for param in rows[qdisc["kind"]]["params"] if param["kind"] == "integer")


KEPT = ("limit", "ecn", "capacity")
"""What a discipline that is steered keeps of the one in whose place it is."""


def steered(qdisc: Tree) -> Tree:
    """The discipline that is steered in place of another: with its limit, its capacity, and whether it marks."""
    kept: Tree = {key: qdisc[key] for key in KEPT if key in qdisc}
    return {"kind": STEERED, **kept}
