"""How a law of one's own is asked for: by its file, and under fair queueing with `fq_` before the name of that.

In words that name the file as well, the law's own name stands for it, with `fq_` before it or without.
"""

from pathlib import Path

from aqmlab import files
from aqmlab.laws import policy

FAIR = "fq_"
ENDINGS = (".py", ".so", policy.ENDING)
NAMED = "a law of one's own is named by its file"


def is_file(word: object) -> bool:
    """Whether a word names the file of a law."""
    return isinstance(word, str) and word.endswith(ENDINGS) and "\n" not in word


def meant(path: Path) -> tuple[Path, bool]:
    """The file that a path stands for, and whether its law is asked for under fair queueing.

    `laws/fq_sqd.py` stands for the law of `laws/sqd.py` on each queue, unless there is a file of the very name.
    """
    if not is_file(path.name) or not path.name.startswith(FAIR) or files.is_file(path):
        return path, False
    return path.with_name(path.name.removeprefix(FAIR)), True


def without_fair_queueing(name: str, holds_packets: bool) -> str:
    """What is said where `fq_` stands before what fair queueing cannot have on its queues."""
    why = "holds packets and orders them itself, and " if holds_packets else ""
    return f"{name} {why}has no form under fair queueing"


def by_its_file(name: str, folder: Path) -> str:
    """What to write for a name that nobody knows, if a file of a law in the folder is called so; else nothing."""
    for bare in dict.fromkeys((name, name.removeprefix(FAIR))):
        for ending in ENDINGS:
            if bare and files.is_file(folder / f"{bare}{ending}"):
                return f"{NAMED}; expected {name}{ending}"
    return ""
