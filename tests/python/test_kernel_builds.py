"""Building a kernel of virtual time: what is refused before it takes minutes, and what is left where it is ended."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aqmlab import cli
from aqmlab.errors import CannotRun
from aqmlab.live import kernel, kernel_source, registry
from conftest import hears_signals


def refused(capsys, *words, code=2):
    assert cli.invoke(["kernel", "build", *map(str, words)]) == code
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    return said


def there(release="6.12.117", source="/usr/src/linux-source-6.12.tar.xz", name=None):
    folder = kernel.folder(name)
    folder.mkdir(parents=True)
    facts = {"release": release, "source": source, "options": [], "changes": [], "built": "now", "seconds": 1.0}
    (folder / "kernel.json").write_text(json.dumps(facts))
    (folder / "linux").write_text("")
    return folder / "linux"


@pytest.fixture
def tree(tmp_path):
    """What looks like the source of Linux."""
    folder = tmp_path / "tree"
    (folder / "arch/um").mkdir(parents=True)
    (folder / "arch/um/Kconfig").write_text("config HZ\n")
    return folder


def test_another_source_or_release_than_that_of_the_kernel_that_is_there_is_refused(capsys, tree):
    path, named = there(), there("7.3.4", str(tree), "7.3")
    said = refused(capsys, "--source", tree)
    assert said.startswith(
        f"aqmlab: kernel build: {path}: is Linux 6.12.117 from /usr/src/linux-source-6.12.tar.xz, not"
    )
    assert "expected --fresh to build it anew, or another --name" in said
    assert f"{named}: is Linux 7.3.4 from {tree}, not 7" in refused(capsys, "--release", "7.31", "--name", "7.3")
    for words in ([], ["--release", "7.3"], ["--name", "7.3", "--source", str(tree)]):
        assert cli.invoke(["kernel", "build", *words]) == 0
        assert "is there already" in capsys.readouterr().err


def test_an_empty_name_is_none(capsys, tree):
    assert "kernel '': expected a name of letters" in refused(capsys, "--name", "", "--source", tree)


def test_a_folder_within_the_source_is_refused(capsys, tree):
    """The tree would be copied into itself."""
    for out in (tree, tree / "out/kernel"):
        assert f"kernel build: {out}: lies in the source {tree}" in refused(capsys, "--source", tree, "-o", out)
    assert not (tree / "out").exists()


@pytest.mark.parametrize("name", ["of two words", "a:b"])
def test_a_path_that_linux_cannot_be_built_in_is_refused(capsys, tree, tmp_path, name):
    out = tmp_path / name / "kernel"
    said = refused(capsys, "--source", tree, "-o", out)
    assert f"kernel build: {out}: Linux cannot be built in a path with spaces or colons" in said
    assert not out.exists()


def test_a_full_disk_is_told_once(capsys, tree, tmp_path, monkeypatch):
    def full(source, target, **_):
        why = str(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{target}/init/main.c"))
        raise shutil.Error([(f"{source}/init/main.c", f"{target}/init/main.c", why)] * 1000)

    monkeypatch.setattr(kernel_source, "TOOLS", {})
    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(CannotRun) as caught:
        kernel.build(tree, tmp_path / "out", lambda said: None)
    said = str(caught.value)
    assert said.startswith(f"kernel build: copying {tree}: No space left on device: '") and len(said) < 300


def test_who_waits_for_another_build_says_so(tree):
    place = there().parent
    said = []
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def heard(text):
            said.append(text)
            fcntl.flock(lock, fcntl.LOCK_UN)

        kernel.build(None, None, heard)
    assert said == [f"waiting for another build in {place}", f"{place / 'linux'} is there already"]


def test_what_a_build_that_was_killed_has_left_is_removed(capsys, tmp_path):
    for name in (".building-x", ".source-y"):
        (tmp_path / "out" / name / "linux").mkdir(parents=True)
    assert cli.invoke(["kernel", "build", "--source", str(tmp_path / "none"), "-o", str(tmp_path / "out")]) == 2
    assert "which a build that was killed has left" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]


STARTS = """
import os, sys
sys.path.insert(0, {python!r})
from pathlib import Path
from aqmlab.live import kernel
kernel._as_group(["sh", "-c", "sh -c 'sleep {marker}; :' & sleep {marker}"], Path("/"), dict(os.environ), 2)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_what_compiles_ends_with_the_build(number):
    marker = f"86{os.getpid()}.{int(number)}"

    def sleepers():
        found = [path for path in Path("/proc").glob("[0-9]*") if registry.started(int(path.name)) is not None]
        return [path for path in found if words(path) == ["sleep", marker]]

    def words(path):
        try:
            return (path / "cmdline").read_text().split("\0")[:-1]
        except OSError:
            return []

    def wait_for(count):
        limit = time.monotonic() + 20
        while len(sleepers()) != count:
            assert time.monotonic() < limit, sleepers()
            time.sleep(0.02)

    script = STARTS.format(python=str(Path(cli.__file__).parents[1]), marker=marker)
    build = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL, preexec_fn=hears_signals)
    try:
        wait_for(2)
        build.send_signal(number)
        build.wait(20)
        wait_for(0)
    finally:
        build.kill()
        build.wait()
