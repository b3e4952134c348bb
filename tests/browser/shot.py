"""Make a picture for the documentation: ``python -m tests.browser.shot report|audit RUN PICTURE.png``.

`report` shows the page of a run, `audit` what a tuning run's first audit found.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.browser.browse import browser, open_page
from wulf.base.store.tuning import load_tuning
from wulf.page.page import html
from wulf.page.sections import findings as report

WIDTH, HEIGHT = 1200, 1560


def audit_page(run: Path, folder: Path) -> Path:
    """Write the page of the audit with which a tuning run began."""
    audit = load_tuning(run).audit_before
    assert audit is not None
    page = folder / "audit.html"
    page.write_text(html(report.page(audit)), encoding="utf-8")
    return page


def main(argv: list[str]) -> int:
    kind, run, picture = argv[0], Path(argv[1]), Path(argv[2])
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        page = audit_page(run, Path(folder)) if kind == "audit" else run / "report.html"
        opened = open_page(chromium, page.resolve(), width=WIDTH, height=HEIGHT)
        opened.page.screenshot(path=picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
