import html
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import aqmlab
import fake_native
from aqmlab import cli, engine, report
from aqmlab.command import live_view as view
from aqmlab.errors import CannotRun
from aqmlab.live import plan, preflight, process, runs, settings
from aqmlab.live.settings import Settings
from aqmlab.progress import Unseen
from aqmlab.results import summaries
from conftest import NATIVE

CHILD = Path(__file__).with_name("fake_child.py")
REMARK = "Linux has no setting for syn_timer 3s (Linux 1s)"


@pytest.fixture(autouse=True)
def test_bed(monkeypatch):
    """A test bed that is a stand-in, and needs nothing of the machine."""
    sysctl = {"net.ipv4.tcp_congestion_control": "reno", "net.ipv4.tcp_ecn": "0"}
    for module in (plan, runs):
        monkeypatch.setattr(module, "settings", lambda resolved: Settings(sysctl, "", (), (REMARK,)))
    monkeypatch.setattr(preflight, "check", lambda: None)
    monkeypatch.setattr(preflight, "beside", list)  # other tests run beside this one
    monkeypatch.setattr(preflight, "controllers", lambda: ["reno", "cubic"])
    monkeypatch.setattr(plan.virtual, "check", lambda kernel: None)
    monkeypatch.setattr(
        process, "arguments", lambda folder, is_virtual, kernel=None: [sys.executable, str(CHILD), str(folder)]
    )
    monkeypatch.setattr(process, "LOOK_S", 0.01)
    monkeypatch.delenv("FAKE_CHILD", raising=False)


@pytest.fixture
def small(base):
    base.write_text(base.read_text().replace('load = "98mbit"', "users = 18000"))
    return base


def test_a_live_run_becomes_the_same_folder_as_a_simulated_one(small, tmp_path):
    simulated = aqmlab.run(small, out=tmp_path / "s")
    found = aqmlab.live(small, out=tmp_path / "l")
    names = {path.name for path in simulated.folder.iterdir()}
    assert {path.name for path in found.folder.iterdir()} == names
    assert found.manifest["scenario_digest"] == simulated.manifest["scenario_digest"]
    assert found.manifest["demand_digest"] == simulated.manifest["demand_digest"]
    assert set(simulated.manifest) | {"live"} == set(found.manifest)
    assert found.manifest["live"]["settings"]["sysctl"]["net.ipv4.tcp_ecn"] == "0"
    assert found.manifest["live"]["readback"]["sysctls"]["net.ipv4.tcp_ecn"] == "0"
    assert found.manifest["live"]["remarks"] == [REMARK] and found.void is None and found.live["clock"] == "real"
    assert all(check["holds"] for check in found.manifest["self_checks"])
    assert [c["name"] for c in found.manifest["self_checks"]].count("the test bed kept its budget") == 1
    assert found.exchanges.height == found.summary["exchanges"]["completed"]
    assert report.write(found).exists()
    # What it found is what its digest is of: another run, another digest.
    assert found.digest != simulated.digest


def test_a_load_is_calibrated_by_the_simulator(base, tmp_path):
    found = aqmlab.live(base, out=tmp_path / "l")
    assert found.calibration[0]["load_bps"] == 98e6
    assert f"users = {found.calibration[0]['users']}" in (tmp_path / "l/scenario.toml").read_text()
    assert set(fake_native.calls) == {"calibration"}


def test_replications_are_merged_and_resumed(small, tmp_path):
    found = aqmlab.live(small, reps=2, out=tmp_path / "l", virtual=True)
    assert [run.seed for run in found.runs] == [7, 8] and found.manifest["live"]["clock"] == "virtual"
    assert found.summary["live"]["lateness_s"]["p99"] == pytest.approx(9e-5)
    kept = (tmp_path / "l/rep-1/manifest.json").stat().st_mtime_ns
    again = aqmlab.live(small, reps=2, out=tmp_path / "l", virtual=True, resume=True)
    assert (tmp_path / "l/rep-1/manifest.json").stat().st_mtime_ns == kept and again.digest == found.digest
    # In another time it is another run.
    with pytest.raises(aqmlab.BadInput, match="holds another"):
        aqmlab.live(small, reps=2, out=tmp_path / "l", resume=True)


