"""What a result leaves with its study: the numbers, and the page over all of them."""

import json
from pathlib import Path

import pytest

import studies
from aqmlab import cli
from aqmlab.claims import NOT_RUN
from aqmlab.errors import BadInput
from aqmlab.json_files import read_json
from aqmlab.study import definition, folders, found, overview
from conftest import ROOT

pytestmark = pytest.mark.usefixtures("settled_runs", "here", "undrawn")


def test_numbers_are_kept_with_the_study_and_make_its_page(folder, here):
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    kept = found.keep(Path("results/study-tiny-quick"), folder)
    assert kept == folder / "found.json" and set(read_json(kept)) == {"quick"}
    page = overview.markdown([folder])
    assert "| [tiny](#tiny-web-users-over-short-queues) | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 8 |" in page
    assert "\n## tiny: Web users over short queues\n" in page and "Runs of 20 s instead of 30 s." in page
    assert "- **tiny-2**: The stand-in has fewer timeouts with ECN." in page
    row = next(line for line in page.splitlines() if line.startswith("| tiny-1 |"))
    # As much as the interval is worth; the bound; the published number.
    kept_finding = read_json(kept)["quick"]["claims"]["tiny-1"]["findings"][0]
    assert f"{kept_finding['number']} | above 1 point | {kept_finding['published_number']} | holds | quick |" in row
    assert "±" in row and kept_finding["published_number"].startswith("+30")
    # At the published scale, once that was run.
    assert cli.invoke(["study", "tiny"]) == 0
    found.keep(Path("results/study-tiny"), folder)
    assert "| 2 | 1 | 1 | 0 | 0 | 0 | 2 | 15 |" in overview.markdown([folder])
    # With what the users offered, where that was asked for.
    load = {"least": 0.992, "most": 1.014, "known": 2, "of": 4}
    facts = read_json(Path("results/study-tiny/study.json"))
    facts["claims"][0]["offered"] = load
    Path("results/study-tiny/study.json").write_text(json.dumps(facts))
    found.keep(Path("results/study-tiny"), folder)
    page = overview.markdown([folder])
    assert page.count("<br>load offered: 99.2 to 101.4 % of what was asked for in the 2 of 4 runs") == 1
    assert page.count("load offered") == 1
    # Where no run shows why, in other words.
    claims = studies.WRONG.replace("explained =", 'cause = "unknown"\nexplained =')
    (folder / "claims.toml").write_text(studies.CLAIMS + claims)
    page = overview.markdown([folder])
    assert "| 2 | 1 | 0 | 1 | 0 | 0 | 2 | 15 |" in page
    assert (
        " | **not reproduced, cause unknown** | full |" in page and "- **tiny-2** (cause unknown): The stand-in" in page
    )
    with pytest.raises(BadInput, match="expected that of a finished study"):
        (here / "half").mkdir()
        (here / "half/study.json").write_text('{"kind": "study", "complete": false}')
        found.keep(here / "half", folder)


def test_what_came_out_at_the_published_scale_is_said_as_it_is_kept_now(folder, here):
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    kept = found.keep(Path("results/study-tiny-quick"), folder)
    facts = read_json(kept)
    answer = facts["quick"]["claims"]["tiny-1"]
    # As it was kept once: with what the published scale said by then.
    window = "the window was not settled in 2 of 4 runs"
    then = "at the published scale: does not hold (PI: 3 ± 1 points (of 2); and 2 more)"
    answer |= {"verdict": "cannot be decided", "remark": f"{window}; {then}"}
    (finding,) = answer["findings"]
    facts["full"] = {
        "takes": {
            name: take | {"profile": {**take["profile"], "name": "full"}}
            for name, take in facts["quick"]["takes"].items()
        },
        "claims": {
            "tiny-1": answer
            | {
                "verdict": "holds",
                "remark": "",
                "findings": [
                    finding | {"label": "here", "number": "+4.0 ± 0.1 points", "verdict": "holds"},
                    finding | {"label": "there", "verdict": NOT_RUN},
                ],
            }
        },
    }
    kept.write_text(json.dumps(facts))
    row = next(line for line in overview.markdown([folder]).splitlines() if line.startswith("| tiny-1 |"))
    now = "at the published scale: holds (1 of 2 numbers asked; here: +4.0 ± 0.1 points)"
    assert f"cannot be decided ({window}; {now}) | quick |" in row and "does not hold" not in row
    # Nothing is said of a claim that is another one now, nor kept of a scale with the answer of another.
    facts["full"]["claims"]["tiny-1"]["digest"] = "another"
    kept.write_text(json.dumps(facts))
    row = next(line for line in overview.markdown([folder]).splitlines() if line.startswith("| tiny-1 |"))
    assert f"cannot be decided ({window}) | quick |" in row
    made = Path("results/study-tiny-quick/study.json")
    of_now = read_json(made)
    of_now["claims"][0] |= {"remark": then}
    made.write_text(json.dumps(of_now))
    found.keep(made.parent, folder)
    assert read_json(kept)["quick"]["claims"]["tiny-1"]["remark"] == ""


