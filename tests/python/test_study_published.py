"""The table of a paper's numbers: each once, ours of one scale, nothing of a claim that was changed since."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import studies
from aqmlab.study import definition, published


@pytest.fixture
def study(tmp_path):
    """The study that tests write."""
    folder = studies.write(tmp_path / "tiny")
    bare = [
        replace(c, questions=tuple(replace(q, published=None) for q in c.questions))
        for c in definition.read(folder).claims
    ]
    return SimpleNamespace(claims=bare)


def answered(text, number, verdict="holds", digest=None):
    finding = {"label": "PI", "number": number, "verdict": verdict, "published_number": "90 %"}
    return {"claims": {text.id: {"digest": digest or text.digest, "findings": [finding]}}}


def with_published(text):
    return replace(text, questions=tuple(replace(q, published=0.9) for q in text.questions))


def test_a_number_stands_once_with_ours_of_the_first_scale_that_asked_it(study):
    text = with_published(study.claims[0])
    scales = {"full": answered(text, "88 %"), "quick": answered(text, "70 %")}
    page = published.markdown(SimpleNamespace(claims=[text, study.claims[1]]), scales)
    assert "at the scale full" in page and "PI: 88 %" in page and "70 %" not in page
    assert [line.split(" | ")[-1] for line in page.splitlines()[4:]] == [f"{text.id} |"]


def test_numbers_of_a_claim_that_was_changed_or_not_run_are_not_ours(study):
    text = with_published(study.claims[0])
    for scales in (
        {},
        {"full": answered(text, "88 %", digest="another")},
        {"full": answered(text, "88 %", verdict="not run in this profile")},
    ):
        page = published.markdown(SimpleNamespace(claims=[text]), scales)
        assert published.NOT_THERE in page and "88 %" not in page and "at the scale" not in page


def test_a_number_is_named_by_what_it_is_of_where_the_claim_says_that(study):
    text = replace(with_published(study.claims[0]), number_of="exchanges within 125 ms")
    page = published.markdown(SimpleNamespace(claims=[text]), {})
    assert "\n| exchanges within 125 ms | 90" in page


def test_a_paper_without_numbers_has_no_table(study):
    assert published.markdown(study, {}) == ""


def test_each_test_bed_has_a_column_and_says_where_it_was_not_run_at_the_same_scale(study):
    text = with_published(study.claims[0])
    scales = {"full": answered(text, "88 %")}
    beds = {
        "the laboratory": {"full": answered(text, "89 %")},
        "at home": {"quick": answered(text, "70 %")},
        "elsewhere": {"full": answered(text, "71 %", digest="another")},
    }
    page = published.markdown(SimpleNamespace(claims=[text]), scales, beds)
    assert "| number of | published | ours | the laboratory | at home | elsewhere | claim |\n" in page
    assert f"| PI: 88 % | PI: 89 % | {published.NOT_THERE} | {published.NOT_THERE} | {text.id} |" in page
    assert "70 %" not in page and "71 %" not in page
