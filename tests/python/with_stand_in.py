"""The command line on the stand-in engine, for tests that need a process of their own: delay a tick, then arguments."""

import sys

import conftest  # noqa: F401 - puts the package on the path
import fake_native
from aqmlab import engine
from aqmlab.cli import main

engine.native = fake_native  # type: ignore[assignment]
fake_native.delay_per_tick_s = float(sys.argv[1])
main(sys.argv[2:])
