"""Lines of a page break between words, and not between a number and its unit."""

import pytest

from aqmlab.report.templates import unbroken


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("by 0.31 ± 0.04, 79 ± 16 points", "by 0.31~±~0.04, 79~±~16~points"),
        ("(83.1 %) in 2 s, of 50 Mb/s", "(83.1~%) in 2~s, of 50~Mb/s"),
        ("n = 22,097 exchanges", "n~=~22,097 exchanges"),
        ("± 95 % t-interval across 5 runs", "±~95~% t-interval across 5 runs"),
        ("10 segments, 4 sent again", "10 segments, 4 sent again"),
        ('<p title="5 ms">5 ms<br>6 ms</p>', '<p title="5 ms">5~ms<br>6~ms</p>'),
        ("<code>5 ms</code> 5 ms <svg><text>5 ms</text></svg>", "<code>5 ms</code> 5~ms <svg><text>5 ms</text></svg>"),
    ],
)
def test_numbers_stay_with_their_units(said: str, expected: str) -> None:
    assert unbroken(said).replace("\xa0", "~") == expected
