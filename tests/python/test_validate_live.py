"""The validation of the live test bed: its verdicts, and that the published table is that of the figures kept."""

import json
import sys
from pathlib import Path

import pytest

from aqmlab import engine

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benches" / "live"), str(ROOT / "benches" / "peers")]

import marked  # noqa: E402
import validate  # noqa: E402
import validation_cases as cases  # noqa: E402
import validation_table as tables  # noqa: E402


def run(seed: int, **figures: float) -> dict[str, object]:
    usual = {"utilisation": 0.99, "queue_delay_mean_s": 0.02, "loss_ratio": 0.01, "mark_ratio": 0.0}
    return {"seed": seed, **usual, **figures}


def case(simulated: list[dict[str, object]], virtual: list[dict[str, object]]) -> dict[str, object]:
    witnesses = {"simulated": {"runs": simulated}, "virtual": {"runs": virtual}}
    return {"case": "x", "title": "x", "witnesses": witnesses}


def verdicts(simulated: list[dict[str, object]], virtual: list[dict[str, object]]) -> dict[str, str]:
    return {found.quantity: found.verdict for found in tables.findings(case(simulated, virtual))}


def test_a_quantity_agrees_or_differs_as_its_interval_says() -> None:
    def spread(middle: float, width: float) -> list[dict[str, object]]:
        return [run(seed, queue_delay_mean_s=middle + width * (seed - 2)) for seed in (1, 2, 3)]

    delay = "queueing delay, ms"
    assert verdicts(spread(0.02, 1e-4), spread(0.0205, 1e-4))[delay] == "agrees"
    # 10 % of 20 ms are 2 ms.
    assert verdicts(spread(0.02, 1e-4), spread(0.025, 1e-4))[delay] == "differs"
    assert verdicts(spread(0.02, 3e-3), spread(0.021, 3e-3))[delay] == "undecided"
    # Below a millisecond nothing is asked.
    assert verdicts(spread(0.001, 1e-5), spread(0.0015, 1e-5))[delay] == "agrees"
    # One run is as uncertain as one of the simulator's; without five of these nothing is told.
    five = [run(seed, queue_delay_mean_s=0.02 + 1e-4 * (seed - 3)) for seed in range(1, 6)]
    wide = [run(seed, queue_delay_mean_s=0.02 + 1e-3 * (seed - 3)) for seed in range(1, 6)]
    assert verdicts(five, spread(0.02, 1e-4)[:1])[delay] == "agrees"
    assert verdicts(wide, spread(0.02, 1e-3)[:1])[delay] == "undecided"
    assert verdicts(five[:4], spread(0.02, 1e-4)[:1])[delay] == "undecided"
    assert verdicts(spread(0.02, 1e-4)[:1], spread(0.02, 1e-4)[:1])[delay] == "undecided"


def test_web_users_are_compared_seed_by_seed() -> None:
    simulated = [run(seed, utilisation=0.8 + 0.05 * seed) for seed in (1, 2, 3)]
    virtual = [run(seed, utilisation=0.801 + 0.0501 * seed) for seed in (1, 2)]
    assert verdicts(simulated, virtual)["utilisation, %"] == "undecided"
    paired = tables.findings({**case(simulated, virtual), "kind": "web"})
    assert [found.verdict for found in paired if found.quantity == "utilisation, %"] == ["agrees"]


def test_a_single_web_run_is_judged_by_how_far_twins_lie_apart() -> None:
    simulated = [run(seed, utilisation=0.7 + 0.05 * seed) for seed in range(1, 7)]

    def verdict(apart: float, live: float) -> str:
        twins = [run(seed, utilisation=0.7 + 0.05 * seed + apart * (-1) ** seed) for seed in range(1, 7)]
        kept = {**case(simulated, [run(2, utilisation=0.8 + live)]), "kind": "web"}
        kept["witnesses"]["twin"] = {"runs": twins}  # type: ignore[index]
        (found,) = (found for found in tables.findings(kept) if found.quantity == "utilisation, %")
        return found.verdict

    # 2 % of 0.875 are 0.0175; six twins that lie 0.002 apart leave 2.45 times that, 0.005, to chance.
    assert verdict(0.002, 0.012) == "agrees"
    assert verdict(0.002, 0.015) == "undecided"
    assert verdict(0.002, 0.024) == "differs"
    assert verdict(0.01, 0.012) == "undecided"