def test_a_void_run_is_kept_and_says_so_everywhere(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "void")
    assert cli.invoke(["live", str(small), "-o", str(tmp_path / "l"), "--reps", "2"]) == 1
    said = capsys.readouterr()
    assert "(void)" in said.out and "12.3 % of packets" in said.out
    complaints = [line for line in said.err.splitlines() if "self-check failed" in line]
    assert len(complaints) == 2 and complaints[0].startswith("aqmlab: self-check failed: rep-1: the test bed kept")
    found = aqmlab.load(tmp_path / "l")
    assert found.void == "; ".join(f"rep-{k}: {found.runs[0].void}" for k in (1, 2))
    page = report.write(found).read_text()
    assert "Void" in page and "12.3\xa0% of packets" in page
    assert "void" in (tmp_path / "l/figures/queue.svg").read_text()


@pytest.mark.parametrize(
    ("fate", "code", "said"),
    [
        ("refused", 2, "live.qdisc: kernel has no pi"),
        ("impossible", 3, "live.qdisc: kernel has no pi"),
        ("killed", 3, "live: the test bed was ended by SIGKILL before it had a result"),
        ("babbling", 3, "ended with exit code 101 before it had a result: thread 'router' panicked: a buffer is"),
        ("mute", 3, "live: the test bed ended with exit code 0 before it had a result"),
    ],
)
def test_a_test_bed_that_fails_is_told_in_one_line(small, tmp_path, capsys, monkeypatch, fate, code, said):
    monkeypatch.setenv("FAKE_CHILD", fate)
    assert cli.invoke(["live", str(small), "-o", str(tmp_path / "l"), "--json"]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1 and said in captured.err
    assert not list(tmp_path.glob("*l*partial")) and not (tmp_path / "l").exists()


def test_a_test_bed_that_says_nothing_is_ended(small, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "stuck")
    monkeypatch.setitem(process.SILENCE_S, "real", 1.0)
    with pytest.raises(CannotRun, match="no sign of life for 1 s"):
        aqmlab.live(small, out=tmp_path / "l")


def test_what_cannot_be_asked_for(small, capsys):
    for words, said in (
        (["--side", "top"], "side: top: expected one of left, right"),
        (["--capture", "all"], "capture: all: expected one of off, before, after, both"),
        (["--no-traffic"], "expected a program to run, after --"),
        (["--", "no-such-program"], "live: no-such-program: no such program; expected one to run inside, after --"),
    ):
        assert cli.invoke(["live", str(small), *words]) == 2
        assert said in capsys.readouterr().err


def test_a_controller_that_the_kernel_has_not_is_refused_before_the_run(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(preflight, "controllers", lambda: ["cubic"])
    monkeypatch.setattr(preflight, "load_controllers", lambda names: None)
    assert cli.invoke(["live", str(small), "-o", str(tmp_path / "l")]) == 3
    assert "tcp.cc: reno: this kernel has it not; it has cubic" in capsys.readouterr().err


def test_a_machine_without_tun_says_so(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(preflight.engine, "has_test_bed", lambda: True)
    monkeypatch.setattr(preflight, "TUN", Path("/nowhere/net/tun"))
    with pytest.raises(CannotRun, match=r"/nowhere/net/tun: No such file or directory; expected a kernel with TUN"):
        preflight.check()


def test_a_program_runs_inside_and_is_seen(small, tmp_path, capfd):
    assert cli.invoke(["live", str(small), "-o", str(tmp_path / "l"), "--", "echo", "64 bytes from 10.255.0.1"]) == 0
    assert "64 bytes from 10.255.0.1" in capfd.readouterr().out
    found = aqmlab.load(tmp_path / "l")
    assert found.live["command"] == ["echo", "64 bytes from 10.255.0.1"] and found.live["command_status"] == 0
    assert (tmp_path / "l/command.log").read_text() == "64 bytes from 10.255.0.1\n"


def test_a_program_that_fails_is_told_and_named_where_the_result_is(small, tmp_path, capfd):
    words = ["live", str(small), "-o", str(tmp_path / "l"), "--side", "right", "--no-traffic", "--capture", "after"]
    assert cli.invoke([*words, "--report", "--", "sh", "-c", "echo found nothing; exit 3"]) == 1
    said = capfd.readouterr()
    command = "sh -c 'echo found nothing; exit 3'"
    assert f"Inside ran, on the right side: {command} (exit status 3)." in said.out.replace("\n", " ")
    assert "The scenario's own traffic did not run." in said.out.replace("\n", " ")
    assert "self-check failed: the program inside ended well: sh: exit status 3" in said.err
    page = html.unescape((tmp_path / "l/report.html").read_text())
    assert "none of the scenario's traffic" in page and "emulated web users" not in page
    assert f"--capture after --side right --no-traffic --seed 7 --report -- {command}" in page
    # Nobody made demands: it is paired with nothing.
    assert aqmlab.load(tmp_path / "l").manifest["demand_digest"] is None


def test_a_program_that_ends_within_the_warm_up_makes_the_run_void(small, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "brief")
    assert cli.invoke(["live", str(small), "-o", str(tmp_path / "l"), "--set", "warmup=3s", "--", "true"]) == 1
    said = " ".join(capfd.readouterr().out.split())
    void = (
        "the program ended after 1.01 s, before the measured window began (warmup = 3s): expected one that runs for "
        "longer, or a shorter warmup"
    )
    assert "(void)" in said and said.count(void) == 1 and "no packet left the link" not in said
    found = aqmlab.load(tmp_path / "l")
    assert found.void == found.manifest["live"]["void"] == found.summary["live"]["void"] == void
    assert found.manifest["findings"] == []


def test_another_experiment_is_not_resumed(small, tmp_path):
    made = {"out": tmp_path / "l", "command": ["true"], "traffic": False, "capture": "off"}
    kept = aqmlab.live(small, **made)
    assert aqmlab.live(small, **made, resume=True).digest == kept.digest
    others = ({"command": ["ls"]}, {"side": "right"}, {"traffic": True}, {"capture": "both"}, {"command": ()})
    for other in others:
        asked = {**made, **other}
        if not asked["command"]:
            asked["traffic"] = True
        with pytest.raises(aqmlab.BadInput, match="holds another"):
            aqmlab.live(small, **asked, resume=True)
    with pytest.raises(aqmlab.BadInput, match="holds another"):
        aqmlab.run(small, out=tmp_path / "l", resume=True)


def test_what_was_the_worst_of_any_run_is_the_worst_of_all(small, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "void-8")
    found = aqmlab.live(small, reps=2, out=tmp_path / "l")
    # One void run of two, and not the first.
    assert found.runs[0].void is None and found.void == f"rep-2: {found.runs[1].void}"
    assert found.manifest["live"]["void"] == found.void == found.summary["live"]["void"]
    one, other = (run.summary for run in found.runs)
    one["live"] |= {"lateness_s": {"p50": 1e-5, "max": 1e-3}, "longest_away_s": 1e-4, "rate_error_worst": [1e-3, -4e-3]}
    other["live"] |= {
        "lateness_s": {"p50": 3e-5, "max": 9e-3},
        "longest_away_s": 8e-3,
        "rate_error_worst": [2e-3, 3e-3],
    }
    one["live"]["hosts"], other["live"]["hosts"] = ([{"lateness_s": {"max": late}}] for late in (2e-3, 1e-3))
    merged = summaries.merge_summaries([one, other])
    assert merged["live"]["lateness_s"] == {"p50": pytest.approx(2e-5), "max": 9e-3}
    assert merged["live"]["longest_away_s"] == 8e-3 and merged["live"]["rate_error_worst"] == [2e-3, -4e-3]
    assert merged["live"]["hosts"] == [{"lateness_s": {"max": 2e-3}}]
    widths = merged["half_width_95"]["live"]["lateness_s"]
    assert widths["max"] is None and widths["p50"] > 0


def test_what_the_kernel_refused_is_in_the_manifest(small, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "refusing")
    remarks = aqmlab.live(small, out=tmp_path / "l").live["remarks"]
    assert REMARK in remarks and "net.ipv4.tcp_recovery: this kernel will not have it" in remarks


def test_json_stands_alone(small, tmp_path, capfd):
    assert cli.invoke(["live", str(small), "-o", str(tmp_path / "l"), "--json", "--", "echo", "noise"]) == 0
    said = capfd.readouterr()
    assert json.loads(said.out)["live"]["clock"] == "real" and said.err == ""


def test_ctrl_c_ends_the_test_bed_and_keeps_what_is_finished(small, tmp_path):
    text = (
        "import sys; sys.path.insert(0, sys.argv[1]); import conftest, fake_native, test_live\n"
        "from aqmlab import cli, engine\n"
        "import pytest; patch = pytest.MonkeyPatch(); engine.native = fake_native\n"
        "test_live.test_bed.__wrapped__(patch)\n"
        "import os; os.environ['FAKE_CHILD'] = 'stuck'\n"
        "sys.exit(cli.invoke(['live', sys.argv[2], '-o', sys.argv[3]]))\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", text, str(CHILD.parent), str(small), str(tmp_path / "l")],
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 120
    while not (found := list(tmp_path.glob(".l.partial/progress.jsonl"))) and time.monotonic() < limit:
        time.sleep(0.05)
    assert found
    started.send_signal(signal.SIGINT)
    said = started.communicate(timeout=120)[1]
    assert started.returncode == 130 and "stopped: 0 of 1 runs are finished" in said
    assert not list(tmp_path.glob(".l.partial"))


class Heard(Unseen):
    def __init__(self):
        self.ticks, self.said, self.begun, self.heard = [], [], [], ""

    def hear(self, text):
        self.heard += text

    def say(self, remarks):
        self.said += remarks

    def begin(self, label, size):
        self.begun.append((label, size.simulated_s))
        return 7

    def tick(self, run, tick):
        assert run == 7
        self.ticks.append(tick)


def test_the_view_hears_of_remarks_and_progress(small, tmp_path):
    heard = Heard()
    aqmlab.live(small, out=tmp_path / "l", view=heard)
    assert heard.said == [REMARK] and heard.begun == [("web users", 30.0)]
    assert [tick["time_s"] for tick in heard.ticks] == [0, 6, 12, 18, 24, 30]
    assert heard.ticks[-1]["lateness_s"]["p99"] == 9e-5


def test_the_view_hears_a_program_and_its_words_stay_where_nobody_listens(small, tmp_path):
    heard = Heard()
    aqmlab.live(small, out=tmp_path / "l", view=heard, command=["echo", "größer"])
    assert heard.heard == "größer\n"
    aqmlab.live(small, out=tmp_path / "q", command=["echo", "größer"])
    assert (tmp_path / "q/command.log").read_text(encoding="utf-8") == "größer\n"


def test_the_screen_shows_what_is_known_and_fits(small):
    scenario = json.loads(fake_native.resolve(small.read_text(), "x", []))["scenario"]
    for width in (80, 100, 160):
        state = view._State("web users", 30.0, 1, scenario, "virtual")
        out = Console(file=io.StringIO(), width=width)
        out.print(view.picture(state, "web users"))
        assert "making hosts and link" in out.file.getvalue()
        for k in range(300):
            tick = {
                "time_s": k / 10,
                "duration_s": 30.0,
                "rate_bps": [9.64e7, 3.1e6],
                "queue_packets": [24, 1],
                "queue_delay_s": [k * 1e-5, 0.0],
                "drops": [1234 if k == 0 else 0, 0],
                "marks": [0, 0],
                "exchanges": 52,
                "response_s": {"p50": 0.142, "p95": 0.9, "p99": 1.8},
                "lateness_s": {"p99": 3e-4, "max": 1e-3},
                "stalls": 1,
                "connections": 312,
            }
            state.hear(tick)
        out = Console(file=io.StringIO(), width=width)
        out.print(view.picture(state, "web users"))
        shown = out.file.getvalue()
        assert max(map(len, shown.splitlines())) <= width and "…" not in shown
        for word in ("96.4 Mb/s", "96 % of 100 Mb/s", "1,234", "142 ms", "300 µs of 200 µs", "1 stall", "312", "█"):
            assert word in shown
    assert view.line(tick).startswith("30/30 s  rate 96.4 Mb/s / 3.1 Mb/s  queue 24 / 1  delay 2.99 ms / 0 ms")


def test_lines_where_there_is_no_terminal(small, tmp_path, monkeypatch):
    monkeypatch.setattr(view, "LINE_EVERY_S", 0.0)
    out = Console(file=io.StringIO(), width=60)
    aqmlab.live(small, out=tmp_path / "l", view=view.Lines(out))
    lines = out.file.getvalue().splitlines()
    assert lines[0] == f"note: {REMARK}"
    assert lines[1] == "web users: live in real time, 30 s" and lines[-1].startswith("30/30 s  rate 96 Mb/s")


def test_the_kernel_s_own_figures_are_a_table_like_the_others(small, tmp_path):
    found = aqmlab.live(small, out=tmp_path / "l")
    with pytest.raises(aqmlab.BadInput, match="did not write this table"):
        _ = found.tcp
    pl.DataFrame({"time_s": [1.0]}).write_parquet(tmp_path / "l/tcp.parquet")
    assert found.runs[0].tcp.height == 1


def linux(text="", tcp=""):
    traffic = text or '[[traffic]]\nkind = "bulk"\n'
    scenario = f'[link]\nrate = "10mbit"\n[tcp]\nstack = "linux"\n{tcp}\n{traffic}'
    return settings.settings(engine.resolve(scenario, "x.toml"))


@pytest.fixture
def real(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def test_the_rfc_s_cubic_is_the_kernel_s_with_a_remark(real):
    found = linux(tcp='cc = "cubic-rfc"')
    assert found.sysctl["net.ipv4.tcp_congestion_control"] == found.blocks[0].congestion == "cubic"
    assert "cc cubic-rfc (Linux cubic)" in " ".join(found.remarks)


def test_linux_s_own_defaults_need_no_remark(real):
    for control in ("cubic", "reno", "dctcp", "bbr"):
        found = linux(tcp=f'cc = "{control}"')
        assert found.remarks == ()
        assert found.sysctl["net.ipv4.tcp_congestion_control"] == found.blocks[0].congestion == control
        assert [found.sysctl[f"net.ipv4.tcp_{name}"] for name in ("sack", "recovery", "early_retrans")] == list("113")
        # RFC 8257: DCTCP without ECN is none.
        assert found.sysctl["net.ipv4.tcp_ecn"] == str(int(control == "dctcp"))
        # tcp(7): a segment of 1448 bytes and 12 of timestamps are Ethernet's 1460, for which nothing need be said.
        assert found.route == found.blocks[0].route == "window 3932160 initcwnd 10 rto_min 200ms"
        # tcp(7): the default of tcp_rmem, of which this window is the part for payload.
        assert found.sysctl["net.ipv4.tcp_rmem"] == "4096 131072 6291456"


def test_a_block_s_own_tcp_is_its_route_s(real):
    blocks = """
[[traffic]]
kind = "bulk"
window = "16kb"
initial_window = 2
ecn = "plus"
[[traffic]]
kind = "cbr"
rate = "1mbit"
[[traffic]]
kind = "bulk"
cc = "reno"
repair = "reno"
mss = "536b"
rto_min = "1s"
delayed_ack = "off"
"""
    found = linux(blocks)
    first, udp, last = found.blocks
    # Not all ask for ECN: those who do have it on their route, and the others must not by the sysctl.
    assert first.route == "window 16384 initcwnd 2 rto_min 200ms features ecn" and first.ecn
    assert found.sysctl["net.ipv4.tcp_ecn"] == "0"
    assert (udp.route, udp.congestion) == ("", "")
    assert last.route == "window 3932160 initcwnd 10 rto_min 1s advmss 548 quickack 1" and last.congestion == "reno"
    said = "; ".join(found.remarks)
    assert "traffic.0.ecn = plus: Linux has no ECN-capable SYN/ACK" in said
    assert "traffic.2.repair = reno: Linux repairs as newreno, which is all that there is without SACK" in said
    assert "traffic.2: of repair a kernel has one setting" in said and len(found.remarks) == 3


def test_a_least_timeout_that_is_rounded_is_remarked(real):
    found = linux(f'{BULK}rto_min = "1500us"\n{BULK}', tcp='rto_min = "5ms"')
    assert [block.route.split()[-1] for block in found.blocks] == ["2ms", "5ms"]
    assert found.remarks == ("traffic.0.rto_min = 1500us: ip takes whole milliseconds, 2 here",)
    (said,) = linux(tcp='rto_min = "300us"').remarks
    assert said == "tcp.rto_min = 300us: ip takes whole milliseconds, 1 here"


@pytest.mark.parametrize(("window", "is_said"), [("64kb", False), ("256kb", True)])
def test_a_window_offered_whole_from_the_start_is_remarked(real, window, is_said):
    # tcp(7): tcp_rmem, 131072 bytes at first, of which tcp_adv_win_scale leaves half for the window.
    tcp = f'receive_buffer = "0b"\nwindow = "{window}"'
    found = linux(tcp=tcp)
    said = "tcp.receive_buffer = 0b: Linux offers 65536 bytes at first, and more as data comes"
    assert (said in found.remarks) == is_said and len(found.remarks) == is_said
    assert found.sysctl["net.ipv4.tcp_rmem"].split()[1] == "131072"


@pytest.mark.parametrize(
    ("option", "sysctl", "remarks"),
    # ip-sysctl: tcp_ecn, 3: ask for AccECN; tcp_ecn_option, 0: never, 1: where there is something to tell, 2: always.
    [("false", "0", 0), ("true", "2", 0), ('"linux-minimum"', "1", 0), ('"linux-persist"', "3", 0), ('"rfc"', "2", 1)],
)
def test_hosts_count_marks_where_the_scenario_says_so(real, option, sysctl, remarks):
    for control in ("cubic", "dctcp"):
        found = linux(tcp=f'cc = "{control}"\necn = "accurate"\necn_option = {option}')
        assert (found.sysctl["net.ipv4.tcp_ecn"], found.sysctl["net.ipv4.tcp_ecn_option"]) == ("3", sysctl)
        assert "features" not in found.route + found.blocks[0].route and found.blocks[0].ecn
        assert len(found.remarks) == remarks
    # Kernels without accurate ECN have no such setting.
    assert "net.ipv4.tcp_ecn_option" not in linux(tcp='ecn = "on"').sysctl


BULK = '[[traffic]]\nkind = "bulk"\n'


def test_all_connections_of_a_host_count_marks_or_none(real):
    accurate = f'{BULK}ecn = "accurate"\necn_option = true\n'
    mixed = linux(accurate + f'{BULK}ecn = "on"\n')
    assert mixed.sysctl["net.ipv4.tcp_ecn"] == "1" and "net.ipv4.tcp_ecn_option" not in mixed.sysctl
    (said,) = mixed.remarks
    assert said.startswith("traffic.0.ecn = accurate: a kernel counts marks at all connections of a host or at none")
    # Of hosts that all count, each side has one rule for the option: that of [tcp], or else of the first block.
    both = linux(accurate + f'{BULK}ecn = "accurate"\n')
    assert (both.sysctl["net.ipv4.tcp_ecn"], both.sysctl["net.ipv4.tcp_ecn_option"]) == ("3", "2")
    assert both.remarks == ("traffic.1.ecn_option = false: all connections of a host have linux",)
    said = "traffic.0.ecn_option = linux: all connections of a host have false"
    assert said in linux(accurate, tcp='ecn = "accurate"').remarks
    # A program inside has what [tcp] says where there is no other TCP.
    datagrams = linux('[[traffic]]\nkind = "cbr"\nrate = "1mbit"\n', tcp='ecn = "accurate"')
    assert datagrams.sysctl["net.ipv4.tcp_ecn"] == "3"


@pytest.mark.parametrize(("tcp", "block", "place"), [("accurate", "", "tcp"), ("off", 'ecn = "accurate"', "traffic.0")])
def test_a_kernel_without_accurate_ecn_is_named_before_anything_runs(
    real, capsys, tmp_path, monkeypatch, tcp, block, place
):
    (tmp_path / "x.toml").write_text(
        f'[link]\nrate = "10mbit"\n[tcp]\nstack = "linux"\necn = "{tcp}"\n{BULK}{block}\n', encoding="utf-8"
    )
    asked = []

    def tried(*words, virtual_time, name=None):
        asked.append((*words, virtual_time, name))
        return {"release": "6.18.44", "accurate_ecn": name == "7.3"}

    plan._said_of_marks.cache_clear()
    monkeypatch.setattr(plan, "settings", settings.settings)
    monkeypatch.setattr(plan, "tried", tried)
    for words, whose in ([], "this machine's kernel"), (["--virtual"], "the kernel of virtual time"):
        assert cli.invoke(["live", str(tmp_path / "x.toml"), "-o", str(tmp_path / "l"), "--reps", "2", *words]) == 3
        said = capsys.readouterr().err.splitlines()[-1]
        assert f'x.toml: {place}.ecn = "accurate": {whose}, Linux 6.18.44, has no accurate ECN' in said
        assert "(net.ipv4.tcp_ecn = 3); expected one that has: aqmlab kernel build --release 7.3" in said
        assert not (tmp_path / "l").exists()
    resolved = engine.resolve((tmp_path / "x.toml").read_text(), "x.toml")
    for _ in range(2):
        plan.check(resolved, is_virtual=True, kernel="7.3")
    assert asked == [("--marks", False, None), ("--marks", True, None), ("--marks", True, "7.3")]
    plan._said_of_marks.cache_clear()


@pytest.mark.parametrize(
    "repair, sack, recovery, remarks",
    [("rack", 1, 1, 0), ("sack", 1, 0, 0), ("newreno", 0, 0, 0), ("ns2-sack1", 1, 0, 1)],
)
def test_how_losses_are_repaired_is_a_kernel_s_setting(real, repair, sack, recovery, remarks):
    # ip-sysctl: tcp_sack; tcp_recovery, 0x1: RACK; tcp_early_retrans, 3: a probe of the tail.
    found = linux(tcp=f'cc = "reno"\nrepair = "{repair}"')
    assert [found.sysctl[f"net.ipv4.tcp_{name}"] for name in ("congestion_control", "sack", "recovery")] == [
        *("reno", str(sack), str(recovery))
    ]
    assert len(found.remarks) == remarks


def test_what_no_kernel_does_is_said_before(real):
    found = linux(tcp='syn_timer = "3s"\nmss = "4000b"')
    assert any("syn_timer 3s (Linux 1s)" in remark for remark in found.remarks)
    assert any("tcp.mss = 4000b: no more than 1448 bytes fit in packets of 1500" in remark for remark in found.remarks)
    assert "advmss" not in found.route
    old = settings.settings(engine.resolve('tcp.stack = "freebsd4"\n[[traffic]]\nkind = "bulk"\n', "x"))
    assert old.remarks[0].startswith("tcp.stack = freebsd4: the hosts are this kernel's own")
    assert old.sysctl["net.ipv4.tcp_sack"] == "0" and old.blocks[0].congestion == "reno"
    # Windows that no header can hold are not bound at all.
    wide = linux(tcp='window = "1024gb"')
    assert "window" not in wide.route and any("TCP has no more" in remark for remark in wide.remarks)


def test_what_a_process_left_is_read_line_by_line(tmp_path):
    path = tmp_path / "progress.jsonl"
    assert process._new_lines(path, 0) == ([], 0)
    path.write_bytes(b'{"time_s": 1, "duration_s": 9}\nrubbish\n{"time_s": 2, "dur')
    lines, at = process._new_lines(path, 0)
    assert [line["time_s"] for line in lines] == [1]
    with path.open("ab") as file:
        file.write(b'ation_s": 9}\n')
    lines, at = process._new_lines(path, at)
    assert [line["time_s"] for line in lines] == [2] and at == path.stat().st_size


@pytest.mark.parametrize(
    ("way", "mbps", "changes", "key"),
    [
        ("forward", "1000.000", {}, "path.access_rate = 1gbit, below link.rate = 2gbit"),
        ("in reverse", "100.000", {}, "link.reverse_rate = 100mbit"),
        # 1500 of 1600 bytes: less than the access link's.
        ("forward", "937.500", {"rate": "1gbit", "overhead": "100b"}, "link.rate = 1gbit"),
        ("forward", "1000.000", {"rate": "1gbit"}, "link.rate = 1gbit"),
    ],
)
def test_a_link_that_was_not_as_asked_for_says_which_key_asked(way, mbps, changes, key):
    tree = {
        "link": {"rate": "2gbit", "reverse_rate": "100mbit", **changes},
        "path": {"access_rate": "1gbit"},
        "traffic": [{"kind": "bulk"}],
    }
    said = f"the link, checked before the run, {way}: the rate was 46.875 Mb/s, expected {mbps} Mb/s within 0.5 %"
    assert runs.with_bound(said, tree) == f"{said}, by {key}"
    assert runs.with_bound("12 % of packets late", tree) == "12 % of packets late"


def test_of_several_links_the_slowest_of_the_route_asks():
    tree = {
        "links": {"edge": {"rate": "40mbit", "reverse_rate": "40mbit"}, "core": {"rate": "9mbit"}},
        "path": {"access_rate": "1gbit"},
        "traffic": [{"kind": "bulk", "route": ["edge", "core"], "reverse_route": ["edge"]}],
    }
    said = "the link, checked before the run, {}: the rate was 5.000 Mb/s, expected {} Mb/s within 0.5 %"
    assert runs.with_bound(said.format("forward", "9.000"), tree).endswith(", by links.core.rate = 9mbit")
    assert runs.with_bound(said.format("in reverse", "40.000"), tree).endswith(", by links.edge.reverse_rate = 40mbit")


def test_a_run_says_so(small, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_CHILD", "slow")
    found = aqmlab.live(small, set={"path.access_rate": "1gbit"}, out=tmp_path / "l")
    assert found.void.endswith("expected 100.000 Mb/s within 0.5 %, by link.rate = 100mbit")
    assert found.summary["live"]["void"] == found.void
