"""The data of the drawing of a fabric."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from wulf.base.text import printable
from wulf.page.parts import Columns, Figure, Variant
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
    drawn = _Drawn(
        names,
        tiers,
        _places(tiers, links),
        {frozenset(way.hops) for one in found.culprits for way in one.ways},
    )
    shown = {link: passed for link, passed in links.items() if all(end in drawn.places for end in link)}
    bad = sorted(drawn.call(place) for place in names if drawn.is_bad(frozenset((place,))))
    return Figure(
        id="fabric",
        chart=charts.FABRIC,
        title="The fabric, as the ways of the flows show it",
        x_title="",
        y_title="",
        variants=(
            Variant(
                label="",
                datasets={"main": drawn.switches(flows), "links": drawn.links(shown)},
                summary=f"{count(len(found.nodes), 'node')}, {count(len(names), 'switch', 'switches')} that answered, "
                f"{count(len(shown), 'link')} that flows passed; bad: {', '.join(bad) or 'no switch'}.",
                caption="Switches that do not answer are left out. A link is red if it or a switch at its end is bad.",
            ),
        ),
        logarithmic=False,
    )


@dataclass(frozen=True)
class _Drawn:
    """What is drawn of a fabric, and where."""

    #: Address of a switch → its name.
    names: Mapping[str, str]
    #: Node or switch → its row from below, nodes in row 0.
    tiers: Mapping[str, int]
    #: Node or switch → where it stands in its row, from 0 to 1.
    places: Mapping[str, float]
    #: Switches, and pairs of them, that make flows worse.
    culprits: Set[frozenset[str]]

    def call(self, place: str) -> str:
        return printable(self.names.get(place, place), 40)

    def is_bad(self, part: frozenset[str]) -> bool:
        """Say whether a switch or a link is bad: a link also where a switch at its end is."""
        return part in self.culprits or any(frozenset((end,)) in self.culprits for end in part)

    def switches(self, flows: Mapping[str, int]) -> Columns:
        """Return nodes and switches with the number of flows that pass them."""
        return {
            "name": [self.call(place) for place in self.places],
            "kind": ["switch" if self.tiers[place] else "node" for place in self.places],
            "state": [self._state(frozenset((place,))) for place in self.places],
            "flows": [flows[place] for place in self.places],
            "x": list(self.places.values()),
            "y": [self.tiers[place] for place in self.places],
        }

    def links(self, flows: Mapping[frozenset[str], int]) -> Columns:
        """Return links with the number of flows that pass them, from the lower end to the upper one."""
        ends = [sorted(link, key=self.tiers.__getitem__) for link in flows]
        return {
            "name": [" – ".join(map(self.call, link)) for link in ends],
            "flows": list(flows.values()),
            "state": [self._state(link) for link in flows],
            "x": [self.places[link[0]] for link in ends],
            "y": [self.tiers[link[0]] for link in ends],
            "x2": [self.places[link[-1]] for link in ends],
            "y2": [self.tiers[link[-1]] for link in ends],
        }

    def _state(self, part: frozenset[str]) -> str:
        return "bad" if self.is_bad(part) else "as usual"


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
