import copy

import pytest

import aqmlab
from aqmlab import engine
from aqmlab.claims import reading
from aqmlab.claims.verdict import CLEAR, EQUAL, HOLDS
from aqmlab.errors import BadInput
from aqmlab.measures import keys
from conftest import NATIVE, ROOT
from subjects import GRID, points

POINTS = points()
CHECK = {
    "measure": "ahead",
    "at_s": 0.5,
    "of": {"aqm": "pi", "ecn": "on", "load": "98"},
    "than": {"aqm": "tail", "ecn": "off"},
    "low": "clear",
}
CLAIM = {
    "id": "x-1",
    "says": "PI is clearly\n  better.",
    "reason": "half the distance of two grid lines",
    "check": [CHECK],
}


def read(claim=CLAIM, tree=None, found=POINTS):
    return reading.of_tables(tree or {"claim": [claim]}, "claims.toml", "A paper", found)


def test_a_claim_says_all_that_it_says():
    (text,) = read(
        CLAIM
        | {
            "number_of": "exchanges  within 0.5 s",
            "source": "section 4.1,\n  figure 8",
            "known_outcome": "does not hold",
            "explained": "the hosts",
            "evidence": [{"aqm": "red", "load": "98"}],
            "seeds": 5,
        }
    )
    assert (text.id, text.paper, text.says) == ("x-1", "A paper", "PI is clearly better.")
    assert (text.number_of, text.source) == ("exchanges within 0.5 s", "section 4.1, figure 8")
    assert (text.seeds, text.parts, text.known_outcome, text.explained) == (5, False, "does not hold", "the hosts")
    assert text.evidence == ("web/red/off/98", "web/red/on/98")
    (question,) = text.questions
    assert (question.low, question.high, question.unit) == (CLEAR, float("inf"), "points")
    assert text.points == {"web/pi/on/98", "web/tail/off/98"}


def test_defaults_and_where_the_claims_stand():
    (text,) = read(tree={"paper": "Some and Others, 2003", "claim": [CLAIM]})
    assert (text.paper, text.source, text.seeds, text.known_outcome, text.explained, text.evidence) == (
        "Some and Others, 2003",
        None,
        3,
        HOLDS,
        None,
        (),
    )


def test_than_takes_the_coordinates_of_of_that_it_does_not_name():
    (text,) = read(CLAIM | {"check": [CHECK | {"of": {"aqm": "pi", "ecn": "off"}, "than": {"aqm": "tail"}}]})
    pairs = [[group.points[0].name for _, group in question.terms] for question in text.questions]
    assert pairs == [[f"web/pi/off/{load}", f"web/tail/off/{load}"] for load in (80, 90, 98)]


def test_than_in_another_grid_takes_what_that_grid_has():
    tree = copy.deepcopy(GRID)
    web = tree["grid"][0]
    other = {"name": "single", "axis": [web["axis"][0], web["axis"][2]]}
    tree["grid"].append(other)
    check = CHECK | {
        "of": {"grid": "web", "aqm": "pi", "ecn": "on", "load": "90"},
        "than": {"grid": "single", "aqm": "red"},
    }
    (text,) = read(CLAIM | {"check": [check]}, found=points(tree))
    assert text.points == {"web/pi/on/90", "single/red/90"}


def test_words_stand_for_sizes():
    for word, size in (("equal", EQUAL), ("-equal", -EQUAL), ("-clear", -CLEAR)):
        (text,) = read(CLAIM | {"check": [CHECK | {"low": word, "high": 1.0}]})
        assert text.questions[0].low == size


def test_what_cannot_be_answered_is_left_out_unless_a_check_loses_all():
    check = CHECK | {"of": {"aqm": ["pi", "red"], "ecn": "on", "load": "98"}}
    (text,) = read(CLAIM | {"check": [check, CHECK]})
    assert text.is_answerable({"web/pi/on/98", "web/tail/off/98"})
    assert not text.is_answerable({"web/red/on/98", "web/tail/off/98"}), "the second check speaks of PI alone"


