"""Where the templates of pages lie, and how they are read."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_WITHOUT_PROSE = re.compile(r"(<(svg|script|style|pre|code)\b.*?</\2>|<[^>]*>)", re.DOTALL)
"""What no line of prose stands in."""
_UNITS = "%|µs|ms|s|min|h|b/s|kb/s|Mb/s|Gb/s|bytes|kB|MB|points|packets"
_TOGETHER = re.compile(
    rf"(?<=\d) (?=(?:{_UNITS})(?![\w/]))|(?<=[\d)]) (?=± ?\d)|(?<=±) (?=\d)|(?<=\bn) (?==)|(?<=\bn[ \xa0]=) "
)
"""Spaces at which no line is broken: before a unit, beside ±, in `n = 5`."""


def unbroken(text: str) -> Markup:
    """HTML of which no line breaks between a number and its unit, nor beside ± or in `n = 5`."""
    parts, at = [], 0
    for found in _WITHOUT_PROSE.finditer(text):
        parts += [_TOGETHER.sub("\xa0", text[at : found.start()]), found[0]]
        at = found.end()
    return Markup("".join([*parts, _TOGETHER.sub("\xa0", text[at:])]))


def environment() -> Environment:
    """Templates of all the package, by their place in it."""
    made = Environment(
        loader=PackageLoader("aqmlab", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["unbroken"] = unbroken
    return made
