"""Virtual time: the process around the kernel, with programs that need no test bed; left out where it is not built."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import aqmlab
from aqmlab import cli, scratch
from aqmlab.errors import BadInput, CannotRun
from aqmlab.live import kernel, kernel_source, machine, preflight, probe, registry, virtual
from aqmlab.live.machine import exports
from aqmlab.live.tried import tried
from aqmlab.runs import calibration

KERNEL = os.environ.get(kernel.VARIABLE) or str(calibration.cache_folder() / "kernel/linux")
"""Looked for before tests have a cache of their own."""

SCENARIO = 'duration = "2s"\n[link]\nrate = "1mbit"\n[[traffic]]\nkind = "bulk"\n'

NOBODY = 65534

needs_kernel = pytest.mark.skipif(
    not os.access(KERNEL, os.X_OK), reason="left out: no kernel of virtual time (aqmlab kernel build)"
)


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    if os.access(KERNEL, os.X_OK):
        monkeypatch.setenv(kernel.VARIABLE, KERNEL)


def words(folder: Path, program: str, **tree) -> list[str]:
    return virtual.machine(folder, [sys.executable, "-I", "-c", program], tree)


def answer(folder: Path, program: str, **tree) -> str:
    done = subprocess.run(words(folder, program, **tree), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (done, (folder / "machine.log").read_text())
    return done.stdout


def processes(word: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in line and registry.started(int(path.name)) is not None:
            found.append(int(path.name))
    return found


def wait_for(what, seconds=20.0):
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, "nothing came"
        time.sleep(0.05)


@needs_kernel
def test_output_exit_code_and_files_come_out(tmp_path):
    program = (
        f"import sys; print('said', flush=True); print('complained', file=sys.stderr);"
        f"open({str(tmp_path / 'written')!r}, 'w').write('kept'); sys.exit(7)"
    )
    done = subprocess.run(words(tmp_path, program), capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (7, "said\n", "complained\n")
    assert (tmp_path / "written").read_text() == "kept"
    assert not (tmp_path / "error.json").exists()


@needs_kernel
def test_an_hour_passes_at_once_and_no_sleeper_is_late(tmp_path):
    program = "import time; a = time.monotonic_ns(); time.sleep(3600); print(time.monotonic_ns() - a)"
    began = time.monotonic()
    slept_ns = int(answer(tmp_path, program))
    # Without PR_SET_TIMERSLACK Linux lets a timer be late by 50 us; reading the clock takes 256 ns.
    assert 3_600_000_000_000 <= slept_ns <= 3_600_000_051_000
    assert time.monotonic() - began < 60


CHANCE = """
import os, socket, subprocess, time
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
print(os.urandom(16).hex(), time.time())
for _ in range(3):
    with socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client.connect(listener.getsockname())
        print(listener.getsockname(), client.getsockname(), hash("text"))
