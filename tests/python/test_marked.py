"""Tables that programs write into pages: between the marks, and nowhere else."""

import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "benches/peers"))

import marked

PAGE = """# A page

<!-- one: begin (written by one.py) -->
old
<!-- one: end -->
between
<!-- one-more: begin (written by one.py --of more) -->
<!-- one-more: end -->
after
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def test_a_text_takes_the_place_of_what_is_between_its_marks(page):
    marked.put(page, "one", "new, 3 ± 1\n\n")
    assert page.read_text(encoding="utf-8") == PAGE.replace("old\n", "new, 3 ± 1\n")
    marked.put(page, "one-more", "| a |\n| b |")
    assert marked.texts(page) == {"one": "new, 3 ± 1\n", "one-more": "| a |\n| b |\n"}
    assert page.read_text(encoding="utf-8").endswith("<!-- one-more: end -->\nafter\n")


@pytest.mark.parametrize(
    "mark", ["<!-- one: begin (written by one.py) -->", "<!-- one: end -->", "<!-- one: end -->\nbetween"], ids=repr
)
def test_a_page_without_a_mark_is_left_as_it_is_and_named_in_one_line(page, mark, capsys):
    other = PAGE.replace(mark, "<!-- other: end -->")
    page.write_text(other, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        marked.put(page, "one", "new")
    assert ended.value.code == 2
    said = capsys.readouterr()
    expected = "expected a line '<!-- one: begin ... -->' and below it a line '<!-- one: end -->'"
    assert (said.out, said.err) == ("", f"{page}: {expected}\n")
    assert page.read_text(encoding="utf-8") == other


def test_every_program_that_writes_into_a_page_finds_its_marks_there():
    names = {name for page in ("validation", "performance") for name in marked.texts(ROOT / f"docs/{page}.md")}
    written = {
        name
        for folder in ("benches", "tools", "tests/python/oracle")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'marked\.put\(\w+, "([\w-]+)"', path.read_text(encoding="utf-8"))
    }
    assert written and written <= names
    # Those of several tables have their names elsewhere.
    assert names - written == {"closed-loop", "closed-loop-newer", "closed-loop-prague", "closed-loop-draft"} | {
        "parking",
        "two-hops",
    }
