"""Runs: measured, imported, read, compared, diagnosed, shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wulf.base import store
from wulf.base.errors import UsageError
from wulf.base.records import Analysis, Comparison
from wulf.base.records.diagnosed import Diagnosis
from wulf.base.store import Run
from wulf.base.store import load as load_measured
from wulf.base.store.files import has
from wulf.base.store.hpl import HEAD as HPL_HEAD
from wulf.base.store.hpl import HplRun, load_hpl
from wulf.base.store.tuning import HEAD, TuningRun, load_tuning
from wulf.base.units import parse_duration
from wulf.compose import rendering
from wulf.face.api.arguments import checked
from wulf.face.api.common import RUNS, AnyRun, Cluster, note, place_of, run_of, stage
from wulf.face.logged import Logged
from wulf.node.cluster import inventory
from wulf.node.cluster.names import expand
from wulf.node.fleet import change
from wulf.node.fleet.begin import new_seed
from wulf.node.fleet.clusters import config_of
from wulf.node.measuring import analysis, imported
from wulf.node.measuring import session as measuring
from wulf.node.probe import ladder as ladders
from wulf.node.probe import suites
from wulf.node.trials import interleaving
from wulf.node.trials.printed import printed
from wulf.tools.diagnose import all_pairs, work


@checked
def load(path: Path | str) -> Run | TuningRun | HplRun:
    """Read a stored run: measured (`Run`), a search for better settings (`TuningRun`), or HPL (`HplRun`).

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
        place = store.find_run(str(path), RUNS, store.MANIFEST, HEAD, HPL_HEAD)
    if has(place, HPL_HEAD):
        return load_hpl(place)
    return load_tuning(place) if has(place, HEAD) else load_measured(place)


@checked
def measure(
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    pairs: str = "ring",
    ops: Sequence[str] | None = None,
    suite: str | None = None,
    plan: Path | str | None = None,
    command: str = "",
    ladder: str = "adaptive",
    max_size_bytes: int | None = None,
    mpi: str | None = None,
    precision: float = 0.02,
    budget_s: float = 300.0,
    max_launches: int = 40,
    seed: int | None = None,
    at_once: bool = False,
    ranks_per_node: int = 1,
    reference: bool = True,
    every_s: float | None = None,
) -> Run:
    """Measure the interconnect between pairs of nodes, as ``wulf measure`` does.

    Parameters
    ----------
    cluster
        A configuration, a cluster file, or ``lab``, ``slurm``, ``local``; None for the one that is there.
    path
        Directory of the new run, which must not exist; None for a new one in ``runs``.
    nodes
        Only these, in node set syntax.
    pairs
        ``all``, ``ring`` (each node with the next), or pairs: ``n1:n2,n3:n4``.
    ops
        Operations, in the order in which they have claim to the budget; None for the usual ones.
    suite, plan
        Experiments that belong together, by the name of a suite (``calibrate``, …) or in a file, instead of `ops` and
        `ladder`.
    command
        For a shell on the first node; its run time is measured. Without `ops` nothing else is.
    precision
        Launches are added until every 95 % interval is ± this wide, as a share.
    budget_s
        Time after which no launch is started [s]; of a series how long it is.

    at_once
        Measure pairs that have no node in common at the same time, in one MPI job.
    ranks_per_node
        Of operations in which all nodes take part.
    reference
        Also time something that only the node takes part in, between the visits.
    every_s
        Measure a series: a block with one launch of everything each so often [s].

    Returns
    -------
    Run
        Stored, and analysed.

    Raises
    ------
    WulfError
        Of what could not be done; what was measured until then is kept.
    """
    if (suite is not None) + (plan is not None) + (ops is not None) > 1:
        raise UsageError("suite, plan and ops each say what is measured: give one of them")
    experiments = suites.named(suite) if suite is not None else None
    if plan is not None:
        experiments = suites.from_file(Path(plan))
    config = config_of(cluster)
    request = measuring.MeasureRequest(
        config=config,
        pairs=inventory.pairs(pairs, config.select(nodes)),
        ops=list(ops) if ops is not None else None,
        command=command,
        experiments=tuple(experiments.experiment) if experiments else (),
        ladder=(f"suite {suite}" if suite is not None else str(plan)) if experiments else ladder,
        sizes_bytes=[max_size_bytes or sys.maxsize]
        if experiments
        else ladders.base_sizes(ladder, max_size_bytes),
        visit_us=round(parse_duration(experiments.visit if experiments else suites.VISIT) * 1e6),
        mpi=mpi or config.mpi.compiler,
        precision=precision,
        budget_s=budget_s,
        min_launches=min(6, max_launches),
        max_launches=max_launches,
        seed=new_seed(seed),
        at_once=at_once,
        ranks_per_node=ranks_per_node,
        reference=reference,
        every_s=every_s,
    )
    run, _ = measuring.start(request, place_of(path), Logged())
    return run


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
    return measure(cluster, path, nodes=nodes, suite="calibrate", budget_s=budget_s)


