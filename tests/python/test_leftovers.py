"""What processes leave that are killed: the next one removes it, and what they have started goes with them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli, comparison, scratch
from aqmlab.errors import BadInput, Interrupted
from aqmlab.results import store
from conftest import ROOT, hears_signals
from processes import is_alive


class Other:
    """Another process, which has run a program and waits."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import sys\n{program}\nprint(said, flush=True)\nsys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def others() -> Iterator[list[Other]]:
    started: list[Other] = []
    yield started
    for one in started:
        one.kill()


def two(others: list[Other], program: str) -> tuple[Path, Path]:
    """What a process that was killed, and one that lives, say of themselves."""
    others += [Other(program), Other(program)]
    others[0].kill()
    return Path(others[0].said), Path(others[1].said)


def test_the_folder_of_a_killed_process_goes_and_that_of_a_living_one_stays(others, tmp_path):
    make = f"from aqmlab import scratch\nfrom pathlib import Path\nown = scratch.Folder('run', Path({str(tmp_path)!r}))"
    dead, alive = two(others, f"{make}\n(own.path / 'queue.parquet').write_text('half')\nsaid = own.path")
    users = tmp_path / "aqmlab-results"
    users.mkdir()
    assert dead.is_dir() and alive.is_dir()
    assert scratch.tidy(tmp_path) == [dead]
    assert not dead.exists() and (alive / "queue.parquet").exists() and users.is_dir()


