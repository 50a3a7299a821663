import textwrap
import tomllib

import pytest

from aqmlab import units
from aqmlab.errors import BadInput
from aqmlab.sweep import axes, grid, sweeps
from aqmlab.sweep.grid import select
from conftest import ROOT

BASE = """
[scenario]
duration = "30s"
[scenario.link]
rate = "10mbit"
qdisc = { kind = "pfifo", limit = "24p" }
reverse_qdisc = { kind = "pfifo", limit = "240p" }
[[scenario.traffic]]
kind = "web"
users = 100
"""

WEB = """
[[grid]]
name = "web"
[[grid.axis]]
name = "aqm"
[[grid.axis.value]]
name = "pfifo-24"
label = "drop-tail 24"
[[grid.axis.value]]
name = "pi-24"
link.qdisc = { kind = "pi", qref = "24p" }
[[grid.axis.value]]
name = "uncongested"
uncongested = true
[[grid.axis]]
name = "ecn"
value = [{ name = "off" }, { name = "on", set = { "tcp.ecn" = "on", "link.qdisc.ecn" = true } }]
[[grid.axis]]
name = "users"
key = "traffic.0.users"
values = [100, 200]
[[grid.skip]]
aqm = ["pfifo-24", "uncongested"]
ecn = "on"
"""


def read(text: str, **changes: object) -> list[grid.Grid]:
    return grid.read(tomllib.loads(textwrap.dedent(text)), "grid.toml", changes)


def points(text: str) -> list[grid.Point]:
    return [point for one in read(text) for point in one.points]


def test_a_grid_is_the_product_of_its_axes_without_what_it_skips():
    found = points(BASE + WEB)
    assert [point.name for point in found] == [
        *("web/pfifo-24/off/100", "web/pfifo-24/off/200"),
        *("web/pi-24/off/100", "web/pi-24/off/200", "web/pi-24/on/100", "web/pi-24/on/200"),
        *("web/uncongested/off/100", "web/uncongested/off/200"),
    ]
    first, marking = found[0], found[5]
    assert first.at == {"aqm": "pfifo-24", "ecn": "off", "users": "100"}
    assert first.label == "drop-tail 24, off, 100" and first.numbers == {"users": 100.0}
    assert [point.uncongested for point in found] == [False] * 6 + [True] * 2
    tree = marking.source.tree
    assert tree["tcp"] == {"ecn": "on"} and tree["traffic"][0]["users"] == 200
    assert tree["link"]["qdisc"] == {"kind": "pi", "qref": "24p", "ecn": True}  # replaced whole, then set


def test_what_is_said_of_the_queue_is_said_of_both_directions():
    found = points(BASE + WEB)
    assert "reverse_qdisc" not in found[2].source.tree["link"]
    assert found[0].source.tree["link"]["reverse_qdisc"] == {"kind": "pfifo", "limit": "240p"}


def test_the_guide_says_what_its_example_comes_to():
    text = (ROOT / "docs/guide/sweeps.md").read_text()
    found = points(text.partition("```toml\n")[2].partition("```")[0])
    assert "web/pi-24/on/90" in {point.name for point in found} and len(found) == 8
    assert "This grid has 8 of them, hence 24 runs." in text
    keys = {"grid": grid.GRID_KEYS, "axis": axes.AXIS_KEYS, "value": axes.VALUE_KEYS, "file": sweeps.KEYS}
    assert all(f"`{key}`" in text or f"{key}]]`" in text for each in keys.values() for key in each)


