"""Load times of pages, simulated and in a real browser over an emulated link."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import browser
from aqmlab import api
from conftest import ROOT

pytestmark = pytest.mark.alone

SCENARIO = """
name = "page"
duration = "60s"
warmup = "0s"
[link]
rate = "{rate}"
qdisc = {{ kind = "pfifo", limit = "200p" }}
[path]
rtt = "{rtt}"
[tcp]
stack = "linux"
[[traffic]]
kind = "web"
model = "archive2024"
users = 1
direction = "forward"
protocol = "h1"
tls = false
servers = 1
waves = 1
objects = {all_objects}
document = "{document}b"
size = "{size}b"
think = "1s"
"""

LOADS = 9


@pytest.fixture(autouse=True)
def able(real_hosts: None) -> None:
    if browser.CHROMIUM is None:
        pytest.skip("left out: no chromium to load pages with")
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        pytest.skip("left out: nsenter, or root's rights to enter the other side")


@pytest.mark.parametrize(
    ("rate", "rtt", "objects", "document", "size"),
    [
        ("8mbit", "60ms", 30, 20_000, 20_000),
        ("3mbit", "100ms", 12, 20_000, 50_000),
    ],
)
def test_a_page_takes_as_long_as_in_a_browser(
    tmp_path: Path, rate: str, rtt: str, objects: int, document: int, size: int
) -> None:
    """Within 10 % in the median, where the link takes longer than the browser itself."""
    file = tmp_path / "page.toml"
    text = SCENARIO.format(rate=rate, rtt=rtt, all_objects=objects + 1, document=document, size=size)
    file.write_text(text, encoding="utf-8")
    program = [sys.executable, str(ROOT / "tests/python/page_in_browser.py"), str(browser.CHROMIUM), str(LOADS)]
    command = [sys.executable, "-m", "aqmlab", "live", str(file), "-o", str(tmp_path / "live"), "--no-traffic"]
    page = [str(objects), str(document), str(size)]
    ran = subprocess.run(
        [*command, "--side", "right", "--", *program, *page], capture_output=True, text=True, timeout=180
    )
    log = tmp_path / "live/command.log"
    assert log.exists(), ran.stderr
    (line,) = [row for row in log.read_text(encoding="utf-8").splitlines() if row.startswith("TIMES ")]
    loaded = json.loads(line.removeprefix("TIMES "))
    assert len(loaded) == LOADS and all(one["objects"] == objects for one in loaded)
    real = float(np.median([one["took_ms"] for one in loaded])) / 1e3

    pages = api.run(file, out=tmp_path / "simulated").runs[0].pages
    simulated = float(np.median(pages["load_s"].drop_nulls().to_numpy()))
    print(f"{rate} {rtt}: {real * 1e3:.0f} ms in the browser, {simulated * 1e3:.0f} ms simulated")
    assert simulated == pytest.approx(real, rel=0.1)
