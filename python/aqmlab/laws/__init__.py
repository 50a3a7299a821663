"""Laws of one's own: declared in Python, compiled or as they are, or of shared libraries.

`declared` has the decorator, `table` the binary interface, `compiled` and `interpreted` fill it in, `holding` has
disciplines that hold packets, `brought` says which files may be loaded and brings their laws to the engine, `patience`
ends code that never ends while it is loaded, and `interrupted` has what Ctrl-C does while a law runs.
"""

from aqmlab.laws.declared import DROP, EARLY, FORCED, MARK, OVERLOAD, PASS, SIGNAL, TAIL, cause, law, parameter
from aqmlab.laws.holding import discipline, later

__all__ = [
    "DROP",
    "EARLY",
    "FORCED",
    "MARK",
    "OVERLOAD",
    "PASS",
    "SIGNAL",
    "TAIL",
    "cause",
    "discipline",
    "later",
    "law",
    "parameter",
]
