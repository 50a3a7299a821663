"""The lines that `aqmlab advise` writes do on a router what was simulated, and no more than that."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from aqmlab.advice import candidates, lines, question
from aqmlab.advice.candidates import Candidate
from aqmlab.advice.question import Question

pytestmark = pytest.mark.usefixtures("compiled")


def asked(platform: str, down: str = "50mbit", up: str = "10mbit", access: str = "docsis") -> Question:
    return question.read(down, up, access=access, platform=platform)


def of(one: Question, name: str) -> Candidate:
    return next(each for each in candidates.of(one.platform, one.access.name, 0.06) if each.name == name)


def script(platform: str, name: str, **link: str) -> str:
    one = asked(platform, **link)
    made = lines.file(one, of(one, name))
    assert made is not None
    return made[1]


LOG = """#!/bin/sh
echo "${0##*/} $*" >> "$CALLS"
"""


def ran(
    folder: Path, text: str, *arguments: str, **commands: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What a script ends with, and the commands that it gave; each is a script of its own behind the log."""
    bin_, calls = folder / "bin", folder / "calls"
    bin_.mkdir(exist_ok=True)
    calls.write_text("", encoding="utf-8")
    for name, does in commands.items():
        (bin_ / name).write_text(LOG + does, encoding="utf-8")
        (bin_ / name).chmod(0o755)
    (folder / "router.sh").write_text(text, encoding="utf-8")
    environment = {"PATH": f"{bin_}:{os.environ['PATH']}", "CALLS": str(calls)}
    call = ["sh", str(folder / "router.sh"), *arguments]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=20)
    return done, calls.read_text(encoding="utf-8").splitlines()


# ---- FreeBSD ----


def deleted(calls: Sequence[str]) -> list[str]:
    return [call for call in calls if " delete " in f"{call} "]


OWN = re.compile(r"ipfw -q (set 7 delete [12]0|(queue|sched|pipe) delete 700[12])")
"""What is the script's own: FreeBSD's rc.firewall has rules 100 to 300 for loopback, in set 0."""


@pytest.mark.parametrize("name", candidates.PLATFORMS["freebsd"])
def test_on_freebsd_no_rule_is_touched_that_is_not_its_own(tmp_path: Path, name: str) -> None:
    text = script("freebsd", name)
    done, calls = ran(tmp_path, text, ipfw="", sysctl="echo 0")
    assert done.returncode == 0 and done.stderr == ""
    rules = [call for call in calls if call.startswith("ipfw add ")]
    assert [re.sub(r" (pipe|queue) .*", "", rule) for rule in rules] == ["ipfw add 10 set 7", "ipfw add 20 set 7"]
    assert [rule.split(" ip from any to any ")[1] for rule in rules] == ["in recv em0", "out xmit em0"]
    assert deleted(calls) and all(OWN.fullmatch(call) for call in deleted(calls))
    # What is taken away again: all that was set.
    done, undone = ran(tmp_path, text, "undo", ipfw="", sysctl="echo 0")
    assert done.returncode == 0 and undone == deleted(undone) == deleted(calls)
    assert {call.split()[-1] for call in undone} == {"10", "20", "7001", "7002"}


def test_on_freebsd_nothing_is_set_that_would_go_past_the_firewall(tmp_path: Path) -> None:
    text = script("freebsd", "fq_codel")
    done, calls = ran(tmp_path, text, ipfw="", sysctl="echo 1")
    assert done.returncode == 1 and not [call for call in calls if "add" in call or "config" in call]
    assert "past all rules behind" in done.stderr and "sysctl net.inet.ip.fw.one_pass=0" in done.stderr
    # Where ipfw is not there yet, it is to come up without denying everything.
    done, calls = ran(tmp_path, text, ipfw="exit 1", sysctl="exit 1")
    assert done.returncode == 1 and not [call for call in calls if "add" in call or "config" in call]
    assert "kenv net.inet.ip.fw.default_to_accept=1; kldload ipfw dummynet" in done.stderr
    assert done.stderr.endswith("router.sh: nothing is set\n")
    one = asked("freebsd")
    shown = lines.of(one, of(one, "fq_codel"))
    assert "one_pass=0" in shown and "default_to_accept=1" in shown


