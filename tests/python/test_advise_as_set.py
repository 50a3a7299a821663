"""What is set on a link now: read from lines and dumps, and a candidate like the others."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aqmlab import units
from aqmlab.advice import advising, candidates, costs, lines, question, situation, words
from aqmlab.advice.candidates import TODAY
from aqmlab.cli import invoke
from aqmlab.errors import BadInput
from aqmlab.tc import dump, read
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("compiled")


CAKE_BOTH = """tc qdisc add dev ifb0 root cake bandwidth 45mbit besteffort overhead 18
tc qdisc add dev eth0 root cake bandwidth 9mbit besteffort overhead 18
"""


def have(tmp_path: Path, text: str) -> question.Configured:
    file = tmp_path / "have.txt"
    file.write_text(text, encoding="utf-8")
    found = question.read("50mbit", "10mbit", have=file).configured
    assert found is not None
    return found


def test_what_is_set_now_is_read_from_lines_and_dumps(tmp_path: Path) -> None:
    found = have(tmp_path, CAKE_BOTH)
    assert found.rates_bps == (45e6, 9e6) and found.said == "cake at 45 Mb/s down and cake at 9 Mb/s up"
    assert (found.link["rate"], found.link["reverse_rate"], found.link["overhead"]) == ("45mbit", "9mbit", "18b")
    # The faster of two is that towards the users, whichever comes first.
    turned = "\n".join(reversed(CAKE_BOTH.splitlines())) + "\n"
    assert have(tmp_path, turned).rates_bps == (45e6, 9e6)
    # One alone is that of the direction whose rate it is nearer to: the queue of the other is the modem's.
    alone = have(tmp_path, "tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 10kb limit 100kb\n")
    assert alone.rates_bps == (None, 9e6) and alone.link["rate"] == "500mbit"
    assert alone.link["reverse_qdisc"]["kind"] == "bfifo"
    shown = (ROOT / "testdata/tc/cake-alone.txt").read_text(encoding="utf-8")
    assert have(tmp_path, shown).down["kind"] == "cake"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms\n",
            "nothing in it shapes, so that the queue is the modem's, whatever stands on the router; expected a shaper",
        ),
        (
            "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n",
            "htb shapes on eth0 at a rate that its classes say; expected them too: for port in eth0; do echo",
        ),
        ("hello\n", "no qdisc in it, expected text of tc -s qdisc show"),
    ],
)
def test_a_dump_that_shapes_nothing_is_refused_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)) as refused:
        have(tmp_path, text)
    assert "have.txt" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("line", ["ethernet", "dsl", "atm"])
def test_the_script_that_advise_writes_is_what_is_set(tmp_path: Path, line: str) -> None:
    asked = question.read("1mbit", "256kbit", access=line, platform="linux")
    for one in candidates.of("linux", line, 0.08):
        made = lines.file(asked, one)
        if made is None:
            continue
        script = tmp_path / made[0]
        script.write_text(made[1], encoding="utf-8")
        found = question.read("1mbit", "256kbit", access=line, platform="linux", have=script).configured
        assert found is not None
        shaped = situation.router(asked, one, situation.margin(asked, one))
        rates = tuple(units.rate_bps(shaped[key], key) for key in ("rate", "reverse_rate"))
        assert found.rates_bps == rates and found.down["kind"] == shaped["qdisc"]["kind"], one.name
        assert found.link["overhead"] == f"{asked.access.overhead_bytes}b", one.name
        assert [note for note in found.notes if "'nat' of cake" not in note] == [], one.name


NAMESPACE = """
ip link add lan type veth peer name far-lan && ip link add wan type veth peer name far-wan || exit 77
for port in lan wan; do ip link set $port up; done
sh -e "$1"
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("tc"), reason="left out: tc, or root's rights")
def test_what_the_recipe_shows_of_a_kernel_is_what_the_script_set(tmp_path: Path) -> None:
    """In a network namespace of its own, of disciplines that every kernel has."""
    asked = question.read("1mbit", "256kbit", access="ethernet", platform="linux")
    short = next(one for one in candidates.of("linux", "ethernet", 0.08) if one.name == "short fifo")
    made = lines.file(asked, short)
    assert made is not None
    script = tmp_path / made[0]
    script.write_text(made[1], encoding="utf-8")
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", NAMESPACE + dump.recipe(), "sh", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if ran.returncode == 77:
        pytest.skip("left out: veth")
    assert ran.returncode == 0, ran.stderr
    now = question.read("1mbit", "256kbit", platform="linux", have=tmp_path / "now.txt").configured
    wanted = question.read("1mbit", "256kbit", platform="linux", have=script).configured
    assert now is not None and wanted is not None and now.notes == ()
    assert (now.link, now.rates_bps) == (wanted.link, wanted.rates_bps)


