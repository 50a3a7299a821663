"""`aqmlab tc` in both directions, on dumps that a real kernel made of the lines it writes, and as a command."""

import json
import math
import re
import sys
import tomllib

import pytest

from aqmlab import cli, engine, scenario, toml_text
from aqmlab.tc import quantities as q
from aqmlab.tc.read import read
from aqmlab.tc.write import write
from conftest import ROOT
from tc_lines import BASE, DATA

sys.path.insert(0, str(DATA))
import record

pytestmark = pytest.mark.usefixtures("compiled")

CASES = tomllib.loads((DATA / "cases.toml").read_text())


def session(name):
    """What each command of a recorded session printed."""
    parts = re.split(rf"^{re.escape(record.PROMPT)}(.*)\n", (DATA / f"{name}.txt").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def dumps(name):
    """One recorded state in all of its forms, and whether a form shows the classes and all details."""
    shown = session(name)
    classes = "".join(f"# {port}\n" + shown[f"tc class show dev {port}"] for port in ("eth0", "eth1"))
    plain, detailed = shown["tc -s qdisc show"], shown["tc -s -d qdisc show"]
    whole = (DATA / f"{name}.txt").read_text()
    commands = whole.split(f"{record.PROMPT}tc -s qdisc show")[0]
    return {
        "session": whole,
        "text": detailed + classes,
        "brief": plain + classes,
        "json": (DATA / f"{name}.json").read_text() + classes,
        "brief json": shown["tc -s -j qdisc show"] + classes,
        "commands": commands,
        "with carriage returns": whole.replace("\n", "\r\n"),
    }


FORMS = list(dumps("pie"))


def resolved(name):
    return scenario.read(record.scenario_of(CASES[name])).resolve()


def in_bytes(value, packet):
    return f"{round(q.split(value)[0] * packet)}b" if isinstance(value, str) and value.endswith("p") else value


def expected(tree, form):
    """A queue's parameters as a dump of this form can show them."""
    values = dict(tree)
    if values["kind"] in ("red", "ared", "choke"):
        packet = q.size(values.pop("mean_packet"))
        if values["kind"] != "choke":
            values |= {key: in_bytes(values[key], packet) for key in ("limit", "min", "max", "gentle_end")}
        else:
            values["min"] = f"{round(q.split(values['min'])[0])}p"
        # tc has powers of 1/2 and takes the nearest.
        values["wq"] = 2.0 ** round(math.log2(values["wq"]))
        if form.startswith("brief"):
            values.pop("wq"), values.pop("probability")
        values.pop("target_delay", None)
    if values["kind"] == "sfq" and form.startswith("brief"):
        values.pop("flows")
    elif values["kind"] == "sfq" and form != "commands":
        # sch_sfq.c: no more flows than packets in a limit that is written, and so it is in aqmlab.
        values["flows"] = min(values["flows"], q.packets(values["limit"]))
    return values


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_shows_of_the_lines_is_the_scenario_again(name, form):
    wanted = resolved(name).scenario["link"]
    found = read(dumps(name)[form], "dump", None, None, None)
    link = engine.resolve(found.text, "dump").scenario["link"]
    assert q.same(link["rate"], wanted["rate"]) and q.same(link["reverse_rate"], wanted["reverse_rate"])
    shows_stab = not form.startswith("brief") or name == "cake-alone"
    if shows_stab:
        assert link["overhead"] == wanted["overhead"]
    for queue in ("qdisc", "reverse_qdisc"):
        values = expected(wanted[queue], form)
        if name in ("cake", "cake-under") and not shows_stab:
            values.pop("overhead")  # an Ethernet header more or less, without stab
        if (name.startswith("cake") and form == "brief") or (name.startswith("cake") and "text" in form):
            values.pop("limit")  # only in statistics
        for key, value in values.items():
            assert q.same(link[queue][key], value), (queue, key)
    assert found.tree["path"]["rtt"] == "40ms"


@pytest.mark.parametrize("name", CASES)
def test_recorded_lines_are_the_ones_written_now(name):
    ran = [line for line in session(name) if line.startswith(("tc qdisc add", "tc class add", "for "))]
    setup = write(resolved(name), "eth0", "eth1")
    assert [line for line in setup.lines if line.startswith(("tc qdisc add", "tc class add", "for "))] == ran


# ---- the verb ----


def answer(capsys, *arguments):
    code = cli.invoke([str(item) for item in arguments])
    return code, capsys.readouterr()


def test_the_verb_writes_and_reads_its_own_lines(capsys, tmp_path):
    (tmp_path / "a.toml").write_text(toml_text.dumps({**BASE, "link": {"rate": "5mbit", "qdisc": {"kind": "codel"}}}))
    code, said = answer(capsys, "tc", tmp_path / "a.toml", "--dev", "wan0", "--set", "link.qdisc.target=7ms")
    assert code == 0 and said.err == "" and "tc qdisc add dev wan0 parent 1:1 handle 10: codel limit 1000" in said.out
    (tmp_path / "lines.sh").write_text(said.out)
    code, said = answer(capsys, "tc", "--read", tmp_path / "lines.sh")
    assert code == 0 and said.err == "" and 'target = "7ms"' in said.out
    (tmp_path / "b.toml").write_text(said.out)
    code, said = answer(capsys, "run", tmp_path / "b.toml", "--set", "duration=2s", "--json", "-o", tmp_path / "out")
    assert code == 0 and json.loads(said.out)["forward"]["utilisation"] > 0
    code, said = answer(capsys, "tc", "--read", tmp_path / "lines.sh", "--json")
    assert json.loads(said.out)["scenario"]["link"]["qdisc"]["target"] == "7ms"
    code, said = answer(capsys, "tc", tmp_path / "a.toml", "--json")
    assert code == 0 and [section["title"].split(":")[0] for section in json.loads(said.out)["sections"]] == [
        "router", "forward", "reverse", "delay", "hosts"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments, named",
    [
        (["tc"], "expected either a scenario, or --read"),
        (["tc", "{a}", "--read", "{a}"], "expected either a scenario, or --read"),
        (["tc", "{a}", "--dev", "eth0; reboot"], "--dev 'eth0; reboot'"),
        (["tc", "{a}", "--dev", "eth1"], "--reverse-dev eth1"),
        (["tc", "{a}", "--set", "link.qdisc.kind=pi"], "nearest: pie"),
        (["tc", "{a}", "--variant", "x"], "no [[variant]] tables"),
        (["tc", "{demo}"], "expected --variant with one of 'uncongested link', 'drop-tail 240'"),
        (["tc", "--read", "{a}.no"], "no such file"),
        (["tc", "--read", "{a}", "--rate", "fast"], "--rate: 'fast'"),
        (["tc", "--read", "{a}", "--rate", "50"], "--rate: '50': expected a number with one of the units bit"),
        (["tc", "--read", "{a}", "--rate", "50mbps"], "tc reads mbps as megabytes a second: write mbit for bits"),
        (["tc", "--read", "{a}", "--rate", "-5mbit"], "--rate: '-5mbit'"),
        (["tc", "--read", "{a}"], "is a scenario; expected what"),
        (["tc", "{a}", "--only", "queue"], "--only queue: expected one of ports, qdisc, delay, hosts"),
        (["tc", "--read", "{a}", "--only", "qdisc"], "--only qdisc: expected no --only beside --read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, tmp_path, arguments, named):
    (tmp_path / "a.toml").write_text(toml_text.dumps(BASE))
    places = {"a": tmp_path / "a.toml", "demo": ROOT / "examples/demo.toml"}
    code, said = answer(capsys, *(argument.format(**places) for argument in arguments))
    assert code == 2 and said.out == "" and len(said.err.splitlines()) == 1 and named in said.err


def test_a_shaper_beyond_its_link_is_no_silent_line(capsys, tmp_path):
    link = {"rate": "50mbit", "reverse_rate": "10mbit", "qdisc": {"kind": "cake", "bandwidth": "48mbit"}}
    (tmp_path / "a.toml").write_text(toml_text.dumps({**BASE, "link": link}))
    code, said = answer(capsys, "tc", tmp_path / "a.toml")
    excess = "bandwidth 48mbit exceeds link.reverse_rate 10mbit in reverse, where it never shapes"
    assert code == 0 and f"#   - {excess}\ntc qdisc add dev eth1" in said.out and said.out.count("exceeds") == 1
    assert said.err == f"aqmlab: warning: {tmp_path / 'a.toml'}: link.reverse_qdisc.{excess}\n"


def test_a_part_of_the_lines_is_written_alone(capsys, tmp_path):
    (tmp_path / "a.toml").write_text(toml_text.dumps(BASE))
    whole, queues = (answer(capsys, "tc", tmp_path / "a.toml", *more)[1].out for more in ([], ["--only", "qdisc"]))
    lines = [line for line in queues.splitlines() if line and not line.startswith("#")]
    assert len(lines) == 6 and all(re.match(r"tc (qdisc|class) add dev eth[01] ", line) for line in lines)
    assert set(lines) < set(whole.splitlines())
    both = answer(capsys, "tc", tmp_path / "a.toml", "--only", "qdisc", "--only", "hosts")[1].out
    assert "sysctl" in both and "ethtool" not in both and "netem" not in both


def test_a_variant_is_written(capsys):
    code, said = answer(capsys, "tc", ROOT / "examples/demo.toml", "--variant", "drop-tail 240")
    assert code == 0 and "pfifo limit 240" in said.out and "htb rate 100mbit overhead 38" in said.out
