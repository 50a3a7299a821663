"""The little of Markdown that words of a study use, as HTML: paragraphs, lists, emphasis, code, links, tables."""

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")
_INLINE = (
    (re.compile(r"\*\*([^*]+)\*\*"), r"<b>\1</b>"),
    (re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)"), r"<i>\1</i>"),
    (re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)"), r'<a href="\2">\1</a>'),
    # What a relative link means depends on where the words stand: on a page they are words alone.
    (re.compile(r"\[([^\]]+)\]\([^)\s]+\)"), r"\1"),
)
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+(.*)")


def html(text: str) -> Markup:
    """Paragraphs are apart by blank lines; every other character is what it is."""
    blocks = re.split(r"\n\s*\n", text.strip()) if text.strip() else []
    return Markup("\n").join(_block(block.splitlines()) for block in blocks)


def inline(text: str) -> Markup:
    """Emphasis, code and links of one line."""
    found = str(escape(" ".join(text.replace("\0", " ").split())))
    codes = [match[1] for match in _CODE.finditer(found)]
    found = _CODE.sub("\0", found)  # what stands in code means nothing
    for pattern, form in _INLINE:
        found = pattern.sub(form, found)
    for code in codes:
        found = found.replace("\0", f"<code>{code}</code>", 1)
    return Markup(found)


def _block(lines: Sequence[str]) -> Markup:
    first = lines[0]
    if first.startswith("#"):
        return Markup("<h3>{}</h3>").format(inline(first.lstrip("# ")))
    if _ITEM.fullmatch(first):
        return _list(lines)
    if first.startswith("|") and len(lines) > 1:
        return _table(lines)
    return Markup("<p>{}</p>").format(inline(" ".join(lines)))


def _list(lines: Sequence[str]) -> Markup:
    items: list[str] = []
    for line in lines:
        found = _ITEM.fullmatch(line)
        if found:
            items.append(found[1])
        else:
            items[-1] += " " + line.strip()
    tag = "ol" if lines[0].strip()[0].isdigit() else "ul"
    body = Markup("").join(Markup("<li>{}</li>").format(inline(item)) for item in items)
    return Markup(f"<{tag}>{{}}</{tag}>").format(body)


def _table(lines: Sequence[str]) -> Markup:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    kept = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    body = Markup("").join(_row(row, "th" if k == 0 else "td") for k, row in enumerate(kept))
    return Markup('<div class="scroll"><table class="text">{}</table></div>').format(body)


def _row(cells: Sequence[str], tag: str) -> Markup:
    said = Markup("").join(Markup(f"<{tag}>{{}}</{tag}>").format(inline(cell)) for cell in cells)
    return Markup("<tr>{}</tr>").format(said)
