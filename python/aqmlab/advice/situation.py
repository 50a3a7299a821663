"""A link as it may be: what is not known of it is drawn, by the seed, and is the same for every candidate."""

import random
from dataclasses import dataclass

from aqmlab import engine, toml_text, units
from aqmlab.advice.candidates import Candidate, Way
from aqmlab.advice.captured import Piece
from aqmlab.advice.question import (
    DURATION_S,
    MOST_OF_PAGES,
    PAGE_EVERY_S,
    PAGE_MEDIAN_BYTES,
    PAGE_SIGMA,
    USER_BPS,
    Question,
)
from aqmlab.engine import Resolved, Tree

WARMUP_S = 4.0

FEWEST_PAGES_HZ = 0.2
"""Pages a second at least, so that a run has some to judge by, as long as they take a tenth of the rate at most."""

WEB, CALLS, GAMES = 0, 1, 2
"""Blocks of the traffic, pages or what was captured first; downloads and uploads follow."""

WINDOW = "6mb"
"""What hosts of a capture offer at most: the largest receive buffer that Linux comes with (tcp_rmem). What was
advertised in the capture was enough for the queues that it met."""


@dataclass(frozen=True)
class Drawn:
    """What one seed makes of a question."""

    seed: int
    down_queue_s: float
    up_queue_s: float
    users: int
    downloads: int
    uploads: int
    calls: int
    games: int
    downloads_bbr: int
    """Of the downloads."""
    uploads_bbr: int
    piece: Piece | None = None
    """Of what was captured."""


def draw(question: Question, seed: int) -> Drawn:
    """The link and its users under a seed."""
    generator = random.Random(f"{question.seed}/{seed}")
    access, mix = question.access, question.mix
    down_queue, up_queue = generator.uniform(*access.down_queue_s), generator.uniform(*access.up_queue_s)
    users, downloads, uploads, calls, games = (
        generator.randint(*(int(end) for end in ends))
        for ends in (mix.users, mix.downloads, mix.uploads, mix.calls, mix.games)
    )
    share = generator.uniform(*mix.bbr)
    downloads_bbr, uploads_bbr = (
        sum(generator.random() < share for _ in range(flows)) for flows in (downloads, uploads)
    )
    piece = None if question.captured is None else generator.choice(question.captured.pieces)
    return Drawn(
        question.seed * 100_000 + seed,
        down_queue,
        up_queue,
        users,
        downloads,
        uploads,
        calls,
        games,
        downloads_bbr,
        uploads_bbr,
        piece,
    )


def scenario(
    question: Question,
    drawn: Drawn,
    candidate: Candidate,
    too_fast: float | None = None,
    origin: str = "aqmlab advise",
    vectors: str | None = None,
) -> Resolved:
    """The run of a candidate; `too_fast` is what its shaper is set to, in the line's rates, where that is wrong.

    `vectors` is the file of what was captured as the scenario `origin` has it, if it is not that of the piece.
    """
    rates = (question.down_bps, question.up_bps)
    modem: Tree = {
        "rate": units.rate_text(rates[0]),
        "reverse_rate": units.rate_text(rates[1]),
        "overhead": f"{question.access.overhead_bytes}b",
        "qdisc": _fifo(rates[0], drawn.down_queue_s),
        "reverse_qdisc": _fifo(rates[1], drawn.up_queue_s),
    }
    if question.access.lowest < 1:
        lowest = question.access.lowest
        modem["states"] = [
            {**_rates(rates, share), "stay": {"exponential": "2s"}, "to": [1, 1, 1]}
            for share in (1.0, (1 + lowest) / 2, lowest)
        ]
    links = {"modem": modem}
    if candidate.in_modem:
        modem["reverse_qdisc"] = candidate.qdisc(way(question, rates[1]))
    elif candidate.settings is not None:
        links["router"] = router(question, candidate, question.access.margin if too_fast is None else too_fast)
    tree: Tree = {
        "name": candidate.name,
        "duration": f"{DURATION_S:g}s",
        "warmup": f"{WARMUP_S:g}s",
        "seed": drawn.seed,
        "links": links,
        "path": {"rtt": _rtt(question), "access_rate": "10gbit"},
        "tcp": {"stack": "linux"},
        "record": {"demands": drawn.piece is None},
        "traffic": [{**block, "route": list(links), "rtt_at": "left"} for block in _traffic(question, drawn, vectors)],
    }
    return engine.resolve(toml_text.dumps(tree), origin)


