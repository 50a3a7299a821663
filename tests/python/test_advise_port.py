"""Advice for a link between two routers, whose ports have the queue themselves."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aqmlab.advice import candidates, lines, question, situation, words
from aqmlab.advice.candidates import TODAY, Candidate
from aqmlab.advice.question import Question
from aqmlab.cli import invoke
from aqmlab.errors import BadInput
from aqmlab.tc import read as reading

pytestmark = pytest.mark.usefixtures("compiled")


def asked(platform: str = "linux", down: str = "1gbit", up: str = "1gbit") -> Question:
    return question.read(down, up, access="port", platform=platform)


def field(platform: str) -> list[Candidate]:
    return candidates.of(platform, "port", 0.08)[1:]


@pytest.mark.parametrize("platform", candidates.PORTS)
def test_the_queue_is_that_of_the_only_link(platform: str) -> None:
    port = asked(platform, "100mbit", "50mbit")
    drawn = situation.draw(port, 2)
    today, *others = (situation.scenario(port, drawn, one).scenario for one in candidates.of(platform, "port", 0.08))
    (name, line), *more = today["links"].items()
    assert name == "port" and not more and line["qdisc"]["kind"] == "bfifo"
    # 10 to 100 ms of 100 Mb/s, and as much of 50 Mb/s by a draw of its own.
    assert 125_000 <= int(line["qdisc"]["limit"].removesuffix("b")) <= 1_250_000
    for tree in others:
        here = tree["links"]["port"]
        assert list(tree["links"]) == ["port"]
        assert (here["rate"], here["reverse_rate"], here["overhead"]) == ("100mbit", "50mbit", "38b")
        assert (here["qdisc"], here["reverse_qdisc"]) != (line["qdisc"], line["reverse_qdisc"])
        assert here["qdisc"].get("bandwidth") is None
        assert tree["traffic"] == today["traffic"]


def test_many_are_behind_a_port() -> None:
    fits = question.most_users(1e9)
    assert asked().mix.users == (fits // 2, fits) and asked().mix.downloads == (4, 16)
    assert question.read("1gbit", "1gbit", users=20, access="port").mix.users == (20, 20)


def test_thresholds_are_times_of_each_rate_and_a_few_frames_at_least() -> None:
    named = {one.name: one for one in field("hardware")}
    wide = named["wred 10 to 50 ms at 2 %"].qdisc
    fast, slow = (wide(situation.way(asked("hardware"), bps)) for bps in (1e9, 1e6))
    assert (fast["min"], fast["max"], fast["limit"]) == ("1250000b", "6250000b", "12500000b")
    assert (slow["min"], slow["max"]) == (f"{4 * 1514}b", f"{12 * 1514}b")
    assert fast["probability"] == 0.02 and named["wred 5 to 15 ms at 10 %"].qdisc(
        situation.way(asked("hardware"), 1e9)
    )["probability"] == pytest.approx(0.1)


def test_laws_have_room_at_fast_ports() -> None:
    named = {one.name: one for one in field("linux")}
    for name, slow, fast in (
        ("codel", "1000p", "82563p"),
        ("fq_codel", "10240p", "82563p"),
        ("pie", "1000p", "82563p"),
    ):
        assert [named[name].qdisc(situation.way(asked(), bps))["limit"] for bps in (1e7, 1e10)] == [slow, fast]


def test_lines_of_hardware_are_in_bytes_and_in_time() -> None:
    (one,) = [one for one in field("hardware") if one.name.startswith("wred 5")]
    text = lines.of(asked("hardware", "1gbit", "100mbit"), one)
    down, up = text.split("# up")
    assert "minimum threshold 625000 bytes (5 ms)\nmaximum threshold 1875000 bytes (15 ms)\n" in down
    assert "maximum 1/10\nexponential weighting constant 9\nexplicit congestion notification on\n" in down
    assert "queue limit 12500000 bytes (100 ms)\n" in down and "minimum threshold 62500 bytes (5 ms)" in up
    assert lines.file(asked("hardware"), one) == ("port.txt", lines.of(asked("hardware"), one))


def test_lines_of_linux_are_read_back_as_what_was_advised() -> None:
    port = asked(down="400mbit", up="40mbit")
    for one in field("linux"):
        made = situation.scenario(port, situation.draw(port, 0), one).scenario["links"]["port"]
        rows = re.findall(r"^tc qdisc replace dev PORT root (.*)$", lines.of(port, one), re.MULTILINE)
        assert rows, one.name
        for row, way in zip(rows, (("rate", "qdisc"), ("reverse_rate", "reverse_qdisc")), strict=False):
            rate, queue = (made[key] for key in way)
            found = reading.read(f"tc qdisc add dev eth0 root {row}\n", "lines", None, None, rate).tree["link"]["qdisc"]
            assert found["kind"] == queue["kind"]
            # Without a bandwidth cake's overhead does nothing.
            for name in found.keys() & queue.keys() - {"overhead"}:
                if str(queue[name]).endswith("b") and name != "quantum":
                    # tc has whole bytes, or KiB.
                    assert _bytes(found[name]) == pytest.approx(_bytes(queue[name]), rel=0.002), (one.name, name)
                else:
                    assert found[name] == queue[name], (one.name, name)


def _bytes(size: str) -> int:
    return int(size.removesuffix("b"))


def test_two_equal_directions_have_one_line() -> None:
    (one,) = [one for one in field("linux") if one.name == "fq_codel"]
    assert lines.of(asked(), one).count("tc qdisc replace") == 1
    assert lines.of(asked(), field("linux")[-1]).count("tc qdisc replace") == 1
    differing = lines.of(asked(up="100mbit"), field("linux")[-1])
    assert differing.count("tc qdisc replace") == 2 and "the router that sends towards the users" in differing


TWICE = """
ip tuntap add eth0 mode tap || exit 77
ip link set eth0 up
for way in down up; do WAY=$way sh -e "$1" && WAY=$way sh -e "$1" || exit 1; tc qdisc show dev eth0; done
sh -e "$1" undo
echo then; tc qdisc show dev eth0
WAY=left sh "$1"; echo $?
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("tc"), reason="left out: tc, or root's rights")
def test_the_script_of_a_port_may_be_run_again(tmp_path: Path) -> None:
    """In a network namespace of its own, of a discipline that every kernel has."""
    (one,) = [one for one in field("linux") if one.name == "fifo of 10 ms"]
    made = lines.file(asked(up="100mbit"), one)
    assert made is not None and made[0] == "router.sh"
    script = tmp_path / made[0]
    script.write_text(made[1], encoding="utf-8")
    words_of = ["unshare", "--net", "sh", "-c", TWICE, "sh", str(script)]
    ran = subprocess.run(words_of, capture_output=True, text=True, timeout=60)
    if ran.returncode == 77:
        pytest.skip("left out: TUN devices")
    now, _, then = ran.stdout.partition("then")
    assert "bfifo" in now and "limit 1250000b" in now and "limit 125000b" in now, ran.stderr
    assert "bfifo" not in then and then.rstrip().endswith("2")
    assert "WAY=left: expected down or up" in ran.stderr


