"""The first sentences of a report: what ran where, and who is ahead."""

import re
from functools import partial
from types import SimpleNamespace

import pytest

import aqmlab
from aqmlab import applications, engine, lead, statistics, subject
from aqmlab.results import named, readable
from aqmlab.statistics import Interval
from conftest import BASE, NATIVE, ROOT
from test_named import starving

HOME = """
name = "home"
duration = "20s"
warmup = "5s"
link = { rate = "50mbit", reverse_rate = "10mbit", qdisc = { kind = "pfifo", limit = "1000p" } }
tcp = { stack = "linux" }
[[traffic]]
kind = "web"
users = 200
direction = "forward"
[[traffic]]
kind = "onoff"
flows = 2
rate = "12mbit"
[[traffic]]
kind = "bulk"
direction = "reverse"
[[traffic]]
kind = "probe"
direction = "both"
"""

VECTORS = {"file": "files/campus.cvec", "sha256": "0" * 64}
BLOCKS = {
    "web/unc2001": ({"users": 1956, "direction": "forward"}, "1,956 web users (unc2001) forward"),
    "web/feldmann-pareto1": ({"users": 2}, "2 web sessions (feldmann-pareto1) in both directions"),
    "web/feldmann-pareto2": ({"users": 1}, "1 web session (feldmann-pareto2) forward"),
    "web/feldmann-exp1": ({"users": 3}, "3 web sessions (feldmann-exp1) in both directions"),
    "web/feldmann-exp2": ({"users": 3}, "3 web sessions (feldmann-exp2) in both directions"),
    "web/feldmann-constant": ({"users": 3}, "3 web sessions (feldmann-constant) in both directions"),
    "web/kuzmanovic2005": ({"users": 3}, "3 web sessions (kuzmanovic2005) in both directions"),
    "web/packmime": (
        {"arrivals": "400hz", "direction": "reverse"},
        "new web connections (packmime, 400 a second) in reverse",
    ),
    "bulk": ({"flows": 2, "direction": "reverse"}, "2 endless transfers in reverse"),
    "poisson": (
        {"arrivals": "1480hz", "size": {"exponential": "12000b"}},
        "exchanges at random times (1,480 a second, exponential sizes, 11.7 KiB) forward",
    ),
    "cbr": ({"flows": 4, "rate": "1mbit"}, "4 UDP sources of a constant rate (1 Mb/s together) forward"),
    "onoff": ({"rate": "5mbit"}, "1 on/off UDP source (5 Mb/s while on) forward"),
    "udp-poisson": (
        {"arrivals": "1000hz"},
        "1 UDP source of packets at random times (1,000 a second) forward",
    ),
    "udp-trace": ({"packets": VECTORS, "flows": 1}, "1 UDP source of the packets in campus.cvec forward"),
    "video": (
        {"viewers": 3, "segment": "4s", "buffer": "60s"},
        "3 viewers of video (bba0, segments of 4 s, 60 s buffered at most) forward",
    ),
    "rtp_video": (
        {"flows": 2, "max_rate": "5mbit"},
        "2 sources of real-time video (scream, 30 frames a second, 150 kb/s to 5 Mb/s each) forward",
    ),
    "probe": ({"direction": "reverse"}, "1 probe (a packet of 200 bytes every 20 ms) in reverse"),
    "tmix": (
        {"vectors": VECTORS, "load": "5mbit", "direction": "reverse"},
        "the connections in campus.cvec in reverse, which offer 5 Mb/s (50 % of the rate in reverse)",
    ),
    "web/archive2024": ({"users": 4}, "4 readers of web pages (archive2024, h2) in both directions"),
    "homes": ({"homes": 40}, "people in 40 homes"),
    "replay": ({"demands": VECTORS}, "the exchanges recorded in campus.cvec, in the directions recorded"),
}
"""Each entry of the registry: keys of a block, and what is said of it."""