def router(question: Question, candidate: Candidate, margin: float) -> Tree:
    """The link that a shaper makes, each way, at a share of the line's rate."""
    rates = (question.down_bps * margin, question.up_bps * margin)
    return {
        **_rates(rates, 1.0),
        "overhead": f"{question.shaper_overhead_bytes}b",
        "qdisc": candidate.qdisc(way(question, rates[0])),
        "reverse_qdisc": candidate.qdisc(way(question, rates[1])),
    }


def way(question: Question, shaped_bps: float) -> Way:
    """One direction as its discipline knows it."""
    return Way(float(round(shaped_bps)), question.rtt_s[1], question.access.overhead_keyword)


def _rates(rates: tuple[float, float], share: float) -> Tree:
    forward, reverse = (units.rate_text(round(rate * share)) for rate in rates)
    return {"rate": forward, "reverse_rate": reverse}


def _fifo(bps: float, seconds: float) -> Tree:
    """A queue of bytes, of eight full frames at least."""
    return {"kind": "bfifo", "limit": f"{max(8 * 1514, round(bps * seconds / 8))}b"}


def _traffic(question: Question, drawn: Drawn, vectors: str | None) -> list[Tree]:
    blocks: list[Tree] = [
        _pages(question, drawn) if drawn.piece is None else _captured(question, vectors or str(drawn.piece.vectors)),
        {"kind": "probe", "flows": 2 * max(1, drawn.calls), "direction": "both", "start": "0s"},
        {
            "kind": "probe",
            "flows": 2 * max(1, drawn.games),
            "interval": "33ms",
            "packet": "100b",
            "direction": "both",
            "start": "0s",
        },
    ]
    for direction, flows, of_bbr in (
        ("forward", drawn.downloads, drawn.downloads_bbr),
        ("reverse", drawn.uploads, drawn.uploads_bbr),
    ):
        for cc, number in (("cubic", flows - of_bbr), ("bbr", of_bbr)):
            if number:
                blocks.append(
                    {
                        "kind": "bulk",
                        "flows": number,
                        "cc": cc,
                        "direction": direction,
                        "start": {"uniform": ["0s", "2s"]},
                    }
                )
    return blocks


def _pages(question: Question, drawn: Drawn) -> Tree:
    fit_hz = question.down_bps / (USER_BPS * PAGE_EVERY_S)
    pages_hz = max(min(drawn.users / PAGE_EVERY_S, MOST_OF_PAGES * fit_hz), min(FEWEST_PAGES_HZ, 0.1 * fit_hz))
    return {
        "kind": "poisson",
        "arrivals": f"{pages_hz:.6g}hz",
        "size": {"lognormal": {"median": f"{PAGE_MEDIAN_BYTES}b", "sigma": PAGE_SIGMA}},
        "direction": "forward",
    }


def _captured(question: Question, vectors: str) -> Tree:
    """Of those who opened connections as of users. Losses that were seen may be those of the queue of the day."""
    block: Tree = {"kind": "tmix", "vectors": vectors, "loss": False, "window": WINDOW, "direction": "forward"}
    return block if question.own_rtt else {**block, "rtt": _rtt(question)}


def _rtt(question: Question) -> Tree:
    return {"uniform": [f"{one * 1e3:.9g}ms" for one in question.rtt_s]}
