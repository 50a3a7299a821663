"""A discipline before a link: what each of its parameters comes to, given, by default or computed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aqmlab import engine, room, toml_text, units
from aqmlab.engine import Tree
from aqmlab.errors import BadInput
from aqmlab.laws import brought
from aqmlab.room import Room


@dataclass(frozen=True)
class WorkedOut:
    """A discipline with the value of every parameter."""

    row: dict[str, Any]
    """Its row of the registry."""
    rate_bps: float
    values: dict[str, Any]
    """By parameter, as a scenario has it; what is absent is not there."""
    given: tuple[str, ...]
    computed: tuple[str, ...]
    equilibrium: dict[str, float] | None
    """Of redopt: `drop_probability`, `queue_packets`, `rtt_s`, `window_packets`, `tcp_bps`."""
    room: Room | None
    """What its limit holds; `None` where it has none."""

    @property
    def name(self) -> str:
        """What the discipline is called."""
        return str(self.row["name"])

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "name": self.name,
            "rate_bps": self.rate_bps,
            "values": self.values,
            "given": list(self.given),
            "computed": list(self.computed),
            "equilibrium": self.equilibrium,
            "room": None if self.room is None else self.room.as_dict(),
        }


def worked_out(row: dict[str, Any], rate: str, given: Mapping[str, Any]) -> WorkedOut:
    """The values of `row`'s parameters before a link of `rate`, some of them `given`; raises `BadInput`."""
    name = str(row["name"])
    if "kind" in given:
        raise BadInput(f"explain {name}: --set kind: expected a parameter of {name}")
    tree = {
        "duration": "60s",
        "warmup": "10s",
        "link": {"rate": rate, "qdisc": {"kind": name, **_law(name), **given}},
        # The least that a scenario needs; nothing runs.
        "traffic": [{"kind": "bulk"}],
    }
    try:
        resolved = engine.resolve(toml_text.dumps(tree), f"explain {name}")
    except BadInput as error:
        # Lines of a text that nobody wrote.
        raise BadInput(re.sub(r"^(explain \w+):\d+:", r"\1:", str(error))) from None
    link = resolved.scenario["link"]
    values = {p["name"]: link["qdisc"][p["name"]] for p in row["params"] if p["name"] in link["qdisc"]}
    has_default = {param["name"] for param in row["params"] if param["default"] not in (None, "")}
    rate_bps = units.rate_bps(link["rate"], "link.rate")
    return WorkedOut(
        row=row,
        rate_bps=rate_bps,
        values=values,
        given=tuple(key for key in values if key in given),
        computed=tuple(key for key in values if key not in given and key not in has_default),
        equilibrium=engine.equilibrium(resolved),
        room=room.of(link["qdisc"], link, rate_bps),
    )


def _law(name: str) -> Tree:
    """The file of a discipline that is not built in, as it was brought."""
    law = brought.called(name)
    return {} if law is None else {"law": {"file": law.path.name, "sha256": law.sha256}}
