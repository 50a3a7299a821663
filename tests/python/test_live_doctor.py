"""What the doctor says of a machine, and what it removes after runs that were killed."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from rich.console import Console

from aqmlab import cli
from aqmlab.errors import CannotRun
from aqmlab.live import doctor, kernel, kernel_qdisc, preflight, probe, registry

PROBED = {
    "release": "6.12.0",
    "is_virtual": False,
    "lateness_s": {"p50": 20e-6, "p99": 60e-6, "max": 1e-3},
    "namespaces": None,
    "tun": None,
    "qdiscs": dict.fromkeys(("pfifo", "htb", "tbf", "fq_codel", "dualpi2"), True),
    "controllers": ["reno", "cubic", "bbr"],
    "ipv6": True,
}


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv(kernel.VARIABLE, raising=False)


def examined(monkeypatch, here=None, inside=None):
    monkeypatch.setattr(doctor, "tried", lambda virtual_time, name=None: (inside if virtual_time else here) or PROBED)
    there = object() if inside is not None else None
    monkeypatch.setattr(kernel, "find", lambda name=None: there)
    return doctor.examine()


def verdicts(found):
    return {key: one.good for key, one in found.verdicts.items()}


def test_a_machine_that_has_everything(monkeypatch):
    found = examined(monkeypatch, inside={**PROBED, "is_virtual": True})
    assert verdicts(found)["virtual time"] == verdicts(found)["kernel qdisc"] == "yes"
    assert verdicts(found)["real time"] in ("yes", "with limits")  # this machine's own cores and open files count
    assert found.can_run


@pytest.mark.parametrize(
    ("change", "what", "said"),
    [
        ({"namespaces": "Operation not permitted"}, "network namespaces", "user.max_user_namespaces"),
        ({"tun": "No such device"}, "TUN devices", "modprobe tun"),
        ({"tun": "Permission denied"}, "TUN devices", "chmod 666 /dev/net/tun"),
    ],
)
def test_what_real_time_lacks_is_said_with_a_remedy(monkeypatch, change, what, said):
    found = examined(monkeypatch, here={**PROBED, **change})
    assert found.verdicts["real time"].good == "no"
    finding = next(one for one in found.findings if one.what == what)
    assert finding.good == "no" and said in (finding.remedy or "")
    assert not found.can_run  # no kernel of virtual time either
    assert "aqmlab kernel build" in (found.verdicts["virtual time"].remedy or "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lateness_s": {"p50": 2e-5, "p99": 3e-4, "max": 1e-3}}, "lateness of a sleeper"),
        ({"lateness_s": {"p50": 2e-5, "p99": 1e-4, "max": 6e-3}}, "lateness of a sleeper"),
        ({"controllers": ["cubic"]}, "congestion controllers"),
        ({"ipv6": False}, "IPv6"),
    ],
)
def test_what_limits_real_time_is_said(monkeypatch, change, said):
    found = examined(monkeypatch, here={**PROBED, **change})
    assert found.verdicts["real time"].good == "with limits" and said in found.verdicts["real time"].found
    assert found.can_run


@pytest.mark.parametrize(
    ("here", "inside", "good"),
    [
        ({"htb": False, "tbf": False, "fq_codel": True}, None, "no"),  # nothing to shape with
        ({"htb": False, "tbf": True, "fq_codel": True}, None, "no"),  # nor with what no run takes
        ({"htb": True, "fq_codel": False}, None, "with limits"),
        ({"htb": True, "fq_codel": False}, {"htb": True, "fq_codel": True}, "yes"),
    ],
)
def test_disciplines_of_the_kernel_need_a_shaper(monkeypatch, here, inside, good):
    found = examined(monkeypatch, {**PROBED, "qdiscs": here}, inside and {**PROBED, "qdiscs": inside})
    assert found.verdicts["kernel qdisc"].good == good


def test_the_table_and_the_exit_code(capsys, monkeypatch):
    found = examined(monkeypatch, here={**PROBED, "namespaces": "Operation not permitted"})
    monkeypatch.setattr(doctor, "examine", lambda: found)
    assert cli.invoke(["doctor"]) == 3
    said = capsys.readouterr().out
    assert "real time: no" in said and "virtual time: no" in said
    assert cli.invoke(["doctor", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["can_run"] is False and told["verdicts"]["real time"]["good"] == "no"
    out = Console(file=io.StringIO(), width=80)
    doctor.show(out, found)
    assert max(map(len, out.file.getvalue().splitlines())) <= 80 and "…" not in out.file.getvalue()


def test_this_machine_is_examined(capsys):
    """What the doctor says is what unshare(1) and ip(8) find here."""
    code = cli.invoke(["doctor", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert set(told["verdicts"]) == {"real time", "virtual time", "kernel qdisc"}
    found = {one["what"]: one for one in told["findings"]}
    words = ["unshare", "-n" if os.geteuid() == 0 else "-Urn", "ip", "tuntap", "add", "aqm0", "mode", "tun"]
    has_bed = subprocess.run(words, capture_output=True, check=False).returncode == 0
    assert (found["network namespaces"]["good"] == found["TUN devices"]["good"] == "yes") == has_bed, found
    assert (told["verdicts"]["real time"]["good"] != "no") == has_bed
    assert found["kernel of virtual time"]["good"] == "no"  # these tests have a cache of their own, without one
    assert told["verdicts"]["virtual time"]["good"] == "no"
    assert code == (0 if has_bed else 3) and told["can_run"] == has_bed
    assert list(Path(tempfile.gettempdir()).glob("aqmlab-doctor-*")) == []


def test_only_the_kernels_disciplines_need_tc(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: None if name == "tc" else f"/bin/{name}")
    found = examined(monkeypatch, here={**PROBED, "qdiscs": dict.fromkeys(PROBED["qdiscs"], False)})
    assert found.verdicts["real time"].good != "no" and found.verdicts["kernel qdisc"].good == "no"
    finding = next(one for one in found.findings if one.what == "tools to look with")
    assert finding.good == "with limits" and "iproute2" in (finding.remedy or "")


def test_without_ip_nothing_runs(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: None if name == "ip" else f"/bin/{name}")
    found = examined(monkeypatch)
    assert found.verdicts["real time"].good == "no" and "iproute2" in (found.verdicts["real time"].remedy or "")
    with pytest.raises(CannotRun, match="expected the program ip"):
        preflight.check_programs()


def test_programs_of_the_system_need_not_be_in_the_path(monkeypatch):
    """A user's PATH may end before /usr/sbin, where tc is; where it is not at all, there is nothing to compare."""
    has, programs = kernel_qdisc.available(), next(doctor._programs())
    monkeypatch.setenv("PATH", "/nowhere")
    assert kernel_qdisc.available() == has
    assert next(doctor._programs()) == programs
    monkeypatch.delenv("PATH")
    assert probe.path() == probe.SYSTEM  # an empty folder would be the one that one is in


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="left out: expected root and setpriv")
def test_root_without_capabilities_is_what_any_user_is():
    """Root of a container may have a user namespace though it may not make a network namespace without one."""
    script = f"{sys.executable} -I {probe.__file__} --namespaces; unshare -Urn true && echo allowed"
    words = ["setpriv", "--bounding-set=-sys_admin", "sh", "-c", script]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()
    assert (json.loads(said[0])["namespaces"] is None) == (said[1:] == ["allowed"])


