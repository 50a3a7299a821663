from pathlib import Path

import pytest

import studies
from aqmlab.claims.verdict import FAILS
from aqmlab.errors import BadInput
from aqmlab.study import definition, folders, runs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return studies.write(tmp_path / "tiny")


def test_profiles_say_how_long_how_often_and_which_points(folder):
    full, quick = definition.read(folder), definition.read(folder, definition.QUICK)
    assert [point.name for point in full.points] == [
        *("web/uncongested/off", "web/pfifo/off", "web/pi/off", "web/pi/on"),
        *("again/1200", "again/1800"),
    ]
    assert [point.name for point in quick.points][-1] == "again/1800" and len(quick.points) == 5
    assert {len(full.runs), len(quick.runs)} == {18, 9}
    assert full.seeds == {"web": (1, 2, 3), "again": (1, 2, 3)}
    assert quick.seeds == {"web": (1, 2), "again": (1,)}
    assert {point.source.tree["duration"] for point in full.points} == {"30s"}
    assert {point.source.tree["duration"] for point in quick.points} == {"20s"}
    assert quick.everything == full.everything or [p.name for p in quick.everything] == [p.name for p in full.points]
    fewer = definition.read(folder, seeds=1)
    assert fewer.seeds == {"web": (1,), "again": (1,)}
    assert fewer.profile.says.endswith(
        "`--seeds` makes it 1 run of each point, in place of the number that belongs to this profile."
    )
    assert full.about == "What it did."


def test_a_grid_may_be_left_out_of_a_profile(tmp_path):
    text = studies.STUDY.replace('quick = { only = { users = ["1800"] }, seeds = 1 }', "quick = false")
    folder = studies.write(tmp_path / "tiny", text)
    assert [grid.name for grid in definition.read(folder, definition.QUICK).grids] == ["web"]
    assert [grid.name for grid in definition.read(folder).grids] == ["web", "again"]


def test_a_profile_may_run_what_claims_ask_of_and_the_rest_by_name(tmp_path):
    text = studies.STUDY.replace('says = "Runs of 20 s', 'asked_only = true\nsays = "Runs of 20 s')
    folder = studies.write(tmp_path / "tiny", text, studies.CLAIMS)
    quick = definition.read(folder, definition.QUICK)
    assert {point.name for point in quick.points} == {"web/pi/on", "web/pfifo/off"}
    assert quick.profile.says.endswith("the points that claims ask of were run, 2 of 5: `--only` runs others by name.")
    named = definition.read(folder, definition.QUICK, only=["again/*", "web/pi/*"])
    assert [point.name for point in named.points] == ["web/pi/off", "web/pi/on", "again/1800"]
    assert len(definition.read(folder).points) == 6, "the other profile has all of them"
    (folder / "claims.toml").unlink()
    assert len(definition.read(folder, definition.QUICK).points) == 5, "where nothing is claimed, all are run"


