"""Where the templates of pages lie, and what they may call."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from aqmlab import units
from aqmlab.study import prose


@cache
def environment() -> Environment:
    """Templates of all the package, by their place in it."""
    made = Environment(
        loader=PackageLoader("aqmlab", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["inline"] = prose.inline
    made.filters["hours"] = units.say_hours
    return made
