"""How laws of one's own are called: by their files, by their names beside these, and with `fq_` before either. Needs
the compiled engine."""

import json
from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli, scenario, sweep, variants
from aqmlab.errors import BadInput
from aqmlab.evaluation import disciplines
from aqmlab.laws import brought
from aqmlab.progress import Silent
from aqmlab.sweep import grid, making, plan
from conftest import ROOT
from own_laws import SCENARIO, own

pytestmark = pytest.mark.usefixtures("nothing_allowed")

FIFO = ROOT / "examples/laws/my_fifo.py"


@pytest.fixture
def here(link: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a scenario and a law, called mine, in which commands are given; nobody knows the law yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(brought, "_BROUGHT", {})
    own(tmp_path, how="(compiled=False)")
    return tmp_path


def queue(source: scenario.Source) -> tuple[str, str]:
    """The forward discipline as the engine has resolved it, and the file of its law."""
    qdisc = source.resolve().scenario["link"]["qdisc"]
    return qdisc["kind"], qdisc["law"]["file"]


@pytest.mark.parametrize(
    "specs", [["fq_mine.py"], ["fq_mine", "mine.py"], ["./fq_mine.py every 9"], ["mine.py", "fq_mine"]]
)
def test_words_ask_for_a_law_under_fair_queueing_by_its_file_or_by_its_name(here, specs):
    found = variants.from_file(variants.written_out(scenario.read(Path("link.toml")), specs))
    asked = next(one for one in found if "fq_mine" in one.name)
    assert (asked.name, queue(asked.source)) == (
        " ".join(["fq_mine", *specs[0].split()[1:]]),
        ("fq_mine", str(here / "mine.py")),
    )


def test_of_two_laws_of_one_name_words_mean_the_last_before_them(here):
    (here / "other").mkdir()
    own(here / "other", how="(compiled=False)  # another")
    specs = ["mine.py", "mine every 9", "other/mine.py every 3", "mine every 5"]
    found = variants.from_file(variants.written_out(scenario.read(Path("link.toml")), specs))
    files = [queue(one.source)[1] for one in found]
    assert files == [str(here / name) for name in ("mine.py", "mine.py", "other/mine.py", "other/mine.py")]


@pytest.mark.parametrize("key", ["link.qdisc", "link.qdisc.kind"])
@pytest.mark.parametrize("value", ["fq_mine.py", "./fq_mine.py"])
def test_a_key_that_is_set_asks_for_a_law_under_fair_queueing(here, key, value):
    assert cli.invoke(["run", "link.toml", "--set", f"{key}={value}", "--set", "duration=3s", "-o", "out"]) == 0
    qdisc = aqmlab.load("out").scenario["link"]["qdisc"]
    assert (
        qdisc["kind"] == "fq_mine" and (Path("out") / qdisc["law"]["file"]).read_text() == Path("mine.py").read_text()
    )


def test_a_scenario_asks_for_a_law_under_fair_queueing(here, capsys):
    Path("link.toml").write_text(SCENARIO.replace('"pfifo"', '{ kind = "./fq_mine.py", every = 7 }'))
    assert cli.invoke(["run", "link.toml", "-o", "out"]) == 2
    assert 'link.toml:6: link.qdisc.kind = "./fq_mine.py": names code, which is not run' in capsys.readouterr().err
    assert cli.invoke(["run", "link.toml", "--allow-code", "--set", "duration=3s", "-o", "out"]) == 0
    assert aqmlab.load("out").scenario["link"]["qdisc"]["every"] == 7
    # Complaints have the author's lines all the same, and a file that is named elsewhere in the command may run.
    Path("link.toml").write_text(SCENARIO.replace('"pfifo"', '{ kind = "fq_mine.py", every = 0 }'))
    with pytest.raises(BadInput, match=r"link.toml:6: link\.qdisc\.every = 0: expected a whole number"):
        aqmlab.compare("link.toml", "mine.py")


def test_a_file_of_the_very_name_is_that_file(here):
    own(here, how="(compiled=False)", name="fq_mine.py").write_text(
        Path("mine.py").read_text().replace("class Mine", "class Other")
    )
    assert brought.spelled("fq_mine.py every 5") == "other every 5"
    aqmlab_set = scenario.read(Path("link.toml")).with_changes({"link.qdisc": "fq_mine.py"})
    brought.allow_all()
    assert queue(aqmlab_set) == ("other", "fq_mine.py")


def test_a_comparison_keeps_a_law_that_its_file_asks_for_under_fair_queueing(here):
    Path("link.toml").write_text(
        SCENARIO.replace('"12s"', '"3s"')
        + '[[variant]]\nname = "alone"\nlink.qdisc = "mine.py"\n[[variant]]\nname = "fair"\nlink.qdisc = "fq_mine.py"\n'
    )
    first = aqmlab.compare("link.toml", out="first", allow_code=True)
    Path("mine.py").unlink()
    again = aqmlab.compare("first/comparison.toml", out="again", allow_code=True)
    assert again.digest == first.digest
    assert [one.qdisc["kind"] for one in again.columns] == ["mine", "fq_mine"]


def test_a_law_that_is_changed_and_changed_back_is_what_it_was(here):
    file, digests = Path("mine.py"), []
    first = file.read_text()
    for text in (first, first.replace("self.every == 0", "self.every == 1"), first):
        file.write_text(text)
        digests.append(aqmlab.run("link.toml", set={"duration": "3s", "link.qdisc": "mine.py"}).digest)
    assert digests[0] == digests[2] != digests[1]


def test_a_sweep_takes_a_law_under_fair_queueing(here):
    (here / "below").mkdir()
    tree = {
        "name": "one",
        "scenario": "../link.toml",
        "grid": [{"axis": [{"name": "n", "key": "link.qdisc.every", "values": [9]}]}],
    }
    Path("link.toml").write_text(SCENARIO.replace('"pfifo"', '"fq_mine.py"').replace('"12s"', '"3s"'))
    brought.allow_all()
    (one,) = grid.read(tree, "below/grid.toml")
    (task,) = plan.plan([(point, 1) for point in one.points])
    assert '"fq_mine"' in task.toml
    ((done, _),) = sweep.InProcess().each([task], Silent())
    assert done.key == task.key


NAMED = "a law of one's own is named by its file"
ORDERS = "my_fifo holds packets and orders them itself, and has no form under fair queueing; expected my_fifo"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "link.toml", "mine", "pie"], f"'mine': {NAMED}; expected mine.py"),
        (["compare", "link.toml", "fq_mine every 3"], f"'fq_mine every 3': {NAMED}; expected fq_mine.py"),
        (["compare", "link.toml", "sqd"], f"'sqd': unknown discipline, did you mean sfq? {NAMED.capitalize()}"),
        (["compare", "link.toml", "nothing_near"], f"or one of aqmlab list disciplines; {NAMED}"),
        (["evaluate", "fq_mine"], f"'fq_mine': {NAMED}; expected fq_mine.py"),
        (["evaluate", "pie", "--against", "mine"], f"'mine': {NAMED}; expected mine.py"),
        (["explain", "mine"], f"explain mine: {NAMED}; expected mine.py"),
        (["explain", "fq_mine"], f"explain fq_mine: {NAMED}; expected fq_mine.py"),
        (["run", "link.toml", "--set", "link.qdisc=mine"], f'link.qdisc.kind = "mine": {NAMED}; expected mine.py'),
        (["run", "link.toml", "--set", "link.qdisc=fq_mine"], f'kind = "fq_mine": {NAMED}; expected fq_mine.py'),
        (["run", "link.toml", "--set", "link.qdisc=sqd"], f"such as fq_red; {NAMED}"),
        (["run", "mine.py"], "mine.py: is the file of a law; expected a scenario in TOML, whose link.qdisc may name"),
        (["compare", "link.toml", "fq_my_fifo.py"], f"fq_my_fifo.py: {ORDERS}.py"),
        (["compare", "link.toml", "my_fifo.py", "fq_my_fifo"], f"'fq_my_fifo': {ORDERS}"),
        (["compare", "link.toml", "fq_cake"], "'fq_cake': cake has no form under fair queueing; expected cake"),
        (["explain", "fq_my_fifo.py"], f"fq_my_fifo.py: {ORDERS}.py"),
        (
            ["run", "link.toml", "--set", "link.qdisc=fq_my_fifo.py"],
            f"link.toml: link.qdisc: fq_my_fifo.py: {ORDERS}.py",
        ),
        (
            ["run", "link.toml", "--set", "link.qdisc.kind=fq_mine.py", "--set", "link.qdisc.law=mine.py"],
            "link.toml: link.qdisc.law: 'mine.py': the kind has the file of a law already; expected kind = \"fq_mine\"",
        ),
        (["compare", "link.toml", "fq_no.py"], "fq_no.py: no such file, and no no.py either; expected the file of a"),
        (["check", "fq_mine.py"], "fq_mine.py: no such file; expected mine.py, which is put to the test under fair"),
    ],
)
def test_names_that_stand_for_nothing_are_told_how_laws_are_named(here, capsys, words, said):
    Path("my_fifo.py").write_text(FIFO.read_text())
    assert cli.invoke(words) == 2
    complaint = capsys.readouterr().err
    assert said in complaint and complaint.count("\n") == 1
    assert not Path("results").exists()


