"""Every number in a table of a page lies where the page says, by the name that the page gives it."""

import csv
import io
import json
import math
import tomllib

import numpy as np
import polars as pl
import pytest

import aqmlab
import studies
from aqmlab import cli, engine, report, separately, sweep
from aqmlab.comparison import Column, Comparison, Entry
from aqmlab.report.page import TIMES
from aqmlab.results import ways
from aqmlab.results.window import OF_WAY, TOGETHER
from aqmlab.study import compared, overview_page, prose
from aqmlab.study.overview_page import _number as hours
from aqmlab.sweep import making
from conftest import NATIVE, ROOT
from page_cells import BeautifulSoup, cells, is_width, shows, text
from test_links import NETWORK
from test_separately import MIXED


def read(folder, file):
    return json.loads((folder / file).read_text(encoding="utf-8"))


def below(value, name):
    """A number of a file by its dotted name."""
    for step in name.split("."):
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def interval(value):
    """Value and half width, of whatever kind a file has it."""
    return (value["value"], value["half_width_95"]) if isinstance(value, dict) else (value, None)


class Stored:
    """What lies in the folder of a page, found by what a cell says of itself and by nothing else."""

    def __init__(self, folder):
        self.folder = folder
        if (folder / "study.json").exists():
            self.columns = {}
        elif (folder / "comparison.json").exists():
            self.columns = {column.label: column.result.folder for column in Comparison(folder).columns}
        else:
            self.columns = {aqmlab.load(folder).name: folder}
        path = folder / "numbers.csv"
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.exists() else []
        self.numbers = {(row["table"], row["row"], row["measure"]): row for row in rows}
        assert len(self.numbers) == len(rows)

    def is_right(self, cell):
        """Whether a cell is what its file says."""
        match cell.file, cell.table:
            case "numbers.csv", "claims":
                found = self._row((cell.table, cell.row, cell.measure))
                return found[0] is None or said_in_claim(cell.text, *found)
            case "numbers.csv", _:
                return self._shown(cell, *self._row((cell.table, cell.row, cell.measure)))
            case "summary.json", _:
                summary = read(self.columns[cell.row], "summary.json")
                if cell.value_of:
                    return cell.text.removesuffix(" time") == below(summary, cell.value_of)
                if added := cell.tag.get("data-sum-of"):
                    return shows(cell.text, sum(below(summary, name) for name in added.split()), cell.scale)
                return self._shown(cell, below(summary, cell.measure), below(summary, f"half_width_95.{cell.measure}"))
            case "scenario.toml", _:
                return self._setting(cell)
            case "manifest.json", "":
                return cell.text == read(self.columns[cell.row], "manifest.json")[cell.value_of]
            case "manifest.json", "calibration":
                found = [one for own in self.columns.values() for one in read(own, "manifest.json")["calibration"]]
                own = next(one for one in found if one["key"] == cell.row)
                scale = 1e6 if cell.measure == "residual_rms_bps" else 1.0
                return shows(cell.text, own[cell.measure], scale)
            case "manifest.json", "settled":
                return self._settled(cell)
            case "manifest.json", "self_checks":
                name, detail = (text(one) for one in cell.tag.parent.find_all(attrs={"data-value-of": True}))
                label = next(label for label in self.columns if cell.row in (label, *self._runs(label)))
                checks = read(self.columns[label], "manifest.json")["self_checks"]
                run = cell.row.removeprefix(label).removeprefix(", ")
                return (run, name, detail) in [(one.get("run", ""), one["name"], one["detail"]) for one in checks]
            case (("agreement.json" | "study.json"), _) if " " in cell.table:
                return self._agreement(cell)
            case "study.json", "words":
                claim = next(one for one in read(self.folder, "study.json")["claims"] if one["id"] == cell.row)
                said = [cell.text == claim["verdict"]] if cell.value_of == "verdict" else []
                return all(said or [turn["said"].replace("`", "") in cell.text for turn in claim["hangs_on"]])
            case "study.json", "claims":
                return self._claim(cell)
            case "study.json", _:
                return self._study(cell)
        return cell.file.startswith("tables/") and self._table(cell)

    def _row(self, key):
        row = self.numbers.get(key)
        return (None, None) if row is None else tuple(float(row[name]) if row[name] else None for name in HEADS)

    def _shown(self, cell, value, width):
        right = shows(cell.text, value, cell.scale) and (not cell.width or is_width(cell.width, width, cell.scale))
        # What is signed is a difference, and says so.
        return right and (cell.text[:1] != "+" or "difference" in f"{cell.table}{cell.measure}")

    def _runs(self, label):
        return [f"{label}, {own.name}" for own in self.columns[label].glob("rep-*")]

    def _setting(self, cell):
        scenario = tomllib.loads((self.columns[cell.row] / "scenario.toml").read_text(encoding="utf-8"))
        key = cell.value_of.removesuffix(".rate").removesuffix(".kind").removesuffix(".qdisc")
        link = below(scenario, key)
        if cell.value_of == f"{key}.rate":
            rates = link["rate"], link.get("reverse_rate", link["rate"])
            return cell.text == rates[0] if rates[0] == rates[1] else cell.text == "{}, {} in reverse".format(*rates)
        if cell.value_of == f"{key}.qdisc.kind":
            return cell.text == link["qdisc"]["kind"]
        ways = cell.text.split("; in reverse ")
        own = [link["qdisc"], link.get("reverse_qdisc", link["qdisc"])]
        ways[1:] = [way.removeprefix(f"{own[1]['kind']}: ") for way in ways[1:]]
        given = [dict(item.split(" ", 1) for item in way.split(", ") if item) for way in ways]
        return cell.value_of == f"{key}.qdisc" and all(
            set(one) == set(qdisc) - {"kind", "ecn"}
            and all(str(qdisc[key]).lower() == item or shows(item, qdisc[key]) for key, item in one.items())
            for one, qdisc in zip(given, own, strict=False)
        )

    def _settled(self, cell):
        label, _, k = cell.row.rpartition(", run ")
        found = read(self.columns[label or cell.row], "manifest.json")["settled"]
        series = (found[int(k or 1) - 1] if isinstance(found, list) else found)["series"]
        name = text(cell.tag.parent.find(attrs={"data-value-of": "name"}))
        own = next(one for one in series if one["name"] == name)
        if cell.measure == "cut_s" and own["cut_s"] is None:
            return cell.text == "more than half"
        return cell.text == own["name"] if cell.value_of else shows(cell.text, own[cell.measure])

    def _agreement(self, cell):
        every = read(self.folder, cell.file)["agreements"]
        found = next(one for one in every if f"{one['name']}, {one['witness']}" == cell.table)
        own = next(one for one in found["findings"] if one["key"] == cell.row)
        if cell.measure == "tolerance_text":
            return cell.text == own["tolerance_text"]
        value, width = interval(below(own, cell.measure))
        said, _, wide = cell.text.partition(" ± ")
        return shows(said, value, cell.scale) and (not wide or is_width(f"± {wide}", width, cell.scale))

    def _claim(self, cell):
        every = [one for path in self.folder.rglob("study.json") for one in read(path.parent, path.name)["claims"]]
        claim = next(one for one in every if one["id"] == (cell.where or cell.row))
        if cell.where:
            own = next(one for one in claim["findings"] if one["label"] == cell.row)
            return cell.text == (own[cell.value_of] or "").removesuffix(f" ({own['note']})")
        if cell.value_of == "findings":
            rows = {one["label"]: one["number"] for one in claim["findings"]}
            lines = [line.find_all("span", recursive=False) for line in cell.tag.find_all("li")]
            return all(rows[text(line[0])].startswith(text(line[1]).split("published")[0]) for line in lines)
        said = claim[cell.value_of]
        said = text(BeautifulSoup(str(prose.inline(said)), "html.parser"))
        return cell.text.removeprefix("✓").removeprefix("✗").startswith(said)

    def _study(self, cell):
        if cell.table == "choices":
            return cell.text in [one[cell.value_of] for one in read(self.folder, "study.json")["choices"]]
        if cell.table == "grids":
            one = next(one for one in read(self.folder, "study.json")["grids"] if one["name"] == cell.row)
            return shows(cell.text, one[cell.measure]) if cell.measure else cell.text == one["title"]
        found = next(
            one for path in self.folder.rglob("study.json") if (one := read(path.parent, path.name))["id"] in cell.row
        )
        if cell.measure.startswith("claims.verdict="):
            verdicts = [claim["verdict"] for claim in found["claims"]]
            return cell.text.lstrip("✓✗?–") == str(verdicts.count(cell.measure.partition("=")[2]))
        value = below(found, cell.measure)
        return shows(cell.text, len(value) if isinstance(value, list) else value)

    def _table(self, cell):
        with (self.folder / cell.file).open(encoding="utf-8") as file:
            rows = {(row["row"], row["group"], row["measure"]): row for row in csv.DictReader(file)}
        heads = [text(head) for head in cell.heads]
        below = cell.tag.find_parent(attrs={"data-group": True})
        group = below["data-group"] if below else heads[0] if len(heads) == 2 else ""
        own = rows.get((cell.row, group, cell.measure))
        if own is None:
            return cell.text == ""
        value, width = (float(own[name]) if own[name] else None for name in HEADS)
        return heads[-1] == cell.measure and shows(cell.text, value) and (not cell.width or shows(cell.width, width))


