"""Creates a virtual environment with pip in it, also where Debian's package python3-venv is not installed.

    python3 tools/environment.py FOLDER

Without that package Python lacks `ensurepip`; pip then comes from PyPI as one pinned file, checked by its SHA-256.
"""

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path

PIP_URL = (
    "https://files.pythonhosted.org/packages/07/25/ee8c38ae72d66b844ce8eb9711ba905dba21ca1a8a0c960057c41cd23337/"
    "pip-26.3-py3-none-any.whl"
)
PIP_SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"


def main() -> None:
    """Creates the folder named on the command line."""
    if sys.version_info < (3, 11):  # noqa: UP036 - it may be run by any Python
        sys.exit(f"aqmlab needs Python 3.11 or later, this is {sys.version.split()[0]}; try make PYTHON=python3.11")
    folder = Path(sys.argv[1])
    has_pip = importlib.util.find_spec("ensurepip") is not None
    venv.create(folder, clear=True, symlinks=True, with_pip=has_pip)
    if not has_pip:
        install_pip(folder / "bin" / "python")


def install_pip(python: Path) -> None:
    """Lets a wheel of pip, which Python can run as it is, install itself."""
    with urllib.request.urlopen(PIP_URL) as answer:
        wheel = answer.read()
    if hashlib.sha256(wheel).hexdigest() != PIP_SHA256:
        sys.exit(f"{PIP_URL}: not the file that was expected")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / PIP_URL.rsplit("/", 1)[1]
        path.write_bytes(wheel)
        subprocess.run([python, path / "pip", "install", "--quiet", "--no-index", path], check=True)


if __name__ == "__main__":
    main()