def test_on_freebsd_a_line_that_fails_leaves_nothing(tmp_path: Path) -> None:
    refuses = 'case "$*" in *"7002 config"*) exit 1;; esac'
    done, calls = ran(tmp_path, script("freebsd", "fq_codel"), ipfw=refuses, sysctl="echo 0")
    assert done.returncode == 1 and "nothing is set" in done.stderr
    last = max(at for at, call in enumerate(calls) if "config" in call)
    assert all(OWN.fullmatch(call) for call in calls[last + 1 :]) and "ipfw -q set 7 delete 20" in calls[last + 1 :]


def test_on_freebsd_a_long_queue_is_allowed_before_it_is_set() -> None:
    """ipfw takes 1 MiB at most as FreeBSD comes: 50 ms of 95 % of 176.6 Mb/s."""
    for down, is_long in (("170mbit", False), ("190mbit", True), ("1gbit", True)):
        one = asked("freebsd", down=down)
        rows = lines.of(one, of(one, "short fifo")).splitlines()
        (queue,) = [row for row in rows if "pipe 7001 config" in row]
        size = 1024 * int(re.findall(r"queue (\d+)KBytes", queue)[0])
        assert (size > 1 << 20) == is_long
        allowed = [row for row in rows if "pipe_byte_limit" in row]
        name = "net.inet.ip.dummynet.pipe_byte_limit"
        assert allowed == [f"# Unless sysctl -n {name} says more:", f"sysctl {name}={size}"] * is_long
        assert not is_long or rows.index(allowed[-1]) < rows.index(queue)


@pytest.mark.parametrize(
    ("name", "down", "limit", "wanted"),
    [("codel", "50mbit", "pipe_slot_limit", 1000), ("short fifo", "1gbit", "pipe_byte_limit", 5937152)],
)
def test_on_freebsd_a_limit_is_raised_and_never_lowered(
    tmp_path: Path, name: str, down: str, limit: str, wanted: int
) -> None:
    text = script("freebsd", name, down=down)
    for there, is_raised in ((wanted - 1, True), (wanted, False), (2 * wanted, False)):
        says = f'case "$*" in *{limit}) echo {there};; *) echo 0;; esac'
        done, calls = ran(tmp_path, text, ipfw="", sysctl=says)
        assert done.returncode == 0 and done.stderr == ""
        set_to = [call for call in calls if call.startswith("sysctl") and "=" in call]
        assert set_to == [f"sysctl net.inet.ip.dummynet.{limit}={wanted}"] * is_raised
    assert "it stays so" in text
    done, calls = ran(tmp_path, text, "undo", ipfw="", sysctl="")
    assert not [call for call in calls if call.startswith("sysctl")]


# ---- OpenWrt ----


@pytest.mark.parametrize("rate", ["256kbit", "950kbit", "1843kbit", "50mbit"])
def test_sqm_scripts_read_all_of_a_target(rate: str) -> None:
    """Their get_target takes the digits at the beginning and the letters at the end."""
    one = asked("openwrt", down=rate, up=rate)
    candidate = of(one, "fq_codel")
    text = lines.of(one, candidate)
    for way in ("i", "e"):
        (target,) = re.findall(rf"option {way}target '(.*)'", text)
        assert re.fullmatch(r"\d+(us|ms)", target)
        shaped = float(rate[:-4]) * (1e6 if "m" in rate else 1e3) * 0.95
        # One and a half full frames, 5 ms at least; four digits are said.
        wanted_us = max(5000, 1.5 * 1514 * 8 / shaped * 1e6)
        us = int(target[:-2]) * (1000 if target.endswith("ms") else 1)
        assert us == pytest.approx(wanted_us, rel=1e-3)
        # sqm-scripts have 1001 where nobody says otherwise; the simulated queue has the kernel's.
        assert f"option {way}limit '10240'" in text


