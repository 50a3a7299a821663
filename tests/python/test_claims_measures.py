import numpy as np
import pytest

import aqmlab
from aqmlab import engine
from aqmlab.errors import BadInput
from aqmlab.measures import catalogue
from aqmlab.statistics import BATCHES
from conftest import NATIVE
from subjects import Runs, window

# Sixty exchanges a part: half take 0.1 s, a quarter 0.6 s, a quarter 3 s.
TIMES = [0.1] * 30 + [0.6] * 15 + [3.0] * 15


def measured(table, subject):
    (reading,) = catalogue.read(table, "claims.toml: x: check.0")
    return reading.estimate(subject)


def value(measure, subject=None, **parameters):
    return measured({"measure": measure, **parameters}, subject or Runs([window(TIMES)])).value


def test_shares_of_exchanges_are_read_off_the_distribution():
    assert value("within", time_s=0.1) == pytest.approx(0.5)
    assert value("within", time_s=0.095) == 0
    assert value("slower", time_s=0.6) == pytest.approx(0.25)
    # Beyond two seconds tails are kept at times that people speak of.
    late = Runs([window([3.0] * 30 + [9.9] * 15 + [10.1] * 15)])
    assert value("slower", late, time_s=3) == pytest.approx(0.5)
    assert value("slower", late, time_s=10) == pytest.approx(0.25)
    assert value("slower", late, time_s=20) == 0
    assert value("ahead", at_s=0.6) == pytest.approx(0.75)
    # From 0.5 to 0.7 s in steps of 5 ms: 20 at a half, 21 at three quarters.
    assert value("ahead", from_s=0.5, to_s=0.7) == pytest.approx((20 * 0.5 + 21 * 0.75) / 41)


def test_a_window_without_exchanges_has_no_shares_of_them():
    empty = Runs([window([])])
    for time in (0.5, 2, 10, 50):
        assert np.isnan(value("slower", empty, time_s=time)), time
    assert np.isnan(empty.windows[0].tail).all() and np.isnan(empty.windows[0].cdf).all()


def test_a_run_that_kept_no_exchanges_has_their_number_and_no_parts():
    # What such a run says of its exchanges is in its summary; its tables are those of none.
    bare = Runs([window([], summarised={"completed": 120.0}, block_completed=np.zeros((1, BATCHES)))])
    found = measured({"measure": "completed"}, bare)
    assert (found.value, found.half_width) == (120, None)
    assert np.isnan(value("completed", bare, block=0))


def test_the_parts_of_a_run_have_the_same_numbers_where_they_are_alike():
    run = Runs([window(TIMES)])
    for table in (
        {"measure": "within", "time_s": 0.3},
        {"measure": "slower", "time_s": 3},
        {"measure": "ahead", "from_s": 0.1, "to_s": 0.9},
        {"measure": "quantile", "q": 0.7},
        {"measure": "quantile", "q": 0.99},
        {"measure": "plateau"},
        {"measure": "completed"},
        {"measure": "loss_ratio", "direction": "reverse"},
        {"measure": "throughput_bps"},
    ):
        (reading,) = catalogue.read(table, "x")
        (parts,) = reading.parts(run)
        assert parts == pytest.approx(np.full(BATCHES, reading.values(run)[0])), table


def test_quantiles_lie_within_the_steps_that_counts_are_kept_in():
    times = np.arange(1, 1001) / 1000  # 1 ms to 1 s, evenly
    run = Runs([window(times)])
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert value("quantile", run, q=q) == pytest.approx(q, abs=0.005), q
    # Forty steps a decade are 6 % apart.
    late = Runs([window([0.1] * 40 + [10.0] * 20)])
    assert value("quantile", late, q=0.95) == pytest.approx(10, rel=0.06)
    assert np.isnan(value("quantile", Runs([window([0.1])]), q=0.95)), "20 exchanges have no 95th percentile"


