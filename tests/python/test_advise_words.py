"""What `aqmlab advise` leads with: what can be acted on, and how to go on where rounds leave it undecided."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from aqmlab.advice import advising, applications, candidates, cells, gains, lines, more, question, situation, words
from aqmlab.advice.advising import Advice
from aqmlab.advice.candidates import TODAY
from aqmlab.advice.race import Race, looks
from aqmlab.figures import advice as drawing
from aqmlab.figures.sheet import Sheet
from aqmlab.report import advice as report
from aqmlab.statistics import Interval
from aqmlab.tc import read as reading

pytestmark = pytest.mark.usefixtures("compiled")

COMMAND = ["aqmlab", "advise", "--down", "50mbit", "--rounds", "6", "--report", "-o", "mine/", "--jobs", "1"]


def advised(scores: Mapping[str, Sequence[float]], mos: Mapping[str, float]) -> Advice:
    """An advice of candidates with these scores, round by round, and calls that hardly vary."""
    asked = question.read("50mbit", "10mbit", platform="openwrt")
    all_of_them = {one.name: one for one in candidates.of("openwrt", "ethernet", 0.08)}
    rounds = len(scores[TODAY])
    race = Race(list(scores), looks(rounds), advising.CLOSE)
    rows: dict[str, list[applications.Row]] = {name: [] for name in scores}
    for at in range(rounds):
        for name, own in scores.items():
            race.add(name, own[at])
            rows[name].append(
                {
                    "calls_mos": mos[name] + 0.01 * at,
                    "pages_in_2s": 0.5 + 0.01 * at,
                    "game_p99_s": 0.1,
                    "down_bps": 4e7,
                    "up_bps": 8e6,
                }
            )
    race.judge()
    return Advice(asked, [all_of_them[name] for name in scores], race, rows, runs=rounds * len(scores), took_s=60.0)


SURE = {
    TODAY: (0.1, 0.3, 0.2, 0.25, 0.15, 0.3),
    "cake": (0.9, 0.8, 0.85, 0.82, 0.9, 0.88),
    "fq_codel": (0.89, 0.82, 0.84, 0.82, 0.91, 0.86),
}


def test_it_leads_with_what_can_be_acted_on() -> None:
    found = advised(SURE, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    # Opinions that differ from round to round, uploads that always lose, and downloads of which it is not sure.
    for at, row in enumerate(found.rows["cake"]):
        opinion, down_bps = 4.0 + 0.02 * (at % 3), 4e7 + 1e6 * (-1) ** at
        found.rows["cake"][at] = {**row, "calls_mos": opinion, "down_bps": down_bps, "up_bps": 7e6 + 1e5 * (at % 2)}
    recommended, units, score, out, tie, _, below, *_ = words.verdict(found)
    assert recommended.startswith("Recommended: cake, shaped to ")
    least = found.race.gain("cake", TODAY)[0]
    sure = gains._down(least)
    assert units == (
        "Better than today, each with 95 %: calls 2.02 → 4.02 MOS (how a call sounds: 1 bad to 5 excellent). Worse: "
        "uploads 8.00 → 7.05 Mb/s. Not sure: downloads 40.0 → 40.0 Mb/s. The same: pages within 2 s 52 %, game delay "
        "(99th percentile) 100 ms."
    )
    assert score == (
        f"Its score is 0.858, today's 0.217: better by 0.641; with 95 %, by {sure} at least. A score is the mean of "
        "calls, pages, games and downloads with uploads, each from 0 to 1."
    )
    assert 0 < least < 0.64
    assert out == f"Out, as worse than another with 95 % confidence: {TODAY}."
    assert tie.startswith("It cannot be told from fq_codel on that score")
    assert re.fullmatch(r"With 95 % it is at most 0\.0\d\d below the best of the 3 candidates\.", below)
    said = words.as_dict(found)["gain_over_today"]
    assert said["least_95"] == least and said["mean"] == pytest.approx(0.642, abs=0.001)


def test_what_is_no_surer_than_today_names_the_figures_that_are() -> None:
    scores = {TODAY: (0.9, 0.1, 0.8, 0.2, 0.9, 0.1), "cake": (0.5, 0.6, 0.5, 0.6, 0.5, 0.6)}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0})
    # Their differences in MOS are all the same, which says nothing of others: one that is not.
    found.rows["cake"][0] = {**found.rows["cake"][0], "calls_mos": 3.9}
    said = words.verdict(found)
    assert said[1].startswith("Better than today, each with 95 %: calls 2.02 → 4.01 MOS (")
    assert said[2].startswith("Its score is 0.550, today's 0.500: better by 0.050 in the mean, which is not sure. A ")
    behind = "Behind by 0.050 in the mean, but it differs too much from run to run for that to be sure: fifo, as today."
    assert behind in said


def test_where_another_one_than_the_first_is_surely_better_than_today_that_is_said() -> None:
    today = (0.2, 0.3, 0.25, 0.2, 0.3, 0.25, 0.2, 0.25)
    scores = {
        TODAY: today,
        "cake": (0.9, 0.1, 0.95, 0.9, 0.15, 0.1, 0.9, 0.95),
        "fq_codel": tuple(one + 0.1 + 0.001 * at for at, one in enumerate(today)),
    }
    found = advised(scores, dict.fromkeys(scores, 4.0))
    assert found.race.first == "cake" and TODAY in found.race.left and found.race.gain("cake", TODAY)[0] <= 0
    assert words.verdict(found)[2].startswith(
        "Its score is 0.619, today's 0.244: better by 0.375 in the mean, which is not sure of it. It is sure that "
        "another one is better than today. A score is "
    )


def test_what_is_worse_by_next_to_nothing_is_not_beside_what_is_lost() -> None:
    """A candidate that differs much is no tie, and one that is surely worse by a hundredth is not out with the last."""
    first = SURE["cake"]
    scores = {
        TODAY: SURE[TODAY],
        "cake": first,
        "fq_codel": tuple(one - 0.008 - 0.0002 * at for at, one in enumerate(first)),
        "cake ack-filter": (0.95, 0.5, 0.9, 0.4, 0.91, 0.6),
    }
    found = advised(scores, dict.fromkeys(scores, 4.0))
    assert [found.state(name) for name in ("cake", "fq_codel", "cake ack-filter", TODAY)] == [
        "first",
        "near",
        "open",
        "out",
    ]
    assert found.ranking == ["cake", "fq_codel", "cake ack-filter", TODAY]
    said = words.verdict(found)
    assert f"Out, as worse than another with 95 % confidence: {TODAY}." in said
    (near,) = [one for one in said if one.endswith("hardly matters: fq_codel.")]
    assert re.match(r"Worse, but by 0\.0[01]\d at most", near)
    assert any(one.startswith("Behind by 0.148 in the mean") and one.endswith(": cake ack-filter.") for one in said)
    assert [row["state"] for row in words.field(found)] == ["first", "near", "open", "out"]
    assert words.states(found).startswith(
        "Near: worse with 95 % confidence, but by 0.02 of the score at most. Open: behind"
    )
    assert words.as_dict(found)["candidates"]["fq_codel"]["state"] == "near"


def test_numbers_say_no_more_than_is_so() -> None:
    """Bounds are rounded away from what is better, and a width is never said to be nothing."""
    assert [words._up(one) for one in (0.0001, 0.0121, 0.012, 0.0)] == ["0.001", "0.013", "0.012", "0.000"]
    assert [gains._down(one) for one in (0.339, 0.34, 0.0099, 0.0004)] == ["0.33", "0.34", "0.009", "0.000"]
    pages, game = (one for one in applications.FIGURES if one.key in ("game_p99_s", "pages_in_2s"))
    assert cells.cell(game, Interval(-0.0004, 0.0001, 6, "runs"), signed=True) == "−0.4 ± 0.1"
    assert cells.cell(game, Interval(0.035, 0.003, 6, "runs")) == "35 ± 3"
    assert cells.cell(pages, Interval(0.991, 0.0012, 6, "runs")) == "99.1 ± 0.1"


def test_what_is_set_now_is_compared_over_the_rounds_that_it_ran() -> None:
    race = Race(["first", "now"], (8, 12))
    for at in range(12):
        race.add("first", 0.8 if at < 8 else 0.2)
        if at < 8:
            race.add("now", 0.6)
    assert race.lead("first", "now") == pytest.approx(0.2)
    assert race.mean("first") - race.mean("now") == pytest.approx(0.0)


def test_slow_lines_have_settings_that_a_run_takes() -> None:
    """A full frame takes longer than CoDel's own interval there."""
    for down, up, access in (("1mbit", "256kbit", "lte"), ("2mbit", "300kbit", "lte"), ("256kbit", "256kbit", "dsl")):
        asked = question.read(down, up, access=access)
        drawn = situation.draw(asked, 0)
        for one in candidates.of("linux", access, asked.rtt_s[1]):
            situation.scenario(asked, drawn, one)