"""


@needs_kernel
def test_chance_inside_is_the_seeds(tmp_path):
    first = answer(tmp_path, CHANCE, seed=1)
    assert answer(tmp_path, CHANCE, seed=1) == first
    other = answer(tmp_path, CHANCE, seed=2)
    assert all(a != b for a, b in zip(first.splitlines(), other.splitlines(), strict=True))


@needs_kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="left out: expected root, to be somebody else")
def test_no_privileges_are_needed():
    python = "/usr/bin/python3"
    if not os.access(python, os.X_OK) or not Path(KERNEL).stat().st_mode & 1:
        pytest.skip("left out: no interpreter that others may run")
    folder = Path(subprocess.check_output(["mktemp", "-d", "-p", "/tmp"], text=True).strip())
    try:
        for name, path in (("linux", KERNEL), ("machine.py", Path(virtual.HERE) / "machine.py")):
            (folder / name).write_bytes(Path(path).read_bytes())
            (folder / name).chmod(0o755)
        asked = virtual.machine(folder, [python, "-I", "-c", "import os; print(os.geteuid())"], {})
        facts = json.loads((folder / "machine.json").read_text())
        (folder / "machine.json").write_text(json.dumps({**facts, "kernel": str(folder / "linux")}))
        os.chown(folder, NOBODY, NOBODY)
        done = subprocess.run(
            [python, "-I", str(folder / "machine.py"), asked[-1]],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
        )
        assert (done.returncode, done.stdout) == (0, "0\n"), done
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_shell_reads_every_environment(tmp_path, shell):
    """Bash, where it is `sh`, ends at a variable of its own, and dash at a name that is not of ASCII letters."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"left out: there is no {shell} here")
    (tmp_path / "sh").symlink_to(program)
    odd = dict.fromkeys(("é", "a-b", "BASH_FUNC_x%%", "PPID", "SHELLOPTS", "OPTIND"), "abc")
    environment = {**odd, "UID": "1000", "KEY": "se'cret\n42 $(exit 1)", "_x1": ""}
    (tmp_path / "environment").write_text(exports(environment), encoding="utf-8")
    asks = [sys.executable, "-I", "-c", "import os; print([os.environ.get(name) for name in ('KEY', '_x1')])"]
    (tmp_path / "init").write_text(f". {tmp_path}/environment\n{shlex.join(asks)}\n", encoding="utf-8")
    done = subprocess.run([tmp_path / "sh", tmp_path / "init"], env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[\"se'cret\\n42 $(exit 1)\", '']\n", "")


@needs_kernel
def test_what_is_in_the_environment_comes_in_and_stays_nobody_elses(monkeypatch, tmp_path):
    """The caller's environment is inside as it is outside, and lies in no file that others may read or that stays."""
    monkeypatch.setenv("ACCESS_KEY", "se'cret 42")
    program = "import os, time; print(os.environ['ACCESS_KEY'], flush=True)\nwhile True: pass"
    tmp_path.chmod(0o755)
    machine = subprocess.Popen(words(tmp_path, program), stdout=subprocess.DEVNULL)
    try:
        wait_for((tmp_path / "machine.stdout").exists)
        wait_for((tmp_path / "machine.stdout").read_text)
        assert (tmp_path / "machine.stdout").read_text() == "se'cret 42\n"
        assert (tmp_path / "machine.init").stat().st_mode & 0o777 == 0o700
        kept = [path for path in tmp_path.iterdir() if path.is_file() and path.name != "machine.stdout"]
        assert len(kept) >= 3 and not any(b"cret 42" in path.read_bytes() for path in kept), kept
    finally:
        machine.terminate()
        assert machine.wait(20) == 3


SPIN = "print('up', flush=True)\nwhile True: pass"


@needs_kernel
@pytest.mark.parametrize("victim", ["parent", "machine", "kernel"])
def test_nothing_outlives_whoever_is_killed(tmp_path, victim):
    python = str(Path(cli.__file__).parents[1])
    start = (
        f"import sys; sys.path.insert(0, {python!r})\n"
        "import subprocess; from pathlib import Path; from aqmlab.live import virtual\n"
        f"asked = virtual.machine(Path({str(tmp_path)!r}), [sys.executable, '-I', '-c', {SPIN!r}], {{}})\n"
        "subprocess.run(asked)"
    )
    parent = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.DEVNULL)
    try:
        wait_for((tmp_path / "machine.stdout").exists)
        wait_for((tmp_path / "machine.stdout").read_text)
        machines = [pid for pid in processes(str(tmp_path)) if "machine.py" in command_line(pid) and pid != parent.pid]
        kernels = [pid for pid in processes(str(tmp_path)) if command_line(pid).startswith(KERNEL)]
        assert len(machines) == 1 and kernels
        first = min(kernels, key=lambda pid: registry.started(pid) or 0)
        os.kill({"parent": parent.pid, "machine": machines[0], "kernel": first}[victim], signal.SIGKILL)
        parent.wait(20)
        wait_for(lambda: not processes(str(tmp_path)))
        if victim == "kernel":
            said = json.loads((tmp_path / "error.json").read_text())
            assert said == {"message": "virtual time: the kernel was killed by signal 9", "exit_code": 3}
    finally:
        parent.kill()
        parent.wait()


KERNEL_OF_WORDS = """#!/bin/sh
pwd > machine.seen
printf '%s\\n' "$@" >> machine.seen
cat machine.environment > machine.copy
echo 7 > machine.code
"""


