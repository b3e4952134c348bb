"""A legend names what its chart shows and nothing else, a caption no mark, line or shade that is not there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit import subjects
from tests.unit.predict_fixture import prediction, valued
from wulf.base.records import Estimate
from wulf.page import blocks
from wulf.page.drawing import narrow, spec
from wulf.page.parts import Figure
from wulf.tools.predict.page import figures, timelines
from wulf.tools.worth.page import figures as worth_figures

WHY = "RUN does not tell it"


def drawn_figures(page: blocks.Page) -> list[Figure]:
    inside = [
        block
        for part in (*page.head, *page.sections)
        for block in (part.blocks if hasattr(part, "blocks") else [part])
    ]
    return [block for block in inside if isinstance(block, Figure)]


def encodings(drawn: Any) -> Iterator[dict[str, Any]]:
    if isinstance(drawn, list):
        for part in drawn:
            yield from encodings(part)
    elif isinstance(drawn, dict):
        if "field" in drawn and isinstance((drawn.get("scale") or {}).get("domain"), list):
            yield drawn
        for part in drawn.values():
            yield from encodings(part)


def unseen(figure: Figure) -> set[str]:
    """Return what legends name and no data of the figure has."""
    seen: dict[str, set[Any]] = {}
    for variant in figure.variants:
        for columns in variant.datasets.values():
            for column, values in columns.items():
                seen.setdefault(column, set()).update(values)
    named = [
        one
        for drawn in (spec(figure), narrow(figure))
        for one in encodings(drawn)
        if one["type"] == "nominal" and one.get("legend", {}) is not None and one["field"] in seen
    ]
    named = [one for one in named if "axis" not in one and "sort" not in one]
    return {
        value
        for one in named
        for value in one.get("legend", {}).get("values", one["scale"]["domain"])
        if value not in seen[one["field"]]
    }


@pytest.mark.parametrize(("name", "place"), subjects.CASES)
def test_legends_name_what_the_chart_shows(name, place):
    for figure in drawn_figures(subjects.page(name, subjects.sample(name, place))):
        assert not unseen(figure), figure.id


def test_a_legend_of_verdicts_has_those_that_came_out():
    of = prediction()
    one = figures.changes(replace(of, scenarios=[], bound=of.bound))
    assert one is None
    for kept in of.scenarios:
        drawn = spec(figures.changes(replace(of, scenarios=[kept])))
        (colour,) = {tuple(one["legend"]["values"]) for one in encodings(drawn) if one["field"] == "verdict"}
        assert set(colour) == {kept.verdict, of.bound.verdict}
    networks = valued().networks
    for kept in networks:
        drawn = spec(worth_figures.net(replace(valued(), networks=[kept])))
        found = [one["legend"]["values"] for one in encodings(drawn) if one["field"] == "verdict"]
        assert found and all(values == [kept.verdict] for values in found)


def test_a_timeline_without_waiting_has_no_waiting_in_its_legend():
    of = prediction()
    rows = [
        replace(
            row, computing=[1.0] * len(row.computing), messages=[0.0] * len(row.messages), waiting=[0.0] * 20
        )
        for row in of.timelines[0].rows
    ]
    (figure, *_) = timelines.figures(replace(of, timelines=[replace(of.timelines[0], rows=rows)]))
    found = [one["legend"]["values"] for one in encodings(spec(figure)) if one["field"] == "activity"]
    assert found == [["computing"]]


def bare(one: Estimate) -> Estimate:
    """Return an estimate without a width."""
    return replace(one, low=one.value, high=one.value)


@pytest.mark.parametrize(("told", "borne", "wide"), list(itertools.product((True, False), repeat=3)), ids=str)
def test_captions_of_curves_name_the_marks_that_are_there(told, borne, wide):
    of = prediction()
    of = replace(
        of,
        not_told={} if told else {"latency": WHY, "bandwidth": WHY},
        tolerance=[
            replace(one, latency=(one.latency if wide else bare(one.latency)) if borne else None)
            for one in of.tolerance
        ],
        bandwidth_need=[
            replace(one, bandwidth=(one.bandwidth if wide else bare(one.bandwidth)) if borne else None)
            for one in of.bandwidth_need
        ],
    )
    for draw, parameter in ((figures.curve, "latency"), (figures.by_bandwidth, "bandwidth")):
        (variant,) = draw(of).variants
        labels = variant.datasets["marks"]["label"]
        assert (f"the {parameter} now" in variant.caption) == ("now" in labels) == told
        assert ("so much longer" in variant.caption) == any(one != "now" for one in labels) == borne
        assert ("shaded" in variant.caption) == (borne and wide)
        assert ("Marks" in variant.caption) == bool(labels)


@pytest.mark.parametrize("wide", [True, False])
def test_captions_name_lines_where_there_are_some(wide):
    of, worth = prediction(), valued()
    if not wide:
        of = replace(
            of,
            scenarios=[replace(one, change=bare(one.change)) for one in of.scenarios],
            bound=replace(of.bound, change=bare(of.bound.change)),
        )
        worth = replace(
            worth,
            networks=[
                replace(
                    one, net=bare(one.net), break_even_port=bare(one.break_even_port), price=bare(one.price)
                )
                for one in worth.networks
            ],
        )
    for figure in (figures.changes(of), worth_figures.net(worth), worth_figures.ports(worth)):
        assert ("intervals" in figure.variants[0].caption) == wide
