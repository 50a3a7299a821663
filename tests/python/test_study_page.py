"""The pages of studies: everything is said, nothing is fetched, and verdicts are told by more than colour."""

import math
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import polars as pl
import pytest

from aqmlab.agreement.agreements import Agreement
from aqmlab.claims.verdict import NOT_RUN, POINTS, SHARE, Claim, Finding
from aqmlab.report.templates import unbroken
from aqmlab.statistics import Interval
from aqmlab.study import overview_page, page, prose, verdicts
from study_cells import cell, finder


def finding(label="PI 24", value=0.03, width=0.004, low=0.0, high=math.inf, unit=POINTS, published=None, note=""):
    interval = Interval(value, width, 3, "runs")
    return Finding(label, interval, low, high, unit, is_difference=True, published=published, note=note)


def claim(name, *findings, **keys):
    texts = {"paper": "Somebody, 2001", "text": "PI is better than <drop-tail>.", "measure": "distance"}
    return Claim(name, bound="above 0", reason="an order", findings=findings or (finding(),), **texts, **keys).as_dict()


HANGS_ON = {
    "word": "much",
    "size": 0.1,
    "at": 0.084,
    "verdict": "cannot be decided",
    "said": "`much` at 8.4 instead of 10 points: cannot be decided",
}

CLAIMS = [
    claim("s-1", source="section 4, figure 8", hangs_on=(HANGS_ON,)),
    claim(
        "s-2",
        finding(value=-0.05),
        explained="The `gamma` that is not stated turns it.",
        evidence=("web/pi-24/off/90", "gamma/1", "gamma/2"),
    ),
    claim("s-3", finding(width=0.05), finding("REM", unit=SHARE, published=0.5)),
]
UNEXPLAINED = claim(
    "s-4", finding(value=-0.05), explained="Two targets were tried.", evidence=("gamma/1",), cause_unknown=True
)

FOUND = {
    "id": "some2001",
    "title": "Some study",
    "paper": "Somebody, Somewhere 2001",
    "about": "What was **asked**.\n\n- one\n- two",
    "choices": [{"what": "gains", "ours": "`a = 1`", "why": "the usual ones", "swept_in": "gains"}],
    "profile": {"name": "quick", "says": "Runs are short.", "seeds": [1, 2, 3, 4], "set": {"duration": "80s"}},
    "version": "1.2.3",
    "date": "2026-01-02",
    "digest": "abc123",
    "command": "aqmlab study some2001 --quick",
    "machine": {"system": "Linux", "release": "6", "architecture": "x86_64", "cores": 2, "python": "3.11"},
    "runs": 1200,
    "runs_kept": 40,
    "shared": {"other2002": 20},
    "cpu_h": 0.5,
    "wall_s": 1800.0,
    "simulated_h": 40.0,
    "peak_rss_bytes": 2.5e8,
    "grids": [{"name": "web", "title": "Web users", "points": 6, "runs": 18}],
    "claims": [{**facts, "as_known": facts["id"] != "s-2"} for facts in CLAIMS],
    "self_checks": {"held": 99, "failed": []},
}


@dataclass
class Asked:
    figures: list = field(default_factory=list)
    tables: list = field(default_factory=list)


class Where:
    def __init__(self, cells, left_out=()):
        self.find = finder(cells)
        self.left_out = finder(left_out)
        self.names = [one.name for one in cells]


STUDY = Asked(
    figures=[
        {
            "id": 5,
            "title": "Drop-tail & co",
            "kind": "cdf",
            "curves": [{"aqm": ["pi-24", "pfifo-240"]}],
            "caption": "Ha.",
        },
        {"id": "beyond", "title": "Today's", "kind": "ccdf", "curves": [{"aqm": "codel"}]},
    ],
    tables=[{"id": "I", "title": "Losses", "rows": [{}], "measures": ["loss_ratio"], "by": "load"}],
)


@pytest.fixture
def written(tmp_path):
    cells = Where([cell(aqm, load=load) for aqm in ("pi-24", "pfifo-240") for load in ("90", "98")])
    return page.write(FOUND, STUDY, cells, tmp_path)


def words(text):
    """What a reader sees."""
    text = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def is_unbroken(text):
    """Whether no line breaks between a number and its unit, in all that a reader sees."""
    body = text[text.index("<main>") : text.index("</main>")]
    return "\xa0" in body and unbroken(body) == body


