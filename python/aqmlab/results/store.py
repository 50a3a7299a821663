"""Writes result folders. A folder appears under its final name only when everything in it is complete."""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from aqmlab import arguments, checks, engine, files, forks, reference, toml_text, units
from aqmlab.engine import Resolved
from aqmlab.errors import BadInput
from aqmlab.json_files import Json, read_json
from aqmlab.laws import brought, forms
from aqmlab.results import seen, settled
from aqmlab.results.digests import left_out_of, table_digest
from aqmlab.results.result import Result
from aqmlab.results.summaries import merge_summaries, void_of
from aqmlab.scenario import LONGEST_NAME, demand_digest, digest, measured_window, with_files_called
from aqmlab.scenario import read as read_scenario

LONGEST_READ = 1 << 20
"""Characters of JSON that people may still look at."""

DELAYS = "delays"
"""A table that is no part of a run's digest, since results of older versions have none; what it tells is in others."""

FILES = "files"
"""The folder within a result that holds copies of the files that its scenario names."""

UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{32}\.partial", re.DOTALL)
"""What a file is called while it is written, with its name to be."""

VOLATILE = (
    *("wall_s", "cpu_s", "packets_per_cpu_s", "simulated_per_wall"),
    *("scheduling", "waited_for_processor_s", "waited_for_processor_worst_second_s", "times_woken"),
)
"""What a summary says about the machine rather than the experiment: outside the digest, as is the scenario's name."""


def claim(out: Path, resume: bool) -> None:
    """Makes sure results can go to `out`, before anything runs.

    A folder that exists is refused unless the work in it is to be resumed.
    """
    forks.check()
    if len(os.fsencode(out.name)) > LONGEST_NAME or "\0" in str(out):
        raise BadInput(f"{out}: expected a name of at most {LONGEST_NAME} bytes, and no zero byte")
    try:
        if out.exists() or out.is_symlink():
            if not out.is_dir():
                raise BadInput(f"{out}: exists and is not a folder; expected the name of a new result folder")
            if not resume and any(out.iterdir()):
                raise BadInput(
                    f"{out}: the result folder exists; expected a new name, or {arguments.named('resume')} to go on "
                    "with it"
                )
        out.parent.mkdir(parents=True, exist_ok=True)
        place = out if out.is_dir() else out.parent
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise BadInput(f"{out}: cannot be written: {error.strerror or error}; expected a writable place") from None


def is_begun(folder: Path) -> bool:
    """Whether a folder holds more than what somebody who was killed had not finished writing."""
    return folder.is_dir() and any(not UNFINISHED.fullmatch(entry.name) for entry in folder.iterdir())


def runs_in(folder: Path) -> int:
    """How many finished runs a result folder holds: its own one, those of repetitions and those of variants."""
    return sum(
        _kind_in(path) == "run" for pattern in ("", "*/", "*/*/") for path in folder.glob(f"{pattern}manifest.json")
    )


def _kind_in(manifest: Path) -> Any:
    with contextlib.suppress(BadInput, OSError):
        return read_json(manifest).get("kind")
    return None