def test_a_policy_has_a_form_under_fair_queueing_as_any_law(here):
    pytest.importorskip("onnxruntime")
    Path("policy.onnx").write_bytes((ROOT / "examples/agent/policy.onnx").read_bytes())
    assert brought.spelled("fq_policy.onnx limit 50p") == "fq_learnt limit 50p"
    both = variants.from_file(variants.written_out(scenario.read(Path("link.toml")), ["fq_learnt", "policy.onnx"]))
    kinds = [one.source.resolve().scenario["link"]["qdisc"]["kind"] for one in both]
    assert kinds == ["fq_learnt", "learnt"]


def test_an_evaluation_finds_the_form_under_fair_queueing_of_a_law(here):
    study = disciplines.study(here / "out", "mine.py every 9", ["codel"])
    found = {p.at["aqm"]: p.source.tree["link"]["qdisc"] for p in study.points if p.grid == "scheduling"}
    assert {name: (qdisc["kind"], qdisc.get("every")) for name, qdisc in found.items()} == {
        "mine-every-9": ("mine", 9),
        "fq-mine-every-9": ("fq_mine", 9),
        "drop-tail": ("pfifo", None),
    }
    for point in study.points:
        point.source.resolve()


@pytest.mark.parametrize(
    ("subject", "against"), [("fq_mine.py", ["codel"]), ("fq_mine", ["mine.py"]), ("pie", ["fq_mine", "mine.py"])]
)
def test_an_evaluation_takes_a_law_under_fair_queueing(here, monkeypatch, subject, against):
    monkeypatch.setattr(making, "Processes", lambda jobs: sweep.InProcess())
    among = disciplines.chosen(subject, against)
    assert [one.qdisc["kind"] for one in among if one.name == "fq-mine"] == ["fq_mine"]
    study = disciplines.study(here / "out", subject, against, quick=True, only=["friendly/access/*"])
    for point in study.points:
        point.source.resolve()