def test_a_report_says_everything(written):
    said = words(written.read_text(encoding="utf-8"))
    for expected in (
        *("Some study", "Somebody, Somewhere 2001", "What was asked .", "Quick profile. Runs are short."),
        *("s-1 section 4, figure 8 ✓ holds", "s-2", "✗ does not hold", "s-3", "? cannot be decided"),
        *("PI is better than &lt;drop-tail&gt;.", "+3.00 ± 0.40 points", "above 0", "an order", "50 % of exchanges"),
        "s-1 holds much at 8.4 instead of 10 points: cannot be decided",
        "What explains it: (At the published scale, where no other runs are named:) The gamma that is not stated",
        "Otherwise than the known outcome",
        "Runs that show it: web/pi-24/off/90 and 2 more that are not run in this profile.",
        *("Figure 5: Drop-tail &amp; co", "Ha.", "1 figure is not drawn", "Today&#39;s"),
        *("90 %", "loss", "2.0 ± 2.5"),
        *("1,200, 40 of them kept from before; 20 are runs of other2002 too", "of processor time, 80 s in a second"),
        *("4: 1 to 4", "duration 80s", "all 99 hold", "at most 238 MiB", "abc123", "aqmlab study some2001 --quick"),
        *("gains", "a = 1", "the usual ones", "Web users"),
    ):
        assert expected in said, expected


def test_a_report_needs_nothing_else(written):
    text = written.read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", text)
    assert "@import" not in text and "<link" not in text and "url(http" not in text
    for place in re.findall(r'href="([^"#]+)"', text):
        assert (written.parent / place).is_file(), place
    for anchor in re.findall(r'href="#([^"]+)"', text):
        assert f'id="{anchor}"' in text, anchor
    assert sorted(path.name for path in (written.parent / "figures").iterdir()) == ["figure-5.png", "figure-5.svg"]
    assert (written.parent / "tables" / "table-i.csv").read_text(encoding="utf-8").startswith("row,group,measure")


def test_ids_are_there_once(written):
    ids = re.findall(r'\bid="([^"]+)"', written.read_text(encoding="utf-8"))
    assert len(ids) == len(set(ids))


def test_a_self_check_that_failed_is_said_first(tmp_path):
    failed = [{"run": "web/pi, seed 1", "name": "packets are conserved", "detail": "1 is lost"}]
    facts = {**FOUND, "self_checks": {"held": 98, "failed": failed}}
    said = words(page.write(facts, Asked(), Where([]), tmp_path).read_text(encoding="utf-8"))
    assert "A self-check failed: web/pi, seed 1. packets are conserved: 1 is lost" in said
    assert said.index("A self-check failed") < said.index("Claims") and "98 hold, 1 fail" in said


def test_a_report_stands_on_little(tmp_path):
    facts = {"id": "mine", "title": "Mine", "claims": []}
    text = page.write(facts, Asked(), Where([]), tmp_path).read_text(encoding="utf-8")
    assert "Mine" in text and "<script>" not in text


def test_the_overview_has_every_claim_once_and_leads_to_the_reports(tmp_path):
    other = {**FOUND, "id": "other2002", "title": "Other", "claims": [{**CLAIMS[0], "id": "o-1"}], "report": "o/r.html"}
    text = overview_page.write_overview([FOUND, other], tmp_path).read_text(encoding="utf-8")
    rows = re.findall(r'<tr data-verdict="(\w+)" data-study="(\w+)">', text)
    assert rows == [("holds", "some2001"), ("fails", "some2001"), ("open", "some2001"), ("holds", "other2002")]
    assert 'href="some2001/report.html#s-2"' in text and 'href="o/r.html#o-1"' in text
    said = words(text)
    assert "2 published studies of queue management, 4 claims, run again in 2,400 runs" in said
    assert "✓ 2 holds ✗ 1 does not hold ? 1 cannot be decided" in said
    assert said.count("Runs are short.") == 1
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", text)


def test_verdicts_are_counted_as_the_chips_of_the_page_count_them():
    unknown = {**CLAIMS[1], "id": "s-4", "called": verdicts.UNEXPLAINED}
    found = [*CLAIMS, CLAIMS[0], CLAIMS[1], unknown]
    said = "2 hold, 2 do not hold, 1 not reproduced (cause unknown), 1 cannot be decided"
    assert verdicts.counted(found) == said
    assert [count for *_, count in verdicts.counts(found)] == [2, 2, 1, 1, 0]
    assert verdicts.counted([]) == ""


