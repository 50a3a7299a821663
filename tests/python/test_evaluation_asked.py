"""`aqmlab evaluate`: whatever words and patterns ask for is run as they say, and shown as what it is."""

import csv
import sys
from pathlib import Path

import pytest

from aqmlab import cli
from aqmlab.errors import BadInput
from aqmlab.evaluation import answers, disciplines, known
from aqmlab.json_files import read_json
from aqmlab.sweep import plan
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import evaluation_pages

pytestmark = pytest.mark.usefixtures("undrawn")

FAILS = '''"""A law that breaks its promises before a fast link."""

import aqmlab


@aqmlab.law(compiled=False)
class Fails:
    """Fails."""

    is_fast = False

    def prepare(self, link):
        self.is_fast = link.rate_bps > 50_000_000

    def on_arrival(self, packet):
        if self.is_fast:
            raise ValueError("no more")
        return aqmlab.PASS
'''
"""The access line has 20 Mb/s, the peering link 100 Mb/s."""


pytestmark = pytest.mark.usefixtures("compiled", "here")


def requirements(folder: str) -> dict:
    """What came out of an evaluation, by the section."""
    return {one["section"]: one for one in read_json(Path(folder) / "study.json")["evaluation"]["requirements"]}


def row(capsys: pytest.CaptureFixture, section: str) -> str:
    """The line of a section on the screen."""
    return next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith(f"{section} "))


@pytest.mark.parametrize(
    ("words", "against", "grid"),
    [
        ("codel ecn", None, "ecn"),
        ("codel noecn", ["codel"], "friendly"),
        ("pie target 15ms", ["pie"], "friendly"),
        ("pie limit 167p", ["pie"], "friendly"),
        ("codel", ["codel target 10us interval 200us"], "dc-long"),
    ],
)
def test_words_may_say_what_goes_without_saying(here, words, against, grid):
    study = disciplines.study(here / "out", words, against, quick=True, only=(f"{grid}/*",))
    tasks = plan.plan(study.runs)
    assert len({task.key for task in tasks}) < len(tasks)  # there are such runs, and each is made once


@pytest.mark.parametrize(
    ("words", "label", "kind"),
    [
        ("red adaptive", "fq_red adaptive", "fq_ared"),
        ("red limit 400000 avpkt 1000 burst 50", "fq_red limit 400000 avpkt 1000 burst 50", "fq_red"),
        ("red min 3000 max 9000", "fq_red min 3000 max 9000", "fq_red"),
        ("pie target 5ms", "fq_pie target 5ms", "fq_pie"),
    ],
)
def test_what_stands_under_fair_queueing_is_what_the_words_stand_for(here, words, label, kind):
    study = disciplines.study(here / "out", words, [], quick=True, only=("scheduling/access/*",))
    own, fair, _ = study.points
    assert fair.labels["aqm"] == label
    queues = [point.source.tree["link"]["qdisc"] for point in (own, fair)]
    assert queues[1] == {**queues[0], "kind": kind}
    fair.source.resolve()


def test_a_value_that_a_default_contradicts_is_told_by_the_words(here):
    with pytest.raises(
        BadInput, match=r"^'red min 30000': max = 15p \(the default\): expected a length of at least min"
    ):
        disciplines.discipline("red min 30000")


def test_a_folder_may_be_called_as_a_discipline_is(here, capsys):
    Path("pie").mkdir()
    Path("web").mkdir()
    words = ["--against", "", "--quick", "--only", "friendly/access/*", "--out", "out"]
    assert cli.invoke(["evaluate", "pie", *words]) == 0
    assert cli.invoke(["evaluate", "web", *words]) == 2
    assert "web: is no discipline; expected one, a law" in capsys.readouterr().err
    for nothing in ("", " "):
        assert cli.invoke(["evaluate", nothing, *words]) == 2
        assert f"{nothing!r}: is empty; expected a discipline" in capsys.readouterr().err


def test_nothing_stands_in_for_what_was_not_run(here, capsys):
    only = ["friendly/access/codel", "settings/access/drop-tail"]
    words = ["evaluate", "pie", "--quick", "--out", "out", *(word for one in only for word in ("--only", one))]
    assert cli.invoke(words) == 0
    said = capsys.readouterr()
    lines = [line for line in said.out.splitlines() if line.strip().startswith(("4.3.1", "5.1.1"))]
    assert len(lines) == 2 and lines[0].count("Mb/s") == 1 and "Mb/s" not in lines[1]  # drop-tail's alone
    assert "by mean delay" not in said.out and "no packet of it" not in said.out
    page = Path("out/report.html").read_text()
    assert "none was run with pie" in page and known.fields(read_json(Path("out/study.json"))) == []


