"""Keys of a run's summary: which there can be, whatever runs."""

from collections.abc import Sequence
from functools import lru_cache

from aqmlab import near
from aqmlab.links import MANY, WAYS
from aqmlab.results import by_application, defined

NUMBER, NAME = "0", "NAME"
"""Steps of a pattern: a whole number (a block of traffic, a place in a list), and any name."""
OPEN = ("live", "routes")
"""Below these nothing is checked: what live runs and routes have depends on the run."""

_PERCENTILES = tuple(f"p{q}" for q in (10, 25, 50, 75, 90, 95, 99))
_CAUSES = ("early", "filtered", "forced", "overload", "tail")
_BELOW = {
    "dropped_by_cause": _CAUSES,
    "marked_by_cause": _CAUSES,
    "own_causes": (f"{NAME}.dropped", f"{NAME}.marked"),
    "loss_runs": (NUMBER,),
    "held_back": tuple(f"{NUMBER}.{what}" for what in ("goodput_bps", "window_share", "access_share")),
    "one_way_delay_s": _PERCENTILES,
    "delay_s": _PERCENTILES,
    "response_time_s": _PERCENTILES,
}
"""What stands below keys that are tables or lists."""
_OF_ENGINE = ("bottleneck_packets", "cpu_s", "events", "packets_per_cpu_s", "simulated_per_wall", "wall_s")


@lru_cache(maxsize=1)
def patterns() -> tuple[str, ...]:
    """Every key of a number, those of several links with `NAME` for a link's name."""
    own = [row.key for row in defined.every() if row.key is not None]
    whole = [f"{key}.{below}" for key in own for below in _BELOW.get(key.rpartition(".")[2], ())]
    whole += [key for key in own if key.rpartition(".")[2] not in _BELOW]
    forward, reverse = (f"{way}." for way in WAYS)
    of_way = [key.removeprefix(forward) for key in whole if key.startswith(forward)]
    others = [key for key in whole if not key.startswith(forward)]
    ways = [f"{way}{what}" for way in (forward, reverse) for what in of_way]
    engine = [f"engine.{name}" for name in _OF_ENGINE]
    linked = [f"{MANY}.{NAME}.{key}" for key in ways]
    return (*ways, *others, *linked, *engine, "measured_s", "seed", *of_applications())


@lru_cache(maxsize=1)
def of_applications() -> tuple[str, ...]:
    """The numbers of applications, which are worked out of tables and stand beside the summary."""
    every = by_application.APPLICATIONS
    return tuple(f"applications.{one.name}.{name}" for one in every for _, _, name in one.headings)


def check(key: str) -> None:
    """Raises `ValueError`, with what was expected, for a key that no run's summary has a number under."""
    steps = key.split(".")
    if steps[0] in OPEN or any(_fits(steps, pattern.split(".")) for pattern in patterns()):
        return
    there = dict.fromkeys(_as_given(steps, pattern) for pattern in patterns())
    raise ValueError(f"key: {key!r}: no number of a summary; {near.key(key, there)}")


def _fits(steps: Sequence[str], pattern: Sequence[str]) -> bool:
    if len(steps) != len(pattern):
        return False
    return all(
        step.isdecimal() if wanted == NUMBER else bool(step) if wanted == NAME else step == wanted
        for step, wanted in zip(steps, pattern, strict=True)
    )


def _as_given(steps: Sequence[str], pattern: str) -> str:
    """A pattern with the names and numbers that the key has in their places."""
    wanted = pattern.split(".")
    given = [*steps, *wanted[len(steps) :]]
    return ".".join(
        mine if want == NAME or (want == NUMBER and mine.isdecimal()) else want
        for mine, want in zip(given, wanted, strict=False)
    )
