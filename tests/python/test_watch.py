"""The live page: notes of runs under way, who follows them, and what a browser draws of them."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from itertools import product

import pytest

import browser
from aqmlab import cli, engine
from aqmlab.bars import Bars
from aqmlab.command import watch
from aqmlab.errors import BadInput
from aqmlab.progress import Both, Foreseen, Silent, Size, Unseen, told_of_the_end
from aqmlab.runs import noted
from aqmlab.runs.progress_lines import with_lines
from aqmlab.watch.seen import DRAWN, POINTS, Run, Seen
from aqmlab.watch.server import Watch
from conftest import NATIVE, ROOT, hears_signals

SIZE = Size(60.0, 1.0)


def tick(at, **more):
    """A tick of a simulated run of one link, whose sums grow evenly: 10 and 1 Mb/s, 1000 and 100 packets a second."""
    return {
        "time_s": at,
        "wall_s": at / 10,
        "links": ["link"],
        "exchanges": int(10 * at),
        "response_s": {"p50": 0.1, "p95": 0.2, "p99": 0.3},
        "port_bytes": [int(1.25e6 * at), int(1.25e5 * at)],
        "port_packets": [int(1000 * at), int(100 * at)],
        "port_wait_ns": [int(5e6 * 1000 * at), int(1e6 * 100 * at)],
        "port_drops": [int(3 * at), 0],
        "port_marks": [0, 0],
        "port_queue_packets": [12, 0],
        "port_queue_bytes": [12_000, 0],
        "port_waits_s": [[0.004, 0.008, 0.009], None],
        **more,
    }


@pytest.fixture
def clock(monkeypatch):
    """A clock that each look moves on by more than the pause between two lines."""
    now = iter(range(1, 10**6))
    monkeypatch.setattr("aqmlab.runs.noted.time.monotonic", lambda: float(next(now)))


def followed(path):
    seen = Seen()
    for line in path.read_text().splitlines():
        seen.add(json.loads(line))
    return seen


def test_rates_and_delays_are_those_since_the_tick_before():
    found = noted.point(tick(4.0), tick(2.0))
    assert found["rate_bps"] == [10e6, 1e6] and found["delay_s"] == pytest.approx([5e-3, 1e-3])
    assert (found["queue_packets"], found["drops"], found["packets"]) == ([12, 0], [12, 0], [4000, 400])
    assert (found["response_s"], found["waits_s"]) == ([0.1, 0.2, 0.3], [[0.004, 0.008, 0.009], None])
    first = noted.point(tick(4.0, port_packets=[0, 0]), {})
    assert first["rate_bps"] == [10e6, 1e6] and first["delay_s"] == [None, None]


def test_notes_that_somebody_tidies_away_as_they_begin_are_made_once_more(monkeypatch, tmp_path):
    """Until they are held they look like those of a command that was killed."""
    taken, flock = [], noted.fcntl.flock

    def tidied_before(file, how):
        if not taken and how == noted.fcntl.LOCK_EX:
            taken.extend(noted.folder().glob("*.jsonl"))
            noted._tidy(noted.folder())
            assert taken and not taken[0].exists()
            noted.folder().rmdir()
        flock(file, how)

    monkeypatch.setattr(noted.fcntl, "flock", tidied_before)
    with noted.noting(tmp_path / "demo", "aqmlab run") as notes:
        assert taken == [notes.path] and noted.under_way() == [notes.path] and noted.is_written(notes.path)
        noted._tidy(noted.folder())
        assert notes.path.exists() and json.loads(notes.path.read_text())["kind"] == "work"


def test_what_live_runs_count_is_summed(tmp_path, clock):
    with noted.noting(tmp_path / "demo", "aqmlab live") as notes:
        run = notes.begin("demo", SIZE)
        for at in (1.0, 2.0, 3.0):
            notes.tick(run, {"time_s": at, "wall_s": at, "rate_bps": [5e6, 0], "drops": [2, 0], "marks": [0, 1]})
        seen = followed(notes.path)
    assert seen.runs[run].last["drops"] == [6, 0] and seen.runs[run].last["marks"] == [0, 3]
    assert seen.runs[run].last["rate_bps"] == [5e6, 0]


def test_notes_say_what_goes_on_and_are_gone_afterwards(tmp_path, clock):
    with watch.followed(tmp_path / "demo", Silent(), Unseen()) as (monitor, view):
        monitor.expect(2, SIZE)
        run, other = monitor.begin("PI 24", SIZE), view.begin("RED", SIZE)
        monitor.tick(run, tick(1.0))
        view.tick(other, {"time_s": 1.0, "rate_bps": [1e6, 1e6]})
        monitor.end(run)
        (path,) = noted.of(tmp_path / "demo")
        seen = followed(path)
        assert noted.of(tmp_path / "other") == [] and noted.under_way() == [path]
    assert (seen.expected, seen.ended, seen.is_over) == (2, 1, False)
    assert [(one.label, one.is_over, len(one.points)) for one in seen.runs.values()] == [
        ("PI 24", True, 1),
        ("RED", False, 1),
    ]
    assert noted.under_way() == [] and not path.exists()


class Hears(Silent):
    """Hears how runs end."""

    def __init__(self):
        self.ended, self.were_cut, self.begun = [], [], 0

    def begin(self, label, size):
        self.begun += 1
        return self.begun

    def end(self, run):
        self.ended.append(run)

    def cut(self, run):
        self.were_cut.append(run)


def test_runs_that_are_cut_off_are_not_done(tmp_path, clock):
    heard = Hears()
    with watch.followed(tmp_path / "demo", heard) as (monitor, _):
        monitor.expect(3, SIZE)
        (path,) = noted.of(tmp_path / "demo")
        monitor.end(monitor.begin("PI", SIZE))
        both = Both(Foreseen(monitor), Silent())
        with pytest.raises(KeyboardInterrupt), told_of_the_end(both, both.begin("RED", SIZE)):
            raise KeyboardInterrupt
        seen = followed(path)
    assert (seen.expected, seen.ended, heard.ended, heard.were_cut) == (3, 1, [1], [2])
    told = {one["run"]: (one["over"], one["cut"]) for one in seen.news({})["runs"]}
    assert told == {1: (True, False), 2: (True, True)} and not seen.is_stopped
    seen.add({"kind": "over"})
    assert seen.is_stopped and seen.news({})["stopped"]


def test_how_far_runs_are_is_printed_for_a_program(tmp_path, clock, capsys):
    with noted.noting(tmp_path / "demo", "aqmlab run") as notes:
        notes.expect(2, SIZE)
        run, other = notes.begin("PI", SIZE), notes.begin("RED", SIZE)
        notes.tick(run, tick(1.0))
        notes.end(other)
        assert cli.invoke(["watch", str(tmp_path / "demo"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        for flag in (["--open"], ["--port", "8000"]):
            assert cli.invoke(["watch", "--json", *flag]) == 2
            assert f"{flag[0]}: is of the page; expected --json without it" in capsys.readouterr().err
    assert (found["expected"], found["ended"], found["over"], found["stopped"]) == (2, 1, False, False)
    assert [(one["label"], one["duration_s"], one["over"], one["cut"]) for one in found["runs"]] == [
        ("PI", 60.0, False, False),
        ("RED", 60.0, True, False),
    ]
    assert found["runs"][0]["last"]["time_s"] == 1.0


def test_runs_of_who_was_killed_are_not_done():
    seen = Seen(expected=2, ended=0, is_over=True)
    seen.runs[1] = Run("PI", 1.0)
    assert seen.is_stopped
    seen.runs[1].is_over, seen.ended = True, 2
    assert not seen.is_stopped


def test_who_looks_is_told_that_work_was_stopped(tmp_path, clock, monkeypatch):
    """The page that a command has opened itself does not say after Ctrl-C that the runs may go on."""
    closed = []
    monkeypatch.setattr(watch, "shown", lambda page, _: None)
    monkeypatch.setattr(Watch, "close", lambda page, close=Watch.close: (close(page), closed.append(page)))
    with pytest.raises(KeyboardInterrupt), watch.followed(tmp_path / "demo", Silent(), opens=True) as (monitor, _):
        monitor.expect(2, SIZE)
        raise KeyboardInterrupt
    (page,) = closed
    assert page.seen.is_over and page.seen.is_stopped


def test_notes_of_who_was_killed_are_of_nothing_under_way(tmp_path):
    left = noted.folder() / "left.jsonl"
    left.parent.mkdir(parents=True)
    left.write_text('{"kind":"work","folder":"x","command":"y"}\n')
    assert noted.under_way() == []
    with noted.noting(tmp_path / "demo", ""):
        assert not left.exists()


def test_runs_are_made_where_no_notes_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AQMLAB_CACHE", str(tmp_path / "file"))
    with watch.followed(tmp_path / "demo", Silent()) as (monitor, _):
        monitor.end(monitor.begin("PI 24", SIZE))
    with pytest.raises(BadInput, match="--open"), watch.followed(tmp_path / "demo", Silent(), opens=True):
        pass


def test_lines_beside_bars_are_left_out_when_bars_are_noted(tmp_path):
    from rich.console import Console

    with noted.noting(tmp_path, "") as notes:
        monitor = noted.Noted(Bars(Console()), notes)
        assert with_lines(monitor, print) is monitor


def test_long_runs_are_thinned_and_old_ones_keep_their_last():
    seen, told = Seen(), {}
    for run in range(DRAWN + 3):
        seen.add({"kind": "begin", "run": run, "label": "", "duration_s": 1.0})
        for k in range(POINTS + 5):
            seen.add({"kind": "tick", "run": run, "time_s": float(k)})
        assert [one["anew"] for one in seen.news(told)["runs"] if one["run"] == run] == [True]
        seen.add({"kind": "end", "run": run})
    lengths = [len(one.points) for one in seen.runs.values()]
    assert lengths[:3] == [0, 0, 0] and set(lengths[3:]) == {len(range(0, POINTS + 1, 2)) + 4}
    assert {one.last["time_s"] for one in seen.runs.values()} == {POINTS + 4.0}
    seen.news(told)
    assert seen.news(told)["runs"] == []


def test_a_folder_without_runs_under_way_is_one_line(tmp_path, capsys):
    assert cli.invoke(["watch", str(tmp_path / "nosuch")]) == 2
    assert "nosuch: no such folder; expected one of results that are made now" in capsys.readouterr().err
    (tmp_path / "demo").mkdir()
    assert cli.invoke(["watch", str(tmp_path / "demo")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "no runs are under way" in said and "demo" in said
    assert cli.invoke(["watch"]) == 2
    with noted.noting(tmp_path / "a", "") as notes:
        taken = Watch(notes.path)
        try:
            port = taken.address.split(":")[2].strip("/")
            assert cli.invoke(["watch", str(tmp_path / "a"), "--port", port]) == 2
        finally:
            taken.close()
    assert f"--port {port}" in capsys.readouterr().err


@contextmanager
def got(page, path, host=None):
    place = page.address.removeprefix("http://").strip("/")
    with closing(http.client.HTTPConnection(place, timeout=20)) as connection:
        connection.request("GET", path, headers={"Host": host or place})
        with connection.getresponse() as answer:
            yield answer


def test_events_tell_all_that_was_and_what_comes_and_end_with_the_work(tmp_path, clock):
    with noted.noting(tmp_path / "demo", "aqmlab run") as notes:
        run = notes.begin("PI 24", SIZE)
        notes.tick(run, tick(1.0))
        page = Watch(notes.path)
        try:
            with got(page, "/events") as answer:
                assert answer.status == 200
                first = json.loads(answer.readline().removeprefix(b"data: "))
                assert [one["label"] for one in first["runs"]] == ["PI 24"] and len(first["runs"][0]["points"]) == 1
                notes.tick(run, tick(2.0))
                notes.end(run)
                notes.over()
                told = [json.loads(line.removeprefix(b"data: ")) for line in answer if line.startswith(b"data: ")]
            assert told[-1]["over"] and sum(len(one["points"]) for news in told for one in news["runs"]) == 1
            assert page.over.wait(20)
        finally:
            page.close()


def test_the_page_is_for_browsers_of_this_machine(tmp_path):
    with noted.noting(tmp_path / "demo", "") as notes:
        page = Watch(notes.path)
        try:
            with got(page, "/") as answer:
                text = answer.read().decode()
                assert answer.status == 200 and "http://" not in text.replace("http://www.w3.org/2000/svg", "")
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            for path, host, status in (("/", "elsewhere.example", 403), ("/events?x", None, 404)):
                with got(page, path, host) as answer:
                    assert answer.status == status
        finally:
            page.close()


@pytest.fixture(scope="module")
def chromium():
    with browser.started() as found:
        yield found


def until(view, condition: str) -> None:
    """Waits for a condition of a page whose policy refuses code that is made of text, as a wait of the browser is."""
    deadline = time.monotonic() + 60
    while not view.evaluate(condition):
        assert time.monotonic() < deadline, condition
        view.evaluate("() => new Promise((drawn) => requestAnimationFrame(drawn))")


@pytest.mark.alone
@pytest.mark.skipif(NATIVE is None, reason="left out: the engine is not built")
def test_a_browser_draws_a_run_while_it_goes_on(tmp_path, chromium, monkeypatch):
    """A run of the engine, watched by another process: what is drawn is what the run came to."""
    environment = {**os.environ, "AQMLAB_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT / "python")}
    environment.pop("DISPLAY", None)
    name = "a-name-that-somebody-gave-without-a-single-space-in-it-and-that-goes-on-and-on"
    (tmp_path / "web.toml").write_text(f"""
