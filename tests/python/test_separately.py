"""Blocks of traffic and probes each way, by themselves: as they are worked out by hand from the tables."""

import io
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import aqmlab
from aqmlab import engine, figures, report, separately, statistics, subject
from aqmlab.command import terminal
from aqmlab.figures import apart
from aqmlab.results import named
from aqmlab.separately import BLOCK, LINK, PROBES
from conftest import NATIVE

MIXED = """
duration = "12s"
warmup = "2s"
link = { rate = "5mbit", qdisc = { kind = "pfifo", limit = "200p" } }
[[traffic]]
kind = "web"
users = 150
[[traffic]]
kind = "bulk"
flows = 2
[[traffic]]
kind = "poisson"
arrivals = "5hz"
size = "30000b"
[[traffic]]
kind = "probe"
direction = "both"
flows = 2
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        yield aqmlab.compare(
            MIXED, "pfifo limit 200p", "codel", reps=2, jobs=1, out=tmp_path_factory.mktemp("mixed") / "out"
        )


@pytest.fixture(scope="module")
def written(mixed):
    """The text of its page, beside which its figures are."""
    return report.write(mixed).read_text(encoding="utf-8")


TWO_LINKS = """
name = "two links"
duration = "6s"
warmup = "1s"
[links.home]
rate = "4mbit"
[links.core]
rate = "6mbit"
qdisc = { kind = "pfifo", limit = "20p" }
[[traffic]]
kind = "bulk"
flows = 2
route = ["home", "core"]
[[traffic]]
kind = "bulk"
flows = 2
route = ["core"]
[[variant]]
name = "long"
links.home.qdisc = { kind = "pfifo", limit = "100p" }
[[variant]]
name = "short"
links.home.qdisc = { kind = "pfifo", limit = "10p" }
"""


def test_each_of_several_links_has_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(engine, "native", NATIVE)
    found = aqmlab.compare(TWO_LINKS, reps=2, jobs=1, out=tmp_path / "out")
    parts = [part for part in separately.of(found) if part.headings == LINK]
    # In reverse there are acknowledgements only.
    assert [part.table for part in parts] == ["links.home.forward", "links.core.forward"]
    for name, part in zip(("home", "core"), parts, strict=True):
        delays = {}
        for column, (used, loss, _, delay, _, change) in part.rows:
            runs = [run.summary["links"][name]["forward"] for run in column.result.runs]
            assert used.value == pytest.approx(np.mean([run["utilisation"] for run in runs]))
            assert loss.value == pytest.approx(np.mean([run["loss_ratio"] for run in runs]))
            delays[column.name] = [run["queue_delay_mean_s"] for run in runs]
            assert delay.value == pytest.approx(np.mean(delays[column.name]))
            if column is found.baseline:
                assert change is None
            else:
                gain = np.subtract(delays[column.name], delays[found.baseline.name])
                assert change.value == pytest.approx(gain.mean())
    # In the terminal no number of the first link stands for all.
    out = terminal.console()
    terminal.comparison(out, found)
    said = capsys.readouterr().out
    assert "Link home, forward" in said and "both directions" not in said and "first link" not in said


def test_each_block_that_completes_exchanges_has_a_table(mixed):
    parts = [part for part in separately.of(mixed) if part.headings == BLOCK]
    assert [part.title.split(":")[0] for part in parts] == [f"Block {kind}" for kind in ("web", "poisson")]
    for block, part in zip((0, 2), parts, strict=True):
        shares = {}
        for column, (completed, median, ninety, share, difference) in part.rows:
            each = [
                run.exchanges.filter(pl.col("traffic") == block)["response_time_s"].to_numpy()
                for run in column.result.runs
            ]
            assert completed.value == np.mean([len(times) for times in each])
            assert median.value == pytest.approx(
                np.mean([np.quantile(times, 0.5, method="inverted_cdf") for times in each])
            )
            assert ninety.value == pytest.approx(
                np.mean([np.quantile(times, 0.9, method="inverted_cdf") for times in each])
            )
            shares[column.name] = [np.mean(times <= 0.5) for times in each]
            assert share.value == pytest.approx(np.mean(shares[column.name]))
            if column is mixed.baseline:
                assert difference is None
            else:
                gains = np.subtract(shares[column.name], shares[mixed.baseline.name])
                # Two runs: Student's t with one degree of freedom, 12.706 at 95 %.
                assert difference.value == pytest.approx(gains.mean())
                assert difference.half_width == pytest.approx(12.706 * gains.std(ddof=1) / np.sqrt(2), rel=1e-3)


def test_probes_have_a_table_each_way(mixed):
    parts = [part for part in separately.of(mixed) if part.headings == PROBES]
    assert [part.title for part in parts] == ["Probes forward", "Probes in reverse"]
    for way, part in enumerate(parts):
        worst = {}
        for column, (loss, median, late, _, change) in part.rows:
            each = [run.probes.filter(pl.col("direction") == way)["delay_s"] for run in column.result.runs]
            assert loss.value == pytest.approx(np.mean([one.is_null().mean() for one in each]))
            kept = [one.drop_nulls().to_numpy() for one in each]
            assert median.value == pytest.approx(
                np.mean([np.quantile(one, 0.5, method="inverted_cdf") for one in kept])
            )
            worst[column.name] = np.mean([np.quantile(one, 0.99, method="inverted_cdf") for one in kept])
            assert late.value == pytest.approx(worst[column.name])
            if change is not None:
                assert change.value == pytest.approx(worst[column.name] - worst[mixed.baseline.name])


def test_as_many_losses_in_each_run_are_no_certainty():
    same, other = statistics.across_runs([0.001, 0.001]), statistics.across_runs([0.001, 0.003])
    name = "probes.forward.loss_ratio"
    assert same.half_width == 0 and named._told_by_spread(name, same).half_width is None
    assert named._told_by_spread(name, other) == other
    assert named._told_by_spread("probes.forward.one_way_delay_s.p50", same) == same


def test_screen_and_page_show_them(mixed, written, undrawn, capsys):
    terminal.comparison(terminal.console(), mixed)
    said = capsys.readouterr().out
    for title in ("Block web", "Block poisson", "Probes forward", "Probes in reverse", "Hosts"):
        assert title in said and title in written
    # A delay of both ways together is that of neither, and each way has a table.
    assert not re.search("probe delay|jitter", said) and "probe one-way delay" not in written
    assert "probe loss" in written
    alone = report.write(mixed.baseline.result).read_text()
    assert "probe one-way delay, median, both ways together<small>ms" in alone
    # What is of the only link is of the direction in which data flows, and titles say so.
    assert "The link, forward\n" in said and re.search("^Against .*; the link forward$", said, re.MULTILINE)
    assert not re.search("(used|loss|marked), both", said)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_figure_is_cut_on_a_narrow_screen(mixed, width):
    narrow, pipe = (
        Console(file=io.StringIO(), force_terminal=is_one, width=width, color_system=None, **terminal.PLAIN)
        for is_one in (True, False)
    )
    for out in (narrow, pipe):
        terminal.comparison(out, mixed)
        terminal.result(out, mixed.baseline.result)
    said, whole = (re.sub(r"─+", "", out.file.getvalue()) for out in (narrow, pipe))
    assert "…" not in said
    figures = re.compile(r"\d[\d,.]* ± [\d,.]+|\d[\d,.]+ [kM]b/s")
    assert sorted(figures.findall(said)) == sorted(figures.findall(whole))


def test_blocks_are_called_by_what_tells_them_apart():
    def told(*blocks):
        traffic = [{"kind": "bulk", "direction": "forward", "flows": 2, **block} for block in blocks]
        scenario = {"path": {"rtt": "40ms"}, "tcp": {"stack": "linux", "cc": "cubic", "ecn": "off"}, "traffic": traffic}
        links_of = {"links": {"west": {}, "east": {}}} if "route" in traffic[0] else {"link": {}}
        return [", ".join(marks) for marks in subject.told_apart(scenario | links_of, range(len(blocks)))]

    assert told({}, {"direction": "reverse", "dscp": "CS1"}) == ["forward", "in reverse, dscp CS1"]
    assert told({"rtt": "20ms"}, {"rtt": "120ms"}) == ["RTT 20 ms", "RTT 120 ms"]
    assert told({"route": ["west"]}, {"route": ["west", "east"]}) == ["over west", "over west and east"]
    assert told({"application": "downloads"}, {"application": "backups"}) == ["downloads", "backups"]
    # What nothing tells from another has its number.
    assert told({}, {}, {"rtt": "5ms"}) == ["traffic.0 (bulk), RTT 40 ms", "traffic.1 (bulk), RTT 40 ms", "RTT 5 ms"]
    assert told({}, {}) == ["traffic.0 (bulk)", "traffic.1 (bulk)"]


def test_one_block_is_the_whole(base):
    assert separately.of(aqmlab.compare(base, "pfifo", "pi")) == []


def test_figures_of_blocks_and_probes_are_those_of_the_tables(mixed):
    drawn = {one.name: one for one in figures.of_comparison(mixed)}
    column = mixed.columns[1]
    rows = pl.concat([run.exchanges for run in column.result.runs])
    for block, panel in zip((0, 2), drawn["blocks"].draw.args[0], strict=True):
        times = rows.filter(pl.col("traffic") == block)["response_time_s"].to_numpy()
        _, _, at, shares = panel.curves[1]
        assert np.diff(at).min() > 0 and shares == pytest.approx([100 * np.mean(times <= t) for t in at])
    rows = pl.concat([pl.read_parquet(run.folder / "probes.parquet") for run in column.result.runs])
    for way, panel in enumerate(drawn["probes"].draw.args[0]):
        delays = rows.filter(pl.col("direction") == way)["delay_s"].to_list()
        _, _, at, shares = panel.curves[1]
        late = [100 * np.mean([delay is None or 1e3 * delay > t for delay in delays]) for t in at]
        assert shares[0] == 100 and shares == pytest.approx(late)


def test_the_tail_of_a_fast_discipline_is_drawn_to_the_last_ten_packets(compiled):
    """However long the slowest takes: pfifo's packets wait for seconds here."""
    found = aqmlab.compare(SLOW_AND_FAST, "pfifo limit 1000p", "fq_codel", set={"duration": "20s"})
    rows = pl.concat([run.probes for run in found["fq_codel"].runs])
    delays = 1e3 * rows.filter(pl.col("direction") == 0)["delay_s"].fill_null(np.inf).sort().to_numpy()
    _, _, at, shares = figures.of(found)["probes"].draw.args[0][0].curves[1]
    assert np.isfinite(delays[-10]) and at[-1] == pytest.approx(delays[-10])
    assert shares[-1] == pytest.approx(1000 / delays.size)
    assert at.size % 2 == 0, "after nothing a pair for each step, just before and after it"
    assert np.abs(np.log(shares[::2] / shares[1::2])).max() < 0.12, "few packets arrive between its steps"
    assert at.size <= 500


