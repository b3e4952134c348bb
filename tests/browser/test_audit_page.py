"""The audit page: findings can be sieved and searched, and the matrix shows who differs."""

from __future__ import annotations

from tests.unit import report_fixture
from wulf.report import html


def test_findings_by_severity_and_word(chromium, tmp_path):
    from tests.browser.browse import open_page

    page = tmp_path / "audit.html"
    page.write_text(html.render_audit(report_fixture.audit()), encoding="utf-8")
    opened = open_page(chromium, page, 1200, "light")
    try:
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
        assert "Another MTU" in shown.first.inner_text()
        opened.page.locator("input[name=search]").fill("no such words")
        assert shown.count() == 0
        assert opened.page.locator("table.alike td.odd").count() >= 1
        assert opened.errors == []
    finally:
        opened.page.context.close()


def test_a_narrow_page_does_not_scroll_sideways(chromium, tmp_path):
    from tests.browser.browse import open_page

    page = tmp_path / "audit.html"
    page.write_text(html.render_audit(report_fixture.audit()), encoding="utf-8")
    for width in (360, 1200):
        opened = open_page(chromium, page, width, "dark")
        wide = opened.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        opened.page.context.close()
        assert wide <= 0