AQM = """
[[grid.axis]]
name = "aqm"
value = [{ name = "pi", link.qdisc = { kind = "pi", limit = "480p" } }, { name = "red", link.qdisc = { kind = "red" } }]
"""
ECN = """
[[grid.axis]]
name = "ecn"
value = [{ name = "off" }, { name = "on", set = { "tcp.ecn" = "on", "link.qdisc.ecn" = true } }]
"""
LIMIT = """
[[grid.axis]]
name = "limit"
key = "link.qdisc.limit"
values = ["24p", "240p"]
"""
ONE = BASE + "[[grid]]\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        # Hosts with ECN before a queue that drops, and called "on".
        (
            ECN + AQM,
            "grid.0 (grid).axis.1 (aqm): link.qdisc.ecn: axis ecn (on) sets it to True, and the table of axis aqm (pi) "
            "takes it away in grid/on/pi; expected axis ecn after it in the file",
        ),
        (
            LIMIT + AQM,
            "link.qdisc.limit: axis limit (24p) sets it to '24p', and the table of axis aqm (pi) makes it '480p'",
        ),
        (
            '[[grid.axis]]\nname = "back"\nvalue = [{ name = "long", link.reverse_qdisc.limit = "9p" }]\n' + AQM,
            "link.reverse_qdisc.limit: axis back (long) sets it to '9p', and the table of axis aqm (pi) takes it away",
        ),
        (
            '[[grid.axis]]\nname = "users"\nkey = "traffic.0.users"\nvalues = [7]\n[[grid.axis]]\nname = "mix"\n'
            'value = [{ name = "bulk", traffic = [{ kind = "bulk", flows = 2 }] }]\n',
            "traffic.0.users: axis users (7) sets it to 7, and the table of axis mix (bulk) takes it away",
        ),
        # A cell may say otherwise what it names, and takes nothing away in passing.
        (
            AQM + ECN + '[[grid.cell]]\nat.ecn = "on"\nlink.qdisc = { kind = "rem", limit = "7p" }\n',
            "cell.0: link.qdisc.ecn: axis ecn (on) sets it to True, and the table of the cell takes it away",
        ),
    ],
)
def test_an_axis_that_undoes_another_is_refused(text, complaint):
    with pytest.raises(BadInput) as refused:
        points(ONE + text)
    assert complaint in str(refused.value) and str(refused.value).startswith("grid.toml: ")


@pytest.mark.parametrize(
    "text",
    [
        AQM + ECN,
        AQM + LIMIT,  # a discipline's own limit, and an axis of limits after it
        AQM + ECN + '[[grid.cell]]\nat = { aqm = "pi", ecn = "on" }\nset = { "link.qdisc.ecn" = false }\n',
        ECN + AQM.replace('kind = "pi"', 'kind = "pi", ecn = true').replace('"red" }', '"red", ecn = true }'),
    ],
)
def test_what_a_later_axis_names_it_may_set(text):
    assert len(points(ONE + text)) == 4


SHORT = BASE.replace('qdisc = { kind = "pfifo", limit = "24p" }', 'qdisc = "pie"')
TARGET = '[[grid.axis]]\nname = "target"\nkey = "link.qdisc.target"\nvalues = ["5ms", "20ms"]\n'
WORDS = '[[grid.axis]]\nname = "aqm"\nkey = "link.qdisc"\nvalues = ["pie", "codel"]\n'
TABLES = WORDS.partition("key")[0] + 'value = [{ name = "pie", link.qdisc = "pie" }, { name = "codel", VALUE }]\n'


@pytest.mark.parametrize(
    "text",
    [
        SHORT + "[[grid]]\n" + TARGET,
        ONE + 'scenario.link.qdisc = "pie"\n' + TARGET,
        ONE + 'set = { "link.qdisc" = "pie" }\n' + TARGET,
        ONE + WORDS + TARGET,
        ONE + TABLES.replace("VALUE", 'link.qdisc = "codel"') + TARGET,
        ONE + TABLES.replace("VALUE", 'set = { "link.qdisc" = "codel" }') + TARGET,
        ONE + TARGET.replace("link.qdisc.target", "warmup") + '[[grid.cell]]\nat.target = "5ms"\nlink.qdisc = "pie"\n',
    ],
)
def test_parameters_of_a_discipline_that_is_said_by_its_name_alone_are_set(text, compiled):
    for point in points(text):
        qdisc, kind = point.source.resolve().scenario["link"]["qdisc"], point.at.get("aqm", "pie")
        if "cell" not in text:
            assert (qdisc["kind"], qdisc["target"]) == (kind, point.at["target"])
        elif point.at["target"] == "5ms":
            assert qdisc["kind"] == "pie"


