"""The `tc`, `ip route` and `sysctl` lines that set a scenario up on Linux, and what a dump of `tc` says as a scenario.

`table.py` says once, for both directions, which word of `tc` each parameter is; `quantities.py` and `red.py` how the
numbers convert. `write.py` and `hosts.py` write lines, `dump.py` reads what was pasted into queues and classes, with
what `shell.py` makes of scripts, and `read.py` makes a scenario of those.
"""