def test_what_is_set_at_a_port_is_a_candidate(tmp_path: Path) -> None:
    file = tmp_path / "have.txt"
    shown = "qdisc fq_codel 8001: dev eth0 root refcnt 2 limit 10240p flows 512 quantum 1514 target 5ms interval 100ms"
    file.write_text(f"{shown} ecn\n", encoding="utf-8")
    found = question.read("100mbit", "50mbit", access="port", have=file)
    assert found.configured is not None
    assert found.configured.said == "fq_codel at 100 Mb/s down and fq_codel at 50 Mb/s up"
    one = found.configured.candidate()
    made = situation.scenario(found, situation.draw(found, 0), one).scenario["links"]
    assert list(made) == ["port"] and made["port"]["qdisc"]["flows"] == made["port"]["reverse_qdisc"]["flows"] == 512
    assert made["port"]["rate"] == "100mbit" and made["port"]["overhead"] == "38b"
    assert lines.of(found, one).startswith("# Nothing to change")
    file.write_text("tc qdisc add dev eth0 root cake bandwidth 90mbit\n", encoding="utf-8")
    with pytest.raises(BadInput, match="a shaper is in it, so that the queue is not that of the port itself"):
        question.read("100mbit", "50mbit", access="port", have=file)


def test_a_port_is_advised(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words_of = ["advise", "--down", "4mbit", "--up", "4mbit", "--access", "port", "--on", "hardware", "--rounds", "2"]
    assert invoke([*words_of, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["candidates"]) and set(found["candidates"]) == {TODAY, *(one.name for one in field("hardware"))}
    assert found["too_fast"] is None and found["costs"] == {}
    assert found["link"]["access"] == "port" and "not known of ports" in found["not_known"][0]
    assert invoke([*words_of, "-o", str(tmp_path / "advice")]) == 0
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "between two routers' ports" in shown and "shaped to" not in shown
    page = (tmp_path / "advice" / "report.html").read_text(encoding="utf-8")
    assert "drop-tail in both its ports" in page and "modem" not in page


def test_what_shows_a_port_is_read_at_its_rate() -> None:
    (one,) = [one for one in field("linux") if one.name == "fq_codel"]
    said = words.checks(asked(), lines.of(asked(), one))
    assert "for port in PORT; do" in said[1] and "tc --read now.txt --rate 1gbit " in said[2]