def test_a_discipline_from_outside_is_one_whose_parameters_an_axis_sets():
    found = read(SHORT + "[[grid]]\n" + TARGET, **{"link.qdisc": "codel"})[0].points
    assert [point.source.tree["link"]["qdisc"] for point in found] == [
        {"kind": "codel", "target": target} for target in ("5ms", "20ms")
    ]
    with pytest.raises(
        BadInput, match=r'changes=\{"link.qdisc": "codel"\}: grid/pie has \{\'kind\': \'pie\'\}; expected'
    ):
        read(ONE + WORDS, **{"link.qdisc": "codel"})
    with pytest.raises(BadInput, match=r"'5ms', and the table of axis aqm [(]pie[)] takes it"):
        read(ONE + TARGET + WORDS)


NAN = '[[grid.axis]]\nname = "loss"\nkey = "path.loss"\nvalues = [0.01, nan]\n'


@pytest.mark.parametrize(("text", "changes", "point"), [(NAN, {}, "nan"), (AQM, {"path.loss": float("nan")}, "pi")])
def test_what_is_no_number_is_refused_as_the_engine_does(text, changes, point, compiled):
    (one,) = read(ONE + text, **changes)
    (source,) = (each.source for each in one.points if each.name == f"grid/{point}")
    with pytest.raises(BadInput) as refused:
        source.resolve()
    assert str(refused.value) == f"grid.toml [grid, {point}]: path.loss = NaN: expected a number from 0 to 1"


def test_axes_of_one_name_have_numbers_of_one_unit():
    axis = '[[grid]]\nname = "{grid}"\n[[grid.axis]]\nname = "load"\nkey = "traffic.0.load"\nvalues = {values}\n'
    rates, shares = axis.format(grid="a", values='["8mbit"]'), axis.format(grid="b", values='["80%"]')
    with pytest.raises(
        BadInput, match=r"grid.toml: grid b: axis load: its numbers are in %, in grid a in bit/s; expected"
    ):
        points(BASE + rates + shares)
    # What are no numbers have no unit.
    assert len(points(BASE + rates + axis.format(grid="b", values='["much"]'))) == 2


def test_what_is_changed_in_one_point_is_not_in_the_others():
    found = points(BASE + WEB)
    changed = found[0].source.with_changes({"link.qdisc.limit": "1p"})
    assert changed.tree["link"]["qdisc"]["limit"] == "1p"
    assert found[0].source.tree["link"]["qdisc"]["limit"] == found[1].source.tree["link"]["qdisc"]["limit"] == "24p"


def test_a_rate_of_the_uncongested_link_may_stand_on_an_axis_beside_that_of_the_link():
    axis = '[[grid.axis]]\nname = "x"\nvalue = [{ name = "fast", uncongested_rate = "1gbit" }, { name = "usual" }]\n'
    rates = {point.name: point.uncongested_rate for point in points(BASE + WEB + axis) if point.uncongested}
    assert {name.rpartition("/")[2]: rate for name, rate in rates.items()} == {"fast": "1gbit", "usual": None}


def test_zipped_axes_advance_together():
    text = (
        BASE
        + """
    [[grid]]
    [[grid.axis]]
    name = "rate"
    key = "link.rate"
    values = ["10mbit", "20mbit"]
    zip = "A"
    [[grid.axis]]
    name = "seeded"
    key = "warmup"
    values = ["1s", "2s", "3s"]
    [[grid.axis]]
    name = "users"
    key = "traffic.0.users"
    values = [100, 200]
    zip = "A"
    """
    )
    found = points(text.replace("\n    ", "\n"))
    assert [point.name for point in found] == [
        *("grid/10mbit/1s/100", "grid/10mbit/2s/100", "grid/10mbit/3s/100"),
        *("grid/20mbit/1s/200", "grid/20mbit/2s/200", "grid/20mbit/3s/200"),
    ]
    assert found[-1].numbers == {"rate": 20e6, "seeded": 3.0, "users": 200.0}