def test_figures_that_only_some_rounds_have_are_compared_where_they_are() -> None:
    found = advised(SURE, dict.fromkeys(SURE, 4.0))
    film = applications.FILMS[0]
    assert found.difference("cake", film) is None and found.value("cake", film) is None
    for name, start in (("cake", 1.0), (TODAY, 5.0)):
        found.rows[name][2] = {**found.rows[name][2], film.key: start}
    assert found.difference("cake", film).value == -4.0


def test_a_fast_line_s_router_may_be_too_slow() -> None:
    found = advised(SURE, dict.fromkeys(SURE, 4.0))
    assert not any("Many home routers" in one for one in words.cost(found))
    fast = replace(found, question=replace(found.question, down_bps=1e9, platform="openwrt"))
    assert any(one.startswith("Many home routers cannot shape 1 Gb/s") for one in words.cost(fast))


def test_where_rounds_leave_it_undecided_the_command_goes_on() -> None:
    scores = {TODAY: (0.9, 0.1, 0.8, 0.2, 0.9, 0.1), "cake": (0.5, 0.6, 0.5, 0.6, 0.5, 0.6)}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0})
    sentence, command = more.going_on(found, COMMAND)
    # 12 runs took a minute; 9 rounds more of two are 18 runs.
    assert (
        sentence == "6 rounds leave this undecided. More of them take some 3 min here, the first ones again included:"
    )
    assert command == "aqmlab advise --down 50mbit --report -o mine-15 --jobs 1 --rounds 15"
    assert more.going_on(found, ["aqmlab", "--out=x", "--rounds=6"])[1] == "aqmlab --out=x-15 --rounds 15"
    # An option and its value may be one word.
    assert more.going_on(found, ["aqmlab", "-omine/", "--jobs=1"])[1] == "aqmlab -omine-15 --jobs=1 --rounds 15"
    assert words.as_dict(found)["undecided"]


