"""Single transfers of a Linux kernel's TCP and of aqmlab's stack `linux`, packet by packet.

The kernel's are kept in testdata/linux/transfers; transfers_kernel.py records them. A test of the TCP crate does each
of them once more and compares. Installs nothing; builds the test if need be.

    python benches/peers/linux/transfers.py                   the table, pass or fail
    python benches/peers/linux/transfers.py --update-docs     and put it into docs/validation.md
    python benches/peers/linux/transfers.py --kernel KERNEL   record the kernel's side anew first

Exit codes: 0 all within tolerance, 1 something is not, 2 bad input or a run failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import marked  # noqa: E402
from ns2_reference import RunError, guarded, today  # noqa: E402
from transfers_kernel import record_all  # noqa: E402

ROOT = HERE.parents[2]
DOCS = ROOT / "docs" / "validation.md"
TEST = ("cargo", "test", "--locked", "--package", "aqmlab-tcp", "--test", "linux_transfers", "--", "--nocapture")


def compare() -> tuple[str, str, bool]:
    """Runs the test: the kernel's release, the table with what is excused, and whether all agrees."""
    done = subprocess.run(TEST, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    table = [line for line in lines if line.startswith("|")]
    excused = [line for line in lines if line.startswith("Excused: ")]
    release = next((line for line in lines if line.startswith("Linux ")), "")
    if not table:
        raise RunError(f"{' '.join(TEST)}: {done.stderr.strip()[-2000:]}")
    if done.returncode:
        print(done.stderr.partition(" differ:")[2].partition("note:")[0], file=sys.stderr)
    return release, "\n".join(table) + "".join(f"\n\n{line}" for line in excused), done.returncode == 0


def main(words: Sequence[str]) -> int:
    """Runs, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="transfers.py", description="Single TCP transfers of a Linux kernel and of aqmlab, packet by packet."
    )
    parser.add_argument("--kernel", metavar="KERNEL", help="record the kernel's side anew with this program")
    parser.add_argument("--update-docs", action="store_true", help="write the table into docs/validation.md")
    args = parser.parse_args(words)
    if args.kernel:
        record_all(args.kernel, [])
    release, table, agrees = compare()
    print(f"{release}\n\n{table}\n")
    if args.update_docs:
        marked.put(DOCS, "transfers", f"{release} and aqmlab's stack `linux`, {today()}.\n\n{table}")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(guarded("transfers", main))
