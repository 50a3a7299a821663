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

WEB = 0
"""The block of pages, or of what was captured, where there is one."""

READING = {"exponential": f"{PAGE_EVERY_S:g}s"}
"""Of people at home, from the end of a page to the next: more often than the hour's mean, so that runs have pages."""

PLAYER = {"rule": "throughput", "buffer": "30s"}
"""Of films: one that finds its bitrate within a run, and feels a slow minute."""

WINDOW = "3840kb"
"""What hosts of a capture offer at most: what Linux does of the largest receive buffer that it comes with (tcp_rmem).
What was advertised in the capture was enough for the queues that it met."""


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
    video: int = 0
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
    video = generator.randint(*(int(end) for end in mix.video))
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
        video,
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
    line: Tree = {
        "rate": units.rate_text(rates[0]),
        "reverse_rate": units.rate_text(rates[1]),
        "overhead": f"{question.access.overhead_bytes}b",
        **_cells(question.access.cells),
        "qdisc": _fifo(rates[0], drawn.down_queue_s),
        "reverse_qdisc": _fifo(rates[1], drawn.up_queue_s),
    }
    if question.access.lowest < 1:
        lowest = question.access.lowest
        line["states"] = [
            {**_rates(rates, share), "stay": {"exponential": "2s"}, "to": [1, 1, 1]}
            for share in (1.0, (1 + lowest) / 2, lowest)
        ]
    links = {question.access.place: line}
    if candidate.in_modem:
        line["reverse_qdisc"] = candidate.qdisc(way(question, rates[1]))
    elif question.access.is_port:
        line |= port(question, candidate)
    elif candidate.settings is not None:
        share = margin(question, candidate) if too_fast is None else too_fast
        links["router"] = router(question, candidate, share)
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


COUNT_CELLS = ("linux", "openwrt")
"""Platforms whose shapers count cells whatever stands below them; others do in CAKE alone."""

FULL_PACKET = 1500


def counts_cells(question: Question, candidate: Candidate) -> bool:
    """Whether the shaper of a candidate counts what the line's cells take."""
    return question.platform in COUNT_CELLS or _is_cake(question, candidate)


def _is_cake(question: Question, candidate: Candidate) -> bool:
    return bool(candidate.qdisc(way(question, question.down_bps))["kind"] == "cake")


def margin(question: Question, candidate: Candidate) -> float:
    """The share of the line's rate that a candidate shapes to: less where it does not know of the line's cells."""
    share = question.access.margin
    if question.access.cells == "noatm" or counts_cells(question, candidate):
        return share
    counted = FULL_PACKET + question.shaper_overhead_bytes
    return share * counted / question.access.wire_bytes(FULL_PACKET)


def port(question: Question, candidate: Candidate) -> Tree:
    """What a candidate puts in the place of the queues of a port, each way: nothing of what there is today."""
    if candidate.settings is None:
        return {}
    if candidate.router is not None:
        return dict(candidate.router)
    return {
        "qdisc": candidate.qdisc(way(question, question.down_bps)),
        "reverse_qdisc": candidate.qdisc(way(question, question.up_bps)),
    }


def router(question: Question, candidate: Candidate, share: float) -> Tree:
    """The link that a shaper makes, each way, at a share of the line's rate; or that which is set now."""
    if candidate.router is not None:
        return dict(candidate.router)
    rates = (question.down_bps * share, question.up_bps * share)
    return {
        **_rates(rates, 1.0),
        "overhead": f"{question.shaper_overhead_bytes}b",
        **_cells(_cells_counted(question, candidate)),
        "qdisc": candidate.qdisc(way(question, rates[0])),
        "reverse_qdisc": candidate.qdisc(way(question, rates[1])),
    }


def _cells_counted(question: Question, candidate: Candidate) -> str:
    """The cells that the shaper of a candidate counts."""
    if _is_cake(question, candidate):
        return question.access.cake_cells
    return question.access.cells if question.platform in COUNT_CELLS else "noatm"


def _cells(cells: str) -> Tree:
    return {} if cells == "noatm" else {"framing": cells}


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
    blocks = _people(question, drawn, vectors) if question.homes is None else [_homes(question.homes, drawn)]
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
                        **_is("downloads" if direction == "forward" else "backups"),
                    }
                )
    return blocks


def _people(question: Question, drawn: Drawn, vectors: str | None) -> list[Tree]:
    """Pages or what was captured, calls, games, and films if any are watched."""
    blocks: list[Tree] = []
    if drawn.piece is not None:
        blocks.append(_captured(question, vectors or str(drawn.piece.vectors)))
    elif drawn.users:
        blocks.append(_pages(question, drawn))
    look_on = {"flows": 2 * drawn.calls, "direction": "both", "start": "0s"}
    if drawn.calls:
        blocks.append({"kind": "probe", **look_on, **_is("calls")})
    if drawn.games:
        played = {"flows": 2 * drawn.games, "interval": "33ms", "packet": "100b"}
        blocks.append({"kind": "probe", **look_on, **played, **_is("games")})
    if drawn.video:
        blocks.append({"kind": "video", "viewers": drawn.video, **PLAYER, **_is("video")})
    return blocks


def _is(application: str) -> Tree:
    return {"application": application}


def _homes(homes: int, drawn: Drawn) -> Tree:
    """As many of each as were drawn: a home's share of them."""
    each = {"browsing": drawn.users, "video": drawn.video, "calls": drawn.calls, "games": drawn.games}
    return {
        "kind": "homes",
        "homes": homes,
        **{name: count / homes for name, count in each.items()},
        # Some of these are under BBR: they have blocks of their own.
        "downloads": 0,
        "backups": 0,
        "think": READING,
        **PLAYER,
    }


def _pages(question: Question, drawn: Drawn) -> Tree:
    fit_hz = question.down_bps / (USER_BPS * PAGE_EVERY_S)
    pages_hz = max(min(drawn.users / PAGE_EVERY_S, MOST_OF_PAGES * fit_hz), min(FEWEST_PAGES_HZ, 0.1 * fit_hz))
    return {
        "kind": "poisson",
        "arrivals": f"{pages_hz:.6g}hz",
        "size": {"lognormal": {"median": f"{PAGE_MEDIAN_BYTES}b", "sigma": PAGE_SIGMA}},
        "direction": "forward",
        **_is("pages"),
    }


def _captured(question: Question, vectors: str) -> Tree:
    """Of those who opened connections as of users. Losses that were seen may be those of the queue of the day."""
    block: Tree = {"kind": "tmix", "vectors": vectors, "loss": False, "window": WINDOW, "direction": "forward"}
    return block if question.own_rtt else {**block, "rtt": _rtt(question)}


def _rtt(question: Question) -> Tree:
    return {"uniform": [f"{one * 1e3:.9g}ms" for one in question.rtt_s]}