def test_what_is_decided_needs_no_more_rounds() -> None:
    behind = tuple(one - 0.05 - 0.001 * at for at, one in enumerate(SURE["cake"]))
    scores = {TODAY: SURE[TODAY], "cake": SURE["cake"], "fq_codel": behind}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    assert found.race.running == ["cake"] and more.going_on(found, COMMAND) == []
    assert "With 95 % it is the best of the 3 candidates." in words.verdict(found)


def test_more_rounds_are_not_offered_where_nothing_has_differed() -> None:
    """A share of runs of which none was seen falls below a hundredth of the score after some 500 rounds."""
    scores = {TODAY: SURE[TODAY], "cake": SURE["cake"], "fq_codel": SURE["cake"]}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0})
    assert found.race.running == ["cake", "fq_codel"] and found.race.shortfall() > 0.3
    assert more.going_on(found, COMMAND) == [] and not words.as_dict(found)["undecided"]
    said = words.verdict(found)
    assert "fq_codel has the same score as it in every run so far: more of them would hardly tell them apart." in said
    assert not any("any of them may be the best" in one for one in said)
    (below,) = [one for one in said if one.startswith("With 95 % it is at most")]
    assert below.endswith("of the 3 candidates: what no run has shown may still be so in a share of others.")
    # Of one that differs they do tell.
    scores["cake ack-filter"] = (0.95, 0.5, 0.9, 0.4, 0.91, 0.6)
    found = advised(scores, dict.fromkeys(scores, 4.0))
    assert found.same == ["fq_codel"] and more.going_on(found, COMMAND)[0].startswith("6 rounds leave this undecided.")


def test_where_nothing_makes_the_mix_work_it_says_so_first(tmp_path: Path) -> None:
    """Films are cut at nought: all are as bad, which is no reason to recommend what there is."""
    scores = dict.fromkeys((TODAY, "cake", "fq_codel"), (0.0,) * 6)
    found = advised(scores, dict.fromkeys(scores, 4.0))
    found = replace(found, question=question.read("1mbit", "1mbit", platform="openwrt", what_for="video"))
    for name in scores:
        found.rows[name] = [{**row, "film_score": 0.0} for row in found.rows[name]]
    said = words.verdict(found)
    assert said[:2] == [
        "No discipline makes this mix work on this line. Under the best of them its score, from 0 to 1, is 0.000: "
        "films do not work.",
        "Least bad: leave it as it is, a drop-tail queue.",
    ]
    assert said[2].startswith(
        "As it is: calls 4.02 MOS (how a call sounds: 1 bad to 5 excellent), pages within 2 s 52 %, "
    )
    assert said[3] == (
        "Its score is 0.000, no lower than any other one's. A score is that of films alone, from 0 to 1. Calls, pages, "
        "games and downloads with uploads do not count."
    )
    assert words.as_dict(found)["failing"] == ["films"]
    page = report.write(found, COMMAND, tmp_path / "mine").read_text(encoding="utf-8")
    assert "<h1>No discipline makes this mix work" in page and "Recommended" not in page