def test_the_folder_of_a_process_stays_when_a_fork_of_it_ends(tmp_path):
    program = (
        "import os, sys, gc\nfrom pathlib import Path\nfrom aqmlab import scratch\n"
        f"own = scratch.Folder('result', Path({str(tmp_path)!r}))\n"
        "forked = os.fork()\nif not forked: sys.exit(0)\n"
        "os.waitpid(forked, 0)\nforked = os.fork()\n"
        "if not forked:\n    own = None\n    gc.collect()\n    os._exit(0)\n"
        "os.waitpid(forked, 0)\nprint(own.path.is_dir())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "True\n" and list(tmp_path.iterdir()) == []


def test_the_first_folder_of_a_process_tidies_up(others, tmp_path):
    dead = tmp_path / "aqmlab-calibration-abcdefgh.scratch"
    dead.mkdir()
    with scratch.folder("run", tmp_path) as own:
        assert not dead.exists() and own.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_else_put_there_is_left_alone(tmp_path):
    target = tmp_path / "kept"
    target.mkdir()
    (tmp_path / "aqmlab-run-abcdefgh.scratch").symlink_to(target)
    assert scratch.tidy(tmp_path) == [] and target.is_dir()


def test_an_unfinished_file_of_a_killed_process_goes_with_the_next_writing(others, tmp_path):
    path = tmp_path / "comparison.json"
    begin = f"from aqmlab.results import store\nfrom pathlib import Path\nw = store.replacing(Path({str(path)!r}))"
    dead, alive = two(others, f"{begin}\nsaid = w.__enter__()\nsaid.write_text('half')")
    other = tmp_path / f".comparison.toml.{'0' * 32}.partial"
    other.write_text("another file's")
    assert dead.exists() and alive.exists()
    store.write_json(path, {})
    assert not dead.exists() and alive.exists() and other.exists()


def test_a_file_that_is_tidied_away_before_it_is_locked_is_begun_again(tmp_path, monkeypatch):
    path, lock, taken = tmp_path / "facts.json", store.fcntl.flock, []

    def late(file, how):
        if not taken:
            taken.append(how)
            store._tidy(path)
        lock(file, how)

    monkeypatch.setattr(store.fcntl, "flock", late)
    with store.replacing(path) as partial:
        assert taken and partial.exists()
        store._tidy(path)
        assert partial.exists()
        partial.write_text("whole")
    assert path.read_text() == "whole" and list(tmp_path.iterdir()) == [path]


def test_a_run_under_way_is_nobody_elses(others, tmp_path):
    begin = (
        f"from aqmlab.results import store\nfrom pathlib import Path\nm = store.making(Path({str(tmp_path / 'out')!r}))"
    )
    one = Other(begin + "\nsaid = m.__enter__()")
    others.append(one)
    with pytest.raises(BadInput, match="another aqmlab is writing into it"), store.making(tmp_path / "out"):
        pass
    assert Path(one.said).is_dir()
    one.kill()
    with store.making(tmp_path / "out") as place:
        assert list(place.iterdir()) == []


def test_a_copy_of_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    def cut_short(source: Path, target: Path) -> None:
        target.write_text("ha")
        raise KeyboardInterrupt

    (tmp_path / "sizes.csv").write_text("half of it")
    monkeypatch.setattr(store.shutil, "copyfile", cut_short)
    with pytest.raises(KeyboardInterrupt):
        store.copy(tmp_path / "sizes.csv", tmp_path / "kept.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["sizes.csv"]


def test_a_comparison_that_was_killed_before_it_had_a_plan_is_begun_anew(tmp_path):
    assert not store.is_begun(tmp_path)
    (tmp_path / f".comparison.json.{'0' * 32}.partial").write_text("{")
    assert not store.is_begun(tmp_path)
    (tmp_path / "comparison.json").write_text("{}")
    assert store.is_begun(tmp_path)


ENDLESS = "import os, signal, sys\nos.write(int(sys.argv[1]), b'.')\nwhile True: signal.pause()"
"""Says that it is there, and listens to nobody, as a worker does while it imports or computes."""

STARTED = f"""
import os, threading
from aqmlab.runs import starter
heard, says = os.pipe()
started = []
def start():
    started.append(starter.python({ENDLESS!r}, [str(says)], [says], os.environ))
    os.read(heard, 1)
"""

THREADED = f"""{STARTED}
thread = threading.Thread(target=start)
thread.start()
thread.join()
while os.path.exists(f"/proc/self/task/{{thread.native_id}}"):
    pass
said = started[0].pid
"""


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_worker_goes_with_its_caller_whatever_it_is_doing(others):
    others.append(Other(f"{STARTED}\nstart()\nsaid = started[0].pid"))
    worker = int(others[0].said)
    assert is_alive(worker)
    os.kill(others[0].process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30.0
    while is_alive(worker):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_worker_outlives_the_thread_that_asked_for_it(others):
    others.append(Other(THREADED))
    assert is_alive(int(others[0].said))


EARLY = """
import os, signal, sys
class Then:
    def find_spec(self, name, path=None, target=None):
        if name == "aqmlab.cli":
            os.kill(os.getpid(), signal.SIGNUMBER)
sys.meta_path.insert(0, Then())
from aqmlab.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_signal_before_anything_runs_says_so(name):
    done = subprocess.run(
        [sys.executable, "-c", EARLY.replace("NUMBER", name)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        preexec_fn=hears_signals,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "aqmlab: stopped before anything was run; nothing was written\n"


WITHIN = """
import os, signal, sys
from aqmlab import cli
def told(*_):
    exec("os.kill(os.getpid(), signal.SIGNUMBER)")
PLACE = told
cli.main(["run", "s.toml"])
"""


@pytest.mark.parametrize("place", ["cli.command_of", "cli.scenario.read"])
@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_in_code_made_of_text_says_a_line(name, place):
    done = subprocess.run(
        [sys.executable, "-c", WITHIN.replace("NUMBER", name).replace("PLACE", place)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        preexec_fn=hears_signals,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "aqmlab: stopped\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_a_verb_says_a_line(number, monkeypatch, capsys, base):
    monkeypatch.setattr(cli.scenario, "read", lambda _: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main(["run", str(base)])
    finally:
        signal.signal(number, before)
    assert ended.value.code == 130 and capsys.readouterr().err == "aqmlab: stopped\n"


def test_a_comparison_told_to_end_says_what_is_finished(monkeypatch, base, tmp_path):
    def stopped(folder, *given):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "finish", stopped)
    with pytest.raises(Interrupted, match=r"2 of 2 runs are finished in .*; the same call with resume=True goes on"):
        aqmlab.compare(base, "pfifo", "pi", out=tmp_path / "out")