def free_name(base: Path) -> Path:
    """`base`, or `base-2`, `base-3`, ... whichever does not exist yet."""
    candidate, k = base, 1
    while candidate.exists():
        k += 1
        candidate = base.with_name(f"{base.name}-{k}")
    return candidate


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else works in an existing folder meanwhile: whoever comes second is told so."""
    with _opened(folder, os.O_RDONLY) as place:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(
                f"{folder}: another aqmlab is writing into it; expected its end, or another folder"
            ) from None
        except OSError:
            pass  # a file system without locks
        yield


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write what is to be `path`, which appears whole or not at all; two may do so at once.

    What somebody who was killed has left of the same is removed.
    """
    _tidy(path)
    with _unfinished(path) as partial:
        try:
            yield partial
            partial.replace(path)
        except OSError as error:
            if error.strerror is None or error.filename not in (None, str(partial)):
                raise
            raise OSError(error.errno, error.strerror, str(path)) from None  # of what is open it has no name
        finally:
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """A new file beside `path` that nobody tidies away as long as it is held."""
    while True:
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
        with _opened(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            # Until it was locked it looked as if nobody held it.
            if partial.exists():
                yield partial
                return


def _tidy(path: Path) -> None:
    """Removes unfinished files that were to be `path` and whose writer is gone: nobody holds their lock."""
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        found = [(entry.name, UNFINISHED.fullmatch(entry.name)) for entry in entries]
        for name in [name for name, of in found if of and of[1] == path.name]:
            with contextlib.suppress(OSError), _opened(path.with_name(name), os.O_RDONLY | os.O_NOFOLLOW) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.with_name(name).unlink()


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    place = os.open(path, flags, 0o666)
    try:
        yield place
    finally:
        os.close(place)


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    with replacing(path) as partial:
        partial.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Writes JSON whole or not at all; what nobody reads for its length has no line breaks, which take long to set."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) < LONGEST_READ:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


@contextlib.contextmanager
def making(final: Path) -> Iterator[Path]:
    """An empty folder beside `final` for a run to write into, and nobody else; see `finish_run`.

    What an interrupted run left there is thrown away, and so is this where it does not become `final`.
    """
    partial = final.with_name(f".{final.name}.partial")
    if partial.exists():
        with alone(partial):
            shutil.rmtree(partial)
    partial.mkdir(parents=True)
    with alone(partial):
        try:
            yield partial
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def keep_files(partial: Path, final: Path, resolved: Resolved) -> Resolved:
    """Copies the files that a scenario names into its result folder; the answer is the same scenario over the copies.

    A run beside this one that has the same file already shares it, where the file system can.
    """
    if not resolved.files:
        return resolved
    folder = partial / FILES
    folder.mkdir()
    names: dict[tuple[str, str], str] = {}
    for kept in resolved.files:
        source = Path(resolved.origin).parent / kept.file
        name = kept_name(source, kept.sha256)
        names[kept.file, kept.sha256] = f"{FILES}/{name}"
        above = [final.parent.parent / FILES / name, final.parent / FILES / name]
        others = (*filter(Path.exists, above), *final.parent.glob(f"[!.]*/{FILES}/{name}"))
        copy(source, folder / name, next((one for one in others if _sha256(one) == kept.sha256), None))
        # Of other files the engine sees it.
        if forms.is_file(name) and _sha256(folder / name) != kept.sha256:
            raise BadInput(f"{source}: has changed while runs were under way; start again")
    tree = with_files_called(read_scenario(resolved.toml).tree, names)
    copied = engine.resolve(toml_text.dumps(tree), str(partial / "scenario.toml"))
    assert copied.digest == resolved.digest, "a digest leaves out what files are called"
    return copied


def kept_name(source: Path, sha256: str) -> str:
    """What the copy of a file is called; that of a copy is the same."""
    return f"{sha256[:12]}-{source.name.removeprefix(f'{sha256[:12]}-')[-100:]}"


def _sha256(path: Path) -> str:
    """Of what is in a file; nothing of one that cannot be read."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return ""


def copy(source: Path, target: Path, same: Path | None = None) -> None:
    """Makes `target` a copy of `source`, or another name of what is the same already, where the file system can.

    Copies are read-only, since several results may have the same one.
    """
    try:
        if same is not None:
            with contextlib.suppress(OSError):
                os.link(same, target)
        if not target.exists():
            with replacing(target) as partial:
                shutil.copyfile(source, partial)
                partial.chmod(0o444)
    except OSError as error:
        raise BadInput(f"{source}: cannot be copied to the results: {error.strerror or error}") from None


def finish_run(
    partial: Path,
    final: Path,
    resolved: Resolved,
    summary: Json,
    calibrations: Sequence[Json],
    wall_s: float,
    live: Json | None = None,
    is_reference: bool = False,
) -> None:
    """Adds scenario, summary and manifest to the tables a run has written, and gives the folder its final name.

    `live` says how a run between real hosts was made; of a reference it is checked that nobody waited.
    """
    names = ("exchanges", "queue", DELAYS, "drops", "probes", "frames", "tcp")
    tables = {name: path for name in names if (path := partial / f"{name}.parquet").exists()}
    left_out = left_out_of(summary)
    contents = {name: table_digest(path, left_out) for name, path in tables.items()}
    digests = {name: sha256 for name, (_, sha256) in contents.items() if name != DELAYS}
    queue = pl.read_parquet(tables["queue"])
    tree = resolved.scenario
    found = checks.of_run(summary, tables.get("exchanges"), queue, calibrations, resolved.reached, tree)
    found += [reference.check(summary, tree, resolved.origin)] if is_reference else []
    laws = _laws(resolved, summary.pop("laws", {}))
    window, traffic = measured_window(resolved.scenario), resolved.scenario.get("traffic", [])
    write_text(partial / "scenario.toml", resolved.toml)
    write_json(partial / "summary.json", summary)
    write_json(
        partial / "manifest.json",
        {
            "kind": "run",
            **_about(),
            "seed": summary.get("seed", resolved.scenario.get("seed")),
            "digest": digest({"tables": digests, "summary": _lasting(_found(summary))}),
            "scenario_digest": resolved.digest,
            # What nobody asked for is not paired with what somebody did.
            "demand_digest": None if live is not None and not live["traffic"] else demand_digest(resolved.scenario),
            "tables": {
                f"{name}.parquet": {"rows": rows, "sha256": sha256} for name, (rows, sha256) in contents.items()
            },
            "calibration": list(calibrations),
            "reached": [asdict(reached) for reached in resolved.reached],
            "findings": [*seen.of(tree, summary), *_interpreted(laws)],
            "reckoned_memory_bytes": sum(need.bytes for need in resolved.memory),
            "wall_s": wall_s,
            **({"laws": laws} if laws else {}),
            "self_checks": [check.as_dict() for check in found],
            "settled": settled.of_run(queue, tables.get("exchanges"), window, traffic).as_dict(),
            **({} if live is None else {"live": live}),
        },
    )
    _make_way(final)
    partial.rename(final)


def _make_way(final: Path) -> None:
    """Removes what is called as a finished run shall be: an empty folder, or a run that is made again, nothing else."""
    if not final.exists():
        return
    if is_begun(final) and not (final / "manifest.json").exists():
        raise BadInput(f"{final}: holds what is no run; expected it to be empty, or another folder")
    shutil.rmtree(final)


def _laws(resolved: Resolved, costs: Json) -> list[Json]:
    """The laws that are not built in: what they are, how they were made and, where interpreted, what that took."""
    kept = {one.sha256: one.file for one in resolved.files}
    return [
        {**law.as_dict(), "file": kept.get(law.sha256), **({"cost": costs[law.sha256]} if law.sha256 in costs else {})}
        for law in brought.of(resolved.scenario)
    ]


def _interpreted(laws: Sequence[Json]) -> list[str]:
    """What laws took that ran as they are, in a line each."""
    costs = {name: [law["cost"] for law in laws if law["name"] == name and "cost" in law] for name in _names(laws)}
    said = []
    for name, found in costs.items():
        calls, spent_s = (sum(cost[key] for cost in found) for key in ("calls", "s"))
        if calls:
            each = units.say_seconds(spent_s / calls)
            said.append(
                f"{name}: ran in the interpreter, {calls:,} calls of {each}, {units.say_seconds(spent_s)} in all"
            )
    return said


def _names(laws: Sequence[Json]) -> list[str]:
    return list(dict.fromkeys(str(law["name"]) for law in laws))


def finish_replications(folder: Path, names: Sequence[str]) -> None:
    """Puts the merged summary and a manifest over finished runs in the sub-folders `names`."""
    runs = [Result(folder / name) for name in names]
    found = [
        dict(check, run=name) for name, run in zip(names, runs, strict=True) for check in run.manifest["self_checks"]
    ]
    text = files.text(runs[0].folder / "scenario.toml", files.SCENARIO)
    write_text(folder / "scenario.toml", text.replace(f'file = "{FILES}/', f'file = "{names[0]}/{FILES}/'))
    summary = merge_summaries([run.summary for run in runs], names)
    tree, laws = runs[0].scenario, [law for run in runs for law in run.manifest.get("laws", [])]
    write_json(folder / "summary.json", summary)
    write_json(
        folder / "manifest.json",
        {
            "kind": "replications",
            **_about(),
            "seed": runs[0].manifest["seed"],
            "seeds": [run.manifest["seed"] for run in runs],
            "runs": list(names),
            "digest": digest([run.digest for run in runs]),
            "scenario_digest": runs[0].manifest["scenario_digest"],
            "demand_digest": runs[0].manifest["demand_digest"],
            "calibration": runs[0].manifest["calibration"],
            # Of each run, for each chooses anew.
            "reached": [
                dict(found, run=name) for name, run in zip(names, runs, strict=True) for found in _reached(run)
            ],
            "findings": [*seen.of(tree, summary), *_interpreted(laws)],
            "wall_s": sum(run.manifest["wall_s"] for run in runs),
            "self_checks": found,
            "settled": [{"run": name, **(run.runs[0].settled or {})} for name, run in zip(names, runs, strict=True)],
            **({"live": _live_of(names, runs)} if runs[0].live else {}),
        },
    )


def _live_of(names: Sequence[str], runs: Sequence[Result]) -> Json:
    """As the first run was made; one void run is enough for all, and what any of them had to remark is said once."""
    remarks = [remark for run in runs for remark in run.live.get("remarks", [])]
    void = void_of([(name, run.void) for name, run in zip(names, runs, strict=True)])
    return {**runs[0].live, "void": void, "remarks": list(dict.fromkeys(remarks))}


def _reached(run: Result) -> list[Json]:
    found: list[Json] = run.manifest.get("reached", [])
    return found


def is_finished(folder: Path, scenario_digest: str, bed: Json | None = None) -> bool:
    """Whether `folder` holds a finished run of just this scenario, made by this very build of the engine.

    `bed` is what the manifest's `live` says of a live run's test bed.
    """
    if not (folder / "manifest.json").exists():
        return False
    manifest = read_json(folder / "manifest.json")
    made_by = {"version": engine.version(), "engine_sha256": engine.file_sha256()}
    if any(manifest.get(key) != item for key, item in {"scenario_digest": scenario_digest, **made_by}.items()):
        return False
    live = manifest.get("live")
    if bed is None or live is None:
        return bed is None and live is None
    return all(live.get(key) == item for key, item in bed.items())


def _about() -> Json:
    return {"version": engine.version(), "engine_sha256": engine.file_sha256(), "machine": machine()}


def machine() -> Json:
    """What this machine is, as results say it."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _found(summary: Json) -> Json:
    """A summary without its name, what a simulated run has not got, losses that no path had, frames of nobody, the
    only link once more under its name, and what others in it tell: what held flows back, and the mean wait of probes.
    Exchanges that nobody could complete are none.
    """
    found = {key: item for key, item in {**summary, "scenario": None}.items() if (key, item) != ("live", None)}
    if found.get("routes") is None:
        found = {key: item for key, item in found.items() if key not in ("links", "routes")}
    if isinstance(found.get("tcp"), dict):
        found["tcp"] = {key: item for key, item in found["tcp"].items() if key != "held_back"}
    if isinstance(found.get("probes"), dict):
        found["probes"] = {key: item for key, item in found["probes"].items() if key != "one_way_delay_mean_s"}
    frames = found.get("frames")
    if isinstance(frames, dict) and frames["encoded_frames"] is None:
        del found["frames"]
    exchanges = found.get("exchanges")
    if isinstance(exchanges, dict) and exchanges.get("completed", 0) is None:
        found["exchanges"] = {**exchanges, "completed": 0}
    udp = found.get("udp")
    if isinstance(udp, dict) and not udp.get("lost_before_link_packets"):
        found["udp"] = {key: item for key, item in udp.items() if key != "lost_before_link_packets"}
    return found


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        # Who has no causes of its own is as before there were any.
        kept = ((key, item) for key, item in value.items() if (key, item) != ("own_causes", {}))
        return {key: _lasting(item) for key, item in kept if key not in VOLATILE}
    return value