def test_quantiles_of_a_block_or_of_sizes_beyond_two_seconds_are_as_fine_as_those_of_all():
    late, early = [2.02] * 20 + [10.0] * 20 + [40.0] * 20, [0.1] * 60
    run = Runs([window(late + early, blocks=[0] * 60 + [1] * 60, sizes=[5_000] * 60 + [50_000] * 60)])
    alone = Runs([window(late)])
    for q, time in ((0.2, 2.02), (0.5, 10), (0.9, 40)):
        for whose in ({"block": 0}, {"to_bytes": 10_000}):
            (reading,) = catalogue.read({"measure": "quantile", "q": q, **whose}, "x")
            (found,) = reading.values(run)
            assert found == pytest.approx(time, rel=0.06) and found > 2, (q, whose)
            assert reading.parts(run)[0] == pytest.approx(np.full(BATCHES, found))
            if q == 0.2:
                assert found == value("quantile", alone, q=q)
    assert value("quantile", run, q=0.9, block=1) == pytest.approx(0.1, abs=0.005)
    beyond = Runs([window([4000.0] * 60, blocks=[0] * 60)])
    assert np.isnan(value("quantile", beyond, q=0.5, block=0)), "beyond the last time that is kept"


def test_a_plateau_is_more_exchanges_after_a_second_than_before():
    with_timeouts = Runs([window([0.1] * 40 + [0.8] * 5 + [1.1] * 15)])
    without = Runs([window([0.1] * 40 + [0.8] * 15 + [1.1] * 5)])
    assert value("plateau", with_timeouts) == pytest.approx(10 / 60)
    assert value("plateau", without) == pytest.approx(-10 / 60)
    assert value("plateau", without, from_s=0.3, step_s=0.7, to_s=1.0) == pytest.approx(15 / 60)


def test_a_block_of_traffic_and_a_class_of_sizes_have_curves_of_their_own():
    blocks = Runs([window(TIMES, blocks=[0] * 30 + [1] * 30)])
    assert value("within", blocks, time_s=0.5, block=0) == 1
    assert value("within", blocks, time_s=0.6, block=1) == pytest.approx(0.5)
    assert value("completed", blocks, block=1) == 30 * BATCHES
    (reading,) = catalogue.read({"measure": "completed", "block": 1}, "x")
    assert reading.parts(blocks)[0] == pytest.approx(np.full(BATCHES, 30 * BATCHES)), "scaled to the whole window"
    assert np.isnan(value("within", blocks, time_s=0.5, block=2)), "there is no such block"
    sizes = Runs([window(TIMES, sizes=[2_000] * 30 + [10_000] * 15 + [10_001] * 15)])
    assert value("within", sizes, time_s=1.0, to_bytes=10_000) == 1
    assert value("within", sizes, time_s=1.0, from_bytes=10_000) == 0
    assert value("within", sizes, time_s=0.5, from_bytes=2_500, to_bytes=10_000) == 0
    assert np.isnan(value("within", Runs([window(TIMES)]), time_s=0.5, to_bytes=10_000)), "no sizes were kept"


def test_the_link_is_measured_one_way_or_both():
    assert value("loss_ratio") == pytest.approx(0.02)
    assert value("loss_ratio", direction="forward") == pytest.approx(0.01)
    assert value("loss_ratio", direction="reverse") == pytest.approx(0.03)
    # 20 parts of 25 Mbit each way in 100 s, of 10 Mb/s.
    assert value("utilisation", direction="forward") == pytest.approx(0.5)
    assert value("throughput_bps", direction="forward") == pytest.approx(5e6)
    assert value("throughput_bps") == pytest.approx(10e6), "both directions together"
    assert value("queue_delay_mean_s") == pytest.approx(0.01)


def test_states_of_the_queue_have_statistics_over_the_window():
    parts = np.arange(BATCHES, dtype=float)
    rows = np.array([parts, np.full(BATCHES, 3.0), parts - 5, parts + 5])  # mean, sd, min, max of each part
    run = Runs([window(TIMES, state={"control": np.stack([rows, rows + 100], axis=1)})])
    assert value("state", run, column="control") == pytest.approx(parts.mean())
    assert value("state", run, column="control", direction="reverse") == pytest.approx(parts.mean() + 100)
    assert value("state", run, column="control", statistic="min") == -5
    assert value("state", run, column="control", statistic="max") == BATCHES + 4
    assert value("state", run, column="control", statistic="sd") == pytest.approx(np.sqrt(9 + parts.var()))
    assert np.isnan(value("state", run, column="price"))


