"""Laws of one's own: declared in Python, compiled or as they are, or of shared libraries.

`declared` has the decorator, `table` the binary interface, `compiled` and `interpreted` fill it in, `holding` has
disciplines that hold packets, `brought` says which files may be loaded and brings their laws to the engine, `patience`
ends code that never ends while it is loaded, `interrupted` has what Ctrl-C does while a law runs, `imported` finds the
modules that a file imports, `watched` compares what a law has in its fields, compiled and as it is written.
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