def test_what_fails_is_said_of_the_mix_that_counts() -> None:
    scores = {TODAY: (0.1, 0.12, 0.1, 0.13, 0.1, 0.12), "cake": (0.2, 0.22, 0.21, 0.23, 0.2, 0.24)}
    found = advised(scores, dict.fromkeys(scores, 1.5))
    bad = {"pages_in_2s": 0.05, "game_p99_s": 0.3, "down_bps": 1e6, "up_bps": 1e6}
    found.rows["cake"] = [{**row, **bad} for row in found.rows["cake"]]
    first, least, *_ = words.verdict(found)
    assert first.endswith("is 0.217: calls, pages and games do not work.") and least.startswith("Least bad: cake, ")
    # Downloads that get little of a busy link take longer, and that is all.
    found = replace(found, question=question.read("50mbit", "10mbit", platform="openwrt", what_for="downloads"))
    assert words.verdict(found)[0].startswith("Recommended: cake, ")
    # What is poor in one thing alone works.
    found = advised(SURE, dict.fromkeys(SURE, 1.5))
    assert found.failing == []


def test_the_routers_lines_are_a_script_with_its_ports_as_variables(tmp_path: Path) -> None:
    asked = question.read("250mbit", "40mbit", access="docsis")
    for one in candidates.of("linux", "docsis", 0.08):
        made = lines.file(asked, one)
        if one.settings is None or one.in_modem:
            assert made is None
            continue
        assert made is not None
        name, text = made
        assert name == "router.sh" and text.startswith("#!/bin/sh\n# Edit the names of the two ports below")
        code = [row.partition("#")[0] for row in text.splitlines() if not row.startswith("#")]
        # Each command is for a variable, and the first ones take away what is there.
        for row in code:
            assert not row.startswith(("tc ", "ethtool")) or '"$LAN"' in row or '"$WAN"' in row, row
        assert text.index("tc qdisc delete") < text.index("tc qdisc add")
        commands = [row for row in lines.of(asked, one).splitlines() if row.startswith("tc ")]
        ported = [row.replace("dev lan", 'dev "$LAN"').replace("dev wan", 'dev "$WAN"') for row in commands]
        written = [
            re.sub(r'\$\(stab "\$\w+"\)', "stab overhead -14 linklayer ethernet", row)
            for row in text.splitlines()
            if row.startswith("tc ")
        ]
        assert written == ported
        # CAKE takes apart what offloads have joined, and has to look behind the address translation.
        assert ("ethtool" in text) == ("cake" not in one.name)
        assert [" nat" in row for row in written if " cake " in row] == ([False, True] if "cake" in one.name else [])
    # 1 ms of 237.5 Mb/s.
    assert "burst 29688 cburst 29688" in text


@pytest.mark.parametrize(("platform", "name"), lines.FILES.items())
def test_every_platform_has_its_lines_as_a_file(platform: str, name: str) -> None:
    line = "ethernet" if platform in candidates.PLATFORMS else "port"
    asked = question.read("50mbit", "25mbit", access=line, platform=platform)
    made = lines.file(asked, candidates.of(platform, line, 0.06)[1])
    assert made is not None and made[0] == name
    assert "em0 is" not in made[1] and (platform != "freebsd" or 'in recv "$WAN"' in made[1])


PORTS = """
ip tuntap add inside mode tap && ip tuntap add outside mode tun || exit 77
export LAN=inside WAN=outside
for port in $LAN $WAN; do ip link set $port up; done
"""
"""One of Ethernet, and one without a header, as of PPP."""

TWICE = (
    PORTS
    + """
for script in "$@"; do sh -e "$script" && sh -e "$script" || exit 1; done
tc class show dev inside
for port in $LAN $WAN; do tc -d qdisc show dev $port; done
for script in "$@"; do sh -e "$script" undo; done
echo then; tc qdisc show dev inside; tc class show dev outside
"""
)

