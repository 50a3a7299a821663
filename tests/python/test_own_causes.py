"""Causes of a law's own: counted by themselves and in their kind, the same however the law is written. Needs the
compiled engine."""

import json
from pathlib import Path

import polars as pl
import pytest

import aqmlab
from aqmlab import cli
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.laws import brought
from own_laws import SCENARIO, library

LAW = '''
import aqmlab


@aqmlab.law{how}
class Careful:
    """Signals for two causes of its own, and for one that all laws have."""

    BURST = aqmlab.cause("Every fiftieth packet.")
    LONG = aqmlab.cause("A queue of 60 packets or more.", kind=aqmlab.FORCED)
    NEVER = aqmlab.cause("It never comes to that.")

    seen = 0

    def on_arrival(self, packet):
        self.seen += 1
        if packet.backlog_packets >= 60:
            return aqmlab.SIGNAL + self.LONG
        if self.seen % 50 == 0:
            return aqmlab.DROP + self.BURST
        if self.seen % 70 == 0:
            return aqmlab.DROP + aqmlab.OVERLOAD
        return aqmlab.PASS
'''

DISCIPLINE = '''
from collections import deque

import aqmlab


@aqmlab.discipline
class Careful:
    """Does what the law does, and holds the packets."""

    BURST = aqmlab.cause("Every fiftieth packet.")
    LONG = aqmlab.cause("A queue of 60 packets or more.", kind=aqmlab.FORCED)
    NEVER = aqmlab.cause("It never comes to that.", kind=aqmlab.TAIL)

    def __init__(self):
        self.seen, self.held = 0, deque()

    def offer(self, packet, queue):
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
            return
        self.seen += 1
        if queue.backlog_packets >= 60:
            if not packet.may_mark:
                queue.drop(packet, self.LONG)
                return
            queue.mark(packet, self.LONG)
        elif self.seen % 50 == 0:
            queue.drop(packet, self.BURST)
            return
        elif self.seen % 70 == 0:
            queue.drop(packet, aqmlab.OVERLOAD)
            return
        self.held.append(packet)

    def take(self, queue):
        return self.held.popleft() if self.held else None
'''

IN_C = """
#include "aqmlab_law.h"

struct careful { int64_t seen; };

static int32_t arrival(void *state, const struct aqmlab_facts *facts) {
    struct careful *law = state;
    law->seen++;
    if (facts->backlog_packets >= 60) return AQMLAB_SIGNAL + 2 * AQMLAB_OWN;
    if (law->seen % 50 == 0) return AQMLAB_DROP + AQMLAB_OWN;
    return law->seen % 70 == 0 ? AQMLAB_DROP + @OTHER@ : AQMLAB_PASS;
}

static const struct aqmlab_cause causes[] = {
    {"burst", "Every fiftieth packet.", AQMLAB_EARLY},
    {"long", "A queue of 60 packets or more.", AQMLAB_FORCED},
    {"never", "It never comes to that.", AQMLAB_EARLY},
};

static const struct aqmlab_law law = {
    .version = AQMLAB_LAW_VERSION, .state_bytes = sizeof(struct careful), .name = "careful", .marks = 1,
    .causes = causes, .causes_count = 3, .tick_param = -1, .on_arrival = arrival,
};

const struct aqmlab_law *aqmlab_law_table(void) { return &law; }
"""


@pytest.fixture(autouse=True)
def compiled_engine(compiled):
    """Every test needs it."""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "careful.py"
    path.write_text(text)
    return path


def in_c(tmp_path: Path, other: str = "AQMLAB_OVERLOAD", causes: str = "") -> Path:
    source = tmp_path / "careful.c"
    text = IN_C.replace("@OTHER@", other)
    source.write_text(text.replace('{"long"', causes) if causes else text)
    return library("careful", tmp_path, source=source)


def a_run(link: Path, law: Path, qdisc: str = "", **more) -> aqmlab.Result:
    brought.allow(law)
    words = {"kind": qdisc, "law": str(law)} if qdisc else {"kind": str(law)}
    kind = {"link.qdisc": {**words, **more}}
    return aqmlab.run(link, set={**kind, "record.drops": True}, out=law.parent / f"out{law.suffix}")


@pytest.mark.parametrize("how", ["", "(compiled=False)"])
@pytest.mark.parametrize("qdisc", ["", "fq_careful"])
def test_they_are_counted_by_themselves_and_in_their_kind(link, tmp_path, how, qdisc):
    found = a_run(link, written(tmp_path, LAW.replace("{how}", how)), qdisc, ecn=True, limit="80p")
    forward = found.summary["forward"]
    own, dropped, marked = forward["own_causes"], forward["dropped_by_cause"], forward["marked_by_cause"]
    assert {name: one["kind"] for name, one in own.items()} == {"burst": "early", "long": "forced", "never": "early"}
    assert own["never"] == {"kind": "early", "dropped": 0, "marked": 0}
    assert 10 < own["burst"]["dropped"] == dropped["early"] and own["burst"]["marked"] == 0
    assert own["long"] == {"kind": "forced", "dropped": dropped["forced"], "marked": marked["forced"]}
    assert dropped["overload"] > 10 and (qdisc or own["long"]["marked"] > 10)
    assert sum(dropped.values()) == forward["dropped_packets"] and sum(marked.values()) == forward["marked_packets"]
    # The table of losses has their names, over the whole run.
    (run,) = found.runs
    rows = pl.read_parquet(run.folder / "drops.parquet").filter(pl.col("direction") == 0)
    lost = rows.filter(pl.col("action") == "drop")
    seen = dict(lost.group_by("cause").len().iter_rows())
    assert set(seen) <= {"burst", "long", "overload", "tail"} and seen["burst"] >= own["burst"]["dropped"]
    window = lost.filter(pl.col("time_s").is_between(2.0, 12.0) & (pl.col("cause") == "burst"))
    assert window.height == own["burst"]["dropped"]


