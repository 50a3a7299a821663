"""Pages of readers, found in the tables of runs."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from aqmlab import api, engine
from aqmlab.results import pages
from aqmlab.results.run import Run
from conftest import NATIVE

READERS = {"kind": "web", "model": "archive2024"}


@pytest.fixture(autouse=True)
def real_engine(stand_in: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", NATIVE)


def written(
    folder: Path, rows: Sequence[tuple[int, float, float, int]], asked: Sequence[tuple[float, int]] = ()
) -> Path:
    """Exchanges as reader, start and response time in seconds, and bytes; what was asked for as time and bytes."""
    pl.DataFrame(
        {
            "traffic": [0] * len(rows),
            "source": [row[0] for row in rows],
            "start_ns": [round(row[1] * 1e9) for row in rows],
            "response_time_ns": [round(row[2] * 1e9) for row in rows],
            "response_bytes": [row[3] for row in rows],
        }
    ).write_parquet(folder / "exchanges.parquet")
    if asked:
        lines = [f"{number},{at},,,420,{size},0,0" for number, (at, size) in enumerate(asked)]
        heading = "connection,at_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last"
        # A line without bytes is a connection that is closed.
        (folder / "demands-0.csv").write_text("\n".join([heading, *lines, "1,3,,,,,,"]) + "\n", encoding="utf-8")
    return folder


def test_a_page_is_what_touches_in_time(tmp_path: Path) -> None:
    rows = [
        # The document, two objects when it is there, one more of the next wave; then 2 s of reading and another page.
        (0, 10.0, 0.5, 100),
        (0, 10.5, 0.2, 200),
        (0, 10.5, 0.75, 300),
        (0, 11.25, 0.25, 400),
        (0, 13.5, 1.0, 100),
        # Another reader, whose first page began before the window.
        (7, 4.9, 0.3, 100),
        (7, 5.2, 3.0, 100),
        (7, 9.0, 0.1, 100),
    ]
    found = pages.pages(written(tmp_path, rows), [READERS], (5.0, 20.0))
    assert found.rows() == [(0, 0, 10.0, 1.5, 4), (0, 0, 13.5, 1.0, 1), (0, 7, 9.0, pytest.approx(0.1), 1)]
    assert pages.within(found, 1.0, (5.0, 20.0)) == pytest.approx(2 / 3)
    assert pages.within(found, 1.2, (5.0, 14.0)) == pytest.approx(1 / 2)  # the second began too late to be judged
    assert pages.median_s(found, (5.0, 20.0)) == 1.0
    assert pages.pages(tmp_path, [{"kind": "web", "model": "unc2001"}], (5.0, 20.0)).equals(found)
    assert pages.pages(tmp_path, [{"kind": "web", "model": "kuzmanovic2005"}], (5.0, 20.0)).height == 0
    assert pages.pages(tmp_path, [READERS], (5.0, 20.0), among=[1]).height == 0


def test_what_never_came_is_no_part_of_a_loaded_page(tmp_path: Path) -> None:
    rows = [(0, 10.0, 0.5, 100), (0, 10.5, 0.2, 200), (1, 12.0, 0.25, 100)]
    asked = [(row[1], row[3]) for row in rows]
    window = (5.0, 20.0)
    loaded = pages.pages(written(tmp_path, rows, asked), [READERS], window)
    assert loaded["load_s"].to_list() == [0.7, 0.25]
    # An object of the first page that was asked for when another was there, and a page of which nothing came.
    missing = [*asked, (10.5, 999), (15.5, 100)]
    found = pages.pages(written(tmp_path, rows, missing), [READERS], window)
    assert found.rows() == [(0, 0, 10.0, None, 2), (0, 1, 12.0, 0.25, 1), (0, pages.NEVER, 15.5, None, 0)]
    assert pages.within(found, 2.0, window) == pytest.approx(1 / 3)
    assert pages.median_s(found, window) is None  # most were not loaded
    # What was asked for before the window or after it is no page of it.
    outside = [*asked, (4.5, 1), (20.5, 1)]
    assert pages.pages(written(tmp_path, rows, outside), [READERS], window).equals(loaded)


def test_a_page_that_was_not_loaded_took_longer_than_until_the_end() -> None:
    def median_s(*load_s: float | None, begun_s: float = 10.0) -> float | None:
        begun = [begun_s if load is None else 10.0 for load in load_s]
        found = pl.DataFrame({"begun_s": begun, "load_s": load_s}, schema_overrides={"load_s": float})
        return pages.median_s(found, (5.0, 30.0))

    # Those that were waited for as long as 20 s took longer than the others.
    assert median_s(3.0, 10.0, None, None) is None
    assert median_s(3.0, 10.0, None) == 10.0 and median_s(3.0, 4.0, 10.0, None) == 7.0
    # Those that were under way for 0.1 s at the end tell nothing.
    assert median_s(3.0, 4.0, 10.0, None, None, begun_s=29.9) == 4.0
    assert median_s(None) is None and median_s() is None


def test_real_hosts_ask_a_moment_later(tmp_path: Path) -> None:
    rows = [(0, 10.0, 0.5, 100), (0, 10.503, 0.2, 200), (0, 12.0, 0.1, 100)]
    found = pages.pages(written(tmp_path, rows, [(10.51, 7)]), [READERS], (5.0, 20.0), pages.LIVE_GAP_S)
    assert found.select("begun_s", "load_s", "exchanges").rows() == [(10.0, None, 2), (12.0, pytest.approx(0.1), 1)]


def test_seconds_as_written_are_whole_nanoseconds() -> None:
    assert [pages.nanoseconds(text) for text in ("0.123456789", "12", "3.5", "0.000000001")] == [
        123456789,
        12 * 10**9,
        3_500_000_000,
        1,
    ]


HOME = """
name = "home"
duration = "61s"
warmup = "5s"
[link]
rate = "16mbit"
reverse_rate = "2mbit"
qdisc = {{ kind = "bfifo", limit = "200kb" }}
[path]
rtt = "30ms"
[record]
demands = {demands}
[[traffic]]
kind = "homes"
homes = 4
browsing = 1
downloads = 0
video = 0
backups = 0
think = {{ exponential = "2s" }}
"""


def run_of(tmp_path: Path, demands: str) -> Run:
    file = tmp_path / f"{demands}.toml"
    file.write_text(HOME.format(demands=demands), encoding="utf-8")
    return api.run(file, out=tmp_path / demands).runs[0]


def reckoned(run: Run) -> list[tuple[int, float, float, int]]:
    """The pages again: exchanges of a reader that touch in time, joined until nothing touches any more."""
    first, _ = run.window
    rows = run.exchanges.filter(pl.col("traffic") == 0)
    found = []
    for reader in sorted(set(rows["source"])):
        own = rows.filter(pl.col("source") == reader)
        spans = [(a, a + took, 1) for a, took in own.select("start_ns", "response_time_ns").iter_rows()]
        while True:
            for k, (low, high, count) in enumerate(spans):
                touching = [j for j, (a, b, _) in enumerate(spans) if j != k and a <= high and low <= b]
                if touching:
                    a, b, more = spans[touching[0]]
                    joined = (min(a, low), max(b, high), more + count)
                    spans = [one for j, one in enumerate(spans) if j not in (k, touching[0])] + [joined]
                    break
            else:
                break
        found += [(reader, low / 1e9, (high - low) / 1e9, count) for low, high, count in spans if low >= first * 1e9]
    return sorted(found)


def test_pages_of_a_run_are_those_of_a_second_reckoning(tmp_path: Path) -> None:
    run = run_of(tmp_path, "false")
    assert run.scenario["traffic"][0]["users"] == 4
    found = sorted(run.pages.select("reader", "begun_s", "load_s", "exchanges").rows())
    assert found == [pytest.approx(row) for row in reckoned(run)] and len(found) > 15


def test_pages_of_web_users_are_whole(tmp_path: Path) -> None:
    """Objects follow each other at once, and a user thinks for a second at least: 5.44 objects are a page."""
    file = tmp_path / "web.toml"
    file.write_text(
        'duration = "100s"\nwarmup = "10s"\nlink.rate = "100mbit"\n[[traffic]]\nkind = "web"\nusers = 300\n'
        'direction = "forward"\nthink_mean = "8s"\nmodel = "unc2001"\n',
        encoding="utf-8",
    )
    run = api.run(file, out=tmp_path / "out").runs[0]
    found = run.pages
    assert sorted(found.select("reader", "begun_s", "load_s", "exchanges").rows()) == [
        pytest.approx(row) for row in reckoned(run)
    ]
    assert found.height > 2000 and 5 < found["exchanges"].mean() < 6
    ends = found.sort("reader", "begun_s").with_columns(end=pl.col("begun_s") + pl.col("load_s"))
    thought = (ends["begun_s"].shift(-1) - ends["end"]).filter(ends["reader"] == ends["reader"].shift(-1))
    assert thought.min() > 0.2


def test_demands_say_which_pages_were_not_loaded(tmp_path: Path) -> None:
    """On a slow link: the pages are the same, but for those under way at the end, of each reader one at most."""
    known, taken = run_of(tmp_path, "true").pages, run_of(tmp_path, "false").pages
    both = known.filter(pl.col("reader") != pages.NEVER)
    assert both.drop("load_s").equals(taken.drop("load_s"))
    under_way = known.filter(pl.col("load_s").is_null())
    assert 1 <= under_way.height <= 4
    last = taken.group_by("reader").agg(pl.col("begun_s").max())
    ends = dict(last.iter_rows())
    assert all(
        begun == ends[reader] for reader, begun in under_way.select("reader", "begun_s").iter_rows() if reader >= 0
    )
