"""The kernel's side of the packet-by-packet comparison: records single transfers of a Linux kernel's TCP.

    python benches/peers/linux/transfers_kernel.py KERNEL [RECORD ...]

records all cases of transfers_cases.py in testdata/linux/transfers, those of transfers_cases_option.py in
testdata/linux/options and those of transfers_cases_pauses.py and transfers_cases_rules.py in the folders of these
names, or those of the records that are named (`transfers/cubic-10m-40ms`).
`cargo test -p aqmlab-tcp --test linux_transfers -- --nocapture` replays them. KERNEL is the program that `build`,
beside this file, makes: Linux as a process whose clock stands still while anything works. Two hosts in it are network
namespaces; what is between them is transfers_path.py.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import booted
import transfers_cases
import transfers_cases_option
import transfers_cases_pauses
import transfers_cases_rules
from transfers_cases import RECORDS, Case
from transfers_path import Transfer, build_hosts

HERE = Path(__file__).resolve()


def cases() -> list[Case]:
    """All cases, in order."""
    modules = (transfers_cases, transfers_cases_option, transfers_cases_pauses, transfers_cases_rules)
    return [case for module in modules for case in module.cases()]


def inside(folder: Path) -> None:
    """Runs what is asked for; this is what the kernel starts."""
    booted.prepare()
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # ppoll(2) may be late by a thousandth for all others
    file = (folder / "asked").read_text()
    asked = [case for case in cases() if case.file == file]
    devices = build_hosts(asked[0].sends_bursts)
    told = [Transfer(case, devices).run() for case in asked]
    (folder / "told.json").write_text(json.dumps({"kernel": os.uname().release, "transfers": told}))


def outside(kernel: str, file: str) -> dict[str, Any]:
    """Starts the kernel for the cases of one record."""
    with tempfile.TemporaryDirectory(prefix="transfers-") as name:
        folder = Path(name)
        (folder / "asked").write_text(file)
        booted.boot(kernel, HERE, folder)
        told: dict[str, Any] = json.loads(booted.told(folder, "told.json", file))
    return told


def record(first: Case, told: dict[str, Any]) -> str:
    """The text of a record: a line a transfer."""
    route = first.route
    head = {
        "kernel": told["kernel"],
        "cc": first.cc,
        "ecn": "accurate" if first.accurate else first.ecn,
        "gso": first.sends_bursts,
        "rate_bps": route.rate_bps,
        "rtt_ms": route.rtt_ms,
    } | ({"option": first.option} if first.option else {})
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in told["transfers"])
    return f'{json.dumps(head)[:-1]}, "transfers": [\n{lines}\n]}}\n'


def record_all(kernel: str, names: Sequence[str]) -> None:
    """Records what is named, or all."""
    first = {case.file: case for case in reversed(list(cases()))}
    for file in names or dict.fromkeys(case.file for case in cases()):
        began = time.monotonic()
        told = outside(kernel, file)
        kept = RECORDS / f"{file}.json"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(record(first[file], told))
        print(f"{file}: {len(told['transfers'])} transfers, {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """The command line."""
    if len(sys.argv) == 3 and sys.argv[1] == booted.INSIDE:
        inside(Path(sys.argv[2]))
        return
    files = {case.file for case in cases()}
    unknown = [word for word in sys.argv[2:] if word not in files]
    if len(sys.argv) < 2 or unknown:
        raise SystemExit(f"{unknown[0]}: expected one of {', '.join(sorted(files))}" if unknown else __doc__)
    record_all(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    main()
