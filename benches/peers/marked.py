"""What programs write into pages: the text between two marks, `<!-- name: begin (who writes it) -->` and its end."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

_MARKED = re.compile(r"^(<!-- ([\w-]+): begin\b[^\n]*-->\n)(.*?)^(?=<!-- \2: end -->$)", re.DOTALL | re.MULTILINE)


def texts(page: Path) -> Mapping[str, str]:
    """What stands between the marks of a page, by their names."""
    return {found[2]: found[3] for found in _MARKED.finditer(page.read_text(encoding="utf-8"))}


def put(page: Path, name: str, text: str) -> None:
    """Puts `text` between the marks of a name; a page without them ends the program with a line and exit code 2."""
    before = page.read_text(encoding="utf-8")
    found = next((one for one in _MARKED.finditer(before) if one[2] == name), None)
    if found is None:
        print(
            f"{page}: expected a line '<!-- {name}: begin ... -->' and below it a line '<!-- {name}: end -->'",
            file=sys.stderr,
        )
        raise SystemExit(2)
    page.write_text(f"{before[: found.end(1)]}{text.strip()}\n{before[found.end() :]}", encoding="utf-8")