def test_cells_have_something_of_their_own_after_all_axes():
    text = (
        BASE
        + WEB
        + """
    [[grid.cell]]
    at = { aqm = ["pi-24", "pfifo-24"], users = "200" }
    set = { "link.qdisc.limit" = "99p" }
    """
    )
    limits = {
        point.name: point.source.tree["link"]["qdisc"].get("limit") for point in points(text.replace("\n    ", "\n"))
    }
    assert [name for name, limit in limits.items() if limit == "99p"] == [
        *("web/pfifo-24/off/200", "web/pi-24/off/200", "web/pi-24/on/200"),
    ]


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        *(("98mbit", 98e6, "bit/s"), ("90%", 90.0, "%"), ("24p", 24.0, "packets"), ("10ms", 0.01, "s")),
        *(("573b", 573.0, "bytes"), ("0.5", 0.5, ""), ("-1", -1.0, ""), ("170hz", 170.0, "Hz")),
    ],
)
def test_the_text_of_a_value_is_a_number_where_it_is_one(text, number, unit):
    found = units.quantity(text)
    assert found == (pytest.approx(number, rel=1e-12), unit)


def test_values_of_different_units_are_no_numbers():
    assert units.quantity("pi-24") is None
    large = axes.read({"name": "limit", "key": "link.qdisc.limit", "values": ["1e400", "1e308kbit"]}, "here")
    assert [value.number for value in large.values] == [None, None]
    one = axes.read({"name": "limit", "key": "link.qdisc.limit", "values": ["24p", "10ms"]}, "here")
    assert one.unit is None and [value.number for value in one.values] == [None, None]