WITH_FILES = ("udp-trace", "tmix", "replay")
REPLACED = ("homes",)
"""By other blocks, before anything is said of them."""
RATES = (50e6, 10e6)


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def test_a_kept_copy_is_called_as_its_author_called_the_file(compiled):
    sha256 = "8e2ee615250b" + "0" * 52
    for name in ("dem.csv", "8e2ee615250b-dem.csv"):
        facts = {"kind": "replay", "direction": "both", "demands": {"file": f"files/{name}", "sha256": sha256}}
        assert subject.block(facts, RATES) == "the exchanges recorded in dem.csv, in the directions recorded"


def test_every_kind_of_traffic_has_words(compiled):
    known = {row["name"] for row in engine.traffic_models()}
    assert set(BLOCKS) == known
    assert all(row["words"] for row in engine.traffic_models())


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_named_with_its_amount_and_direction(name, compiled):
    keys, expected = BLOCKS[name]
    kind, _, model = name.partition("/")
    asked = {"kind": kind, **({"model": model} if model else {}), **keys}
    if name in (*WITH_FILES, *REPLACED):  # which need not be there to be spoken of
        facts = {"direction": "both" if name == "replay" else "forward", **asked}
    else:
        resolved = engine.resolve(aqmlab.toml_text.dumps({"traffic": [asked]}), "x.toml")
        (facts,) = resolved.scenario["traffic"]
    assert subject.block(facts, RATES) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"kind": "bulk", "flows": 3, "size": "10mb"}, "3 transfers (10 MiB) forward"),
        ({"kind": "bulk", "flows": 2, "max_pacing_rate": "5mbit"}, "2 endless transfers (held to 5 Mb/s each) forward"),
        ({"kind": "bulk", "direction": "both"}, "1 endless transfer forward"),
        ({"kind": "bulk", "flows": 2, "direction": "both"}, "2 endless transfers in both directions"),
        (
            {"kind": "poisson", "arrivals": "1hz", "request": "0b", "size": {"pareto": {"mean": "20kb", "shape": 1.5}}},
            "transfers at random times (1 a second, pareto sizes, scale 6,826.67 bytes, shape 1.5) forward",
        ),
        (
            {
                "kind": "poisson",
                "arrivals": "0.266667hz",
                "size": {"lognormal": {"median": "1mb", "sigma": 1.0}},
            },
            "exchanges at random times (0.267 a second, lognormal sizes, median 1 MiB, sigma 1.0) forward",
        ),
        (
            {"kind": "poisson", "arrivals": "1234.5hz", "size": "1020kb"},
            "exchanges at random times (1,234 a second, 1,020 KiB) forward",
        ),
    ],
)
def test_what_a_block_says_besides(block, expected, compiled):
    resolved = engine.resolve(aqmlab.toml_text.dumps({"traffic": [block]}), "x.toml")
    assert subject.block(resolved.scenario["traffic"][0], RATES) == expected


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("forward", "20 Mb/s (40 % of the rate forward)"),
        ("reverse", "20 Mb/s (200 % of the rate in reverse)"),
        ("both", "20 Mb/s each way on average (40 % of the rate forward, 200 % of that in reverse)"),
    ],
)
def test_a_load_is_a_share_of_the_direction_it_is_offered_in(direction, expected):
    web = {"kind": "web", "model": "unc2001", "users": 1956, "direction": direction}
    said = subject.block(web, RATES, {"load_bps": 20e6})
    assert said.endswith(f", who would offer {expected} if nothing slowed them down")
    if direction == "both":
        assert subject.block(web, (50e6, 50e6), {"load_bps": 20e6}).endswith(
            "20 Mb/s each way on average (40 % of its rate) if nothing slowed them down"
        )


def test_the_subject_names_both_rates_and_every_block(compiled):
    found = aqmlab.compare(HOME, "pfifo limit 1000p", "fq_codel", "uncongested")
    assert subject.of(found.columns) == (
        "A link of 50 Mb/s forward and 10 Mb/s in reverse. Over it: 200 web users (unc2001) forward; "
        "2 on/off UDP sources (12 Mb/s while all are on) forward; 1 endless transfer in reverse; "
        "1 probe (a packet of 200 bytes every 20 ms) forward. 15 s measured after 5 s of warm-up."
    )


