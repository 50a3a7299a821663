import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqmlab import toml_text
from aqmlab.errors import BadInput

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_what_is_written_reads_back_the_same(tree):
    assert tomllib.loads(toml_text.dumps(tree)) == tree


def test_a_scenario_is_written_as_people_write_it():
    tree = {
        "name": "x",
        "link": {"rate": "1mbit", "qdisc": {"kind": "pi", "ecn": True}},
        "path": {"rtt": {"uniform": ["10ms", "150ms"]}},
        "traffic": [{"kind": "web"}, {"kind": "bulk", "flows": 2}],
    }
    assert toml_text.dumps(tree) == (
        'name = "x"\n\n[link]\nrate = "1mbit"\n\n[link.qdisc]\nkind = "pi"\necn = true\n\n'
        '[path]\nrtt = { uniform = ["10ms", "150ms"] }\n\n[[traffic]]\nkind = "web"\n\n[[traffic]]\nkind = "bulk"\n'
        "flows = 2\n"
    )


def test_what_toml_cannot_hold_is_refused():
    with pytest.raises(BadInput, match="object"):
        toml_text.dumps({"a": [object()]})


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    given = [np.float64(0.01), np.float32(0.5), np.int32(3), np.uint64(2**63), np.bool_(True), np.float64("nan")]
    assert [toml_text.value(one) for one in given] == ["0.01", "0.5", "3", str(2**63), "true", "nan"]
    assert [toml_text.value(float(one)) for one in np.linspace(0, 0.02, 3)] == ["0.0", "0.01", "0.02"]
    with pytest.raises(BadInput, match="texts, numbers, true and false"):
        toml_text.value(np.zeros(2))
