"""aqmlab: a laboratory for active queue management.

>>> import aqmlab
>>> result = aqmlab.run("examples/web-pi.toml", set={"link.qdisc.qref": "240p"})
>>> result.summary["forward"]["utilisation"], result.exchanges
"""

from aqmlab import engine
from aqmlab.api import calibrate, compare, live, load, record, run
from aqmlab.calibration import Calibration
from aqmlab.comparison import Comparison
from aqmlab.errors import AqmlabError, BadInput, CannotRun, Interrupted
from aqmlab.results import Result, Run

__version__ = engine.version()

__all__ = [
    "AqmlabError",
    "BadInput",
    "Calibration",
    "CannotRun",
    "Comparison",
    "Interrupted",
    "Result",
    "Run",
    "calibrate",
    "compare",
    "live",
    "load",
    "record",
    "run",
]
