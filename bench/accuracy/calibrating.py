"""Calibrations of several networks in turn: each round has one launch of every operation on each of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from bench.common import PAIR, Pair
from wulf.base import store
from wulf.base.records import LaunchResult
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.node.measuring import session
from wulf.node.measuring.analysis import analyze
from wulf.node.probe import suites

#: Longer than one launch of each operation takes on the slowest network.
_BUDGET_S = 300.0
_LEAST = 6


def measure(nodes: Pair, path: Path, mpi: str) -> None:
    """Launch every operation that a prediction takes once, and store that as a run."""
    plan = suites.from_file(Path(__file__).with_name("calibrate.toml"))
    sizes = [size for one in plan.experiment for size in one.sizes_bytes()]
    request = session.MeasureRequest(
        config=nodes.config,
        pairs=[PAIR],
        ladder="calibrate",
        sizes_bytes=[max(sizes)],
        experiments=tuple(plan.experiment),
        mpi=mpi,
        budget_s=_BUDGET_S,
        min_launches=1,
        max_launches=1,
    )
    with MeasureProgress() as progress:
        session.start(request, path, progress)


def joined(paths: Iterable[Path], place: Path) -> store.Run:
    """Return runs of one launch of each operation as one run of many, analysed in a directory of its own."""
    runs = [store.load(path) for path in paths]
    results = [
        _renamed(result, number, place)
        for number, run in enumerate(runs)
        for place, result in enumerate(run.results, start=sum(len(one.results) for one in runs[:number]))
    ]
    first = runs[0]
    plan = replace(first.manifest.plan, min_launches=_LEAST, max_launches=max(_LEAST, len(runs)))
    run = replace(
        first, path=place, manifest=replace(first.manifest, id=place.name, plan=plan), results=results
    )
    place.mkdir(parents=True, exist_ok=True)
    store.save_analysis(place, analyze(run))
    return run


def _renamed(result: LaunchResult, number: int, index: int) -> LaunchResult:
    name = f"{number}-{result.launch.id}"
    return replace(
        result,
        launch=replace(result.launch, id=name, index=index),
        samples=[replace(sample, launch=name) for sample in result.samples],
    )
