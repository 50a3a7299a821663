"""A real headless browser that looks at pages, and what is wrong with what it sees."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (390, 768, 1280, 1920)
SCHEMES = ("light", "dark")
SMALLEST_PX = 9.0

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""The browser of the system: that of playwright's own is not asked for."""

SEEN = """() => {
  const texts = [];
  const clip = (box, element) => {
    let [l, t, r, b] = [box.left, box.top, box.right, box.bottom];
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      const how = getComputedStyle(e);
      if (how.overflowX === "visible" && how.overflowY === "visible" || e instanceof SVGElement) continue;
      const edge = e.getBoundingClientRect();
      [l, t, r, b] = [Math.max(l, edge.left), Math.max(t, edge.top), Math.min(r, edge.right), Math.min(b, edge.bottom)];
    }
    return [l, t, r, b];
  };
  const add = (element, box, px, said, svg) => {
    const [l, t, r, b] = clip(box, element);
    if (r - l < 1 || b - t < 1) return;
    const edge = svg ? svg.getBoundingClientRect() : {left: 0, right: document.documentElement.clientWidth};
    texts.push({
      said, px, l, t: t + scrollY, r, b: b + scrollY, drawn: !!svg,
      outside: box.left < edge.left - 1 || r > edge.right + 1 ||
        !!svg && (box.top < edge.top - 1 || box.bottom > edge.bottom + 1),
    });
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) {
    const element = node.parentElement, said = node.data.trim();
    if (!said || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: false })) continue;
    let px = parseFloat(getComputedStyle(element).fontSize);
    const drawn = element.closest("svg");
    if (drawn) {
      const to = element.closest("text").getScreenCTM();
      add(element, element.getBoundingClientRect(), px * Math.hypot(to.a, to.b), said, drawn);
      continue;
    }
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) add(element, box, px, said, null);
  }
  return { texts, wide: document.documentElement.scrollWidth, seen: document.documentElement.clientWidth };
}"""


@contextmanager
def started() -> Iterator[Any]:
    """The browser, or the test is left out."""
    if CHROMIUM is None:
        pytest.skip("left out: no chromium to look at pages with")
    from playwright.sync_api import sync_playwright

    os.environ.setdefault("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, page: Path) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what it complains of; nothing can be fetched."""
    context = browser.new_context(offline=True)
    view = context.new_page()
    complaints: list[str] = []
    view.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    view.on("pageerror", lambda error: complaints.append(str(error)))
    view.on("requestfailed", lambda request: complaints.append(request.url))
    view.goto(page.as_uri())
    yield view, complaints
    context.close()


def faults(browser: Any, page: Path) -> list[str]:
    """What is wrong with a page as somebody sees it, at any width and in either scheme."""
    with opened(browser, page) as (view, found):
        # Drawings that are not drawn before they are scrolled to have no place yet.
        view.add_style_tag(content="* { content-visibility: visible !important; }")
        view.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        for width in WIDTHS:
            view.set_viewport_size({"width": width, "height": 900})
            found += [f"{width} px: {what}" for what in _seen(view)]
        # Contrast hangs on the scheme and layout on the width: each once, on a phone and on a desk.
        for width, scheme in zip((WIDTHS[0], WIDTHS[-2]), SCHEMES, strict=True):
            view.set_viewport_size({"width": width, "height": 900})
            view.emulate_media(color_scheme=scheme)
            found += [f"{width} px, {scheme}: {what}" for what in _inaccessible(view)]
    return found


def _seen(view: Any) -> list[str]:
    seen = view.evaluate(SEEN)
    texts = seen["texts"]
    found = [f"scrolls sideways: {seen['wide']} px"] if seen["wide"] > seen["seen"] else []
    found += [f"too small, {t['px']:.1f} px: {t['said']}" for t in texts if t["px"] < SMALLEST_PX]
    found += [f"cut off: {t['said']}" for t in texts if t["outside"]]
    found += [f"{a['said']!r} over {b['said']!r}" for a, b in overlapping(texts)]
    return list(dict.fromkeys(found))


def _inaccessible(view: Any) -> list[str]:
    """What axe-core finds, of WCAG 2.2 AA and of good practice."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(view, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:120]} ({node['any'][0]['message'][:120] if node['any'] else rule['help']})"
        for rule in found
        for node in rule["nodes"]
    ]


def overlapping(texts: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Pairs of texts that are printed over each other; lines are higher than their letters, so their edges may."""
    order = sorted(texts, key=lambda t: t["t"])
    found = []
    for k, one in enumerate(order):
        for other in order[k + 1 :]:
            slack = 0.3 * min(one["b"] - one["t"], other["b"] - other["t"])
            if other["t"] > one["b"] - slack:
                break
            beside = 1.5
            if other["l"] < one["r"] - beside and one["l"] < other["r"] - beside:
                found.append((one, other))
    return found