HALF = (
    PORTS
    + """
sed '/dev "\\$WAN" parent/s/bfifo/no_such_qdisc/' "$1" > "$1.half"
sh -e "$1.half" && exit 1
tc class show dev inside; tc class show dev outside
"""
)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("tc"), reason="left out: tc, or root's rights")
def test_a_script_may_be_run_again(tmp_path: Path) -> None:
    """In a network namespace of its own, of disciplines that every kernel has."""
    asked = question.read("250mbit", "40mbit", access="docsis")
    scripts = []
    for one in candidates.of("linux", "docsis", 0.08):
        if one.name == "short fifo":
            made = lines.file(asked, one)
            assert made is not None
            scripts.append(tmp_path / made[0])
            scripts[-1].write_text(made[1], encoding="utf-8")
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", TWICE, "sh", *map(str, scripts)], capture_output=True, text=True, timeout=60
    )
    if ran.returncode == 77:
        pytest.skip("left out: TUN devices")
    assert ran.returncode == 0, ran.stderr
    now, _, then = ran.stdout.partition("then")
    assert "rate 237500Kbit" in now and "burst 29" in now
    # The one without an Ethernet header has no stab to take it off.
    assert now.count("overhead -14") == 1
    assert "htb" not in then
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", HALF, "sh", *map(str, scripts)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0 and ran.stdout == "", ran.stderr
    assert "router.sh: a line failed, and nothing is set" in ran.stderr


def test_overheads_count_from_what_each_port_counts() -> None:
    """tc's stab adds to the size with the Ethernet header, which a port of PPPoE has not; CAKE counts from IP."""

    def written(access: str, name: str, platform: str = "openwrt") -> str:
        asked = question.read("50mbit", "10mbit", access=access, platform=platform)
        (one,) = [one for one in candidates.of(platform, access, 0.06) if one.name == name]
        return lines.of(asked, one)

    assert "option overhead '4'" in written("docsis", "fq_codel")
    assert "option overhead '18'" in written("docsis", "cake")
    for name in ("fq_codel", "cake"):
        text = written("dsl", name)
        assert "option overhead '30'" in text and "option interface 'pppoe-wan'" in text
    assert "eqdisc_opts 'besteffort nat rtt 100ms mpu 64 ack-filter'" in written("docsis", "cake ack-filter")
    assert "iqdisc_opts 'besteffort nat rtt 100ms mpu 64 ack-filter'" in written("docsis", "cake ack-filter")
    assert "iqdisc_opts 'besteffort nat rtt 100ms ptm'" in written("dsl", "cake")
    assert re.findall(r"OverheadBytes=(\d+)", written("dsl", "fq_codel", "systemd-networkd")) == ["16", "30"]
    assert written("docsis", "cake", "systemd-networkd").count("NAT=yes") == 1
    assert "parent=pppoe-out1" in written("dsl", "fq_codel", "mikrotik")
    assert "With PPPoE wan is ppp0" in written("dsl", "fq_codel", "linux")
    # What SQM makes of it is read back as what was advised: 18 bytes a packet beyond IP.
    sqm = """tc qdisc add dev wan root handle 1: stab mtu 2047 tsize 512 overhead 4 linklayer ethernet htb default 10
tc class add dev wan parent 1: classid 1:10 htb rate 9500kbit
tc qdisc add dev wan parent 1:10 handle 110: fq_codel limit 1001 target 5ms interval 100ms ecn
"""
    assert 'overhead = "18b"' in reading.read(sqm, "sqm", None, None, None).text


def test_no_interval_is_drawn_beyond_what_can_be() -> None:
    mos, pages, game, down, _ = applications.FIGURES
    for figure, value, width, drawn in (
        (pages, 0.8, 0.5, [[50.0], [20.0]]),
        (pages, 0.1, 0.25, [[10.0], [25.0]]),
        (mos, 1.5, 4.0, [[0.5], [3.0]]),
        (game, 0.4, 0.9, [[400.0], [600.0]]),
        (down, 5e6, 8e6, [[5.0], [8.0]]),
    ):
        found = drawing._drawn(figure, Interval(value, width, 6, "runs"), cells.SCALES[figure.unit][0])
        assert found is not None
        assert [end for side in found for end in side] == pytest.approx([end for side in drawn for end in side])
    assert drawing._drawn(mos, Interval(4.0, None, 1, "none"), 1.0) is None
    made = drawing.candidates(advised(SURE, {TODAY: 2.0, "cake": 4.0, "fq_codel": 4.0}))
    assert "cut where the measure cannot go further" in made.caption


