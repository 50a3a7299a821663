"""A study of tests' own: seconds on the stand-in engine, with everything a study can have."""

from pathlib import Path

STUDY = """
id = "tiny"
title = "Web users over short queues"
paper = "A. Nobody, Somewhere 2001"

[profiles.full]
seeds = 3
set = { duration = "30s", warmup = "10s" }
[profiles.quick]
seeds = 2
set = { duration = "20s", warmup = "10s" }
says = "Runs of 20 s instead of 30 s."

[scenario]
[scenario.link]
rate = "10mbit"
[scenario.link.qdisc]
kind = "pfifo"
[[scenario.traffic]]
kind = "web"
model = "unc2001"
users = 1800

[[grid]]
name = "web"
title = "The study's runs"
[[grid.axis]]
name = "aqm"
[[grid.axis.value]]
name = "uncongested"
uncongested = true
[[grid.axis.value]]
name = "pfifo"
label = "drop-tail"
[[grid.axis.value]]
name = "pi"
label = "PI"
link.qdisc = { kind = "pi", qref = "24p" }
[[grid.axis]]
name = "ecn"
value = [{ name = "off" }, { name = "on", set = { "tcp.ecn" = "on", "link.qdisc.ecn" = true } }]
[[grid.skip]]
aqm = ["uncongested", "pfifo"]
ecn = "on"

[[grid]]
name = "again"
quick = { only = { users = ["1800"] }, seeds = 1 }
[[grid.axis]]
name = "users"
key = "traffic.0.users"
values = [1200, 1800]

[[figure]]
id = "1"
title = "Response times"
kind = "cdf"
curves = [{ grid = "web", aqm = "uncongested", label = "best" }, { aqm = ["pfifo", "pi"] }]
caption = "What one sees."

[[table]]
id = "link"
title = "The link"
rows = [{ grid = "web" }]
measures = ["loss_ratio", "utilisation"]
"""

CLAIMS = """
[[claim]]
id = "tiny-1"
says = "With ECN, PI serves users better than drop-tail."
reason = "half the distance of two grid lines"
seeds = 2
[[claim.check]]
measure = "ahead"
at_s = 0.5
of = { grid = "web", aqm = "pi", ecn = "on" }
than = { grid = "web", aqm = "pfifo", ecn = "off" }
low = "slight"
published = 0.3
"""
WRONG = """
[[claim]]
id = "tiny-2"
says = "Drop-tail serves users better than PI with ECN."
reason = "the claim gives an order, no size"
seeds = 2
known_outcome = "does not hold"
explained = "The stand-in has fewer timeouts with ECN."
[[claim.check]]
measure = "ahead"
at_s = 0.5
of = { grid = "web", aqm = "pfifo", ecn = "off" }
than = { grid = "web", aqm = "pi", ecn = "on" }
low = 0.0
"""


def write(folder: Path, study: str = STUDY, claims: str = CLAIMS + WRONG) -> Path:
    """The study in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(study)
    (folder / "claims.toml").write_text(claims)
    (folder / "README.md").write_text("# Tiny\n\nWhat it did.\n\n## What is left open\n\nNothing.\n")
    return folder