@pytest.mark.parametrize(("name", "kind"), [("mine.py", "mine"), ("fq_mine.py", "fq_mine"), ("./mine.py", "mine")])
def test_a_law_is_explained_before_a_link(here, capsys, name, kind):
    assert cli.invoke(["explain", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == kind
    assert cli.invoke(["explain", name, "--rate", "10mbit", "--set", "every=30", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["values"]["every"], found["given"]) == (kind, 30, ["every"])


NO_LINE = "is a law or discipline of one's own, for which Linux has no qdisc and tc no line"


@pytest.mark.parametrize("name", ["mine.py", "fq_mine.py", "./my_fifo.py"])
def test_tc_says_that_linux_has_no_such_law(here, capsys, name):
    Path("my_fifo.py").write_text(FIFO.read_text())
    assert cli.invoke(["tc", "link.toml", "--set", f"link.qdisc={name}"]) == 2
    expected = f"{NO_LINE}; expected a discipline that Linux has, such as fq_codel"
    assert capsys.readouterr().err == f"aqmlab: link.toml: link.qdisc.kind: '{Path(name).stem}': {expected}\n"
    if name != "fq_mine.py":
        assert cli.invoke(["tc", name]) == 2
        assert capsys.readouterr().err == f"aqmlab: {name}: {NO_LINE}; expected a scenario in TOML\n"


def test_each_of_two_laws_of_one_name_has_its_own_cost(link, tmp_path):
    forward = own(tmp_path, how="(compiled=False)", name="forward.py")
    back = own(tmp_path, "self.every += 0", "(compiled=False)", "back.py")
    found = aqmlab.run(link, set={"link.qdisc": str(forward), "link.reverse_qdisc": str(back), "duration": "3s"})
    calls = {law["file"].partition("-")[2]: law["cost"]["calls"] for law in found.manifest["laws"]}
    assert calls["forward.py"] != calls["back.py"] > 100
    assert found.manifest["findings"][0].count(f"{sum(calls.values()):,} calls") == 1, found.manifest["findings"]
