"""A sweep for tests: two axes, one of them a load."""

GRID = """
name = "Web users"
seeds = 2
[scenario]
duration = "30s"
warmup = "10s"
link.rate = "100mbit"
[[scenario.traffic]]
kind = "web"
load = "98mbit"
[[grid]]
name = "web"
[[grid.axis]]
name = "aqm"
value = [
    { name = "pfifo", label = "drop-tail" },
    { name = "pi", link.qdisc = { kind = "pi", qref = "24p" } },
    { name = "uncongested", uncongested = true },
]
[[grid.axis]]
name = "load"
key = "traffic.0.load"
values = ["90mbit", "98mbit"]
"""