def test_commands_of_the_page_are_broken_to_its_width_and_are_what_they_were(tmp_path: Path) -> None:
    scores = {TODAY: (0.9, 0.1, 0.8, 0.2, 0.9, 0.1), "cake": (0.5, 0.6, 0.5, 0.6, 0.5, 0.6)}
    found = advised(scores, {TODAY: 2.0, "cake": 4.0})
    page = report.write(found, COMMAND, tmp_path / "mine")
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    boxes = soup.find_all("pre")
    assert [box.get("class") for box in boxes] == [["commands"]] * 4
    assert "pre.commands { white-space: pre-wrap; }" in soup.style.text
    going_on, written, _, again = [box.text.rstrip("\n") for box in boxes]
    assert going_on == more.going_on(found, COMMAND)[1] and again == " ".join(COMMAND)
    assert written == lines.of(found.question, found.first).rstrip("\n")
    # What is set up is beside it.
    file = lines.file(found.question, found.first)
    assert file is not None and (page.parent / file[0]).read_text(encoding="utf-8") == file[1]
    assert file[0] in soup.text


def with_pages(found: Advice, pages: Mapping[str, Sequence[float | None]]) -> Advice:
    """The same, with these shares of pages in time, round by round."""
    for name, shares in pages.items():
        found.rows[name] = [{**row, "pages_in_2s": share} for row, share in zip(found.rows[name], shares, strict=True)]
    return found


SOME = {
    TODAY: (0.0, 0.0, 0.1, None, 0.0, 0.0, 0.0, 0.1),
    "cake": (0.8, 0.9, 0.7, 0.1, 1.0, 0.8, None, 0.9),
}
"""One asked under CAKE alone, one under today's queue alone; six under both."""

OF_SOME = {TODAY: (0.1,) * 8, "cake": (0.9, 0.8, 0.85, 0.82, 0.9, 0.88, 0.8, 0.84)}


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (0.0005, "the first is at most 0.001 below the best"),
        (0.0171, "the first is at most 0.018 below the best"),
        (0.0, "with 95 % it is the best"),
        (1.0, "nothing is sure yet"),
    ],
)
def test_a_small_shortfall_is_not_rounded_to_none(most: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Race, "shortfall", lambda race: most)
    assert words.leads(Race(["a", "b"], (8,))) == said


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("abc", "after 1 of 8 rounds 3 of 3 are left: c 0.30, b 0.20, a 0.10; "),
        ("abcd", "after 1 of 8 rounds 4 of 4 are left, the first 3: d 0.40, c 0.30, b 0.20; "),
    ],
)
def test_a_race_under_way_says_that_it_names_not_all_who_are_left(names: str, said: str) -> None:
    race = Race(list(names), (8,))
    for place, name in enumerate(names):
        race.add(name, 0.1 * (place + 1))
    assert words.so_far(race).startswith(said)


@pytest.mark.parametrize(("films", "last"), [((0.0, 0.0), 1.0), ((0.0, 90.0), 80.0)])
def test_no_axis_has_a_number_that_the_figure_cannot_be(films: tuple[float, float], last: float) -> None:
    found = advised(OF_SOME, {TODAY: 2.0, "cake": 4.0})
    found = replace(found, question=question.read("50mbit", "10mbit", platform="openwrt", what_for="video,calls"))
    for name, stalls in zip((TODAY, "cake"), films, strict=True):
        extra = {"film_startup_s": 1.0, "film_stalls_per_hour": stalls, "film_bitrate_bps": 2e6}
        found.rows[name] = [{**row, **extra} for row in found.rows[name]]
    drawn = drawing._panels(found, Sheet())
    panels = {panel.get_title(): panel for panel in drawn.axes}
    for one in found.figures:
        ticks = panels[cells.title(one)].get_xticks()
        ends = [end * cells.SCALES[one.unit][0] for end in one.possible]
        assert len(ticks) > 1 and ends[0] <= min(ticks) and max(ticks) <= ends[1], one.key
    stalls_at = panels["stalls of a film an hour"].get_xticks()
    assert stalls_at[0] == 0 and stalls_at[-1] == last