@checked
def import_run(
    files: Sequence[Path | str], path: Path | str | None = None, *, nodes: str | None = None
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
    """
    launches = imported.read_files([Path(file) for file in files])
    run, _ = imported.import_run(launches, expand(nodes) if nodes else [], place_of(path))
    return run


@checked
def analyze(run: AnyRun) -> Analysis:
    """Derive estimates, models and warnings again from the records of a run, and store them with it."""
    found = run_of(run)
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
    return analysis.compare(run_of(base), run_of(candidate), margin)


@checked
def compare_settings(
    base: str,
    candidate: str,
    cluster: Cluster = None,
    *,
    nodes: str | None = None,
    ops: Sequence[str] | None = None,
    sizes_bytes: Sequence[int] = (1, 64, 1024, 65536),
    pairs: str = "ring",
    command: str = "",
    match: Sequence[str] = (),
    names: Sequence[str] = (),
    mpi: str | None = None,
    launches: int = 20,
    budget_s: float = 600.0,
    margin: float = 0.02,
    seed: int | None = None,
    take_over: bool = False,
    relax: bool = False,
) -> Comparison:
    """Measure two settings or MPI libraries in turn, as ``wulf compare --interleaved`` does; all is put back.

    Parameters
    ----------
    base, candidate
        ``original`` or ``KNOB=VALUE,…``, with ``mpi=…`` (two MPI libraries) and ``pairs=…`` among them.
    command, match, names
        Measure the run time of this command, and numbers that it prints, as `app` does.
    launches
        Pairs of launches at most.
    """
    config = config_of(cluster)
    request = interleaving.InterleaveRequest(
        config=config,
        nodes=config.select(nodes),
        sides=(interleaving.side(base), interleaving.side(candidate)),
        ops=list(ops) if ops is not None else None,
        sizes_bytes=sorted(set(sizes_bytes)),
        pairs=pairs,
        command=command,
        prints=printed(match, names),
        launches=launches,
        budget_s=budget_s,
        margin=margin,
        permissions=change.Permissions(take_over=take_over, relax=relax),
        mpi=mpi or config.mpi.compiler,
        seed=new_seed(seed),
    )
    return in_turn(request)


@checked
def in_turn(request: interleaving.InterleaveRequest) -> Comparison:
    """Measure two sides in turn; after Ctrl-C what was measured until then is compared."""
    with interleaving.prepared(request, stage) as ready:
        found = interleaving.interleave(request, ready, stage)
    if found.interrupted:
        note("interrupted; everything is put back, and what was measured is compared")
    return found.comparison


@checked
def diagnose(
    run: AnyRun | None = None,
    *,
    baseline: AnyRun | None = None,
    margin: float = 0.05,
    cluster: Cluster = None,
    path: Path | str | None = None,
    nodes: str | None = None,
    budget_s: float = 120.0,
) -> Diagnosis:
    """Say which node, link or group of nodes is slow, as ``wulf diagnose`` does.

    Parameters
    ----------
    run
        A run of all pairs; None to measure one, of `cluster`, `nodes` and `budget_s`, into `path`.
    baseline
        An earlier run of the same pairs and sizes; ``diagnosis.gate`` says whether this one is worse by `margin`.
    """
    if run is None:
        config = config_of(cluster)
        measured, _ = all_pairs.measure(config, config.select(nodes), budget_s, place_of(path), _logged, note)
    else:
        measured = run_of(run)
    found = work.diagnose(measured)
    return found if baseline is None else work.against(found, measured, run_of(baseline), margin)


@contextmanager
def _logged() -> Iterator[Logged]:
    yield Logged()


@checked
def render(
    run: AnyRun | TuningRun | HplRun, form: rendering.Form = "html", path: Path | str | None = None
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
