import copy
import gc
import importlib.util
import json
import pickle
import tomllib
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import aqmlab
import fake_native
from aqmlab import engine
from aqmlab.errors import BadInput
from aqmlab.results import summaries, transport
from conftest import BASE


def test_a_run_folder_holds_all_of_the_contract(base, tmp_path):
    result = aqmlab.run(base, out=tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"scenario.toml", "manifest.json", "summary.json", "exchanges.parquet", "queue.parquet"}
    assert tomllib.loads((tmp_path / "out/scenario.toml").read_text())["traffic"][0]["users"] > 18000
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    by = ("version", "engine_sha256", "machine")
    for key in (*by, "seed", "digest", "calibration", "wall_s", "self_checks", "tables"):
        assert manifest[key] not in (None, "", []), key
    assert all(check["holds"] for check in manifest["self_checks"])
    assert result.exchanges.height == result.summary["exchanges"]["completed"]
    assert isinstance(result.queue, pl.DataFrame)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_the_same_seed_gives_the_same_digest_and_another_another(base):
    one, same, other = aqmlab.run(base), aqmlab.run(base), aqmlab.run(base, seed=8)
    assert one.digest == same.digest != other.digest
    assert one.summary["engine"]["wall_s"] != same.summary["engine"]["wall_s"]


def test_text_tables_and_paths_are_the_same_scenario(base):
    tree = tomllib.loads(BASE)
    assert aqmlab.run(base).digest == aqmlab.run(BASE).digest == aqmlab.run(tree).digest


def test_repetitions_have_seeds_of_their_own_and_a_merged_summary(base, tmp_path):
    result = aqmlab.run(base, reps=3, out=tmp_path / "out", jobs=2)
    assert [run.seed for run in result.runs] == [7, 8, 9]
    values = [run.summary["forward"]["loss_ratio"] for run in result.runs]
    assert result.summary["forward"]["loss_ratio"] == pytest.approx(np.mean(values))
    # t(0.975; 2) = 4.30265 (tables)
    assert result.summary["half_width_95"]["forward"]["loss_ratio"] == pytest.approx(
        4.30265 * np.std(values, ddof=1) / np.sqrt(3), rel=1e-5
    )
    assert result.summary["tcp"]["jain_index"] is None
    assert result.summary["seeds"] == [7, 8, 9]
    assert result.exchanges["rep"].unique().to_list() == [1, 2, 3]
    assert aqmlab.load(tmp_path / "out").digest == result.digest
    assert aqmlab.run(base, seed=8).runs[0].seed == 8


def test_a_repetition_is_the_run_with_its_seed(base):
    # Without a load, since populations are calibrated with the first seed.
    plain = {"traffic.0": {"kind": "web", "users": 500}}
    result = aqmlab.run(base, reps=2, set=plain)
    assert result.runs[1].digest == aqmlab.run(base, seed=8, set=plain).digest


def test_a_result_without_a_folder_leaves_nothing_behind(base):
    result = aqmlab.run(base)
    folder = result.folder
    assert folder.exists()
    del result
    assert not folder.exists()
    # A run alone keeps it, too.
    run = aqmlab.run(base).runs[0]
    assert run.queue.height > 0
    folder = run.folder
    del run
    assert not folder.exists()


def test_a_result_without_a_folder_is_not_pickled_and_copied_with_its_folder(base, tmp_path):
    result = aqmlab.run(base)
    compared = aqmlab.compare(base, "pfifo", "pi")
    for what in (result, result.runs[0], compared, compared["pi"], compared["pi"].runs[0]):
        with pytest.raises(
            BadInput, match=r"a temporary folder, .* cannot be pickled; expected a run or comparison with"
        ):
            pickle.dumps(what)
    folder, copied = result.folder, copy.deepcopy(result)
    del result
    gc.collect()
    assert copied.folder == folder and folder.is_dir() and copied.queue.height > 0
    kept = aqmlab.run(base, out=tmp_path / "out")
    for what in (kept, kept.runs[0]):
        assert pickle.loads(pickle.dumps(what)).digest == what.digest
    assert kept.digest == copied.digest