def test_a_single_distribution_is_judged_by_how_far_twins_lie_apart() -> None:
    def times(seed: int, by: float) -> dict[str, object]:
        return {**run(seed), "response_time_s": [(share + 0.5) / 500 + by for share in range(500)]}

    def verdict(apart: float, live: float) -> str:
        kept = {**case([times(seed, 0.0) for seed in range(6)], [times(2, live)]), "kind": "web"}
        kept["witnesses"]["twin"] = {"runs": [times(seed, apart * (-1) ** seed) for seed in range(6)]}  # type: ignore[index]
        return next(found.verdict for found in tables.findings(kept) if found.quantity.startswith("response"))

    assert verdict(0.004, 0.02) == "agrees"
    assert verdict(0.04, 0.02) == "undecided"
    assert verdict(0.004, 0.07) == "differs"


def test_a_void_run_does_not_count() -> None:
    fine = [run(seed) for seed in (1, 2, 3)]
    void = {**run(4, loss_ratio=0.5), "void": "late"}
    assert verdicts(fine, [*fine, void]) == verdicts(fine, fine)
    assert tables._counts([case(fine, [*fine, void])], []).endswith("1 void runs left out")


def test_marks_are_compared_where_there_are_some() -> None:
    fine = [run(seed) for seed in (1, 2)]
    assert "marked, %" not in verdicts(fine, fine)
    assert verdicts(fine, [run(seed, mark_ratio=0.01) for seed in (1, 2)])["marked, %"] == "differs"


def test_distributions_are_as_far_apart_as_they_are() -> None:
    def shifted(by: float) -> list[dict[str, object]]:
        grid = [(share + 0.5) / 500 + by for share in range(500)]
        return [{**run(seed), "response_time_s": grid} for seed in (1, 2)]

    title = "response times, distance"
    assert verdicts(shifted(0.0), shifted(0.04))[title] == "agrees"
    assert verdicts(shifted(0.0), shifted(0.07))[title] == "differs"


def test_what_was_kept_of_another_scenario_is_not_this_ones(tmp_path: Path) -> None:
    one = cases.CASES[0]
    path = tmp_path / f"{one.name}.json"
    validate._keep(path, one, "simulated", [])
    kept = json.loads(path.read_text())
    assert kept["scenario"] == one.toml
    path.write_text(json.dumps({**kept, "scenario": "another", "witnesses": {"simulated": {"runs": [run(1)]}}}))
    assert validate._runs(path, one, "simulated") == []


def test_what_was_made_with_another_version_kernel_or_engine_is_made_anew(tmp_path: Path, monkeypatch) -> None:
    one = cases.CASES[0]
    path = tmp_path / f"{one.name}.json"
    made_with = {"aqmlab": "1", "kernel": "6.12", "date": "2026-01-01"}
    monkeypatch.setattr(validate, "_versions", lambda case, witness: made_with)
    monkeypatch.setattr(validate, "_run", lambda case, witness, seed: run(seed))
    validate.run_case(one, tmp_path, ["virtual"], 0)
    for later in ({"date": "2026-01-02"}, {"kernel": "6.13"}, {"aqmlab": "2"}, {"engine": "ab"}):
        made_with = {**made_with, **later}
        validate.run_case(one, tmp_path, ["virtual"], 0)
        (kept,) = validate._runs(path, one, "virtual")
        # Another day alone is no reason.
        assert kept["date"] == ("2026-01-01" if "date" in later else "2026-01-02")
        assert made_with.items() - {("date", made_with["date"])} <= kept.items()


def test_runs_of_the_simulator_are_those_of_this_build() -> None:
    one = cases.CASES[0]
    of_this = engine.file_sha256()[:12]
    assert {validate._versions(one, name)["engine"] for name in ("simulated", "twin")} == {of_this}
    assert "engine" not in validate._versions(one, "live")


@pytest.mark.skipif(not list(validate.KEPT.glob("*.json")), reason="nothing is kept yet")
def test_the_published_table_is_that_of_the_figures_kept() -> None:
    published = marked.texts(validate.DOCS)["live"].strip()
    assert published == tables.markdown(validate.load_all(validate.KEPT)), "validate.py --update-docs writes it anew"