def test_numbers_of_the_summary_and_of_the_scenario():
    summary = {
        "forward": {"loss_runs": [60, 30, 10], "queue_mean_packets": 60.0, "queue_delay_p95_s": 0.2},
        "tcp": {"timeouts": 30, "forward_goodput_bps": 8.4e6, "jain_index": None},
        "exchanges": {"completed": 120},
    }
    qdisc = {"limit": "240p", "probability": 0.1, "target": "5ms", "w": "170hz"}
    scenario = {"link": {"qdisc": qdisc}, "tcp": {"window": "16kb"}}
    run = Runs([window(TIMES)], [summary], scenario=scenario)
    assert value("loss_run_longer", run, n=0) == 1
    assert value("loss_run_longer", run, n=1) == pytest.approx(0.4)
    assert value("loss_run_longer", run, n=2) == pytest.approx(0.1)
    assert value("loss_run_longer", run, n=3) == 0
    assert value("queue_share", run) == pytest.approx(0.25)
    assert value("queue_delay_quantile_s", run, q=0.95) == 0.2
    assert value("goodput_bps", run) == 8.4e6
    assert value("timeouts_per_exchange", run) == 0.25
    assert value("summary", run, key="forward.loss_runs.1") == 30
    assert value("parameter", run, key="link.qdisc.probability") == 0.1
    assert value("parameter", run, key="link.qdisc.target") == pytest.approx(0.005)
    assert value("parameter", run, key="link.qdisc.limit") == 240
    assert value("parameter", run, key="link.qdisc.w") == 170
    assert value("parameter", run, key="tcp.window") == 16_384, "as tc and the engine have it"
    calls = {"applications.calls.mos_mean": 4.2, "applications.calls.mos_least": None}
    told = Runs([window(TIMES)], [summary], scenario=scenario, parts=[calls])
    assert value("summary", told, key="applications.calls.mos_mean") == 4.2
    assert np.isnan(value("summary", told, key="applications.calls.mos_least"))
    assert np.isnan(value("summary", run, key="applications.calls.mos_mean"))
    for missing in ("jain_index", "udp_loss_ratio", "loss_run_mean"):
        assert np.isnan(value(missing, run)), missing
    assert np.isnan(value("parameter", run, key="link.qdisc.kind"))


def test_goodput_of_blocks_and_what_probes_wait():
    held = {"0": {"goodput_bps": 30e6}, "2": {"goodput_bps": 8e6}}
    summary = {"tcp": {"held_back": held}, "probes": {"one_way_delay_s": {"p50": 0.011, "p99": 0.0125}}}
    summary["probes"]["one_way_delay_mean_s"] = 0.0112
    blocks = [{"kind": "bulk", "flows": 3}, {"kind": "web", "users": 3}, {"kind": "bulk", "flows": 4}, PROBE]
    run = Runs([window(TIMES)], [summary], scenario={"traffic": blocks, "path": {"rtt": "20ms"}})
    assert value("flow_goodput_bps", run, block=0) == 10e6
    assert value("flow_goodput_bps", run, block=2) == 2e6
    assert value("goodput_ratio", run, block=0, to=2) == 5
    assert value("goodput_ratio", run, block=2, to=0) == pytest.approx(0.2)
    for block in (1, 3):
        assert np.isnan(value("flow_goodput_bps", run, block=block)), "a block without endless flows"
        assert np.isnan(value("goodput_ratio", run, block=0, to=block))
    assert value("probe_wait_s", run, q=0.5) == pytest.approx(0.001)
    assert value("probe_wait_s", run, q=0.99) == pytest.approx(0.0025)
    assert value("probe_wait_mean_s", run) == pytest.approx(0.0012)


PROBE = {"kind": "probe", "direction": "forward"}
LATER = {"at": "9s", "rate": "1mbit"}


