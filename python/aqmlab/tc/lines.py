"""What is written: lines of shell, each with what is to be said about it."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

WIDTH = 110
"""Comments are broken to this width; commands never are."""


PARTS = ("ports", "qdisc", "delay", "hosts")
"""Of a setup: the router's ports, the shapers and disciplines on them, the paths' delay, the hosts' TCP."""


@dataclass(frozen=True)
class Line:
    """One command, and where it is no more than an approximation."""

    text: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Commands that belong together, under a comment."""

    title: str
    lines: tuple[Line, ...]
    remarks: tuple[str, ...] = ()
    """What cannot be expressed at all."""
    part: str = ""
    """What of Linux it sets up, one of `PARTS`."""

    def without_repetition(self, earlier: "Section") -> "Section":
        """The lines without what was said of an earlier one."""
        said = {remark for line in earlier.lines for remark in line.remarks} | set(earlier.remarks)
        return replace(
            self,
            lines=tuple(Line(line.text, tuple(r for r in line.remarks if r not in said)) for line in self.lines),
            remarks=tuple(r for r in self.remarks if r not in said),
        )


@dataclass(frozen=True)
class Setup:
    """A scenario as lines of shell."""

    name: str
    sections: tuple[Section, ...] = field(default_factory=tuple)

    @property
    def lines(self) -> tuple[str, ...]:
        """The commands alone."""
        return tuple(line.text for section in self.sections for line in section.lines)

    @property
    def text(self) -> str:
        """A shell script: comments, and the lines below them."""
        blocks = [
            "\n".join(_comment(f"{self.name}, on Linux. Run it as root. Remarks say where it only comes near.", 0))
        ]
        for section in self.sections:
            block = [*_comment(section.title, 0), *_comments(section.remarks)]
            for line in section.lines:
                block += [*_comments(line.remarks), line.text]
            blocks.append("\n".join(block))
        return "\n\n".join(blocks) + "\n"

    def only(self, parts: Sequence[str]) -> "Setup":
        """The lines of the named parts alone; all lines where none is named."""
        return Setup(self.name, tuple(each for each in self.sections if not parts or each.part in parts))

    def as_dict(self) -> dict[str, Any]:
        """The lines as a dictionary, for a program."""
        return {
            "scenario": self.name,
            "sections": [
                {
                    "title": section.title,
                    "remarks": list(section.remarks),
                    "lines": [{"line": line.text, "remarks": list(line.remarks)} for line in section.lines],
                }
                for section in self.sections
            ],
        }


def _comment(text: str, indent: int) -> list[str]:
    """A remark as comments; whatever it holds, it cannot become a command."""
    lead = "#" + " " * (1 + indent)
    return textwrap.wrap(
        " ".join(text.split()),
        WIDTH,
        initial_indent=lead,
        subsequent_indent=lead + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _comments(remarks: Sequence[str]) -> list[str]:
    return [line for remark in remarks for line in _comment(f"- {remark}", 2)]