def test_blocks_say_what_tells_them_apart_and_equal_ones_are_one(compiled):
    blocks = [{}, {}, {"cc": "prague", "flows": 2}, {"dscp": "EF"}, {"direction": "reverse"}, {"direction": "reverse"}]
    tree = {"duration": "5s", "warmup": "0s", "traffic": [{"kind": "bulk", **keys} for keys in blocks]}
    tree["traffic"].append({"kind": "probe"})
    said = subject.of(aqmlab.compare(aqmlab.toml_text.dumps(tree), "pfifo", "codel").columns)
    assert said.endswith(
        "Over it: 2 × 1 endless transfer forward (cc cubic, ecn off); "
        "2 endless transfers forward (cc prague, ecn accurate); "
        "1 endless transfer forward (cc cubic, ecn off, dscp EF); "
        "2 × 1 endless transfer in reverse (cc cubic, ecn off); "
        "1 probe (a packet of 200 bytes every 20 ms) forward. 5 s measured."
    )
    tree["traffic"] = [{"kind": "bulk", "cc": "prague"}, {"kind": "bulk", "cc": "prague"}]
    (first, _) = subject.blocks(engine.resolve(aqmlab.toml_text.dumps(tree), "x.toml").scenario)
    assert first == "1 endless transfer forward", "all are alike"


def blocks(*blocks, path="50ms"):
    tree = {"path": {"rtt": path}, "traffic": list(blocks)}
    return subject.blocks(engine.resolve(aqmlab.toml_text.dumps(tree), "x.toml").scenario)


def test_blocks_say_how_far_away_their_hosts_are_where_that_tells_them_apart(compiled):
    bulk, probe = {"kind": "bulk"}, {"kind": "probe"}
    assert blocks(bulk | {"rtt": "20ms"}, bulk | {"rtt": "20ms"}, path="20ms") == ["1 endless transfer forward"] * 2
    near, far, measuring = blocks(
        bulk | {"rtt": "20ms"}, bulk | {"dscp": "EF"}, probe | {"rtt": {"even": ["5ms", "1s"]}}
    )
    assert near == "1 endless transfer forward (RTT 20 ms)"
    assert far == "1 endless transfer forward (RTT 50 ms, dscp EF)"
    assert measuring.endswith(" forward (RTT 5 ms to 1 s in even steps)")


@pytest.mark.parametrize(
    ("rtt", "said"),
    [
        ({"uniform": ["10ms", "150ms"], "step": "1ms"}, "10 ms to 150 ms"),
        ({"exponential": "50ms"}, "exponential, 50 ms"),
        ({"lognormal": {"median": "50ms", "sigma": 0.5}}, "lognormal, median 50 ms, sigma 0.5"),
        ({"table": [["10ms", 0.0], ["20ms", 1.0]]}, "tabulated"),
    ],
)
def test_round_trips_are_said_in_the_form_in_which_they_are_spread(rtt, said, compiled):
    first, _ = blocks({"kind": "bulk", "rtt": rtt}, {"kind": "bulk"})
    assert first == f"1 endless transfer forward (RTT {said})"


