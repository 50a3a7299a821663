"""Advice for a link between two routers, whose ports have the queue themselves."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aqmlab.advice import candidates, costs, lines, question, situation, words
from aqmlab.advice.candidates import TODAY, Candidate
from aqmlab.advice.question import Question
from aqmlab.cli import invoke
from aqmlab.errors import BadInput
from aqmlab.tc import red

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
    some = question.read("1gbit", "1gbit", users=20, access="port").mix
    assert some.users == (20, 20) and some.downloads == (4, 16)
    assert question.read("10gbit", "10gbit", access="port").mix.users[1] > 1000


def test_thresholds_are_times_of_each_rate_and_a_few_frames_at_least() -> None:
    named = {one.name: one for one in field("hardware")}
    wide = named["wred 10 to 50 ms at 2 %"].qdisc
    fast, slow = (wide(situation.way(asked("hardware"), bps)) for bps in (1e9, 1e6))
    assert (fast["min"], fast["max"], fast["limit"], fast["wq"]) == ("1250000b", "6250000b", "12500000b", 1 / 512)
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


@pytest.mark.parametrize(
    ("bps", "name", "wq", "probability"),
    [
        # include/net/red.h: fls(max) + Wlog is at most 31; and 2**32 / 50 / 50 MB is 1.7, of which 1 is left.
        (4e8, "red 5 to 15 ms at 10 %", 2**-9, 858 * 500_000 / 2**32),
        (1e9, "red 10 to 50 ms at 2 %", 2**-8, 17 * 5_000_000 / 2**32),
        (1e10, "red 5 to 15 ms at 10 %", 2**-6, 34 * 12_500_000 / 2**32),
        (1e10, "red 10 to 50 ms at 2 %", 2**-5, 1 * 50_000_000 / 2**32),
    ],
)
def test_red_on_linux_is_what_32_bits_have_room_for(bps: float, name: str, wq: float, probability: float) -> None:
    (one,) = [one for one in field("linux") if one.name == name]
    found = one.qdisc(situation.way(asked(), bps))
    assert found["wq"] == wq and found["probability"] == pytest.approx(probability, rel=1e-3)
    # The kernel has as many whole parts of what the line says.
    between = _bytes(found["max"]) - _bytes(found["min"])
    assert int(found["probability"] * 2**32) // between == round(probability * 2**32 / between)


@pytest.mark.parametrize("rates", [("400mbit", "40mbit"), ("1gbit", "1gbit"), ("10gbit", "10gbit")])
def test_lines_of_linux_are_read_back_as_what_was_advised(tmp_path: Path, rates: tuple[str, str]) -> None:
    port = asked("linux", *rates)
    for one in field("linux"):
        made = situation.scenario(port, situation.draw(port, 0), one).scenario["links"]["port"]
        file = tmp_path / "have.txt"
        for text in (lines.of(port, one), lines.file(port, one)[1]):  # type: ignore[index]
            file.write_text(text, encoding="utf-8")
            found = question.read(*rates, access="port", have=file).configured
            assert found is not None and not [note for note in found.notes if "memory" not in note], one.name
            assert "further queue" not in " ".join(found.notes)
            for read, key in ((found.down, "qdisc"), (found.up, "reverse_qdisc")):
                queue = made[key]
                assert read["kind"] == queue["kind"]
                # Without a bandwidth cake's overhead does nothing.
                for name in read.keys() & queue.keys() - {"overhead"}:
                    if name == "limit" and one.name == "cake":
                        assert _bytes(read[name]) == 2304 * int(queue[name].removesuffix("p"))
                    elif name == "probability":
                        # The smallest that tc takes grows with the band.
                        least = red.least_probability(_bytes(queue["max"]) - _bytes(queue["min"]))
                        assert read[name] == max(queue[name], least), one.name
                    elif str(queue[name]).endswith("b") and name != "quantum":
                        # tc has whole bytes, or KiB.
                        assert _bytes(read[name]) == pytest.approx(_bytes(queue[name]), rel=0.002), (one.name, name)
                    else:
                        assert read[name] == queue[name], (one.name, name)


def _bytes(size: str) -> int:
    return int(size.removesuffix("b"))


def test_a_fast_fq_codel_has_the_memory_that_its_limit_takes() -> None:
    (one,) = [one for one in field("linux") if one.name == "fq_codel"]
    assert "memory_limit" not in lines.of(asked(), one)
    assert f"memory_limit {82563 * 2304}" in lines.of(asked("linux", "10gbit", "10gbit"), one)


TWICE = """
ip tuntap add eth0 mode tap && ip tuntap add eth1 mode tap || exit 77
ip link set eth0 up; ip link set eth1 up
export DOWN=eth0 UP=eth1
sh -e "$1" && sh -e "$1" || exit 1; for port in eth0 eth1; do tc qdisc show dev $port; done
sh -e "$1" undo
echo then; tc qdisc show dev eth0; tc qdisc show dev eth1
unset DOWN UP; sh "$1"; echo $?
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
    assert re.findall(r"bfifo .*limit (\w+)", now) == ["1250000b", "125000b"], ran.stderr
    assert "bfifo" not in then and then.rstrip().endswith("2")
    assert "expected DOWN=eth1 or UP=eth1: a port" in ran.stderr


