"""One browser for all tests of this folder, gone before the next folder begins, and the pages they open.

A module names its pages in a fixture of its own, ``files``: name → file.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.browse import Opened, browser, executable, open_page

Open = Callable[..., Opened]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    if executable() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no Chromium is installed; with CI=true this test must run")
        pytest.skip("no Chromium is installed (chromium, chromium-browser or google-chrome in PATH)")
    with browser() as running:
        yield running


@pytest.fixture
def visit(chromium: Browser, files: dict[str, Path]) -> Iterator[Open]:
    """Open a page for one test, which may change it."""
    with ExitStack() as closing:
        yield functools.partial(_open, chromium, files, closing)


@pytest.fixture(scope="module")
def look(chromium: Browser, files: dict[str, Path]) -> Iterator[Open]:
    """Open a page once for all tests of a module that only look at it: to open it takes most of their time."""
    with ExitStack() as closing:
        there: dict[tuple[str, int, str], Opened] = {}

        def open_(name: str, width: int = 1200, scheme: str = "light") -> Opened:
            if (name, width, scheme) not in there:
                there[name, width, scheme] = _open(chromium, files, closing, name, width, scheme)
            return there[name, width, scheme]

        yield open_


def _open(
    chromium: Browser,
    files: dict[str, Path],
    closing: ExitStack,
    name: str,
    width: int = 1200,
    scheme: str = "light",
) -> Opened:
    opened = open_page(chromium, files[name], width, scheme)
    closing.callback(opened.page.context.close)
    return opened
