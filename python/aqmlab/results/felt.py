"""What packets' delays are to a call and to a game, and which blocks of traffic are of an application."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aqmlab.results.emodel import Call, opinion, rating
from aqmlab.statistics import quantiles

PAGE_IN_S = 2.0
"""A page is in time within so long."""

PACKET_S = 0.020
"""What a packet of a voice has of it, unless a block says otherwise: so long it waits until that is full."""

PLAYOUT_S = (0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)
"""Beyond the shortest delay: buffers of which a call takes the one that suits it best, as an adaptive one tries to."""

GAME_LOST_S = 1.0
"""What a game's packet that is lost counts as; later ones are of no more use."""

SATISFIED = 4.03
"""The MOS from which on users are satisfied, as table B.1 of G.107, annex B, has it for R of 80. By the formula of the
same annex R of 80 is 4.024."""


def places(traffic: Sequence[Mapping[str, Any]], application: str) -> list[int]:
    """The blocks that are of an application."""
    return [place for place, block in enumerate(traffic) if block.get("application") == application]


def late_of(delays: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The delay below which 99 % of a game's packets stay, one way, seconds."""
    counted = np.where(np.isnan(delays), GAME_LOST_S, np.minimum(delays, GAME_LOST_S))
    return float(quantiles(counted, [0.99])[0])


def satisfied(opinions: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """The share of calls of which users are satisfied."""
    return float((opinions >= SATISFIED).mean())


def opinion_of(delays: np.ndarray[Any, np.dtype[np.float64]], packet_s: float = PACKET_S) -> float:
    """The MOS of a call one way, with the play-out that suits it best: what comes later is lost, what comes earlier
    waits. `packet_s` is what a packet has of the voice."""
    if np.isnan(delays).all():
        return 1.0
    shortest = float(np.nanmin(delays))
    return max(_played(delays, shortest + buffer, packet_s) for buffer in PLAYOUT_S)


def _played(delays: np.ndarray[Any, np.dtype[np.float64]], at_s: float, packet_s: float) -> float:
    is_lost = np.isnan(delays) | (delays > at_s)
    loss = float(is_lost.mean())
    if loss >= 1:
        return 1.0
    runs = int(is_lost[0]) + int((is_lost[1:] & ~is_lost[:-1]).sum())
    length = float(is_lost.sum()) / runs if runs else 1.0
    return opinion(rating(Call(at_s + packet_s, loss, length * (1 - loss))))
