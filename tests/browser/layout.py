"""What a reader trips over on a page: text over text, and what sticks out of its place."""

from __future__ import annotations

from collections.abc import Iterator

from tests.browser.browse import Opened

WIDTHS = (360, 768, 1280, 1920)
#: Pieces of text that cover each other by more than two pixels both ways; drawings have their own test.
_OVERPRINTED = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = [];
  const clipped = (element, box) => {
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      if (getComputedStyle(at).overflowX === "visible") continue;
      const frame = at.getBoundingClientRect();
      box = { left: Math.max(box.left, frame.left), right: Math.min(box.right, frame.right),
        top: Math.max(box.top, frame.top), bottom: Math.min(box.bottom, frame.bottom) };
    }
    return box;
  };
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.closest("svg, script, style, noscript, .sr, .skip")) continue;
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    for (const whole of range.getClientRects()) {
      const box = clipped(element, whole);
      if (box.right - box.left > 2 && box.bottom - box.top > 2) seen.push({ box, element, text: text.slice(0, 40) });
    }
  }
  seen.sort((a, b) => a.box.top - b.box.top);
  const found = [];
  seen.forEach((a, i) => {
    for (let j = i + 1; j < seen.length && seen[j].box.top < a.box.bottom - 2; j += 1) {
      const b = seen[j];
      const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (a.element !== b.element && across > 2 && down > 4) found.push(`${a.text} | ${b.text}`);
    }
  });
  return found.slice(0, 10);
}"""
#: Boxes whose content is wider than they are and that do not show how to get at the rest.
_CUT = """() => [...document.querySelectorAll("body *")]
  .filter((element) => !element.closest("svg, .sr, .skip") && element.clientWidth > 0)
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .filter((element) => {
    const style = getComputedStyle(element);
    const scrolls = ["auto", "scroll"].includes(style.overflowX) && element.tabIndex === 0;
    return !(scrolls && style.backgroundImage !== "none");
  })
  .map((element) => `${element.tagName}.${element.className} ${element.textContent.trim().slice(0, 40)}`)
  .slice(0, 10)"""


def at_widths(opened: Opened, widths: tuple[int, ...] = WIDTHS) -> Iterator[int]:
    """Give the window these widths, one after the other."""
    for width in widths:
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.settle()
        yield width


def troubles(opened: Opened) -> list[str]:
    """What is printed over something else or is cut, in words."""
    overprinted = [f"over each other: {words}" for words in opened.page.evaluate(_OVERPRINTED)]
    return overprinted + [f"cut: {words}" for words in opened.page.evaluate(_CUT)]


def sideways(opened: Opened, selector: str) -> int:
    """Return by how many pixels a box must be scrolled sideways to see all of it."""
    hidden: int = opened.page.evaluate(
        "(selector) => Math.max(...[...document.querySelectorAll(selector)].map((e) => e.scrollWidth - e.clientWidth))",
        selector,
    )
    return hidden


def out_of_sight(opened: Opened, selector: str) -> list[str]:
    """Return the text of what must be scrolled sideways to be seen."""
    hidden: list[str] = opened.page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].filter((element) => {
          const box = element.getBoundingClientRect();
          const frame = (element.closest(".scroll") || document.documentElement).getBoundingClientRect();
          return box.left < frame.left - 1 || box.right > frame.right + 1 || box.right > innerWidth;
        }).map((element) => element.textContent.trim())""",
        selector,
    )
    return hidden