SHOWN = "qdisc {} 8001: {} root refcnt 2 limit 10240p flows 512 quantum 1514 target 5ms interval 100ms ecn\n"


def port_of(tmp_path: Path, text: str) -> Question:
    file = tmp_path / "have.txt"
    file.write_text(text, encoding="utf-8")
    return question.read("100mbit", "50mbit", access="port", have=file)


def test_what_is_set_at_a_port_is_a_candidate(tmp_path: Path) -> None:
    found = port_of(tmp_path, SHOWN.format("fq_codel", "dev eth0"))
    assert found.configured is not None
    assert found.configured.said == "fq_codel at 100 Mb/s down and fq_codel at 50 Mb/s up"
    one = found.configured.candidate()
    made = situation.scenario(found, situation.draw(found, 0), one).scenario["links"]
    assert list(made) == ["port"] and made["port"]["qdisc"]["flows"] == made["port"]["reverse_qdisc"]["flows"] == 512
    assert made["port"]["rate"] == "100mbit" and made["port"]["overhead"] == "38b"
    assert lines.of(found, one).startswith("# Nothing to change")
    # One file of two routers, each with its own.
    two = f"# up\nqdisc bfifo 8002: root refcnt 2 limit 62500b\n# down\n{SHOWN.format('fq_codel', '')}"
    both = port_of(tmp_path, two).configured
    assert both is not None and (both.down["kind"], both.up["kind"]) == ("fq_codel", "bfifo")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tc qdisc add dev eth0 root cake bandwidth 90mbit\n", "something shapes there, so that"),
        ("qdisc netem 1: dev eth0 root refcnt 2 limit 1000 delay 10ms\n", "netem delays on eth0 what comes by"),
        ("qdisc noqueue 0: dev eth0.100 root refcnt 2\n", "no queue stands there, as at a VLAN, a bond or a bridge"),
        (
            SHOWN.format("fq_codel", "dev eth0") + SHOWN.format("fq_codel", "dev eth1"),
            "has 2 ports: eth0, eth1; expected the one of this link, which both directions then have, or two that",
        ),
    ],
)
def test_what_is_no_queue_of_this_port_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        port_of(tmp_path, text)


def test_a_slow_port_is_refused() -> None:
    with pytest.raises(BadInput, match="--up 20mbit: expected 25mbit to 10gbit"):
        asked(up="20mbit")


def test_a_router_has_the_packets_of_its_own_port() -> None:
    (one,) = [one for one in field("linux") if one.name == "fq_codel"]
    cost = costs.of(asked(up="500mbit"), one)
    assert cost is not None and cost.packets_per_s[0] == pytest.approx(1e9 / 8 / 1538)


def test_a_port_is_advised(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words_of = ["advise", "--down", "25mbit", "--up", "25mbit", "--access", "port", "--on", "hardware", "--rounds", "2"]
    assert invoke([*words_of, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["candidates"]) and set(found["candidates"]) == {TODAY, *(one.name for one in field("hardware"))}
    assert found["too_fast"] is None and found["rate_error"] == 0 and found["costs"] == {}
    assert found["link"]["access"] == "port" and "not known of ports" in found["not_known"][0]
    assert invoke([*words_of, "-o", str(tmp_path / "advice")]) == 0
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "between two routers' ports" in shown and "shaped to" not in shown
    page = (tmp_path / "advice" / "report.html").read_text(encoding="utf-8")
    assert "drop-tail in both its ports" in page and "modem" not in page


def test_a_port_in_use_is_looked_at_and_not_flooded() -> None:
    (one,) = [one for one in field("linux") if one.name == "fq_codel"]
    said = words.checks(asked(up="500mbit"), lines.of(asked(up="500mbit"), one))
    assert not [line for line in said if "flent" in line]
    assert said[1].startswith("tc -s -d qdisc show dev DOWN") and "--rate 1gbit " in said[2]
    assert said[3].startswith("tc -s -d qdisc show dev UP") and "--rate 500mbit " in said[4]
    assert len(words.checks(asked("hardware"), "# In the scheduler")) == 2
