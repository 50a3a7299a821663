"""The witnesses of what a discipline does: the simulator is one, and these are the others.

Where two differ, a third says which is off: our discipline between real stacks in real time or in virtual time, and
the kernel's own discipline between the same stacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aqmlab import arguments, engine, scenario, toml_text
from aqmlab.engine import Resolved
from aqmlab.errors import BadInput
from aqmlab.results.result import Result
from aqmlab.runs import calibration
from aqmlab.runs.bed import Bed
from aqmlab.runs.runner import Job
from aqmlab.variants import Variant

SIMULATED = "simulated"


@dataclass(frozen=True)
class Witness:
    """One way to run a variant."""

    name: str
    """`live`, `virtual` or `kernel`."""
    bed: Bed

    def called(self, variant: str) -> str:
        """What the variant is called as seen by this witness."""
        return f"{variant}, {self.name}"

    def changed(self, resolved: Resolved) -> Resolved:
        """The scenario as this witness runs it."""
        if self.name != "kernel":
            return resolved
        tree = calibration.engine_tree(resolved)
        tree["live"] = {**tree.get("live", {}), "qdisc": "kernel"}
        return engine.resolve(toml_text.dumps(tree), resolved.origin)


def asked_for(live: bool, virtual: bool, kernel_qdisc: bool, kernel: str | None = None) -> list[Witness]:
    """The witnesses beside the simulator; `kernel` names the kernel of those in virtual time."""
    if kernel_qdisc and not (live or virtual):
        flag, *times = (arguments.named(name) for name in ("kernel_qdisc", "live", "virtual"))
        raise BadInput(f"compare: {flag}: expected {' or '.join(times)} with it, for the time it runs in")
    in_virtual_time = Bed(is_virtual=True, kernel=kernel)
    found = [Witness("live", Bed())] if live else []
    found += [Witness("virtual", in_virtual_time)] if virtual else []
    return found + ([Witness("kernel", in_virtual_time if virtual else Bed())] if kernel_qdisc else [])


def of_result(result: Result) -> str:
    """The witness that made a result."""
    if not result.live:
        return SIMULATED
    if result.scenario.get("live", {}).get("qdisc") == "kernel":
        return "kernel"
    return "virtual" if result.live.get("clock") == "virtual" else "live"


def named(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    """What each of several results is called, who says so, and which variant it speaks of.

    A live one speaks of what is simulated of the same scenario, if that is among them.
    """

    def key(result: Result) -> str:
        said = {key: item for key, item in result.scenario.items() if key not in ("name", "seed", "live", "record")}
        return scenario.digest(said)

    taken: set[str] = set()

    def free(called: str, result: Result) -> str:
        name = called if called not in taken else f"{called} ({result.folder.name})"
        if name in taken:
            raise BadInput(f"{result.folder}: another result is called {name!r} too; expected each of them once")
        taken.add(name)
        return name

    ours = {k: free(result.name, result) for k, result in enumerate(results) if not result.live}
    subject_of: dict[str, str] = {}
    for k, name in ours.items():
        subject_of.setdefault(key(results[k]), name)
    found = []
    for k, result in enumerate(results):
        witness = of_result(result)
        subject = ours.get(k) or subject_of.get(key(result), result.name)
        found.append((ours.get(k) or free(f"{subject}, {witness}", result), witness, subject))
    return found


def preview(asked: Sequence[Witness], variant: Variant, resolved: Resolved, folder: Path) -> list[Job]:
    """The live runs of a variant before their populations are known: enough to see whether this machine can."""
    if variant.uncongested:
        return []
    return [
        Job(
            w.called(variant.name),
            w.changed(resolved),
            folder / scenario.slug(w.called(variant.name)),
            bed=w.bed,
        )
        for w in asked
    ]


def remarks(resolved: Sequence[Resolved]) -> list[str]:
    """What stands in the way of a comparison."""
    stacks = {str(item.scenario["tcp"]["stack"]) for item in resolved} - {"linux"}
    if not stacks:
        return []
    return [
        f"tcp.stack = {', '.join(sorted(stacks))}: the simulator's hosts are others than the live ones; expected "
        'stack = "linux" where both are to agree'
    ]
