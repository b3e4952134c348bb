"""Runs: measured, imported, read, compared, diagnosed, shown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wulf.base import store
from wulf.base.records import Analysis, Comparison
from wulf.base.records.diagnosed import Diagnosis
from wulf.base.request import RUNS
from wulf.base.store import Run, kinds
from wulf.base.store.tuning import TuningRun
from wulf.base.tool import Progress
from wulf.compose import rendering
from wulf.face.api.arguments import checked
from wulf.face.api.common import AnyRun, Cluster, note, stage
from wulf.face.api.declared import function
from wulf.face.logged import Logged
from wulf.node.cluster.names import expand
from wulf.node.fleet.new_run import place_of
from wulf.node.measuring import analysis, imported, imported_from
from wulf.node.measuring import session as measuring
from wulf.node.trials import interleaving
from wulf.page.formats import Form
from wulf.tools.compare import work as comparing
from wulf.tools.compare.request import InTurnRequest
from wulf.tools.diagnose import all_pairs
from wulf.tools.diagnose import work as judging
from wulf.tools.diagnose.request import MARGIN, DiagnoseRequest
from wulf.tools.hpl.store import HplRun
from wulf.tools.measure import work
from wulf.tools.measure.request import CALIBRATE, MeasureRequest
from wulf.tools.study.store import StudyRun


@checked
def load(path: Path | str) -> Run | TuningRun | HplRun | StudyRun:
    """Read a stored run: measured (`Run`), a search (`TuningRun`), HPL (`HplRun`) or a study (`StudyRun`).

    Runs of commands, patterns and HPC Challenge, and imported ones, are measured runs, too.

    Parameters
    ----------
    path
        Its directory, or its name as the command line takes it.

    Raises
    ------
    StoreError
        The directory is not a run, is of a newer version, or is damaged; names the file.
    """
    place = Path(path)
    if not os.path.isdir(place):  # noqa: PTH112 - also of a name that is too long for any file
        place = kinds.find_any(str(path), RUNS)
    run: Run | TuningRun | HplRun | StudyRun = kinds.kind_of(place).read(place)
    return run


def _measure(request: MeasureRequest, progress: Progress) -> Run:  # noqa: ARG001 - a run has its own
    path = place_of(request.path, request.runs)
    return measuring.start(work.measurement(request), path, Logged())[0]


measure = function(MeasureRequest, _measure)


@checked
def calibrate(
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    budget_s: float = 300.0,
) -> Run:
    """Measure what `predict` needs to know of a network: ``measure(suite="calibrate")``.

    Parameters
    ----------
    cluster, path, nodes, budget_s
        As for `measure`.
    """
    return measure(cluster, path, nodes=nodes, suite=CALIBRATE, budget_s=budget_s)


@checked
def import_run(
    files: Sequence[Path | str] = (),
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    pairs: str | None = None,
    ranks: int | None = None,
) -> Run:
    """Import outputs of other benchmarks as a run, as ``wulf measure import`` does.

    Parameters
    ----------
    files
        Each is a launch.
    path
        As for `measure`.
    nodes
        Where the ranks were, in their order, in node set syntax.
    pairs
        Outputs of many pairs: a pattern of the files' names, such as ``lat-{}-{}.txt``, or a file of lines
        ``NODE,NODE,FILE``.
    ranks
        How many there were where an output does not say it; one on each of `nodes` otherwise.
    """
    names = expand(nodes) if nodes else []
    launches = imported.read_files(imported_from.placed([Path(file) for file in files], pairs, names))
    run, _ = imported.import_run(launches, names, place_of(path, RUNS), ranks)
    return run


@checked
def analyze(run: AnyRun) -> Analysis:
    """Derive estimates, models and warnings again from the records of a run, and store them with it."""
    found = store.opened(run, RUNS)
    analysed = analysis.analyze(found)
    store.save_analysis(found.path, analysed)
    return analysed


@checked
def compare(base: AnyRun, candidate: AnyRun, *, margin: float = 0.02) -> Comparison:
    """Say what changed from one stored run to another: ``comparison.verdict``, ``columns(comparison.cells)``.

    Parameters
    ----------
    base, candidate
        Runs, their paths, or their names as the command line takes them.
    margin
        Change that does not matter, as a share.

    Raises
    ------
    AnalysisError
        They have nothing in common.
    """
    return analysis.compare(store.opened(base, RUNS), store.opened(candidate, RUNS), margin)


def _compare_settings(request: InTurnRequest, progress: Progress) -> Comparison:  # noqa: ARG001 - `in_turn` logs
    return in_turn(comparing.turns(request))


compare_settings = function(InTurnRequest, _compare_settings, name="compare_settings")


@checked
def in_turn(request: interleaving.InterleaveRequest) -> Comparison:
    """Measure two sides in turn; after Ctrl-C what was measured until then is compared."""
    with interleaving.prepared(request, stage) as ready:
        found = interleaving.interleave(request, ready, stage)
    if found.interrupted:
        note("interrupted; everything is put back, and what was measured is compared")
    return found.comparison


def _diagnose(request: DiagnoseRequest, progress: Progress) -> Diagnosis:
    measured, _ = all_pairs.judged(request, _logged, progress.note)
    found = judging.diagnose(measured, request.wanted)
    if request.baseline is None:
        return found
    baseline = store.opened(request.baseline, request.runs)
    return judging.against(found, measured, baseline, request.margin or MARGIN)


diagnose = function(DiagnoseRequest, _diagnose)


@contextmanager
def _logged() -> Iterator[Logged]:
    yield Logged()


@checked
def render(
    run: AnyRun | TuningRun | HplRun | StudyRun, form: Form = "html", path: Path | str | None = None
) -> str:
    """Return a run of any kind as ``wulf report`` shows it, and write it to a file where `path` names one.

    Parameters
    ----------
    form
        ``html`` (one page that works offline), ``text``, ``json``, ``csv``, ``markdown``, ``latex``, ``bibtex``.
    """
    if isinstance(run, (str, Path)):
        run = load(run)
    text = rendering.rendered(run, form)
    if path is not None:
        store.write_atomically(Path(path), text.encode())
    return text