VARIANTS = """
[[variant]]
name = "drop-tail"
[variant.links.core.qdisc]
kind = "pfifo"
[[variant]]
name = "pie"
[variant.links.core.qdisc]
kind = "pie"
"""

CHOICE = """
[[choice]]
what = "window of the hosts, in 1 of 2 places"
ours = "16 kB"
why = "the default of 2001"
"""

HEADS = ("value", "half_width_95")


def said_in_claim(said, value, width):
    """Whether a claim's text, in whatever unit it is, is its number: `+3.10 ± 0.40 points, at 300 ms`."""
    number, _, rest = said.partition(", ")[0].partition(" ± ")
    unit = (rest or number).split(" (")[0].split(" ")[1:]
    scale = {"points": 1e-2, "ms": 1e-3, "kB": 1e3}.get(unit[0] if unit else "", 1e-2 if unit[:1] == ["%"] else 1.0)
    return shows(number, value, scale) and (not rest or shows(rest, width, scale))


@pytest.fixture(scope="module")
def made():
    """What is made once: pages that are not changed."""
    return {}


@pytest.fixture
def pages(tmp_path, small, monkeypatch, made):
    """One page of every kind, with all the tables that there are."""
    if made:
        return made
    made |= {"run": report.write(aqmlab.run(small, out=tmp_path / "run", reps=2)).parent}
    demo = tmp_path / "demo.toml"
    demo.write_text((ROOT / "examples/demo.toml").read_text())
    short = {"duration": "30s", "warmup": "10s"}
    found = aqmlab.compare(demo, set=short, out=tmp_path / "demo")
    made["demo"] = report.write(found, compared.claims(found)).parent
    words = ["compare", str(small), "pfifo", "pi ecn", "uncongested", "--live", "--virtual", "--reps", "2", "--report"]
    assert cli.invoke([*words, "-o", str(tmp_path / "live")]) == 0
    made["live"] = tmp_path / "live"
    with monkeypatch.context() as patched:
        patched.setattr(engine, "native", NATIVE)
        mixed = aqmlab.compare(MIXED, "pfifo limit 200p", "codel", reps=2, jobs=1, out=tmp_path / "mixed")
        network = aqmlab.compare(NETWORK + VARIANTS, jobs=1, out=tmp_path / "network")
    made["mixed"] = report.write(mixed, compared.claims(mixed)).parent
    made["network"] = report.write(network, compared.claims(network)).parent
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["study", str(studies.write(tmp_path / "tiny", studies.STUDY + CHOICE))]) == 0
    made["study"] = tmp_path / "results/study-tiny"
    return made


