"""Writes a lock file: the packages that pyproject.toml asks for, and all they need in turn, each at one version.

python3 tools/lock.py requirements-dev.lock
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HEAD = """\
# The Python packages of .venv, to the version: what pyproject.toml asks for, and what that needs.
# Written by `make lock`; install with `pip install -r requirements-dev.lock`.
"""


def main() -> None:
    """Installs into an environment of its own and writes down what is there."""
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
    ]
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, root / "tools" / "environment.py", place], check=True)
        python = Path(place) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
        frozen = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True)
    Path(sys.argv[1]).write_text(HEAD + frozen.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
