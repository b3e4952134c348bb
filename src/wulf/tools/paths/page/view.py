"""Which path is bad, as people read it: the answer first.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from wulf.base.nodeset import fold
from wulf.base.text import count, printable
from wulf.base.units import format_estimate, format_share, format_value
from wulf.page.blocks import Block, Command, Page, Section, Verdict, known
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import percent
from wulf.tools.paths.bonds import ONE_MEMBER
from wulf.tools.paths.page import figures
from wulf.tools.paths.record import Culprit, PathEffect, Paths, Sight, Way

_SPREAD = {
    "ECMP": "flows are spread over several ways by switches that route (ECMP)",
    "below the routes": "flows of one route are spread below it, over members of a bond or of a link "
    "aggregation (LACP)",
    "one path": "all flows of a pair take one way, as far as switches that route tell",
    "unknown": "no switch that routes has answered: which ways there are is not known",
}
_METRICS = {"latency": "latency", "loss": "loss", "rate": "rate of streams"}
#: Pairs that are listed; more are counted.
NAMED = 6


def build(found: Paths) -> Page:
    """Return the answer, the fabric, and what shows it again."""
    first, *more = verdict(found)
    flag: Flag = "good" if found.fine else "error" if found.culprits else "unknown"
    blocks: tuple[Block, ...] = (*_culprits(found), *_commands(found), *_switches(found))
    return Page(
        title=first,
        lede="",
        kind="Paths between nodes",
        verb="diagnose paths",
        head=(Verdict(flag, tuple(more)),),
        sections=(
            Section("paths", "What is bad", known(figures.fabric(found), *blocks)),
            Section("sight", "What could have been seen", (_sights(found),)),
        ),
    )


def verdict(found: Paths) -> Iterator[str]:
    """Yield the answer in one line, then what it rests on."""
    yield _answer(found)
    for culprit in found.culprits:
        yield f"  {place(culprit)}: {', '.join(map(effect_words, culprit.effects))}"
        yield f"    {_reach(culprit)}"
        if len(culprit.ways) > 1:
            others = ", ".join(_way(way) for way in culprit.ways[1 : NAMED + 1])
            yield f"    or {others}: every flow that passes one of them passes the others, too"
    if found.culprits:
        yield _mpi(found)
    flows = len({(flow.nodes, flow.protocol, flow.port) for flow in found.seen})
    of = f"{count(flows, 'flow')} of {count(len(found.pairs), 'pair')} of {count(len(found.nodes), 'node')}"
    yield f"{of}; {_SPREAD[found.spread]}"
    for remark in found.remarks:
        yield f"  {printable(remark, 300)}"
    for pair, why in list(found.missing.items())[:NAMED]:
        yield f"  not measured: {printable(pair, 100)}: {printable(why, 200)}"
    if len(found.missing) > NAMED:
        yield f"  not measured: {count(len(found.missing) - NAMED, 'more pair')}"


def _answer(found: Paths) -> str:
    if found.culprits:
        worst = found.culprits[0]
        more = f", and {count(len(found.culprits) - 1, 'other')}" if len(found.culprits) > 1 else ""
        return f"{place(worst)} is bad: {effect_words(worst.effects[0])}{more}"
    if not found.seen:
        return "cannot tell: nothing was measured"
    if found.untold:
        return f"cannot tell: {'; '.join(map(_blind, found.untold))}"
    if found.missing:
        return f"no path is bad, of the {count(len(found.pairs), 'pair')} that were measured"
    return "fine: no path is worse than the others"


def place(culprit: Culprit) -> str:
    """Return what is bad, in a few words."""
    if culprit.ways:
        return _way(culprit.ways[0])
    if len(culprit.common) == 1:
        return f"one of several paths of {printable(culprit.common[0], 100)} ({_below(culprit.bond)})"
    return f"one of several paths {_pairs(culprit)}"


def _below(bond: str | None) -> str:
    """Say what the paths of one node are, of which no switch tells, by what its facts say of its bond."""
    if bond is None:
        return "a member of its bond, or its uplink"
    if not bond:
        return "it has no bond: an uplink of its switch"
    if bond == ONE_MEMBER:
        return f"its bond uses one member, {ONE_MEMBER}: an uplink of its switch"
    return f"a member of its bond: {printable(bond, 80)}; or an uplink of its switch"


def _way(way: Way) -> str:
    names = [printable(name, 60) for name in way.names]
    return names[0] if len(names) == 1 else f"{names[0]} → {names[1]}"


def effect_words(effect: PathEffect) -> str:
    """Return an effect in words, with its interval."""
    if effect.metric == "latency":
        return f"a round trip takes {format_estimate(effect.value)} longer"
    if effect.metric == "loss":
        low, share, high = map(_portion, (effect.value.low, effect.value.value, effect.value.high))
        return f"{share} of the packets are lost ({low} to {high})"
    times = effect.value
    return f"a stream takes {times.value:.3g} ({times.low:.3g} to {times.high:.3g}) times as long"


def _portion(share: float | None) -> str:
    return percent(min(max(share or 0.0, 0.0), 1.0))


def _reach(culprit: Culprit) -> str:
    share = percent(culprit.share)
    return f"{culprit.suffering} of {count(culprit.flows, 'flow')} ({share}) {_pairs(culprit)} suffer"


def _pairs(culprit: Culprit) -> str:
    both = {frozenset(pair) for pair in culprit.pairs}
    if len(culprit.pairs) < 2 * len(both):
        return f"from {_folded(pair[0] for pair in culprit.pairs)} to {_folded(pair[1] for pair in culprit.pairs)}"
    far = {pair[1] for pair in culprit.pairs if pair[0] == culprit.pairs[0][0]}
    near = {pair[1] for pair in culprit.pairs if pair[0] in far}
    if far & near:
        return f"among {_folded(near | far)}"
    return f"between {_folded(near)} and {_folded(far)}"


def _folded(nodes: Iterable[str]) -> str:
    return fold(sorted({printable(node, 100) for node in nodes}))


def _mpi(found: Paths) -> str:
    mpi = found.mpi
    return (
        f"a job with one TCP connection between each two nodes: {mpi.suffering:.1f} of "
        f"{count(mpi.connections, 'connection')} suffer on average; that none does has a chance of "
        f"{percent(1 - mpi.any)}"
    )


def _blind(sight: Sight) -> str:
    wanted = _bad(sight, sight.wanted)
    if sight.visible is None:
        return f"{_METRICS[sight.metric]}: nothing could have been seen"
    return f"{_METRICS[sight.metric]}: only a path of {_bad(sight, sight.visible)} would be seen ({wanted} is wanted)"


def _bad(sight: Sight, value: float) -> str:
    if sight.metric == "latency":
        return f"{format_value(value, 's')} more"
    if sight.metric == "loss":
        return f"{_portion(value)} loss"
    return f"{min(value, 1e6):.3g} times the time"


def _sights(found: Paths) -> Table:
    return Table(
        title="How bad a path has to be to be found in nine cases out of ten",
        columns=(Column("of"), Column("named from", numeric=True), Column("has to be seen", numeric=True)),
        rows=tuple(
            (
                Item(_METRICS[sight.metric]),
                Item(
                    "–" if sight.visible is None else _bad(sight, sight.visible),
                    sight.visible,
                    "" if sight.is_clear else "warning",
                ),
                Item(_bad(sight, sight.wanted), sight.wanted),
            )
            for sight in found.sights
        ),
        empty="nothing was measured",
    )


def _culprits(found: Paths) -> Iterator[Table]:
    rows = tuple(
        (
            Item(place(culprit), flag="error"),
            Item("; ".join(map(effect_words, culprit.effects))),
            Item(f"{culprit.suffering} of {culprit.flows}", culprit.suffering),
            Item(_pairs(culprit)),
            Item(str(culprit.reproduction.port) if culprit.reproduction else "–"),
        )
        for culprit in found.culprits
    )
    if rows:
        yield Table(
            title="Paths that are bad",
            columns=(
                Column("path", whole=True),
                Column("what it does"),
                Column("flows", numeric=True),
                Column("nodes", narrow=False),
                Column("port", numeric=True),
            ),
            rows=rows,
        )


def _switches(found: Paths) -> Iterator[Table]:
    """Yield how many flows pass each switch: whether they are spread evenly."""
    if not found.switches:
        return
    passed = Counter(hop for flow in found.seen for hop in {*flow.out, *flow.back} if hop is not None)
    total = max(len(found.seen), 1)
    yield Table(
        title="Switches that answered",
        columns=(
            Column("switch", whole=True),
            Column("address", narrow=False),
            Column("hop", numeric=True),
            Column("flows", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(switch.name, 60)),
                Item(switch.address),
                Item(str(switch.hop), switch.hop),
                Item(
                    f"{passed[switch.address]} ({format_share(passed[switch.address] / total).lstrip('+')})",
                    passed[switch.address],
                ),
            )
            for switch in found.switches
        ),
        tall=True,
    )


def _commands(found: Paths) -> Iterator[Command]:
    for culprit in found.culprits:
        shown = culprit.reproduction
        if shown is None:
            continue
        near, far = (printable(node, 100) for node in shown.nodes)
        beside = f"; port {shown.well_port} does not" if shown.well_port is not None else ""
        for words in (shown.probe, shown.plain):
            yield Command(f"on {far}", words[0])
            yield Command(f"on {near} (port {shown.port} shows it{beside})", words[1])