def test_an_existing_folder_is_refused_before_anything_runs(base, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("dear to me")
    with pytest.raises(BadInput, match="exists"):
        aqmlab.run(base, out=tmp_path / "out")
    assert fake_native.calls == []
    assert (tmp_path / "out/thesis.txt").exists()


def test_resuming_makes_only_what_is_missing(base, tmp_path):
    import shutil

    whole = aqmlab.run(base, reps=3, out=tmp_path / "whole")
    shutil.rmtree(tmp_path / "whole/rep-2")
    (tmp_path / "whole/manifest.json").unlink()
    fake_native.calls.clear()
    again = aqmlab.run(base, reps=3, out=tmp_path / "whole", resume=True)
    assert len(fake_native.calls) == 1
    assert again.digest == whole.digest
    with pytest.raises(BadInput, match="another scenario"):
        aqmlab.run(base, seed=100, reps=3, out=tmp_path / "whole", resume=True)


def test_runs_of_another_build_of_the_engine_are_not_resumed(base, tmp_path, monkeypatch):
    aqmlab.run(base, reps=2, out=tmp_path / "out")
    manifest = tmp_path / "out/rep-1/manifest.json"
    facts = json.loads(manifest.read_text())
    with monkeypatch.context() as patched:
        patched.setattr(engine, "file_sha256", lambda: "another build")
        with pytest.raises(BadInput, match="is of another engine; expected the one to be resumed"):
            aqmlab.run(base, reps=2, out=tmp_path / "out", resume=True)
    # One that does not say of which build it is has been made by another.
    manifest.write_text(json.dumps({key: item for key, item in facts.items() if key != "engine_sha256"}))
    with pytest.raises(BadInput, match="is of another engine"):
        aqmlab.run(base, reps=2, out=tmp_path / "out", resume=True)
    manifest.write_text(json.dumps(facts))
    aqmlab.run(base, reps=2, out=tmp_path / "out", resume=True)


@pytest.mark.parametrize("is_over", [True, False])
def test_resuming_makes_no_fewer_runs_than_there_are(base, tmp_path, is_over):
    given = {"traffic.0.users": 50}
    aqmlab.run(base, reps=3, out=tmp_path / "out", set=given)
    if not is_over:
        (tmp_path / "out/manifest.json").unlink()
    for reps in (1, 2):
        with pytest.raises(BadInput, match=r"out: holds 3 runs; expected reps of 3 or more"):
            aqmlab.run(base, reps=reps, out=tmp_path / "out", set=given, resume=True)
    assert len(aqmlab.run(base, reps=4, out=tmp_path / "out", set=given, resume=True).runs) == 4


def test_more_runs_for_a_load_are_another_work(base, tmp_path):
    aqmlab.run(base, reps=2, out=tmp_path / "out")
    with pytest.raises(
        BadInput, match=r"rep-1: holds another .*\(a load is met over the seeds of all runs, so that more"
    ):
        aqmlab.run(base, reps=3, out=tmp_path / "out", resume=True)


def test_a_result_has_every_table_of_its_runs(base, tmp_path, compiled):
    keys = {"record.drops": True, "link.qdisc.limit": "20p", "duration": "4s", "warmup": "0s"}
    keys["traffic"] = [{"kind": "bulk", "flows": 30}]
    found = aqmlab.run(base, reps=2, set=keys)
    assert found.drops["rep"].unique().sort().to_list() == [1, 2]
    assert found.drops.filter(rep=1).drop("rep").equals(found.runs[0].drops) and found.runs[0].drops.height > 10
    for table in ("films", "pages"):
        frame = getattr(found, table)
        assert frame.columns == ["rep", *getattr(found.runs[0], table).columns]
    with pytest.raises(BadInput, match="table: 'windows': expected one of exchanges, queue, delays, drops"):
        found.to_pandas("windows")
    if importlib.util.find_spec("pandas") is not None:
        assert len(found.to_pandas("drops")) == found.drops.height


def test_an_error_in_a_run_ends_the_others_and_leaves_no_folder(base, tmp_path, monkeypatch):
    original = fake_native.simulate

    def failing(toml, directory, progress, origin):
        if "seed = 8" in toml and 'name = "calibration"' not in toml:
            raise RuntimeError("the engine broke")
        return original(toml, directory, progress, origin)

    monkeypatch.setattr(fake_native, "simulate", failing)
    with pytest.raises(RuntimeError, match="broke"):
        aqmlab.run(base, reps=2, out=tmp_path / "out", jobs=1)
    assert not (tmp_path / "out/manifest.json").exists()
    assert not (tmp_path / "out/rep-2").exists()
    assert [p for p in (tmp_path / "out").iterdir() if "partial" in p.name] == []


def test_merging_keeps_null_as_null_and_never_makes_it_zero():
    merged = summaries.merge_summaries([{"seed": 1, "a": {"x": None, "y": 2}}, {"seed": 2, "a": {"x": 1.0, "y": 4}}])
    assert merged["a"] == {"x": None, "y": 3.0}
    assert merged["half_width_95"]["a"]["x"] is None


def test_a_figure_of_a_histogram_is_known_to_within_its_bin():
    figure = next(one for one in transport.FIGURES if one.key == "probes.one_way_delay_s.p99")
    runs = [SimpleNamespace(summary={"probes": {"one_way_delay_s": {"p99": 0.0701}}})] * 3
    assert figure.over(SimpleNamespace(runs=runs)).half_width == pytest.approx(51.2e-6)
    assert figure.over(SimpleNamespace(runs=runs[:1])).half_width is None


def test_the_width_of_a_quantile_is_no_less_than_its_bin():
    way = {"queue_delay_p50_s": 0.3, "queue_delay_mean_s": 0.3}
    one = {"forward": way, "exchanges": {"response_time_s": {"p50": 0.3}}}
    widths = summaries.merge_summaries([one | {"seed": seed} for seed in (1, 2, 3)])["half_width_95"]
    assert widths["forward"] == {"queue_delay_p50_s": pytest.approx(0.0016384), "queue_delay_mean_s": 0.0}
    assert widths["exchanges"]["response_time_s"]["p50"] == pytest.approx(0.000256)


def test_runs_without_losses_count_as_none_in_the_merged_counts():
    def merged(*counts):
        return summaries.merge_summaries([{"seed": k, "a": {"loss_runs": runs}} for k, runs in enumerate(counts)])["a"]

    assert merged([4, 2], None) == merged(None, [4, 2]) == {"loss_runs": [2.0, 1.0]}
    assert merged([4, 2], [2], None) == {"loss_runs": [2.0, 2 / 3]}
    assert merged(None, None) == {"loss_runs": None}


def test_a_comparison_file_is_not_run(base):
    with pytest.raises(BadInput, match="compare"):
        aqmlab.run(BASE + '[[variant]]\nname = "a"\n')
