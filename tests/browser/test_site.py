"""The documentation site, read from a disk without a network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import browse
from wulf.base import catalogue

# All of them in one worker of pytest-xdist: two must not make the site at the same time.
pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site() -> Path:
    """Build it; a link to what is not there ends that."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs_site.py"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return ROOT / "build" / "site"


def test_everything_that_is_known_has_a_page(site: Path) -> None:
    kinds = {
        "knobs": set(catalogue.knobs()),
        "checks": set(catalogue.checks()) | set(catalogue.consistencies()),
        "causes": set(catalogue.signatures()) | set(catalogue.host_signatures()),
    }
    for directory, names in kinds.items():
        pages = {path.stem for path in (site / "docs/reference" / directory).glob("*.html")}
        assert pages == names | {"index"}
    assert (site / "docs/reference/operations/tcp_rr.html").is_file()


def test_it_is_searched_without_a_network(site: Path, chromium: Browser) -> None:
    opened = browse.open_file(chromium, site / "docs" / "explanation" / "compared.html")
    opened.page.fill("input.md-search__input", "InterruptThrottleRate")
    found = opened.page.locator(".md-search-result__item")
    expect(found.first).to_be_visible(timeout=30_000)
    assert any("nic.InterruptThrottleRate" in text for text in found.all_inner_texts())
    assert [url for url in opened.requests if not url.startswith(browse.LOCAL)] == []


def test_pages_are_no_wider_than_the_window(site: Path, chromium: Browser) -> None:
    for page in (
        "index",
        "docs/reference/knobs/nic.rx_usecs",
        "docs/studies/latency-by-size",
        "bench/RESULTS",
        "bench/LOG",
    ):
        opened = browse.open_file(chromium, site / f"{page}.html", width=500)
        assert opened.overflow() <= 0, page
