"""What people get of each application: figures, differences and distributions in results and reports."""

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from bs4 import BeautifulSoup
from rich.console import Console

from aqmlab import api, applications, engine, figures, lead
from aqmlab.command.terminal import comparison, result
from aqmlab.comparison import Comparison
from aqmlab.figures.sheet import PAGE
from aqmlab.report import page
from aqmlab.results import by_application, felt, pages, video
from aqmlab.results.run import Run
from conftest import NATIVE

HOME = """
name = "home"
duration = "40s"
warmup = "5s"
[link]
rate = "8mbit"
reverse_rate = "2mbit"
[path]
rtt = "40ms"
[record]
demands = true
[[traffic]]
kind = "homes"
homes = 2
browsing = 1
think = { exponential = "3s" }
rule = "throughput"
[[variant]]
name = "long"
link.qdisc = { kind = "bfifo", limit = "500kb" }
[[variant]]
name = "fair"
link.qdisc = "fq_codel"
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("home")
    (folder / "home.toml").write_text(HOME, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "native", NATIVE)
        return api.compare(folder / "home.toml", out=folder / "out", reps=2)


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


def expected(run: Run) -> Mapping[str, float]:
    """The figures again, from the run's tables and what other tests hold."""
    probes = run.probes
    calls, games = (probes.filter(pl.col("traffic") == block) for block in (2, 3))
    each = [felt.opinion_of(flow.sort("packet")["delay_s"].to_numpy()) for _, flow in calls.group_by("source")]
    late = [felt.late_of(flow.sort("packet")["delay_s"].to_numpy()) for _, flow in games.group_by("source")]
    films = video.said(run.films)
    held = run.summary["tcp"]["held_back"]
    return {
        "pages.share_in_2s": pages.within(run.pages, 2.0, run.window) or 0.0,
        "video.bitrate_mean_bps": films["bitrate_mean_bps"] or 0.0,
        "video.stalls_per_hour": films["stalls_per_hour"] or 0.0,
        "calls.mos_mean": float(np.mean(each)),
        "calls.mos_least": min(each),
        "calls.satisfied": sum(mos >= 4.03 for mos in each) / len(each),
        "games.p99_most_s": max(late),
        "downloads.goodput_bps": held["4"]["goodput_bps"],
        "backups.goodput_bps": held["5"]["goodput_bps"],
    }


def test_figures_are_those_of_the_tables(compared: Comparison) -> None:
    for column in compared.columns:
        for run in column.result.runs:
            found = applications.figures(run)
            assert list(found) == ["pages", "video", "calls", "games", "downloads", "backups"]
            for name, value in expected(run).items():
                application, figure = name.split(".")
                assert found[application][figure] == pytest.approx(value), name


def test_a_queue_that_is_fair_is_better_for_calls_and_games(compared: Comparison) -> None:
    parts = {part.table: part for part in applications.of(compared.columns, compared)}
    of_homes = [one.name for one in applications.APPLICATIONS if one.name not in ("live", "exchanges")]
    assert list(parts) == [f"applications.{name}" for name in of_homes]

    def value(table: str, variant: str, name: str) -> applications.Interval | None:
        part = parts[f"applications.{table}"]
        place = [heading for _, _, heading in part.headings].index(name)
        return next(found[place] for column, found in part.rows if column.name == variant)

    # A difference is that of pairs: its mean is the difference of the means, and its interval its own.
    for table, name in (("calls", "mos_mean"), ("games", "p99_mean_s"), ("backups", "goodput_bps")):
        own, base = value(table, "fair", name), value(table, "long", name)
        difference = value(table, "fair", f"difference_to_baseline.{name}")
        assert own and base and difference and difference.n == 2
        assert difference.value == pytest.approx(own.value - base.value)
        assert value(table, "long", f"difference_to_baseline.{name}") is None
    mos = value("calls", "fair", "difference_to_baseline.mos_mean")
    game = value("games", "fair", "difference_to_baseline.p99_mean_s")
    # Half a megabyte is half a second at 8 Mb/s.
    assert mos and mos.value > 0.3 and game and game.value < -0.1


def test_samples_are_one_for_each_page_film_call_and_game(compared: Comparison) -> None:
    run = compared.columns[0].result.runs[0]
    found = applications.samples(run)
    assert found["pages"].size == run.pages.height
    assert np.isinf(found["pages"]).sum() == run.pages["load_s"].null_count()
    assert found["video"].size == run.films.height
    assert found["calls"].size == found["games"].size == 2
    assert "downloads" not in found
    waited, over = applications.waits(run)["pages"]
    assert (waited[over] == found["pages"][over]).all() and np.isinf(found["pages"][~over]).all()
    begun = run.pages["begun_s"].to_numpy()[~over]
    assert waited[~over] == pytest.approx(run.window[1] - begun)


