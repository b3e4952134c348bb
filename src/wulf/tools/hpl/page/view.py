"""From a run of HPL to what is shown of it.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from wulf.base.nodeset import fold
from wulf.base.text import count, printable
from wulf.base.units import format_estimate, format_spread, format_value
from wulf.page.blocks import Key, Keys, Notes, Page, PageOnly, Paragraph, Section, Verdict, known
from wulf.page.parts import Column, Item, Table
from wulf.page.words import change_item, duration, estimate_item, moment, name
from wulf.tools.hpl.page import figures
from wulf.tools.hpl.record import HplLaunch, HplManifest, HplResult

#: Settings that the table names; the rest is in the run.
NAMED = 10
PHASES = {
    "size": "how long problems take",
    "blas": "BLAS libraries compared",
    "search": "search, small problems",
    "large": "search, larger problems",
    "confirm": "fresh launches of the choice",
}


def build(manifest: HplManifest, launches: Sequence[HplLaunch], result: HplResult) -> Page:
    """Return all that is shown of a run of HPL."""
    good = result.status == "complete" and not result.failed
    path = figures.path(launches) or Paragraph("No launch was completed.")
    spent, failures = _spent(launches), _failures(launches)
    return Page(
        title=_title(result),
        lede=_lede(manifest),
        kind=f"HPL · {name(manifest.id)}",
        verb="bench hpl",
        head=(
            Keys(tuple(_keys(result))),
            Verdict("good" if good else "warning", tuple(_points(manifest, result))),
        ),
        sections=(
            Section(
                "fresh",
                "The result",
                known(_asked(result), _fresh(launches), figures.orders(launches, result)),
                "as asked, nothing was searched"
                if manifest.plan.asked
                else "launches that did not affect the choice",
            ),
            *(
                ()
                if manifest.plan.asked
                else (
                    Section(
                        "search",
                        "How the search got there",
                        known(
                            path,
                            figures.surface(launches),
                            _blas(result, launches),
                            _best(launches),
                            PageOnly((spent, failures) if failures.rows else (spent,)),
                        ),
                    ),
                )
            ),
            Section("peak", "Theoretical peak", (PageOnly((Notes(tuple(_peak(manifest))),)),)),
            Section("method", "Method", (PageOnly((Paragraph(_METHOD),)),)),
        ),
        run=name(manifest.id),
    )


def _title(result: HplResult) -> str:
    if result.gflops is None or result.n is None:
        return "HPL: no figure yet"
    return f"HPL: {format_estimate(result.gflops)} at N {result.n}"


def _lede(manifest: HplManifest) -> str:
    plan = manifest.plan
    kind = "HPL alone" if plan.kind == "xhpl" else "HPL within HPC Challenge"
    return (
        f"{printable(plan.program, 200)} ({kind}) on {count(len(plan.nodes), 'node')}, "
        f"{fold(map(printable, plan.nodes))}, {count(plan.cpus, 'core')} each, {moment(manifest.created_at)}."
    )


def _keys(result: HplResult) -> Iterator[Key]:
    gflops = result.gflops
    if gflops is None:
        return
    yield Key(
        "rate", format_estimate(gflops), f"median of {count(gflops.n, 'fresh launch', 'fresh launches')}"
    )
    if result.of_peak is not None:
        yield Key("of the theoretical peak", format_spread(result.of_peak), "")
    else:
        yield Key("of the theoretical peak", "unknown", "give the peak with --peak")
    if result.time is not None:
        expected = format_spread(result.forecast.time) if result.forecast else "not predicted"
        yield Key("time", format_estimate(result.time), f"predicted: {expected}")
    if result.price_per_gflops is not None:
        yield Key("price", format_spread(result.price_per_gflops), "")
    for named, price in result.prices_per_gflops.items():
        yield Key(f"price, {name(named)}", format_spread(price), "")
    if result.mflops_per_watt is not None:
        yield Key("efficiency", format_spread(result.mflops_per_watt), "by the watts that were given")
    yield from _measured_power(result)
    if result.residual is not None:
        yield Key("largest residual", f"{result.residual:.3g}", "right below 16")


def _measured_power(result: HplResult) -> Iterator[Key]:
    """Say what the nodes took by their own measure."""
    for what, watts, efficiency in (
        ("whole nodes (IPMI)", result.node_watts, result.mflops_per_node_watt),
        ("CPUs and memory (RAPL)", result.cpu_watts, result.mflops_per_cpu_watt),
    ):
        if watts is not None and efficiency is not None:
            yield Key(f"efficiency, {what}", format_spread(efficiency), f"measured: {format_spread(watts)}")


def _asked(result: HplResult) -> Table | None:
    """Return the problems that were asked for."""
    if len(result.figures) < 2:
        return None
    return Table(
        title="Problems as asked, the fastest first",
        columns=(
            Column("problem", whole=True),
            Column("rate", numeric=True),
            Column("time", numeric=True),
            Column("failed", numeric=True),
        ),
        rows=tuple(
            (
                Item(one.problem.shown),
                estimate_item(one.gflops, "none finished"),
                estimate_item(one.time, "–"),
                Item(str(one.failed), one.failed, "error" if one.failed else ""),
            )
            for one in result.figures
        ),
        note="Medians over the launches of each, in rounds of random order.",
    )


def _points(manifest: HplManifest, result: HplResult) -> Iterator[str]:
    if result.setting is not None:
        yield f"setting: {result.setting.shown}"
    if result.library:
        yield f"BLAS library: {name(result.library)}, proven to be the one that the program uses"
    for library, reason in manifest.plan.libraries_left_out.items():
        yield f"  {name(library)} is left out: {printable(reason, 200)}"
    if result.last_list is not None and result.last_entry_gflops is not None:
        yield _last_list(result.last_list, result.last_entry_gflops, result.unknown_lists)
    for standing in result.standings:
        yield f"Top500 of {standing.edition}: rank {standing.rank} ({printable(standing.source, 200)})"
    for line in _peak(manifest):
        yield f"theoretical peak: {line}"
    total = sum(result.launches.values())
    yield (
        f"{count(total, 'launch', 'launches')}, {result.cut} cut short, {result.failed} failed; "
        f"{count(result.settings, 'setting')} can be made of the values tried"
    )
    yield from (printable(note, 400) for note in result.notes)


def _last_list(name: str, entry_gflops: float, unknown: Sequence[str]) -> str:
    known = f"the list of {name}, whose 500th had {format_value(entry_gflops, 'GFLOPS')}"
    if not unknown:
        return f"Top500: fast enough for {known}"
    span = " to ".join(dict.fromkeys([unknown[0], unknown[-1]]))
    return f"Top500: fast enough at least until {known}; the 500th of {span} is not known"


def _peak(manifest: HplManifest) -> Iterator[str]:
    peak = manifest.plan.peak
    if peak is None:
        yield f"unknown: {printable(manifest.plan.peak_unknown, 400)}"
    elif not peak.parts:
        yield f"{format_value(peak.gflops, 'GFLOPS')}, as given"
    else:
        for part in peak.parts:
            yield f"{fold(map(printable, part.nodes))}: {printable(part.derivation, 400)}"


def _best(launches: Sequence[HplLaunch]) -> Table:
    """Return the settings that were tried with the larger problem, the best first."""
    tried: dict[str, list[HplLaunch]] = {}
    for launch in launches:
        if launch.phase == "large":
            tried.setdefault(launch.setting.shown, []).append(launch)
    ranked = sorted(tried.items(), key=lambda entry: -_middle(entry[1]))
    return Table(
        title="Settings with the larger problem of the search, the best first",
        columns=(
            Column("setting"),
            Column("N", numeric=True),
            Column("median rate", numeric=True),
            Column("launches", numeric=True),
            Column("cut or failed", numeric=True),
        ),
        rows=tuple(
            (
                Item(shown),
                Item(str(several[0].n), several[0].n),
                Item(format_value(_middle(several), "GFLOPS") if _middle(several) else "–", _middle(several)),
                Item(str(len(several)), len(several)),
                Item(str(sum(launch.status != "ok" for launch in several)) or "0"),
            )
            for shown, several in ranked[:NAMED]
        ),
        note="These chose the setting; they are no evidence for the figure, which has launches of its own.",
        empty="none was tried",
    )


def _middle(launches: Sequence[HplLaunch]) -> float:
    return statistics.median([launch.gflops or 0.0 for launch in launches])


def _blas(result: HplResult, launches: Sequence[HplLaunch]) -> Table | None:
    """Return how the BLAS libraries compare."""
    if not result.blas:
        return None
    order = next(launch.n for launch in launches if launch.phase == "blas")
    return Table(
        title=f"BLAS libraries, by HPL at N {order} in rounds of random order",
        columns=(
            Column("library", whole=True),
            Column("rate", numeric=True),
            Column("against the fastest", numeric=True),
            Column("verdict"),
        ),
        rows=tuple(
            (
                Item(name(rank.library)),
                estimate_item(rank.rate),
                change_item(rank.ratio) if rank.ratio else Item("–"),
                Item(rank.verdict),
            )
            for rank in result.blas
        ),
        note="One setting for all; what follows has the fastest.",
    )


def _fresh(launches: Sequence[HplLaunch]) -> Table:
    return Table(
        title="Fresh launches of the choice",
        columns=(
            Column("launch", numeric=True),
            Column("rate", numeric=True),
            Column("time", numeric=True),
            Column("residual", numeric=True),
            Column("status"),
        ),
        rows=tuple(
            (
                Item(str(launch.index), launch.index),
                Item(format_value(launch.gflops, "GFLOPS") if launch.gflops else "–", launch.gflops),
                Item(format_value(launch.time_s, "s") if launch.time_s else "–", launch.time_s),
                Item(f"{launch.residual:.3g}" if launch.residual is not None else "–", launch.residual),
                Item(launch.status, None, "" if launch.status == "ok" else "error"),
            )
            for launch in launches
            if launch.phase == "confirm"
        ),
        empty="none was made",
    )


def _spent(launches: Sequence[HplLaunch]) -> Table:
    phases = [phase for phase in PHASES if any(launch.phase == phase for launch in launches)]
    return Table(
        title="Where the time went",
        columns=(
            Column("part"),
            Column("launches", numeric=True),
            Column("cut", numeric=True),
            Column("time", numeric=True),
        ),
        rows=tuple(
            (
                Item(PHASES[phase]),
                Item(str(len(of_phase)), len(of_phase)),
                Item(str(sum(launch.status == "cut" for launch in of_phase))),
                Item(duration(round(sum(launch.wall_s for launch in of_phase)))),
            )
            for phase in phases
            for of_phase in [[launch for launch in launches if launch.phase == phase]]
        ),
        empty="nothing was launched",
    )


def _failures(launches: Sequence[HplLaunch]) -> Table:
    return Table(
        title="Launches that failed",
        columns=(Column("launch", numeric=True), Column("setting"), Column("N", numeric=True), Column("why")),
        rows=tuple(
            (
                Item(str(launch.index), launch.index),
                Item(launch.setting.shown),
                Item(str(launch.n), launch.n),
                Item(printable(launch.reason, 300)),
            )
            for launch in launches
            if launch.status == "failed"
        ),
        empty="none",
    )


_METHOD = (
    "The figure is the median over fresh launches of the chosen setting with its 95 % interval (order statistics); "
    "launches of the search are not among them, as what is chosen for being quick was lucky, too. A launch counts "
    "only if HPL's own check passed. Times of short problems are taken from the printed rate, which has more digits. "
    "The prediction is surface × n² + volume × n³, fitted to the search's launches of the chosen setting, with "
    "Student's t. The theoretical peak is cores × operations a cycle × clock; a CPU that raises its clock may be above."
)