RED = "red limit 60kb min 15kb max 45kb avpkt 1000 burst 25 bandwidth 9mbit probability 0.1 ecn"


def test_an_average_that_stays_below_a_shaper_is_told(tmp_path: Path) -> None:
    shaper = "tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 10kb limit 100kb\n"
    assert have(tmp_path, shaper).stays == []
    lines_of_red = f"{shaper}tc qdisc add dev eth0 parent 1:1 handle 10: {RED}\n"
    remark = "red: below tbf its average stays until packets come, for no idle time begins; aqmlab's falls"
    assert remark in read.read(lines_of_red, "router.sh", None, None, None).text
    found = have(tmp_path, lines_of_red)
    assert (found.up["kind"], found.rates_bps[0], found.stays) == ("red", None, ["red"])
    # A port sends until its queue is empty, and then asks once more.
    file = tmp_path / "port.txt"
    file.write_text(f"tc qdisc add dev eth0 root {RED}\n", encoding="utf-8")
    port = question.read("1gbit", "1gbit", access="port", have=file).configured
    assert port is not None and port.down["kind"] == "red" and port.stays == []


def test_what_is_set_now_races_with_the_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "now.txt"
    # A shaper far too slow, and a queue of a second.
    file.write_text(
        "tc qdisc add dev ifb0 root handle 1: tbf rate 1mbit burst 10kb limit 125kb\n"
        "tc qdisc add dev eth0 root handle 1: tbf rate 500kbit burst 10kb limit 62kb\n",
        encoding="utf-8",
    )
    words_of = [
        "advise",
        "--down",
        "4mbit",
        "--up",
        "2mbit",
        "--on",
        "openwrt",
        "--users",
        "1",
        "--rounds",
        "6",
        "--json",
    ]
    assert invoke([*words_of, "--have", str(file), "--rate-error", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "as set now" in found["candidates"] and found["recommended"] != "as set now"
    assert found["link"]["configured"] == "bfifo at 1 Mb/s down and bfifo at 500 kb/s up"
    said = " ".join(found["verdict"])
    assert f"Set now, by {file}: bfifo at 1 Mb/s down" in said
    assert "It left the race after" in said or "a change may not be worth it" in said


def test_what_is_best_as_it_is_set_is_left(tmp_path: Path) -> None:
    file = tmp_path / "now.txt"
    file.write_text(CAKE_BOTH, encoding="utf-8")
    asked = question.read("50mbit", "10mbit", platform="openwrt", have=file)
    assert asked.configured is not None
    own = asked.configured.candidate()
    assert lines.of(asked, own) == "# Nothing to change: leave it as it is set.\n"
    race = advising.Race([TODAY, own.name], (4,))
    row = {"calls_mos": 4.0, "pages_in_2s": 0.5, "game_p99_s": 0.1, "down_bps": 4e7, "up_bps": 8e6}
    for _ in range(4):
        race.add(TODAY, 0.1)
        race.add(own.name, 0.9)
    race.judge()
    today = candidates.of("openwrt", "ethernet", 0.08)[0]
    found = advising.Advice(asked, [today, own], race, {name: [row] * 4 for name in (TODAY, own.name)})
    said = words.verdict(found)
    assert said[0] == "Recommended: as set now." and "It is the first itself: nothing is to be changed." in said
    assert costs.of(asked, own) is not None
