"""Runs `probe.py`, which tries what a live run needs: in this machine's kernel, or in one of virtual time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from aqmlab import scratch
from aqmlab.json_files import Json
from aqmlab.live import virtual
from aqmlab.live.machine import hidden


def tried(*words: str, virtual_time: bool, name: str | None = None) -> Json:
    """What the probe says, here or in the kernel of virtual time of this name; why it said nothing under `failed`.

    What to do about that is under `remedy`, where it is known.
    The `words` are the probe's own: `--marks` asks for nothing but accurate ECN.
    """
    probe = [sys.executable, "-I", str(Path(__file__).with_name("probe.py")), *words]
    with scratch.folder("doctor") as folder:
        if virtual_time and (unseen := hidden(folder)):
            return {"failed": f"temporary files in {unseen}", "remedy": "set TMPDIR to another folder"}
        command = virtual.machine(folder, [*probe, "--virtual"], {}, name) if virtual_time else probe
        try:
            # Not every folder that one may be in is to be seen in there.
            place = "/" if virtual_time else None
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=place)
        except subprocess.TimeoutExpired:
            return {"failed": "no answer in two minutes"}
        if done.returncode:
            said = done.stderr.strip()
            if (folder / "error.json").exists():
                said = json.loads((folder / "error.json").read_text(encoding="utf-8"))["message"]
            return {"failed": (said.splitlines() or ["no answer"])[-1]}
        try:
            found: Json = json.loads(done.stdout)
        except ValueError:
            return {"failed": "no answer"}
        return found
