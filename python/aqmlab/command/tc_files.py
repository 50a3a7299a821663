"""What the verb `tc` does: from a file to lines of shell, and from pasted output to a scenario."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aqmlab import files, links, reference, scenario, shaping, units, variants
from aqmlab.errors import BadInput
from aqmlab.laws import forms
from aqmlab.scenario import Source
from aqmlab.tc import network
from aqmlab.tc import read as reading
from aqmlab.tc import write as writing
from aqmlab.tc.lines import Setup
from aqmlab.tc.read import Reading

PORT_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
"""What the kernel lets a port be called (15 characters), less what a shell would make something of."""


def write(
    file: str, changes: Mapping[str, Any], variant: str | None, dev: str | None, reverse_dev: str | None
) -> Setup:
    """The lines for a scenario, or for one variant of a comparison file."""
    if forms.is_file(file):
        raise BadInput(f"{file}: {writing.NO_LINE}; expected a scenario in TOML")
    source = _chosen(scenario.read(Path(file)).with_changes(changes), variant)
    resolved = source.resolve()
    shaping.doubts(resolved)
    if links.are_several(resolved.scenario):
        for option, name in (("--dev", dev), ("--reverse-dev", reverse_dev)):
            if name is not None:
                raise BadInput(f"{option} {name}: the ports of a network have their links' names; expected no {option}")
        return network.write(resolved)
    return writing.write(resolved, *_ports(dev or "eth0", reverse_dev or "eth1"))


def _ports(dev: str, reverse_dev: str) -> tuple[str, str]:
    """Both ports, if the kernel could call them so."""
    for option, name in (("--dev", dev), ("--reverse-dev", reverse_dev)):
        if PORT_NAME.fullmatch(name) is None:
            raise BadInput(f"{option} {name!r}: expected the name of a port, as in {option} eth0")
    if dev == reverse_dev:
        raise BadInput(f"--reverse-dev {reverse_dev}: expected another port than that of --dev")
    return dev, reverse_dev


def _chosen(source: Source, variant: str | None) -> Source:
    if not variants.has_variants(source):
        if variant is not None:
            raise BadInput(f"--variant {variant}: {source.origin} has no [[variant]] tables")
        return source
    found = {each.name: each for each in variants.from_file(source)}
    if variant not in found:
        asked = "variant" if variant is None else f"--variant {variant}"
        raise BadInput(f"{source.origin}: {asked}: expected --variant with one of {', '.join(map(repr, found))}")
    chosen = found[variant].source
    if not found[variant].uncongested:
        return chosen
    tree = scenario.read(chosen.resolve().toml).tree
    return Source(reference.uncongested(tree, reference.rates(tree, chosen.origin), chosen.origin), chosen.origin)


def read(file: str, origin: str, dev: str | None, reverse_dev: str | None, rate: str | None) -> Reading:
    """The scenario that a dump describes; `-` is standard input, and `origin` what complaints call it."""
    if rate is not None:
        units.rate_bps(rate, "--rate")
    raw = files.all_of(sys.stdin.buffer, origin, files.TC) if file == "-" else files.content(Path(file), files.TC)
    return reading.read(raw.decode("utf-8", "replace"), origin, dev, reverse_dev, rate)
