"""What the templates of the pages of studies may call."""

from functools import cache

from jinja2 import Environment

from aqmlab import units
from aqmlab.report import templates
from aqmlab.study import prose


@cache
def environment() -> Environment:
    """Templates of all the package, by their place in it."""
    made = templates.environment()
    made.filters["inline"] = prose.inline
    made.filters["hours"] = units.say_hours
    return made