@pytest.mark.parametrize(
    ("link", "blocks", "propagation_ms"),
    [
        ({}, [PROBE], 10),
        ({"delay": "20ms"}, [PROBE], 30),
        ({"delay": "20ms", "reverse_delay": "5ms"}, [PROBE | {"direction": "reverse"}], 15),
        ({"delay": "20ms"}, [PROBE | {"direction": "both"}], 30),
        ({"delay": "20ms"}, [PROBE | {"rtt": "30ms"}, {"kind": "bulk", "rtt": "90ms"}], 35),
        ({"delay": "20ms"}, [PROBE | {"rtt_at": "clients"}], 40),
        (
            {"delay": "20ms"},
            [PROBE | {"rtt_at": "clients", "rtt": "5ms"}, PROBE | {"rtt": "10ms", "rtt_at": "left"}],
            25,
        ),
        ({"delay": "20ms", "schedule": [LATER, LATER | {"delay": "20ms"}]}, [PROBE], 30),
        # Not the same for all packets.
        ({}, [PROBE | {"rtt": {"uniform": ["10ms", "20ms"]}}], None),
        ({"delay": "20ms", "reverse_delay": "5ms"}, [PROBE | {"direction": "both"}], None),
        ({}, [PROBE, PROBE | {"rtt": "30ms"}], None),
        ({"delay": "20ms", "schedule": [LATER | {"delay": "10ms"}]}, [PROBE], None),
        ({"delay": "20ms", "states": [{"delay": "20ms"}, {"delay": "10ms"}]}, [PROBE], None),
    ],
)
def test_what_probes_wait_is_without_their_propagation(link, blocks, propagation_ms):
    summary = {"probes": {"one_way_delay_s": {"p50": 0.041}}}
    run = Runs([window(TIMES)], [summary], scenario={"link": link, "traffic": blocks, "path": {"rtt": "20ms"}})
    found = value("probe_wait_s", run, q=0.5)
    assert np.isnan(found) if propagation_ms is None else found == pytest.approx(0.041 - propagation_ms / 1e3)


def test_what_probes_wait_on_a_network_is_without_the_delays_of_their_route():
    summary = {"probes": {"one_way_delay_s": {"p50": 0.041}}}
    network = {"home": {"delay": "5ms"}, "core": {"delay": "10ms"}, "far": {"delay": "100ms"}}
    tree = {"links": network, "path": {"rtt": "20ms"}}
    for route, propagation_s in ((["home"], 0.015), (["home", "core"], 0.025)):
        run = Runs([window(TIMES)], [summary], scenario={**tree, "traffic": [PROBE | {"route": route}]})
        assert value("probe_wait_s", run, q=0.5) == pytest.approx(0.041 - propagation_s)


@pytest.mark.parametrize(
    ("edits", "propagation_s"),
    [
        ({"link.delay": "20ms"}, 0.025),
        ({"traffic.0.rtt": "30ms"}, 0.015),
        ({"traffic.0.rtt_at": "clients"}, 0.01),
        ({"traffic.0.rtt_at": "right", "traffic.0.direction": "reverse", "link.reverse_delay": "3ms"}, 0.008),
    ],
)
def test_probes_on_an_empty_link_wait_for_transmission_alone(edits, propagation_s, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "native", NATIVE)
    text = 'duration = "3s"\nwarmup = "1s"\nlink = { rate = "100mbit" }\npath = { rtt = "10ms" }\n'
    (run,) = aqmlab.run(text + '[[traffic]]\nkind = "probe"\n', set=edits, out=tmp_path / "run").runs
    subject = Runs([window(TIMES)], [run.summary], scenario=run.scenario)
    delay_s = run.summary["probes"]["one_way_delay_s"]["p50"]
    assert value("probe_wait_s", subject, q=0.5) == pytest.approx(delay_s - propagation_s)
    # 200 bytes at 100 Mb/s and twice at 1 Gb/s take 19.2 us; the percentile has its bin.
    assert value("probe_wait_s", subject, q=0.5) == pytest.approx(19.2e-6, abs=0.01 * delay_s)