def test_the_other_scheme_is_one_for_all(here):
    study = disciplines.study(here / "out", "codel", ["pie", "fq_codel"], quick=True, only=("several/*",))
    at = {(p.at["at"], p.at["aqm"]): p.source.tree["links"] for p in study.points}
    others = {place: {links["second" if place == "other-second" else "first"]["qdisc"]["kind"]}
              for (place, _), links in at.items() if place.startswith("other")}  # fmt: skip
    assert others == {"other-second": {"pie"}, "other-first": {"pie"}}
    # What is this scheme itself has no other one beside it.
    assert {aqm for place, aqm in at if place == "other-first"} == {"codel", "drop-tail", "fq-codel"}
    assert ("both", "pie") in at


def test_both_bottlenecks_are_full_and_lose_packets(here):
    words = ["evaluate", "pie", "--against", "", "--quick", "--only", "several/both/*", "--out", "out"]
    assert cli.invoke(words) == 0
    rows = list(csv.DictReader(Path("out/tables/table-10-2.csv").read_text().splitlines()))
    value = {(row["row"].split(", ")[-1], row["measure"]): float(row["value"]) for row in rows}
    for name in ("pie", "drop-tail"):
        assert value[name, "throughput of the second"] > 0.9 * 20
        over = {where: value[name, f"goodput over {where}"] for where in ("both", "the first", "the second")}
        assert over["both"] + over["the first"] > 0.9 * 19.3  # as much as crosses the second
        for what in ("delay, mean", "loss"):
            at_first = value[name, {"loss": "loss at the first"}.get(what, "delay at the first")]
            assert at_first == pytest.approx(value[name, what], rel=0.3)


@pytest.mark.parametrize(("words", "ecn"), [("pie noecn", False), ("codel ecn false", False), ("pie", True)])
def test_what_is_said_of_ecn_stays(here, words, ecn):
    study = disciplines.study(here / "out", words, [], quick=True)
    name = disciplines.discipline(words).name
    at = {p.at["ecn"]: p.source.tree["link"]["qdisc"] for p in study.points if p.grid == "ecn" and p.at["aqm"] == name}
    assert at.keys() == ({"off", "on"} if ecn else {"off"}) and at["off"].get("ecn", True) is ecn
    (first, *_) = (p.source.tree["link"]["qdisc"] for p in study.points if p.grid == "dc-long" and p.at["aqm"] == name)
    assert first["ecn"] is ecn


def test_a_discipline_is_shown_with_ecn_and_counted_beside_itself_without(here, capsys):
    words = ["evaluate", "--against", "", "--quick", "--only", "ecn/access/20ms/*", "--out"]
    assert cli.invoke([*words, "pie", "pie"]) == 0
    one = requirements("pie")["4.5"]
    assert [case["at"]["ecn"] for case in one["shown"]] == ["on", "off"]
    # Drop-tail, which cannot mark, stands beside both.
    assert [[row["name"] for row in case["disciplines"]] for case in one["shown"]] == [["pie", "drop-tail"]] * 2
    assert one["beside_without"]["title"] == "with ECN beside without" and one["beside_without"]["cases"] == 1
    assert "with ECN beside without, of 1: delay " in Path("pie/report.html").read_text()
    assert row(capsys, "4.5").count("Mb/s") == 2
    kept = known._kept(one, "pie")
    assert kept["beside_without"] == one["beside_without"] and len(kept["cases"]) == 2
    assert cli.invoke([*words, "noecn", "pie noecn"]) == 0
    one = requirements("noecn")["4.5"]
    assert [case["at"]["ecn"] for case in one["shown"]] == ["off"] and one["beside_without"]["cases"] == 0
    assert "pie noecn does not mark, and is run without ECN alone." in Path("noecn/report.html").read_text()


def test_two_long_flows_with_ecn_have_the_buffer_of_those_without(here):
    study = disciplines.study(here / "out", "pie", [], quick=True)
    limits = {grid: {(p.at["rate"], p.source.tree["link"]["qdisc"]["limit"]) for p in study.points if p.grid == grid}
              for grid in ("rtt", "ecn")}  # fmt: skip
    assert limits["ecn"] == limits["rtt"]


def test_what_somebody_has_filled_in_stays(here):
    words = ["evaluate", "pie", "--against", "", "--quick", "--only", "friendly/access/*", "--out", "out"]
    assert cli.invoke(words) == 0
    path = Path("out/answers.toml")
    path.write_text(path.read_text().replace('operation = ""', '# Mine.\noperation = "Nothing need be set."'))
    filled = path.read_text()
    assert cli.invoke(words) == 0
    assert path.read_text() == filled and "Nothing need be set." in Path("out/report.html").read_text()
    # Others come beside, and what is given anew takes the place of what stood there.
    Path("mine.toml").write_text('operation = "The target."\nstability = "Known."\n')
    assert cli.invoke([*words, "--answers", "mine.toml"]) == 0
    assert answers.read(path) == {"operation": "The target.", "stability": "Known."}
    path.write_text('operation = "half')
    assert cli.invoke(words) == 2 and path.read_text() == 'operation = "half'