name = "{name}"
duration = "40000s"
warmup = "5s"
link = {{ rate = "20mbit", qdisc = {{ kind = "pi", ecn = true }} }}
path = {{ rtt = "40ms" }}
tcp = {{ ecn = "on" }}
[[traffic]]
kind = "bulk"
flows = 8
[[traffic]]
kind = "poisson"
arrivals = "5hz"
size = "20000b"
""")
    words = [sys.executable, "-m", "aqmlab"]
    run = subprocess.Popen(
        [*words, "run", "web.toml", "-o", "made"], cwd=tmp_path, env=environment, preexec_fn=hears_signals
    )
    watching = None
    try:
        deadline = time.monotonic() + 60
        notes = []
        monkeypatch.setenv("AQMLAB_CACHE", environment["AQMLAB_CACHE"])
        while not notes and time.monotonic() < deadline:
            notes = noted.of(tmp_path / "made")
        watching = subprocess.Popen(
            [*words, "watch", "made"],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hears_signals,
        )
        said = watching.stderr.readline()
        address = said.rpartition(" ")[2].strip()
        assert address.startswith("http://127.0.0.1:"), said
        context = chromium.new_context()
        view = context.new_page()
        complaints, asked = [], []
        view.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
        view.on("pageerror", lambda error: complaints.append(str(error)))
        view.on("request", lambda request: asked.append(request.url))
        view.goto(address)
        view.wait_for_selector("figure:nth-child(4) > svg polyline", state="attached", timeout=60_000)
        until(view, "[...document.querySelectorAll('polyline')].some((one) => one.points.length > 5)")
        captions = view.locator("figcaption b").all_inner_texts()
        assert [text.partition(",")[0] for text in captions] == [
            "Queue",
            "Rate",
            "Queueing delay",
            "Response times so far",
        ]
        # Eight endless flows fill the link, and the row of the table says so.
        assert view.locator("#rows td").nth(1).inner_text() == "forward"
        rate = float(view.locator("#rows td").nth(2).inner_text())
        assert 15 < rate < 20.5, rate
        assert "1 under way" in view.locator("#status").inner_text()
        # Runs go on while it is looked at; texts are where they are all the same.
        found = []
        for width in browser.WIDTHS:
            view.set_viewport_size({"width": width, "height": 900})
            view.wait_for_timeout(400)
            found += [f"{width} px: {what}" for what in browser._seen(view)]
        for width, scheme in product((browser.WIDTHS[0], browser.WIDTHS[-2]), browser.SCHEMES):
            view.set_viewport_size({"width": width, "height": 900})
            view.emulate_media(color_scheme=scheme)
            found += [f"{width} px, {scheme}: {what}" for what in browser._inaccessible(view)]
        assert found == []
        # What is drawn can be chosen by the keyboard alone.
        view.locator("#which").focus()
        view.keyboard.press("ArrowDown")
        assert view.locator("#which").input_value() == "1"
        run.send_signal(signal.SIGINT)
        assert run.wait(30) == 130
        until(view, "document.getElementById('status').textContent.startsWith('Stopped: 0 of 1 ')")
        # What was cut off is not said to be done, nor to go on.
        assert view.evaluate("document.getElementById('all').value") == 0
        assert "cut off at" in view.locator("#panels").inner_text() and view.locator("#lost").is_hidden()
        assert int(view.locator("#rows td").first.inner_text()) < 100
        assert watching.wait(30) == 0 and complaints == []
        assert {url.removeprefix(address) for url in asked} == {"", "events"} | {
            u for u in asked if u.startswith("data:")
        }
        context.close()
    finally:
        for process in (run, watching):
            if process is not None:
                process.kill()
                process.wait()
                if process.stderr:
                    process.stderr.close()


@pytest.mark.skipif(NATIVE is None, reason="left out: the engine is not built")
def test_ctrl_c_ends_the_watching_and_not_the_run(tmp_path):
    environment = {**os.environ, "AQMLAB_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT / "python")}
    code = (
        "import sys, aqmlab.runs.noted as n, pathlib\n"
        "with n.noting(pathlib.Path('made'), 'x'): print(flush=True); sys.stdin.read()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    watching = None
    try:
        run.stdout.readline()
        watching = subprocess.Popen(
            [sys.executable, "-m", "aqmlab", "watch", "made"],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hears_signals,
        )
        watching.stderr.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0 and "the runs go on" in watching.stderr.read()
        assert run.poll() is None
    finally:
        for process in (run, watching):
            if process is not None:
                process.kill()
                process.communicate()


@pytest.mark.skipif(NATIVE is None, reason="left out: the engine is not built")
def test_the_engine_tells_what_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    told = []
    text = 'duration = "300s"\nlink.rate = "100mbit"\n[[traffic]]\nkind = "bulk"\nflows = 20\n'
    resolved = engine.resolve(text, "test.toml")
    engine.simulate(resolved, tmp_path, told.append)
    points = [noted.point(now, before) for before, now in zip([{}, *told], told, strict=False)]
    assert points and points[-1]["links"] and len(points[-1]["rate_bps"]) == 2
    assert 8e7 < points[-1]["rate_bps"][0] <= 10.1e7 and points[-1]["queue_packets"][0] > 0
