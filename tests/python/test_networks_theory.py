"""Several links, and links that change, against what can be worked out on paper or by a recursion of a few lines.

Where chance has a say, means are compared within four standard errors from fifty batch means: Student's t with 49
degrees of freedom is beyond 4 with probability 2e-4, and seeds are fixed.
"""

import itertools
import math

import numpy as np
import polars as pl
import pytest

import aqmlab
from aqmlab import engine
from conftest import NATIVE

PACKET_BITS = 12_000
BATCHES = 50
HEAD = 'duration = "{duration}s"\nwarmup = "{warmup}s"\npath = {{ access_rate = "100gbit", rtt = "1ms" }}\n'
FIFO = 'qdisc = { kind = "pfifo", limit = "1000000p" }'


@pytest.fixture(autouse=True)
def compiled(stand_in, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)


def scenario(duration, body, *, warmup=0, more=""):
    return HEAD.format(duration=duration, warmup=warmup) + more + body


def rows(result, link, warmup=0):
    """What was recorded of a link forward."""
    is_its = (pl.col("link") == link) & (pl.col("direction") == 0) & (pl.col("time_s") > warmup)
    return result.queue.filter(is_its)


def forward(result, link):
    return result.summary["links"][link]["forward"]


def agrees(samples, expected, precision):
    """Whether the mean is the expected one within four standard errors, which are small enough to say something."""
    batches = np.array([np.mean(batch) for batch in np.array_split(np.asarray(samples, dtype=float), BATCHES)])
    mean, error = batches.mean(), batches.std(ddof=1) / math.sqrt(BATCHES)
    assert 4 * error <= precision, f"{mean} ± {error} is not as precise as {precision}"
    return mean == pytest.approx(expected, abs=4 * error)


# ---- Waits at links in a row


def waits(arrivals, sizes, rate):
    """Lindley's recursion of a FIFO link: how long each packet waits, and when it has left."""
    free, waited, left = 0.0, np.empty(len(arrivals)), np.empty(len(arrivals))
    for k in np.argsort(arrivals, kind="stable"):
        start = max(arrivals[k], free)
        waited[k], left[k] = start - arrivals[k], start + sizes[k] * 8 / rate
        free = left[k]
    return waited, left


def test_packets_wait_at_each_link_as_a_recursion_over_the_arrivals_says(tmp_path):
    """Random arrivals and sizes over two links, over either alone, at a load of about 0.85 on each, also by block.

    Times here are whole nanoseconds: each packet is late by one at most for each of the links, delays and access links
    that it and those ahead of it in a busy period crossed, a few hundred of them. 1 us bounds the mean with room.
    """
    draw = np.random.default_rng(5)
    routes = {"long": ("one", "two"), "first": ("one",), "second": ("two",)}
    rates, delay, access, duration = {"one": 10e6, "two": 8e6}, 0.003, 100e9, 60.0
    due = {"long": 750, "first": 800, "second": 450}
    packets, blocks = {}, ""
    for name, route in routes.items():
        gaps = np.maximum(draw.exponential(1 / due[name], int(due[name] * duration)), 1e-6)
        # The file counts in whole nanoseconds.
        times = np.round(np.cumsum(gaps), 9)
        sizes = np.clip(draw.exponential(900, len(times)), 100, 1500).astype(int)
        packets[name] = (times, sizes)
        lines = "\n".join(f"{time:.9f},{size}" for time, size in zip(times, sizes, strict=True))
        (tmp_path / f"{name}.csv").write_text(f"time_s,bytes\n{lines}\n")
        path = ", ".join(f'"{link}"' for link in route)
        blocks += f'[[traffic]]\nkind = "udp-trace"\npackets = "{name}.csv"\nroute = [{path}]\n'
    blocks += f'[links.one]\nrate = "10mbit"\ndelay = "3ms"\n{FIFO}\n[links.two]\nrate = "8mbit"\n{FIFO}\n'
    file = tmp_path / "waits.toml"
    file.write_text(scenario(duration + 20, blocks))
    result = aqmlab.run(file)

    def at_link(name):
        """When the packets of a block are through their access link and half a round trip."""
        times, sizes = packets[name]
        _, left = waits(times, sizes, access)
        return left + 0.0005

    sizes = {name: sizes for name, (_, sizes) in packets.items()}
    many = len(sizes["long"])
    waited, left = waits(
        np.concatenate([at_link("long"), at_link("first")]),
        np.concatenate([sizes["long"], sizes["first"]]),
        rates["one"],
    )
    further, _ = waits(
        np.concatenate([left[:many] + delay, at_link("second")]),
        np.concatenate([sizes["long"], sizes["second"]]),
        rates["two"],
    )
    for link, expected in (("one", waited), ("two", further)):
        assert forward(result, link)["delivered_packets"] == len(expected)
        assert expected.mean() > 1e-3
        assert forward(result, link)["queue_delay_mean_s"] == pytest.approx(expected.mean(), abs=1e-6)
    by_block = {
        "0": {"one": waited[:many], "two": further[:many]},
        "1": {"one": waited[many:]},
        "2": {"two": further[many:]},
    }
    for number, expected in by_block.items():
        told = result.summary["routes"][number]["forward"]
        assert {hop["link"]: hop["delivered_packets"] for hop in told} == {k: len(v) for k, v in expected.items()}
        for hop in told:
            assert hop["queue_delay_mean_s"] == pytest.approx(expected[hop["link"]].mean(), abs=1e-6)


