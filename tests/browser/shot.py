"""Make the picture of a report for the documentation: ``python -m tests.browser.shot REPORT.html PICTURE.png``.

Without arguments the made-up run of the tests is shown.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser.browse import browser, open_page
from tests.unit import report_fixture
from wulf.report import html

PICTURE = Path("docs/images/report.png")


def main(argv: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        page = Path(argv[0]) if argv else Path(folder) / "report.html"
        if not argv:
            page.write_text(html.render(*report_fixture.make()), encoding="utf-8")
        picture = Path(argv[1]) if len(argv) > 1 else PICTURE
        picture.parent.mkdir(parents=True, exist_ok=True)
        opened = open_page(chromium, page.resolve(), width=1200, height=1560)
        opened.page.screenshot(path=picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
