"""RED as ALTQ has it, in whole numbers (altq_red.c of ALTQ 3: red_alloc, red_addq, red_getq, drop_early, pow_w).

=============  ==============================================================================================
red_avg        the average queue times 2^wshift, with 12 binary digits after the point
red_thmin_s    min, red_thmax_s max, in the same unit
red_probd      2 (max - min) / max_p, with 12 binary digits
red_old        whether the average was in the band before; red_count: packets since the last signal
red_idle       whether the link asked in vain since the last packet, at red_last
=============  ==============================================================================================

Not in ALTQ: the gentle slope, whose end is one more threshold here, asked after the others, and a maximum probability
that is not one in a whole number; and byte mode, which is what it does if it is made to count bytes. There

- a queue is so many mean packets: an arrival's sample is its bytes times 4096 / mean_packet, a whole number;
- the chance of a signal grows with the packet's size before the spacing (Floyd and Jacobson 1993): in the band the
  average above min is taken size / mean_packet times, cut to a whole number, and on the slope the probability is;
- everything else is as with packets: the queue of one that spares an arrival, the count, an idle link's 800 us a
  packet, and what is reported and compared with ``mark_p``, which is of a packet of mean size.
"""

from __future__ import annotations

import math
from fractions import Fraction

from oracle.frame import Packet, Uniform
from oracle.parameters import Waiting

DIGITS = 12
"""After the binary point."""
PACKET_US = 800
"""A packet's time on an idle link."""


class AltqRed:
    """Its numbers, and what it decides: nothing, "early" or "forced"."""

    def __init__(
        self,
        wq: float,
        thresholds: tuple[Fraction, Fraction, Fraction],
        mean_packet: int | None,
        overflows: bool,
        uniform: Uniform,
    ) -> None:
        """Thresholds in packets; with a ``mean_packet`` it counts bytes, and they are in mean packets."""
        # Weights are powers of 1/2 that 31 bits can hold; the nearest.
        self.wshift = min(max(round(-math.log2(wq)), 0), 31 - DIGITS)
        self.thresholds = thresholds
        self.mean_packet = mean_packet
        self.overflows = overflows
        self.uniform = uniform
        scale = 2 ** (self.wshift + DIGITS)
        self.thmin_s, self.thmax_s, self.end_s = (
            self.int32(math.floor(threshold * scale)) for threshold in self.thresholds
        )
        self.avg = 0
        self.old = False
        self.count = 0

    def int32(self, number: int) -> int:
        """What a C int keeps of a number, where it has 32 bits."""
        return (number + 2**31) % 2**32 - 2**31 if self.overflows else number

    @property
    def packets(self) -> float:
        """The average in packets or mean packets."""
        return self.avg / (1 << (self.wshift + DIGITS))

    def idle(self, last_ns: int, now_ns: int) -> int:
        """The average after an idle time: of the packets that could have come, one is the arrival."""
        n = (now_ns // 1000 - last_ns // 1000) // PACKET_US - 1
        return (self.avg >> DIGITS) * self.pow_w(n) if n > 0 else self.avg

    def pow_w(self, n: int) -> int:
        """(1 - w)^n, from a table of the powers with exponents 1, 2, 4 and so on."""
        weight = 2**self.wshift
        power = ((weight - 1) << DIGITS) // weight
        value = 1 << DIGITS
        for bit in bin(n)[:1:-1]:
            if bit == "1":
                value = (value * power) >> DIGITS
            power = (power * power) >> DIGITS
        return value

    def sample(self, waiting: Waiting, last_ns: int | None, now_ns: int) -> None:
        """An arrival finds what waits; the link was idle since ``last_ns``."""
        if last_ns is not None:
            self.avg = self.idle(last_ns, now_ns)
        self.avg = self.int32(self.avg + self.queue(waiting) - (self.avg >> self.wshift))

    def queue(self, waiting: Waiting) -> int:
        """What waits, with the digits after the point; of bytes what fills a digit."""
        if self.mean_packet is None:
            return waiting.packets << DIGITS
        return (waiting.bytes << DIGITS) // self.mean_packet

    def place(self) -> str:
        """Of the average among the thresholds."""
        if self.avg < self.thmin_s:
            return "below"
        if self.avg < self.thmax_s:
            return "band"
        return "slope" if self.avg < self.end_s else "above"

    def probd(self, max_p: float) -> int:
        """The denominator of probabilities."""
        low, high, _ = self.thresholds
        return self.int32(round(2 * (high - low) * 2**DIGITS / Fraction(max_p)))

    def fp_len(self) -> int:
        """The average above min."""
        return self.int32(self.avg - self.thmin_s) >> self.wshift

    def fp_len_of(self, packet: Packet) -> int:
        """The average above min as it counts for this packet: by its size, where bytes are counted."""
        if self.mean_packet is None:
            return self.fp_len()
        return self.int32(self.fp_len() * packet.size // self.mean_packet)

    def probability(self, max_p: float) -> float:
        """Before spacing, of a packet of mean size."""
        place = self.place()
        if place in ("below", "above"):
            return float(place == "above")
        if place == "slope":
            _, high, end = self.thresholds
            beyond = self.int32(self.avg - self.thmax_s) / (1 << (self.wshift + DIGITS))
            p = max_p + (1.0 - max_p) * beyond / float(end - high)
        elif max_p == 0.0:
            p = 0.0
        else:
            p = 2 * self.fp_len() / self.probd(max_p) if self.probd(max_p) > 0 else 1.0
        return min(max(p, 0.0), 1.0)

    def judge(self, packet: Packet, waiting: Waiting, max_p: float) -> str | None:
        """red_addq without the limit."""
        self.count += 1
        place = self.place()
        if place == "below" or waiting.packets <= 1:
            self.old = False
            return None
        if place == "above":
            self.count = 0
            return "forced"
        if not self.old:
            self.old = True
            self.count = 1
            return None
        if not (self.drop_early(packet, max_p) if place == "band" else self.drop_on_slope(packet, max_p)):
            return None
        self.count = 0
        return "early"

    def refused(self, waiting: Waiting) -> None:
        """The limit loses what red_addq has judged; a draw would change nothing."""
        if self.place() == "below" or waiting.packets <= 1:
            self.old = False
        elif self.place() != "above":
            self.old = True
        self.count = 0

    def drop_early(self, packet: Packet, max_p: float) -> bool:
        """p / (2 - count p) as a fraction of whole numbers."""
        if max_p == 0.0:
            return False
        fp_len = self.fp_len_of(packet)
        d = self.int32(self.probd(max_p) - self.int32(self.count * fp_len))
        if d <= 0:
            return True
        return fp_len > 0 and (fp_len >= d or self.uniform.unit() * d < fp_len)

    def drop_on_slope(self, packet: Packet, max_p: float) -> bool:
        """The same on the gentle slope."""
        p = self.probability(max_p)
        if self.mean_packet is not None:
            p = p * packet.size / self.mean_packet
        room = 2.0 - self.count * p
        return room <= 0.0 or (p > 0.0 and (p >= room or self.uniform.unit() * room < p))
