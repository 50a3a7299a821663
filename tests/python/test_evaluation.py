"""`aqmlab evaluate`: RFC 7928's scenarios as data, and what is made of them."""

import csv
import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from aqmlab import cli, toml_text, units
from aqmlab.errors import BadInput
from aqmlab.evaluation import among, answers, controllers, disciplines, known, outcome, template
from aqmlab.figures.looks import HUES
from aqmlab.json_files import read_json
from aqmlab.statistics import Interval
from aqmlab.study import figures, measured
from aqmlab.study.figures.tradeoff import upwards
from conftest import ROOT
from subjects import Runs, window

sys.path.insert(0, str(ROOT / "tools"))

import evaluation_pages

SEGMENT_BITS = 8 * 1500


pytestmark = pytest.mark.usefixtures("compiled", "here")


@pytest.fixture
def pie(here):
    return disciplines.study(here / "out", "pie", quick=True)


@pytest.mark.parametrize("words", ["pie target 5ms", "cake", "fq limit 50p"])
def test_every_scenario_can_be_run_with_any_discipline(here, words):
    study = disciplines.study(here / "out", words, ["codel"])
    for point in study.points:
        point.source.resolve()
    grids = {grid.name for grid in study.grids}
    left_out = {one["grid"] for one in template.template()["requirement"] if "grid" in one} - grids
    # CAKE's target is computed, FQ has none; neither is a law that fair queueing could have.
    assert left_out == (set() if words.startswith("pie") else {"settings", "scheduling"})


def test_every_grid_answers_a_requirement(pie):
    asked = {one.get("grid") for one in template.template()["requirement"]}
    assert {grid.name for grid in pie.grids} == asked - {None}


@pytest.mark.parametrize("grid", ["congestion", "rtt", "mix", "several"])
def test_all_queues_of_a_case_have_one_size(pie, grid):
    limits = {}
    for point in (one for one in pie.points if one.grid == grid):
        case = tuple(value for axis, value in point.at.items() if axis != "aqm")
        links = point.source.tree.get("links") or {"link": point.source.tree["link"]}
        limits.setdefault(case, set()).update(link["qdisc"]["limit"] for link in links.values())
    assert limits and all(len(found) == 1 for found in limits.values())


def test_a_limit_in_words_stays(here):
    study = disciplines.study(here / "out", "pie limit 30p")
    found = {
        point.at["aqm"]: point.source.tree["link"]["qdisc"]["limit"]
        for point in study.points
        if "link" in point.source.tree
    }
    assert found["pie-limit-30p"] == "30p" and found["drop-tail"] != "30p"


@pytest.mark.parametrize("rate", ["access", "peering"])
def test_flows_of_the_levels_of_congestion_are_those_of_the_rfc(pie, rate):
    """8.2.1: S is the bandwidth-delay product and the buffer in packets; N is 0.036, 0.081 and 0.114 of it."""
    at = {
        p.at["level"]: p for p in pie.points if p.grid == "congestion" and p.at["rate"] == rate and p.at["aqm"] == "pie"
    }
    tree = at["mild"].source.tree
    seconds = units.seconds(tree["path"]["rtt"], "rtt")
    product = {"20mbit": 20e6, "100mbit": 100e6}[tree["link"]["rate"]] * seconds / SEGMENT_BITS
    buffer = int(tree["link"]["qdisc"]["limit"].removesuffix("p"))
    assert buffer == round(product)
    flows = {level: point.source.tree["traffic"][0]["flows"] for level, point in at.items()}
    shares = {"mild": 0.036, "medium": 0.081, "heavy": 0.114}
    assert flows == {level: round(share * (product + buffer)) for level, share in shares.items()}


def test_settings_are_varied_about_the_disciplines_own(here):
    study = disciplines.study(here / "out", "pie target 10ms")
    found = {p.at["aqm"]: p.source.tree["link"]["qdisc"].get("target") for p in study.points if p.grid == "settings"}
    assert found == {
        "pie-target-10ms": "10ms",
        "pie-target-10ms-half": "5ms",
        "pie-target-10ms-twice": "20ms",
        "pie-target-10ms-4-times": "40ms",
        "drop-tail": None,
    }