@pytest.mark.parametrize(
    ("times", "ends"),
    [
        ([5.0] * 30, (5.0, 100.0)),  # all at once
        ([1.0] * 20 + [2.0] * 12, (2.0, 37.5)),
        ([1.0] * 20 + [2.0] * 9, (1.0, 100.0)),
        ([1.0] * 15 + [3.0] + [np.inf] * 64, (10.5, 80.0)),  # level to the end at what is lost
        ([np.inf] * 10, (10.5, 100.0)),
    ],
)
def test_a_tail_ends_where_fewer_than_ten_are_left(times, ends):
    at = apart.LONGER.at(np.array(times), 0.0, 10.0)
    shares = apart.LONGER.of(np.array(times), at)
    assert (at[-1], shares[-1]) == pytest.approx(ends)
    if np.isinf(times[-1]) and np.isfinite(times[0]):
        assert shares[at >= 3.0] == pytest.approx(80.0)
    assert apart.LONGER.at(np.array(times[:9]), 0.0, 10.0).size == 0


SLOW_AND_FAST = """
duration = "12s"
warmup = "2s"
link = { rate = "4mbit" }
path = { rtt = "40ms" }
[[traffic]]
kind = "bulk"
flows = 4
[[traffic]]
kind = "probe"
direction = "both"
flows = 2
"""