def test_recorded_connections_are_as_far_away_as_they_were(compiled):
    vectors = str(ROOT / "examples/vectors/internet2-like.cvec")
    recorded, bulk = blocks({"kind": "tmix", "vectors": vectors}, {"kind": "bulk"})
    assert recorded == "the connections in internet2-like.cvec forward" and bulk == "1 endless transfer forward"
    recorded, bulk = blocks({"kind": "tmix", "vectors": vectors, "rtt": "9ms"}, {"kind": "bulk"})
    assert recorded.endswith("forward (RTT 9 ms)") and bulk.endswith("(RTT 50 ms)")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ('"link.rate" = "200mbit"', "the link"),
        ('"traffic.0.start" = "1s"', ""),
        # As many users as offer that load in another window are others.
        ('"warmup" = "1s"', "the traffic and the window"),
    ],
)
def test_columns_of_other_links_are_told_apart(changes, said, tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(BASE + f'[[variant]]\nname = "a"\n[[variant]]\nname = "b"\nset = {{ {changes} }}\n')
    text = subject.of(aqmlab.compare(path).columns)
    assert text.startswith("A link of 100 Mb/s each way. Over it: ")
    assert text.endswith(f" That is a; others differ in {said}." if said else " of warm-up.")


class Column:
    """A column of a made-up comparison."""

    def __init__(self, name, value, uncongested=False, congestion=None):
        self.name, self.value, self.uncongested, self.congestion = name, value, uncongested, congestion
        self.witness, self.void, self.result = "simulated", None, SimpleNamespace(numbers=[])

    def estimate(self, _):
        return Interval(self.value, None, 1, "none")


def comparison(columns, width, n=5):
    def difference(one, other, _):
        return Interval(one.value - other.value, width, n, "none" if width is None else "runs")

    congested = [column for column in columns if not column.uncongested]
    reference = next((column for column in columns if column.uncongested), None)
    return SimpleNamespace(
        columns=columns, congested=congested, uncongested=reference, baseline=columns[0], reps=n, difference=difference
    )


TAIL, PI, CAKE = Column("tail", 0.6), Column("pi", 0.9), Column("cake", 0.905)


@pytest.mark.parametrize(
    ("columns", "width", "expected"),
    [
        ([TAIL, PI], 0.01, "pi (90.0 %) is ahead of tail (60.0 %) by 30.0 ± 1.0 points."),
        ([PI, TAIL], 0.01, "pi (90.0 %) is ahead of tail (60.0 %) by 30.0 ± 1.0 points."),
        ([TAIL, PI], 0.4, "pi (90.0 %) and tail (60.0 %) cannot be told apart by these runs."),
        (
            [TAIL, PI, CAKE],
            0.01,
            "cake (90.5 %) and pi (90.0 %) cannot be told apart by these runs; "
            "cake is ahead of tail (60.0 %) by 30.5 ± 1.0 points.",
        ),
        (
            [TAIL, PI, CAKE],
            0.001,
            "cake (90.5 %) is ahead of tail (60.0 %) by 30.50 ± 0.10 points, and of every other.",
        ),
        (
            [PI, TAIL, CAKE],
            0.01,
            "cake (90.5 %) and pi (90.0 %) cannot be told apart by these runs; tail (60.0 %) is behind.",
        ),
        (
            [TAIL, PI, CAKE, Column("red", 0.7), Column("blue", 0.65)],
            0.01,
            "cake (90.5 %) and pi (90.0 %) cannot be told apart by these runs; "
            "cake is ahead of tail (60.0 %) by 30.5 ± 1.0 points, and of red (70.0 %) and blue (65.0 %).",
        ),
        # Who is the same is named once; a gap that is longer than the scale has no width.
        ([PI, Column("red", 0.9)], 0.0, "90.0 % under each of them."),
        ([Column("bad", 0.0), Column("good", 1.0)], 0.6, "good (100.0 %) is ahead of bad (0.0 %) by 100 points."),
        # Alike in all of a few runs, which is chance.
        ([TAIL, PI], 0.0, "pi (90.0 %) and tail (60.0 %) cannot be told apart by these runs."),
        (
            [TAIL, PI],
            None,
            "pi (90.0 %) and tail (60.0 %). Which of them is ahead cannot be said: "
            "there is no interval for their differences.",
        ),
    ],
)
def test_who_is_ahead(columns, width, expected):
    assert lead.of(comparison(columns, width)) == f"Exchanges completed within half a second: {expected}"


def test_several_comparisons_need_more_than_one():
    # Five runs: t is 2.776 for one 95 % interval and 3.495 for two at once.
    interval = Interval(0.0, 2.776, 5, "runs")
    assert statistics.simultaneous(interval, 2).half_width == pytest.approx(3.495, abs=2e-3)
    # Twenty parts that are worth five.
    parts = Interval(0.0, 2.776, 20, "parts", freedom=4.0)
    assert statistics.simultaneous(parts, 2).half_width == pytest.approx(3.495, abs=2e-3)
    assert statistics.simultaneous(interval, 1) == interval
    # A difference of 1.1 widths is one of two columns, and none of three.
    behind = Column("b", 0.5)
    assert " is ahead of b " in lead.of(comparison([behind, Column("a", 0.511)], 0.01))
    said = lead.of(comparison([behind, Column("a", 0.511), TAIL_OFF], 0.01))
    assert "a (51.1 %) and b (50.0 %) cannot be told apart" in said


TAIL_OFF = Column("c", 0.1)


def test_nothing_is_called_best_that_another_column_beats():
    beaten = Column("uncongested", 0.89, uncongested=True)
    said = lead.of(comparison([TAIL, PI, beaten], 0.01))
    assert said.endswith(" On the uncongested link it is 89.0 %, less than under pi.")
    said = lead.of(comparison([TAIL, PI, Column("uncongested", 0.99, uncongested=True)], 0.01))
    assert said.endswith(" On the uncongested link it is 99.0 %.")
    void = Column("uncongested", 0.0, uncongested=True, congestion="forward 100.0% used")
    assert "that link was congested itself (forward 100.0% used)" in lead.of(comparison([TAIL, PI, void], 0.01))
    assert "best" not in said


def test_of_calls_it_says_what_these_get(tmp_path, compiled):
    path = tmp_path / "calls.toml"
    calls = '[[traffic]]\nkind = "probe"\napplication = "calls"\nflows = 2\ninterval = "20ms"\ndirection = "both"\n'
    path.write_text(HOME.replace("users = 200", "users = 20") + calls)
    found = aqmlab.compare(path, "pfifo limit 300p", "fq_codel", "fq_codel target 4ms", reps=3, jobs=1)
    (said,) = lead.of(found).splitlines()
    assert re.fullmatch(
        r"Calls each way, MOS \(how a call sounds: 1 bad to 5 excellent\): "
        r"fq_codel( target 4ms)? \(4\.\d\d\) (is ahead of|and fq_codel).*"
        r" pfifo limit 300p \([1-4]\.\d\d\) by \d\.\d\d ± \d\.\d\d.*\.",
        said,
    )


class Scattered(Column):
    """A column whose figure, and every difference to it, varies so much from run to run."""

    def __init__(self, name, value, width):
        super().__init__(name, value)
        self.width = width

    def estimate(self, _):
        return Interval(self.value, self.width, 5, "runs")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            [("codel", 0.6, 0.28), ("cake", 0.9, 0.01), ("fq", 0.899, 0.01), ("pie", 0.5, 0.01), ("dual", 0.7, 0.01)],
            "cake (90.0 %) and fq (89.9 %) cannot be told apart by these runs; dual (70.0 %) and pie (50.0 %) are "
            "behind; codel (60 ± 28 %) varies too much from run to run to be placed.",
        ),
        (
            [("pie", 0.7, 0.01), ("codel", 0.6, 0.28), ("cake", 0.9, 0.01), ("fq", 0.899, 0.01)],
            "cake (90.0 %) and fq (89.9 %) cannot be told apart by these runs; cake is ahead of pie (70.0 %) by "
            "20.0 ± 1.0 points; codel (60 ± 28 %) varies too much from run to run to be placed.",
        ),
        (
            [("codel", 0.6, 0.28), ("cake", 0.9, 0.01), ("pie", 0.7, 0.01), ("red", 0.65, 0.01), ("blue", 0.5, 0.4)],
            "cake (90.0 %) is ahead of pie (70.0 %) by 20.0 ± 1.0 points, and of red; codel (60 ± 28 %) and "
            "blue (50 ± 40 %) vary too much from run to run to be placed.",
        ),
        (
            [("codel", 0.6, 0.28), ("cake", 0.9, 0.01), ("pie", 0.7, 0.01)],
            "cake (90.0 %) is ahead of pie (70.0 %) by 20.0 ± 1.0 points; codel (60 ± 28 %) varies too much from run "
            "to run to be placed.",
        ),
        # Alike in all of a few runs, which is no scatter.
        (
            [("pie", 0.7, 0.01), ("cake", 0.9, 0.01), ("codel", 0.6, 0.0)],
            "cake (90.0 %) is ahead of pie (70.0 %) by 20.0 ± 1.0 points; codel (60.00 ± 0.00 %) cannot be placed.",
        ),
        # What is better than all that is behind is among the equals, however much it varies.
        (
            [("pie", 0.7, 0.01), ("codel", 0.8, 0.28), ("cake", 0.9, 0.01)],
            "cake (90.0 %) and codel (80.0 %) cannot be told apart by these runs; cake is ahead of pie (70.0 %) by "
            "20.0 ± 1.0 points.",
        ),
    ],
)
def test_what_scatters_is_not_called_better_than_what_is_behind(columns, expected):
    found = comparison([Scattered(*one) for one in columns], 0.0)

    def difference(one, other, _):
        return Interval(one.value - other.value, other.width if other.width in (0.0, 0.28, 0.4) else 0.01, 5, "runs")

    found.difference = difference
    assert lead.of(found) == f"Exchanges completed within half a second: {expected}"