def test_a_kernel_that_is_broken_is_named_beside_the_others(monkeypatch, tmp_path, capsys):
    cache = kernel.folder("x").parent
    for name, facts in (("7.3", '{"x": 1}'), ("mine", None), ("my kernel", None), ("-x", "[]")):
        (cache / name).mkdir(parents=True)
        (cache / name / "linux").write_bytes(b"\x00garbage")
        (cache / name / "linux").chmod(0o755)
        if facts is not None:
            (cache / name / "kernel.json").write_text(facts)
    assert kernel.names() == ["7.3", "mine"]
    found = {one.what: one for one in doctor.examine().findings}
    assert found["kernel 7.3 of virtual time"].found.startswith(f"{cache / '7.3/kernel.json'}: release: missing")
    said = f"{cache / 'mine/linux'}: Exec format error; expected a kernel built as a program"
    assert (found["kernel mine of virtual time"].found, found["kernel mine of virtual time"].good) == (said, "no")
    assert cli.invoke(["kernel", "show", "mine"]) == 3
    assert capsys.readouterr().err == f"aqmlab: {said}\n"


RUN = """
import os, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {python!r})
from aqmlab.live import registry
folder, partial = Path({folder!r}), Path({partial!r})
folder.mkdir(); partial.mkdir(); (partial / "queue.parquet").write_text("half")
with registry.noted(folder, partial) as marked:
    subprocess.Popen(["sleep", "600"], env={{**os.environ, **marked}}, start_new_session=True)
    print("up", flush=True)
    time.sleep(600)
"""