def test_a_report_shows_them_at_both_widths(mixed, written):
    for name, title in (("blocks", "Each block of traffic"), ("probes", "Probes each way")):
        assert written.count(f'aria-label="{title}; described below"') == 2
        assert (mixed.folder / f"figures/{name}.png").exists()


def test_one_block_and_no_probes_have_no_figures_of_their_own(base, tmp_path):
    found = aqmlab.compare(base, "pfifo limit 240p", "pi qref 24p", out=tmp_path / "out")
    assert not {"blocks", "probes"} & set(figures.of(found))


def test_blocks_of_endless_flows_have_what_each_got(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    path = tmp_path / "two.toml"
    path.write_text(TWO)
    found = aqmlab.compare(path, reps=2, out=tmp_path / "out")
    (part,) = [part for part in separately.of(found) if part.table == "goodput"]
    for column, cells in part.rows:
        held = [run.summary["tcp"]["held_back"] for run in column.result.runs]
        for cell, (block, flows) in zip(cells, (("0", 2), ("1", 1)), strict=True):
            assert cell.value == pytest.approx(np.mean([run[block]["goodput_bps"] / flows for run in held]))
    said = "2 endless transfers forward (cc cubic, ecn off); traffic.1 (bulk): 1 endless transfer forward"
    assert f"traffic.0 (bulk): {said}" in part.note
    heads = [" ".join(title.split()) for title, *_ in part.headings]
    assert heads == ["cc cubic, ecn off", "cc prague-linux, ecn accurate"]
    # All in one unit, which the heads say: one is held against the other.
    assert [" ".join(title.split()).rpartition(", ")[2] for title, *_ in part.columns] == ["Mb/s"] * 2
    # Several blocks of probes are one table, which says so.
    assert {part.note for part in separately.of(found) if part.headings == PROBES} == {
        "traffic.2 (probe) and traffic.3 (probe) together."
    }
    for column in found.columns:
        column.windows[1] = replace(column.windows[1], block_completed=0 * column.windows[1].block_completed)
    assert separately._without(found, 4) == (
        "–: no exchange of the block was completed under long (in 1 of 2 runs), dualpi2 (in 1 of 2 runs)."
    )


TWO = """
duration = "6s"
warmup = "1s"
[link]
rate = "5mbit"
[tcp]
stack = "linux"
[[traffic]]
kind = "bulk"
flows = 2
direction = "forward"
[[traffic]]
kind = "bulk"
cc = "prague-linux"
direction = "forward"
[[traffic]]
kind = "probe"
flows = 2
direction = "both"
[[traffic]]
kind = "probe"
flows = 2
direction = "both"
[[traffic]]
kind = "web"
users = 20
[[variant]]
name = "long"
link.qdisc = "pfifo"
[[variant]]
name = "dualpi2"
link.qdisc = "dualpi2"
"""


def test_curves_of_blocks_and_probes_have_bands_across_three_runs(mixed, compiled):
    found = aqmlab.compare(MIXED, "pfifo limit 200p", "codel", reps=3, jobs=2, set={"duration": "8s"})
    drawn = figures.of(found)
    for name, (table, key, column, factor) in {
        "blocks": ("exchanges", "traffic", "response_time_s", 1.0),
        "probes": ("probes", "direction", "delay_s", 1e3),
    }.items():
        assert "Bands: 95 % t-intervals of the mean over runs." in drawn[name].caption
        panel = drawn[name].draw.args[0][0]
        label, _, at, _ = panel.curves[1]
        low, high = panel.bands[label]
        assert label == "codel" and low.shape == high.shape == at.shape
        runs = [getattr(run, table).filter(pl.col(key) == 0) for run in found["codel"].runs]
        times = [factor * run[column].fill_null(np.inf).to_numpy() for run in runs]
        within = np.array([[100 * (one <= t).mean() for t in at] for one in times])
        within = within if name == "blocks" else 100 - within
        mean, around = within.mean(axis=0), statistics.half_widths(within)
        np.testing.assert_allclose(low, np.clip(mean - around, 0, 100), atol=1e-9)
        np.testing.assert_allclose(high, np.clip(mean + around, 0, 100), atol=1e-9)
        assert drawn[name].svg
    for name in ("blocks", "probes"):
        assert "Bands" not in figures.of(mixed)[name].caption


OTHER_KINDS = """
name = "kinds"
duration = "4s"
warmup = "1s"
link = { rate = "2mbit" }
path = { rtt = "40ms" }
[[traffic]]
kind = "poisson"
arrivals = "5hz"
size = "10kb"
[[traffic]]
kind = "poisson"
arrivals = "5hz"
size = "10kb"
[[variant]]
name = "small"
[[variant]]
name = "endless"
traffic = [{ kind = "bulk", flows = 1 }, { kind = "poisson", arrivals = "5hz", size = "10kb" }]
"""


@pytest.mark.parametrize("base", ["small", "endless"])
def test_a_block_that_a_variant_replaces_by_one_of_another_kind_has_no_number_there(
    tmp_path, monkeypatch, capsys, base, undrawn
):
    monkeypatch.setattr(engine, "native", NATIVE)
    found = aqmlab.compare(OTHER_KINDS, baseline=base, jobs=1, out=tmp_path / "out")
    first, second = (part for part in separately.of(found) if part.headings == BLOCK)
    title = "Block traffic.0 (poisson): exchanges at random times (5 a second, 10 KiB) forward"
    assert (first.title, first.table) == (title, "traffic.0")
    assert first.note == "endless has another in its place: 1 endless transfer forward."
    assert second.note == ""
    rows = {column.name: cells for column, cells in first.rows}
    assert rows["endless"] == (None,) * len(BLOCK)
    assert rows["small"][0].value > 0
    assert rows["small"][-1] is None, "there is nothing to measure it against, or it is the baseline"
    differing = {"small": "endless", "endless": "small"}[base]
    assert {column.name: cells for column, cells in second.rows}[differing][-1].value is not None
    terminal.comparison(Console(width=120), found)
    assert title in capsys.readouterr().out
    page = report.write(found)
    numbers = page.with_name("numbers.csv")
    assert "traffic.0,small,completed" in numbers.read_text() and "traffic.0,endless" not in numbers.read_text()
    assert "endless has another in its place" in page.read_text()


def test_bands_of_probes_that_would_hide_each_other_are_not_drawn(compiled):
    found = aqmlab.compare(MIXED, "pfifo limit 200p", "codel", "pie", "cake", reps=3, jobs=2, set={"duration": "4s"})
    drawn = figures.of(found)
    assert "Of more than 3 curves bands would hide each other, and none are drawn." in drawn["probes"].caption
    assert not any(panel.bands for panel in drawn["probes"].draw.args[0])
    assert all(panel.bands for panel in drawn["blocks"].draw.args[0])


def test_blocks_of_different_kinds_in_one_place_are_told_apart_and_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    head = OTHER_KINDS.split("[[variant]]")[0]
    small = '{ kind = "poisson", arrivals = "5hz", size = "10kb" }'
    files = '{ kind = "bulk", flows = 2, size = "200kb" }'
    text = f'{head}[[variant]]\nname = "small"\n[[variant]]\nname = "files"\ntraffic = [{files}, {small}]\n'
    found = aqmlab.compare(text, jobs=1, out=tmp_path / "out")
    first, second = (part for part in separately.of(found) if part.headings == BLOCK)
    assert first.title.startswith("Block traffic.0 (poisson): exchanges at random times")
    assert first.note.startswith("files has another in its place: ") and second.note == ""
    (_, of_files) = (cells for _, cells in first.rows)
    assert of_files[0].value > 0 and of_files[-1] is None
    (drawn,) = (one for one in figures.of_comparison(found) if one.name == "blocks")
    assert f" traffic.0: {first.note}" in drawn.caption


def test_a_variant_without_probes_stands_beside_one_with_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(engine, "native", NATIVE)
    text = """
        duration = "2s"
        link.rate = "2mbit"
        traffic = [{ kind = "bulk" }]
        [[variant]]
        name = "alone"
        [[variant]]
        name = "watched"
        traffic = [{ kind = "bulk" }, { kind = "probe", direction = "both", flows = 2 }]
    """
    found = aqmlab.compare(text, jobs=1, out=tmp_path / "out")
    terminal.comparison(Console(width=120), found)
    assert "watched" in capsys.readouterr().out
    assert "watched" in report.write(found).read_text()


def test_flows_are_called_by_their_number_where_variants_tell_them_apart_otherwise(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    text = """
        duration = "2s"
        link.rate = "2mbit"
        traffic = [{ kind = "bulk" }, { kind = "bulk", rtt = "80ms" }]
        [[variant]]
        name = "near"
        [[variant]]
        name = "far"
        set = { "traffic.1.rtt" = "200ms" }
    """
    found = aqmlab.compare(text, jobs=1, out=tmp_path / "out")
    (part,) = separately.goodputs(found.columns)
    assert [heading for heading, *_ in part.headings] == ["traffic.0 (bulk)", "traffic.1 (bulk)"]


def test_blocks_of_probes_are_called_as_they_are_in_each_variant(tmp_path, monkeypatch, capsys):
    """The baseline has fewer blocks: it has none with the number of the other's probes."""
    monkeypatch.setattr(engine, "native", NATIVE)
    probe = '{ kind = "probe", direction = "both", flows = 2 }'
    text = f"""
        duration = "2s"
        link.rate = "2mbit"
        path.rtt = "40ms"
        traffic = [{probe}]
        [[variant]]
        name = "one"
        [[variant]]
        name = "three"
        traffic = [{{ kind = "cbr", rate = "1mbit" }}, {probe}, {probe}]
    """
    found = aqmlab.compare(text, jobs=1, out=tmp_path / "out")
    notes = [part.note for part in separately.of(found) if part.headings == PROBES]
    assert notes == ["one: probe; three: traffic.1 (probe) and traffic.2 (probe); of each variant together."] * 2
    terminal.comparison(Console(width=120), found)
    assert notes[0] in capsys.readouterr().out
    assert notes[0] in report.write(found).read_text()


DIFFERENT = """
duration = "2s"
link.rate = "2mbit"
path.rtt = "40ms"
[[traffic]]
kind = "poisson"
arrivals = "5hz"
size = "10kb"
application = "pages"
[[traffic]]
kind = "bulk"
flows = 1
[[variant]]
name = "whole"
"""
PAGES = '{ kind = "poisson", arrivals = "5hz", size = "10kb", application = "pages" }'
OTHERS = {
    "more": f'traffic = [{PAGES}, {{ kind = "bulk", flows = 1 }}, {{ kind = "video", viewers = 1 }}]',
    "fewer": f"traffic = [{PAGES}]",
    "no TCP": 'traffic = [{ kind = "cbr", rate = "1mbit" }]',
    "all lost": "path.loss = 1.0",
}


def _of_variants(*names):
    return DIFFERENT + "".join(f'[[variant]]\nname = "{name}"\n{OTHERS[name]}\n' for name in names)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("reps", [1, 2])
def test_variants_of_different_traffic_have_tables(tmp_path, monkeypatch, capsys, name, reps):
    monkeypatch.setattr(engine, "native", NATIVE)
    base = name if reps > 1 else "whole"
    found = aqmlab.compare(_of_variants(name), baseline=base, reps=reps, jobs=1, out=tmp_path / "out")
    terminal.comparison(Console(width=120), found)
    out = capsys.readouterr().out
    assert out.count(f" {name} ") >= 2 and " nan" not in out and " inf" not in out


def test_variants_of_different_traffic_have_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    page = report.write(aqmlab.compare(_of_variants(*OTHERS), jobs=1, out=tmp_path / "out"))
    numbers = page.with_name("numbers.csv").read_text()
    assert "measures,no TCP,forward.utilisation" in numbers and "nan" not in numbers and "inf" not in numbers
