"""A network as lines for Linux: which places there are, whose ways lead where, and that a kernel takes them."""

import os
import re
import shutil
import subprocess

import pytest

from aqmlab import cli, engine
from aqmlab.errors import BadInput
from aqmlab.tc import network
from aqmlab.tc.lines import Line
from conftest import NATIVE, ROOT


@pytest.fixture(autouse=True)
def real(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


CHAIN = """
[links.one]
rate = "8mbit"
delay = "3ms"
qdisc = { kind = "codel" }
[links.two]
rate = "4mbit"
reverse_rate = "1mbit"
reverse_delay = "1ms"
qdisc = { kind = "pie" }
[[traffic]]
kind = "bulk"
route = ["one", "two"]
[[traffic]]
kind = "bulk"
cc = "reno"
rtt = "10ms"
rtt_at = "left"
route = ["two"]
[path]
rtt = "20ms"
loss = 0.001
reverse_loss = 0.0
"""


def setup(text=CHAIN):
    return network.write(engine.resolve(text, "net.toml"))


def lines(part, text=CHAIN):
    return setup(text).only([part]).lines


def test_a_port_is_called_as_its_link_where_that_is_no_option():
    names = ("-n", "link0"), ("_up", "_up"), ("2nd", "2nd"), ("dsl-1", "dsl-1"), ("left-x", "link0"), ("type", "type")
    for name, port in names:
        text = CHAIN.replace("links.one", f'links."{name}"').replace('"one"', f'"{name}"')
        wires = [line for line in lines("ports", text) if line.startswith(f"ip link add name {port} ")]
        assert len(wires) == 1 and f" peer name {port} " in wires[0], name


def test_links_that_follow_each_other_meet_in_one_place():
    wires = [line for line in lines("ports") if line.startswith("ip link add") and " name net netns " not in line]
    assert [line for line in wires if " two " in line or " one " in line] == [
        "ip link add name one netns place-0 type veth peer name one netns place-1",
        "ip link add name two netns place-1 type veth peer name two netns place-2",
    ]
    hosts = {line.split()[-3]: line.split()[-1] for line in lines("ports") if line.startswith("ip link add name net ")}
    assert hosts == {"left-0": "place-0", "right-0": "place-2", "left-1": "place-1", "right-1": "place-2"}


def test_every_place_on_a_route_sends_on_to_the_next():
    ways = {tuple(line.split()[2:]) for line in lines("ports") if " route add 10." in line}
    assert ways == {
        ("place-0", *["route", "add", "10.2.0.0/30", "via", "10.0.0.2", "dev", "one"]),
        ("place-1", *["route", "add", "10.2.0.0/30", "via", "10.0.1.2", "dev", "two"]),
        ("place-2", *["route", "add", "10.1.0.0/30", "via", "10.0.1.1", "dev", "two"]),
        ("place-1", *["route", "add", "10.1.0.0/30", "via", "10.0.0.1", "dev", "one"]),
        ("place-1", *["route", "add", "10.2.1.0/30", "via", "10.0.1.2", "dev", "two"]),
        ("place-2", *["route", "add", "10.1.1.0/30", "via", "10.0.1.1", "dev", "two"]),
    }


def test_each_port_has_the_discipline_and_the_rate_of_its_direction():
    said = [line for line in lines("qdisc") if " htb rate " in line or " parent 1:1 " in line]
    where = [(line.split()[2], line.split()[6]) for line in said]
    assert where == [
        (f"place-{place}", dev) for place, dev in ((0, "one"), (1, "one"), (1, "two"), (2, "two")) for _ in "12"
    ]
    assert [line.split(" rate ")[1].split()[0] for line in said if " rate " in line] == [
        "8mbit",
        "8mbit",
        "4mbit",
        "1mbit",
    ]
    assert [" codel " in line for line in said if " parent 1:1 handle" in line] == [True, True, False, False]


def test_a_delay_stands_where_packets_come_out():
    """What goes forward over link one comes out in place-1; in reverse over link two as well."""
    waits = {(line.split()[2], line.split()[6]): line.split(" netem ")[1] for line in lines("delay") if "netem" in line}
    rest = "limit 1000000"
    assert waits == {
        ("place-1", "one-delay"): f"delay 3ms {rest}",
        ("place-0", "one-delay"): f"delay 3ms {rest}",
        ("place-1", "two-delay"): f"delay 1ms {rest}",
        ("place-0", "from-left-0"): f"delay 10ms loss 0.1% {rest}",
        ("place-2", "from-right-0"): f"delay 10ms {rest}",
        # All of it on the left: what the left host sends, and what reaches it.
        ("place-1", "from-left-1"): f"delay 5ms loss 0.1% {rest}",
        ("left-1", "from-right-1"): f"delay 5ms {rest}",
    }


def test_hosts_have_the_tcp_of_their_block():
    chosen = {line.split()[3]: line.split("=")[1] for line in lines("hosts") if "congestion_control" in line}
    assert chosen == {"left-0": "cubic", "right-0": "cubic", "left-1": "reno", "right-1": "reno"}
    assert "ip -n left-1 route change $(ip -n left-1 route show default | sed -E " in "\n".join(lines("hosts"))


def test_every_command_says_in_which_namespace():
    within = ("tc -n ", "ip -n ", "ip netns exec ", "ip netns add ", "ip link add ", "for i in ")
    text = CHAIN.replace('{ kind = "pie" }', '{ kind = "drr", flows = 4 }')
    assert [line for line in setup(text).lines if not line.startswith(within)] == []
    loop = next(line for line in setup(text).lines if line.startswith("for i"))
    assert loop.count("tc -n place-1 ") == loop.count("tc ") == 2
    assert network.inside("a", Line("tc qdisc add dev x root htb")).text == "tc -n a qdisc add dev x root htb"


def test_a_name_that_is_no_port_s_gives_way_to_a_number():
    for name in ("lo", "all", "sysctl", "link0", "one-delay", "left-0", "from-here", "a-name-beyond-ports"):
        found = "\n".join(lines("ports", CHAIN.replace("links.two", f"links.{name}").replace('"two"', f'"{name}"')))
        assert "ip link add name link1 netns place-1 type veth peer name link1 netns place-2" in found
        assert (
            f"link {name}: port link1"
            in setup(CHAIN.replace("links.two", f"links.{name}").replace('"two"', f'"{name}"')).text
        )


def test_a_route_that_comes_by_a_place_twice_is_refused():
    ring = CHAIN + '[[traffic]]\nkind = "bulk"\nroute = ["two", "one"]\n'
    with pytest.raises(BadInput, match=r"net.toml: traffic.0.route: one, two: .* comes by no place twice"):
        setup(ring)


def test_what_no_line_is_for_is_said_of_each_link():
    said = setup(CHAIN.replace('delay = "3ms"', 'schedule = [{ at = "5s", rate = "2mbit" }]', 1)).text
    assert "not expressed: links.one.schedule; this is the rate that it begins with" in said


@pytest.mark.parametrize("name", ["parking-lot", "home-and-core"])
def test_the_examples_are_written(name, capsys):
    assert cli.invoke(["tc", str(ROOT / "examples" / f"{name}.toml")]) == 0
    assert capsys.readouterr().out.count("ip link add") > 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dev", "eth7"], "--dev eth7: the ports of a network have their links' names; expected no --dev"),
        (["--set", "traffic.0.rtt_at=clients"], 'traffic.0.rtt_at = "clients": lines for a network: expected senders,'),
        (["--set", "links.core.qdisc.kind=pi"], "links.core.qdisc.kind: 'pi': Linux has no such qdisc; nearest: pie"),
    ],
)
def test_bad_input_is_one_line(arguments, said, capsys):
    assert cli.invoke(["tc", str(ROOT / "examples" / "home-and-core.toml"), *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


OWN = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
NAMESPACES = ["unshare", *OWN, "--net", "--mount"]
PLAIN = """
[links.one]
rate = "8mbit"
qdisc = { kind = "pfifo", limit = "50p" }
[links.two]
rate = "4mbit"
qdisc = { kind = "bfifo" }
[path]
rtt = "0s"
[[traffic]]
kind = "bulk"
route = ["one", "two"]
[[traffic]]
kind = "bulk"
route = ["two"]
"""


@pytest.mark.alone
@pytest.mark.parametrize(("one", "two"), [("one", "two"), ("up", "down"), ("type", "help")])
def test_a_kernel_takes_the_lines_and_carries_packets_along_the_routes(tmp_path, one, two):
    """Also those of links that are called as words of ip(8) are."""
    there = subprocess.run(
        [
            *NAMESPACES,
            "sh",
            "-c",
            "mount -t tmpfs none /run && ip netns add a && ip link add va type veth peer name vb",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if there.returncode != 0 or None in map(shutil.which, ("ethtool", "ping")):
        pytest.skip("left out: this machine gives no network namespaces with veth, or has no ethtool or no ping")
    plain = re.sub(r"\b(one|two)\b", lambda word: {"one": one, "two": two}[word[0]], PLAIN)
    script = tmp_path / "net.sh"
    script.write_text(setup(plain).only(["ports", "qdisc"]).text)
    asks = "ip netns exec left-0 ping -c 3 -i 0.2 -q 10.2.0.2 && ip netns exec right-1 ping -c 2 -i 0.2 -q 10.1.1.2"
    shows = f"tc -n place-0 -s qdisc show dev {one} && tc -n place-1 -s qdisc show dev {two}"
    command = f"mount -t tmpfs none /run && sh -e {script} > /dev/null && {asks} && {shows}"
    done = subprocess.run([*NAMESPACES, "sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # The three of the first block cross both links, the answers of the second's right host the second alone.
    sent = [line.split()[3] for line in done.stdout.splitlines() if line.startswith(" Sent")]
    assert [int(count) >= least for count, least in zip(sent, (3, 3, 5, 5), strict=True)] == [True] * 4
    assert int(sent[0]) < int(sent[2]), sent


def test_scenarios_of_one_link_keep_their_ports(capsys):
    words = ["tc", str(ROOT / "examples" / "home-cable.toml"), "--variant", "fq_codel"]
    assert cli.invoke(words) == 0
    said = capsys.readouterr().out
    assert "netns" not in said and "tc qdisc add dev eth0 root" in said
