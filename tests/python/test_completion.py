"""What a shell is offered for a word, asked as shells ask."""

import subprocess
import sys

import pytest

from conftest import ROOT


def offered(words, place=ROOT):
    """The last of the words is the one to be completed."""
    made = subprocess.run(
        [sys.executable, "-m", "aqmlab"],
        cwd=place,
        env={
            "PYTHONPATH": str(ROOT / "python"),
            "PATH": "",
            "_AQMLAB_COMPLETE": "complete_bash",
            "COMP_WORDS": f"aqmlab {words}",
            "COMP_CWORD": str(1 + words.count(" ")),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stderr == ""
    return made.stdout.split()


@pytest.mark.parametrize(
    ("words", "there", "absent"),
    [
        ("calib", ["calibrate"], []),
        ("explain fq_c", ["fq_codel", "fq_cobalt"], ["codel"]),
        ("explain free", ["freebsd4"], ["pi"]),
        ("explain pra", ["prague", "prague-linux"], ["pi"]),
        ("explain util", ["utilisation"], ["loss_ratio"]),
        ("list me", ["measures"], ["stacks"]),
        ("list st", ["stacks", "studies"], ["traffic"]),
        ("study le200", ["le2003", "le2004", "le2007"], ["all"]),
        ("new home", ["home-cable"], ["web"]),
        ("compare examples/home", ["examples/home-cable.toml"], ["examples/web.toml"]),
        ("compare examples/home-cable.toml fq_co", ["fq_codel"], ["codel"]),
        ("run examples/web-pi.toml --set link.q", ["link.qdisc.kind=", "link.qdisc.qref="], ["duration="]),
        ("run examples/web-pi.toml --set traffic.0.l", ["traffic.0.load="], []),
        ("sweep examples/sweep.toml --set tcp", ["tcp.stack="], []),
        ("advise --access d", ["docsis", "dsl"], ["lte"]),
        ("advise --on op", ["openwrt"], ["linux"]),
        ("run nowhere.toml --set li", [], ["link.rate="]),
    ],
)
def test_words_are_completed(words, there, absent):
    found = offered(words)
    assert set(there) <= set(found) and not set(absent) & set(found)