def test_the_known_outcome_may_be_another_thing_in_one_profile():
    (text,) = read(CLAIM | {"known_outcome": {"quick": "does not hold"}, "explained": "it is too short"})
    assert [text.in_profile(name).known_outcome for name in ("full", "quick")] == ["holds", "does not hold"]
    (text,) = read(CLAIM | {"known_outcome": "does not hold", "explained": "why"})
    assert not text.cause_unknown
    assert [text.in_profile(name).known_outcome for name in ("full", "quick")] == ["does not hold", "does not hold"]


def test_a_claim_with_other_bounds_or_points_is_another_one_and_with_other_words_it_is_not():
    (text,) = read(CLAIM)
    (again,) = read(CLAIM | {"says": "In other words.", "reason": "another", "explained": "so"})
    assert again.digest == text.digest
    for changed in (
        CLAIM | {"seeds": 4},
        CLAIM | {"check": [CHECK | {"low": 0.25}]},
        CLAIM | {"check": [CHECK | {"of": {"aqm": "red", "ecn": "on", "load": "98"}}]},
        CLAIM | {"check": [CHECK, CHECK]},
    ):
        (other,) = read(changed)
        assert other.digest != text.digest, changed


def test_what_another_grid_has_not_is_refused_rather_than_left_out():
    other = {
        "name": "short",
        "axis": [
            {"name": "aqm", "value": [{"name": "tail", "link": {"qdisc": {"kind": "pfifo"}}}]},
            {"name": "load", "key": "traffic.0.flows", "values": [80, 90]},
        ],
    }
    two = points({**GRID, "grid": [*GRID["grid"], other]})
    check = CHECK | {"of": {"grid": "web", "aqm": "pi", "ecn": "on", "load": ["90", "98"]}}

    def of(**than):
        (text,) = reading.of_tables({"claim": [CLAIM | {"check": [check | {"than": than}]}]}, "claims.toml", "P", two)
        return [sorted(question.points) for question in text.questions]

    # The grid has no axis ecn, so that there is nothing to inherit; it has loads, but not 98.
    with pytest.raises(BadInput, match="than: load: missing; web/pi/on/98 has '98', which grid short does not have"):
        of(grid="short", aqm="tail")
    assert of(grid="short", aqm="tail", load="80") == [
        ["short/tail/80", "web/pi/on/90"],
        ["short/tail/80", "web/pi/on/98"],
    ]


def without(key):
    return {name: item for name, item in CLAIM.items() if name != key}


def checked(**changes):
    return CLAIM | {"check": [{key: item for key, item in (CHECK | changes).items() if item is not None}]}