def test_shares_of_sizes_and_of_their_bytes():
    run = Runs([window([0.1] * 4, sizes=[1_000, 10_000, 10_001, 2_000_000])])
    assert value("size_share", run, to_bytes=10_000) == pytest.approx(0.5)
    assert value("size_share", run, from_bytes=1_000_000) == pytest.approx(0.25)
    assert value("bytes_share", run, to_bytes=10_000) == pytest.approx(11_000 / 2_021_001)
    assert value("bytes_share", run, from_bytes=2_500, to_bytes=1_000_000) == pytest.approx(20_001 / 2_021_001)
    assert value("size_share", run, from_bytes=10_000) == pytest.approx(0.5), "10 kB are not over 10 kB"
    assert value("size_mean", run) == pytest.approx(2_021_001 / 4)
    # The largest response is a quarter of all; half are the two largest.
    assert value("largest_share", run, share=0.25) == pytest.approx(2_000_000 / 2_021_001)
    assert value("largest_share", run, share=0.5) == pytest.approx(2_010_001 / 2_021_001)
    slow = Runs([window([1.0, 20.0], sizes=[100_001, 100_001])])
    assert value("size_share", slow, from_bytes=100_000) == 1
    assert value("size_share", slow, from_bytes=100_000, fast=True) == pytest.approx(0.5)


def test_a_list_of_values_is_a_reading_each():
    found = catalogue.read({"measure": "ahead", "at_s": [0.1, 0.5]}, "x")
    assert [reading.formula.brief for reading in found] == ["at 100 ms", "at 500 ms"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "x: measure: None: expected one of ahead, "),
        ({"measure": "speed"}, "x: measure: 'speed': expected one of ahead, "),
        ({"measure": "within"}, "x: time_s: missing; expected seconds above 0, at most 2"),
        ({"measure": "within", "time_s": "1s"}, "x: time_s: '1s': expected seconds"),
        ({"measure": "within", "time_s": 3.0}, "x: time_s: 3.0: expected seconds above 0, at most 2"),
        (
            {"measure": "within", "time_s": 0.102},
            "x: time_s: 0.102: expected seconds above 0, at most 2, a multiple of 0.005",
        ),
        ({"measure": "within", "time_s": 0}, "x: time_s: 0: expected seconds above 0"),
        ({"measure": "ahead", "at_s": 0.501}, "x: at_s: 0.501: expected seconds from 0 to 2, a multiple of 0.005"),
        (
            {"measure": "slower", "time_s": 3.5},
            "x: time_s: 3.5: expected seconds above 0: up to 2 a multiple of 0.005, beyond",
        ),
        ({"measure": "within", "time_s": []}, "x: time_s: []: expected seconds"),
        ({"measure": "within", "time_s": 1.0, "q": 1}, "x: q: 1: unknown key; expected for within one of time_s"),
        ({"measure": "within", "time_s": 1.0, "to_bytes": 5000}, "x: to_bytes: 5000: expected one of 2500, 10000"),
        ({"measure": "within", "time_s": 1.0, "block": 0, "to_bytes": 2500}, "expected either block or from_bytes"),
        ({"measure": "ahead"}, "x: measure: 'ahead': expected at_s, or from_s and a later to_s"),
        ({"measure": "ahead", "from_s": 1.0, "to_s": 0.5}, "expected at_s, or from_s and a later to_s"),
        ({"measure": "ahead", "at_s": 1.0, "to_s": 0.5}, "expected either at_s or from_s and to_s"),
        ({"measure": "quantile", "q": 1.0}, "x: q: 1.0: expected a number between 0 and 1"),
        ({"measure": "loss_ratio", "direction": "up"}, "x: direction: 'up': expected one of forward, reverse, both"),
        ({"measure": "loss_run_mean", "direction": "both"}, "expected one of forward, reverse"),
        ({"measure": "loss_run_longer", "n": 63}, "x: n: 63: expected a whole number from 0 to 62"),
        ({"measure": "size_share", "to_bytes": 1234}, "x: to_bytes: 1234: expected a size that counts are kept at"),
        ({"measure": "p50", "time_s": 1.0}, "unknown key; expected for p50 one of none"),
    ],
)
def test_a_measure_that_cannot_be_says_why(table, words):
    with pytest.raises(BadInput) as error:
        catalogue.read(table, "x")
    assert words in str(error.value)


def test_every_measure_of_the_catalogue_has_a_unit_that_findings_know():
    from aqmlab.claims.verdict import check_unit

    for measure in catalogue.catalogue().values():
        if measure.unit:
            check_unit(measure.unit, measure.unit, measure.name)