def test_less_of_a_delay_is_ahead():
    calls, live = {"calls": {}}, {"live": {}}
    tail, pie = Column("tail", 0.225), Column("pie", 0.035)
    for column in (tail, pie):
        column.result.numbers.append(SimpleNamespace(applications=live))
    assert lead.of(comparison([tail, pie], 0.002)) == (
        "Real-time video, 99 % of frames within: pie (35 ms) is ahead of tail (225 ms) by 190.0 ± 2.0 ms."
    )
    for value, said in ((0.038, "38 ms, more than under pie."), (0.036, "36 ms.")):
        # Of what is within the interval nothing is said.
        reference = Column("uncongested", value, uncongested=True)
        answer = lead.of(comparison([tail, pie, reference], 0.002))
        assert answer.endswith(f" On the uncongested link it is {said}")
    # What one of them has not is not asked.
    pie.result.numbers[0] = SimpleNamespace(applications=calls)
    assert lead.of(comparison([tail, pie], 0.002)).startswith("Exchanges completed within half a second: ")


def test_nobody_is_ahead_where_a_run_has_no_number(tmp_path):
    steady, late = starving(tmp_path)
    columns = [Column(name, None) for name in ("codel", "starving")]
    for column, runs in zip(columns, (steady, late), strict=True):
        column.result.numbers, column.label = runs, column.name
        column.estimate = partial(named.estimate, runs)
    found = SimpleNamespace(
        columns=columns,
        congested=columns,
        uncongested=None,
        baseline=columns[0],
        reps=5,
        base_of=lambda _: columns[0],
        difference=lambda a, b, name: named.difference(a.result.numbers, b.result.numbers, name, are_paired=True),
    )
    assert lead.of(found) == (
        "Real-time video, 99 % of frames within: there is no such number under starving in 3 of 5 runs, so nobody is "
        "said to be ahead."
    )
    # The table has a dash and says why, as numbers.csv has an empty field.
    for column in columns:
        column.result.runs = [one.run for one in column.result.numbers]
    (part,) = applications.of(columns, found)
    places = [name for _, _, name in part.headings]
    for name in ("delay_p99_s", "difference_to_baseline.delay_p99_s"):
        cell = part.rows[1][1][places.index(name)]
        assert readable.say(cell.value, "s") == "–" and cell.as_dict()["value"] is None
    why = "of the frames less than 99 %, less than half, or none came whole"
    assert part.note == f"–: {why}, under starving in 3 of 5 runs."
    assert applications.of(columns[:1])[0].note == ""