def test_what_cannot_mark_is_not_run_with_ecn(pie):
    at = {(p.at["aqm"], p.at["ecn"]): p.source.tree for p in pie.points if p.grid == "ecn"}
    assert ("drop-tail", "on") not in at and ("drop-tail", "off") in at
    assert at["pie", "on"]["link"]["qdisc"]["ecn"] is True and at["pie", "on"]["tcp"]["ecn"] == "on"


@pytest.mark.usefixtures("undrawn")
def test_cases_with_ecn_are_counted_beside_what_cannot_mark(here):
    words = ["evaluate", "pie", "--against", "", "--quick", "--only", "ecn/access/20ms/*", "--out", "out"]
    assert cli.invoke(words) == 0
    facts = read_json(Path("out/study.json"))
    (one,) = [one for one in facts["evaluation"]["requirements"] if one["status"] == "run"]
    assert one["section"] == "4.5" and one["beside_drop_tail"]["cases"] == 2  # without ECN and with it
    assert one["beside_drop_tail"]["delay"] == {"less": 2, "more": 0, "undecided": 0}


def test_the_command_of_a_section_is_for_it_alone(pie):
    both = outcome._alone(replace(pie, only=("ecn/*", "friendly/access/*")), "friendly")
    assert both == ("friendly/access/*",)
    assert outcome._alone(replace(pie, only=("ecn/*", "friendly/access/*")), "ecn") == ("ecn/*",)
    assert outcome._alone(replace(pie, only=("*/access/*", "ecn/*")), "friendly") == ("friendly/access/*",)
    assert outcome._alone(replace(pie, only=("*",)), "ecn") == ("ecn/*",)
    # Where no pattern says it, names do.
    (name,) = outcome._alone(replace(pie, only=("*-t*l",)), "friendly")[:1]
    assert name == "friendly/access/drop-tail"
    assert outcome._alone(pie, "ecn") == ("ecn/*",)


@pytest.mark.parametrize(
    ("words", "places"),
    [
        # What stands at the first and at the second bottleneck, and with which reference.
        (
            "pie",
            {
                "both": ["pie None", "pie None"],
                "first": ["pie None", "pfifo None"],
                "second": ["pfifo None", "pie None"],
                "twice": ["pie None", "pie 30ms"],
                "other-second": ["pie None", "codel None"],
                "other-first": ["codel None", "pie None"],
            },
        ),
        # CoDel beside itself would be no other scheme, and FQ has nothing to be doubled.
        ("codel target 8ms", {"twice": ["codel 8ms", "codel 16ms"], "other-second": ["codel 8ms", "pie None"]}),
        ("fq", {"twice": None, "other-first": ["codel None", "fq None"]}),
    ],
)
def test_two_bottlenecks_have_what_a_place_says(here, words, places):
    study = disciplines.study(here / "out", words, [], quick=True)
    subject = disciplines.discipline(words).name
    found = {p.at["at"]: p.source.tree["links"] for p in study.points if p.grid == "several" and p.at["aqm"] == subject}
    for place, expected in places.items():
        links = found.get(place)
        queues = links and [links[name]["qdisc"] for name in ("first", "second")]
        assert (queues and [f"{queue['kind']} {queue.get('target')}" for queue in queues]) == expected, place
    # The baseline stands at every place, so that each has something to be held against.
    tails = {p.at["at"] for p in study.points if p.grid == "several" and p.at["aqm"] == "drop-tail"}
    assert tails >= set(found)


