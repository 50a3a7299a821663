"""The command line on the stand-in engine, for tests that need a process of their own: delay a tick, then arguments."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import fake_native
from aqmlab import engine, sweep
from aqmlab.cli import main
from aqmlab.sweep import making

engine.native = fake_native  # type: ignore[assignment]
# Processes of their own would have the engine itself.
making.Processes = lambda jobs=None: sweep.InProcess()  # type: ignore[assignment,misc]
fake_native.delay_per_tick_s = float(sys.argv[1])
main(sys.argv[2:])
