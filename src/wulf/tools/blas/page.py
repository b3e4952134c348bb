"""A comparison of BLAS libraries as people read it: the verdict first. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.base.nodeset import fold
from wulf.base.records.libraries import BlasComparison, BlasRank
from wulf.base.text import count, printable
from wulf.base.units import format_change
from wulf.page.blocks import Page, Verdict
from wulf.page.parts import Column, Flag, Item, Table
from wulf.page.words import UNKNOWN, change_item, estimate_item, name, percent

_FLAGS: dict[str, Flag] = {"fastest": "good", "slower": "", "no difference": "good", "no decision": "unknown"}


def build(found: BlasComparison) -> Page:
    """Return which library is fastest, by how much, and what must be known beside it."""
    first, *more = verdict(found)
    return Page(
        title=first,
        lede="",
        kind="BLAS libraries",
        verb="bench blas",
        head=(Verdict("good" if len(found.best) == 1 else "unknown", tuple(more)), _table(found)),
        sections=(),
    )


def verdict(found: BlasComparison) -> Iterator[str]:
    """Yield the answer in one line, then what a reader must know."""
    yield _answer(found)
    where = f"{count(len(found.nodes), 'node')}, {fold(map(printable, found.nodes))}"
    yield (
        f"products of matrices of {count(found.size, 'row')} on {where}; {count(found.threads, 'thread')} for "
        f"every library; {count(found.rounds, 'round')} in random order"
    )
    if found.interrupted:
        yield "interrupted: complete rounds are compared"
    yield from _nodes_that_differ(found)
    for library, cpus in found.busy_cpus.items():
        if found.threads > 1 and cpus < 0.6 * found.threads:
            yield (
                f"  {name(library)} kept {cpus:.1f} of {count(found.threads, 'CPU')} busy: it has fewer threads, or "
                "other load took CPUs"
            )
        elif cpus > found.threads + 0.3:
            yield f"  {name(library)} kept {cpus:.1f} CPUs busy: more threads than it was allowed"
    for library, reasons in found.failures.items():
        for reason, times in reasons.items():
            yield f"  {name(library)}: {count(times, 'launch', 'launches')} failed: {printable(reason, 200)}"
    for library, reason in found.left_out.items():
        yield f"  not compared: {printable(library, 100)}: {printable(reason, 200)}"


def _answer(found: BlasComparison) -> str:
    if not found.ranking:
        return "no library worked in any round"
    best = found.best
    if len(best) == 1:
        second = next((rank for rank in found.ranking if rank.verdict == "slower"), None)
        by = (
            f"; next is {name(second.library)}, {format_change(second.ratio)}"
            if second and second.ratio
            else ""
        )
        return f"{name(best[0])} is fastest{by}"
    alike = [rank for rank in found.ranking if rank.verdict == "no difference"]
    open_ = [rank for rank in found.ranking if rank.verdict == "no decision"]
    said = f"{name(best[0])} has the highest median"
    if alike:
        said += f"; no difference beyond {percent(found.margin)}: {_names(alike)}"
    if open_:
        said += f"; not enough evidence to tell it from {_names(open_)}"
    return said


def _names(ranks: list[BlasRank]) -> str:
    return ", ".join(name(rank.library) for rank in ranks)


def _nodes_that_differ(found: BlasComparison) -> Iterator[str]:
    """Yield the nodes on which the fastest of all is shown to be slower than another."""
    for node, ranking in found.by_node.items():
        slower = [rank.library for rank in ranking if rank.verdict == "slower"]
        if found.ranking and found.ranking[0].library in slower:
            best = name(found.ranking[0].library)
            yield f"  {printable(node)}: there {name(ranking[0].library)} is faster than {best}"


def _table(found: BlasComparison) -> Table:
    libraries = {library.name: library for library in found.libraries}
    return Table(
        title="Rate of each library",
        columns=(
            Column("library", whole=True),
            Column("rate", numeric=True),
            Column("against the fastest", numeric=True),
            Column("verdict"),
            Column("what it says of itself", narrow=False),
            Column("file", narrow=False),
        ),
        rows=tuple(
            (
                Item(name(rank.library) + (" (default)" if libraries[rank.library].default else "")),
                estimate_item(rank.rate),
                change_item(rank.ratio) if rank.ratio else Item("–"),
                Item(rank.verdict, rank.verdict, _FLAGS[rank.verdict]),
                Item(printable(libraries[rank.library].version, 100) or UNKNOWN),
                Item(printable(libraries[rank.library].path, 200)),
            )
            for rank in found.ranking
        ),
        note=f"a program uses one of them with LD_LIBRARY_PATH={_directory(found)}" if found.ranking else "",
    )


def _directory(found: BlasComparison) -> str:
    library = next(one for one in found.libraries if one.name == found.ranking[0].library)
    return printable(library.path.rpartition("/")[0], 200)
