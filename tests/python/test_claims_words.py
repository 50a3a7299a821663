import pytest

from aqmlab.claims import FAILS, HOLDS, OPEN, reading
from aqmlab.claims.asked import ask
from aqmlab.claims.verdict import WORDS
from subjects import losing, points

POINTS = points()
PI, TAIL = "web/pi/off/98", "web/tail/off/98"


def asked(*checks, lost=(0.09, 0.091, 0.092)):
    """A claim on a loss ratio of 9.1 % with an interval of 0.25 points: t(0.975, 2) = 4.3 times 0.1/sqrt(3)."""
    table = {"id": "x-1", "says": "so", "reason": "because", "check": list(checks)}
    (text,) = reading.of_tables({"claim": [table]}, "claims.toml", "A paper", POINTS)
    return ask(text, {PI: losing(*lost), TAIL: losing(0.0, 0.001, 0.002)})


def loss(**bounds):
    return {"measure": "loss_ratio", "of": {"aqm": "pi", "ecn": "off", "load": "98"}, **bounds}


@pytest.mark.parametrize(
    ("bounds", "verdict", "turns"),
    [
        # Much is 10 %: outside, and with 8.8 % within. From 8.85 to 9.35 nothing is decided.
        ({"low": "much"}, FAILS, [("much", 0.092, OPEN)]),
        ({"low": "clear"}, HOLDS, [("clear", 0.092, OPEN)]),
        ({"high": "much"}, HOLDS, [("much", 0.092, OPEN)]),
        # Half of it and twice it are on the same side.
        ({"low": "similar"}, HOLDS, []),
        ({"high": "similar"}, FAILS, []),
        # A number is no word.
        ({"low": 0.10}, FAILS, []),
        # Of a bound to either side both move.
        ({"low": "-much", "high": "much"}, HOLDS, [("much", 0.092, OPEN)]),
    ],
)
def test_a_verdict_that_is_another_one_with_half_or_twice_a_word_says_at_what_size(bounds, verdict, turns):
    claim = asked(loss(**bounds))
    assert claim.verdict == verdict
    found = [(one["word"], one["at"], one["verdict"]) for one in claim.hangs_on]
    assert [(word, said) for word, _, said in found] == [(word, said) for word, _, said in turns]
    # Within a step of 4.4 % and the rounding to two digits of where the bound meets the interval.
    for (_, at, _), (_, wanted, _) in zip(found, turns, strict=True):
        assert at == pytest.approx(wanted, rel=0.08)
    for one in claim.hangs_on:
        assert one["size"] == WORDS[one["word"]]
        # It is so: the claim with that number in the place of the word.
        numbers = {key: one["at"] * (-1 if word.startswith("-") else 1) for key, word in bounds.items()}
        assert asked(loss(**numbers)).verdict == one["verdict"]


def test_each_word_of_a_claim_is_swept_by_itself_and_in_all_of_its_checks():
    of_tail = loss(high="slight") | {"of": {"aqm": "tail", "ecn": "off", "load": "98"}}
    claim = asked(loss(low="clear"), of_tail)
    assert claim.verdict == HOLDS
    assert {one["word"] for one in claim.hangs_on} == {"clear"}, "0.1 ± 0.25 % is below half of slight"
    both = asked(loss(low="clear"), of_tail | {"high": "clear"})
    assert [(one["word"], one["verdict"]) for one in both.hangs_on] == [("clear", OPEN)]


def test_what_is_said_of_it_can_be_read():
    claim = asked(loss(high="much"), lost=(0.09, 0.091, 0.092))
    assert claim.hangs_on[0]["said"] == "`much` at 9.2 instead of 10 % of packets: cannot be decided"
    assert claim.as_dict()["hangs_on"] == list(claim.hangs_on)
