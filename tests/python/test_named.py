"""Every number of `numbers.csv` can be asked for by its name, and what is no name is told what there is."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from aqmlab import BadInput, api, engine, report
from aqmlab.comparison import Comparison
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
        *("probes.forward", "probes.reverse", "links.cable.forward", "links.cable.reverse", "links.core.forward"),
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
            r"traffic\.N\. .*as in traffic\.2\.completed; probes\.forward\. .*; "
            r"applications\.NAME\. .*applications\.calls\.mos_mean",
        ),
    ],
)
def test_what_is_no_name_is_told_what_there_is(found: Comparison, name: str, said: str) -> None:
    for ask in (found["long"].estimate, lambda name: found.difference("short", "long", name)):
        with pytest.raises(BadInput, match=rf"^'{name}': no measure; {said}"):
            ask(name)
