"""Writes examples/vectors/internet2-like.cvec: five minutes of connections of five applications, drawn, not recorded.

    python tools/synthetic_vectors.py            writes the file and prints its shares
    python tools/synthetic_vectors.py FILE       writes it there
    python tools/synthetic_vectors.py studies/le2004/general-mix.cvec --span 7200 --seed 200406013
                                             as many connections in two hours, of another draw

What each application does, how much of it there is, and why, stands here beside the numbers; the tables of
docs/traffic/tmix.md are what `main` prints. No recording was used: shapes are from RFCs and papers, the rest is ours.

The shares of bytes follow the only published ones of the Internet2 backbone of those years: NNTP 22.8 %, active FTP
14.2 %, HTTP 9.5 % of all octets, TCP 88.7 % (Shalunov and Teitelbaum, "TCP use and performance on Internet2", 2001).
SMTP they do not name among the large ones: 1.5 % of TCP here. What is left of TCP, nearly half, was on ports that tell
nothing, as file sharing was in those years: here all of it is.

A set this small would have whatever shares its largest few transfers happen to give. Sizes are therefore stratified:
of n draws from a distribution there is one in each n-th of its probability.
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import NormalDist

from aqmlab.vectors import ACCEPTOR, INITIATOR, Unit, Vector, write

TARGET = Path(__file__).parents[1] / "examples/vectors/internet2-like.cvec"
SEED = 20_040_601
SPAN_S = 300
SHARES = {"http": 0.107, "ftp": 0.160, "smtp": 0.015, "nntp": 0.257, "p2p": 0.461}
"""Of the bytes: 9.5, 14.2, 1.3, 22.8 and 40.9 of the 88.7 % that are TCP."""

Quantile = Callable[[float], float]
Session = tuple[float, Vector]
"""A connection and when it begins, in seconds."""


def lognormal(median: float, sigma: float) -> Quantile:
    """By its median and the standard deviation of its logarithm."""
    return lambda u: median * math.exp(sigma * NormalDist().inv_cdf(u))


def pareto(low: float, high: float, shape: float) -> Quantile:
    """A Pareto between two ends."""
    kept = 1.0 - (low / high) ** shape
    return lambda u: low * math.pow(1.0 - u * kept, -1.0 / shape)


def table(*points: tuple[float, float]) -> Quantile:
    """By quantiles (probability, value), the logarithm straight in between."""

    def quantile(u: float) -> float:
        above = next(i for i, (p, _) in enumerate(points) if i and u <= p)
        (p0, x0), (p1, x1) = points[above - 1], points[above]
        return x0 * math.pow(x1 / x0, (u - p0) / (p1 - p0))

    return quantile


# Smith et al., SIGMETRICS 2001, as docs/traffic/unc2001.md has them: mean 7.2 kB, a quarter of the bytes above 1 MB.
HTTP_BODY = table(
    *((0, 80), (0.1, 200), (0.31, 360), (0.52, 1_000), (0.7, 2_600), (0.724, 5_200), (0.85, 7_600), (0.895, 10_000)),
    *((0.949, 17_000), (0.9772, 30_000), (0.995, 100_000), (0.9983, 300_000), (0.99941, 1e6)),
)
HTTP_TAIL = pareto(1e6, 3e7, 1.2)


def http_response(u: float) -> float:
    """Quantiles up to a megabyte, then the tail."""
    return HTTP_BODY(u) if u < 0.99941 else HTTP_TAIL((u - 0.99941) / 0.00059)


HTTP_REQUEST = lognormal(330, 0.35)
# Medians of PackMime-HTTP (Cao et al., INFOCOM 2004): 9.3 s from page to page, 56 ms from object to object; servers
# answer within milliseconds, some within a tenth of a second.
PAGE_GAP = lognormal(9.3, 1.1)
OBJECT_GAP = lognormal(0.056, 1.4)
SERVER = lognormal(0.006, 1.2)

# Paxson and Floyd, "Wide-area traffic: the failure of Poisson modeling", ToN 1995: transfers have a Pareto tail of
# shape 0.9 to 1.1. It ends at 30 MB, as those of docs/traffic/unc2001.md do.
FTP_SIZE = pareto(30_000, 3e7, 0.9)
HUMAN = lognormal(4.0, 1.2)

# RFC 2821's dialogue. Paxson, "Empirically derived analytic models of wide-area TCP connections", ToN 1994: messages
# are log-normal with a heavier upper part. With the attachments of ten years later the mean is 18 kB.
MESSAGE = table((0, 400), (0.25, 1_500), (0.6, 4_000), (0.85, 12_000), (0.95, 60_000), (1, 600_000))
MAIL_SERVER = lognormal(0.03, 1.3)

# News between servers streams articles without waiting for verdicts (RFC 2980, TAKETHIS), hence concurrent; readers
# take turns. Text articles are some kB, parts of binaries come up to what servers accept, about 0.5 MB, and have most
# of the bytes.
ARTICLE = table((0, 600), (0.7, 3_500), (0.8, 20_000), (0.9, 150_000), (1, 600_000))

# Downloads of pieces of music and films, and many requests that a busy peer turns down; tail as for FTP.
P2P_SIZE = pareto(40_000, 3e7, 0.7)
# The block of the BitTorrent protocol, which both ends send at once.
BLOCK = 16_384

# 60 % of connections have a smallest round-trip time below 100 ms (Aikat et al., IMC 2003, at a campus of Internet2).
RTT = lognormal(0.076, 0.9)
# Receive windows of the systems of 2003 as delivered, and of a few hosts tuned for long paths. Ours.
WINDOWS = ((0.15, 8_760), (0.50, 17_520), (0.65, 32_768), (0.95, 65_535), (1.0, 262_144))
# Losses elsewhere on the path: the backbone was nearly empty, the last mile was not. Ours.
LOSSY, LOSS_MEAN, LOSS_MOST = 0.08, 0.01, 0.05


class Drawing:
    """Where all randomness of an application comes from."""

    def __init__(self, name: str, seed: int, span_s: int) -> None:
        self.random = Random(f"{seed} {name}")
        self.span_s = span_s

    def one(self, quantile: Quantile) -> float:
        """A value."""
        return quantile(self.unit())

    def unit(self) -> float:
        """A number between 0 and 1, neither of them."""
        return min(max(self.random.random(), 1e-12), 1 - 1e-12)

    def even(self, quantile: Quantile, count: int) -> Iterator[int]:
        """One whole number of each n-th of the probability, in any order."""
        drawn = [max(round(quantile((i + self.unit()) / count)), 1) for i in range(count)]
        self.random.shuffle(drawn)
        return iter(drawn)

    def wait(self, quantile: Quantile) -> int:
        """Microseconds of a distribution in seconds."""
        return max(round(self.one(quantile) * 1e6), 1)

    def start(self) -> float:
        """An instant of the set, in seconds."""
        return self.random.random() * self.span_s

    def times(self, mean: float) -> int:
        """A geometric number from 1 on."""
        return 1 + int(math.log(self.unit()) / math.log(1.0 - 1.0 / mean)) if mean > 1 else 1


def turns(*units: tuple[int, int, int]) -> Vector:
    """A sequential connection of (side, wait in us, bytes)."""
    return Vector(0, False, tuple(Unit(*unit) for unit in units))


def http(draw: Drawing) -> Iterator[Session]:
    """Pages open one or several connections; 15 % of these are used again, some of them pipelined."""
    exchanges = [draw.times(5) if draw.unit() < 0.15 else 1 for _ in range(3_400)]
    sizes = draw.even(http_response, sum(exchanges))
    waiting = iter(exchanges)
    count = next(waiting, None)
    while count is not None:
        at = draw.start()
        # A page's objects, two at a time, come over two or three connections within a second.
        for _ in range(draw.times(2.5)):
            if count is not None:
                yield at, _http_connection(draw, sizes, count)
                at += draw.one(OBJECT_GAP)
                count = next(waiting, None)


def _http_connection(draw: Drawing, sizes: Iterator[int], exchanges: int) -> Vector:
    units: list[Unit] = []
    is_pipelined = exchanges > 1 and draw.unit() < 0.1
    for number in range(exchanges):
        gap = OBJECT_GAP if draw.unit() < 0.7 else PAGE_GAP
        wait = 0 if number == 0 else draw.wait(gap)
        units.append(Unit(INITIATOR, wait, round(draw.one(HTTP_REQUEST))))
        units.append(Unit(ACCEPTOR, draw.wait(SERVER), next(sizes)))
    # A server closes what is not used again at once, the rest after its 15 s.
    close = 15_000_000 if exchanges > 1 else 1
    if is_pipelined:
        return concurrent(units, (draw.wait(SERVER), close))
    return Vector(0, False, (*units, Unit(ACCEPTOR, close, 0)))


def concurrent(units: list[Unit], closes: tuple[int, int]) -> Vector:
    """The units with the ends independent of each other."""
    both = [[unit for unit in units if unit.side == side] for side in (INITIATOR, ACCEPTOR)]
    for side, close in enumerate(closes):
        both[side].append(Unit(side, close, 0))
    return Vector(0, True, (*both[INITIATOR], *both[ACCEPTOR]))


def ftp(draw: Drawing) -> Iterator[Session]:
    """Control connections with their transfers: of an active one the server is the initiator, of a passive one not."""
    transfers = 215
    sizes = draw.even(FTP_SIZE, transfers)
    made = 0
    while made < transfers:
        at = begin = draw.start()
        files = min(draw.times(3), transfers - made)
        made += files
        control = [(ACCEPTOR, 0, 120)]
        # USER, PASS, SYST, TYPE, CWD.
        for size, answer in ((16, 60), (14, 48), (6, 32), (8, 31), (20, 37)):
            control += [(INITIATOR, draw.wait(lognormal(0.1, 1.0)), size), (ACCEPTOR, draw.wait(SERVER), answer)]
        at += 1.5
        for _ in range(files):
            wait = draw.one(HUMAN)
            at += wait
            control += [(INITIATOR, round(wait * 1e6), 26), (ACCEPTOR, draw.wait(SERVER), 30)]
            control += [(INITIATOR, draw.wait(SERVER), 24), (ACCEPTOR, draw.wait(SERVER), 70)]
            size, is_active, is_upload = next(sizes), draw.unit() < 0.5, draw.unit() < 0.15
            sender = INITIATOR if is_active != is_upload else ACCEPTOR
            yield at, turns((sender, 0, size), (sender, 1, 0))
        control += [(INITIATOR, draw.wait(HUMAN), 6), (ACCEPTOR, draw.wait(SERVER), 14), (ACCEPTOR, 1, 0)]
        yield begin, turns(*control)


def smtp(draw: Drawing) -> Iterator[Session]:
    """The acceptor greets, then they take turns; one message mostly."""
    messages = 300
    sizes = draw.even(MESSAGE, messages)
    made = 0
    while made < messages:
        units = [(ACCEPTOR, 0, 85), (INITIATOR, draw.wait(MAIL_SERVER), 26), (ACCEPTOR, draw.wait(MAIL_SERVER), 150)]
        for _ in range(min(draw.times(1.2), messages - made)):
            made += 1
            # MAIL, RCPT, DATA, the message.
            for size, answer in ((45, 40), (40, 44), (6, 50), (next(sizes), 60)):
                units += [(INITIATOR, draw.wait(SERVER), size), (ACCEPTOR, draw.wait(MAIL_SERVER), answer)]
        units += [(INITIATOR, draw.wait(SERVER), 6), (ACCEPTOR, draw.wait(SERVER), 44), (ACCEPTOR, 1, 0)]
        yield draw.start(), turns(*units)


def nntp(draw: Drawing) -> Iterator[Session]:
    """Servers feed each other article after article; readers ask for theirs one by one."""
    fed, read = 1_500, 700
    articles = draw.even(ARTICLE, fed + read)
    made = 0
    while made < fed:
        units: list[Unit] = []
        for number in range(min(draw.times(60), fed - made)):
            made += 1
            gap = lognormal(0.02, 1.5) if number else lognormal(0.3, 0.5)
            units.append(Unit(INITIATOR, draw.wait(gap), next(articles)))
            # A verdict for each, on its own clock; the greeting comes first.
            units.append(Unit(ACCEPTOR, draw.wait(gap) if number else 0, 40 if number else 90))
        yield draw.start(), concurrent(units, (draw.wait(HUMAN), draw.wait(HUMAN)))
    made = 0
    while made < read:
        dialogue = [(ACCEPTOR, 0, 90), (INITIATOR, draw.wait(SERVER), 22), (ACCEPTOR, draw.wait(SERVER), 60)]
        for _ in range(min(draw.times(8), read - made)):
            made += 1
            dialogue += [(INITIATOR, draw.wait(HUMAN), 32), (ACCEPTOR, draw.wait(SERVER), next(articles))]
        dialogue += [(INITIATOR, draw.wait(HUMAN), 6), (ACCEPTOR, draw.wait(SERVER), 14), (ACCEPTOR, 1, 0)]
        yield draw.start(), turns(*dialogue)


def p2p(draw: Drawing) -> Iterator[Session]:
    """Requests turned down, pieces fetched, swarms in which both ends send, and chatter between peers."""
    for _ in range(900):
        ask = (INITIATOR, 0, round(draw.one(lognormal(280, 0.3))))
        yield draw.start(), turns(ask, (ACCEPTOR, draw.wait(MAIL_SERVER), 190), (ACCEPTOR, 1, 0))
    downloads = 185
    for size in draw.even(P2P_SIZE, downloads):
        ask = (INITIATOR, 0, round(draw.one(lognormal(320, 0.3))))
        yield draw.start(), turns(ask, (ACCEPTOR, draw.wait(MAIL_SERVER), size), (ACCEPTOR, 1, 0))
    for _ in range(60):
        units = []
        for number in range(draw.times(12)):
            for side in (INITIATOR, ACCEPTOR):
                # Requests for blocks, then the blocks, as fast as the other end takes them.
                size = 68 if number == 0 else BLOCK * draw.times(2.5)
                units.append(Unit(side, draw.wait(lognormal(0.6, 1.2)) if number else 0, size))
        yield draw.start(), concurrent(units, (draw.wait(HUMAN), draw.wait(HUMAN)))
    for _ in range(240):
        units = []
        for number in range(draw.times(6)):
            for side in (INITIATOR, ACCEPTOR):
                size = round(draw.one(lognormal(90, 0.9)))
                units.append(Unit(side, draw.wait(lognormal(2.5, 1.3)) if number else 0, max(size, 1)))
        yield draw.start(), concurrent(units, (draw.wait(HUMAN), draw.wait(HUMAN)))


APPLICATIONS = {"http": http, "ftp": ftp, "smtp": smtp, "nntp": nntp, "p2p": p2p}


def connections(seed: int = SEED, span_s: int = SPAN_S) -> list[tuple[str, Vector]]:
    """All connections, with their application, in the order of their starts."""
    drawn: list[tuple[str, Vector]] = []
    for name, application in APPLICATIONS.items():
        draw = Drawing(name, seed, span_s)
        path = Drawing(f"{name} path", seed, span_s)
        # What would begin after the end begins at the start instead, where what follows earlier sessions is missing.
        drawn += [(name, on_a_path(path, at % span_s, vector)) for at, vector in application(draw)]
    return sorted(drawn, key=lambda pair: pair[1].start_us)


def on_a_path(draw: Drawing, at_s: float, vector: Vector) -> Vector:
    """With a round-trip time, windows and losses of its own."""
    first, second = (next(window for p, window in WINDOWS if draw.random.random() <= p or p == 1) for _ in range(2))
    losses = []
    for _ in range(2):
        amount = -LOSS_MEAN * math.log(draw.unit())
        losses.append(min(amount, LOSS_MOST) if draw.unit() < LOSSY else 0.0)
    rtt_us = round(min(max(draw.one(RTT), 0.003), 1.5) * 1e6)
    return replace(
        vector,
        start_us=round(at_s * 1e6),
        windows=(first, second),
        rtt_us=rtt_us,
        losses=(round(losses[0], 6), round(losses[1], 6)),
    )


HEAD = """\
# {span_s} s of TCP connections of five applications as they were mixed on the Internet2 backbone of 2001 to 2004.
# Drawn by tools/synthetic_vectors.py, seed {seed}; no recording of any network was used. See docs/traffic/tmix.md.
"""


def main(arguments: list[str]) -> int:
    """Writes the file; prints what is in it."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("file", nargs="?", type=Path, default=TARGET)
    parser.add_argument("--span", type=int, default=SPAN_S, help="seconds in which connections begin")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args(arguments)
    target, seed, span_s = asked.file, asked.seed, asked.span
    target.parent.mkdir(parents=True, exist_ok=True)
    drawn = connections(seed, span_s)
    with target.open("w", encoding="utf-8", newline="\n") as out:
        out.write(HEAD.format(span_s=span_s, seed=seed))
        for number, (name, vector) in enumerate(drawn, 1):
            first, rest = write(vector, number).split("\n", 1)
            out.write(f"{first} # {name}\n{rest}")
    total = sum(vector.bytes_from(side) for _, vector in drawn for side in (0, 1))
    print(f"{'':8}{'connections':>12}{'concurrent':>12}{'MB':>8}{'bytes':>8}{'wanted':>8}{'mean kB':>9}")
    for name in APPLICATIONS:
        of = [vector for other, vector in drawn if other == name]
        size = sum(vector.bytes_from(side) for vector in of for side in (0, 1))
        both = sum(vector.is_concurrent for vector in of)
        shares = f"{size / total:8.1%}{SHARES[name]:8.1%}"
        print(f"{name:8}{len(of):12,}{both:12,}{size / 1e6:8.1f}{shares}{size / 1e3 / len(of):9.1f}")
    print(f"{'all':8}{len(drawn):12,}{sum(v.is_concurrent for _, v in drawn):12,}{total / 1e6:8.1f}")
    # Where both directions are asked for, vectors take turns: the ends that answer each send their own way.
    ways = [0, 0]
    for number, (_, vector) in enumerate(drawn):
        for side in (INITIATOR, ACCEPTOR):
            ways[(number + side) % 2] += vector.bytes_from(side)
    one, other = (100 * way / total for way in ways)
    print(f"{one:.2f} % of the bytes one way, {other:.2f} % the other, where vectors take turns")
    print(f"{total * 8 / span_s / 1e6:.2f} Mb/s of data, {target.stat().st_size / 1e6:.2f} MB of text")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
