"""Records who asks for how much when, to be replayed under every discipline alike.

A closed loop asks a slower network for less: users wait, and do not ask meanwhile. As Kuzmanovic (SIGCOMM 2005) did,
the demands are recorded where nobody waits, on the uncongested link on which loads are calibrated, and then asked again
at the recorded instants, whatever becomes of earlier answers.
"""

import os.path
import shutil
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from aqmlab import engine, files, links, reference, scenario, scratch, toml_text
from aqmlab.engine import Resolved, Tree
from aqmlab.errors import BadInput
from aqmlab.json_files import Json
from aqmlab.progress import Monitor
from aqmlab.reference import Rates
from aqmlab.results import store
from aqmlab.runs import runner

KEPT = ("dscp", "hosts", *links.ROUTES.values(), "rtt_at", "rtt_tick")
"""The keys of a block that a file of demands does not say, beside the hosts' TCP."""

HOMES = "homes"
"""The kind of a block that stands for several."""


@dataclass(frozen=True)
class Demands:
    """What one block of traffic asked for."""

    traffic: int
    """Which block, from 0."""
    file: str
    connections: int
    exchanges: int
    response_bytes: int


@dataclass(frozen=True)
class Recording:
    """Recorded demands, and the scenario that replays them."""

    scenario: str
    uncongested_rate_bps: float
    """Of the link it was recorded on, forward."""
    uncongested_reverse_rate_bps: float
    demands: tuple[Demands, ...]

    def as_dict(self) -> Json:
        """For JSON."""
        return asdict(self)


def claim(out: Path, resolved: Resolved) -> None:
    """Makes sure that a recording can go to `out`, before anything runs."""
    if out.suffix in ("", ".toml"):
        raise BadInput(f"{out}: expected the name of a file of demands, such as demands.csv; its scenario gets .toml")
    kinds = _kinds()
    asking = _asking(resolved.scenario)
    if not asking:
        raise BadInput(
            f"{resolved.origin}: traffic: nothing to record; expected a block that asks for exchanges: "
            f"{' or '.join(kinds)}, with a request above 0b"
        )
    for path in (out, out.with_suffix(".toml"), *_places(out, asking).values()):
        files.check_new(path)
    files.check_folder_of(out)


def _kinds() -> list[str]:
    """The kinds of traffic whose demands are replayed."""
    return list(dict.fromkeys(row["kind"] for row in engine.traffic_models() if row["is_recorded"]))


def _asking(tree: Tree) -> list[int]:
    """The blocks of a resolved scenario that are replayed. Where a request is empty nobody asks: it is a transfer."""
    kinds = _kinds()
    return [k for k, block in enumerate(tree["traffic"]) if block["kind"] in kinds and block.get("request") != "0b"]


def _places(out: Path, asking: Sequence[int]) -> dict[int, Path]:
    """The files of the demands of these blocks: of several each gets its number before the ending."""
    return {k: out if len(asking) == 1 else out.with_name(f"{out.stem}-{k}{out.suffix}") for k in asking}


def record(resolved: Resolved, rates: Rates, given: Tree, out: Path, monitor: Monitor) -> Recording:
    """Runs a scenario whose populations are known on the uncongested link, and writes what is asked for.

    `out` is the file of the demands; of several blocks that ask, each gets its number before the ending. The scenario
    beside it has the recorded blocks replaced by replays; the other blocks are what they were. `given` is the scenario
    as its author wrote it: variants stay, and what is the same in reverse stays the same.
    """
    tree = scenario.read(resolved.toml).tree
    on_link = reference.uncongested(tree, rates, resolved.origin)
    on_link["record"] = {**tree["record"], "drops": False, "exchanges": False, "demands": True}
    to_run = engine.resolve(toml_text.dumps(on_link), resolved.origin)
    monitor.expect(1, runner.size(to_run))
    with scratch.folder("recording") as folder:
        runner.in_parallel([lambda stop: _observe(to_run, folder, stop, monitor)], 1)
        # Films are asked for as well, by players whose choices a replay would not make.
        written = {k: path for k in _asking(tree) if (path := folder / f"demands-{k}.csv").exists()}
        if not written:
            raise BadInput(f"{resolved.origin}: traffic: nothing to record; nobody asked for anything in this time")
        places = _places(out, list(written))
        found = [_described(k, places[k], path) for k, path in written.items()]
        text = toml_text.dumps(_replaying(tree, given, found, resolved, out.parent))
        for path in (*places.values(), out.with_suffix(".toml")):
            if path.exists():
                raise BadInput(f"{path}: exists by now; expected the name of a new file")
        try:
            for k, path in written.items():
                shutil.move(path, places[k])
            store.write_text(out.with_suffix(".toml"), text)
        except BaseException:
            for path in places.values():
                path.unlink(missing_ok=True)
            raise
    return Recording(str(out.with_suffix(".toml")), *rates, tuple(found))


