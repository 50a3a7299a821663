"""Prints the lowest versions of packages that pyproject.toml allows, and those of the tools that run the tests.

python tools/lowest.py > requirements.txt
"""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

NOT_FOR_TESTS = ("mypy", "ruff", "furo", "ipykernel", "myst-nb", "nbclient", "sphinx")
"""Packages of development that no test of the package itself needs; documents are made with the locked versions."""


def lowest(text: str) -> str:
    """`numpy>=1.26,<3` as `numpy==1.26`."""
    asked = Requirement(text)
    (least,) = (part.version for part in asked.specifier if part.operator in (">=", "=="))
    return f"{asked.name}=={least}"


def main() -> None:
    """Prints a line a package."""
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tools = [text for text in project["optional-dependencies"]["dev"] if Requirement(text).name not in NOT_FOR_TESTS]
    print("\n".join(lowest(text) for text in (*project["dependencies"], *tools)))


if __name__ == "__main__":
    main()
