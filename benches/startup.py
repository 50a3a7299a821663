"""Processor time of commands before they do their work: user and system, of the whole process.

python benches/startup.py [--reps N]
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import workloads

COMMANDS = ("--version", "--help", "list", "explain pi", "list --json", "explain redopt --rate 10mbit --set flows=64")


def used_s() -> float:
    """Processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Prints a row a command: median and least of the repetitions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=11)
    reps = parser.parse_args().reps
    print("| command | median, s | least, s |\n| --- | --: | --: |")
    with tempfile.TemporaryDirectory() as held:
        scenario = Path(held) / "short.toml"
        # Its simulation takes milliseconds.
        scenario.write_text(workloads.bulk(3, 'kind = "pi"', flows=4, mbit=10))
        for command in COMMANDS:
            print_row(command, [[*command.split()]] * reps)
        runs = [["run", str(scenario), "-o", str(Path(held) / f"out-{k}")] for k in range(reps)]
        print_row("run short.toml", runs)


def print_row(name: str, commands: list[list[str]]) -> None:
    """Runs commands and prints what one took."""
    took = []
    for words in commands:
        before = used_s()
        subprocess.run([sys.executable, "-m", "aqmlab", *words], check=True, stdout=subprocess.DEVNULL)
        took.append(used_s() - before)
    print(f"| `aqmlab {name}` | {statistics.median(took):.2f} | {min(took):.2f} |")


if __name__ == "__main__":
    main()
