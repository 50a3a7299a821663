"""What holds long flows back other than the link: reckoned beforehand, seen in a run, said wherever it is shown."""

import json
import tomllib

import pytest
from typer.testing import CliRunner

import aqmlab
from aqmlab import cli, engine, report
from aqmlab.results import held_back
from aqmlab.results.findings import findings_of
from conftest import NATIVE

LINK = '[link]\nrate = "10mbit"\n[path]\nrtt = "80ms"\n'
BULK = '[[traffic]]\nkind = "bulk"\n'
OF_2002 = '[tcp]\nstack = "freebsd4"\n'


@pytest.fixture(autouse=True)
def real(monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def foreseen(text):
    return held_back.foreseen(engine.resolve(text, "x.toml").scenario)


def test_a_window_over_a_round_trip_is_reckoned():
    # 16 kB and 40 bytes of headers a segment of 1460: 16384 * 1500 / 1460 * 8 / 80 ms.
    assert foreseen(OF_2002 + LINK + BULK) == [
        "bulk: a window of 16 kB over 80 ms allows its flow at most 1.7 Mb/s: 17 % of the link"
    ]
    # Seven of them fill it.
    assert foreseen(OF_2002 + LINK + BULK + "flows = 7\n") == []
    # 10 to 150 ms: the mean of 1 / RTT is ln(15) / 140 ms, 19.3 a second.
    assert foreseen(OF_2002 + LINK.replace('"80ms"', '{ uniform = ["10ms", "150ms"] }') + BULK + "flows = 2\n") == [
        "bulk: windows of 16 kB over 10 ms to 150 ms allow its 2 flows at most 2.6 Mb/s each: 52 % of the link"
    ]
    # Hosts of today open theirs as far as it takes, as far as they go: 3.75 MB over 80 ms are 410 Mb/s.
    assert foreseen(LINK + BULK) == []
    fast = LINK.replace("10mbit", "1gbit").replace("[path]", '[path]\naccess_rate = "10gbit"')
    assert foreseen(fast + BULK)[0].startswith("bulk: a window of 3.75 MB over 80 ms allows its flow at most 410 Mb/s")


def test_framing_is_no_room_for_windows():
    # 350 kB over 400 ms are 7.4 Mb/s of 8, which whole cells of 53 bytes, 32 for a packet of 1500, leave 7.07 of.
    link = LINK.replace('"10mbit"', '"8mbit"\noverhead = "10b"').replace('"80ms"', '"400ms"')
    wide = OF_2002.replace("16kb", "350kb") if "16kb" in OF_2002 else OF_2002 + 'window = "350kb"\n'
    assert len(foreseen(wide + link + BULK)) == 1
    assert foreseen(wide + link.replace("10b", '10b"\nframing = "atm') + BULK) == []


def test_what_else_is_asked_for_is_left_out_of_the_link():
    # 9 of 10 Mb/s are other people's: 1.7 Mb/s are more than what is left.
    udp = '[[traffic]]\nkind = "cbr"\nrate = "9mbit"\n'
    assert foreseen(OF_2002 + LINK + udp + BULK) == []
    assert len(foreseen(OF_2002 + LINK + udp.replace("9mbit", "1mbit") + BULK)) == 1
    # In the other direction they take nothing of it; and what users ask for is not known.
    assert len(foreseen(OF_2002 + LINK + udp + 'direction = "reverse"\n' + BULK)) == 1
    assert foreseen(OF_2002 + LINK + '[[traffic]]\nkind = "web"\nusers = 1\n' + BULK) == []


def test_access_links_are_reckoned():
    text = LINK.replace("[path]", '[path]\naccess_rate = "2mbit"') + BULK + "flows = 2\n"
    assert foreseen(text) == ["bulk: access links of 2 Mb/s allow its 2 flows at most 2 Mb/s each: 40 % of the link"]


@pytest.fixture(scope="module")
def starving(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starving")
    file = folder / "x.toml"
    file.write_text('duration = "20s"\nwarmup = "5s"\n' + LINK + OF_2002 + BULK)
    answer = CliRunner().invoke(cli.app, ["run", str(file), "-o", str(folder / "r")])
    assert answer.exit_code == 0, answer.output
    return folder / "r", answer.output


def test_a_run_says_what_held_its_flows_back(starving, undrawn):
    folder, output = starving
    said = (
        "bulk: a window of 16 kB, not the link, limits its flow for 100 % of the time: 1.4 Mb/s over 80 ms, 14 % of it"
    )
    assert json.loads((folder / "manifest.json").read_text())["findings"] == [said]
    # Before it what can be reckoned, after it what was seen.
    before, after = output.index("at most 1.7 Mb/s: 17 % of the link"), output.index(said)
    assert before < output.index("utilisation") < after
    page = report.write(aqmlab.load(folder)).read_text()
    assert f"{said}." in page.replace("\xa0", " ")


def test_a_finding_is_no_failure_and_is_not_in_the_digest(starving, monkeypatch):
    folder, _ = starving
    found = aqmlab.load(folder)
    assert all(check["holds"] for check in found.manifest["self_checks"])
    again = aqmlab.run(folder / "scenario.toml", reps=2)
    assert again.runs[0].digest == found.runs[0].digest
    assert again.manifest["findings"][0].startswith("bulk: a window of 16 kB, not the link, limits")


def test_a_comparison_says_it_once(starving, tmp_path):
    folder, _ = starving
    found = aqmlab.compare(folder / "scenario.toml", "pfifo limit 60p", "codel", "uncongested", out=tmp_path / "c")
    lines = findings_of([(column.name, column.result) for column in found.congested])
    # All of them say the same, so that none is named.
    assert len(lines) == 1 and lines[0].startswith("bulk: a window of 16 kB")


def test_windows_that_fill_a_link_are_told_from_those_that_do_not():
    # Ten windows of 16 kB over 80 ms and a queue for all of them: nothing is lost.
    text = 'duration = "20s"\nwarmup = "5s"\n' + LINK + OF_2002 + BULK + 'flows = 10\nstart = "0s"\n'
    found = aqmlab.run(tomllib.loads(text), set={"link.qdisc": {"kind": "pfifo", "limit": "200p"}})
    (line,) = found.manifest["findings"]
    assert line.startswith("bulk: windows of 16 kB limit its 10 flows for 100 % of the time, and fill the link")
    assert found.summary["forward"]["dropped_packets"] == 0


def test_who_is_held_back_by_the_link_is_not_spoken_of():
    text = 'duration = "20s"\nwarmup = "5s"\n' + LINK + BULK + "flows = 2\n"
    found = aqmlab.run(tomllib.loads(text))
    assert found.manifest["findings"] == [] and found.summary["forward"]["utilisation"] > 0.8
    assert found.scenario["tcp"]["stack"] == "linux"
