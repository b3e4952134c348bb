"""The data of the drawing of a fabric."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from wulf.base.text import printable
from wulf.page.parts import Figure, Variant
from wulf.page.words import count
from wulf.tools.paths.page import charts
from wulf.tools.paths.record import Paths

#: More do not fit side by side.
MOST_IN_A_ROW = 64


def fabric(found: Paths) -> Figure | None:
    """Return the fabric as the flows' ways show it; None where no switch has answered, or there are too many."""
    names = {switch.address: switch.name for switch in found.switches}
    tiers = {switch.address: switch.hop for switch in found.switches} | dict.fromkeys(found.nodes, 0)
    if not names or max(Counter(tiers.values()).values()) > MOST_IN_A_ROW:
        return None
    flows, links = _passed(found)
    places = _places(tiers, links)
    bad = {tuple(way.hops) for culprit in found.culprits for way in culprit.ways}
    bad_links = {frozenset(way) for way in bad if len(way) > 1}
    bad_ones = {way[0] for way in bad if len(way) == 1}
    shown = [(link, passed) for link, passed in links.items() if all(end in places for end in link)]
    ends = [tuple(sorted(link, key=lambda end: tiers[end])) for link, _ in shown]

    def call(place: str) -> str:
        return printable(names.get(place, place), 40)

    return Figure(
        id="fabric",
        chart=charts.FABRIC,
        title="The fabric, as the ways of the flows show it",
        x_title="",
        y_title="",
        variants=(
            Variant(
                label="",
                datasets={
                    "main": {
                        "name": [call(place) for place in places],
                        "kind": ["node" if not tiers[place] else "switch" for place in places],
                        "state": ["bad" if place in bad_ones else "as usual" for place in places],
                        "flows": [flows[place] for place in places],
                        "x": [places[place] for place in places],
                        "y": [tiers[place] for place in places],
                    },
                    "links": {
                        "name": [" – ".join(map(call, link)) for link in ends],
                        "flows": [passed for _, passed in shown],
                        "state": [
                            "bad" if link in bad_links or link & bad_ones else "as usual" for link, _ in shown
                        ],
                        "x": [places[link[0]] for link in ends],
                        "y": [tiers[link[0]] for link in ends],
                        "x2": [places[link[-1]] for link in ends],
                        "y2": [tiers[link[-1]] for link in ends],
                    },
                },
                summary=f"{count(len(found.nodes), 'node')}, {count(len(names), 'switch', 'switches')} that answered, "
                f"{count(len(shown), 'link')} that flows passed; bad: {_listed(map(call, bad_ones)) or 'no switch'}.",
                caption="Switches that do not answer are left out. A link is red if it or a switch at its end is bad.",
            ),
        ),
        logarithmic=False,
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _passed(found: Paths) -> tuple[Counter[str], dict[frozenset[str], int]]:
    """Return how many flows pass each switch and node, and each link, in either direction."""
    places: Counter[str] = Counter()
    links: Counter[frozenset[str]] = Counter()
    for flow in found.seen:
        for hops, (first, last) in ((flow.out, flow.nodes), (flow.back, flow.nodes[::-1])):
            if not hops:
                continue
            way = [first, *hops, last]
            places.update(hop for hop in way if hop is not None)
            links.update(
                frozenset((one, other))
                for one, other in itertools.pairwise(way)
                if one is not None and other is not None and one != other
            )
    return places, dict(links)


def _places(tiers: Mapping[str, int], links: Mapping[frozenset[str], int]) -> dict[str, float]:
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
