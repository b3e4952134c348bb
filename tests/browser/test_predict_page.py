"""The pages of a prediction and of what networks are worth: readable at every width, charts with their data."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.browse import open_page
from tests.browser.layout import at_widths, troubles
from tests.unit.predict_fixture import prediction, valued
from wulf.report import predict, worth

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("predict")
    (folder / "predict.html").write_text(predict.render_html(prediction()), encoding="utf-8")
    (folder / "worth.html").write_text(worth.render_html(valued()), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("predict", "worth")}


@pytest.mark.parametrize("name", ["predict", "worth"])
def test_nothing_is_cut_or_overprinted_at_any_width(
    chromium: Browser, files: dict[str, Path], name: str
) -> None:
    opened = open_page(chromium, files[name], 1200, "light")
    for width in at_widths(opened):
        assert troubles(opened) == [], width
    opened.page.context.close()


def test_charts_have_the_data_of_the_records(chromium: Browser, files: dict[str, Path]) -> None:
    opened = open_page(chromium, files["predict"], 1200, "light")
    shown = {row["network"]: row["change"] for row in opened.data("changes")}
    for one in prediction().scenarios:
        assert shown[one.name] == pytest.approx(100 * (one.change.value - 1), rel=1e-5)
    assert len(opened.data("curve", "marks")) == len(prediction().tolerance)
    opened.page.context.close()