def axis_titles(figure: figures.Drawn) -> list[str]:
    return [axes.get_xlabel() for axes in figure.draw(PAGE).axes]


@pytest.mark.usefixtures("undrawn")
def test_a_page_says_what_people_get(compared: Comparison) -> None:
    text = page.write(compared).read_text(encoding="utf-8")
    assert "<h2>What people get</h2>" in text and "<h3>Calls, each way</h3>" in text
    assert "load time of a page (s)" in axis_titles(figures.of(compared)["applications"])
    with (compared.folder / "numbers.csv").open(encoding="utf-8") as file:
        rows = {(row["table"], row["row"], row["measure"]): row for row in csv.DictReader(file)}
    means = [applications.figures(run)["calls"]["mos_mean"] for run in compared["fair"].runs]
    assert float(rows["applications.calls", "fair", "mos_mean"]["value"]) == pytest.approx(np.mean(means))
    assert ("applications.video", "fair", "difference_to_baseline.stalls_per_hour") in rows
    # A result by itself has them too, without differences.
    alone = page.write(compared["fair"]).read_text(encoding="utf-8")
    assert "<h2>What people get</h2>" in alone and "difference_to_baseline.mos_mean" not in alone


def test_what_people_get_comes_before_requests_and_links(compared: Comparison) -> None:
    text = page.write(compared).read_text(encoding="utf-8")
    heads = ["What people get", "Requests of all kinds", "In numbers"]
    assert sorted(heads, key=lambda head: text.index(f"<h2>{head}</h2>")) == heads
    assert text.index("load time of a page (s)") < text.index("exchanges completed (%)")
    assert list(figures.of(compared))[:2] == ["applications", "response-cdf"]
    said = "An exchange is one request and its answer: one object of a page, one segment of a film."
    assert figures.of(compared)["response-cdf"].caption.startswith(said)
    for shows in (lambda out: comparison(out, compared), lambda out: result(out, compared["fair"])):
        terminal = Console(file=io.StringIO(), width=120)
        shows(terminal)
        said = terminal.file.getvalue()
        assert said.index("Pages\n") < said.index("Calls, each way") < said.index("delay, 99 %")


def test_what_transfers_lose_is_said_and_marked_too(compared: Comparison) -> None:
    said = {line.partition(":")[0]: line for line in lead.of(compared).splitlines()}
    rates = [compared[name].estimate("applications.backups.goodput_bps").value for name in ("long", "fair")]
    assert all(f"({rate / 1e6:.4g} Mb/s)" in said["Uploads (backups), goodput of all"] for rate in rates)
    assert "Downloads, goodput of all" in said
    soup = BeautifulSoup(page.write(compared).read_text(encoding="utf-8"), "html.parser")
    for table, measure, better in (("calls", "mos_mean", True), ("games", "p99_mean_s", False)):
        name = f"difference_to_baseline.{measure}"
        found = compared.difference("fair", "long", f"applications.{table}.{measure}")
        (cell,) = soup.select(f'[data-table="applications.{table}"] tbody tr:last-child [data-measure="{name}"]')
        doubt = found.low <= 0 <= found.high
        assert cell.get("class", []) == ([] if doubt else ["better" if (found.low > 0) is better else "worse"])
        assert bool(cell.find("i")) is not doubt
    (note,) = [one.text for one in soup.select(".note") if one.text.startswith("Pages: loaded when")]
    assert "▲ better, ▼ worse" in note and "one in twenty" in note


@pytest.mark.usefixtures("undrawn")
def test_what_is_said_is_of_the_applications_that_are_there(compared: Comparison, tmp_path: Path) -> None:
    caption = figures.of(compared)["applications"].caption
    assert "Share of the pages, films, calls and games, each counted by itself," in caption
    lacking = [np.isinf(applications.samples(run)["pages"]).any() for c in compared.columns for run in c.result.runs]
    assert ("a curve ends below 100 %" in caption) == any(lacking)
    (calls,) = [part for part in applications.of(compared.columns) if part.table == "applications.calls"]
    assert calls.note == "Shares say little here: 4 calls, each way counted, of each variant in all."
    terminal = Console(file=io.StringIO(), width=60, force_terminal=True, color_system=None)
    comparison(terminal, compared)
    lines = terminal.file.getvalue().splitlines()
    assert calls.note in " ".join(" ".join(lines).split())
    assert not any(calls.note in line for line in lines), "it is wrapped"
    (tmp_path / "video.toml").write_text(
        'duration = "8s"\nwarmup = "2s"\nlink.rate = "5mbit"\n[[traffic]]\nkind = "rtp_video"\nmax_rate = "2mbit"\n',
        encoding="utf-8",
    )
    found = api.run(tmp_path / "video.toml", out=tmp_path / "out")
    caption, text = figures.of(found)["applications"].caption, page.write(found).read_text(encoding="utf-8")
    assert caption.startswith("Share of the frames of real-time video that got no more than")
    lost = np.isinf(applications.samples(found.runs[0])["live"]).any()
    assert ("a curve ends below 100 %" in caption) == lost and "page" not in caption
    assert (
        "the delay of a frame is from the encoder" in text and "E-model" not in text and "stalls in an hour" not in text
    )


