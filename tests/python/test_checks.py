import polars as pl
import pytest

from aqmlab import checks


def queue(offered, delivered, dropped, held):
    return pl.DataFrame(
        {
            "time_s": [0.1, 0.1, 0.2, 0.2],
            "direction": [0, 1, 0, 1],
            "offered_packets": [10, 5, offered, 5],
            "delivered_packets": [8, 5, delivered, 5],
            "dropped_packets": [0, 0, dropped, 0],
            "queue_packets": [2, 0, held, 0],
        }
    )


def test_packets_are_conserved_up_to_the_one_on_the_wire():
    assert checks._conservation(queue(10, 9, 1, 2)).holds
    assert checks._conservation(queue(10, 9, 1, 1)).holds
    assert not checks._conservation(queue(10, 9, 1, 0)).holds
    assert not checks._conservation(queue(10, 9, 1, 3)).holds
    assert not checks._conservation(queue(10, 9, 1, 2).clear()).holds


def test_a_device_queue_holds_no_more_than_its_limit():
    for limit, most in (("64p", 64), ("1p", 1), ("1kb", 1024 // 20 + 1)):
        link = {"link": {"device_queue": limit}}
        found = checks._conservation(queue(100 + most, 99, 1, 2), link)
        assert found.holds and f"+ {most} in the device queue and on the wire" in found.detail, limit
        assert checks._conservation(queue(10, 9, 1, 2), link).holds
        assert not checks._conservation(queue(100 + most, 99, 1, 1), link).holds, limit
        assert not checks._conservation(queue(10, 9, 1, 3), link).holds


def test_a_load_that_was_missed_is_no_secret():
    facts = {
        "seed": 3,
        "users": 10,
        "confirmed_bps": 97e6,
        "load_bps": 98e6,
        "error": 97 / 98 - 1,
        "confirmed_each_bps": {"forward": 97e6},
    }
    assert not checks.of_load(facts).holds
    assert checks.of_load({**facts, "error": 0.004}).holds


def test_a_load_is_checked_for_the_seeds_with_which_it_was_seen():
    facts = {
        "seed": 3,
        "users": 10,
        "confirmed_bps": 98e6,
        "load_bps": 98e6,
        "error": 0.0,
        "confirmed_each_bps": {"forward": 98e6},
    }
    assert len(checks.of_loads([facts], 3)) == 1 and checks.of_loads([facts], 4) == []
    over = {**facts, "confirmed_by_seed_bps": {"3": 90e6, "4": 106e6}}
    (said,) = checks.of_loads([over], 4)
    assert "10 users offer 98.000 Mb/s on the uncongested link on average over seeds 3 to 4, wanted 98" in said.detail
    assert checks.of_loads([over], 5) == []
    assert checks.seeds_said(facts) == "seed 3"
    apart = {**facts, "confirmed_by_seed_bps": {"3": 98e6, "5": 98e6, "9": 98e6}}
    assert checks.seeds_said(apart) == "seeds 3, 5 and 9"
    assert [checks.confirmed_bps(over, seed) for seed in (3, 4, 5)] == [90e6, 106e6, None]


@pytest.mark.parametrize(
    ("status", "holds", "said"),
    [
        (0, True, "exit status 0"),
        (7, False, "exit status 7"),
        ("signal 9", False, "signal 9"),  # for want of memory, say
        ("ended with the run", True, "ended with the run"),
    ],
)
def test_a_program_inside_may_be_killed_by_the_end_of_the_run_alone(status, holds, said):
    found = checks._command({"command": ["/bin/worker", "-x"], "command_status": status})
    assert (found.holds, found.detail) == (holds, f"worker: {said}")
