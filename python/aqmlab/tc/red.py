"""RED's constants as tc computes them: a burst stands for the weight of the average, see tc-red(8).

tc takes the weight to be 2^-n with the least n for which burst + 1 - min/avpkt <= (1 - (1 - w)^burst) / w: the
average of an idle queue that meets `burst` packets at once must not pass `min` before the last of them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from aqmlab.tc.quantities import Raw, Site, number, packets, rate, size, split
from aqmlab.units import rate_text

LARGEST_LOG = 31

LARGEST_BURST = 1 << 26
"""A burst beyond any that n = 31 allows."""

USUAL_PACKET = 1000
"""What tc takes for `avpkt` where it is not said, bytes."""

USUAL_RATE = "10mbit"
"""What tc's red takes for `bandwidth` where it is not said; choke wants it said."""

COMPUTED = ("wq", "mean_packet", "capacity", "mark_until", "gentle_end", "target_delay")
"""Parameters of ours that tc's words follow from."""


def weight_log(min_packets: float, burst: int) -> int | None:
    """The n that tc gets from a burst; nothing where it refuses."""
    excess = burst + 1 - min_packets
    if excess < 1:
        return None
    for log in range(1, LARGEST_LOG + 1):
        if excess <= -math.expm1(burst * math.log1p(-(2.0**-log))) * 2.0**log:
            return log
    return None


def burst_for(min_packets: float, log: int) -> tuple[int, int] | None:
    """The burst whose n comes nearest to `log`, and that n; nothing where tc takes no burst (min below a packet)."""
    least = max(1, math.ceil(min_packets))
    if weight_log(min_packets, least) is None:
        return None
    # The n rises with the burst, and no burst beyond what n = 31 allows is taken.
    low, high = least, LARGEST_BURST
    while low < high:
        middle = (low + high) // 2
        found = weight_log(min_packets, middle)
        if found is not None and found < log:
            low = middle + 1
        else:
            high = middle
    tried = [(b, weight_log(min_packets, b)) for b in (low, low - 1) if b >= least]
    known = [(b, n) for b, n in tried if n is not None]
    return min(known, key=lambda pair: abs(pair[1] - log), default=None)


