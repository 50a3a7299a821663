"""`aqmlab advise`: what it reads, what it tries, and what it answers for a small link."""

import html
import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from aqmlab import engine, units
from aqmlab.advice import (
    access,
    advising,
    applications,
    assumptions,
    candidates,
    cells,
    costs,
    lines,
    question,
    scores,
    situation,
    words,
)
from aqmlab.advice.applications import FIGURES
from aqmlab.advice.candidates import TODAY
from aqmlab.cli import invoke
from aqmlab.errors import BadInput
from aqmlab.tc import read as tc
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("compiled")

LINES = [one.name for one in access.ACCESS.values() if not one.is_port]
"""In front of which something shapes."""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"down": "0mbit"}, "--down 0mbit: expected 256kbit to 10gbit"),
        ({"up": "0kbit"}, "--up 0kbit: expected 256kbit to 10gbit"),
        ({"down": "50"}, "--down: '50': expected a number with one of the units"),
        ({"up": "60mbit"}, "--up 60mbit: exceeds --down 50mbit; expected the rate towards the users as --down"),
        ({"up": "60mbit"}, "no more: --down 60mbit --up 50mbit?"),
        ({"down": "500gbit"}, "--down 500gbit: expected 256kbit to 10gbit: what was bought or"),
        ({"down": "1e400mbit"}, "--down 1e400mbit: expected 256kbit to 10gbit"),
        ({"rtt": "20ms.."}, "--rtt 20ms..: expected both ends, as 20ms..60ms, or one time"),
        ({"homes": 1000}, "--homes 1000: in the busy hour up to 600 films ask for 141 Mb/s at least, of 50 Mb/s"),
        ({"homes": 80}, "--homes 80: in the busy hour up to 36 people who browse ask for 61.44 Mb/s of pages"),
        ({"seed": 10**13}, "--seed 10000000000000: expected a number from 0 to 1000000000000"),
        ({"rtt": "60ms..20ms"}, "--rtt 60ms..20ms: expected the shortest and the longest"),
        ({"rtt": "0ms"}, "--rtt 0ms: expected the shortest"),
        ({"homes": 0}, "--homes 0: expected 1 at least"),
        ({"homes": 3, "users": 3}, "--homes, --users, --mix, --capture: expected one of them"),
        ({"users": 1000}, "no discipline makes room; expected at most 43 at a time"),
        ({"access": "isdn"}, "--access isdn: expected one of docsis, dsl, atm, ethernet, lte, port"),
        (
            {"platform": "hardware"},
            "--on hardware with --access ethernet: expected one of linux, openwrt, freebsd, systemd-networkd",
        ),
        (
            {"access": "port", "platform": "mikrotik"},
            "--on mikrotik with --access port: expected one of linux, hardware",
        ),
        ({"platform": "windows"}, "--on windows: expected one of linux, openwrt, freebsd, systemd-networkd, mikrotik"),
        ({"what_for": "chess"}, "'chess': expected calls, web, video, games, downloads"),
        ({"what_for": "web=-1"}, "'web=-1': expected a weight above 0 and up to 1000"),
    ],
)
def test_bad_input_is_said_in_a_line(options: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        question.read(**{"down": "50mbit", "up": "10mbit", **options})  # type: ignore[arg-type]


def test_a_mix_says_who_does_what(tmp_path: Path) -> None:
    file = tmp_path / "mix.toml"
    file.write_text("users = [2, 5]\nuploads = 0\nbbr = [0.25, 0.75]\n")
    mix = question.read("50mbit", "10mbit", mix=file).mix
    assert (mix.users, mix.uploads, mix.bbr) == ((2, 5), (0, 0), (0.25, 0.75))
    assert mix.downloads == question.Mix().downloads


@pytest.mark.parametrize(
    "text",
    [
        "user = 3",
        "users = -1",
        "users = [3, 2]",
        "users = 1.5",
        "bbr = 2",
        "users = true",
        "users = inf",
        "users = nan",
    ],
)
def test_a_mix_that_is_none_names_its_key(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mix.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=f"mix.toml: {text.split()[0]}"):
        question.read("50mbit", "10mbit", mix=file)


@pytest.mark.parametrize(
    ("text", "what_for", "said"),
    [
        ("", None, "mix.toml: says nothing of who does what; expected a line for one at least of users, downloads"),
        ("# calls = 1\n", None, "mix.toml: says nothing of who does what"),
        ("users=0\ndownloads=0\nuploads=0\ncalls=[0,1]\ngames=0", None, "mix.toml: there may be nobody who does any"),
        ("calls = 0", "calls,web", "--for calls: nobody does so in"),
        ("downloads = 0\nuploads = 0", "downloads", "expected more than 0 as its downloads or uploads"),
    ],
)
def test_a_mix_of_nobody_is_refused(tmp_path: Path, text: str, what_for: str | None, said: str) -> None:
    file = tmp_path / "mix.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=re.escape(said)):
        question.read("50mbit", "10mbit", mix=file, what_for=what_for)


def test_who_is_said_to_be_nobody_is_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mix.toml"
    everyone = {"pages", "calls", "games", "downloads", "backups"}
    for keys, gone in (
        ("calls = 0\n", {"calls"}),
        ("users = 0\n", {"pages"}),
        ("games = 0\n", {"games"}),
        ("users = 0\ncalls = 0\ngames = 0\n", {"pages", "calls", "games"}),
    ):
        file.write_text(keys + "downloads = 1\nuploads = 1\nbbr = 0.0\n")
        asked = question.read("4mbit", "1mbit", mix=file, platform="openwrt")
        today = candidates.of("openwrt", "ethernet", 0.08)[0]
        made = situation.scenario(asked, situation.draw(asked, 0), today)
        assert {block["application"] for block in made.scenario["traffic"]} == everyone - gone, keys
    # The last has a run: nothing is said of them, and nothing weighs.
    assert [one.key for one in applications.figures(asked)] == ["down_bps", "up_bps"]
    assert scores.definition(asked) == "A score is that of downloads with uploads alone, from 0 to 1."
    (row,) = advising.made([(today, 0, None)], asked, 1, advising.SILENT)
    assert row["calls_mos"] is None and row["pages_in_2s"] is None and row["game_p99_s"] is None
    assert row["down_bps"] and 0 < applications.score(asked, row) <= 1
    # And so has a call alone.
    file.write_text("users = 0\ndownloads = 0\nuploads = 0\ngames = 0\n")
    words_of = ["advise", "--down", "2mbit", "--up", "1mbit", "--on", "openwrt", "--mix", str(file), "--rounds", "2"]
    assert invoke([*words_of, "--json", "--rate-error", "0"]) == 0
    assert list(json.loads(capsys.readouterr().out)["candidates"][TODAY]["figures"]) == ["calls_mos"]


def test_a_router_that_can_do_nothing_is_told_what_to_do() -> None:
    with pytest.raises(BadInput, match="put a router behind it that shapes, and say --on openwrt, linux or freebsd"):
        candidates.of("router-without-aqm", "dsl", 0.06)
    # A cable modem can have DOCSIS-PIE.
    names = [one.name for one in candidates.of("router-without-aqm", "docsis", 0.06)]
    assert names == [TODAY, "modem's docsis_pie"]


def test_all_candidates_meet_the_same_link_and_users() -> None:
    asked = question.read("20mbit", "4mbit", access="docsis")
    drawn = situation.draw(asked, 3)
    assert drawn == situation.draw(asked, 3)
    assert drawn != situation.draw(asked, 4)
    runs = [situation.scenario(asked, drawn, one) for one in candidates.of("linux", "docsis", 0.08)]
    traffic = [
        [{k: v for k, v in block.items() if "route" not in k} for block in one.scenario["traffic"]] for one in runs
    ]
    assert all(each == traffic[0] for each in traffic)
    # The line's rate is behind every shaper, and a shaper takes the share of it that the access has.
    for one in runs[2:]:
        assert one.scenario["links"]["modem"]["rate"] == "20mbit"
        assert one.scenario["links"]["router"]["rate"] == "19mbit"
        assert one.scenario["links"]["router"]["reverse_rate"] == "3800kbit"


def test_a_line_that_is_best_as_it_is_has_nothing_to_set() -> None:
    found = _advised([TODAY, "cake"], {TODAY: 0.9, "cake": 0.2})
    assert words.verdict(found)[0] == "Recommended: leave it as it is, a drop-tail queue."
    assert lines.of(found.question, found.first).startswith("# Nothing to set")
    assert assumptions.wrong(found) == ""


def _advised(names: list[str], scores: dict[str, float]) -> advising.Advice:
    """An advice whose runs all came out alike."""
    asked = question.read("50mbit", "10mbit", platform="openwrt")
    all_of_them = {one.name: one for one in candidates.of("openwrt", "ethernet", 0.08)}
    race = advising.Race(names, (4,))
    row = {"calls_mos": 4.0, "pages_in_2s": 0.5, "game_p99_s": 0.1, "down_bps": 4e7, "up_bps": 8e6}
    for name in names:
        for _ in range(4):
            race.add(name, scores[name])
    race.judge()
    return advising.Advice(asked, [all_of_them[name] for name in names], race, {name: [row] * 4 for name in names})


def test_what_is_not_known_is_told() -> None:
    told = assumptions.unknown(question.read("50mbit", "10mbit", access="lte"))
    assert (
        "people who browse: 1 to 4" in told and "what today's queue up holds: 200 to 1000 ms at the line's rate" in told
    )
    assert "one that loses nothing" in told[-1]
    # A line whose rate changes, by changes that nobody measured.
    mobile = replace(
        _advised([TODAY, "cake"], {TODAY: 0.2, "cake": 0.9}), question=question.read("9mbit", "3mbit", access="lte")
    )
    assert any("changes were guessed, not measured" in sentence for sentence in words.verdict(mobile))


def test_a_small_link_is_advised(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["advise", "--down", "4mbit", "--up", "1mbit", "--on", "openwrt", "--access", "docsis", "--users", "1"]
    assert invoke([*arguments, "--rounds", "4", "--jobs", "2", "--json"]) == 0
    text = capsys.readouterr().out
    found = json.loads(text)
    # Any fair queue behind a shaper spares a call the hundreds of milliseconds of today's queue.
    assert found["recommended"].split()[0] in ("cake", "fq_codel")
    best, today = found["candidates"][found["recommended"]], found["candidates"][TODAY]
    assert best["figures"]["calls_mos"]["value"] > today["figures"]["calls_mos"]["value"] + 0.5
    assert best["figures"]["game_p99_s"]["value"] < today["figures"]["game_p99_s"]["value"]
    assert set(found["too_fast"]) == {one.key for one in FIGURES}
    assert "config queue" in found["lines"]
    # The same question has the same answer.
    assert invoke([*arguments, "--rounds", "4", "--jobs", "1", "--json"]) == 0
    assert capsys.readouterr().out == text


def test_a_screen_and_a_page_have_the_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = ["--down", "2mbit", "--up", "1mbit", "--on", "router-without-aqm", "--access", "docsis"]
    assert invoke(["advise", *asked, "--rounds", "2", "-o", str(tmp_path / "mine")]) == 0
    shown = capsys.readouterr()
    assert "Recommended: " in shown.out
    assert "pages within 2 s, %" in shown.out
    assert "after 2 of 2 rounds" in shown.err
    page = html.unescape((tmp_path / "mine/report.html").read_text())
    verdict = next(line for line in shown.out.splitlines() if line.startswith("Recommended: "))
    assert f"<h1>{verdict}</h1>" in page
    numbers = json.loads((tmp_path / "mine/advice.json").read_text())
    assert numbers["verdict"][0] == verdict
    # What lies beside it can be run again.
    for name in ("today.toml", "recommended.toml"):
        assert engine.resolve((tmp_path / "mine" / name).read_text(), name).scenario["duration"] == "24s"
    # A folder that is there is somebody's.
    assert invoke(["advise", *asked, "--rounds", "2", "-o", str(tmp_path / "mine")]) == 2


@pytest.mark.parametrize("platform", ["linux", "openwrt", "freebsd", "systemd-networkd", "mikrotik"])
@pytest.mark.parametrize("line", LINES)
def test_every_candidate_has_lines(platform: str, line: str) -> None:
    asked = question.read("50mbit", "2mbit", "20ms..60ms", access=line, platform=platform)
    for one in candidates.of(platform, line, 0.06):
        text = lines.of(asked, one)
        has_shaper = one.settings is not None and not one.in_modem
        # 2 Mb/s, less the margin, is the rate in every dialect.
        kbit = round(2000 * situation.margin(asked, one)) if has_shaper else round(2000 * asked.access.margin)
        assert (f"{kbit}" in text) == has_shaper, one.name
        # CoDel's target is one and a half full frames at least: 1.5 * 1514 * 8 bit / 1.84 Mb/s = 9.87 ms.
        if one.name == "fq_codel" and line == "dsl":
            assert "9.874ms" in text or "9874us" in text


def test_nothing_is_advised_whose_lines_are_known_to_do_nothing() -> None:
    for line in ("ethernet", "port"):
        asked = question.read("50mbit", "50mbit", access=line, platform="linux")
        for one in candidates.of("linux", line, 0.06):
            assert "seen to do nothing" not in lines.of(asked, one), one.name


NETWORKD = Path("/lib/systemd/systemd-networkd")

ALONE = """
mount -t tmpfs none /run && mount -t sysfs -o ro none /sys
mkdir -p /etc/systemd/network && mount -t tmpfs none /etc/systemd/network && cp "$1"/*.network /etc/systemd/network
SYSTEMD_LOG_LEVEL=debug timeout 2 "$2" 2>&1
"""
"""systemd-networkd reads files, in namespaces of its own."""


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0 or not NETWORKD.exists(), reason="left out: systemd-networkd, or root's rights")
def test_systemd_reads_its_lines_back(tmp_path: Path) -> None:
    for name in LINES:
        asked = question.read("50mbit", "2mbit", "20ms..160ms", access=name, platform="systemd-networkd")
        for number, one in enumerate(candidates.of("systemd-networkd", name, 0.06)):
            if one.settings is not None and not one.in_modem:
                for port, sections in enumerate(lines.of(asked, one).split("# In the .network file of ")[1:]):
                    text = f"[Match]\nName=port{port}\n\n# {sections}"
                    (tmp_path / f"{name}{number}{port}.network").write_text(text, encoding="utf-8")
    (tmp_path / "wrong.network").write_text("[Match]\nName=x\n[CAKE]\nNoSuchKey=1\n", encoding="utf-8")

    call = ["unshare", "--net", "--mount", "bash", "-c", ALONE, "bash", str(tmp_path), str(NETWORKD)]
    said = subprocess.run(call, capture_output=True, text=True, timeout=120).stdout
    refused = [line for line in said.splitlines() if ".network:" in line]
    assert any("NoSuchKey" in line for line in refused), said
    # Older ones do not know two keys, which the lines say.
    unknown = ("NoSuchKey", "'RTTSec' in section [CAKE]", "'AckFilter' in section [CAKE]")
    assert [line for line in refused if not any(key in line for key in unknown)] == []


def test_rounds_follow_from_what_is_carried_not_from_the_clock() -> None:
    asked = question.read("50mbit", "10mbit")
    # 3.6e11 bits, of 60 Mb/s for 24 s and 12 candidates: 20.
    assert advising.rounds_for(asked, 12) == 20
    assert advising.rounds_for(question.read("1gbit", "1gbit"), 12) == advising.FEWEST_ROUNDS


def test_cells_have_the_units_of_their_application() -> None:
    values = {"mos": 4.25, "share": 0.5, "s": 0.05, "bps": 5e7}
    said = [cells.cell(one, applications_interval(values[one.unit])) for one in FIGURES]
    assert said == ["4.25", "50", "50", "50.0", "50.0"]


def test_small_rates_have_digits_and_minus_is_a_minus() -> None:
    rate, mos = (next(one for one in FIGURES if one.unit == unit) for unit in ("bps", "mos"))
    intervals = [advising.Interval(value, width, 2, "runs") for value, width in ((4300, 700), (-2e5, 6.3e6), (0, 0))]
    assert [cells.cell(rate, one) for one in intervals] == ["0.0043 ± 0.0007", "−0.2 ± 6.3", "0.0 ± 0.0"]
    assert cells.cell(mos, advising.Interval(-0.641, 0.05, 2, "runs"), signed=True) == "−0.64 ± 0.05"
    assert cells.cell(mos, advising.Interval(-0.001, 0.05, 2, "runs"), signed=True) == "0.00 ± 0.05"


def applications_interval(value: float) -> advising.Interval:
    return advising.Interval(value, None, 1, "none")


def test_the_wrong_rate_is_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", "--down", "2mbit", "--up", "1mbit", "--on", "openwrt", "--rounds", "2", "--json"]
    found = {}
    for percent in ("0", "10", "100"):
        assert invoke([*words, "--for", "calls", "--rate-error", percent]) == 0
        found[percent] = json.loads(capsys.readouterr().out)
    assert found["0"]["too_fast"] is None and found["100"]["rate_error"] == 1.0
    assert found["0"]["recommended"] == found["100"]["recommended"]
    harm = [found[percent]["too_fast"]["calls_mos"]["value"] for percent in ("10", "100")]
    assert harm[0] != harm[1]


def test_costs_are_those_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import advice_costs

    assert advice_costs.TARGET.read_text(encoding="utf-8") == advice_costs.text()


@pytest.mark.parametrize("platform", candidates.PLATFORMS)
def test_every_candidate_has_a_cost_but_what_there_is(platform: str) -> None:
    asked = question.read("50mbit", "10mbit", access="docsis", platform=platform)
    found = {one.name: costs.of(asked, one) for one in candidates.of(platform, "docsis", 0.06)}
    assert [name for name, cost in found.items() if cost is None] == [TODAY]
    for cost in filter(None, found.values()):
        # 60 Mb/s in frames of 1518 bytes: 4,941 a second.
        assert cost.packets_per_s[0] == pytest.approx(60e6 / 8 / 1518)
        assert cost.share_of_core[0] == pytest.approx(max(0, cost.ns) * 60e6 / 8 / 1518 / 1e9)
        assert cost.share_of_core[1] >= cost.share_of_core[0]


def test_homes_are_the_block_of_homes() -> None:
    asked = question.read("50mbit", "10mbit", homes=20, access="docsis")
    # Half to half again of 0.3 and 0.4 of 20 homes, and one of everything at least.
    assert (asked.mix.users, asked.mix.video, asked.mix.uploads) == ((3, 9), (4, 12), (1, 2))
    assert question.read("50mbit", "10mbit", homes=1).mix.video == (1, 1)
    for seed in range(5):
        drawn = situation.draw(asked, seed)
        made = situation.scenario(asked, drawn, candidates.of("openwrt", "docsis", 0.08)[0])
        traffic = made.scenario["traffic"]
        by = {block["application"]: block for block in traffic if block["application"] not in ("downloads", "backups")}
        assert by["pages"]["users"] == drawn.users and by["pages"]["model"] == "archive2024"
        assert by["video"]["viewers"] == drawn.video and by["video"]["rule"] == "throughput"
        assert (by["calls"]["flows"], by["games"]["flows"]) == (2 * drawn.calls, 2 * drawn.games)
        assert 3 <= drawn.users <= 9 and 4 <= drawn.video <= 12
        flows = {(block["direction"], block.get("cc", "cubic")) for block in traffic[4:]}
        assert flows <= {(way, cc) for way in ("forward", "reverse") for cc in ("cubic", "bbr")}


def test_homes_are_advised_in_the_words_of_their_applications(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["advise", "--down", "20mbit", "--up", "4mbit", "--on", "openwrt", "--homes", "2", "--rounds", "3"]
    assert invoke([*arguments, "--for", "video,web", "--rate-error", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    figures = found["candidates"][TODAY]["figures"]
    assert list(figures) == [one.key for one in (*FIGURES[:2], *applications.FILMS, *FIGURES[2:])]
    assert figures["film_bitrate_bps"]["value"] > 235e3 and 0 < figures["film_startup_s"]["value"] < 24
    assert found["link"]["mix"]["video"] == [1, 1]


def test_a_line_of_cells_is_shaped_with_its_cells_or_below_them() -> None:
    def shaped(platform: str, name: str) -> dict[str, object]:
        asked = question.read("8mbit", "1mbit", access="atm", platform=platform)
        (one,) = [one for one in candidates.of(platform, "atm", 0.08) if one.name == name]
        made = situation.scenario(asked, situation.draw(asked, 0), one)
        modem = made.scenario["links"]["modem"]
        assert (modem["framing"], modem["overhead"]) == ("atm", "40b")
        found: dict[str, object] = made.scenario["links"]["router"]
        return found

    for platform, name in (("linux", "fq_codel"), ("openwrt", "cake"), ("linux", "sfq")):
        found = shaped(platform, name)
        assert (found["rate"], found["framing"]) == ("7360kbit", "atm"), name
    assert shaped("openwrt", "cake")["qdisc"]["overhead_keyword"] == "pppoe-llcsnap"  # type: ignore[index]
    # dummynet counts IP packets: 1500 bytes take 33 cells of 53.
    found = shaped("freebsd", "fq_codel")
    assert "framing" not in found
    assert abs(units.rate_bps(str(found["rate"]), "rate") - 8e6 * 0.92 * 1500 / 1749) < 1
    # A token bucket of systemd's counts 1540 bytes a packet, CAKE its cells.
    assert abs(units.rate_bps(str(shaped("systemd-networkd", "codel")["rate"]), "rate") - 7.36e6 * 1540 / 1749) < 1
    assert shaped("systemd-networkd", "cake")["rate"] == "7360kbit"


def test_lines_say_that_the_line_has_cells() -> None:
    said = {}
    for platform in ("linux", "openwrt", "systemd-networkd", "mikrotik"):
        asked = question.read("8mbit", "1mbit", access="atm", platform=platform)
        for one in candidates.of(platform, "atm", 0.08):
            said[platform, one.name] = lines.of(asked, one)
    assert "overhead 40 linklayer atm" in said["linux", "fq_codel"] and "atm overhead 40" in said["linux", "cake"]
    assert "option linklayer 'atm'" in said["openwrt", "fq_codel"] and "overhead '40'" in said["openwrt", "cake"]
    assert "CompensationMode=atm" in said["systemd-networkd", "cake"]
    assert "cake-atm=atm" in said["mikrotik", "cake"]
    # What was written for tc is read back as the link that was meant.
    asked = question.read("8mbit", "1mbit", access="atm", platform="linux")
    for one in candidates.of("linux", "atm", 0.08)[1:]:
        back = tc.read(lines.of(asked, one), "lines", None, None, None).tree["link"]
        meant = situation.router(asked, one, situation.margin(asked, one))
        assert (back["overhead"], back["framing"]) == (meant["overhead"], "atm"), one.name
        assert units.rate_bps(back["rate"], "rate") == units.rate_bps(meant["rate"], "rate"), one.name


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--down", "9mbit", "--up", "1mbit", "--for", "web,web=2"], "'web=2': web is there twice; expected each once"),
        (["--down", "9mbit", "--up", "1mbit", "--for", "web=0"], "'web=0': expected a weight above 0 and up to 1000"),
        (["--down", "0mbit", "--up", "1mbit"], "what was bought or, better, what was measured"),
        (["--down", "10mbit", "--up", "50mbit"], "--down 50mbit --up 10mbit?"),
        (["--down", "10mbit", "--up", "1mbit", "--homes", "200"], "no discipline makes room; expected at most"),
        (["--down", "10mbit", "--up", "1mbit", "--on", "router-without-aqm"], "say --on openwrt, linux or freebsd"),
        (["--down", "10mbit", "--up", "1mbit", "--have", "no-such-file"], "no-such-file: "),
        (["--down", "10mbit", "--up", "1mbit", "--capture", "no-such-file"], "no-such-file: "),
        (["--down", "10mbit", "--up", "1mbit", "--mix", "no-such-file"], "no-such-file: "),
    ],
)
def test_the_command_refuses_in_one_line_that_says_what_to_do(
    capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert invoke(["advise", *options]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and said in shown.err


def test_it_says_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["advise", "--down", "2mbit", "--up", "1mbit", "--on", "openwrt", "--rounds", "2", "--for", "calls"]
    assert invoke([*asked, "--access", "lte"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "as it is not known: the line has the rates that were said, and loses no packets itself." in shown
    assert (
        "What changes if the shaper is set to 2.2 Mb/s down and 1.1 Mb/s up, 10 % above what was said of the line, is "
        "in the table." in shown
    )
    assert "change if shaped to 2.2 Mb/s down," in shown
    assert "changes were guessed, not measured" in shown and "What yours does is not known here." in shown
    assert invoke([*asked, "--rate-error", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "the shaper is" not in found["not_known"][0] and "people who browse: 1 to 1" not in found["not_known"][0]
    assert any("one that loses nothing by itself" in line for line in found["not_known"])


@pytest.mark.parametrize("line", LINES)
def test_cake_is_the_only_shaper_whatever_the_line_is(line: str) -> None:
    asked = question.read("20mbit", "2mbit", access=line, platform="linux")
    for one in candidates.of("linux", line, 0.06):
        if one.name.startswith("cake"):
            text = lines.of(asked, one)
            assert text.count("handle 10: cake bandwidth") == 2 and "htb" not in text, text


def test_what_shows_whether_it_is_so_reads_the_classes_of_each_port() -> None:
    for platform, ports in (("linux", "lan wan"), ("openwrt", "ifb4wan wan"), ("systemd-networkd", "lan wan")):
        asked = question.read("20mbit", "2mbit", platform=platform)
        fair = next(one for one in candidates.of(platform, "docsis", 0.06) if one.name == "fq_codel")
        *_, dumped, read = words.checks(asked, lines.of(asked, fair))
        shown = 'echo "# $port"; tc -s -d qdisc show dev $port; tc class show dev $port;'
        assert dumped == f"for port in {ports}; do {shown} done > now.txt"
        assert read.startswith("aqmlab tc --read now.txt ")
        assert len(words.checks(asked, lines.of(asked, candidates.of(platform, "docsis", 0.06)[0]))) == 1
    assert len(words.checks(question.read("20mbit", "2mbit", platform="freebsd"), "ipfw pipe 1 config\n")) == 1


def test_runs_that_are_all_alike_say_nothing_of_others():
    assert advising.over([0.5, 0.5, 0.5]).half_width is None
    assert advising.over([0.5, 0.5, 0.6]).half_width > 0
    assert advising.over([None, 0.5]).value == 0.5


def test_help_names_what_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["advise", "--help"]) == 0
    shown = re.sub(r"[\s│]+", " ", capsys.readouterr().out)
    (keys,) = re.findall(r"in TOML: ([\w, ]+)\.", shown)
    assert set(keys.split(", ")) == set(question.Mix.__dataclass_fields__)
    ends = [units.rate_text(end) for end in (question.SLOWEST_BPS, question.FASTEST_BPS)]
    assert f"as 50mbit; {' to '.join(ends)}." in shown and f"as 10mbit; {ends[0]} up to" in shown
    assert f"by default {advising.FEWEST_ROUNDS} to {advising.MOST_ROUNDS}," in shown