@pytest.mark.usefixtures("undrawn")
def test_traffic_that_is_no_application_has_no_such_table(tmp_path: Path) -> None:
    (tmp_path / "bulk.toml").write_text('duration = "5s"\n[[traffic]]\nkind = "bulk"\n', encoding="utf-8")
    found = api.run(tmp_path / "bulk.toml", out=tmp_path / "out")
    assert applications.figures(found.runs[0]) == {} and "applications" not in figures.of(found)
    assert "What people get" not in page.write(found).read_text(encoding="utf-8")


WEB = """
duration = "12s"
warmup = "2s"
link.rate = "8mbit"
[[traffic]]
kind = "web"
model = "unc2001"
users = 100
think_mean = "5s"
direction = "forward"
application = "pages"
[[traffic]]
kind = "web"
model = "{model}"
users = 60
inter_page = "2s"
direction = "forward"
application = "pages"
[[traffic]]
kind = "poisson"
arrivals = "10hz"
size = "10kb"
application = "pages"
"""


@pytest.mark.usefixtures("undrawn")
def test_an_object_is_not_called_a_page(tmp_path: Path) -> None:
    (tmp_path / "web.toml").write_text(WEB.format(model="feldmann-pareto2"), encoding="utf-8")
    found = api.compare(tmp_path / "web.toml", "pfifo", "fq_codel", reps=2, out=tmp_path / "out")
    run = found.columns[0].result.runs[0]
    users, sessions, arrivals = (run.exchanges.filter(pl.col("traffic") == block) for block in range(3))
    figure = applications.figures(run)
    asked = arrivals.filter(pl.col("start_s") >= run.window[0])
    assert figure["pages"]["loaded"] == run.pages.height + asked.height
    assert run.pages["traffic"].unique().to_list() == [0] and run.pages.height < users.height / 3
    assert figure["exchanges"]["completed"] == sessions.height
    assert figure["exchanges"]["share_under_2s"] == (sessions["response_time_s"] <= 2).mean()
    assert figure["exchanges"]["p50"] == pytest.approx(sessions["response_time_s"].median(), abs=0.02)
    assert applications.samples(run)["exchanges"].size == sessions.height
    numbers = page.write(found).parent / "numbers.csv"
    assert "applications.exchanges,fq_codel,p50" in numbers.read_text(encoding="utf-8")
    said = lead.of(found).splitlines()
    assert [line.split(":")[0] for line in said] == [
        "Pages loaded in two seconds",
        "Exchanges completed within two seconds",
    ]
    assert "load time of a page (s)" in axis_titles(figures.of(found)["applications"])


def test_a_page_of_one_object_is_its_answer(tmp_path: Path) -> None:
    (tmp_path / "web.toml").write_text(WEB.format(model="feldmann-exp2"), encoding="utf-8")
    run = api.run(tmp_path / "web.toml", out=tmp_path / "out").runs[0]
    figure = applications.figures(run)
    assert "exchanges" not in figure
    single = run.exchanges.filter((pl.col("traffic") > 0) & (pl.col("start_s") >= run.window[0])).height
    assert figure["pages"]["loaded"] == run.pages.height + single


SLOW = """name = "slow"
duration = "24s"
warmup = "4s"
seed = 3
[link]
rate = "2mbit"
qdisc = { kind = "fq_codel" }
[path]
rtt = "40ms"
[tcp]
stack = "linux"
[record]
demands = true
[[traffic]]
kind = "poisson"
arrivals = "2hz"
size = { lognormal = { median = "300000b", sigma = 2.0 } }
direction = "forward"
application = "pages"
"""


