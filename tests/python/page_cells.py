"""The cells of a page's tables, with what the page says of where each number lies and how it is to be read."""

import math
import re
from dataclasses import dataclass
from functools import cached_property

from bs4 import BeautifulSoup, Tag

from aqmlab.results.readable import TOO_FEW

UNITS = {"%": 1e-2, "points": 1e-2, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "b/s": 1.0, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9}
"""What a number in a unit of a page is multiplied by to be one in seconds, bits a second and shares of one."""

UNIT = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, UNITS))})(?![\w/])")
NUMBER = re.compile(r"([+−-]?[\d,]+(?:\.(\d+))?)(?:e([+-]\d+))?")


@dataclass(frozen=True)
class Cell:
    """A cell of a table, or another element that says which number it is."""

    tag: Tag

    def said(self, key: str) -> str:
        """What it says of itself, or what it stands in says."""
        for one in (self.tag, *self.tag.parents):
            if key in one.attrs:
                return str(one[key])
        return ""

    @property
    def file(self) -> str:
        return self.said("data-file")

    @property
    def table(self) -> str:
        return self.said("data-table")

    @property
    def measure(self) -> str:
        return str(self.tag.get("data-measure", ""))

    @property
    def value_of(self) -> str:
        return str(self.tag.get("data-value-of", ""))

    @property
    def where(self) -> str:
        """What else it stands in is called: a claim, for its numbers."""
        one = self.tag.find_parent(lambda tag: tag.name == "article" and "data-row" in tag.attrs)
        return str(one["data-row"]) if one else ""

    @cached_property
    def _line(self) -> tuple[Tag, Tag | None, int]:
        """Its row, the row's header, and its place in the row."""
        row = self.tag.find_parent("tr")
        before = len(self.tag.find_previous_siblings(("th", "td")))
        head = row.find("th")
        if head is None and (spanning := row.find_previous("th", rowspan=True)) is not None:
            return row, spanning, before + 1
        return row, head, before

    @property
    def row(self) -> str:
        """What the row says it is called, or else what its header reads."""
        if self.tag.name != "td":
            return self.said("data-row")
        row, head, _ = self._line
        return str(row["data-row"]) if "data-row" in row.attrs else text(head) if head else ""

    @property
    def heads(self) -> list[Tag]:
        """The headers of its column, group first."""
        found, table = [], self.tag.find_parent("table")
        for row in table.thead.find_all("tr") if table and table.thead else []:
            spread = [one for one in row.find_all(("th", "td")) for _ in range(int(one.get("colspan", 1)))]
            found.append(spread[self._line[2]])
        return found

    @property
    def scale(self) -> float:
        """Of the unit that its column has, or its row, or what is said small."""
        for head in (*self.heads[-1:], self._line[1] if self.tag.name == "td" else None, self.tag.small):
            units = UNIT.findall(head.get_text(" ")) if head else []
            if units:
                return UNITS[units[-1]]
        return 1.0

    @property
    def text(self) -> str:
        return text(self.tag)

    @property
    def width(self) -> str:
        return text(self.tag.small) if self.tag.small else ""


def is_width(said: str, width: float | None, scale: float = 1.0) -> bool:
    """Whether a half width is said as it is; one that would round to nothing is the least that can be said."""
    if said == TOO_FEW:
        return width is not None and width > 0.5
    least = re.fullmatch(r"± (0\.0*1)", said)
    is_less = width is not None and least is not None and 0 < width < float(least[1]) * scale
    return is_less or shows(said, width, scale)


def text(tag: Tag) -> str:
    """What is read, without what is said small and marks."""
    return " ".join("".join(one for one in tag.find_all(string=True) if one.parent.name not in ("small", "i")).split())


def cells(page: str) -> list[Cell]:
    """Every cell of a table's body that has a digit and is no name, and whatever else says which number it is."""
    soup = BeautifulSoup(page, "html.parser")
    for drawing in soup.find_all(("svg", "script", "style")):
        drawing.decompose()
    found = soup.select("tbody td:not(.word), [data-measure], [data-value-of]")
    return [Cell(one) for one in found if re.search(r"\d", one.get_text()) or one.get("data-measure")]


def shows(said: str, value: float | None, scale: float = 1.0) -> bool:
    """Whether a text is a number, rounded as the text has it; a dash is none."""
    if value is None or not math.isfinite(value):
        return said in ("", "–")
    number = NUMBER.match(said.removeprefix("± "))
    if number is None:
        return False
    unit = UNIT.search(said)
    size = (UNITS[unit[1]] if unit else scale) * 10.0 ** int(number[3] or 0)
    read = float(number[1].replace(",", "").replace("−", "-")) * size
    half = 0.5 * size * 10.0 ** -len(number[2] or "")
    return abs(read - value) <= half * (1 + 1e-6)
