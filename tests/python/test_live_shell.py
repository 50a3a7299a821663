"""The prompt inside: what it says, what it is told, how it ends; on a link where this machine can make one."""

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from aqmlab import cli, engine
from aqmlab.command import live_shell as shell
from aqmlab.errors import AqmlabError, CannotRun
from aqmlab.live import plan, preflight, registry
from conftest import NATIVE, ROOT

NETWORK = ROOT / "examples/home-and-core.toml"

SCENARIO = """
[link]
rate = "20mbit"
[link.qdisc]
kind = "pie"
[path]
rtt = "10ms"
[tcp]
stack = "linux"
[[traffic]]
kind = "bulk"
flows = 1
"""

needs_engine = pytest.mark.skipif(not hasattr(NATIVE, "live"), reason="left out: this build has no test bed")


@pytest.fixture
def scenario_file(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "native", NATIVE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "link.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def link(scenario_file):
    """A scenario, where a link can be made of it."""
    try:
        preflight.check()
    except AqmlabError as error:
        pytest.skip(f"left out: {error}")
    return scenario_file


def prompt(*words, files=1024, is_alone=False):
    """`aqmlab shell` as its user starts it, standard input a pipe; `files` may be open.

    One that `is_alone` has the process group of a job at a terminal, which Ctrl-C goes to.
    """
    python = str(Path(cli.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {python!r}); from aqmlab import cli; cli.main()"
    return subprocess.Popen(
        ["prlimit", f"--nofile={files}:", sys.executable, "-c", program, "shell", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SHELL": "/bin/sh"},
        start_new_session=is_alone,
    )


def programs_with(word):
    """The command lines of all processes that have a word."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes().decode(errors="replace").split("\0"))
    return [line for line in lines if word in line]


def test_a_prompts_greeting_and_exit_code(tmp_path):
    """The program that greets, without a link around it."""
    words = shell._prompt(tmp_path, "left", 4711)
    environment = {"PATH": os.environ["PATH"], "AQMLAB_LEFT": "10.127.0.1", "AQMLAB_RIGHT": "10.255.0.1"}
    done = subprocess.run(words, input="exit 4", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "on the left of the link, at 10.127.0.1; the right is 10.255.0.1" in done.stderr
    assert "aqmlab shell --join 4711 --side right" in done.stderr


@pytest.mark.parametrize(
    ("status", "code"), [(None, 0), (0, 0), (7, 7), ("signal 1", 129), ("signal 15", 143), ("ended with the run", 137)]
)
def test_how_a_prompt_ended_is_its_exit_code(status, code):
    assert shell.exit_code(status) == code


@needs_engine
def test_a_prompt_is_told_what_a_run_is_told(monkeypatch, scenario_file, tmp_path):
    """Of `live.json` only what a prompt is differs, with the kernel's discipline too."""
    told = []

    def note(words, **_):
        told.append(json.loads((Path(words[-1]) / "live.json").read_text()))
        raise CannotRun("seen")

    monkeypatch.setattr(preflight, "check", lambda: None)
    monkeypatch.setattr(preflight, "controllers", lambda: ["cubic"])
    monkeypatch.setattr(plan.kernel_qdisc, "check", lambda resolved: None)
    monkeypatch.setattr(shell.subprocess, "run", note)
    with pytest.raises(CannotRun, match="seen"):
        shell.open_prompt(str(scenario_file), "right", None, False, {"live.qdisc": "kernel"})
    assert any("pie" in line for line in told[0]["settings"]["kernel_qdisc"]["links"][0])
    assert told[0]["side"] == "right" and told[0]["parent"] == os.getpid() and told[0]["traffic"] is False
    assert told[0]["progress"] is False  # which nobody reads, and a prompt may be open for days


def test_users_for_a_load_are_those_of_the_block_that_asks_for_it(monkeypatch, scenario_file):
    """A block of homes before it stands for several."""
    blocks = '[[traffic]]\nkind = "homes"\nhomes = 2\n[[traffic]]\nkind = "web"\nload = "5mbit"\n'
    scenario_file.write_text(SCENARIO[: SCENARIO.index("[[traffic]]")] + blocks)
    monkeypatch.setattr(shell.api, "calibrate", lambda *_, **__: [SimpleNamespace(traffic=6, users=70)])
    found = shell._resolved(str(scenario_file), True, {})
    assert not found.loads
    assert [(block["kind"], block.get("users")) for block in found.scenario["traffic"]][6:] == [("web", 70)]


def told_of(monkeypatch, *words):
    """What `aqmlab shell` tells the test bed."""
    told = []

    def note(arguments, **_):
        told.append(json.loads((Path(arguments[-1]) / "live.json").read_text()))
        raise CannotRun("seen")

    monkeypatch.setattr(preflight, "check", lambda: None)
    monkeypatch.setattr(shell.subprocess, "run", note)
    assert cli.invoke(["shell", *map(str, words)]) == CannotRun.exit_code
    return told[0]


@needs_engine
def test_a_program_runs_in_place_of_the_prompt(monkeypatch, scenario_file):
    told = told_of(monkeypatch, scenario_file, "--side", "right", "--", "env", "-i", "sh", "-c", "exit 3")
    assert told["command"] == ["env", "-i", "sh", "-c", "exit 3"] and told["side"] == "right"


@needs_engine
def test_a_network_without_its_traffic_has_its_routes(monkeypatch, scenario_file):
    monkeypatch.setattr(plan, "check", lambda resolved, is_virtual, has_traffic: None)
    quiet = shell._resolved(str(NETWORK), False, {}).scenario["traffic"]
    assert [block["route"] for block in quiet] == [["home"], ["core", "home"], ["core"]]
    assert {(block["kind"], block["flows"]) for block in quiet} == {("bulk", 1)}


def test_without_traffic_delays_lie_where_those_of_the_first_block_do():
    def quiet(*blocks):
        return shell._quiet({"traffic": list(blocks)})

    web = {"kind": "web", "load": "9mbit"}
    assert quiet() == quiet(web) == quiet(web, web) == quiet({**web, "rtt_at": "clients"}) == [shell.QUIET]
    assert quiet({**web, "rtt_at": "left"}, web) == [{**shell.QUIET, "rtt_at": "left"}, shell.QUIET]
    there, back = {**web, "route": ["a", "b"]}, {**web, "route": ["a", "b"], "reverse_route": ["b"]}
    assert [block.get("reverse_route") for block in quiet(there, back, there)] == [None, ["b"]]


@pytest.mark.alone
@needs_engine
def test_a_program_inside_a_network_ends_with_its_own_exit_code(link):
    asked = prompt(NETWORK, "--", "sh", "-c", "exit 7")
    said = asked.communicate(timeout=60)[1]
    assert asked.returncode == 7 and "forward: " in said, said


@needs_engine
def test_a_prompt_says_what_it_does_otherwise(capsys, monkeypatch, scenario_file):
    monkeypatch.setattr(plan, "check", lambda resolved, is_virtual, has_traffic: None)
    monkeypatch.setattr(shell.process, "arguments", lambda folder, is_virtual, kernel=None: ["false"])
    with pytest.raises(CannotRun, match="exit code 1"):
        shell.open_prompt(str(scenario_file), "left", None, False, {"live.qdisc": "kernel", "live.capture": "both"})
    said = capsys.readouterr().err
    assert "live.capture = both: a prompt has no result" in said and "kernel qdisc: " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected a scenario, or --join"),
        (["link.toml", "--join", "1"], "expected a scenario, or --join"),
        (["link.toml", "--side", "up"], "expected one of left, right"),
        (["link.toml", "--", "no-such-program", "-c", "1"], "no-such-program: no such program"),
        (["--join", "1", "--traffic"], "the link stands already"),
        (["--join", "1"], "no shell of yours has this number"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(capsys, monkeypatch, tmp_path, words, said):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert cli.invoke(["shell", *words]) == 2
    told = capsys.readouterr()
    assert told.out == "" and len(told.err.splitlines()) == 1 and said in told.err


def test_a_shell_is_found_wherever_it_noted_itself(monkeypatch, tmp_path):
    """The first terminal had no runtime folder, the second has."""
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.setattr(registry, "_folders", lambda: [tmp_path / "shared"])
    with registry.noted(folder):
        monkeypatch.setattr(registry, "_folders", lambda: [tmp_path / "own", tmp_path / "shared"])
        assert registry.folder_of(os.getpid()) == folder
        assert registry.folder_of(os.getppid()) is None


@pytest.mark.alone
@needs_engine
def test_a_program_inside_ends_with_its_own_exit_code(link):
    asked = prompt(link, "--", "sh", "-c", "echo at $AQMLAB_LEFT; exit 7")
    out, said = asked.communicate(timeout=60)
    assert asked.returncode == 7, said
    assert out == "at 10.127.0.1\n" and "You are on" not in said and "forward: " in said


@pytest.mark.alone
@needs_engine
@pytest.mark.parametrize(
    ("program", "code"),
    [
        ('trap "echo interrupted; exit 9" INT; echo up; while :; do sleep 0.1; done', 9),
        ("echo up; exec sleep 600", 128 + signal.SIGINT),  # it hears of no signal
    ],
)
def test_ctrl_c_is_the_programs(link, program, code):
    """The link stands until the program that it was meant for has ended, and says what it carried."""
    asked = prompt(link, "--", "sh", "-c", program, is_alone=True)
    try:
        assert asked.stdout is not None and asked.stdout.readline() == "up\n"
        os.killpg(asked.pid, signal.SIGINT)
        out, said = asked.communicate(timeout=60)
        assert asked.returncode == code, said
        assert out == ("interrupted\n" if code == 9 else "") and "forward: " in said and "Traceback" not in said
    finally:
        asked.kill()
        asked.communicate()


@pytest.mark.alone
@needs_engine
def test_a_prompt_and_one_that_joins(link):
    """Two terminals: what one sends the other receives, over the link; the first one's end is the other's."""
    first = prompt(link, "--side", "left", "--json")
    other = None
    try:
        assert first.stdin is not None and first.stderr is not None
        first.stdin.write("echo up >&2; read ending; exit $ending\n")
        first.stdin.flush()
        seen = []
        for line in first.stderr:
            seen.append(line)
            if line == "up\n":
                break
        assert any("You are on the left of the link, at 10.127.0.1" in line for line in seen), seen
        other = prompt("--join", first.pid, "--side", "right")
        receive = f"{sys.executable} -c 'import socket; s = socket.socket(); s.bind((\"10.255.0.1\", 0)); print(s)'"
        interrupt = f"{sys.executable} -c 'import signal; print(signal.getsignal(signal.SIGINT))'"
        left = "sleep 86424.5 & setsid sleep 86424.5 &"
        asked = f"echo $AQMLAB_LEFT; {receive}; {interrupt}; echo $AQMLAB_LIVE; {left} exit 5\n"
        said, errors = other.communicate(asked, timeout=60)
        assert (other.returncode, said.splitlines()[0]) == (5, "10.127.0.1"), errors
        assert "10.255.0.1" in said.splitlines()[1]  # the address of that side is its own
        assert "default_int_handler" in said.splitlines()[2]  # programs hear Ctrl-C
        assert said.splitlines()[3].startswith(f"{first.pid}:")  # `aqmlab doctor` would know whose it is
        assert programs_with("86424.5") == []
        other = prompt("--join", first.pid, "--side", "right")
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write("echo here\n")
        other.stdin.flush()
        assert other.stdout.readline() == "here\n"
        first.stdin.write("6\n")
        first.stdin.flush()
        said, errors = first.communicate(timeout=60)
        told = json.loads(said)
        assert first.returncode == told["exit_code"] == 6, errors
        assert "the link has gone" in other.communicate(timeout=60)[1] and other.returncode == 3
    finally:
        for one in (first, other):
            if one is not None:
                one.kill()
                one.communicate()


@pytest.mark.alone
@needs_engine
def test_ctrl_c_is_heard_by_what_takes_the_place_of_a_joined_shell(link):
    first, other = prompt(link, "--side", "left"), None
    try:
        assert first.stdin is not None and first.stdout is not None
        first.stdin.write("echo up; read ending\n")
        first.stdin.flush()
        assert first.stdout.readline() == "up\n"
        other = prompt("--join", first.pid, "--side", "right", is_alone=True)
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write("echo here; exec sleep 86424.7\n")
        other.stdin.flush()
        assert other.stdout.readline() == "here\n"
        began = time.monotonic()
        while not programs_with("86424.7") and time.monotonic() < began + 20:
            time.sleep(0.05)
        os.killpg(other.pid, signal.SIGINT)
        errors = other.communicate(timeout=60)[1]
        assert other.returncode == 128 + signal.SIGINT, errors
    finally:
        for one in (first, other):
            if one is not None:
                one.kill()
                one.communicate()


@pytest.mark.alone
@pytest.mark.parametrize("program", ["/bin/sh", "bash"])
def test_a_joined_shell_hears_that_its_link_has_gone(monkeypatch, program):
    """Without a link: it ends by itself long before it would be killed, and what it left behind with it."""
    monkeypatch.setattr(shell, "SIGHUP_WAIT_S", 60.0)
    if None in map(shutil.which, (program, "unshare")) or subprocess.call([*shell.FIRST, "true"]) != 0:
        pytest.skip(f"left out: there is no {program} here, or no namespace of processes")
    with subprocess.Popen([*shell.FIRST, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as joined:
        assert joined.stdin is not None and joined.stdout is not None
        joined.stdin.write("echo here; read ending\n")
        joined.stdin.flush()
        assert joined.stdout.readline() == "here\n"
        began = time.monotonic()
        assert shell._send_away(joined) == CannotRun.exit_code
        assert time.monotonic() - began < 30 and joined.returncode == 128 + signal.SIGHUP


@pytest.mark.alone
@needs_engine
def test_a_prompt_that_is_killed_is_no_failure_of_ours(link):
    """There is no traceback, and the exit code is the shells' for it; what the link carried is said all the same."""
    first = prompt(link)
    try:
        assert first.stdin is not None and first.stdout is not None
        # Its number is another in its own namespace; /proc is the machine's.
        first.stdin.write("awk '/^PPid/ { print $2 }' /proc/self/status; read ending\n")
        first.stdin.flush()
        os.kill(int(first.stdout.readline()), signal.SIGKILL)
        _, errors = first.communicate(timeout=60)
        assert first.returncode == 128 + signal.SIGKILL, errors
        assert "Traceback" not in errors and "forward: 0 packets" in errors, errors
    finally:
        first.kill()
        first.communicate()


@pytest.mark.alone
@needs_engine
@pytest.mark.skipif(shutil.which("ping") is None, reason="left out: there is no ping here")
def test_tens_of_thousands_of_connections_may_be_open(link):
    """A connection takes two files: the hosts raise their limit as far as they may, root beyond its own."""
    most = max(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 20)
    may_raise = subprocess.run(["prlimit", f"--nofile={most}:{most}", "true"], capture_output=True, check=False)
    first = prompt(link, "--traffic", files=256)
    try:
        assert first.stdin is not None and first.stdout is not None
        first.stdin.write("ping -c 1 -W 5 $AQMLAB_RIGHT | head -1; read ending\n")
        first.stdin.flush()
        assert first.stdout.readline().startswith("PING 10.255.0.1")
        folder = registry.folder_of(first.pid)
        assert folder is not None and not (folder / "progress.jsonl").exists()
        bed = json.loads((folder / shell.PLACE).read_text())["pid"]
        soft, hard = resource.prlimit(bed, resource.RLIMIT_NOFILE)
        assert soft == hard > 256 and (may_raise.returncode != 0 or soft >= 1 << 20), (soft, hard)
    finally:
        first.kill()
        first.communicate()