def test_an_answer_to_another_claim_is_not_shown(folder, here):
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    found.keep(Path("results/study-tiny-quick"), folder)
    assert "| holds |" in overview.markdown([folder])
    claims = folder / "claims.toml"
    claims.write_text(studies.CLAIMS.replace('low = "slight"', 'low = "much"') + studies.WRONG)
    page = overview.markdown([folder])
    row = next(line for line in page.splitlines() if line.startswith("| tiny-1 |"))
    assert "| not run since the claim was changed |" in row and "±" not in row and "above 10 points" in row
    assert "| 2 | 0 | 1 | 0 | 0 | 1 | 0 | 8 |" in page
    # Other words are no other claim.
    claims.write_text(studies.CLAIMS.replace("serves users better", "is better to users") + studies.WRONG)
    assert "is better to users" in overview.markdown([folder]) and "changed" not in overview.markdown([folder])
    # Nor is another place of the paper, which stands below the words.
    claims.write_text(studies.CLAIMS.replace("reason =", 'source = "section 4, figure 8"\nreason =') + studies.WRONG)
    assert "| With ECN, PI serves users better than drop-tail.<br>*section 4, figure 8* |" in overview.markdown(
        [folder]
    )


def test_results_of_an_older_version_are_refused_in_a_line(folder, here):
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    path = Path("results/study-tiny-quick/study.json")
    facts = read_json(path)
    del facts["changes"]
    path.write_text(json.dumps(facts))
    with pytest.raises(BadInput, match="changes: missing: made by an older aqmlab"):
        found.keep(path.parent, folder)


def test_what_should_not_be_kept_is_refused(folder, here):
    assert cli.invoke(["study", "tiny", "--quick"]) == 0
    out = Path("results/study-tiny-quick")
    facts = read_json(out / "study.json")
    failed = [{"run": "web/pi/off, seed 2", "name": "conservation", "detail": "2 packets too many"}]
    facts["self_checks"]["failed"] = failed
    (out / "study.json").write_text(json.dumps(facts))
    with pytest.raises(BadInput, match=r"1 self-check\(s\) failed, web/pi/off, seed 2: conservation; expected none"):
        found.keep(out, folder)
    found.keep(out, folder, ["web/pi/off, seed 2: conservation"])
    assert "**1 self-check failed**, of web/pi/off, seed 2: conservation: 2 packets" in overview.markdown([folder])
    # One run of each point, of the two that both claims ask for.
    assert cli.invoke(["study", "tiny", "--quick", "--seeds", "1"]) in (0, 1)
    with pytest.raises(BadInput, match="fewer runs of a point than a verdict needs: tiny-1, tiny-2"):
        found.keep(out, folder)


def test_the_page_of_the_studies_is_current():
    places = [ROOT / "studies" / name for name in folders.known()]
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    assert page == overview.markdown(places), "make studies writes it anew"


@pytest.mark.parametrize("name", folders.known())
def test_what_does_not_hold_or_is_open_at_the_published_scale_is_explained(name):
    folder = ROOT / "studies" / name
    claims = {text.id: text for text in definition.read(folder).claims}
    for profile, kept in found.of_bed(folder, None).items():
        to_explain = ("does not hold", "cannot be decided") if profile == definition.FULL else ("does not hold",)
        unexplained = [
            claim_id
            for claim_id, claim in kept["claims"].items()
            if found.believed(claim, profile) in to_explain
            and (
                found.asked(claim) == {finding["label"] for finding in claim["findings"]} or profile != definition.FULL
            )
            and not (claim_id in claims and claims[claim_id].explained)
        ]
        assert not unexplained, f"{profile}: nothing says why: {', '.join(unexplained)}"