def test_the_seeds_are_those_of_the_grids_that_were_run(tmp_path):
    def said(*grids):
        of_each = [{"name": name, "title": name, "points": 1, "runs": 1, **own} for name, own in grids]
        facts = {**FOUND, "grids": of_each}
        text = words(page.write(facts, Asked(), Where([]), tmp_path).read_text(encoding="utf-8"))
        return re.search(r"seeds of a point (.*?) different runs", text)[1]

    assert said(("web", {"seeds": [1, 2, 3, 4, 5]})) == "5: 1 to 5"
    assert said(("web", {"seeds": [1, 2]}), ("bulk", {"seeds": [7]})) == "2: 1, 2 (web); 1: 7 (bulk)"


def test_every_row_of_the_overview_has_the_columns_of_its_head(tmp_path):
    unknown = {**CLAIMS[1], "id": "o-1", "called": verdicts.UNEXPLAINED}
    other = {**FOUND, "id": "other2002", "claims": [unknown]}
    text = overview_page.write_overview([FOUND, other], tmp_path).read_text(encoding="utf-8")
    table = text[text.index('<table class="studies"') :]
    rows = re.findall(r"<tr.*?</tr>", table[: table.index("</table>")], re.S)
    assert len(rows) == 3
    assert len({len(re.findall(r"<t[hd][ >]", row)) for row in rows}) == 1
    assert re.findall(rf'data-measure="claims.verdict={verdicts.UNEXPLAINED}">(.*?)</td>', table)[0] == "0"


def test_of_many_numbers_those_that_do_not_hold_are_shown_first():
    many = [finding(f"point {k}", value=-0.05 if k == 11 else 0.03) for k in range(12)]
    shown = verdicts.shown(claim("s", *many), few=3)
    assert [one["label"] for one in shown.first] == ["point 11", "point 0", "point 1"]
    assert len(shown.rest) == 9 and shown.tally == "12 numbers: 11 within the bounds, 1 outside"


def test_a_published_number_that_all_share_is_said_once():
    both = [finding("A", published=0.3, width=0.004), finding("B", published=0.3)]
    shown = verdicts.shown(claim("s", *both))
    assert shown.published == "+30 points" and not shown.has_published
    different = verdicts.shown(claim("s", finding("A", published=0.3), finding("B", published=0.4)))
    assert not different.published and different.has_published


def test_the_small_drawing_is_to_scale():
    facts = claim("s", finding(value=0.02, width=0.01, low=0.0, high=0.1, published=0.05))["findings"][0]
    drawn = str(verdicts.strip(facts, (0.0, 0.1)))
    inner = verdicts.WIDTH - 8
    assert f'<circle cx="{4 + 0.2 * inner:.1f}"' in drawn
    assert f"M{4 + 0.1 * inner:.1f} 8H{4 + 0.3 * inner:.1f}" in drawn
    assert f'class="theirs" d="M{4 + 0.5 * inner:.1f}' in drawn
    assert f'class="band" x="4.0" y="0" width="{inner:.1f}"' in drawn
    nothing = {**facts, "value": None}
    assert str(verdicts.strip(nothing, (0.0, 0.1))) == ""


def test_a_number_that_was_not_run_says_so():
    missing = finding("ARED", value=math.nan, width=None, note="not run in this profile")
    shown = verdicts.shown(claim("s", finding(), missing))
    assert shown.first[1]["number"] == "not run in this profile" and shown.first[1]["mark"] == "–"
    assert shown.css == "open" and shown.remark == "1 of 2 numbers asked"
    nothing = verdicts.shown(claim("s", missing, missing, explained="It is so."))
    assert (nothing.css, nothing.mark, nothing.explained) == ("unrun", "–", "")
    assert not nothing.first and len(nothing.rest) == 2 and nothing.tally == "2 numbers: 2 not run"


def test_a_number_without_data_is_told_from_one_that_was_not_run():
    shown = verdicts.shown(claim("s", finding(), finding(value=math.nan, width=None)))
    assert shown.remark == "1 without data though they were run" and shown.first[1]["mark"] == "?"


