"""Every number of `numbers.csv` can be asked for by its name, and what is no name is told what there is."""

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import polars as pl
import pytest

from aqmlab import BadInput, api, engine, report, statistics
from aqmlab.comparison import Comparison
from aqmlab.results import named
from aqmlab.results.named import Numbers
from aqmlab.results.run import Run
from aqmlab.results.window import Window
from aqmlab.separately import AGAINST
from conftest import NATIVE

EVERYTHING = """
name = "everything"
duration = "6s"
warmup = "1s"
[links.cable]
rate = "8mbit"
reverse_rate = "2mbit"
[links.core]
rate = "10mbit"
[[traffic]]
kind = "bulk"
flows = 2
route = ["cable", "core"]
[[traffic]]
kind = "bulk"
direction = "reverse"
route = ["cable", "core"]
[[traffic]]
kind = "poisson"
arrivals = "8hz"
size = "10000b"
route = ["cable", "core"]
[[traffic]]
kind = "poisson"
arrivals = "8hz"
size = "20000b"
route = ["core"]
[[traffic]]
kind = "probe"
flows = 2
direction = "both"
application = "calls"
route = ["cable", "core"]
[[variant]]
name = "long"
links.cable.qdisc = { kind = "pfifo", limit = "100p" }
[[variant]]
name = "short"
links.cable.qdisc = { kind = "pfifo", limit = "10p" }
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Comparison]:
    folder = tmp_path_factory.mktemp("named")
    (folder / "everything.toml").write_text(EVERYTHING, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        yield api.compare(folder / "everything.toml", out=folder / "out", reps=2, jobs=1)


def numbers(folder: Path) -> list[dict[str, str]]:
    with (folder / "numbers.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_a_page_has_can_be_asked_for_by_name(found: Comparison) -> None:
    report.write(found)
    tables = set()
    for row in numbers(found.folder):
        table, measure = row["table"], row["measure"]
        before = "" if table in ("measures", "difference_to_baseline", "goodput") else f"{table}."
        name = f"{before}{measure.removeprefix(AGAINST)}"
        if table == "difference_to_baseline" or measure.startswith(AGAINST):
            asked = found.difference(row["row"], "long", name)
        else:
            asked = found[row["row"]].estimate(name)
            assert found.column(row["row"]).estimate(name) == asked
        said = [float(row[key]) if row[key] else None for key in ("value", "half_width_95")]
        value = asked.value if math.isfinite(asked.value) else None
        assert said == [value, asked.half_width] and (int(row["n"]), row["basis"]) == (asked.n, asked.basis), name
        tables.add(table)
    assert {
        *("measures", "difference_to_baseline", "goodput", "traffic.2", "traffic.3", "applications.calls"),
        *(
            "probes.forward",
            "probes.reverse",
            "probes.round_trip",
            "links.cable.forward",
            "links.cable.reverse",
            "links.core.forward",
        ),
    } <= tables


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("applications.calls.mos_men", r"did you mean applications\.calls\.mos_mean\?"),
        ("mos_mean", r"did you mean applications\.calls\.mos_mean\?"),
        ("links.core.utilisation", r"did you mean links\.core\.(forward|reverse)\.utilisation\?"),
        ("traffic.2", r"expected one of traffic\.2\.completed, traffic\.2\.p50, traffic\.2\.p90, traffic\.2\.share_"),
        (
            "nothing like it",
            r"expected one of utilisation, .*; forward\. or reverse\. before .*; links\.NAME\.forward\. .*; "
            r"traffic\.N\. .*as in traffic\.2\.completed; probes\.forward\., .*; "
            r"applications\.NAME\. .*applications\.calls\.mos_mean",
        ),
    ],
)
def test_what_is_no_name_is_told_what_there_is(found: Comparison, name: str, said: str) -> None:
    for ask in (found["long"].estimate, lambda name: found.difference("short", "long", name)):
        with pytest.raises(BadInput, match=rf"^'{name}': no measure; {said}"):
            ask(name)


def frames_run(folder: Path, delays_s: Sequence[float | None]) -> Numbers:
    """The numbers of a run with so many frames of real-time video, which came so late or not at all."""
    return numbers_of(
        folder,
        '[[traffic]]\nkind = "rtp_video"\nflows = 1\n',
        frames=pl.DataFrame(
            {"traffic": [0] * len(delays_s), "delay_s": delays_s, "bytes": [1000] * len(delays_s)},
            schema={"traffic": pl.Int64, "delay_s": pl.Float64, "bytes": pl.Int64},
        ),
    )


def numbers_of(folder: Path, traffic: str, **tables: pl.DataFrame) -> Numbers:
    """The numbers of a run of 60 s, 50 measured, with these blocks and tables."""
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(f'duration = "60s"\nwarmup = "10s"\n{traffic}', encoding="utf-8")
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    manifest = {"seed": 1, "digest": "", "scenario_digest": "", "version": "", "self_checks": []}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps({"forward": {}, "reverse": {}, "exchanges": {}}), encoding="utf-8")

    def window() -> Window:
        raise AssertionError("figures of applications ask for no window")

    return Numbers(Run(folder), window)


def starving(folder: Path) -> tuple[list[Numbers], list[Numbers]]:
    """Five runs of 40 ms, and five of which three lost every frame and two have 20 ms."""
    steady = [frames_run(folder / f"a{k}", [0.040 + k / 1e4] * 20) for k in range(5)]
    late = [frames_run(folder / f"b{k}", [0.020 + k / 1e4 if k < 2 else None] * 20) for k in range(5)]
    return steady, late


def test_a_run_in_which_everything_was_lost_is_not_left_out_of_a_mean(tmp_path: Path) -> None:
    name = "applications.live.delay_p99_s"
    steady, late = starving(tmp_path)
    assert named.estimate(steady, name).value == pytest.approx(0.0402)
    found = named.estimate(late, name)
    assert math.isnan(found.value) and found.half_width is None and found.as_dict()["value"] is None
    for are_paired in (True, False):
        difference = named.difference(late, steady, name, are_paired)
        assert math.isnan(difference.value) and difference.half_width is None
    # What all runs have is a number as before.
    assert named.estimate(late, "applications.live.lost").value == pytest.approx(3 / 5)


class Told:
    """A run that has one number."""

    def __init__(self, value: float) -> None:
        self.window = SimpleNamespace(figures={"forward.queue_delay_p99_s": value}, links={})
        self.names: list[str] = []
        self.measure = lambda _: value
        self.parts = lambda _: None


@pytest.mark.parametrize("are_paired", [True, False])
def test_a_quantile_off_a_histogram_is_known_to_within_its_bin(are_paired: bool) -> None:
    """0.3 s and 0.2 s lie in bins of 2^14 and 2^13 units of 100 ns."""
    slow, fast = ([cast(Numbers, Told(value))] * 3 for value in (0.3, 0.2))
    name = "forward.queue_delay_p99_s"
    assert named.estimate(slow, name).half_width == pytest.approx(0.0016384)
    assert named.difference(slow, fast, name, are_paired).half_width == pytest.approx(0.0016384 + 0.0008192)
    assert named.estimate(slow[:1], name).half_width is None


def test_a_run_in_which_nobody_asked_for_anything_is_left_out(tmp_path: Path) -> None:
    name = "applications.live.delay_p99_s"
    runs = [frames_run(tmp_path / "some", [0.040] * 20), frames_run(tmp_path / "none", [])]
    assert runs[1].measure(name) is None
    assert named.estimate(runs, name) == statistics.Interval(pytest.approx(0.040), None, 1, "none")
    assert named.difference(runs, runs, name, are_paired=True).value == 0.0
    # Of pages that is known where demands were written down, and where not there is no number.
    reader = '[[traffic]]\nkind = "web"\nmodel = "archive2024"\n'
    columns = {"start_ns": pl.Int64, "response_time_ns": pl.Int64, "response_bytes": pl.Int64, "start_s": pl.Float64}
    others = {"traffic": pl.Int64, "source": pl.Int64, "response_time_s": pl.Float64}
    table = pl.DataFrame(schema=columns | others)
    known, unknown = (
        numbers_of(tmp_path / word, f"record.demands = {word}\n{reader}", exchanges=table) for word in ("true", "false")
    )
    for figure in ("share_in_2s", "load_median_s"):
        asked = f"applications.pages.{figure}"
        assert known.measure(asked) is None and math.isnan(unknown.measure(asked) or 0.0)
