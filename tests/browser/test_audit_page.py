"""The audit page: findings can be sieved and searched, and it shows who differs, at every width."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.browser.layout import at_widths, out_of_sight, troubles
from tests.tiers import thorough
from tests.unit import report_fixture
from wulf.page.page import html
from wulf.page.sections import findings as report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("audit")
    audits = {
        "small": report_fixture.audit(),
        "cluster": report_fixture.cluster_audit(32),
        "large": report_fixture.cluster_audit(500),
    }
    for name, audit in audits.items():
        (folder / f"{name}.html").write_text(html(report.page(audit)), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in audits}


def test_findings_by_severity_and_word(visit: Open) -> None:
    opened = visit("small")
    shown = opened.page.locator(".findings > li:visible")
    total = shown.count()
    assert total >= 4
    opened.page.locator("input[name=severity][value=info]").uncheck()
    fewer = shown.count()
    assert 0 < fewer < total
    assert opened.page.locator(".sieve .left").inner_text() == f"{fewer} of {total} findings shown"
    opened.page.locator("input[name=severity][value=info]").check()
    opened.page.locator("input[name=search]").fill("node02 another")
    assert shown.count() == 1
    assert "MTU differs" in shown.first.inner_text()
    opened.page.locator("input[name=search]").fill("no such words")
    assert shown.count() == 0
    assert opened.errors == []


@pytest.mark.parametrize(
    ("name", "scheme"), [thorough("small", "dark"), ("cluster", "light"), thorough("large", "dark")]
)
def test_every_width_can_be_read(visit: Open, name: str, scheme: str) -> None:
    opened = visit(name, scheme=scheme)
    for width in at_widths(opened):
        opened.shot(f"audit-{name}-{width}-{scheme}")
        assert opened.overflow() <= 0, width
        assert troubles(opened) == [], width


@pytest.mark.parametrize("name", ["small", thorough("cluster"), thorough("large")])
def test_what_differs_is_seen_without_scrolling(visit: Open, name: str) -> None:
    opened = visit(name)
    odd = opened.page.locator(".alike .odd")
    assert odd.count() >= 2
    assert "nic.mtu" in " ".join(odd.all_inner_texts())
    for width in at_widths(opened):
        assert out_of_sight(opened, ".alike .odd") == [], width


def test_what_no_node_told_is_said_once(visit: Open) -> None:
    opened = visit("cluster")
    assert "blas" not in opened.page.locator(".alike").inner_text()
    assert "blas" in opened.page.locator(".not-told").inner_text()
