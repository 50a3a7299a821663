"""The compiled half of aqmlab: reads scenarios, runs them, knows the registries. Only `aqmlab.engine` imports it."""

from collections.abc import Callable
from typing import Any

class ScenarioError(ValueError):
    """A scenario that cannot be run: one line with file, key, value and what was expected."""

def version() -> str:
    """Version of the engine."""

def resolve(text: str, origin: str, overrides: list[tuple[str, str]]) -> str:
    """Checks a scenario and fills in every default; JSON with `toml`, `scenario`, `digest`, `loads`.

    `overrides` are pairs of a dotted key (`link.qdisc.qref`, `traffic.0.users`) and the text of a TOML value.
    """

def equilibrium(text: str, origin: str) -> str:
    """The equilibrium that the forward discipline of a scenario was computed for, as JSON; null where there is none.

    `drop_probability`, `queue_packets`, `rtt_s`, `window_packets`, `tcp_bps`.
    """

def simulate(resolved_toml: str, directory: str, progress: Callable[[dict[str, Any]], None] | None) -> str:
    """Runs a resolved scenario, writes its tables into `directory` and returns the summary as JSON.

    Releases the interpreter lock. Calls `progress` about ten times a second with `time_s`, `duration_s`,
    `bottleneck_packets`, `wall_s`; an exception raised there ends the run and comes out of this call.
    """

def disciplines() -> str:
    """The registry of disciplines as JSON."""

def stacks() -> str:
    """The TCP stack profiles as JSON."""

def traffic_models() -> str:
    """The traffic models as JSON."""
