"""The compiled half of aqmlab: reads scenarios, runs them, knows the registries. Only `aqmlab.engine` imports it."""

from collections.abc import Callable
from typing import Any

class ScenarioError(ValueError):
    """A scenario that cannot be run: one line with file, key, value and what was expected."""

class LawError(RuntimeError):
    """A law from outside that misbehaves, in one line."""

def bring_library(library: str, path: str, sha256: str) -> str:
    """Brings the law of a shared library for scenarios that name the file `path`.

    JSON with its `disciplines`, and what it was `built_with`.
    """

def bring_table(address: int, path: str, sha256: str) -> str:
    """The same of a law whose table stands at an address of this process, for good."""

def bring_policy(
    name: str,
    doc: str,
    source: str,
    step_ns: int,
    memory: int,
    made: Callable[[], Callable[[tuple[Any, ...]], float]],
    path: str,
    sha256: str,
) -> str:
    """Brings a law that what `made` makes steers in each queue, for scenarios that name the file `path`.

    It is asked at the start and every `step_ns` with what was seen since, and answers with a probability. `memory` is
    how many steps back it knows. JSON as of `bring_library`.
    """

_Passed = tuple[tuple[Any, ...], tuple[int, int, int, float], tuple[float, int]]

class Stepped:
    """A run of a scenario, a step at a time."""

    def __init__(self, text: str, origin: str, link: str, way: int, laws: list[str] | None = None) -> None: ...
    def advance(self, until_ns: int) -> _Passed:
        """Lets everything happen that does before this instant, without the interpreter lock; what was seen since."""

    def steer(self, probability: float) -> None:
        """Packets are signalled with this probability from now on."""

    def choose(self, law: int) -> None:
        """The law of this number decides from now on."""

    def set(self, link: str, way: int, changes: list[tuple[str, str]]) -> None:
        """Sets parameters of a discipline from now on, all at once."""

    def close(self) -> None:
        """Ends the run."""

class Crew:
    """So many threads of the engine, in which runs pass."""

    def __init__(self, threads: int) -> None: ...
    def batch(self) -> Batch:
        """A batch without runs."""

    def close(self) -> None:
        """Ends the threads once they have done what they were given."""

class Batch:
    """Runs that pass at once. Iterating gives their numbers and what `Stepped.advance` returns of them."""

    def begin(self, number: int, run: Stepped, until_ns: int) -> None:
        """Hands over a run that is to pass until this instant."""

    def __iter__(self) -> Batch: ...
    def __next__(self) -> tuple[int, _Passed]: ...
    def end(self) -> None:
        """Ends the batch early: runs that nobody has begun with do not pass, and none passes any more after this."""

def bring_discipline(address: int, path: str, sha256: str) -> str:
    """The same of a discipline that holds packets."""

def drive(text: str, origin: str, seed: int, operations: int, tells: bool) -> str:
    """Puts the forward discipline of a resolved scenario through random operations.

    JSON with `offered`, `taken`, `lost`, `refused`, `marked`, `ticks`, `lost_when_idle`, `history`, `ns`; or, where the
    law misbehaves, with `fault` and its `story`.
    """

def replay(text: str, origin: str, seed: int, ops: str) -> str:
    """Puts the forward discipline of a resolved scenario through a story of offers, takes and looks.

    JSON with the `decisions`, one a step; or, where a law misbehaves, with the `fault`.
    """

def version() -> str:
    """Version of the engine."""

def resolve(text: str, origin: str, overrides: list[tuple[str, str]]) -> str:
    """Checks a scenario and fills in every default; JSON with `toml`, `scenario`, `digest`, `loads`, `files`,
    `reached`, `memory`.

    `overrides` are pairs of a dotted key (`link.qdisc.qref`, `traffic.0.users`) and the text of a TOML value.
    """

def check_toml(text: str, origin: str) -> None:
    """Checks that a text is TOML of a size and depth that are read."""

def equilibrium(text: str, origin: str) -> str:
    """The equilibrium that the forward discipline of a scenario was computed for, as JSON; null where there is none.

    `drop_probability`, `queue_packets`, `rtt_s`, `window_packets`, `tcp_bps`.
    """

def simulate(
    resolved_toml: str,
    directory: str,
    progress: Callable[[dict[str, Any]], None] | None,
    origin: str = "scenario.toml",
) -> str:
    """Runs a resolved scenario, writes its tables into `directory` and returns the summary as JSON.

    Files that it names lie beside `origin`.

    Releases the interpreter lock. Calls `progress` about ten times a second with `time_s`, `duration_s`,
    `bottleneck_packets`, `wall_s`; an exception raised there ends the run and comes out of this call.
    """

def disciplines() -> str:
    """The registry of disciplines as JSON."""

def measures() -> str:
    """The catalogue of measures as JSON."""

def known_as(name: str) -> str | None:
    """What the field knows by a name that is none of a discipline here, in a line; None of other names."""

def stacks() -> str:
    """The TCP stack profiles as JSON."""

def controllers() -> str:
    """The congestion controllers as JSON."""

def traffic_models() -> str:
    """The traffic models as JSON."""

def quantities(model: str) -> str:
    """What a traffic model draws by default, as JSON: a list of quantities; of `bulk` and the like an empty one.

    A quantity has `name`, `unit` (`bytes`, `s` or nothing), `mean` (null where infinite), `quantiles` (`p10` to `p99`),
    `share_of_largest` (`1%`, `10%`: of the sum) and, of bytes, `up_to` (`10kb`, `1mb`: `of_values`, `of_bytes`).
    """

def table_quantity(name: str, text: str) -> str:
    """The same of the distribution in the text of a CSV file called `name`."""

def vectors(name: str, text: str) -> str:
    """The connection vectors in the text of a file called `name`, as JSON, in the order of their starts.

    Each has `start_us`, `is_concurrent`, `windows`, `rtt_us`, `losses` and `units` as [end, wait_us, size_bytes].
    """

def live(directory: str) -> int:
    """Makes the live run that `directory` describes (`scenario.toml`, `live.json`) and leaves everything there.

    The answer is an exit code; the process is to have no other thread, and to end then.
    """