def test_a_page_that_never_came_is_no_page_that_was_not_asked_for(tmp_path: Path) -> None:
    """Where demands are recorded, all that were asked for within the window count; what was before it does not."""
    (tmp_path / "slow.toml").write_text(SLOW, encoding="utf-8")
    run = api.run(tmp_path / "slow.toml", out=tmp_path / "out").runs[0]
    asked = pl.read_csv(run.folder / "demands-0.csv", comment_prefix="#").filter(pl.col("at_s").is_between(4, 22))
    came = run.exchanges.filter(pl.col("start_s").is_between(4, 22) & (pl.col("response_time_s") <= 2))
    assert run.exchanges.filter(pl.col("start_s") < 4).height and came.height < asked.height / 4
    found = applications.figures(run)["pages"]
    assert found["share_in_2s"] == pytest.approx(came.height / asked.height)
    assert found["loaded"] == run.exchanges.filter(pl.col("start_s") >= 4).height
    assert found["load_median_s"] is None


def test_a_frame_that_was_lost_came_within_no_time() -> None:
    """Of a third that is lost the delay of those that came says nothing of all."""

    class Stub:
        scenario: ClassVar = {"traffic": [{"kind": "rtp_video", "flows": 1}]}
        window = (0.0, 1.0)

        def __init__(self, delays: list[float | None]) -> None:
            rows = {"traffic": [0] * len(delays), "delay_s": delays, "bytes": [1000] * len(delays)}
            self.frames = pl.DataFrame(rows, schema_overrides={"delay_s": pl.Float64})

    lossy, whole = (by_application._frames(Stub(some), [0]) for some in ([0.02, 0.02, None], [0.04] * 3))
    assert (lossy["delay_p50_s"], lossy["delay_p99_s"]) == (0.02, None)
    assert (whole["delay_p50_s"], whole["delay_p99_s"]) == (0.04, 0.04)


LOSSY = """
name = "lossy"
duration = "3s"
warmup = "1s"
link = { rate = "3mbit" }
path = { rtt = "40ms", loss = 1.0 }
[[traffic]]
kind = "rtp_video"
max_rate = "1mbit"
[[traffic]]
kind = "probe"
application = "calls"
"""


def test_a_result_of_which_no_frame_came_has_a_page_and_no_curve_of_frames(tmp_path: Path) -> None:
    (tmp_path / "lossy.toml").write_text(LOSSY, encoding="utf-8")
    found = api.run(tmp_path / "lossy.toml", out=tmp_path / "out")
    text = page.write(found).read_text(encoding="utf-8")
    assert "none of the frames of real-time video came whole, so that there is no curve." in text


@pytest.mark.parametrize("is_half", [True, False])
def test_variants_of_which_no_frame_came_have_no_curve_and_the_caption_says_so(tmp_path: Path, is_half: bool) -> None:
    other = "path.loss = 0.0" if is_half else 'link.qdisc = "codel"'
    variants = f'[[variant]]\nname = "all lost"\n[[variant]]\nname = "other"\n{other}\n'
    text = LOSSY.split('[[traffic]]\nkind = "probe"')[0] + variants
    (tmp_path / "lossy.toml").write_text(text, encoding="utf-8")
    found = api.compare(tmp_path / "lossy.toml", out=tmp_path / "out")
    drawn = [one for one in figures.of_comparison(found) if one.name == "applications"]
    if is_half:
        assert "all lost: none of the frames of real-time video came whole" in drawn[0].caption
        assert drawn[0].as_format("svg")
    else:
        assert drawn == []
    page.write(found)


@pytest.mark.parametrize(
    ("name", "counts", "said"),
    [
        ("calls", (1, 1), "1 call, each way counted, of each variant in all."),
        ("calls", (2, 2), "2 calls, each way counted, of each variant in all."),
        ("calls", (0, 1), "0 to 1 calls, each way counted, of each variant in all."),
        ("pages", (1,), "1 page in all."),
        ("exchanges", (3, 5), "3 to 5 exchanges of each variant in all."),
    ],
)
def test_few_of_them_are_counted_in_words_that_fit(name: str, counts: tuple[int, ...], said: str) -> None:
    (one,) = [one for one in applications.APPLICATIONS if one.name == name]
    counted = replace(one, samples=lambda run, _: np.zeros(run.count))
    runs = [SimpleNamespace(count=count, scenario={"traffic": []}) for count in counts]
    columns = [SimpleNamespace(result=SimpleNamespace(runs=[run])) for run in runs]
    assert applications._few(counted, columns) == f"Shares say little here: {said}"  # type: ignore[arg-type]


def test_a_share_of_few_calls_has_no_decimals(compared: Comparison) -> None:
    (calls,) = [part for part in applications.of(compared.columns, compared) if part.table == "applications.calls"]
    place = [name for _, _, name in calls.headings].index("satisfied")
    for row, (_, found) in enumerate(calls.rows):
        share = found[place]
        assert calls.cases[row] == 4 and share is not None and share.n == 2
        if share.half_width is None and share.value:
            assert calls.said(row, is_counted=True)[place] == (f"{100 * share.value:.0f}", "")