def tandem(first_mbit, second_mbit, duration):
    """Packets of 1000 bytes at random instants, 800 a second, over two links."""
    blocks = '[[traffic]]\nkind = "udp-poisson"\narrivals = "800hz"\npacket = "1000b"\nroute = ["one", "two"]\n'
    blocks += 'start = "0s"\n'
    for name, rate in (("one", first_mbit), ("two", second_mbit)):
        blocks += f'[links.{name}]\nrate = "{rate}mbit"\ndelay = "1ms"\n{FIFO}\n'
    return aqmlab.run(scenario(duration, blocks, more='record.interval = "1s"\n'))


def wait_of_m_d_1(rate_hz, service_s):
    """Pollaczek and Khinchine: with constant service half of what it is with exponential service."""
    load = rate_hz * service_s
    return load * service_s / (2 * (1 - load))


@pytest.mark.parametrize("second", [8, 10])
def test_behind_a_link_as_slow_or_slower_nobody_waits(second):
    """Packets of one size leave the first link a service apart at least, which is all that the second takes."""
    result = tandem(8, second, 20)
    assert forward(result, "one")["queue_delay_mean_s"] > 1e-3
    assert forward(result, "two")["queue_delay_mean_s"] == 0 == forward(result, "two")["queue_delay_p99_s"]


def test_links_in_a_row_with_constant_packets_wait_together_as_the_slowest_alone():
    """Friedman (1965): with constant services a packet leaves the last link at the same instant in whatever order they
    stand. With the slowest first all wait there, M/D/1; with it second, the wait there is M/D/1's of the slowest less
    that of the first. The order is exchanged under the same arrivals: what differs is which packets are still under way
    at the end, a few of 480,000, and rounding to a nanosecond.
    """
    slow_last, slow_first = tandem(10, 8, 600), tandem(8, 10, 600)
    together = sum(forward(slow_last, link)["queue_delay_mean_s"] for link in ("one", "two"))
    assert together == pytest.approx(forward(slow_first, "one")["queue_delay_mean_s"], rel=1e-3)

    def per_packet(link):
        table = rows(slow_last, link)
        return (table["queue_delay_mean_s"] * table["delivered_packets"]).to_numpy() / table["delivered_packets"].mean()

    first, slowest = wait_of_m_d_1(800, 0.8e-3), wait_of_m_d_1(800, 1e-3)
    assert agrees(per_packet("one"), first, 0.05 * first)
    assert agrees(per_packet("two"), slowest - first, 0.1 * (slowest - first))