def test_a_law_that_fails_leaves_the_others_their_page(here, capsys):
    Path("fails.py").write_text(FAILS)
    words = ["evaluate", "fails.py", "--against", "", "--quick", "--only", "friendly/*", "--out", "out"]
    assert cli.invoke(words) == 1
    said = capsys.readouterr()
    assert "not made: all 3 runs of friendly/peering/fails, the first: the law fails failed" in said.err
    assert said.err.count("the law fails failed") == 1 and "Report: out/report.html" in said.out
    facts = read_json(Path("out/study.json"))
    assert facts["complete"] is False and {one["point"] for one in facts["failed"]} == {"friendly/peering/fails"}
    one = requirements("out")["5.1.1"]
    assert [[row["name"] for row in case["disciplines"]] for case in one["shown"]] == [["fails", "drop-tail"],
                                                                                      ["drop-tail"]]  # fmt: skip
    page = Path("out/report.html").read_text()
    assert "Runs were not made." in page and "a law failed in cases of this section" in page
    # Where nothing else was asked for there is no page.
    words[words.index("friendly/*")] = "friendly/peering/fails"
    assert cli.invoke([*words[:-1], "none"]) == 1
    assert "the law fails failed" in capsys.readouterr().err and not Path("none/report.html").exists()
    with pytest.raises(SystemExit, match="expected an evaluation that is complete"):
        evaluation_pages.keep(Path("out"))


def test_a_section_in_which_every_run_failed_says_so(here):
    Path("fails.py").write_text(FAILS.replace("50_000_000", "0"))
    only = ["--only", "friendly/access/*", "--only", "mix/access/fails"]
    assert cli.invoke(["evaluate", "fails.py", "--against", "", "--quick", *only, "--out", "out", "--json"]) == 1
    assert {name: one["status"] for name, one in requirements("out").items() if name in ("5.1.1", "9.1", "9.2")} == {
        "5.1.1": "run",
        "9.1": "failed",
        "9.2": "not run",
    }
    assert "Not made: a law failed" in Path("out/report.html").read_text()


def test_what_authors_say_of_round_trips_yields_to_one_that_is_said(here):
    for words, kinds in (("cake rtt 10ms", 0), ("cake", 1), ("cake rtt_keyword lan", 0), ("cake besteffort", 1)):
        study = disciplines.study(here / "out", words, [], quick=True, only=("dc-long/*",))
        assert len({p.at["aqm"] for p in study.points}) == 2 + kinds, words


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("pie target 15000", ["pie, target 15ms", "pie, target 7.5ms", "pie, target 30ms", "pie, target 60ms"]),
        ("pie limit 50p target 4ms ecn", ["pie limit 50p ecn, target 4ms", "pie limit 50p ecn, target 2ms"]),
        ("pi", ["pi, qref 50p", "pi, qref 25p"]),
    ],
)
def test_a_label_says_one_reference(here, words, labels):
    study = disciplines.study(here / "out", words, [], quick=True, only=("settings/access/*",))
    found = [point.labels["aqm"] for point in study.points]
    assert [label.replace("15000us", "15ms") for label in found[: len(labels)]] == labels


def test_laws_of_one_name_are_told_apart_by_their_files(here):
    for place in ("one", "other"):
        Path(place).mkdir()
        Path(place, "mine.py").write_text(FAILS + f"\n# {place}\n")
    with pytest.raises(
        BadInput, match=r"--against 'fails': is there twice, of /.*one/mine.py and of /.*other/mine.py; "
    ):
        disciplines.chosen("one/mine.py", ["other/mine.py"])
    with pytest.raises(BadInput, match="--against 'pie': is there twice; expected different disciplines"):
        disciplines.chosen("codel", ["pie", "pie"])


def test_a_shaper_that_would_never_shape_is_refused(here, capsys):
    assert cli.invoke(["evaluate", "cake bandwidth 1gbit"]) == 2
    assert "'cake bandwidth 1gbit': bandwidth 1gbit exceeds 20mbit, a link of the scenarios" in capsys.readouterr().err
    assert disciplines.discipline("cake bandwidth 20mbit").qdisc["bandwidth"] == "20mbit"


def test_what_each_kind_of_traffic_gets_is_in_the_tables(here):
    """Columns are named after blocks by their numbers: they are of the kinds that they say."""
    study = disciplines.study(here / "out", "pie", [], quick=True)
    kinds = {"bulk": ("bulk",), "video": ("web",), "short": ("poisson",), "objects": ("web",), "long": ("bulk",)}
    looked = 0
    for table in study.tables:
        grids = [point for point in study.points if point.grid == table["rows"][0]["grid"]]
        for one in (one for one in table["measures"] if isinstance(one, dict) and "title" in one):
            words = {word.strip(",") for word in one["title"].split()} & kinds.keys()
            block = one.get("block", one.get("key", "").split(".")[2] if "held_back" in one.get("key", "") else None)
            if not words or block is None or table["id"].startswith("8"):
                continue
            there = [p.source.tree["traffic"] for p in grids if len(p.source.tree["traffic"]) > int(block)]
            looked += any(traffic[int(block)]["kind"] in kinds[word] for word in words for traffic in there)
            assert there and any(t[int(block)]["kind"] in kinds[w] for w in words for t in there), one
    assert looked >= 15
