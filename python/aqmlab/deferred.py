"""Loads the modules of a package when one of its names is asked for, not when the package is imported.

What draws and reckons takes seconds to load; who asks for a version or a list of disciplines needs none of it. Type
checkers read the same names as plain imports, under `TYPE_CHECKING`.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package` (PEP 562): `modules` says where each name is.

    A module of the package that is called by the name is itself what the name stands for.
    """
    there = vars(sys.modules[package])

    def __getattr__(name: str) -> Any:  # noqa: N807 - the name that Python asks for
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name])
        found = there[name] = module if modules[name] == f"{package}.{name}" else getattr(module, name)
        return found

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*there, *modules})

    return __getattr__, __dir__
