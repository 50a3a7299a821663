"""The documentation as a site with search: pages of docs/, the studies' pages, and references made from the code.

The whole repository is the source folder, so that a link is the same link here and where the sources are read.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

import aqmlab

ROOT = Path(__file__).resolve().parents[2]

project = "aqmlab"
author = "the aqmlab authors"
project_copyright = ""
release = version = aqmlab.__version__
root_doc = "docs/site/index"
extensions = ["myst_nb", "sphinx.ext.autodoc"]

include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "docs/**/*.ipynb", "**/README.md"]
exclude_patterns = [
    *(".*", "target*", "results", "crates", "fuzz", "**/.*"),
    *("python/aqmlab/studies", "python/aqmlab/examples", "python/aqmlab.data"),
]

# Everything a page needs is in the site: it is read without a network.
html_theme = "furo"
html_title = "aqmlab"
html_static_path: list[str] = ["static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
html_last_updated_fmt = None
# A summary of what was found is fetched, which a browser refuses for pages that are opened as files.
html_show_search_summary = False
pygments_style, pygments_dark_style = "friendly", "native"

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True

# A word in single backticks is code, in docstrings as in every page.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": False}
# Types of other projects, and those that are no part of the interface, have no pages here.
nitpick_ignore_regex = [("py:.*", ".*")]

# One page of the manual: `make man`.
man_pages = [("docs/reference/command", "aqmlab", "a laboratory for active queue management", [], 1)]
man_show_urls = False

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()#:\s]+?)/?\)")


def link_to_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """A link to a folder goes to its README, or is no link; a folder has no page."""
    here = (ROOT / name).parent

    def instead(match: re.Match[str]) -> str:
        words, place = match[1], match[2]
        if not (here / place).is_dir():
            return match[0]
        return f"[{words}]({place}/README.md)" if (here / place / "README.md").is_file() else words

    source[0] = LINK.sub(instead, source[0])


BELOW = {"docs/evaluations/README": "[a-z]*"}
"""Pages that have others below them, of which an index need not have them all."""


def lead_to_pages_below(app: Sphinx, name: str, source: list[str]) -> None:
    """A page with others below it has a table of contents of theirs, which readers of its source do not see."""
    if name in BELOW:
        source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{BELOW[name]}\n```\n"


PROSE = 60
"""Characters of a cell from which on its column is prose, which is read in lines of some words."""


def name_columns(app: Sphinx, doctree: nodes.document) -> None:
    """Tables of parameters have a class, and so have cells in columns of prose: `site.css` lays them out."""
    for table in doctree.findall(nodes.table):
        rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        if [cell.astext() for cell in rows[0][:3]] == ["name", "default", "range"]:
            table["classes"].append("parameters")
        for column in zip(*rows, strict=False):
            if max(len(cell.astext()) for cell in column) >= PROSE:
                for cell in column:
                    cell["classes"].append("prose")


def setup(app: Sphinx) -> None:
    """Connects what is said above."""
    app.connect("source-read", link_to_pages)
    app.connect("source-read", lead_to_pages_below)
    app.connect("doctree-read", name_columns)