def poisson_opportunities(path, rate_hz, seconds, seed):
    """A trace with opportunities at exponential distances, which makes a link an exponential server: a packet waits for
    the next, whatever it waited before, and independently of what the same packet waits elsewhere."""
    gaps = np.random.default_rng(seed).exponential(1e3 / rate_hz, int(rate_hz * seconds * 1.02))
    times = np.cumsum(gaps)
    path.write_text("\n".join(str(math.ceil(time)) for time in times[times < seconds * 1e3]) + "\n")


def test_queues_of_exponential_servers_are_independent_and_geometric(tmp_path):
    """Jackson (1963), for classes with fixed routes Kelly (1975): Poisson flows over three links in a row, and others
    over each alone; in equilibrium the numbers of packets are independent, n with probability (1 - r) r^n.

    Opportunities are at whole milliseconds, the next one above: up to 1 ms of a mean stay of 333 ms and more.
    """
    rate, duration, warmup = 10, 40_000, 100
    loads = {"one": 0.7, "two": 0.6, "three": 0.5}
    blocks = '[[traffic]]\nkind = "udp-poisson"\narrivals = "4hz"\npacket = "1500b"\nroute = ["one", "two", "three"]\n'
    for seed, (link, load) in enumerate(loads.items()):
        poisson_opportunities(tmp_path / f"{link}.trace", rate, duration, seed)
        blocks += f'[[traffic]]\nkind = "udp-poisson"\narrivals = "{round(load * rate - 4)}hz"\npacket = "1500b"\n'
        blocks += f'route = ["{link}"]\n'
    for link in loads:
        blocks += f'[links.{link}]\ntrace = "{link}.trace"\nreverse_rate = "1mbit"\n{FIFO}\n'
    file = tmp_path / "jackson.toml"
    file.write_text(scenario(duration, blocks, warmup=warmup, more='record.interval = "1s"\n'))
    result = aqmlab.run(file)
    queues = {link: rows(result, link, warmup)["queue_packets"].to_numpy() for link in loads}
    for link, load in loads.items():
        assert agrees(queues[link], load / (1 - load), 0.15 * load / (1 - load)), link
        for number in (0, 1, 2):
            share = (1 - load) * load**number
            assert agrees(queues[link] == number, share, 0.15 * share), (link, number)
    # Jointly: that several are empty, and that the length of one says nothing of another's.
    for links in itertools.chain(itertools.combinations(loads, 2), [tuple(loads)]):
        empty = np.all([queues[link] == 0 for link in links], axis=0)
        share = math.prod(1 - loads[link] for link in links)
        assert agrees(empty, share, 0.2 * share), links
    for one, other in itertools.combinations(loads, 2):
        product = loads[one] / (1 - loads[one]) * loads[other] / (1 - loads[other])
        assert agrees(queues[one] * queues[other], product, 0.4 * product), (one, other)


# ---- Links that change


def cbr(rate, *route):
    path = ", ".join(f'"{link}"' for link in route)
    return f'[[traffic]]\nkind = "cbr"\nrate = "{rate}"\npacket = "1500b"\nstart = "0s"\nroute = [{path}]\n'


