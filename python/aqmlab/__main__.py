"""The `aqmlab` command, which knows what to do when it is told to end before it imports anything that takes time."""

from aqmlab import stopping


def main() -> None:
    """Entry point."""
    stopping.before_anything_runs()
    from aqmlab.cli import main as command

    command()


if __name__ == "__main__":
    main()
