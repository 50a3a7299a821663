"""Where the templates of pages lie, and how they are read."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def environment() -> Environment:
    """Templates of all the package, by their place in it."""
    return Environment(
        loader=PackageLoader("aqmlab", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