def test_queues_follow_the_fluid_when_a_rate_falls_and_rises():
    """9 Mb/s over two links. The first has 10, from 10 to 20 s 6 Mb/s, the second 8. What comes in and what goes out
    are constant between changes, so queues are straight lines: at the first up by 3 Mb/s, then down by 1 until it is
    empty at 50 s; at the second up by 1 for 10 s, down by 2 until it is empty at 15 s, and up by 2 from 20 to 50 s
    and by 1 after.

    A line is missed by a packet that is on the link, and by one that is cut at a change or by where in a distance the
    first packet came: two packets.
    """
    body = cbr("9mbit", "one", "two")
    body += f"""[links.one]
rate = "10mbit"
{FIFO}
schedule = [{{ at = "10s", rate = "6mbit" }}, {{ at = "20s", rate = "10mbit" }}]
[links.two]
rate = "8mbit"
{FIFO}
"""
    result = aqmlab.run(scenario(60, body))
    packets_s = 1e6 / PACKET_BITS
    knots = {
        "one": ([0, 10, 20, 50, 60], [0, 0, 30, 0, 0]),
        "two": ([0, 10, 15, 20, 50, 60], [0, 10, 0, 0, 60, 70]),
    }
    for link, (times, megabits) in knots.items():
        table = rows(result, link)
        line = np.interp(table["time_s"].to_numpy(), times, np.array(megabits) * packets_s)
        assert np.abs(table["queue_packets"].to_numpy() - line).max() <= 2, link


def test_a_full_link_sends_what_its_schedule_adds_up_to():
    """A period of 3 s: 1 s at 8 Mb/s, 50 ms of nothing, 0.95 s at 2, 1 s at 5. At each of three changes a period a
    packet leaves at the rate at which it began: no more than one is out of place."""
    body = cbr("12mbit", "one", "two")
    body += f"""[links.one]
rate = "20mbit"
{FIFO}
[links.two]
rate = "8mbit"
{FIFO}
schedule = [{{ at = "1s", rate = "2mbit", outage = "50ms" }}, {{ at = "2s", rate = "5mbit" }}]
period = "3s"
"""
    result = aqmlab.run(scenario(39, body, warmup=3))
    table = rows(result, "two", 3)
    periods = 12
    expected = periods * (8e6 + 0.95 * 2e6 + 5e6) / PACKET_BITS
    assert table["delivered_packets"].sum() == pytest.approx(expected, abs=3 * periods)
    # The same over one part of a period, of each: 0.5 s at 8 Mb/s.
    times = table["time_s"].to_numpy()
    at_8 = ((times % 3 > 0.35) & (times % 3 < 0.85)).nonzero()[0]
    assert table["delivered_packets"].to_numpy()[at_8].mean() == pytest.approx(0.1 * 8e6 / PACKET_BITS, abs=0.5)


def test_a_full_link_of_random_rates_sends_its_stationary_mean():
    """Two states, 0.4 s at 8 and 0.1 s at 2 Mb/s in the mean: 6.8 Mb/s."""
    body = cbr("9mbit", "one", "two")
    body += f"""[links.one]
rate = "8mbit"
{FIFO}
states = [
    {{ rate = "8mbit", stay = {{ exponential = "400ms" }}, to = [0, 1] }},
    {{ rate = "2mbit", stay = {{ exponential = "100ms" }}, to = [1, 0] }},
]
[links.two]
rate = "9mbit"
{FIFO}
"""
    result = aqmlab.run(scenario(520, body, warmup=20, more='record.interval = "1s"\n'))
    # The second link is faster than the first ever is: what leaves it is what the first sent.
    for link in ("one", "two"):
        rate = rows(result, link, 20)["delivered_packets"].to_numpy() * PACKET_BITS
        assert agrees(rate, 6.8e6, 0.05 * 6.8e6), link


def test_a_full_link_with_a_trace_sends_the_sum_of_its_opportunities(tmp_path):
    """Behind another link, with packets of the size of an opportunity: each is one, to the packet."""
    draw = np.random.default_rng(3)
    times = np.sort(draw.integers(1, 2000, 900))
    times[-1] = 2000
    (tmp_path / "phone.trace").write_text("\n".join(map(str, times)) + "\n")
    body = cbr("8mbit", "one", "two")
    body += f'[links.one]\nrate = "10mbit"\n{FIFO}\n'
    body += f'[links.two]\ntrace = "phone.trace"\nreverse_rate = "1mbit"\n{FIFO}\n'
    file = tmp_path / "trace.toml"
    file.write_text(scenario(21, body, warmup=1))
    result = aqmlab.run(file)
    every = (times[None, :] + 2000 * np.arange(11)[:, None]).ravel()
    table = rows(result, "two", 1)
    ends = np.round(table["time_s"].to_numpy() * 1e3)
    sent = np.cumsum(table["delivered_packets"].to_numpy())
    offered = np.searchsorted(every, ends, side="right") - np.searchsorted(every, 1000, side="right")
    # Whether an opportunity at the very end of an interval counts in it is a matter of order; one instant has a few.
    most = np.bincount(times).max()
    assert np.abs(sent - offered).max() <= most