def test_numbers_fold_with_the_worst_first():
    values = {"far within": 0.2, "near": 0.01, "far outside": -0.2, "just outside": -0.06, "open": 0.001}
    some = [finding(name, value=value) for name, value in values.items()]
    missing = [finding(f"not run {k}", value=math.nan, width=None, note=NOT_RUN) for k in range(40)]
    shown = verdicts.shown(claim("s", *missing, *some))
    order = ["far outside", "just outside", "open", "near", "far within", "not run 0"]
    assert [one["label"] for one in shown.first] == order and len(shown.rest) == 39
    assert shown.tally == "45 numbers: 2 within the bounds, 2 outside, 1 undecided, 40 not run"
    assert not verdicts.shown(claim("s", some[0], *missing[:7])).rest


def test_a_remark_stands_below_its_number():
    few = finding(width=0.02, note="2 of the 3 runs that a verdict needs")
    one = verdicts.shown(claim("s", few)).first[0]
    assert (one["number"], one["why"]) == ("+3.0 ± 2.0 points", "2 of the 3 runs that a verdict needs")


def test_what_holds_needs_no_explanation(tmp_path):
    facts = {**FOUND, "claims": [claim("s-1", explained="In full it is otherwise.", evidence=("gamma/1",))]}
    page.write(facts, Asked(), Where([]), tmp_path)
    overview_page.write_overview([facts], tmp_path)
    for name in ("report.html", "index.html"):
        assert "In full it is otherwise" not in (tmp_path / name).read_text(encoding="utf-8")
    assert verdicts.shown(claim("s", finding(value=-1.0), evidence=("a", "b")), run=[]).evidence_note == (
        "2 points that are not run in this profile"
    )


def test_an_explanation_says_its_scale_where_the_runs_are_of_another(tmp_path):
    for name, expected in (("quick", True), ("medium", True), ("full", False)):
        facts = {**FOUND, "profile": {**FOUND["profile"], "name": name}}
        page.write(facts, Asked(), Where([]), tmp_path)
        overview_page.write_overview([facts], tmp_path)
        for page_name in ("report.html", "index.html"):
            text = words((tmp_path / page_name).read_text(encoding="utf-8"))
            assert ("(At the published scale, where no other runs are named:) The gamma" in text) == expected, name


def test_a_number_without_an_interval_says_so(tmp_path):
    facts = {**FOUND, "claims": [claim("s-1", finding(width=None))]}
    said = words(page.write(facts, Asked(), Where([]), tmp_path).read_text(encoding="utf-8"))
    assert "+3.00 points no interval" in said


def test_the_pages_count_four_kinds(tmp_path):
    missing = finding(value=math.nan, width=None, note=NOT_RUN)
    facts = {**FOUND, "claims": [claim("s-1"), claim("s-2", missing), claim("s-3", missing, missing)]}
    said = words(page.write(facts, Asked(), Where([]), tmp_path).read_text(encoding="utf-8"))
    assert "✓ 1 holds ✗ 0 does not hold ? 0 cannot be decided – 2 not run in this profile" in said
    text = overview_page.write_overview([facts], tmp_path).read_text(encoding="utf-8")
    assert "✓ 1 0 0 – 2" in words(text) and text.count('<tr data-verdict="unrun"') == 2


def test_a_report_says_what_its_profile_leaves_out(tmp_path):
    cells = Where([cell("pi-24"), cell("pfifo-240")], [cell("pi-24", load="90")])
    study = Asked(
        STUDY.figures, [*STUDY.tables, {"id": "II", "title": "Gone", "rows": [{"aqm": "x"}], "measures": ["p90"]}]
    )
    said = words(page.write(FOUND, study, cells, tmp_path).read_text(encoding="utf-8"))
    assert said.count("1 of 3 points is not run in this profile: PI 24, 90 %.") == 2
    assert "1 figure is not drawn: nothing that it could show was run Today&#39;s." in said
    assert "1 table is left out: nothing of its own was run Gone." in said


def test_the_report_says_which_demands_populations_were_made_for(tmp_path):
    one = {"load_bps": 98e6, "users": 18670, "window_error": 0.031, "offered_bps": {"1": 98e6, "2": 95.06e6}}
    facts = {**FOUND, "calibration": {"window_error": 0.031, "populations": [one]}}
    said = words(page.write(facts, Asked(), Where([]), tmp_path).read_text(encoding="utf-8"))
    assert "scatters by ± 3.1 %; known demands are 97.0 to 100.0 % of the load" in said