def test_data_centres_are_run_with_defaults_and_with_what_authors_say(here):
    def queues(words: str) -> dict:
        study = disciplines.study(here / "out", words, [], quick=True)
        return {p.at["aqm"]: p.source.tree["link"]["qdisc"] for p in study.points if p.grid == "dc-long"}

    found = queues("codel")
    assert set(found) == {"codel", "drop-tail", "codel-scaled"}
    assert "target" not in found["codel"] and found["codel"]["ecn"] is True
    # RFC 8289: the interval is a round trip, 200 us, the target 5 % of it.
    seconds = {key: units.seconds(found["codel-scaled"][key], key) for key in ("target", "interval")}
    assert seconds["interval"] == pytest.approx(200e-6) and seconds["target"] == pytest.approx(0.05 * 200e-6)
    # What somebody says stands, and nothing is made up where authors say nothing.
    assert set(queues("codel target 1ms")) == {"codel-target-1ms", "drop-tail"}
    assert set(queues("pie")) == {"pie", "drop-tail"}
    assert "ecn" not in queues("fq")["fq"]


def test_the_data_centre_is_the_access_line_in_less_time(pie):
    """Its buffer is the bandwidth-delay product too, and as many packets as that of the access line."""
    tree = next(p for p in pie.points if p.grid == "dc-long").source.tree
    product = 10e9 * units.seconds(tree["path"]["rtt"], "rtt") / SEGMENT_BITS
    assert (tree["link"]["rate"], tree["link"]["qdisc"]["limit"]) == ("10gbit", f"{round(product)}p")
    assert units.seconds(tree["tcp"]["rto_min"], "rto_min") < 10e-3


@pytest.mark.parametrize(
    ("value", "half_width", "verdict"),
    [
        (-2.0, 1.0, "less"),
        (2.0, 1.0, "more"),
        (2.0, 2.5, "undecided"),
        (2.0, None, "undecided"),
        (2.0, 0.0, "undecided"),
        (float("nan"), 1.0, "undecided"),
    ],
)
def test_a_difference_is_decided_by_its_interval(value, half_width, verdict):
    assert outcome.verdict(Interval(value, half_width, 3, "runs")) == verdict


@pytest.mark.parametrize(("other_s", "verdict"), [(0.3, "undecided"), (0.301, "undecided"), (0.4, "less")])
def test_what_falls_into_one_bin_in_every_run_is_known_to_within_the_bin(other_s, verdict):
    """0.3 s lies in a bin of 2^14 units of 100 ns, and so does 0.4 s."""
    asked = measured.asked_of({"measure": "queue_delay_quantile_s", "q": 0.99, "unit": "ms"}, "x")[0]
    one, other = (Runs([window([0.1])] * 3, [{"forward": {"queue_delay_p99_s": s}}] * 3) for s in (0.3, other_s))
    assert measured.with_width(asked.of(one)) == ("300.0", "± 1.6")
    difference = outcome._difference(asked, one, other)
    assert difference.half_width == pytest.approx(2 * 0.0016384)
    assert outcome.verdict(difference) == verdict