TIMES = [0.1, 0.3, 0.5, 1.0]
TERM = {"weight": 1, "at": {"aqm": "pi", "ecn": "on", "load": "98"}}


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (without("id"), "claims.toml: claim.0: id: missing; expected a text"),
        (without("says"), "claims.toml: x-1: says: missing; expected a text"),
        (without("reason"), "claims.toml: x-1: reason: missing; expected a text"),
        (without("check"), "claims.toml: x-1: check: missing; expected one or more tables"),
        (CLAIM | {"text": "so"}, "claims.toml: x-1: text: 'so': unknown key; expected one of id, says"),
        (CLAIM | {"seeds": 0}, "claims.toml: x-1: seeds: 0: expected the fewest runs"),
        (CLAIM | {"source": " "}, "claims.toml: x-1: source: ' ': expected a text"),
        (CLAIM | {"source": 7}, "claims.toml: x-1: source: 7: expected a text"),
        (
            CLAIM | {"expected": "does not hold"},
            "x-1: expected: 'does not hold': unknown key; what is known to come out is known_outcome",
        ),
        (CLAIM | {"parts": "yes"}, "claims.toml: x-1: parts: 'yes': expected true or false"),
        (CLAIM | {"known_outcome": "fails"}, "x-1: known_outcome: 'fails': expected one of 'holds', 'does not hold'"),
        (CLAIM | {"known_outcome": "does not hold"}, "x-1: explained: missing; expected what explains it"),
        (CLAIM | {"cause": "unknown"}, "x-1: cause: 'unknown': expected beside known_outcome = 'does not hold'"),
        (
            CLAIM | {"known_outcome": "cannot be decided", "explained": "why", "cause": "unknown"},
            "x-1: cause: 'unknown': expected beside known_outcome = 'does not hold'",
        ),
        (
            CLAIM | {"known_outcome": "does not hold", "explained": "why", "cause": "the hosts"},
            "x-1: cause: 'the hosts': expected 'unknown', or no such key",
        ),
        (CLAIM | {"known_outcome": {"quick": "does not hold"}}, "x-1: explained: missing; expected what explains it"),
        (
            CLAIM | {"known_outcome": {"quick": "fails"}},
            "x-1: known_outcome: 'fails': expected one of 'holds', 'does not hold'",
        ),
        (
            CLAIM | {"evidence": [{"aqm": "blue"}]},
            "claims.toml: x-1: evidence.0.aqm: 'blue': expected one of tail, pi, red",
        ),
        (checked(measure="speed"), "claims.toml: x-1: check.0: measure: 'speed': expected one of"),
        (checked(at_s=9.0), "claims.toml: x-1: check.0: at_s: 9.0: expected seconds"),
        (checked(lo=1), "claims.toml: x-1: check.0: lo: 1: unknown key"),
        (checked(of=None), "claims.toml: x-1: check.0: of: missing; expected a selector"),
        (checked(of="pi"), "claims.toml: x-1: check.0: of: 'pi': expected a selector"),
        (checked(of={"aqm": "blue"}), "claims.toml: x-1: check.0: of.aqm: 'blue': expected one of tail, pi, red"),
        (checked(than={"queue": "tail"}), "claims.toml: x-1: check.0: than: queue: no such axis"),
        (checked(than={"aqm": "tail"}), "claims.toml: x-1: check.0: than: "),  # drop-tail has no ECN
        (checked(than={"ecn": "on"}), "check.0: than: selects what of selects; expected another point"),
        (checked(low=None), "claims.toml: x-1: check.0: low: missing; expected low or high or both"),
        (checked(low="huge"), "check.0: low: 'huge': expected a number, or one of equal (0.03)"),
        (checked(low=0.1, high=0.1), "check.0: low: 0.1: expected less than high, 0.1"),
        (checked(stretch=0.25), "check.0: stretch: 0.25: expected a list of 4 or more as a parameter of the measure"),
        (checked(elsewhere=-0.03), "check.0: elsewhere: -0.03: expected stretch beside it"),
        (checked(at_s=TIMES, stretch=0), "check.0: stretch: 0: expected what part of the curve, above 0 and at most 1"),
        (checked(at_s=TIMES, stretch=25), "check.0: stretch: 25: expected what part of the curve"),
        (checked(at_s=TIMES, stretch=0.25, high=0.1), "check.0: stretch: 0.25: expected low beside it, and no high"),
        (checked(at_s=TIMES, stretch=0.25, low=None, high=0.1), "stretch: 0.25: expected low beside it, and no high"),
        (
            checked(at_s=TIMES, stretch=0.25, elsewhere="much"),
            "check.0: elsewhere: 'much': expected less than low, 0.05",
        ),
        (checked(relative=True, ratio=True), "check.0: ratio: True: expected either relative or ratio"),
        (checked(relative=True, than=None), "check.0: than: missing; expected a selector of what it is relative to"),
        (checked(terms=[TERM]), "check.0: than: {'aqm': 'tail', 'ecn': 'off'}: expected no than beside terms"),
        (
            checked(terms=[TERM | {"weight": 0}], than=None),
            "check.0: terms.0.weight: 0: expected a number other than 0",
        ),
        (
            checked(terms=[{"weight": 1, "at": {"aqm": "pi"}}], than=None, of=None),
            "check.0: terms.0.at: selects web/pi/off/80, web/pi/off/90",
        ),
        (checked(each="median"), "check.0: each: 'median': expected one of mean, max, min, spread"),
        (checked(each="max"), "check.0: of: each: 'max': web/pi/on/98 is alone; expected several points"),
        (checked(over="load"), "check.0: over: 'load': expected an axis, beside each"),
        (checked(each="max", over="size"), "check.0: over: 'size': expected one of aqm, ecn, load"),
        (checked(unit="furlongs"), "check.0: unit: 'furlongs': expected one of %, points"),
        (checked(unit="ms"), "check.0: unit: 'ms': expected one of %, points"),
        (checked(low=5), "check.0: low: 5: expected a share, from -1 to 1, as 0.05 for five of a hundred"),
        (checked(published="90 %"), "check.0: published: '90 %': expected the number"),
        (checked(window_s="1h"), "check.0: window_s: '1h': expected the shortest window"),
        (checked(label=""), "check.0: label: '': expected a text"),
    ],
)
def test_what_is_wrong_is_named_on_one_line(claim, words):
    with pytest.raises(BadInput) as error:
        read(claim)
    assert words in str(error.value)
    assert str(error.value).startswith("claims.toml: ") and "\n" not in str(error.value)


