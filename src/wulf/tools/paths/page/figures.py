"""The data of the drawing of a fabric."""

from __future__ import annotations

import itertools
from collections import Counter

from wulf.base.text import count
from wulf.page.network_drawing import Fabric
from wulf.page.parts import Figure
from wulf.tools.paths.record import Paths


def fabric(found: Paths) -> Figure | None:
    """Return the fabric as the flows' ways show it; None where no switch has answered, or there are too many."""
    names = {switch.address: switch.name for switch in found.switches}
    tiers = {switch.address: switch.hop for switch in found.switches} | dict.fromkeys(found.nodes, 0)
    flows, links = _passed(found)
    drawn = Fabric(
        tiers=tiers,
        links={link: _flows(passed) for link, passed in links.items() if link <= tiers.keys()},
        names=names,
        remarks={place: _flows(flows[place]) for place in tiers},
        culprits={frozenset(way.hops) for one in found.culprits for way in one.ways},
    )
    bad = sorted(drawn.call(place) for place in names if drawn.is_bad(frozenset((place,))))
    return drawn.figure(
        title="The fabric, as the ways of the flows show it",
        summary=f"{count(len(found.nodes), 'node')}, {count(len(names), 'switch', 'switches')} that answered, "
        f"{count(len(drawn.links), 'link')} that flows passed; bad: {', '.join(bad) or 'no switch'}.",
        caption="Switches that do not answer are left out. A link is red if it or a switch at its end is bad.",
    )


def _flows(number: int) -> str:
    return f"{count(number, 'flow')} through it"


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
