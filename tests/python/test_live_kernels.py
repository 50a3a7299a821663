"""Which kernel a run in virtual time has: what it lacks is said before, and runs of two kernels are not mixed."""

import hashlib
import json
import shutil
import subprocess
import sys

import pytest

import aqmlab
from aqmlab import cli, engine
from aqmlab.live import kernel, plan, process, runs, virtual

SCENARIO = """
duration = "10s"
[link]
rate = "10mbit"
[tcp]
stack = "linux"
[[traffic]]
kind = "bulk"
"""


def kernel_program(name, text):
    path = kernel.folder(name) / "linux"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    (path.parent / "kernel.json").write_text('{"release": "6.12.0"}')
    return path


@pytest.mark.parametrize("how", ["other name", "same name", "environment"])
def test_runs_of_two_kernels_are_not_mixed(small, tmp_path, monkeypatch, capsys, how):
    """A kernel is known by its program, whatever names it."""
    kernel_program("b", "first")
    kernel_program(None, "second")
    words = ["live", str(small), "--virtual", "--reps", "2", "-o", str(tmp_path / "l")]
    made = [*words, *(() if how == "environment" else ("--kernel", "b"))]
    if how == "environment":
        monkeypatch.setenv(kernel.VARIABLE, "b")
    assert cli.invoke(made) == 0
    told = aqmlab.load(tmp_path / "l").manifest["live"]
    assert told["kernel_name"] == "b" and told["kernel_sha256"] == hashlib.sha256(b"first").hexdigest()
    shutil.rmtree(tmp_path / "l/rep-2")
    for name in ("manifest.json", "summary.json"):
        (tmp_path / "l" / name).unlink()
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    if how == "same name":
        kernel_program("b", "built again")
    capsys.readouterr()
    assert cli.invoke([*(made if how == "same name" else words), "--resume"]) == 2
    assert "rep-1: holds another scenario or seed, or is of another engine, test bed or" in capsys.readouterr().err
    # The same program under another name is the same kernel.
    shutil.copy(kernel_program("c", "first"), kernel.folder() / "linux")
    assert cli.invoke([*words, "--resume"]) == 0


def test_a_kernel_that_changes_between_two_runs_ends_them(small, tmp_path, monkeypatch, capsys):
    path, started = kernel_program(None, "first"), process.arguments

    def changed(*asked):
        path.write_text("second program")
        return started(*asked)

    monkeypatch.setattr(process, "arguments", changed)
    assert cli.invoke(["live", str(small), "--virtual", "--reps", "2", "-o", str(tmp_path / "l")]) == 3
    assert "run 2: the kernel of virtual time has been changed since the first run" in capsys.readouterr().err


INSIDE = {
    "release": "6.12.117",
    "namespaces": None,
    "qdiscs": {"pfifo": True, "htb": True, "codel": True, "dualpi2": False},
    "available": ["reno", "cubic", "bbr"],
}


def test_what_the_kernel_of_virtual_time_lacks_is_named_before_anything_runs(compiled, capsys, tmp_path, monkeypatch):
    """It is asked once, and only for what not every one has."""
    (tmp_path / "x.toml").write_text(SCENARIO)
    asked = []

    def answers(*words, virtual_time, name=None):
        asked.append((*words, virtual_time, name))
        return INSIDE

    plan._said_inside.cache_clear()
    monkeypatch.setattr(plan.virtual, "check", lambda kernel: None)
    monkeypatch.setattr(plan, "tried", answers)
    monkeypatch.setattr(runs, "run_all", lambda *_: pytest.fail("something runs"))
    whose = "the kernel of virtual time, Linux 6.12.117,"
    for changes, said in (
        (["tcp.cc=bbr3"], f"tcp.cc: bbr3: {whose} has it not; it has reno, cubic, bbr (--kernel names another)"),
        (["traffic.0.cc=bbr3"], f"traffic.0.cc: bbr3: {whose} has it not; it has reno, cubic, bbr"),
        (
            ["live.qdisc=kernel", "link.qdisc=dualpi2"],
            f'live.qdisc = "kernel": {whose} or this machine\'s tc has no dualpi2, which needs Linux 6.17 and iproute2 '
            "6.17; it has pfifo, htb, codel (--kernel names another)",
        ),
    ):
        words = [word for change in changes for word in ("--set", change)]
        assert cli.invoke(["live", str(tmp_path / "x.toml"), "--virtual", "-o", str(tmp_path / "l"), *words]) == 3
        assert f"x.toml: {said}" in capsys.readouterr().err.splitlines()[-1]
        assert not (tmp_path / "l").exists()
    assert asked == [(True, None)]
    for cc, qdisc in (("bbr", "aqmlab"), ("reno", "aqmlab"), ("cubic", "kernel")):
        tree = (tmp_path / "x.toml").read_text() + f'[live]\nqdisc = "{qdisc}"\n'
        resolved = engine.resolve(tree, "x.toml", [("tcp.cc", cc), ("link.qdisc.kind", "codel")])
        plan.check(resolved, is_virtual=True, kernel=f"for-{cc}")
    assert asked == [(True, None), (True, "for-bbr"), (True, "for-cubic")]
    plan._said_inside.cache_clear()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ('{"x": 1}', "release: missing: expected what"),
        ("[1]", "expected a JSON object"),
        ("{", "cannot be read as JSON"),
        (
            '{"release": "6.12", "options": null}',
            "options: null: expected what aqmlab kernel build writes; with --fresh",
        ),
        ('{"release": "6.12", "changes": [1]}', "changes: [1]: expected what"),
        ('{"release": "6.12", "built": "now", "seconds": "5"}', 'seconds: "5": expected what'),
    ],
)
def test_what_is_said_of_a_kernel_has_a_shape(capsys, facts, said):
    path = kernel_program("b", "x").with_name("kernel.json")
    path.write_text(facts)
    assert cli.invoke(["kernel", "show", "b"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"aqmlab: {path}: {said}") and len(told.splitlines()) == 1


def test_a_program_that_is_no_kernel_is_named(tmp_path):
    path = kernel_program(None, "no program")
    folder = tmp_path / "run"
    folder.mkdir()
    asked = virtual.machine(folder, [sys.executable], {})
    assert subprocess.run(asked, check=False, timeout=60).returncode == 3
    said = json.loads((folder / "error.json").read_text())["message"]
    assert said == f"virtual time: {path}: Exec format error; expected a kernel built as a program"
    assert not (folder / "machine.environment").exists()


def test_what_a_kernel_has_is_called_as_a_scenario_calls_it(capsys):
    options = [
        "NET_SCH_CODEL",
        "NET_SCH_DEFAULT",
        "NET_SCH_FIFO",
        "TCP_CONG_ADVANCED",
        "TCP_CONG_BBR",
        "TCP_CONG_HSTCP",
    ]
    facts = {"release": "6.12.0", "built": "now", "options": options}
    kernel_program(None, "x").with_name("kernel.json").write_text(json.dumps(facts))
    assert cli.invoke(["kernel", "show"]) == 0
    said = capsys.readouterr().out
    assert "queue disciplines: codel, pfifo, bfifo\n" in said and "congestion controllers: bbr, highspeed\n" in said
