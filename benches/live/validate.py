"""Do the simulator and the live test bed agree? The same scenarios, seen by several witnesses, side by side.

The witnesses: the simulator with the stack `linux`; real TCP stacks in virtual time around our router (`virtual`),
and around the kernel's own queue discipline (`kernel`), where Linux has it; real TCP stacks of this machine in real
time (`live`), only when asked for, as it wants a quiet machine. Of web users the simulator runs every seed twice, the
second time with a disturbance too small to matter (`twin`): how far twins lie apart is chance. What each saw is kept,
run by run, a file a case, in testdata/live; docs/validation.md's table is made of these files.

    python benches/live/validate.py                     run what is missing, print the table
    python benches/live/validate.py --only reno-20      only cases whose names contain it; may be repeated
    python benches/live/validate.py --witness virtual   only this witness; may be repeated
    python benches/live/validate.py --real              with runs in real time
    python benches/live/validate.py --fresh             leave out what is kept, and measure anew
    python benches/live/validate.py --list              the cases, what is there and what is missing
    python benches/live/validate.py --table             run nothing, print the table
    python benches/live/validate.py --update-docs       run nothing, put the table into docs/validation.md

A run that was made stays made, with the version, kernel and date it was made with: interrupted, it goes on where it
was. Runs of another version or kernel are made anew, the simulator's with every other build too, and those of real TCP
stacks around another build of the same version with --fresh. Cost on two cores of 2026: a simulated run is seconds; a
virtual one of ten flows at 20 Mb/s one to two minutes, at 100 Mb/s two to four, of web users five to ten.

Exit codes: 0 all agree or are undecided, 1 something differs, 2 bad input or a run failed, 3 this machine cannot.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]

import marked  # noqa: E402
from validation_cases import CASES, Case  # noqa: E402
from validation_table import findings, markdown, print_table  # noqa: E402

DOCS = ROOT / "docs" / "validation.md"
KEPT = ROOT / "testdata" / "live"
WITNESSES = ("simulated", "twin", "virtual", "kernel", "live")
GRID = 500
"""Quantiles that are kept of a run's response times: two distributions are then as far apart as their samples are,
to 1/500."""
DIRECTION = ("utilisation", "loss_ratio", "mark_ratio", "queue_delay_mean_s", "queue_delay_p99_s", "offered_packets")


def run_case(case: Case, kept: Path, witnesses: Sequence[str], number: int) -> None:
    """Makes the run of this number of each witness of a case, where it is missing, and keeps it."""
    path, seed = kept / f"{case.name}.json", number + 1
    for witness in witnesses:
        if number >= case.runs.get(witness, 0):
            continue
        made_with = _versions(case, witness)
        if any(run["seed"] == seed and _is_of(run, made_with) for run in _runs(path, case, witness)):
            continue
        began = time.monotonic()
        made = {**_run(case, witness, seed), **made_with}
        others = [run for run in _runs(path, case, witness) if run["seed"] != seed]
        _keep(path, case, witness, sorted([*others, made], key=lambda run: int(run["seed"])))
        took = time.monotonic() - began
        print(f"{case.name}: {witness}, seed {seed}: {took:.0f} s", file=sys.stderr, flush=True)


def _runs(path: Path, case: Case, witness: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = _load(path, case)["witnesses"].get(witness, {}).get("runs", [])
    return runs


def _is_of(run: dict[str, Any], made_with: dict[str, str]) -> bool:
    """Whether a run was made with the same version, kernel and engine; on which day is its own affair."""
    return all(run.get(key) == made_with.get(key) for key in ("aqmlab", "kernel", "engine"))


def _run(case: Case, witness: str, seed: int) -> dict[str, Any]:
    from aqmlab import api

    text = case.toml
    changes: dict[str, Any] = {}
    if witness == "kernel":
        changes["live.qdisc"] = "kernel"
    with tempfile.TemporaryDirectory(prefix="aqmlab-validate-") as folder:
        out = Path(folder) / "run"
        if witness == "twin":
            (found,) = api.calibrate(text, seed=seed, jobs=1)
            result = api.run(case.twin(found.users), seed=seed, out=out, jobs=1)
        elif witness == "simulated":
            result = api.run(text, seed=seed, out=out, jobs=1)
        else:
            virtual = witness != "live"
            kernel = case.kernel if virtual else None
            result = api.live(text, seed=seed, out=out, set=changes, virtual=virtual, kernel=kernel, jobs=1)
        (run,) = result.runs
        return _figures(run, seed)


def _figures(run: Any, seed: int) -> dict[str, Any]:
    """What is kept of a run."""
    summary = run.summary
    forward = summary["forward"]
    kept: dict[str, Any] = {
        "seed": seed,
        **{key: forward[key] for key in DIRECTION},
        "goodput_bps": summary["tcp"]["goodput_bps"],
        "retransmitted_segments": summary["tcp"]["retransmitted_segments"],
        "timeouts": summary["tcp"]["timeouts"],
        "jain_index": summary["tcp"]["jain_index"],
        "exchanges": summary["exchanges"]["completed"],
        "wall_s": round(summary["engine"]["wall_s"], 2),
    }
    if run.void is not None:
        kept["void"] = run.void
    if run.has_exchanges and summary["exchanges"]["completed"]:
        times = run.exchanges["response_time_s"].to_numpy()
        shares = (np.arange(GRID) + 0.5) / GRID
        kept["response_time_s"] = [round(float(value), 6) for value in np.quantile(times, shares)]
    return kept


def _load(path: Path, case: Case) -> dict[str, Any]:
    """What is kept of a case; nothing if it was another scenario."""
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kept["scenario"] == case.toml:
            # What is said of a witness is said of each of its runs.
            for name, one in kept["witnesses"].items():
                said = {key: value for key, value in one.items() if key != "runs"}
                kept["witnesses"][name] = {"runs": [{**said, **run} for run in one["runs"]]}
            return kept
    return {"case": case.name, "title": case.title, "kind": case.kind, "scenario": case.toml, "witnesses": {}}


def _keep(path: Path, case: Case, witness: str, runs: list[dict[str, Any]]) -> None:
    kept = _load(path, case)
    kept["witnesses"][witness] = {"runs": runs}
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(f".{os.getpid()}.partial")
    whole.write_text(_written(kept), encoding="utf-8")
    whole.replace(path)


def _written(kept: dict[str, Any]) -> str:
    """JSON with a line a run, so that what changes is seen."""
    witnesses = []
    for name, one in kept["witnesses"].items():
        runs = ",\n".join(f"    {json.dumps(run)}" for run in one["runs"])
        witnesses.append(f'  "{name}": {{"runs": [\n{runs}\n  ]}}')
    head = ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in kept.items() if key != "witnesses")
    return "{\n" + head + ',\n "witnesses": {\n' + ",\n".join(witnesses) + "\n }\n}\n"


def _versions(case: Case, witness: str) -> dict[str, str]:
    from aqmlab import engine
    from aqmlab.live import kernel

    found = {"aqmlab": engine.version(), "date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    if witness in ("virtual", "kernel"):
        found["kernel"] = kernel.needed(case.kernel).release
    elif witness == "live":
        found["kernel"] = platform.release()
    else:
        found["engine"] = engine.file_sha256()[:12]
    return found


def load_all(kept: Path) -> list[dict[str, Any]]:
    """What is kept, in the order of the cases."""
    paths = ((case, kept / f"{case.name}.json") for case in CASES)
    return [_load(path, case) for case, path in paths if path.exists()]


def main(words: Sequence[str]) -> int:
    """Does what the words say."""
    parser = argparse.ArgumentParser(prog="validate-live", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--witness", action="append", default=[], choices=WITNESSES)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--kept", type=Path, default=KEPT, metavar="FOLDER")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--update-docs", action="store_true")
    asked = parser.parse_args(words)
    chosen = [case for case in CASES if not asked.only or any(text in case.name for text in asked.only)]
    if not chosen:
        print(f"validate-live: --only {' '.join(asked.only)}: no case has this in its name", file=sys.stderr)
        return 2
    witnesses = asked.witness or [name for name in WITNESSES if asked.real or name != "live"]
    if asked.list:
        for case in chosen:
            there = _load(asked.kept / f"{case.name}.json", case)["witnesses"]
            made = {name: len(there.get(name, {}).get("runs", [])) for name in witnesses}
            counts = (f"{name} {made[name]}/{case.runs.get(name, 0)}" for name in witnesses)
            print(f"{case.name:24} {', '.join(counts)}")
        return 0
    failed = 0
    if not (asked.table or asked.update_docs):
        failed = run_all(chosen, asked.kept, witnesses, asked.fresh, asked.jobs)
    kept = [one for one in load_all(asked.kept) if any(one["case"] == case.name for case in chosen)]
    if asked.update_docs:
        marked.put(DOCS, "live", markdown(load_all(asked.kept)))
    else:
        print_table(kept)
    if failed:
        return failed
    return 1 if any(found.verdict == "differs" for one in kept for found in findings(one)) else 0


def run_all(chosen: Sequence[Case], kept: Path, witnesses: Sequence[str], fresh: bool, jobs: int) -> int:
    """Runs the cases, `jobs` at a time; runs in real time one after the other. The answer is an exit code.

    First one run of each witness of all cases, then a second one: so that there is something to see early.
    """
    from aqmlab.errors import AqmlabError, Interrupted

    if fresh:
        for case in chosen:
            for witness in witnesses:
                _keep(kept / f"{case.name}.json", case, witness, [])

    def one(work: tuple[int, Case]) -> int:
        number, case = work
        try:
            run_case(case, kept, witnesses, number)
        except Interrupted:
            raise KeyboardInterrupt from None
        except AqmlabError as error:
            print(f"validate-live: {case.name}: {error}", file=sys.stderr, flush=True)
            return error.exit_code
        except Exception:
            traceback.print_exc()
            return 2
        return 0

    most = max(max(case.runs.values()) for case in chosen)
    worst = 0
    for number in range(most):
        # A number's runs are over before the next one's begin: a case's file has one writer at a time.
        work = [(number, case) for case in chosen]
        if jobs <= 1 or "live" in witnesses:
            codes = list(map(one, work))
        else:
            with ThreadPoolExecutor(jobs) as pool:
                codes = list(pool.map(one, work))
        worst = max(worst, *codes)
    return worst


if __name__ == "__main__":
    # Told to end, it takes what runs with it, and what is kept stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("validate-live: stopped; the same command goes on", file=sys.stderr)
        sys.exit(130)