def test_a_scenario_may_stand_in_a_file_and_names_its_files_from_there(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/rtts.csv").write_text("10ms,0\n20ms,1\n")
    (tmp_path / "deep/web.toml").write_text('path = { rtt = { table = "rtts.csv" } }\n')
    file = tmp_path / "grid.toml"
    found = grid.read({"scenario": "deep/web.toml", "grid": [{}]}, str(file))[0].points[0]
    assert found.source.tree["path"]["rtt"]["table"] == "deep/rtts.csv"
    assert found.name == "grid" and found.label == "grid"


def test_seeds_are_a_count_or_a_list():
    assert (
        grid.seeds(3, "here") == (1, 2, 3) and grid.seeds(2, "here", 7) == (7, 8) and grid.seeds([4, 9], "") == (4, 9)
    )
    for wrong in (0, True, [], [1, 1], [-1], "3"):
        with pytest.raises(BadInput, match="expected how many"):
            grid.seeds(wrong, "here")


def test_settings_from_outside_reach_every_point_unless_an_axis_says_otherwise():
    found = read(BASE + WEB, duration="5s")[0].points
    assert {point.source.tree["duration"] for point in found} == {"5s"}
    with pytest.raises(BadInput, match=r'changes=\{"traffic\.0\.users": 7\}: web/pfifo-24/off/100 has 100'):
        read(BASE + WEB, **{"traffic.0.users": 7})


KEYLESS = 'changes={"link.qdisc.qref": "9p"}: grid/pi has another discipline, without this key; expected '
CELL = '[[grid.cell]] with set = { "link.qdisc.qref" = "9p" } for some points alone'


def test_a_setting_that_a_table_takes_away_is_refused_with_what_sets_it_for_some_points():
    with pytest.raises(BadInput) as refused:
        read(ONE + AQM, **{"link.qdisc.qref": "9p"})
    assert str(refused.value) == KEYLESS + CELL
    with pytest.raises(BadInput, match=r"grid/pi has '480p'; expected a key that no axis changes"):
        read(ONE + AQM, **{"link.qdisc.limit": "9p"})
    loads = ONE + '[[grid.axis]]\nname = "load"\nkey = "traffic.0.load"\nvalues = ["5mbit"]\n'
    with pytest.raises(BadInput, match=r"grid/5mbit has traffic.0.load = '5mbit' in its place; expected a key that no"):
        read(loads, **{"traffic.0.users": 7})


TWO = (
    WEB
    + """
[[grid]]
name = "loads"
[[grid.axis]]
name = "aqm"
value = [{ name = "pi-24" }, { name = "rem-24" }]
[[grid.axis]]
name = "load"
key = "traffic.0.load"
values = ["5mbit", "9mbit"]
names = ["50", "90"]
"""
)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ({"grid": "loads", "aqm": "pi-24"}, ["loads/pi-24/50", "loads/pi-24/90"]),
        ({"load": 90}, ["loads/pi-24/90", "loads/rem-24/90"]),
        ({"load": ["90", "50"], "aqm": "rem-24"}, ["loads/rem-24/90", "loads/rem-24/50"]),
        ({"aqm": "rem-24", "label": "REM"}, ["loads/rem-24/50", "loads/rem-24/90"]),  # only this grid has it
        ({"ecn": "on", "users": 100}, ["web/pi-24/on/100"]),
    ],
)
def test_selectors(selector, names):
    assert [point.name for point in select(points(BASE + TWO), selector, "here")] == names


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        ({"grid": "wrong"}, "here.grid: 'wrong': expected one of web, loads"),
        ({"aqm": "pi-24"}, "here: { aqm = 'pi-24' }: grid is missing; expected one of web, loads"),
        ({"rtt": "80ms"}, "here: rtt: no such axis; expected one of aqm, ecn, users, load"),
        ({"load": "98"}, "here.load: '98': expected one of 50, 90"),
        ({"load": []}, "here.load: empty; expected one of 50, 90, or a list of them"),
        ({"ecn": "on", "load": "90"}, "here: { ecn = 'on', load = '90' }: no grid has these axes"),
        ({"ecn": "on", "aqm": "pfifo-24"}, "selects nothing; expected a cell that the grid web has"),
    ],
)
def test_a_selector_of_nothing_is_refused_in_one_line(selector, complaint):
    with pytest.raises(BadInput) as refused:
        select(points(BASE + TWO), selector, "here")
    assert complaint in str(refused.value) and "\n" not in str(refused.value)


