"""Outputs of other benchmarks as a run: stored, analysed, compared and shown as one that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from wulf.base import store
from wulf.base.errors import ImportFormatError, UsageError
from wulf.base.importing import formats
from wulf.base.importing.series import MOST_BYTES, MOST_RANKS, Series
from wulf.base.records import (
    IMPORTED,
    Analysis,
    Cell,
    Launch,
    LaunchResult,
    Manifest,
    Operation,
    Part,
    Place,
    Plan,
    Sample,
    Workload,
)
from wulf.base.text import count
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet.new_run import head
from wulf.node.measuring.analysis import analyze
from wulf.node.measuring.imported_from import Placed
from wulf.stats.core.trend import TESTABLE

#: Where it is not said on which nodes ranks were, nor how many there were.
NOT_SAID = ("ranks not said",)
PRECISION, CONFIDENCE, MIN_LAUNCHES = 0.02, 0.95, 6


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a file."""

    file: Path
    series: list[Series]
    #: The nodes of its ranks in their order; None where they are those of all files, if any.
    nodes: tuple[str, ...] | None = None


def read_files(files: Sequence[Path | Placed], left_out: list[str] | None = None) -> list[Imported]:
    """Return the launches of all files, in their order; what cannot be read stops it.

    Parameters
    ----------
    left_out
        Is added to: what the files have and is not taken, in words that name file and line.

    Raises
    ------
    ImportFormatError
        There is none, or one is of no known format, or says something else than it should; names it and the line.
    """
    if not files:
        raise ImportFormatError("no file is named: there is nothing to import")
    found: list[Imported] = []
    for one in files:
        file, nodes = one if isinstance(one, Placed) else Placed(one)
        text = formats.decoded(_read(file), str(file))
        found += [
            Imported(file=file, series=launch, nodes=nodes)
            for launch in formats.read(text, str(file), left_out)
        ]
    return found


def _read(file: Path) -> bytes:
    """Return the bytes of a file, no more than one beyond what is read."""
    try:
        with file.open("rb") as stream:
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ImportFormatError(f"{file}: {error.strerror}") from error


def import_run(
    launches: Sequence[Imported], nodes: Sequence[str], path: Path, ranks: int | None = None
) -> tuple[store.Run, Analysis]:
    """Store launches as a run, and derive what there is to derive.

    Parameters
    ----------
    nodes
        Where the ranks were, in their order; none where that is not known.
    ranks
        How many there were where an output does not say it; None: one on each node.
    """
    if ranks is not None and not 1 <= ranks <= MOST_RANKS:
        raise UsageError(f"--ranks {ranks}: expected 1 to {MOST_RANKS}")
    operations = _operations(launches)
    results = [result for launch in launches for result in _results(launch, nodes, ranks, operations)]
    results = [
        msgspec.structs.replace(
            result, launch=msgspec.structs.replace(result.launch, id=f"{index:05d}", index=index)
        )
        for index, result in enumerate(results)
    ]
    results = [
        msgspec.structs.replace(
            result,
            samples=[msgspec.structs.replace(sample, launch=result.launch.id) for sample in result.samples],
        )
        for result in results
    ]
    names = tuple(dict.fromkeys(node for result in results for node in result.launch.place))
    config = ClusterConfig(name=IMPORTED, nodes=names, transport="local", origin=IMPORTED)
    manifest = Manifest(
        **head(path.name, config, list(operations.values()), {}), plan=_plan(results, operations)
    )
    with store.create(path, manifest) as writer:
        for result in results:
            writer.append(result)
        writer.update(status="complete")
    run = store.load(path)
    analysis = analyze(run)
    store.save_analysis(path, analysis)
    return run, analysis


def _operations(launches: Sequence[Imported]) -> dict[str, Operation]:
    operations: dict[str, Operation] = {}
    for launch in launches:
        for series in launch.series:
            known = operations.setdefault(series.name, operation_of(series))
            if series.ranks != 2 and known.ranks == 2:
                operations[series.name] = known = msgspec.structs.replace(known, ranks=0)
            if (known.quantity, known.statistic) != (series.quantity, series.statistic):
                raise UsageError(
                    f"{launch.file}: {series.name} is a {series.statistic} here, a {known.statistic} in another file: "
                    "import them as two runs"
                )
    return operations


