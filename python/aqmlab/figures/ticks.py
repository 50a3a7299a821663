"""How numbers stand at an axis."""

import numpy as np


def plain(value: float, _position: int | None = None) -> str:
    """Without an exponent, so that all numbers of an axis look alike: `0.00001` below `0.0001`."""
    return np.format_float_positional(value, precision=6, fractional=False, trim="-")