def test_an_evaluation_is_run_said_and_written(here, capsys):
    Path("mine.toml").write_text('operation = "Nothing need be set."\nstability = ""\n')
    words = [
        "evaluate",
        "pie",
        "--against",
        "codel",
        "--quick",
        "--only",
        "friendly/access/*",
        "--answers",
        "mine.toml",
    ]
    assert cli.invoke(words) == 0
    said = capsys.readouterr().out
    assert "5.1.1" in said and "Unanswered" in said and "operation" not in said.partition("Unanswered")[2]
    folder = Path("results/evaluate-pie-quick-part")
    facts = read_json(folder / "study.json")
    assert facts["command"] == "aqmlab evaluate pie --against codel --quick --only 'friendly/access/*'"
    assert facts["runs"] == 9  # three disciplines, three seeds
    by_section = {one["section"]: one for one in facts["evaluation"]["requirements"]}
    assert [by_section[name]["status"] for name in ("5.1.1", "5.4", "6.2")] == ["run", "not run", "not run"]
    (case,) = by_section["5.1.1"]["shown"]
    assert [one["label"] for one in case["disciplines"]] == ["pie", "drop-tail", "codel"]
    # One flow fills a buffer of a bandwidth-delay product under drop-tail; PIE's target is 15 ms.
    pie, tail, _ = case["disciplines"]
    assert pie["delay"]["value"] < 15 < tail["delay"]["value"] < 100 * 1.05
    assert tail["goodput"]["value"] == pytest.approx(20 * 1448 / 1500, rel=0.01)
    assert by_section["5.1.1"]["beside_drop_tail"]["delay"] == {"less": 1, "more": 0, "undecided": 0}
    questions = {one["id"]: one["answer"] for one in facts["evaluation"]["questions"]}
    assert questions["operation"] == "Nothing need be set." and questions["stability"] is None
    page = (folder / "report.html").read_text()
    shown = BeautifulSoup(page, "html.parser").main.get_text()
    assert "20\xa0Mb/s" in shown and "20 Mb/s" not in shown
    assert "Nothing need be set." in page and page.count('class="unanswered"') == len(questions) - 1
    assert (folder / "figures/figure-5-1-1.svg").exists()
    # Among all that come along, in the one section of those four that was run.
    (field,) = known.fields(facts)
    assert field.section == "5.1.1" and {"pie", "drop-tail", "codel", "fq_codel"} <= {
        one.label for one in field.standings
    }
    assert f"5.1.1, access, 20 Mb/s: number {field.place('pie')} of {len(field.standings)} by mean delay" in said
    assert (folder / "figures/figure-among.svg").exists() and page.count('class="own"') == 1
    rows = list(csv.DictReader((folder / "tables/table-5-1-1.csv").read_text().splitlines()))
    (delay,) = [row for row in rows if row["row"] == "pie" and row["measure"] == "delay, mean"]
    assert float(delay["value"]) == pytest.approx(pie["delay"]["value"])
    # What is filled in goes back as it came.
    assert answers.read(folder / "answers.toml") == {"operation": "Nothing need be set."}
    assert set(toml_text.loads((folder / "answers.toml").read_text(), "answers.toml")) == set(questions)
    # The same again makes no run, and says the same in JSON.
    assert cli.invoke([*words, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["runs_kept"] == 9 and again["digest"] == facts["digest"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pia"], "'pia': unknown discipline, did you mean pi"),
        (
            ["qwertz"],
            "'qwertz': unknown discipline, expected one of aqmlab list disciplines, or cc: before a congestion contr",
        ),
        (
            ["pie", "--against", "qwertz"],
            "'qwertz': unknown discipline, expected one of aqmlab list disciplines; a law",
        ),
        (["pie target x"], "aqmlab: 'pie target x': target = \"x\": expected a time such as 15ms (pie)"),
        (["pie", "--against", "codel target 1x"], "aqmlab: 'codel target 1x': target = \"1x\": expected a time"),
        (["cc:cubik"], "'cc:cubik': unknown congestion controller, expected one of reno, "),
        (["cc:pia"], "'cc:pia': unknown congestion controller, expected one of reno, "),
        (["cc:bbr", "--answers", "mine.toml"], "unknown question; expected one of real-time"),
        (["pfifo"], "is the baseline of every evaluation"),
        (["pie / codel"], "expected one discipline"),
        (["pie", "--against", "codel,codel"], "is there twice"),
        (["pie", "--against", "codel,,pfifo"], "--against 'codel,,pfifo': a name is empty; expected names with one"),
        (["pie", "--only", "nothing/*"], "matches none of its"),
        (["pie", "--answers", "mine.toml"], "unknown question; expected one of implementation"),
        (["pie", "--resume", "--fresh"], "expected it without --resume"),
    ],
)
def test_bad_input_is_one_line(here, capsys, words, said):
    Path("mine.toml").write_text('weather = "good"\n')
    assert cli.invoke(["evaluate", *words]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.count("\n") == 1
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("value", "width", "said"),
    [
        (89.2613, 0.2573, "89.26 Mb/s ± 0.26"),
        (71.3, 10.1, "71 Mb/s ± 10"),
        (6849.0, 425.0, "6,849 Mb/s ± 425"),
        (1.78, 3.5, "1.8 Mb/s ± 3.5"),
        (19.3, 0.00021, "19.30 Mb/s ± 0.00"),
        (100.0, 3.2e-6, "100.0 Mb/s ± 0.0"),
        (0.00971, 6.9e-6, "0.009710 Mb/s ± 0.000007"),
        (20.0, 0.0, "20.0 Mb/s"),
        (5e-7, None, "0.000000 Mb/s"),
        (None, None, "–"),
    ],
)
def test_a_number_has_the_decimals_that_its_interval_is_worth(value, width, said):
    found = outcome.number(value, width, 3, "Mb/s")
    assert f"{found['text']} {found['width_text']}".strip() == said


def test_a_tradeoff_of_something_unknown_is_refused():
    spec = {"id": 1, "title": "T", "kind": "tradeoff", "curves": [{}], "y": "speed"}
    with pytest.raises(BadInput, match="speed"):
        figures.check(spec, "figure.0")


def test_the_figure_of_a_requirement_draws_the_goodput_of_its_table(pie):
    (drawn,) = (upwards(one) for one in pie.figures if one["id"] == "5-4")
    (shown,) = (one["measures"][0] for one in pie.tables if one["id"] == "5-4")
    assert drawn == shown and drawn["key"] == "tcp.held_back.0.goodput_bps"
    (usual,) = (upwards(one) for one in pie.figures if one["id"] == "5-2")
    assert usual == {"measure": "goodput_bps", "direction": "forward"}


def test_a_reference_of_many_digits_is_multiplied_in_full(here):
    (pi, *_) = disciplines.chosen("pi qref 375000b", [])
    assert [pi.with_reference(factor, said).qdisc["qref"] for factor, said in disciplines.FACTORS] == [
        *("187500b", "750000b", "1500000b"),
    ]
    (pie, *_) = disciplines.chosen("pie target 0.3ms", [])
    assert pie.with_reference(4.0, "4 times").qdisc["target"] == "1200us"


def test_a_law_of_ones_own_is_called_by_its_name(here):
    subject, *others = disciplines.chosen(str(ROOT / "examples/laws/my_codel.py"), [])
    assert subject.label == "my_codel" and others == [
        disciplines.Discipline("drop-tail", "drop-tail", {"kind": "pfifo"})
    ]


def evaluated(name: str, delay_ms: float | None, section: str = "8-2-2-to-8-2-4") -> dict:
    """What an evaluation found, as far as `known.fields` reads it."""
    at = {"rate": "access", "level": "medium"}
    row = {
        "name": name,
        "label": name,
        "goodput": outcome.number(19.0, 0.1, 3, "Mb/s"),
        "delay": outcome.number(delay_ms, 0.1, 3, "ms"),
    }
    case = {"at": at, "label": "access, 20 Mb/s, medium", "disciplines": [row]}
    one = {"id": section, "section": "8.2.2", "title": "Congestion", "status": "run", "shown": [case]}
    return {"evaluation": {"subject": {"name": name, "label": name}, "requirements": [one]}}


@pytest.mark.parametrize(("delay_ms", "place"), [(0.001, "first"), (1e6, "last"), (None, "nowhere")])
def test_a_law_of_ones_own_stands_among_those_that_come_along(delay_ms, place):
    (field,) = known.fields(evaluated("mine", delay_ms))
    delays = [one.delay["value"] for one in field.standings]
    assert delays == sorted(delays) and len(field.standings) == len(known.every()) + (place != "nowhere")
    assert field.place("mine") == {"first": 1, "last": len(field.standings), "nowhere": 0}[place]
    first, last = field.places("mine")
    assert first <= field.place("mine") <= last and (first > 0) == (place != "nowhere")
    # Every other number is the one that is kept.
    for one in (one for one in field.standings if one.name != "mine"):
        kept = next(kept for kept in known.every().values() if kept["subject"]["label"] == one.label)
        assert one.delay == outcome.number(
            **known.standing(kept, field.id, {"rate": "access", "level": "medium"})["delay"]
        )
    rows = among.rows([field])
    assert [row["label"] for row in rows] == [one.label for one in field.standings]


def test_a_discipline_that_comes_along_is_not_there_twice():
    (field,) = known.fields(evaluated("pie", 7.0))
    assert [one.delay["value"] for one in field.standings if one.label == "pie"] == [7.0]


def test_a_requirement_by_which_nobody_is_placed_has_no_field():
    assert known.fields(evaluated("mine", 1.0, "5-2")) == [] and among.drawn([], "mine", HUES[0]) is None


def kept_at(place: Path, tail_ms: float) -> Path:
    """A result folder of an evaluation of PIE in which drop-tail had such a delay."""
    found = evaluated("pie", 7.0)
    case = found["evaluation"]["requirements"][0]["shown"][0]
    tail = {"name": "drop-tail", "label": "drop-tail", "delay": outcome.number(tail_ms, 0.1, 3, "ms")}
    case["disciplines"].append({**case["disciplines"][0], **tail})
    found["evaluation"]["requirements"][0]["beside_drop_tail"] = {}
    facts = dict.fromkeys(("version", "engine", "date", "command", "digest", "runs", "cpu_h", "profile"), "")
    place.mkdir(parents=True)
    written = {**found, **facts, "complete": True, "only": [], "self_checks": {"failed": []}}
    (place / "study.json").write_text(json.dumps(written))
    return place


def test_numbers_of_another_engine_are_not_kept(here, monkeypatch):
    monkeypatch.setattr(known, "PLACE", here / "known")
    evaluation_pages.keep(kept_at(here / "one", 79.0))
    assert known.standing(read_json(here / "known/pie.json"), "8-2-2-to-8-2-4")["delay"]["value"] == 7.0
    assert known.standing(read_json(here / "known/pfifo.json"), "8-2-2-to-8-2-4")["delay"]["value"] == 79.0
    with pytest.raises(SystemExit, match=r"drop-tail at 8-2-2-to-8-2-4, .*: other numbers than before"):
        evaluation_pages.keep(kept_at(here / "two", 79.5))
    known.every.cache_clear()


def kept(command: str, statuses: dict, **whole: bool) -> dict:
    """What is kept of an evaluation: of each requirement what became of it, and a number that tells it apart."""
    facts = dict.fromkeys(known.PART, command)
    return {
        **facts,
        "profile": {"name": "quick", "seeds": [1, 2], "set": {}, "says": command},
        "requirements": [
            {"id": id, "status": status, "cases": [command], **({"is_whole": whole[id]} if id in whole else {})}
            for id, status in statuses.items()
        ],
    }


def test_what_is_run_later_takes_its_place_among_what_is_kept():
    before = kept("all", {"a": "run", "b": "run", "c": "not there"})
    part = kept("some", {"a": "not run", "new": "run", "b": "run", "c": "nothing to vary"})
    found = known.merged(before, part)
    assert {one["id"]: (one["status"], *one["cases"]) for one in found["requirements"]} == {
        "a": ("run", "all"),
        "new": ("run", "some"),
        "b": ("run", "some"),
        "c": ("nothing to vary", "some"),
    }
    assert found["command"] == "all" and [one["command"] for one in found["parts"]] == ["some"]
    # The same once more is one part, another is another.
    again = known.merged(found, part)
    assert [one["command"] for one in again["parts"]] == ["some"]
    more = known.merged(again, kept("rest", {"a": "run", "new": "not run", "b": "not run", "c": "not run"}))
    assert [one["command"] for one in more["parts"]] == ["some", "rest"]
    assert [one["cases"] for one in more["requirements"]] == [["rest"], ["some"], ["some"], ["some"]]


def test_some_points_of_a_requirement_are_not_taken_for_all():
    with pytest.raises(BadInput, match="some: b was run in part"):
        known.merged(kept("all", {"b": "run"}), kept("some", {"b": "run"}, b=False))


def test_runs_of_another_length_are_not_put_beside_each_other():
    longer = kept("full", {"b": "run"})
    longer["profile"] |= {"name": "full", "set": {"duration": "600s"}}
    with pytest.raises(BadInput, match="full: expected runs as of all"):
        known.merged(kept("all", {"b": "run"}), longer)


def test_the_evaluations_that_come_along_are_as_their_numbers_have_them(monkeypatch):
    monkeypatch.chdir(ROOT)
    written = set(evaluation_pages.PLACE.glob("*.md")) - {evaluation_pages.AGREEMENT}
    before = {path: path.read_text(encoding="utf-8") for path in written}
    assert before == evaluation_pages.pages()


@pytest.mark.parametrize("words", ["cc:cubic", "cc:bbr", "cc:bbr3", "cc:prague", "cc:dctcp", "cc:ledbat"])
def test_every_scenario_can_be_run_with_any_controller(here, words):
    study = controllers.study(here / "out", words, ["reno"])
    for point in study.points:
        point.source.resolve()
    asked = {one.get("grid") for one in template.template(template.CONTROLLERS)["requirement"]}
    assert {grid.name for grid in study.grids} == asked - {None}


@pytest.mark.parametrize(("words", "baseline"), [("cc:cubic", "reno"), ("cc:reno", "cubic"), ("cc:bbr", "cubic")])
def test_the_baseline_of_a_controller_is_cubic_but_of_cubic_reno(words, baseline):
    found = [one.name for one in controllers.chosen(words, None)]
    assert found[:2] == [words.removeprefix("cc:"), baseline] and len(found) == len(set(found))


def test_a_flow_beside_a_controller_is_the_same_whatever_the_controller(here):
    study = controllers.study(here / "out", "cc:prague", ["dctcp", "bbr"], only=["mixed/access/cubic/one/*"])
    others = {p.at["cc"]: tomllib.loads(p.source.resolve().toml) for p in study.points}
    plain = others["cubic"]["tcp"]
    for name, tree in others.items():
        # What a block says comes before what all hosts have.
        assert {**tree["tcp"], **tree["traffic"][1]} | {"kind": 0} == {
            **plain,
            **others["cubic"]["traffic"][1],
            "kind": 0,
        }, name
    assert set(others) == {"prague", "cubic", "dctcp", "bbr"}


def test_a_controller_is_evaluated_beside_cubic(here, capsys):
    words = ["evaluate", "cc:bbr", "--against", "", "--quick", "--only", "mixed/access/reno/quarter/*"]
    words += ["--only", "buffers/access/four/*"]
    assert cli.invoke(words) == 0
    said = capsys.readouterr().out
    assert "5.1.2" in said and "cubic" in said and "drop-tail" not in said
    folder = Path("results/evaluate-bbr-quick-part")
    facts = read_json(folder / "study.json")
    assert facts["runs"] == 12  # two controllers, two cases, three seeds
    by_section = {one["section"]: one for one in facts["evaluation"]["requirements"]}
    assert [by_section[name]["status"] for name in ("5.1.2", "5.2.1", "7.2", "7.5")] == [
        "run",
        "run",
        "not there",
        "not run",
    ]
    # BBR's queue is a few packets, CUBIC fills a buffer of four bandwidth-delay products.
    bbr, cubic = by_section["5.1.2"]["shown"][0]["controllers"]
    assert bbr["delay"]["value"] < 100 < cubic["delay"]["value"]
    assert by_section["5.1.2"]["beside_baseline"]["delay"] == {"less": 1, "more": 0, "undecided": 0}
    # The quotient is that of the goodputs, which stand in the table; CUBIC takes less from Reno than BBR does.
    bbr, cubic = by_section["5.2.1"]["shown"][0]["controllers"]
    assert bbr["also"]["value"] > 2 * cubic["also"]["value"] > 0
    assert by_section["5.2.1"]["beside_baseline"]["also"] == {"less": 0, "more": 1, "undecided": 0}
    assert by_section["5.2.1"]["beside_baseline"]["goodput"] == {"less": 1, "more": 0, "undecided": 0}
    assert by_section["5.2.1"]["command"].endswith("--only 'mixed/access/reno/quarter/*'")
    assert by_section["5.1.2"]["command"].endswith("--quick --only 'buffers/access/four/*'")
    page = (folder / "report.html").read_text()
    assert "Among all" not in page and "beside cubic" in page and "drop-tail" not in page
    assert set(toml_text.loads((folder / "answers.toml").read_text(), "answers.toml")) >= {"principles", "deployment"}
    assert (folder / "figures/figure-5-2-1.svg").exists()