def test_a_selector_may_find_nothing_of_what_is_known_to_be_left_out():
    everything = points(BASE + TWO)
    few = [point for point in everything if point.at.get("load") == "90"]
    assert select(few, {"load": "50"}, "here", everything) == []
    with pytest.raises(BadInput):
        select(few, {"load": "98"}, "here", everything)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('name = "web"', 'name = "Web users"', "grid.toml: grid.0.name: 'Web users': expected a name of small letters"),
        ('name = "web"', 'nome = "web"', "grid.toml: grid.0: nome: 'web': unknown key; did you mean name?"),
        ('name = "aqm"', 'name = "grid"', "axis.0.name: 'grid': is what a column of runs.parquet is called; expected"),
        ('name = "aqm"', 'name = "AQM"', "grid.toml: grid.0 (web).axis.0.name: 'AQM': expected small letters"),
        *(
            ('name = "aqm"', f'name = "{name}"', f"axis.0.name: '{name}': is what a column of runs.parquet is called")
            for name in (
                "digest",
                "cpu_s",
                "users_number",
                "forward_loss_ratio",
                "tcp_goodput_bps",
                "offered_load_bps",
                "asked_load_bps",
                "applications_calls_mos_mean",
                "traffic_0_p90",
                "findings",
                "measured_s",
                "routes",
                "links_core_forward_loss_ratio",
            )
        ),
        *(
            ('label = "drop-tail 24"', f"number = {written}", f"value.0 (pfifo-24).number: {said}: expected a finite")
            for written, said in (
                ("nan", "nan"),
                ("inf", "inf"),
                ("-1e400", "-inf"),
            )
        ),
        ('label = "drop-tail 24"', f"number = 1{400 * '0'}", "000: expected a finite number"),
        (
            'label = "drop-tail 24"',
            'uncongested_rate = "1gbit"',
            "grid.0 (web).axis.0 (aqm).value.0 (pfifo-24).uncongested_rate: '1gbit': does nothing here; expected",
        ),
        ('name = "pi-24"', 'name = "pfifo-24"', "grid.0 (web).axis.0 (aqm): name: 'pfifo-24' twice"),
        ("uncongested = true", 'uncongested = "yes"', "value.2 (uncongested).uncongested: 'yes': expected true"),
        ("values = [100, 200]", "values = 100", "axis.2 (users).values: 100: expected a list"),
        ("values = [100, 200]", "", "axis.2 (users): expected either [[grid.axis.value]] tables, or key and values"),
        ('key = "traffic.0.users"', "", "axis.2 (users).key: missing; expected a dotted key"),
        (
            'key = "traffic.0.users"',
            'key = "traffic.1.users"',
            "grid.toml [web, pfifo-24, off, 100]: traffic.1.users: ",
        ),
        (
            "values = [100, 200]",
            'values = [100, 200]\nnames = ["a"]',
            "names: ['a']: expected a list as long as values, 2",
        ),
        (
            "values = [100, 200]",
            "values = [[1], [2]]",
            "axis.2 (users).values.0: [1]: cannot be a name; expected names beside values",
        ),
        (
            "values = [100, 200]",
            'values = [1, 2]\nzip = "A"\n[[grid.axis]]\nname = "b"\nkey = "x"\nvalues = [1]\nzip = "A"',
            "zip 'A': users has 2, b has 1; expected equally many",
        ),
        ('ecn = "on"\n', 'ecn = "maybe"\n', "grid.0 (web).skip.0.ecn: 'maybe': expected one of off, on"),
        ('ecn = "on"\n', 'color = "on"\n', "grid.0 (web).skip.0: color: no such axis; expected one of aqm, "),
        ('aqm = ["pfifo-24", "uncongested"]\necn = "on"', "", "skip: leaves nothing of the grid"),
        (
            "[[grid.skip]]",
            '[[grid.cell]]\nat.aqm = "pfifo-24"\nat.ecn = "on"\n[[grid.skip]]',
            "cell.0.at: matches no cell",
        ),
        ("[[grid.axis]]", 'uncongested_rate = "0mbit"\n[[grid.axis]]', "uncongested_rate: '0mbit': expected a rate"),
        (
            "uncongested = true",
            'uncongested = true\nuncongested_rate = "0bit"',
            "value.2 (uncongested).uncongested_rate: '0bit': expected a rate above zero",
        ),
        ('key = "traffic.0.users"', 'key = "seed"', "axis.2 (users).key: 'seed': all points of a grid run under"),
        ("uncongested = true", "seed = 4", "axis.0 (aqm).value.2 (uncongested).seed: 4: all points of a grid"),
        ("uncongested = true", "set = { seed = 4 }", "value.2 (uncongested).set.seed: 4: all points of a grid"),
        ("[[grid.skip]]", "[[grid.cell]]\nat.users = '100'\nset.seed = 4\n[[grid.skip]]", "cell.0.set.seed: 4: all"),
    ],
)
def test_bad_input_is_one_line_with_file_key_value_and_what_was_expected(old, new, complaint):
    text = BASE + WEB
    assert old in text
    with pytest.raises(BadInput) as refused:
        read(text.replace(old, new, 1))
    assert complaint in str(refused.value) and "\n" not in str(refused.value)
