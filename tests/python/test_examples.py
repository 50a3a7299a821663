import tomllib

import pytest

from aqmlab import api, checks, scenario, variants
from aqmlab.sweep import grid
from conftest import ROOT

SWEEP = ROOT / "examples" / "sweep.toml"
EXAMPLES = sorted(set((ROOT / "examples").glob("*.toml")) - {SWEEP})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_scenario_or_comparison(path):
    source = scenario.read(path)
    keys = tomllib.loads(path.read_text()).keys()
    assert {"duration", "traffic"} <= keys and len({"link", "links"} & keys) == 1
    if variants.has_variants(source):
        assert len(variants.from_file(source)) >= 2


# Those whose population is found in seconds.
@pytest.mark.parametrize("name", ["web.toml", "live-web.toml"])
def test_an_example_that_asks_for_a_load_has_a_population_that_offers_it(name, compiled):
    (found,) = api.calibrate(ROOT / "examples" / name, fresh=True)
    check = checks.of_load(found.as_dict())
    assert check.holds, check.detail


def test_the_sweep_is_one():
    (found,) = grid.read(tomllib.loads(SWEEP.read_text()), str(SWEEP))
    assert len(found.points) == 12


def test_the_demo_has_the_disciplines_of_the_study():
    found = variants.from_file(scenario.read(ROOT / "examples/demo.toml"))
    kinds = [(v.source.tree["link"]["qdisc"]["kind"], v.source.tree["tcp"].get("ecn", "off")) for v in found[1:]]
    assert found[0].uncongested
    assert kinds == [
        ("pfifo", "off"),
        ("pi", "off"),
        ("pi", "on"),
        ("rem", "off"),
        ("rem", "on"),
        ("ared", "off"),
        ("ared", "off"),
    ]