def test_pages_say_beside_a_verdict_what_load_was_offered(tmp_path):
    load = {"least": 0.992, "most": 1.014, "known": 2, "of": 4}
    facts = {**FOUND, "claims": [{**CLAIMS[0], "offered": load}, {**CLAIMS[1], "offered": None}]}
    expected = "99.2 to 101.4 % of what was asked for in the 2 of 4 runs of which it is known"
    said = words(page.html(facts, STUDY, [], [], [], tmp_path))
    assert said.count(f"Load offered: {expected}.") == said.count("Load offered:") == 1
    said = words(overview_page.html([facts]))
    assert said.count(f"load offered: {expected}") == said.count("load offered:") == 1


@dataclass
class Seen:
    """A variant of a live comparison, as one witness has it."""

    witness: str
    times: tuple
    subject: str = "PI 24"
    uncongested: bool = False
    void: str = ""
    qdisc: dict = field(default_factory=lambda: {"kind": "pi"})

    @property
    def name(self):
        return f"{self.subject} {self.witness}"

    @property
    def completed(self):
        return len(self.times)

    @property
    def result(self):
        run = SimpleNamespace(has_exchanges=True, exchanges=pl.DataFrame({"response_time_s": self.times}))
        return SimpleNamespace(runs=[run])


def test_the_live_comparison_is_drawn_where_there_is_one(tmp_path, monkeypatch):
    columns = [Seen(witness, tuple(0.01 * k for k in range(1, 200))) for witness in ("simulated", "virtual")]
    monkeypatch.setattr(page, "Comparison", lambda folder: SimpleNamespace(columns=columns))
    for name in ("live", "virtual"):  # that of real time is left from another day
        (tmp_path / name).mkdir()
        (tmp_path / name / "comparison.json").write_text("{}", encoding="utf-8")
        (tmp_path / name / "report.html").write_text("", encoding="utf-8")
    agreement = Agreement("PI 24", "virtual", None, [])
    text = page.write(FOUND, Asked(), Where([]), tmp_path, [agreement]).read_text(encoding="utf-8")
    assert 'id="agreement-virtual"' in text and 'id="agreement-live"' not in text
    assert "quantiles of the live response times against" in words(text) and 'href="#live"' in text
    assert 'href="virtual/report.html"' in text and 'href="live/report.html"' not in text
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "agreement-virtual.png",
        "agreement-virtual.svg",
    ]
    assert 'id="live"' not in page.write(FOUND, Asked(), Where([]), tmp_path).read_text(encoding="utf-8")


def test_prose_is_escaped_and_links_only_go_where_they_can():
    said = str(
        prose.html(
            "# Head\n\nA <b> and `x < y`, [paper](https://a.org/b), [file](../c.md).\n\n| a | b |\n|--|--|\n| 1 | 2 |"
        )
    )
    assert said.startswith("<h3>Head</h3>")
    assert "A &lt;b&gt; and <code>x &lt; y</code>" in said
    assert '<a href="https://a.org/b">paper</a>, file.' in said
    assert "<tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr>" in said
    assert str(prose.html("1. one\n   more\n2. two")) == "<ol><li>one more</li><li>two</li></ol>"


def test_a_claim_that_no_run_explains_is_called_so(tmp_path):
    facts = {**FOUND, "claims": [*CLAIMS, UNEXPLAINED], "report": "report.html"}
    assert [one["verdict"] for one in facts["claims"]] == [
        "holds",
        "does not hold",
        "cannot be decided",
        "does not hold",
    ]
    assert verdicts.counts(CLAIMS)[1:3] == [("does not hold", "✗", "fails", 1), ("cannot be decided", "?", "open", 1)]
    report = page.html(facts, STUDY, [], [], [], tmp_path)
    for text in (report, overview_page.html([facts])):
        assert is_unbroken(text)
        said = words(text)
        assert "✗ 1 does not hold ✗ 1 not reproduced, cause unknown ? 1 cannot be decided" in said
        assert "What was tried" in said and "Two targets were tried." in said
    assert "Runs of it: gamma/1" in words(report)
    # What is pressed is looked for word by word, and so neither shows the other.
    assert report.count('data-verdict="fails unknown"') == 2 and report.count('data-verdict="fails"') == 2
