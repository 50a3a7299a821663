"""aqmlab: a laboratory for active queue management.

>>> import aqmlab
>>> result = aqmlab.run("examples/web-pi.toml", set={"link.qdisc.qref": "240p"})
>>> result.summary["forward"]["utilisation"], result.exchanges
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from aqmlab import deferred, engine, forks  # noqa: F401 - `forks` sees those that are made before anything runs
from aqmlab.errors import AqmlabError, BadInput, CannotRun, Interrupted, Misbehaved
from aqmlab.laws import (
    DROP,
    EARLY,
    FORCED,
    MARK,
    OVERLOAD,
    PASS,
    SIGNAL,
    TAIL,
    cause,
    discipline,
    later,
    law,
    parameter,
)

if TYPE_CHECKING:
    from aqmlab import comparison as comparison
    from aqmlab import figures as figures
    from aqmlab import statistics as statistics
    from aqmlab import study as study
    from aqmlab import sweep as sweep
    from aqmlab.api import calibrate, compare, live, load, record, run
    from aqmlab.comparison import Comparison
    from aqmlab.results.result import Result
    from aqmlab.results.run import Run
    from aqmlab.runs.calibration import Calibration
    from aqmlab.runs.law_check import Checked, check
else:
    # The package of that name is loaded once, here, before the function of that name is asked for.
    import_module("aqmlab.live")
    globals().pop("live", None)
    __getattr__, __dir__ = deferred.names(
        __name__,
        {
            **dict.fromkeys(("calibrate", "compare", "live", "load", "record", "run"), "aqmlab.api"),
            **{name: f"aqmlab.{name}" for name in ("comparison", "figures", "statistics", "study", "sweep")},
            "Calibration": "aqmlab.runs.calibration",
            **dict.fromkeys(("Checked", "check"), "aqmlab.runs.law_check"),
            "Comparison": "aqmlab.comparison",
            "Result": "aqmlab.results.result",
            "Run": "aqmlab.results.run",
        },
    )

__version__ = engine.version()


def include() -> str:
    """The folder of `aqmlab_law.h`, for laws in C and other languages."""
    return str(Path(__file__).with_name("include"))


__all__ = [
    "DROP",
    "EARLY",
    "FORCED",
    "MARK",
    "OVERLOAD",
    "PASS",
    "SIGNAL",
    "TAIL",
    "AqmlabError",
    "BadInput",
    "Calibration",
    "CannotRun",
    "Checked",
    "Comparison",
    "Interrupted",
    "Misbehaved",
    "Result",
    "Run",
    "calibrate",
    "cause",
    "check",
    "compare",
    "discipline",
    "include",
    "later",
    "law",
    "live",
    "load",
    "parameter",
    "record",
    "run",
]