def _observe(resolved: Resolved, folder: Path, stop: threading.Event, monitor: Monitor) -> None:
    runner.observed(resolved, folder, "recording", [stop], monitor)


def _described(traffic: int, place: Path, path: Path) -> Demands:
    row = (
        pl.scan_csv(path)
        .select(
            connections=pl.col("direction").is_not_null().sum(),
            exchanges=pl.col("request_bytes").is_not_null().sum(),
            response_bytes=pl.col("response_bytes").cast(pl.Int64).sum(),
        )
        .collect()
        .row(0, named=True)
    )
    return Demands(traffic, str(place), **{name: int(value or 0) for name, value in row.items()})


def _authors(given: Tree) -> list[Tree]:
    """The author's block of each block of the resolved scenario: one of homes stands for what people do there."""
    (homes,) = (row for row in engine.traffic_models() if row["kind"] == HOMES)
    shares = {key["name"]: float(key["default"]) for key in homes["params"] if key["kind"] == "number"}

    def stands_for(block: Tree) -> int:
        return sum(block.get(name, share) != 0 for name, share in shares.items()) if block["kind"] == HOMES else 1

    return [block for block in given["traffic"] for _ in range(stands_for(block))]


def _replaying(tree: Tree, given: Tree, found: list[Demands], resolved: Resolved, folder: Path) -> Tree:
    """The scenario with replays in the places of what was recorded; names of other files as seen from `folder`.

    The hosts' TCP and the variants are as the author gave them: with every key of a stack written out, another `stack`
    or `cc` would change nothing, or contradict them. So are disciplines where there are variants.
    """
    here = Path(resolved.origin).parent
    names = {(kept.file, kept.sha256): os.path.relpath(str(here / kept.file), str(folder)) for kept in resolved.files}
    result: Tree = scenario.with_files_called(tree, names)
    given = scenario.with_files_renamed(given, lambda name, _: os.path.relpath(str(here / name), str(folder)))
    of_tcp = scenario.tcp_keys(tree)
    for position, (block, own) in enumerate(zip(result["traffic"], _authors(given), strict=True)):
        # Calls of homes have nothing of their TCP.
        own = {} if own["kind"] == HOMES and block["kind"] in engine.kinds_over_udp() else own
        # Vectors have windows too, and a block of them a `window` that says whose count.
        resolved_keys = {name: item for name, item in block.items() if name not in of_tcp}
        result["traffic"][position] = {**resolved_keys, **{name: own[name] for name in own if name in of_tcp}}
    for demands in found:
        block = result["traffic"][demands.traffic]
        kept_keys = {name: item for name, item in block.items() if name in of_tcp or name in KEPT}
        result["traffic"][demands.traffic] = {"kind": "replay", "demands": Path(demands.file).name, **kept_keys}
    for name in ("stacks", "tcp", "variant"):
        result.pop(name, None)
        if name in given:
            result[name] = given[name]
    for link, own in links.of(result).items():
        written = links.of(given)[link]
        for name in {"reverse_rate", "reverse_qdisc"} - written.keys():
            own.pop(name)
        if "variant" in given:  # another kind would not take every key of this one
            for name in scenario.QUEUES:
                if name in written:
                    own[name] = written[name]
                elif name == "qdisc":
                    own.pop(name, None)
    return result