TABLES = {
    "run": {"measures", "settled", "self_checks", "summary.json", "scenario.toml"},
    "demo": {"measures", "difference_to_baseline", "claims", "calibration", "settled", "self_checks"},
    "live": {"measures", "difference_to_baseline", "pi ecn, live", "pi ecn, virtual"},
    "mixed": {"traffic.0", "traffic.2", "probes.forward", "probes.reverse", "summary.json"},
    "network": {"measures", "difference_to_baseline", "summary.json", "scenario.toml"},
    "study": {"claims", "grids", "choices", "tables/table-link.csv"},
}
"""What each page must have of them, so that none is right for being empty."""


def test_every_number_of_a_page_is_in_its_table_by_its_name(pages):
    for kind, folder in pages.items():
        page = (folder / "report.html").read_text(encoding="utf-8")
        names = {text(code) for code in BeautifulSoup(page, "html.parser").select(".names code")}
        stored, found = Stored(folder), cells(page)
        for cell in found:
            where = f"{kind}: {cell.tag}"
            assert cell.file and (cell.measure or cell.value_of), f"{where} does not say where it lies"
            assert stored.is_right(cell), f"{where} is not what {cell.file} has, {cell.table}, {cell.row}"
            heads = [text(head) for head in cell.heads] + [str(head.get("title", "")) for head in cell.heads]
            name = cell.measure or cell.value_of
            shown = {*names, *heads, text(cell.tag.find_previous("dt") or cell.tag)}
            assert any(name == one or name.endswith(f".{one}") for one in shown if one), f"{where}: nobody sees {name}"
        assert {cell.table or cell.file for cell in found} >= TABLES[kind]