def test_they_are_the_same_however_the_law_is_written(link, tmp_path):
    laws = {"compiled": written(tmp_path, LAW.replace("{how}", "")), "c": in_c(tmp_path)}
    (tmp_path / "held").mkdir()
    laws["discipline"] = written(tmp_path / "held", DISCIPLINE)
    found = {name: a_run(link, law, ecn=True, limit="80p").summary["forward"] for name, law in laws.items()}
    # The discipline's third counts as another kind, of which a law has none.
    assert [one["own_causes"].pop("never")["kind"] for one in found.values()] == ["early", "early", "tail"]
    assert found["compiled"] == found["c"] == found["discipline"]


def test_no_other_discipline_has_any(link):
    assert aqmlab.run(link, set={"link.qdisc": "red"}).summary["forward"]["own_causes"] == {}


def test_they_are_explained_and_shown(link, tmp_path, capsys, monkeypatch, undrawn):
    monkeypatch.chdir(tmp_path)
    law = written(tmp_path, LAW.replace("{how}", ""))
    assert cli.invoke(["explain", str(law)]) == 0
    said = capsys.readouterr().out
    assert "its own cause" in said and "long" in said and "forced" in said and "A queue of 60 packets" in said
    assert cli.invoke(["explain", str(law), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    causes = told["causes"] if "causes" in told else told["rows"][0]["causes"]
    assert causes[0] == {"name": "burst", "kind": "early", "doc": "Every fiftieth packet."}
    assert cli.invoke(["compare", str(link), str(law), "pfifo", "--reps", "2", "--report", "-o", "out"]) == 0
    page = (tmp_path / "out/report.html").read_text()
    assert page.count("burst (early)") == 2 and "forward.own_causes.long.marked" in page


def test_what_is_no_cause_is_refused(link, tmp_path):
    with pytest.raises(BadInput, match=r"careful.py:\d+: Careful.LONG: kind: 8: expected aqmlab.EARLY, aqmlab.FORCED"):
        brought.of_file(written(tmp_path, LAW.replace("{how}", "").replace("kind=aqmlab.FORCED", "kind=aqmlab.TAIL")))
    twice = LAW.replace("{how}", "(compiled=False)").replace("NEVER =", "burst =")
    with pytest.raises(BadInput, match=r"careful: the cause burst is there already: expected another name"):
        brought.of_file(written(tmp_path, twice))
    known = LAW.replace("{how}", "(compiled=False)").replace("NEVER =", "Tail =")
    with pytest.raises(BadInput, match=r"careful: the cause tail is there already: expected another name"):
        brought.of_file(written(tmp_path, known))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("4 * AQMLAB_OWN", r"signals for cause 4 of its own, and declares 3"),
        ("AQMLAB_OWN + AQMLAB_FORCED", r"signals for 272, which is no cause"),
        ("AQMLAB_TAIL", r"answered 9, which is no verdict"),
    ],
)
def test_a_cause_that_was_not_declared_ends_the_run(link, tmp_path, other, said):
    with pytest.raises(Misbehaved, match=said):
        a_run(link, in_c(tmp_path, other))


def test_a_cause_of_no_kind_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"careful: the cause odd is of kind 9, which there is not"):
        brought.of_file(in_c(tmp_path, causes='{"odd", "Odd.", 9}, {"long"'))


def test_other_processes_have_them(link, tmp_path):
    law = written(tmp_path, LAW.replace("{how}", "(compiled=False)"))
    here = a_run(link, law, limit="80p").summary["forward"]["own_causes"]
    found = aqmlab.compare(link, f"{law} limit 80p", "pfifo", reps=2, jobs=2, out=tmp_path / "compared")
    assert found.columns[0].result.runs[0].summary["forward"]["own_causes"] == here


def test_a_sweep_has_a_column_of_each(link, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, LAW.replace("{how}", ""))
    link.write_text(SCENARIO.replace('"12s"', '"4s"'))
    laws = '{ name = "mine", set = { "link.qdisc" = { kind = "./careful.py", limit = "80p" } } }, { name = "other" }'
    grid = f'name = "g"\nscenario = "link.toml"\n[[grid]]\nname = "g"\n[[grid.axis]]\nname = "aqm"\nvalue = [{laws}]\n'
    Path("grid.toml").write_text(grid)
    assert cli.invoke(["sweep", "grid.toml", "--allow-code", "-o", "out"]) == 0
    mine, other = pl.read_parquet("out/runs.parquet").sort("aqm").iter_rows(named=True)
    assert mine["forward_own_causes_burst_dropped"] == mine["forward_dropped_by_cause_early"] > 0
    assert other["forward_own_causes_burst_dropped"] is None and "forward_own_causes" not in mine
