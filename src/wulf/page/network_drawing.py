"""A fabric, drawn: nodes below, switches above by how far they are, links between, what is bad in red.  Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from wulf.base.text import printable
from wulf.page.chart_libraries import altair as alt
from wulf.page.drawing import Layer
from wulf.page.parts import Chart, Columns, Drawing, Figure, Variant

#: As the verdicts are: nothing wrong, suffers.
_STATES, _COLOURS = ["as usual", "bad"], ["#8d8a80", "#c2360f"]
_TIER = 110
#: Where names are written in different ways → its data.
_ROWS = {"nodes": "datum.y == 0", "top": "datum.y == {top}", "between": "datum.y > 0 && datum.y < {top}"}
#: Names are written aslant from so many in a row on, where there is little room, too; more than the most do not fit
#: side by side.
_CROWDED, _CROWDED_IF_NARROW, MOST_IN_A_ROW = 10, 4, 64


def _fabric(figure: Figure, crowded: int = _CROWDED) -> Layer:
    links, places = alt.Chart(alt.NamedData("links")), alt.Chart(alt.NamedData("main"))
    x = alt.X("x:Q", axis=None, scale=alt.Scale(zero=False, padding=40))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(zero=False, padding=40))
    any_bad = any(_STATES[1] in rows["state"] for rows in figure.variants[0].datasets.values())
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=_STATES, range=_COLOURS),
        legend=alt.Legend(title=None, orient="top") if any_bad else None,
    )
    width = alt.condition("datum.state == 'bad'", alt.value(3), alt.value(1))
    lines = links.mark_rule().encode(
        x=x,
        x2=alt.X2("x2:Q"),
        y=y,
        y2=alt.Y2("y2:Q"),
        color=colour,
        strokeWidth=width,
        tooltip=[alt.Tooltip("name:N", title="link"), alt.Tooltip("remark:N", title=" ")],
    )
    marks = places.mark_point(filled=True, size=160, opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape(
            "kind:N",
            scale=alt.Scale(domain=["node", "switch"], range=["circle", "square"]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=[alt.Tooltip("name:N"), alt.Tooltip("remark:N", title=" ")],
    )
    said = [
        _said(places, figure, row, crowded).encode(x=x, y=y, text=alt.Text("name:N"), color=colour)
        for row in _ROWS
    ]
    return alt.layer(lines, marks, *said)


def _said(places: alt.Chart, figure: Figure, row: str, crowded: int) -> alt.Chart:
    """Return the names of a row where no link passes: below nodes, above the highest switches, beside the others."""
    rows = _rows(figure)
    aslant = max(map(rows.count, set(rows))) > crowded and row != "between"
    where: dict[str, Any] = {
        "nodes": {"dy": 18, "baseline": "top", "align": "right" if aslant else "center"},
        "top": {"dy": -14, "baseline": "bottom", "align": "left" if aslant else "center"},
        "between": {"dx": 12, "dy": 6, "baseline": "middle", "align": "left"},
    }[row]
    there = places.transform_filter(_ROWS[row].format(top=max(rows)))
    said: alt.Chart = there.mark_text(**where, angle=315 if aslant else 0, fontSize=11)
    return said


def _rows(figure: Figure) -> list[int]:
    return [int(row) for row in figure.variants[0].datasets["main"]["y"] if row is not None]


def _high(figure: Figure) -> int:
    return 90 + _TIER * len(set(_rows(figure)))


def _narrow(figure: Figure) -> Layer:
    return _fabric(figure, _CROWDED_IF_NARROW)


_CHART = Chart("fabric", Drawing(_fabric, _high), narrow=Drawing(_narrow, _high))


@dataclass(frozen=True)
class Fabric:
    """Nodes, switches and the links between them."""

    #: Node or switch → its row from below, nodes in row 0.
    tiers: Mapping[str, int]
    #: Both ends of a link → a remark that is shown when it is pointed at.
    links: Mapping[frozenset[str], str]
    #: What a switch is called, where that is not what it is known by.
    names: Mapping[str, str] = field(default_factory=dict)
    #: The same of nodes and switches.
    remarks: Mapping[str, str] = field(default_factory=dict)
    #: Switches, and pairs of them, that make something worse.
    culprits: Set[frozenset[str]] = frozenset()

    def call(self, place: str) -> str:
        """Return how a node or a switch is called."""
        return printable(self.names.get(place, place), 40)

    def is_bad(self, part: frozenset[str]) -> bool:
        """Say whether a switch or a link is bad: a link also where a switch at its end is."""
        return part in self.culprits or any(frozenset((end,)) in self.culprits for end in part)

    def figure(self, title: str, summary: str, caption: str) -> Figure | None:
        """Return the drawing; None where there are no switches, or too many side by side."""
        rows = Counter(self.tiers.values())
        if len(rows) < 2 or max(rows.values()) > MOST_IN_A_ROW:
            return None
        places = _places(self.tiers, self.links)
        datasets = {"main": self._places(places), "links": self._links(places)}
        return Figure(
            id="fabric",
            chart=_CHART,
            title=title,
            x_title="",
            y_title="",
            variants=(Variant(label="", datasets=datasets, summary=summary, caption=caption),),
            logarithmic=False,
        )

    def _places(self, places: Mapping[str, float]) -> Columns:
        return {
            "name": [self.call(place) for place in places],
            "kind": ["switch" if self.tiers[place] else "node" for place in places],
            "state": [self._state(frozenset((place,))) for place in places],
            "remark": [self.remarks.get(place, "") for place in places],
            "x": list(places.values()),
            "y": [self.tiers[place] for place in places],
        }

    def _links(self, places: Mapping[str, float]) -> Columns:
        ends = [sorted(link, key=self.tiers.__getitem__) for link in self.links]
        return {
            "name": [" – ".join(map(self.call, link)) for link in ends],
            "remark": list(self.links.values()),
            "state": [self._state(link) for link in self.links],
            "x": [places[link[0]] for link in ends],
            "y": [self.tiers[link[0]] for link in ends],
            "x2": [places[link[-1]] for link in ends],
            "y2": [self.tiers[link[-1]] for link in ends],
        }

    def _state(self, part: frozenset[str]) -> str:
        return "bad" if self.is_bad(part) else "as usual"


def _places(tiers: Mapping[str, int], links: Iterable[frozenset[str]]) -> dict[str, float]:
    """Return where each stands in its row, from 0 to 1: those below each other that are linked."""
    found: dict[str, float] = {}
    beside: dict[str, set[str]] = defaultdict(set)
    for link in links:
        for one in link:
            beside[one] |= link - {one}
    for tier in sorted(set(tiers.values())):
        row = [place for place, own in tiers.items() if own == tier]
        row.sort(key=lambda place: (_middle(found, beside[place]), place))
        if tier == 0:
            # Nodes of one switch stand together.
            row.sort(
                key=lambda place: (
                    min((end for end in beside[place] if tiers.get(end) == 1), default=""),
                    place,
                )
            )
        found |= {place: (number + 0.5) / len(row) for number, place in enumerate(row)}
    return found


def _middle(found: Mapping[str, float], beside: Iterable[str]) -> float:
    known: Sequence[float] = [found[place] for place in beside if place in found]
    return round(sum(known) / len(known), 6) if known else 0.5