def compute(values: Mapping[str, Any], site: Site, tc: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The words avpkt, burst and bandwidth for a discipline whose other words are `tc`; and what to say of them."""
    remarks: list[str] = []
    in_bytes = float(tc["min"]) if values["kind"] != "choke" else float(tc["min"]) * site.packet_bytes
    min_packets = in_bytes / site.packet_bytes
    weight = float(values["wq"])
    log = min(max(1, round(-math.log2(weight))), LARGEST_LOG)
    # sch_red.c keeps averages of min and max times 2^n in 32 bits, and refuses what does not fit.
    room = 31 - int(max(float(tc["min"]), float(tc["max"]))).bit_length()
    found = burst_for(min_packets, min(log, room))
    if found is None:
        burst, got = 1, None
        remarks.append(f"min is {min_packets:.3g} packets: tc refuses less than one, and computes no weight")
    else:
        burst, got = found
        if not math.isclose(2.0**-got, weight, rel_tol=1e-6):
            remarks.append(f"wq {weight:.6g}: Linux has powers of 1/2; burst {burst} gives 1/{2**got}")
        if got != log and room < log:
            remarks.append("the kernel's average has 32 bits, and no room for less")
    words = ["avpkt", f"{round(site.packet_bytes)}", "burst", str(burst), "bandwidth", rate_text(site.rate_bps)]
    return words, remarks


MOST_PROBABILITY = 0.999999999
"""The largest that tc's 32 bits hold, to nine digits."""


def least_probability(band: float) -> float:
    """The smallest probability that tc takes where max is a `band` of bytes above min, to three digits; 0 for any.

    By tc/tc_red.c it is more than 2^-31 for each byte of the band; choke has avpkt of them a packet.
    """
    if band <= 0:
        return 0.0
    bound = band * 2.0**-31
    digit = 10.0 ** (math.floor(math.log10(bound)) - 2)
    return float(f"{(math.floor(bound / digit) + 1) * digit:.3g}")


def instead_of_one(band: float, packet_bytes: float) -> float:
    """What the kernel takes for a probability of 1, where max is a `band` of bytes above min; 1 where that is not less.

    By tc/q_red.c it is sent times 2^32 in 32 bits, of which a machine may make 0 (x86-64 does) or the most there is.
    For 0 the kernel takes 2^-Plog a byte of the band, and choke a packet, of `packet_bytes`.
    """
    return band / packet_bytes * 2.0 ** -int(band).bit_length() if band >= 1 else 1.0


def average_packet(found: Mapping[str, Raw]) -> float:
    """The bytes of `avpkt`; `ValueError` where a burst of such packets is none."""
    average = size(found.get("avpkt", USUAL_PACKET))
    if average < 1:
        raise ValueError(f"avpkt {found['avpkt']}: expected at least 1 byte")
    return average


def refused(found: Mapping[str, Raw], kind: str) -> str:
    """What is said of a command for which tc finds no weight: the word to change, and which burst it would take."""
    average = 1.0 if kind == "choke" else average_packet(found)
    min_packets = lengths(found, kind)[0] / average
    word = "burst" if "burst" in found else "min"
    said = f"{word}: tc refuses {found.get(word, 'it')}; expected"
    asked = "burst" if word == "burst" else "a burst"
    if min_packets < 1:
        return f"{said} min of {'a packet' if kind == 'choke' else f'avpkt ({average:g} bytes)'} or more"
    least = math.ceil(min_packets)
    why = "min" if kind == "choke" else "min / avpkt, rounded up"
    if _burst(found, kind, average) < least:
        return f"{said} {asked} of {least} or more ({why})"
    low, high = least, LARGEST_BURST
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if weight_log(min_packets, middle) is not None else (low, middle)
    return f"{said} {asked} of {least} ({why}) to {low}"


def _unit(kind: str) -> Callable[[Raw], float]:
    return (lambda raw: float(packets(raw))) if kind == "choke" else size


def lengths(found: Mapping[str, Raw], kind: str) -> tuple[float, float]:
    """The min and max of a command with a limit.

    tc-red(8): what is not given follows from the limit; by tc/q_red.c, max from a min that is given.
    """
    unit = _unit(kind)
    usual = 3 * unit(found["min"]) if "min" in found and kind != "choke" else unit(found["limit"]) // 4
    most = unit(found["max"]) if "max" in found else usual
    return unit(found["min"]) if "min" in found else most // 3, most


def _burst(found: Mapping[str, Raw], kind: str, average: float) -> int:
    """The packets of a command's burst, which tc makes of min and max where it is not given."""
    least, most = lengths(found, kind)
    return packets(found["burst"]) if "burst" in found else int((2 * least + most) // (3 * average))


def derive(found: Mapping[str, Raw], kind: str, is_command: bool) -> tuple[dict[str, Any], list[str]]:
    """What a dump's `ewma` or a command's burst says in our words, and what to say of it."""
    unit = _unit(kind)
    values: dict[str, Any] = {}
    remarks: list[str] = []
    average = 1.0 if kind == "choke" else average_packet(found)
    if "avpkt" in found:
        values["mean_packet"] = f"{round(size(found['avpkt']))}b"
    elif not is_command:
        remarks.append("mean_packet: tc does not show avpkt; it matters to the average after idle times alone")
    if "bandwidth" in found and rate(found["bandwidth"]):
        values["capacity"] = rate_text(rate(found["bandwidth"]))
    if is_command and "limit" in found:
        least, most = lengths(found, kind)
        values |= {
            name: f"{amount:.0f}{'p' if kind == 'choke' else 'b'}" for name, amount in (("min", least), ("max", most))
        }
        values["probability"] = 0.02
        log = weight_log(least / average, _burst(found, kind, average))
        values |= {"wq": 2.0**-log} if log is not None else {}
    elif "ewma" in found:
        values["wq"] = 2.0 ** -int(split(str(found["ewma"]))[0])
    else:
        remarks.append("without -d tc does not show ewma and probability: wq and probability are defaults")
    if "Plog" in found and "min" in found and "max" in found:
        # An old kernel's probability: 2^-Plog a byte (choke: packet) of the band.
        band = unit(found["max"]) - unit(found["min"])
        values["probability"] = number(float(f"{band * 2.0 ** -int(split(str(found['Plog']))[0]):.6g}"))
    return values, remarks