def started_run(tmp_path, name):
    folder, partial = tmp_path / f"{name}-run", tmp_path / f".{name}.partial"
    python = str(Path(cli.__file__).parents[1])
    text = RUN.format(python=python, folder=str(folder), partial=str(partial))
    run = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    with run.stdout:
        assert run.stdout.readline() == "up\n"
    return run, folder, partial


def sleepers(folder):
    marks = {pid: registry.mark(pid) for pid in registry._own_processes()}
    return [pid for pid, found in marks.items() if found is not None and found["folders"] == [str(folder)]]


def test_a_killed_run_is_cleaned_up_and_one_that_lives_is_left_alone(capsys, tmp_path):
    dead, dead_folder, dead_partial = started_run(tmp_path, "dead")
    alive, alive_folder, alive_partial = started_run(tmp_path, "alive")
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert len(sleepers(dead_folder)) == 1 and len(sleepers(alive_folder)) == 1
        assert [one.folders for one in registry.remains()] == [[str(dead_folder), str(dead_partial)]]
        assert cli.invoke(["doctor", "--clean"]) == 0
        said = capsys.readouterr().out
        assert f"removed {dead_partial}" in said and "ended process" in said
        assert f"alive, left alone: {alive_folder}" in said
        assert not dead_folder.exists() and not dead_partial.exists() and not sleepers(dead_folder)
        assert (alive_partial / "queue.parquet").exists() and len(sleepers(alive_folder)) == 1
        assert cli.invoke(["doctor", "--clean", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["removed"] == [] and str(alive_folder) in told["alive"]
    finally:
        for run in (dead, alive):
            run.kill()
            run.wait()
        registry.clean()
    assert not sleepers(alive_folder) and not alive_folder.exists()


def test_a_run_that_ends_in_order_leaves_no_note(tmp_path):
    with registry.noted(tmp_path / "run") as marked:
        began = registry.started(os.getpid())
        namespace = Path("/proc/self/ns/pid").stat().st_ino
        assert marked == {"AQMLAB_LIVE": f"{os.getpid()}:{began}:{namespace}:{tmp_path / 'run'}"}
        assert registry.living() == [str(tmp_path / "run")]
    assert registry.living() == [] and registry.remains() == []


def test_a_number_that_was_given_out_again_is_not_the_run(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with registry.noted(folder):
        note = next(registry.folder().glob("*.json"))
        facts = json.loads(note.read_text())
        note.write_text(json.dumps({**facts, "started": facts["started"] - 1}))
        assert [one.folders for one in registry.remains()] == [[str(folder)]]


def killed(folder):
    """What a run that was killed leaves of its folder: a note, a token, half a table."""
    folder.mkdir()
    with registry.noted(folder):
        file = next(registry.folder().glob("*.json"))
        text, token = file.read_text(), (folder / registry.TOKEN).read_text()
    facts = json.loads(text)
    (folder / registry.TOKEN).write_text(token)
    (folder / "queue.parquet").write_text("half")
    file.write_text(json.dumps({**facts, "started": facts["started"] - 1}))
    return file


def test_a_folder_that_was_made_anew_is_not_the_dead_runs(tmp_path):
    """The same command again after SIGKILL: the same folder, and this one lives; or is a simulated run's."""
    folder = tmp_path / ".l.partial"
    note = killed(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "queue.parquet").write_text("of a simulated run")
    assert registry.remains() == [] and registry.clean() == []
    assert (folder / "queue.parquet").exists() and not note.exists()
    shutil.rmtree(folder)
    stale = killed(folder)
    kept = stale.read_text()
    shutil.rmtree(folder)
    folder.mkdir()
    with registry.noted(folder):
        assert not stale.exists()  # whoever has the folder now has thrown away what was there
        stale.write_text(kept)
        assert registry.remains() == [] and registry.clean() == []
        assert folder.exists() and registry.living() == [str(folder)]
    assert list(folder.iterdir()) == []  # no token stays in what becomes a result


@pytest.mark.parametrize("other", [{"boot": "another start"}, {"processes": 1}])
def test_runs_of_other_containers_and_starts_are_left_alone(capsys, tmp_path, other):
    folder = tmp_path / ".l.partial"
    note = killed(folder)
    note.write_text(json.dumps({**json.loads(note.read_text()), **other}))
    assert registry.remains() == [] and registry.living() == [] and registry.elsewhere() == [str(folder)]
    assert cli.invoke(["doctor", "--clean"]) == 0
    assert f"left alone: {folder}" in capsys.readouterr().out and (folder / "queue.parquet").exists() and note.exists()


def test_a_process_of_another_container_is_left_alone(tmp_path):
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    for number, is_ended in ((namespace + 1, False), (namespace, True)):
        value = f"{os.getpid()}:1:{number}:{tmp_path}"
        sleeper = subprocess.Popen(["sleep", "600"], env={registry.MARK: value})
        try:
            while registry.mark(sleeper.pid) is None:  # the new program's environment comes a moment after its start
                time.sleep(0.01)
            registry.clean()
            assert (registry.started(sleeper.pid) is None) == is_ended
        finally:
            sleeper.kill()
            sleeper.wait()


def test_notes_are_only_where_nobody_else_can_put_them(monkeypatch, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("")
    places = tmp_path / "open", tmp_path / "link"
    places[0].mkdir()
    places[0].chmod(0o777)
    places[1].symlink_to(victim)
    for place in places:
        monkeypatch.setattr(registry, "_folders", lambda place=place: [place])
        with pytest.raises(CannotRun, match="that nobody else may open"), registry.noted(tmp_path / "run"):
            pass
        lie = {"pid": 1, "started": 1, "token": "x", "folders": [str(victim)], **registry._here()}
        (place / "1-lie.json").write_text(json.dumps(lie))
        assert registry.clean() == [] and (victim / "kept").exists()


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path):
    folder, victim = tmp_path / ".l.partial", tmp_path / "victim"
    note = killed(folder)
    folder.rename(victim)
    folder.symlink_to(victim)
    assert registry.clean() == [] and (victim / "queue.parquet").exists() and not note.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', '{"pid": 1, "folders": []}'])
def test_a_note_that_makes_no_sense_is_removed_when_it_is_old(tmp_path, text):
    registry.folder().mkdir()
    registry.folder().chmod(0o700)
    note = registry.folder() / "1-x.json"
    note.write_text(text)
    assert registry.clean() == [] and note.exists()  # it may just be being written
    os.utime(note, (0, 0))
    assert registry.clean() == [] and not note.exists()


def test_a_process_is_named_by_its_start():
    began = registry.started(os.getpid())
    assert began is not None and began == registry.started(os.getpid())
    done = subprocess.Popen(["true"])
    os.waitid(os.P_PID, done.pid, os.WEXITED | os.WNOWAIT)
    assert registry.started(done.pid) is None  # dead, though not yet buried
    done.wait()
    assert registry.started(done.pid) is None
