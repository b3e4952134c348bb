"""From a prediction to what is shown of it.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from wulf.base.records import Estimate, Floor, HopSource, PathShares, Predicted, Prediction
from wulf.base.text import count, printable
from wulf.base.units import format_bandwidth, format_bytes, format_share, format_spread, format_time
from wulf.page.blocks import Notes, Page, PageOnly, Section, Verdict, known
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import change_item, name
from wulf.tools.predict.page import contention, figures, timelines

FLAGS: dict[str, Flag] = {
    "faster": "good",
    "slower": "error",
    "no difference": "",
    "cannot be told": "unknown",
}
#: Lines of where latencies come from.
_HOPS = 8
#: Of them in words.
_SENTENCES = 3
NOTHING = "no network was asked about"


def build(found: Prediction) -> Page:
    """Return all that is shown of a prediction."""
    answer, *conclusion = found.conclusion or [NOTHING]
    flag: Flag = "good" if any(one.verdict == "faster" for one in found.scenarios) else "unknown"
    drawn = tuple(timelines.figures(found))
    return Page(
        title=f"{name(PurePath(found.trace).name)}: {answer.rstrip('.')}",
        lede=_lede(found),
        kind="Prediction",
        verb="program predict",
        head=(Verdict(flag, (*_checked(found), *conclusion)),),
        sections=(
            Section(
                "networks",
                "What if",
                known(figures.changes(found), _networks(found)),
                "the same program on other networks",
            ),
            *_contention(found),
            Section(
                "path",
                "Why",
                (Notes(tuple(_in_words(found))), figures.shares(found), _paths(found), _hops(found)),
                "the longest path through its messages",
            ),
            Section(
                "latency",
                "How slow a network it bears",
                known(figures.curve(found), _tolerance(found), figures.by_bandwidth(found), _needs(found)),
                "one change at a time",
            ),
            *_intervals(found),
            *(
                [Section("timeline", "Before and after", drawn, "where the time of the ranks goes")]
                if drawn
                else []
            ),
            Section("notes", "What must be known", (Notes(tuple(found.notes)), PageOnly((_sources(found),)))),
        ),
    )


def _contention(found: Prediction) -> Iterator[Section]:
    table = contention.table(found, FLAGS)
    if table is not None and found.contention is not None:
        yield Section(
            "contention",
            "Contention",
            known(_more(found), table, contention.others(found)),
            "who comes first, and what is shared",
        )


def _more(found: Prediction) -> Notes | None:
    """Return what contention means, but for what stands at the top."""
    meaning = found.contention.meaning if found.contention is not None else []
    more = tuple(one for one in meaning if one not in found.conclusion)
    return Notes(more) if more else None


def _lede(found: Prediction) -> str:
    command = f"{printable(found.command, 200)}: " if found.command else ""
    own = (
        f"it took {format_time(found.own_s)} as it was traced "
        + ("(one run, no interval)" if found.traces == 1 else f"(median of {count(found.traces, 'run')})")
        if found.own_s
        else "the trace does not say how long it took"
    )
    return (
        f"{command}{count(found.ranks, 'rank')} on {count(found.nodes, 'node')}, "
        f"{count(found.operations, 'operation')}; {own}. Network calibrated by {name(found.run)}; "
        f"{count(found.samples, 'sample')}, seed {found.seed}."
    )


def _checked(found: Prediction) -> Iterator[str]:
    one = found.checked
    if one is not None:
        yield (
            f"Verified: {format_spread(one.time)} now, {'inside' if one.inside else 'outside'} the predicted "
            f"interval of '{one.network}'; measured ÷ predicted: {one.ratio:.3f} "
            f"({count(one.time.n, 'launch', 'launches')})."
            + (
                f" Cannot tell whether it fits: one that is off by {format_share(one.visible or 0.0)} would be "
                "inside, too; more launches of the calibration would help."
                if one.untold
                else ""
            )
            + (
                ""
                if one.network == found.base.name
                else " That the cluster has that network now is not looked at."
            )
        )


#: What run times are by.
_BY = {
    "static": "Messages are in their recorded order.",
    "events": "Run times are those event by event; paths, and what latency is borne, are of messages in their order.",
}


def _networks(found: Prediction) -> Table:
    columns = [
        Column("network"),
        Column("run time", numeric=True),
        *([Column("one launch", numeric=True)] if _tells_launches(found) else []),
        Column("change", numeric=True),
        Column("verdict"),
        Column("not below", numeric=True),
        *([Column("energy", numeric=True)] if found.base.energy is not None else []),
    ]
    return Table(
        title="Run time by network",
        columns=tuple(columns),
        rows=tuple(_rows(found)),
        note=f"{_BY[found.engine]} Intervals 95 %. 'By the model' is how the model fits the program's own run time "
        "on the network as it is; of the networks it is the program's own time that changes as the model says. "
        "'Not below': the greater of bandwidth and of computing alone on that network, with its own interval: no run "
        "time is below its value, and no interval begins below its lower end, but that of a single launch, as launches "
        "differ in what they compute. "
        "The last lines are limits, and no networks that can be bought: messages between nodes take no time; and on "
        "the network as it is nothing takes any but the bytes at its bandwidth, or but computing.",
    )


def _tells_launches(found: Prediction) -> bool:
    return any(one.launch is not None for one in found.scenarios)


def _launch(one: Estimate | None) -> Item:
    if one is None or one.low is None or one.high is None:
        return Item("–")
    return Item(f"{format_time(one.low)} to {format_time(one.high)}", one.value)


def _rows(found: Prediction) -> Iterator[tuple[Item, ...]]:
    launches = _tells_launches(found)
    unknown = [Item("–")] * (3 + launches + (found.base.energy is not None))
    if found.own_s:
        yield (Item("as it was traced"), Item(format_time(found.own_s), found.own_s), *unknown)
    least = {one.network: _least(one) for one in found.floors}
    base = f"{found.base.name}, by the model" if found.own_s else found.base.name
    yield _row(found.base, base, least, tells_launches=launches)
    for one in (*found.scenarios, found.bound):
        yield _row(one, one.name, least, tells_launches=launches)
    for here in found.floors[:1]:
        for named, seconds in (("bandwidth alone", here.bandwidth_s), ("computing alone", here.computing_s)):
            yield (Item(named), Item(format_time(seconds), seconds), *unknown)


def _row(one: Predicted, named: str, least: Mapping[str, Item], *, tells_launches: bool) -> tuple[Item, ...]:
    flag = FLAGS.get(one.verdict, "")
    return (
        Item(printable(named, 60)),
        Item(format_spread(one.time), one.time.value),
        *([_launch(one.launch)] if tells_launches else []),
        change_item(one.change, flag),
        Item(one.verdict if one.verdict in FLAGS else "–", None, flag),
        least.get(one.name, Item("–")),
        *([Item(format_spread(one.energy), one.energy.value)] if one.energy is not None else []),
    )


_TOGETHER = (
    " The calibration does not tell latency and the CPU's time of messages apart: what counts is their sum."
)


def _paths(found: Prediction) -> Table:
    return Table(
        title="Parts of the longest path",
        columns=(
            Column("network"),
            Column("computing", numeric=True),
            Column("CPU of messages", numeric=True),
            Column("latency", numeric=True),
            Column("bandwidth", numeric=True),
            Column("λ", numeric=True),
        ),
        rows=tuple(
            (
                Item(printable(one.name, 60)),
                *(_part(part, one.model_s) for part in parts(one.path)),
                Item(f"{one.path.hops:,.0f}", one.path.hops),
            )
            for one in (found.base, *found.scenarios, found.bound)
        ),
        note="Of the model's time with likely parameters, no interval. λ: latencies between nodes one after the other."
        + (_TOGETHER if "latency" in found.not_told else ""),
    )


def _least(one: Floor) -> Item:
    if one.least is None:
        seconds = max(one.bandwidth_s, one.computing_s)
        return Item(format_time(seconds), seconds)
    return Item(format_spread(one.least), one.least.value)


def parts(path: PathShares) -> tuple[float, float, float, float]:
    """Return computing, CPU time of messages, latency, bandwidth [s]."""
    return path.compute_s, path.overhead_s, path.latency_s, path.bandwidth_s


def _part(part: float, whole: float) -> Item:
    share = part / whole if whole else 0.0
    return Item(f"{share:.1%}", share)


#: Behind what a program bears, where it is not known what it has.
_COUNTED = (
    " What it is now is not told, so that these are counted from {}: what counts is how much more it bears."
)


def _now(found: Prediction, parameter: str, text: str, value: float) -> Item:
    """Return a parameter of the calibrated network; of one that it does not tell there is no figure."""
    return Item("not told") if parameter in found.not_told else Item(text, value)


def _tolerance(found: Prediction) -> Table:
    return Table(
        title="How much latency it bears",
        columns=(Column("longer by"), Column("latency between nodes", numeric=True)),
        rows=(
            (Item("as it is"), _now(found, "latency", format_time(found.latency_s), found.latency_s)),
            *((Item(f"{one.slower:.0%}"), _reached(one.latency, one.beyond_s)) for one in found.tolerance),
        )
        if found.tolerance
        else (),
        note="Exact for the likely network, all else as it is; 95 % intervals by its latency and the run time."
        + (_COUNTED.format(format_time(found.latency_s)) if "latency" in found.not_told else ""),
        empty="the time changes its slope too often for a curve",
    )


def _reached(latency: Estimate | None, beyond_s: float) -> Item:
    if latency is None:
        return Item(f"more than {format_time(beyond_s)}", beyond_s)
    return Item(format_spread(latency), latency.value)


def _needs(found: Prediction) -> Table:
    return Table(
        title="How little bandwidth it bears",
        columns=(Column("longer by"), Column("bandwidth between nodes", numeric=True)),
        rows=(
            (Item("as it is"), _now(found, "bandwidth", format_bandwidth(found.bandwidth), found.bandwidth)),
            *(
                (Item(f"{one.slower:.0%}"), _down_to(one.bandwidth, one.below))
                for one in found.bandwidth_need
            ),
        )
        if found.bandwidth is not None and found.bandwidth_need
        else (),
        note="For the likely network, between places of a grid, all else as it is; 95 % intervals by its bandwidth and "
        "the run time.",
        empty="bytes take no time on the calibrated network",
    )


def _down_to(bandwidth: Estimate | None, below: float) -> Item:
    if bandwidth is None:
        return Item(f"less than {format_bandwidth(below)}", below)
    return Item(format_spread(bandwidth), bandwidth.value)


def _hops(found: Prediction) -> Table:
    total = sum(one.hops for one in found.hops)
    return Table(
        title="Where the latencies of the longest path come from",
        columns=(
            Column("call"),
            Column("size of a message", numeric=True),
            Column("way"),
            Column("latencies", numeric=True),
            Column("of all", numeric=True),
            Column("sent mostly by ranks"),
        ),
        rows=tuple(
            (
                Item(mpi_name(one.call)),
                Item(format_bytes(one.size_bytes), one.size_bytes),
                Item("between nodes" if one.between else "within a node"),
                Item(f"{one.hops:,}", one.hops),
                Item(f"{one.hops / total:.0%}", one.hops / total),
                Item(", ".join(map(str, one.ranks))),
            )
            for one in found.hops[:_HOPS]
        ),
        note="Counted on one longest path; a message that sender and receiver agree on first has three. A collective "
        "consists of messages; sizes are theirs.",
        empty="no message is on the longest path",
    )


def _in_words(found: Prediction) -> Iterator[str]:
    """Say where the latencies come from that a network decides."""
    between = [one for one in found.hops if one.between]
    total = sum(one.hops for one in between)
    if not total:
        yield "No message between nodes is on the longest path: no network changes anything."
        return
    for place, one in enumerate(between[:_SENTENCES]):
        begun = f"Of {total:,} latencies between nodes on the longest path" if place == 0 else "Another"
        yield f"{begun} {one.hops:,} ({one.hops / total:.0%}) are in {_sentence(one)}."


def _sentence(one: HopSource) -> str:
    ranks = "rank" if len(one.ranks) == 1 else "ranks"
    numbers = ", ".join(map(str, one.ranks))
    return (
        f"{mpi_name(one.call)}, messages of {format_bytes(one.size_bytes)}, sent mostly by {ranks} {numbers}"
    )


def mpi_name(call: str) -> str:
    """Return a call as MPI writes it: ``reduce_scatter`` → ``MPI_Reduce_scatter``."""
    whole = {"recv_part": "sendrecv", "wait_some": "waitsome"}.get(call, call)
    return "MPI calls that make communicators" if call == "make_communicator" else f"MPI_{whole.capitalize()}"


def _intervals(found: Prediction) -> Iterator[Section]:
    """Return what makes intervals wide, of networks of which that is told."""
    told = [one for one in (found.base, *found.scenarios) if one.made_of]
    if not told:
        return
    widest = max(told, key=lambda one: one.time.half_width_ratio or 0.0)
    most = widest.made_of[0]
    said = (
        f"The widest interval is that of '{printable(widest.name, 60)}', ±{widest.time.half_width_ratio or 0.0:.0%}: "
        f"{most.share:.0%} of its variance is from {most.what}. To narrow it: {most.narrower}."
    )
    yield Section(
        "intervals", "What intervals are made of", (Notes((said,)), _made_of(told)), "what would narrow them"
    )


def _made_of(told: Sequence[Predicted]) -> Table:
    return Table(
        title="Where the intervals come from",
        columns=(
            Column("network"),
            Column("interval", numeric=True),
            Column("source"),
            Column("of the variance", numeric=True),
            Column("without it", numeric=True),
            Column("what narrows it"),
        ),
        rows=tuple(
            (
                Item(printable(one.name, 60)),
                Item(f"±{one.time.half_width_ratio or 0.0:.0%}", one.time.half_width_ratio),
                Item(printable(part.what, 80)),
                Item(f"{part.share:.0%}", part.share),
                Item(f"±{part.without:.0%}", part.without),
                Item(printable(part.narrower, 120)),
            )
            for one in told
            for part in one.made_of
        ),
        note="Of a usual launch's run time, half the interval's width. Sources are drawn independently; parts below "
        "10 %, and what several have together, are left out. A share is off by some 5 %, as it is told by the samples.",
    )


def _sources(found: Prediction) -> Table:
    rows = [one for one in (found.base, *found.scenarios) if one.source]
    return Table(
        title="Where the parameters are from",
        columns=(Column("network"), Column("what it is"), Column("source")),
        rows=tuple(
            (Item(printable(one.name, 60)), Item(one.title), Item(printable(one.source, 400))) for one in rows
        ),
    )