def test_ids_are_different():
    with pytest.raises(BadInput, match=r"claims.toml: x-1: id: 'x-1': expected another id for every claim"):
        read(tree={"claim": [CLAIM, CLAIM]})


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        reading.read(tmp_path / "claims.toml", "A paper", POINTS)
    (tmp_path / "claims.toml").write_text("[[claim]\n")
    with pytest.raises(BadInput, match="not valid TOML"):
        reading.read(tmp_path / "claims.toml", "A paper", POINTS)
    (tmp_path / "claims.toml").write_text("")
    with pytest.raises(BadInput, match="claim: missing; expected one or more tables"):
        reading.read(tmp_path / "claims.toml", "A paper", POINTS)


def test_the_example_in_the_documentation_of_the_module_has_known_keys_alone():
    text = (ROOT / "python/aqmlab/claims/reading.py").read_text().split("```toml")[1].split("```")[0]
    keys = {line.split("=")[0].strip() for line in text.splitlines() if "=" in line and not line.startswith("[")}
    assert keys - set(reading.CLAIM_KEYS) - set(reading.CHECK_KEYS) - set(reading.FILE_KEYS) == {
        "measure",
        "from_s",
        "to_s",
    }


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "-a", ".a", "a#b", "ä", "a" * 101, 'a"', "a\nb"])
def test_an_id_is_what_files_and_places_can_be_called(name):
    with pytest.raises(BadInput, match=r"claims\.toml: claim\.0: id: .*expected"):
        read(CLAIM | {"id": name})


@pytest.mark.parametrize("name", ["le2003-9a", "x_1.b", "9", "A" * 100])
def test_ids_of_letters_digits_and_signs_are_taken(name):
    (text,) = read(CLAIM | {"id": name})
    assert text.id == name


def points_of(*traffic):
    tree = copy.deepcopy(GRID)
    tree["scenario"]["traffic"] = list(traffic)
    return points(tree)


@pytest.mark.parametrize(
    ("traffic", "asked", "said"),
    [
        ([{"kind": "bulk"}], CHECK, "'ahead': web/pi/on/98 completes no exchanges, as traffic there is bulk; expected"),
        (
            [{"kind": "probe"}, {"kind": "cbr", "rate": "1mbit"}],
            {"measure": "p90"},
            "'p90': web/pi/on/98 completes no exchanges, as traffic there is probe, cbr;",
        ),
        (
            [{"kind": "probe"}, {"kind": "web"}],
            {"measure": "within", "time_s": 1.0, "block": 0},
            "there is probe; expected",
        ),
        (
            [{"kind": "web"}],
            {"measure": "within", "time_s": 1.0, "block": 1},
            "as there is no traffic block 1; expected",
        ),
        ([{"kind": "bulk", "size": "endless"}], {"measure": "size_mean"}, "as traffic there is bulk; expected"),
    ],
)
def test_a_measure_of_exchanges_is_refused_where_none_is_completed(traffic, asked, said):
    check = {key: CHECK[key] for key in ("of", "than", "low")} | asked
    with pytest.raises(BadInput, match=f"x-1: check.0: measure: .*{said}"):
        read(CLAIM | {"check": [check]}, found=points_of(*traffic))


