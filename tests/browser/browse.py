"""A headless Chromium without a network, and what the tests ask of a page in it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Route, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
LOCAL = ("file:", "data:", "blob:")
DRAWN = """() => {
  const figures = [...document.querySelectorAll("figure.chart")].map((figure) => figure.id);
  return !!window.wulf && figures.every((id) => id in window.wulf.views);
}"""


def executable() -> str | None:
    """Path of a Chromium, None when there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable(),
            # Debian's start script asks for rasterisation on the GPU, which here is a slow imitation of one.
            args=["--no-sandbox", "--disable-gpu", "--disable-gpu-rasterization", "--disable-dev-shm-usage"],
        )
        yield chromium
        chromium.close()


@dataclass
class Opened:
    """A page with everything it complained about and asked for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def settle(self, timeout_s: float = 60.0) -> None:
        """Wait until every chart is drawn.  (The page forbids `eval`, which Playwright's own waiting needs.)"""
        end = time.monotonic() + timeout_s
        while not self.page.evaluate(DRAWN):
            if time.monotonic() > end:
                raise AssertionError(f"charts were not drawn within {timeout_s} s; errors: {self.errors}")
            time.sleep(0.05)

    def data(self, chart: str, dataset: str = "main") -> list[dict[str, Any]]:
        """Rows of a dataset in the live Vega view."""
        script = "([chart, dataset]) => wulf.views[chart].data(dataset).map((row) => ({...row}))"
        rows: list[dict[str, Any]] = self.page.evaluate(script, [chart, dataset])
        return rows

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        wide: int = self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        return wide

    def shot(self, name: str) -> None:
        """Take a picture of the page to look at, if asked for (``WULF_PICTURES=1``): it takes longer than the tests."""
        if os.environ.get("WULF_PICTURES"):
            self.page.screenshot(path=artefacts() / f"{name}.png", full_page=True)


def open_page(
    chromium: Browser, path: Path, width: int = 1200, scheme: str = "light", height: int = 900
) -> Opened:
    """Open a report in a fresh profile that cannot reach any network, and wait for its charts."""
    opened = open_file(chromium, path, width, scheme, height)
    opened.settle()
    return opened


def open_file(
    chromium: Browser, path: Path, width: int = 1200, scheme: str = "light", height: int = 900
) -> Opened:
    """Open a file in a fresh profile that cannot reach any network."""
    context: BrowserContext = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, offline=True, accept_downloads=True
    )
    opened = Opened(context.new_page())
    opened.page.on(
        "console", lambda m: opened.errors.append(m.text) if m.type in ("error", "warning") else None
    )
    opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.page.on("dialog", lambda dialog: (opened.errors.append("dialog"), dialog.dismiss()))

    def gate(route: Route) -> None:
        opened.requests.append(route.request.url)
        if route.request.url.startswith(LOCAL):
            route.continue_()
        else:
            route.abort()

    context.route("**/*", gate)
    opened.page.goto(path.as_uri())
    return opened


def artefacts() -> Path:
    folder = Path(os.environ.get("WULF_ARTEFACTS", "artefacts")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder
