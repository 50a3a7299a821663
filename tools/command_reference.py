"""Writes docs/reference/command.md and the manual page of the wheel from the command line's own help.

python tools/command_reference.py
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "command.md"
MANUAL = ROOT / "python" / "aqmlab.data" / "data" / "share" / "man" / "man1" / "aqmlab.1"


def page() -> str:
    """The reference as typer writes it, in the order of `aqmlab --help`."""
    words = [sys.executable, "-m", "typer", "aqmlab.cli", "utils", "docs", "--name", "aqmlab"]
    made = subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "TERM": "dumb"})
    text = re.sub(r"^# `aqmlab`$", "# The command line", made.stdout.strip(), count=1, flags=re.MULTILINE)
    return text.replace(str(Path.home()), "~") + "\n"


def manual(folder: Path) -> str:
    """The manual page, made by Sphinx of the reference alone."""
    one = PAGE.relative_to(ROOT).as_posix()
    chosen = (f"include_patterns={one}", f"root_doc={one.removesuffix('.md')}", "today=aqmlab")
    settings = [word for setting in chosen for word in ("-D", setting)]
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "man", "-c", str(ROOT / "docs" / "site")]
    subprocess.run([*words, *settings, "-d", str(folder / "doctrees"), str(ROOT), str(folder / "man")], check=True)
    return (folder / "man" / "aqmlab.1").read_text(encoding="utf-8")


def main() -> None:
    """Writes both."""
    PAGE.write_text(page(), encoding="utf-8")
    folder = Path(tempfile.mkdtemp())
    try:
        MANUAL.parent.mkdir(parents=True, exist_ok=True)
        MANUAL.write_text(manual(folder), encoding="utf-8")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