@pytest.mark.parametrize(
    ("traffic", "asked"),
    [
        ([{"kind": "probe"}, {"kind": "web"}], {"measure": "p90"}),
        ([{"kind": "probe"}], {"measure": "completed"}),
        ([{"kind": "probe"}], {"measure": "loss_ratio"}),
        ([{"kind": "homes"}], {"measure": "within", "time_s": 1.0, "block": 3}),
        ([{"kind": "of nobody's"}], {"measure": "p90"}),
    ],
)
def test_measures_are_taken_where_there_may_be_something_to_measure(traffic, asked):
    check = {key: CHECK[key] for key in ("of", "than", "low")} | asked
    assert read(CLAIM | {"check": [check]}, found=points_of(*traffic))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("probes.one_way_delay_s.p98", "did you mean probes.one_way_delay_s.p9"),
        ("probes.one_way_delay_s", "expected one of probes.one_way_delay_s.p10, probes.one_way_delay_s.p25, "),
        ("forward.los_ratio", "did you mean forward.loss_ratio?"),
        ("tcp.held_back.3.goodput", "did you mean tcp.held_back.3.goodput_bps?"),
        ("links.link.revers.utilisation", "did you mean links.link.reverse.utilisation?"),
        ("applications.calls.mos_men", "did you mean applications.calls.mos_mean?"),
        ("links.core.forward.utilisation", "core: no link of any of its points; expected one of link"),
        (
            "nothing",
            "expected one of forward, reverse, tcp, ",
        ),
    ],
)
def test_a_key_that_no_summary_has_is_refused_with_what_was_meant(key, said):
    check = {"measure": "summary", "key": key, "of": {"aqm": "pi", "ecn": "off", "load": "98"}, "high": 1.0}
    with pytest.raises(BadInput) as error:
        read(CLAIM | {"check": [check]})
    assert str(error.value).startswith("claims.toml: x-1: check.0: ") and said in str(error.value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("link.qdisc.qreff", "did you mean link.qdisc.qref?"),
        ("link.qdisc.kind", "no number of the scenario of any of its points"),
        ("link.qdisc.probability", "no number of the scenario of any of its points"),
    ],
)
def test_a_parameter_that_no_point_of_a_check_has_is_refused(key, said, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    check = {"measure": "parameter", "key": key, "of": {"aqm": "pi", "load": "98"}, "high": 1.0}
    with pytest.raises(BadInput) as error:
        read(CLAIM | {"check": [check]})
    assert str(error.value).startswith(f"claims.toml: x-1: check.0: key: {key!r}: ") and said in str(error.value)


@pytest.mark.parametrize("key", ["link.qdisc.qref", "traffic.0.flows", "path.rtt.uniform.0"])
def test_a_parameter_that_is_a_default_may_be_asked_for(key, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    of = [{"aqm": "tail", "load": "98"}, {"aqm": "pi", "load": "98"}]
    read(CLAIM | {"check": [{"measure": "parameter", "key": key, "of": of, "high": 1.0}]})


def numbers(item, before=""):
    entries = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    if not entries and (item is None or isinstance(item, int | float)):
        yield before
    for key, entry in entries:
        yield from numbers(entry, f"{before}.{key}" if before else str(key))


EVERYTHING = """
duration = "4s"
warmup = "1s"
[links.home]
rate = "6mbit"
qdisc = "fq_codel"
[links.core]
rate = "5mbit"
qdisc = { kind = "red", min = "3p", max = "9p" }
[[traffic]]
kind = "bulk"
flows = 2
route = ["home", "core"]
[[traffic]]
kind = "web"
users = 30
route = ["home", "core"]
[[traffic]]
kind = "probe"
route = ["core"]
[[traffic]]
kind = "video"
route = ["core"]
"""


def test_every_number_of_a_summary_may_be_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    summary = aqmlab.run(EVERYTHING, out=tmp_path / "out").summary
    asked = {key for key in numbers(summary) if not key.endswith(("loss_runs", ".own_causes"))} - {"live"}
    assert {"links.home.forward.queue_delay_p99_s", "tcp.held_back.0.goodput_bps", "frames.delay_s.p10"} <= asked
    assert any(key.startswith("routes.0.forward.0.") for key in asked)
    for key in asked:
        keys.check(key)
