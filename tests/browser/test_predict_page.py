"""The pages of a prediction and of what networks are worth: readable at every width, charts with their data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.browser.layout import at_widths, troubles
from tests.unit.predict_fixture import contention, prediction, valued
from wulf.page.page import html
from wulf.tools.predict import page
from wulf.tools.worth import page as worth

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("predict")
    (folder / "predict.html").write_text(html(page.build(prediction())), encoding="utf-8")
    shared = prediction(contention(beside=("md.wtrace", "fft.wtrace")))
    (folder / "contended.html").write_text(html(page.build(shared)), encoding="utf-8")
    (folder / "worth.html").write_text(html(worth.build(valued())), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("predict", "contended", "worth")}


@pytest.mark.parametrize("name", ["predict", "contended", "worth"])
def test_nothing_is_cut_or_overprinted_at_any_width(visit: Open, name: str) -> None:
    opened = visit(name)
    for width in at_widths(opened):
        assert troubles(opened) == [], width


def test_charts_have_the_data_of_the_records(look: Open) -> None:
    opened = look("predict")
    of = prediction()
    shown = {row["network"]: row["change"] for row in opened.data("changes")}
    for one in (*of.scenarios, of.bound):
        assert shown[one.name] == pytest.approx(100 * (one.change.value - 1), rel=1e-5)
    # Where it is now, and what it bears.
    assert [row["label"] for row in opened.data("curve", "marks")] == ["now", "+1%", "+2%", "+5%"]
    marks = {row["label"]: row for row in opened.data("by-bandwidth", "marks")}
    assert marks["now"]["x"] == pytest.approx(of.bandwidth)
    assert marks["+5%"]["low"] < marks["+5%"]["x"] < marks["+5%"]["high"]


def test_before_and_after_have_one_scale_and_all_of_the_time(look: Open) -> None:
    opened = look("predict")
    of = {(one.network, one.part): one for one in prediction().timelines}
    for place, name in enumerate(("as it is", "25gbe-roce")):
        timeline = of[name, "whole"]
        drawn = opened.data(f"timeline-whole-{place}")
        spent = sum((row["end"] - row["begin"]) * abs(row["high"] - row["low"]) / 0.9 for row in drawn)
        cells = [
            value
            for row in timeline.rows
            for kind in (row.computing, row.messages, row.waiting)
            for value in kind
        ]
        assert spent == pytest.approx(sum(cells) * timeline.for_s / 20, rel=1e-4)
    ends = [
        opened.page.evaluate("id => wulf.views[id].scale('x').domain()[1]", f"timeline-whole-{place}")
        for place in (0, 1)
    ]
    assert ends[0] == ends[1]


def test_a_port_stands_beside_what_it_may_cost(look: Open) -> None:
    opened = look("worth")
    found = valued()
    for one in found.networks:
        may, costs = (row for row in opened.data("ports") if row["network"] == one.network)
        assert may["price"] == pytest.approx(one.break_even_port.value, rel=1e-4)
        assert costs["price"] * found.nodes == pytest.approx(one.price.value, rel=1e-4)
        assert may["low"] < may["price"] < may["high"] and costs["low"] < costs["price"] < costs["high"]