# ---- What laws do when the rate changes


def test_codel_s_signals_after_a_fall_of_the_rate_come_as_its_law_says(tmp_path):
    """12 Mb/s over a link behind another; it has 20, from 10 s on 10 Mb/s. A packet that leaves t later has waited t
    (12 - 10)/12, which is the target of 5 ms after 30 ms. An interval later comes the first signal, and the n-th
    after it I (1 + 1/sqrt 2 + ... + 1/sqrt n) after that one, each with the next packet that leaves, as long as fewer
    are lost than are too many: sqrt n / I is below 2 Mb/s up to n = 277.
    """
    body = cbr("12mbit", "one", "two")
    body += f"""[links.one]
rate = "100mbit"
{FIFO}
[links.two]
rate = "20mbit"
schedule = [{{ at = "10s", rate = "10mbit" }}]
[links.two.qdisc]
kind = "codel"
"""
    aqmlab.run(scenario(14, body, more="record.drops = true\n"), out=tmp_path / "out")
    drops = pl.read_parquet(tmp_path / "out/drops.parquet").filter(pl.col("link") == "two")["time_s"].to_numpy()
    packet = PACKET_BITS / 10e6
    # The wait grows in steps, packet by packet: one for the step, one on the link, one as the rate changes.
    assert drops[0] == pytest.approx(10 + 0.03 + 0.1, abs=3 * packet)
    due = drops[0] + 0.1 * np.concatenate([[0], np.cumsum(1 / np.sqrt(np.arange(1, 277)))])
    late = drops[: len(due)] - due
    assert late.min() >= -1e-6 and late.max() <= packet + 1e-6
    # None before the change.
    assert len(drops) >= len(due) and drops[0] > 10


def test_pi_s_probability_after_a_fall_of_the_rate_is_its_difference_equation():
    """p(k) = p(k-1) + a (q(k) - qref) - b (q(k-1) - qref), q read at the instants at which it is computed, and rows are
    written at the same instants. Where it rests, all that is too much is lost: 1 - 10/12, and from 60 s on 1 - 8/12."""
    a, b, reference = 2e-4, 1.9e-4, 50
    body = cbr("12mbit", "one", "two")
    body += f"""[links.one]
rate = "100mbit"
{FIFO}
[links.two]
rate = "10mbit"
schedule = [{{ at = "60s", rate = "8mbit" }}]
[links.two.qdisc]
kind = "pi"
qref = "{reference}p"
a = {a}
b = {b}
w = "100hz"
limit = "10000p"
"""
    result = aqmlab.run(scenario(120, body, more='record.interval = "10ms"\n'))
    table = rows(result, "two")
    p, q = table["probability"].to_numpy(), table["queue_packets"].to_numpy().astype(float) - reference
    predicted = np.clip(p[:-1] + a * q[1:] - b * q[:-1], 0, 1)
    assert np.abs(p[1:] - predicted).max() <= 1e-12
    times = table["time_s"].to_numpy()
    for since, until, rate in ((30, 60, 10), (90, 120, 8)):
        window = (times > since) & (times <= until)
        lost = table["dropped_packets"].to_numpy()[window].sum() / table["offered_packets"].to_numpy()[window].sum()
        assert lost == pytest.approx(1 - rate / 12, abs=0.005)
        assert q[window].mean() == pytest.approx(0, abs=1)