def test_lines_for_a_mobile_network_say_what_a_port_without_a_header_counts() -> None:
    one = asked("openwrt", access="lte")
    text = lines.of(one, of(one, "fq_codel"))
    assert "option overhead '-14'" in text and "# Where wan is wwan0" in text and "overhead '0' then" in text
    assert "wwan0" not in lines.of(one, of(one, "cake")) and "option overhead '0'" in lines.of(one, of(one, "cake"))
    one = asked("linux", access="lte")
    assert "# Where wan is wwan0" in lines.of(one, of(one, "fq_codel"))
    for platform in ("openwrt", "linux"):
        one = asked(platform)
        assert "wwan0" not in lines.of(one, of(one, "fq_codel"))


# ---- Linux ----


def test_offloads_of_what_is_below_a_port_are_off_too(tmp_path: Path) -> None:
    """A bridge of a port and of a bond of two; a VLAN."""
    text = script("linux", "fq_codel").replace("/sys/class/net", str(tmp_path / "net"))
    below = {"lan": ["bond0", "eth1"], "bond0": ["eth2", "eth3"], "wan": ["eth0"], "eth0": []}
    for port, members in below.items():
        (tmp_path / "net" / port).mkdir(parents=True)
        for member in members:
            (tmp_path / "net" / port / f"lower_{member}").mkdir()
    done, calls = ran(tmp_path, text, tc="", ip="", ethtool="")
    assert done.returncode == 0
    offloads = [call for call in calls if call.startswith("ethtool")]
    ports = ("lan", "bond0", "eth2", "eth3", "eth1", "wan", "eth0")
    assert offloads == [f"ethtool -K {port} tso off gso off gro off" for port in ports]
    # A port that refuses is named in a line, and the others go on.
    done, calls = ran(tmp_path, text, tc="", ip="", ethtool="exit 1")
    assert done.returncode == 0 and done.stderr.count("offloads stay on") == 7 and len(calls) > 10
    one = asked("linux")
    assert "below a bridge, a bond or a VLAN" in lines.of(one, of(one, "fq_codel"))
    assert "bridge" not in lines.of(one, of(one, "cake"))


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="left out: ip, or root's rights")
def test_a_kernel_says_what_is_below_a_port() -> None:
    made = "mount -t sysfs sys /sys && ip link add name lan type bridge && "
    made += "ip link add name eth1 type veth peer name far && ip link set dev eth1 master lan || exit 77"
    call = ["unshare", "--net", "--mount", "sh", "-c", made + "; ls -d /sys/class/net/*/lower_*"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("left out: a bridge, or veth")
    assert done.stdout == "/sys/class/net/lan/lower_eth1\n"


def test_it_is_said_that_offloads_stay_off(tmp_path: Path) -> None:
    text = script("linux", "fq_codel")
    assert "Offloads of the ports stay off" in text.partition("set -eu")[0]
    done, calls = ran(tmp_path, text, "undo", tc="", ip="", ethtool="")
    assert done.stderr == "router.sh: offloads of the ports stay off\n"
    assert calls == [f"tc qdisc delete dev {port} root" for port in ("lan", "wan")]
    refuses = 'case "$*" in *fq_codel*) exit 1;; esac'
    done, _ = ran(tmp_path, text, tc=refuses, ip="", ethtool="")
    assert done.returncode == 1 and "nothing is set, but that offloads of the ports stay off" in done.stderr
    # CAKE needs none of it.
    done, _ = ran(tmp_path, script("linux", "cake"), tc='case "$*" in *cake*) exit 1;; esac', ip="", ethtool="")
    assert done.stderr.endswith("nothing is set\n") and "ffloads" not in script("linux", "cake")
