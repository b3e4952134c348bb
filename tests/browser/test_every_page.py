"""Every page in a browser: nothing over anything else, room for charts, on a desktop no table wider than its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.browse import open_page
from tests.browser.layout import at_widths, sideways, troubles
from tests.tiers import thorough
from tests.unit import subjects
from wulf.page.page import html

pytestmark = pytest.mark.browser

#: Of a telephone, and of a desktop. To open a page takes most of the time, so it is opened once.
WIDTHS = (390, 1200)
#: Titles of the tables that are wider than their place.
CLIPPED = """() => [...document.querySelectorAll(".scroll")]
  .filter((place) => place.scrollWidth > place.clientWidth + 1).map((place) => place.getAttribute("aria-label"))"""
#: Charts of which the legend leaves nothing: what is drawn is lower than two lines of text.
SQUEEZED = """() => [...document.querySelectorAll(".plot svg")].filter((svg) => svg.checkVisibility())
  .filter((svg) => Math.max(...[...svg.querySelectorAll(".background")]
    .filter((frame) => !frame.closest(".role-legend"))
    .map((frame) => frame.getBoundingClientRect().height)) < 30)
  .map((svg) => svg.getAttribute("aria-label"))"""


@pytest.mark.parametrize(
    ("name", "place"), [case if case[1] == 0 else thorough(*case) for case in subjects.CASES]
)
def test_a_page_fits_a_desktop_and_a_telephone(
    chromium: Browser, tmp_path: Path, name: str, place: int
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html(subjects.page(name, subjects.sample(name, place))), encoding="utf-8")
    opened = open_page(chromium, file, WIDTHS[0])
    try:
        for width in at_widths(opened, WIDTHS):
            assert sideways(opened, "html") <= 0
            assert not list(troubles(opened))
            assert opened.page.evaluate(SQUEEZED) == []
            assert width < 1000 or opened.page.evaluate(CLIPPED) == []
    finally:
        opened.page.context.close()