def test_a_setting_of_a_profile_lies_over_the_grids_tables_and_under_the_axes(tmp_path):
    text = studies.STUDY.replace(
        'set = { duration = "20s", warmup = "10s" }',
        'set = { duration = "20s", warmup = "10s", "traffic.0.users" = 60 }',
    )
    study = definition.read(studies.write(tmp_path / "tiny", text), definition.QUICK)
    users = {point.name: point.source.tree["traffic"][0]["users"] for point in study.points}
    assert users["web/pi/on"] == 60 and users["again/1800"] == 1800


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('id = "tiny"', "", r"study.toml: id: missing; expected a text"),
        ('id = "tiny"', 'id = "tiny"\nyear = 2001', r"study.toml: year: 2001: unknown key; expected one of id, title"),
        ("[profiles.full]\nseeds = 3", "[profiles.full]\nseeds = 0", r"profiles.full.seeds: 0: expected"),
        ("[profiles.full]\nseeds = 3", "[profiles.full]\nseed = 3", r"profiles.full: seed: 3: unknown key"),
        (
            "[profiles.full]\n",
            "[profiles.full]\nasked_only = 1\n",
            r"profiles.full.asked_only: 1: expected true or false",
        ),
        (
            'set = { duration = "30s"',
            'set = { seed = 3, duration = "30s"',
            r"profiles.full.set.seed: 3: all points of a grid",
        ),
        ("[profiles.full]", "[profiles.slow]", r"profiles.full: missing; expected .* \(slow, quick\)"),
        ('users = ["1800"]', 'users = ["1801"]', r"grid.1.quick.only.*1801.*expected"),
        ('only = { users = ["1800"] }', 'some = { users = ["1800"] }', r"grid.1.quick: some: unknown key"),
        ('{ aqm = ["pfifo", "pi"] }', '{ aqm = ["pfifo", "pie"] }', r"figure.0.curves.1.*pie.*expected"),
        ('rows = [{ grid = "web" }]', 'rows = [{ grid = "wap" }]', r"table.0.rows.0.*wap.*expected"),
        ("[[figure]]", '[[choice]]\nswept_in = "wep"\n[[figure]]', r"choice.0: swept_in: 'wep': did you mean web\?"),
        ("[[figure]]", "[live]\nfile = 'none.toml'\n[[figure]]", r"live.file: 'none.toml': expected a comparison file"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tmp_path, old, new, complaint):
    assert old in studies.STUDY
    folder = studies.write(tmp_path / "tiny", studies.STUDY.replace(old, new, 1))
    with pytest.raises(BadInput, match=complaint) as caught:
        definition.read(folder)
        definition.read(folder, definition.QUICK)
    assert str(folder / "study.toml") in str(caught.value) and "\n" not in str(caught.value)


def test_a_study_of_too_many_runs_is_refused_before_anything_is_built(folder):
    for seeds, said in ((3_000_000_000, "3,000,000,000"), (20_000, "120,000")):
        with pytest.raises(BadInput, match=f"study tiny: {said} runs; expected at most 50,000 in one plan"):
            definition.read(folder, seeds=seeds)
    assert definition.read(folder, seeds=8000).count == 48_000
    two = {folder / name: definition.read(folder, seeds=8000) for name in ("a", "b")}
    with pytest.raises(BadInput, match=r"tiny, tiny: 96,000 runs; expected at most 50,000"):
        runs.run(two)


def test_a_seed_is_no_setting_of_a_study(folder):
    said = r'study tiny: changes=\{"seed": 9\}: the study\'s seeds are run; expected seeds for another number of them'
    with pytest.raises(BadInput, match=said):
        definition.read(folder, changes={"seed": 9})


def test_two_figures_of_one_name_would_be_one_file(tmp_path):
    figure = '[[figure]]\nid = "1"\ntitle = "Slow ones"\nkind = "ccdf"\ncurves = [{ grid = "web" }]\n'
    folder = studies.write(tmp_path / "tiny", f"{studies.STUDY}\n{figure}")
    with pytest.raises(BadInput, match=r"study.toml: figure: id: '1': expected another than that of the figure '1'"):
        definition.read(folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [('duration = "30s"', 'duration = "8mbit"'), ('duration = "20s"', 'duration = "8mbit"')],
)
def test_profiles_that_are_not_run_are_tried_too(tmp_path, old, new):
    assert old in studies.STUDY
    folder = studies.write(tmp_path / "tiny", studies.STUDY.replace(old, new, 1))
    for profile in (definition.FULL, definition.QUICK):
        with pytest.raises(
            BadInput, match=r"study.toml: profiles.\w+.set: duration: '8mbit': expected a number with a unit"
        ):
            definition.read(folder, profile).check_scales()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('measure = "ahead"', 'measure = "behind"', r"claims.toml.*behind.*expected"),
        ('aqm = "pi", ecn = "on" }', 'aqm = "pi", ecn = "perhaps" }', r"claims.toml.*perhaps.*expected"),
    ],
)
def test_claims_are_checked_when_a_study_is_read(tmp_path, old, new, complaint):
    folder = studies.write(tmp_path / "tiny", claims=studies.CLAIMS.replace(old, new, 1))
    with pytest.raises(BadInput, match=complaint) as caught:
        definition.read(folder)
    assert "\n" not in str(caught.value)


def test_a_study_is_found_by_its_id_or_its_folder(folder):
    assert folders.find(str(folder)) == folder
    assert folders.find(str(folder / "study.toml")) == folder
    assert folders.find("le2003").name == "le2003"
    with pytest.raises(BadInput, match=r"study le2002: expected one of brandauer2001, .*all, or a folder"):
        folders.find("le2002")
    with pytest.raises(BadInput, match=r"holds no study.toml"):
        folders.find(str(folder.parent))