def test_the_page_of_studies_says_what_they_found(pages):
    folder = pages["study"].parent
    found = {**read(pages["study"], "study.json"), "report": "study-tiny/report.html"}
    page = overview_page.write_overview([found], folder).read_text(encoding="utf-8")
    stored = Stored(pages["study"])
    for cell in cells(page):
        assert stored.is_right(cell), str(cell.tag)
    assert hours(found["simulated_h"]) in page


def of_link(columns):
    """Of each direction with data, and of both together."""
    there = ways.of_data([summary for column in columns for summary in column.summaries])
    return (*(f"{way}.{name}" for way in there for name in OF_WAY), *TOGETHER)


def test_the_numbers_beside_a_page_are_those_of_the_python_interface(pages):
    for kind in ("run", "demo", "live", "mixed"):
        found, expected = aqmlab.load(pages[kind]), {}
        if isinstance(found, Comparison):
            columns = found.columns
            asked = [(claim.id, one.label, one.interval) for claim in compared.claims(found) for one in claim.findings]
            expected |= {("claims", name, label): one for name, label, one in asked}
            parts = separately.of(found)
            expected |= {
                (part.table, column.label, name): one
                for part in parts
                for column, each in part.rows
                for (_, _, name), one in zip(part.headings, each, strict=True)
                if one is not None
            }
            expected |= {
                ("difference_to_baseline", column.label, name): found.difference(column, found.base_of(column), name)
                for column in columns
                for name in (*of_link(columns), *TIMES)
                if column is not found.base_of(column) and not (column.uncongested and name in of_link(columns))
            }
        else:
            columns = [Column(Entry(found.name, ".", uncongested=False), found)]
        names = (*of_link(columns), *TIMES)
        expected |= {("measures", c.label, name): c.estimate(name) for c in columns for name in names}
        rows = Stored(pages[kind]).numbers
        assert set(rows) == set(expected)
        for key, one in expected.items():
            for name, value in (("value", one.value), ("half_width_95", one.half_width)):
                known = value is not None and math.isfinite(value)
                assert (float(rows[key][name]) if rows[key][name] else None) == (value if known else None), key
            assert (int(rows[key]["n"]), rows[key]["basis"]) == (one.n, one.basis)


def test_blocks_and_probes_are_those_of_the_runs_tables(pages):
    rows = Stored(pages["mixed"]).numbers

    def told(table, name, of_run):
        runs = sorted((pages["mixed"] / "codel").glob("rep-*"))
        assert float(rows[table, "codel", name]["value"]) == pytest.approx(np.mean([of_run(run) for run in runs]))

    def times(run):
        return pl.read_parquet(run / "exchanges.parquet").filter(traffic=2)["response_time_s"].to_numpy()

    def delays(run):
        return pl.read_parquet(run / "probes.parquet").filter(direction=1)["delay_s"]

    told("traffic.2", "completed", lambda run: len(times(run)))
    told("traffic.2", "p90", lambda run: np.quantile(times(run), 0.9, method="inverted_cdf"))
    told("probes.reverse", "loss_ratio", lambda run: delays(run).is_null().mean())
    told(
        "probes.reverse",
        "one_way_delay_s.p50",
        lambda run: np.quantile(delays(run).drop_nulls(), 0.5, method="inverted_cdf"),
    )


def test_a_number_that_is_rounded_otherwise_is_seen():
    assert shows("12.3", 0.0123, 1e-3) and not shows("12.4", 0.0123, 1e-3)
    assert shows("98.02 Mb/s", 98.021e6) and not shows("98.02 kb/s", 98.021e6)
    assert shows("± 0.4", 0.0041, 1e-2) and shows("−3", -0.03, 1e-2) and not shows("3", -0.03, 1e-2)
    assert is_width("± 0.01", 0.000041, 1e-2) and is_width("± 0.41", 0.0041, 1e-2)
    assert not is_width("± 0.02", 0.000041, 1e-2) and not is_width("(too few runs)", 0.41, 1e-2)
    assert shows("–", None) and not shows("0", None) and not shows("–", 1.0)
