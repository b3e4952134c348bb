"""One browser for all tests of this folder, gone before the next folder begins, and the pages they open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.browse import Opened, browser, executable, open_page
from tests.unit import report_fixture
from wulf.page.page import html
from wulf.tools.compare import page as compare
from wulf.tools.measure import page as run

Open = Callable[..., Opened]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if executable() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no Chromium is installed; with CI=true this test must run")
        pytest.skip("no Chromium is installed (chromium, chromium-browser or google-chrome in PATH)")
    with browser() as running:
        yield running


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files of a large run, a hostile one, an empty one and a comparison."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "large": html(run.build(*report_fixture.make(), report_fixture.audit())),
        "hostile": html(run.build(*report_fixture.make(ops=("tcp_rr",), pairs=6, sizes=10, hostile=True))),
        "empty": html(run.build(*report_fixture.empty())),
        "comparison": html(compare.build(report_fixture.comparison(hostile=True))),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture
def visit(chromium: Browser, pages: dict[str, Path]) -> Iterator[Open]:
    opened: list[Opened] = []

    def open_(name: str, width: int = 1200, scheme: str = "light") -> Opened:
        opened.append(open_page(chromium, pages[name], width, scheme))
        return opened[-1]

    yield open_
    for page in opened:
        page.page.context.close()