@pytest.mark.parametrize("name", folders.known())
@pytest.mark.parametrize("profile", [definition.FULL, definition.QUICK])
def test_the_studies_that_come_along_can_be_read(name, profile):
    study = definition.read(folders.find(name), profile)
    assert study.id == name and study.claims
    assert all(len(seeds) >= 3 for seeds in study.seeds.values()), "fewer than three runs decide nothing"


@pytest.mark.parametrize("name", folders.known())
def test_what_is_known_not_to_hold_at_length_says_what_shows_why_or_that_nothing_does(name):
    for claim in definition.read(folders.find(name), definition.FULL).claims:
        if claim.in_profile(definition.FULL).known_outcome == FAILS:
            assert claim.evidence or claim.cause_unknown, claim.id


BED = """
[[bed]]
name = "tuned"
title = "tuned"
set = { "path.access_rate" = "50mbit" }
[[bed.point]]
of = { grid = "web", aqm = "pi" }
set = { "link.qdisc.qref" = "30p" }
"""


def test_a_test_bed_sets_in_some_points_what_axes_say(tmp_path):
    folder = studies.write(tmp_path / "tiny", studies.STUDY + BED)
    study = definition.read(folder, bed="tuned")
    trees = {point.name: point.source.tree for point in study.points}
    targets = {name: tree["link"]["qdisc"].get("qref") for name, tree in trees.items()}
    assert targets["web/pi/off"] == targets["web/pi/on"] == "30p" and targets["web/pfifo/off"] is None
    assert {tree["path"]["access_rate"] for tree in trees.values()} == {"50mbit"}
    bare = {point.name: point.source.tree["link"]["qdisc"].get("qref") for point in definition.read(folder).points}
    assert bare["web/pi/off"] == "24p"
    # Of a bed that sets nothing else, other points are the runs of the bare model.
    alone = studies.write(tmp_path / "alone", studies.STUDY + BED.replace('set = { "path', "# ", 1))
    same = {point.name: point.source.tree for point in definition.read(alone).points}
    there = {point.name: point.source.tree for point in definition.read(alone, bed="tuned").points}
    assert {name for name in same if same[name] != there[name]} == {"web/pi/off", "web/pi/on"}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('aqm = "pi"', 'aqm = "pie"', r"study.toml: bed tuned: point.0.of.aqm: 'pie': expected one of"),
        ('grid = "web"', 'grid = ["web", "again"]', r"study.toml: bed tuned: point.0.of.grid: .*expected one of web"),
        ("of = ", "on = ", r"study.toml: bed.0.point.0: on: unknown key; expected one of of, set"),
        ('set = { "link.qdisc.qref" = "30p" }', "", r"study.toml: bed.0.point.0: expected of and set"),
        (
            'set = { "link.qdisc.qref" = "30p" }',
            "set = { seed = 3 }",
            r"bed.0.point.0.set.seed: 3: all points of a grid",
        ),
        ('title = "tuned"', "", r"study.toml: bed.0.title: missing; expected a test bed with name, title and set or"),
        ("[[bed.point]]", "[bed.point]", r"study.toml: bed.0.point: expected \[\[bed.point\]\] tables"),
    ],
)
def test_what_is_wrong_with_a_test_bed_is_said_in_a_line_whichever_is_asked(tmp_path, old, new, complaint):
    assert old in BED
    folder = studies.write(tmp_path / "tiny", studies.STUDY + BED.replace(old, new, 1))
    with pytest.raises(BadInput, match=complaint) as caught:
        definition.read(folder)
    assert "\n" not in str(caught.value)


def test_a_test_bed_says_what_is_otherwise(tmp_path):
    folder = studies.write(tmp_path / "tiny", studies.STUDY + '[[bed]]\nname = "lab"\ntitle = "lab"\n')
    with pytest.raises(BadInput, match=r"study.toml: bed.0.set: missing; expected what is otherwise on this test bed"):
        definition.read(folder)


def test_what_the_larger_scale_says_stands_first():
    assert definition.by_scale(["quick", "mine", "medium", "full"]) == ["full", "medium", "quick", "mine"]