def operation_of(series: Series) -> Operation:
    """Return what a run says of an operation that another program has measured."""
    return Operation(
        name=series.name,
        transport="none",
        ranks=2 if series.ranks == 2 else 0,
        pattern=series.pattern,
        axis="message size",
        axis_unit="B",
        quantity=series.quantity,
        better="lower",
        moves_bytes=series.moves_bytes,
        usual=0,
        divisor=1,
        timing="batch",
        min_size_bytes=0,
        max_size_bytes=max(series.times_s),
        lossy=False,
        summary=f"imported: {series.statistic}",
        statistic=series.statistic,
    )


def _results(
    launch: Imported, nodes: Sequence[str], ranks: int | None, operations: dict[str, Operation]
) -> list[LaunchResult]:
    written = datetime.fromtimestamp(launch.file.stat().st_mtime, tz=UTC).isoformat(timespec="seconds")
    where = launch.nodes or nodes
    return [
        _result(
            launch, series, _place(series.ranks, ranks, where, launch.file), operations[series.name], written
        )
        for series in launch.series
    ]


def _result(
    launch: Imported, series: Series, place: Place, operation: Operation, written: str
) -> LaunchResult:
    return LaunchResult(
        launch=Launch(
            id="",
            index=0,
            op=series.name,
            place=place,
            setting="default",
            sizes_bytes=sorted(series.times_s),
            seed=0,
            started_at=written,
            duration_s=0.0,
            status="ok",
            error=None,
            argv=[str(launch.file)],
            probe=None,
            context=[],
            contamination=[],
        ),
        samples=[
            sample_of(operation, size, seconds, place) for size, seconds in sorted(series.times_s.items())
        ],
    )


def _place(said: int | None, otherwise: int | None, nodes: Sequence[str], file: Path) -> Place:
    """Return the nodes of all ranks; where there are fewer nodes, as many of them on each.

    Parameters
    ----------
    said, otherwise
        How many ranks the output says, and how many there were where it does not.
    """
    ranks = said or otherwise
    if ranks is None:
        return tuple(nodes) or NOT_SAID
    if not nodes:
        return tuple(f"rank{rank}" for rank in range(ranks))
    if ranks % len(nodes) and len(nodes) < ranks:
        raise UsageError(
            f"--nodes: {file} has {count(ranks, 'rank')}, which {count(len(nodes), 'node')} cannot share evenly"
        )
    each = max(ranks // len(nodes), 1)
    return tuple(nodes[rank // each] for rank in range(ranks))


def sample_of(operation: Operation, size: int, seconds: float, place: Place) -> Sample:
    """Return the one number [s] that another program says of a launch, whose name is put in later."""
    time_ns = max(round(seconds * 1e9), 1)
    return Sample(
        launch="",
        cell=Cell(op=operation.name, size_bytes=size, place=place, setting="default"),
        timing="statistic",
        divisor=1,
        iterations=1,
        batch_iterations=1,
        histogram=[(time_ns, 1)],
        min_ns=time_ns,
        max_ns=time_ns,
        batch_medians_ns=[seconds * 1e9],
        warmup_medians_ns=[],
        warmup_settled=True,
    )


def _plan(results: Sequence[LaunchResult], operations: Mapping[str, Operation]) -> Plan:
    parts: dict[str, Part] = {}
    for result in results:
        launch = result.launch
        known = parts.get(
            launch.op, Part(op=launch.op, sizes_bytes=[], places=[], group=operations[launch.op].of_all)
        )
        parts[launch.op] = msgspec.structs.replace(
            known,
            sizes_bytes=sorted({*known.sizes_bytes, *launch.sizes_bytes}),
            places=list(dict.fromkeys([*known.places, launch.place])),
        )
    return Plan(
        workload=Workload(parts=list(parts.values()), sweeps=1, visit_us=0),
        ladder=IMPORTED,
        max_size_bytes=max(size for part in parts.values() for size in part.sizes_bytes),
        precision=PRECISION,
        confidence=CONFIDENCE,
        budget_s=0.0,
        min_launches=MIN_LAUNCHES,
        max_launches=max(len(results), MIN_LAUNCHES),
        tested_launches=TESTABLE,
        seed=0,
    )