@pytest.fixture
def kernel_of_words(monkeypatch, tmp_path):
    """A kernel that writes down how it was started."""
    path = tmp_path / "linux"
    path.write_text(KERNEL_OF_WORDS)
    path.chmod(0o755)
    (tmp_path / "kernel.json").write_text('{"release": "6.12.0"}')
    monkeypatch.setenv(kernel.VARIABLE, str(path))
    return path


def test_a_folder_may_have_spaces_and_an_environment_any_bytes(kernel_of_words, tmp_path):
    """A kernel makes one line of its words, and words of that again; in quotation marks they are one."""
    folder = tmp_path / "of two words"
    folder.mkdir()
    asked = words(folder, "")
    done = subprocess.run(asked, env={**os.environb, b"NO_UTF_8": b"\xff'"}, check=False, timeout=60)
    assert done.returncode == 7
    place, *found = (folder / "machine.seen").read_text().splitlines()
    assert place == str(folder) and f'init="{folder}/machine.init"' in found and "uml_dir=machine.kernel" in found
    assert [word for word in found if " " in word and '"' not in word] == []
    assert b"export NO_UTF_8='\xff'\"'\"''\n" in (folder / "machine.copy").read_bytes()


def test_a_folder_that_no_kernel_can_be_told_is_named(kernel_of_words, tmp_path):
    folder = tmp_path / 'of "words"'
    folder.mkdir()
    assert subprocess.run(words(folder, ""), check=False, timeout=60).returncode == 3
    said = json.loads((folder / "error.json").read_text())["message"]
    assert said.startswith("virtual time: ") and "without quotation marks" in said


OWN_FOLDERS = [("/dev/shm", "/dev"), ("/run", "/run"), ("/proc", "/proc"), ("/sys", "/sys")]


@pytest.mark.parametrize(("place", "own"), OWN_FOLDERS)
def test_folders_that_are_not_seen_inside_are_refused(kernel_of_words, tmp_path, monkeypatch, place, own):
    """The kernel has its own there: what a program changes in the caller's folder would be another folder's."""
    said = f": expected a folder that does not lie below {own}, of which the kernel has its own"
    monkeypatch.setattr(preflight, "check_programs", lambda: None)
    (tmp_path / "link").symlink_to(place)
    for folder in (Path(place, "a-result"), tmp_path / "link/a-result"):
        with pytest.raises(CannotRun, match=f"^virtual time: results in {folder}{said}$"):
            virtual.check_place(folder)
    virtual.check()
    asked = words(tmp_path, "")
    monkeypatch.chdir(place)
    with pytest.raises(CannotRun, match=f"^virtual time: working in {place}{said}$"):
        virtual.check()
    assert subprocess.run(asked, check=False, timeout=60).returncode == 3
    assert json.loads((tmp_path / "error.json").read_text())["message"] == f"virtual time: {place}{said}"
    assert not (tmp_path / "machine.seen").exists()
    # What a kernel has can be tried from any folder, but not with files in any.
    monkeypatch.setattr(scratch, "folder", lambda what: contextlib.nullcontext(tmp_path))
    tried("--marks", virtual_time=True)
    assert (tmp_path / "machine.seen").exists()
    monkeypatch.setattr(scratch, "folder", lambda what: contextlib.nullcontext(Path(place)))
    found = tried("--marks", virtual_time=True)
    assert found == {"failed": f"temporary files in {place}{said}", "remedy": "set TMPDIR to another folder"}


def test_results_in_a_folder_that_is_not_seen_inside_are_refused_before_the_run(kernel_of_words, tmp_path, compiled):
    with pytest.raises(CannotRun, match=r"^virtual time: results in /dev/shm/"):
        aqmlab.live(SCENARIO, out=f"/dev/shm/{tmp_path.name}", virtual=True)
    assert not Path("/dev/shm", tmp_path.name).exists()


