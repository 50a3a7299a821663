"""The E-model of ITU-T G.107 (06/2015): how people rate a call, from its delay and its losses.

Every quantity has the recommendation's default but those that a network decides: the delay, the share of packets
lost, and how much they are lost in bursts. The codec is G.711 with its losses concealed (G.113, Appendix I).
"""

import math
from dataclasses import dataclass

LOUDNESS_SENT_DB = 8.0
LOUDNESS_RECEIVED_DB = 2.0
SIDETONE_DB = 15.0
SHAPE_SENT = 3.0
SHAPE_RECEIVED = 3.0
ECHO_LOUDNESS_DB = 65.0
ECHO_PATH_LOSS_DB = 110.0
QUANTISING_UNITS = 1.0
CIRCUIT_NOISE_DBM = -70.0
NOISE_FLOOR_DBM = -64.0
ROOM_NOISE_DB = 35.0
"""G.107, table 2: SLR, RLR, STMR, Ds, Dr, TELR, WEPL, qdu, Nc, Nfor, and Ps = Pr."""

ROBUSTNESS = 25.1
"""Bpl of G.711 with concealment, losses at random (G.113, table I.4); its Ie is 0."""

LARGEST_BURST_RATIO = 2.0
"""Up to where G.107 has been checked: it is not extrapolated."""


@dataclass(frozen=True)
class Call:
    """What a call meets."""

    delay_s: float
    """From mouth to ear, one way; what comes back takes as long."""
    loss: float = 0.0
    """Share of packets that are not played."""
    burst_ratio: float = 1.0
    """Mean length of runs of losses, over that of losses at random."""


def rating(call: Call, robustness: float = ROBUSTNESS) -> float:
    """R, from about 0 to 93.2: G.107, equation 7-1, with an advantage of 0."""
    noise = _noise()
    signal = 15 - 1.5 * (LOUDNESS_SENT_DB + noise)
    delay_ms = call.delay_s * 1e3
    at_once = _simultaneous(signal, noise, delay_ms)
    return signal - at_once - _delayed(signal, noise, delay_ms) - _equipment(call, robustness)


def opinion(r: float) -> float:
    """The mean opinion score of a rating: G.107, Annex B."""
    if r <= 0:
        return 1.0
    if r >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def _noise() -> float:
    """No: circuit, rooms and floor as one noise at the 0 dBr point, dBm0p."""
    loudness = LOUDNESS_SENT_DB + LOUDNESS_RECEIVED_DB
    sent = (
        ROOM_NOISE_DB - LOUDNESS_SENT_DB - SHAPE_SENT - 100 + 0.004 * (ROOM_NOISE_DB - loudness - SHAPE_SENT - 14) ** 2
    )
    listener = SIDETONE_DB + SHAPE_RECEIVED
    heard = ROOM_NOISE_DB + 10 * math.log10(1 + 10 ** ((10 - listener) / 10))
    received = LOUDNESS_RECEIVED_DB - 121 + heard + 0.008 * (heard - 35) ** 2
    floor = NOISE_FLOOR_DBM + LOUDNESS_RECEIVED_DB
    return 10 * math.log10(sum(10 ** (each / 10) for each in (CIRCUIT_NOISE_DBM, sent, received, floor)))


def _simultaneous(signal: float, noise: float, delay_ms: float) -> float:
    """Is: what impairs a voice while it speaks: loudness, sidetone, quantising."""
    x = LOUDNESS_SENT_DB + LOUDNESS_RECEIVED_DB + 0.2 * (64 + noise - LOUDNESS_RECEIVED_DB)
    loud = 20 * ((1 + (x / 8) ** 8) ** (1 / 8) - x / 8)
    tone = -10 * math.log10(10 ** (-SIDETONE_DB / 10) + math.exp(-delay_ms / 4) * 10 ** (-ECHO_LOUDNESS_DB / 10))
    side = (
        12 * (1 + ((tone - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((tone + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((tone - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )
    q = 37 - 15 * math.log10(QUANTISING_UNITS)
    g = 1.07 + 0.258 * q + 0.0602 * q * q
    quantised = 15 * math.log10(1 + 10 ** ((signal - 100) / 15 + 46 / 8.4 - g / 9) + 10 ** (46 / 30 - g / 40))
    return float(loud + side + quantised)


def _delayed(signal: float, noise: float, delay_ms: float) -> float:
    """Id: echo to the talker, echo to the listener, and delay as such."""
    heard = (
        ECHO_LOUDNESS_DB
        - 40 * math.log10((1 + delay_ms / 10) / (1 + delay_ms / 150))
        + 6 * math.exp(-0.3 * delay_ms * delay_ms)
    )
    talker = -1.5 * (noise - LOUDNESS_RECEIVED_DB) - (80 + 2.5 * (heard - 14))
    echo = (talker / 2 + math.sqrt(talker * talker / 4 + 100) - 1) * (1 - math.exp(-delay_ms))
    listener = signal - 10.5 * (ECHO_PATH_LOSS_DB + 7) * (2 * delay_ms + 1) ** -0.25
    listened = listener / 2 + math.sqrt(listener * listener / 4 + 169)
    return float(echo + listened + _late(delay_ms))


def _late(delay_ms: float) -> float:
    """Idd: what is too late to talk to each other, from 100 ms on."""
    if delay_ms <= 100:
        return 0.0
    x = math.log2(delay_ms / 100)
    return float(25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2))


def _equipment(call: Call, robustness: float) -> float:
    """Ie,eff: losses, of a codec that impairs nothing by itself."""
    percent = 100 * call.loss
    bursts = min(max(call.burst_ratio, 1.0), LARGEST_BURST_RATIO)
    return 95 * percent / (percent / bursts + robustness) if percent else 0.0
