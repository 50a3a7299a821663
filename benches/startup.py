"""Processor time of commands that run nothing: user and system, of the whole process.

python benches/startup.py [--reps N]
"""

import argparse
import resource
import statistics
import subprocess
import sys

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
    for command in COMMANDS:
        took = []
        for _ in range(reps):
            before = used_s()
            words = [sys.executable, "-m", "aqmlab", *command.split()]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            took.append(used_s() - before)
        print(f"| `aqmlab {command}` | {statistics.median(took):.2f} | {min(took):.2f} |")


if __name__ == "__main__":
    main()