@needs_kernel
def test_a_program_does_not_run_in_another_folder_than_the_callers(tmp_path, monkeypatch):
    """Another user's, say, whom nobody is inside; here one that is gone."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = machine.INIT.replace("cd {cwd}", f"rmdir {gone}\ncd {{cwd}}")
    changed = Path(machine.__file__).read_text().replace(machine.INIT.partition("\n")[2], script.partition("\n")[2])
    (tmp_path / "machine.py").write_text(changed)
    folder = tmp_path / "run"
    folder.mkdir()
    asked = words(folder, f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(gone)
    asked = [*asked[:2], str(tmp_path / "machine.py"), str(folder)]
    assert subprocess.run(asked, check=False, timeout=60).returncode == 3
    assert "can't cd to" in json.loads((folder / "error.json").read_text())["message"]
    assert not (tmp_path / "ran").exists()


def test_the_kernels_last_words_are_told_also_where_a_signal_ended_it(kernel_of_words, tmp_path):
    kernel_of_words.write_text("#!/bin/sh\necho 'Kernel panic - not syncing: no root'\necho; kill -ABRT $$\n")
    assert subprocess.run(words(tmp_path, ""), check=False, timeout=60).returncode == 3
    told = json.loads((tmp_path / "error.json").read_text())["message"]
    assert told == "virtual time: the kernel was killed by signal 6: Kernel panic - not syncing: no root"


@needs_kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="left out: expected root, to mount a small disk")
def test_a_full_disk_is_named(tmp_path):
    folder = tmp_path / "disk/run"
    start = (
        f"import sys; sys.path.insert(0, {str(Path(cli.__file__).parents[1])!r})\n"
        "import subprocess; from pathlib import Path; from aqmlab.live import virtual\n"
        f"folder = Path({str(folder)!r}); folder.mkdir()\n"
        "asked = virtual.machine(folder, [sys.executable, '-I', '-c', \"print('9' * 90000)\"], {})\n"
        "subprocess.run(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)\n"
        "print((folder / 'error.json').read_text())"
    )
    (tmp_path / "disk").mkdir()
    script = f'mount -t tmpfs -o size=64k tmpfs {tmp_path}/disk && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", script, "sh", sys.executable, "-c", start]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if not done.stdout and "mount" in done.stderr + done.stdout:
        pytest.skip("left out: no mount namespace")
    assert json.loads(done.stdout)["message"] == f"virtual time: {folder}: no space left", done


@needs_kernel
def test_an_exit_code_comes_out_whatever_separates_words(tmp_path, monkeypatch):
    monkeypatch.setenv("IFS", "0")
    assert answer(tmp_path, "import os; print(os.environ['IFS'])") == "0\n"


def test_a_machine_whose_starter_has_gone_does_not_start(kernel_of_words, tmp_path):
    """Its parent is then another process, and would not take it with it."""
    asked = words(tmp_path, "")
    between = subprocess.run(
        [sys.executable, "-c", f"import subprocess; print(subprocess.run({asked!r}).returncode)"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert between.stdout == f"{-signal.SIGKILL}\n" and not (tmp_path / "machine.seen").exists()


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


@needs_kernel
def test_asked_to_stop_it_does(tmp_path):
    machine = subprocess.Popen(words(tmp_path, SPIN), stdout=subprocess.DEVNULL)
    wait_for((tmp_path / "machine.stdout").exists)
    machine.terminate()
    assert machine.wait(20) == 3
    assert json.loads((tmp_path / "error.json").read_text())["message"] == "stopped"
    wait_for(lambda: not processes(str(tmp_path)))


@needs_kernel
def test_the_kernel_has_what_the_laboratory_needs(tmp_path):
    found = json.loads(
        subprocess.run(
            virtual.machine(tmp_path, [sys.executable, "-I", probe.__file__, "--virtual"], {}),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
    )
    assert found["namespaces"] is None and found["tun"] is None and found["ipv6"]
    assert {"reno", "cubic", "bbr", "dctcp"} <= set(found["controllers"])
    there = {name for name, takes in found["qdiscs"].items() if takes}
    assert there >= {"htb", "pfifo", "red", "codel", "fq_codel", "pie", "cake", "sfq", "netem"}


@needs_kernel
def test_tens_of_thousands_of_connections_may_be_open(tmp_path):
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    assert answer(tmp_path, program) == "(1048576, 1048576)\n"


def test_more_users_get_more_memory():
    assert virtual.memory_mb({}) == 1024
    assert virtual.memory_mb({"traffic": [{"users": 10_000}, {"flows": 2000}]}) == 1024 + 12_000 * 64 // 1024


def test_without_a_kernel_a_line_says_how_to_get_one(capsys, monkeypatch):
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    with pytest.raises(CannotRun, match="aqmlab kernel build makes one"):
        virtual.check()
    assert cli.invoke(["kernel", "show"]) == 3
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "aqmlab kernel build" in said


def test_what_is_no_kernel_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv(kernel.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(BadInput, match=r"AQMLAB_KERNEL: .*none: expected a kernel"):
        kernel.find()
    assert cli.invoke(["kernel", "show"]) == 2


@pytest.mark.parametrize("source", ["none", ""])
def test_what_is_no_source_is_named(capsys, tmp_path, source):
    asked = ["kernel", "build", "--source", str(tmp_path / source), "-o", str(tmp_path / "out")]
    assert cli.invoke(asked) == 2
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and "--source" in said.err


def test_without_source_and_rights_a_line_says_what_to_install(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_source, "SOURCES", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cli.invoke(["kernel", "build"]) == 3
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "apt-get install linux-source-6.12 make gcc" in said


def made(folder: Path, release: str) -> None:
    folder.mkdir(parents=True)
    facts = {"release": release, "source": "x", "options": [], "changes": [], "built": "now", "seconds": 1.0}
    (folder / "kernel.json").write_text(json.dumps(facts))
    (folder / "linux").write_text("")
    (folder / "linux").chmod(0o755)


def test_kernels_lie_side_by_side(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path))
    made(tmp_path / "kernels/7.3", "7.3.4")
    made(tmp_path / "kernels/prague", "6.1.0-l4s")
    made(tmp_path / "kernel", "6.12.0")
    assert kernel.names() == ["7.3", "prague"]
    releases = {name: kernel.needed(name).release for name in (None, "7.3", "prague")}
    assert releases == {None: "6.12.0", "7.3": "7.3.4", "prague": "6.1.0-l4s"}
    monkeypatch.setenv(kernel.VARIABLE, "prague")
    assert kernel.needed().release == "6.1.0-l4s" and kernel.needed("7.3").release == "7.3.4"
    asked = virtual.machine(tmp_path, ["python"], {}, "7.3")
    assert json.loads((tmp_path / "machine.json").read_text())["kernel"] == str(tmp_path / "kernels/7.3/linux")
    assert asked[-1] == str(tmp_path)
    # One that is there by this name is not built again.
    assert cli.invoke(["kernel", "build", "--release", "7.3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "7.3"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ["show", "8.1"],
            "kernel 8.1: none is called so; there is none with a name; aqmlab kernel build --release 8.1",
        ),
        (["show", "../7"], "kernel '../7': expected a name of letters, digits, dots and hyphens"),
        (["build", "--release", "seven"], "--release seven: expected a release of Linux such as 7.3"),
        (["build", "--release", "7.3", "--source", "x"], "--release with --source: expected one of them"),
        (["build", "--name", "mine", "-o", "x"], "--name with --out: expected one of them"),
    ],
)
def test_wrong_names_of_kernels_get_one_line(capsys, monkeypatch, tmp_path, asked, said):
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path))
    assert cli.invoke(["kernel", *asked]) == 2
    told = capsys.readouterr().err
    assert said in told and len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("sources.list", "# deb http://old/debian x main\ndeb http://mirror/debian bookworm main\n", "http://mirror/debian"),
        ("sources.list.d/a.sources", "Types: deb\nURIs: https://near/debian/\nSuites: x\n", "https://near/debian"),
        ("sources.list.d/b.sources", "URIs: http://other/debian-security\n", kernel_source.MIRROR),
        ("sources.list.d/c.list", "deb [arch=amd64] http://own/tools stable main\n", kernel_source.MIRROR),
    ],
)  # fmt: skip
def test_a_newer_source_comes_from_the_mirror_of_this_machine(tmp_path, name, text, found):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text)
    assert kernel_source.mirror(tmp_path) == found


def test_a_kernel_that_is_there_is_not_built_again(capsys, tmp_path):
    facts = {"release": "6.12.0", "source": "x", "options": [], "changes": [], "built": "now", "seconds": 1.0}
    (tmp_path / "kernel.json").write_text(json.dumps(facts))
    (tmp_path / "linux").write_text("")
    assert cli.invoke(["kernel", "build", "-o", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["release"] == "6.12.0" and "there already" in said.err
