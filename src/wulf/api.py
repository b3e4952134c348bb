"""What Python programs use: `measure`, `audit` and `tune` as the command line does them, and `load` of stored runs.

Progress goes to the logger ``wulf``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf import catalogue
from wulf.cluster import inventory
from wulf.cluster.inventory import ClusterConfig
from wulf.errors import UsageError
from wulf.probe import ladder as ladders
from wulf.procedure import change
from wulf.procedure.begin import new_run, new_seed
from wulf.procedure.clusters import cluster as named_cluster
from wulf.procedure.logged import Logged
from wulf.procedure.look import judge, look
from wulf.procedure.measuring import session as measuring
from wulf.procedure.tuning import prepare
from wulf.procedure.tuning import session as tuning
from wulf.records import Audit
from wulf.store import Run
from wulf.store import load as load_measured
from wulf.store.files import has
from wulf.store.tuning import HEAD, TuningRun, load_tuning

__all__ = ["Audit", "ClusterConfig", "Run", "TuningRun", "audit", "load", "measure", "tune"]

#: Where runs are stored that are given no path, as with the command line.
RUNS = Path("runs")

Cluster = ClusterConfig | Path | str | None


def load(path: Path | str) -> Run | TuningRun:
    """Read a stored run: measured (`Run`), or a search for better settings (`TuningRun`).

    Raises
    ------
    StoreError
        The directory is not a run, is of a newer version, or is damaged; names the file.
    """
    place = Path(path)
    return load_tuning(place) if has(place, HEAD) else load_measured(place)


def measure(
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    pairs: str = "ring",
    ops: Sequence[str] | None = None,
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
    config = _config(cluster)
    request = measuring.MeasureRequest(
        config=config,
        pairs=inventory.pairs(pairs, config.select(nodes)),
        ops=list(ops) if ops is not None else None,
        command=command,
        ladder=ladder,
        sizes_bytes=ladders.base_sizes(ladder, max_size_bytes),
        mpi=mpi or config.mpi.compiler,
        precision=precision,
        budget_s=budget_s,
        max_launches=max_launches,
        seed=new_seed(seed),
        at_once=at_once,
        ranks_per_node=ranks_per_node,
        reference=reference,
        every_s=every_s,
    )
    run, _ = measuring.start(request, _place(path), Logged())
    return run


def audit(cluster: Cluster = None, *, nodes: str | None = None, profile: catalogue.Profile = "hpc") -> Audit:
    """Check every node's settings, services and drivers, as ``wulf audit`` does: nothing is changed.

    Parameters
    ----------
    cluster, nodes
        As for `measure`.
    profile
        What the cluster is to be good at: ``latency``, ``throughput`` or ``hpc`` (both).

    Raises
    ------
    TransportError
        No node answers.
    """
    if profile not in catalogue.PROFILES:
        raise UsageError(f"there is no profile {profile!r}; there are: {', '.join(catalogue.PROFILES)}")
    config = _config(cluster)
    return judge(look(config, config.select(nodes)), profile)


def tune(
    cluster: Cluster = None,
    path: Path | str | None = None,
    *,
    nodes: str | None = None,
    objective: str = "latency",
    knobs: Sequence[str] = (),
    mpi: str | None = None,
    budget_s: float = 1800.0,
    margin: float = 0.02,
    seed: int | None = None,
    set_kept: bool = True,
    take_over: bool = False,
    relax: bool = False,
) -> TuningRun:
    """Find the settings that help, by experiment, and set them, as ``wulf tune`` does.

    Parameters
    ----------
    cluster, path, nodes
        As for `measure`.
    objective
        ``latency``, ``bandwidth``, ``app: COMMAND``, or a ``.toml`` file.
    knobs
        Only these (``*`` matches, ``KNOB=VALUE,VALUE`` names values); empty for the objective's own.
    margin
        Change of the objective that does not matter, as a share.
    set_kept
        Whether what helps stays set at the end, until the next boot.
    take_over, relax
        What ``--take-over`` and ``--relax`` permit.

    Raises
    ------
    WulfError
        Of what could not be done; the nodes are put back then.
    """
    config = _config(cluster)
    compiler = mpi or config.mpi.compiler
    watcher = Logged()
    request = tuning.TuneRequest(
        config=config,
        nodes=config.select(nodes),
        goal=prepare.goal(objective, compiler, watcher.stage),
        patterns=list(knobs),
        mpi=compiler,
        budget_s=budget_s,
        margin=margin,
        seed=new_seed(seed),
        permissions=change.Permissions(take_over=take_over, relax=relax),
    )
    return tuning.start(request, _place(path), watcher, set_kept=set_kept)


def _config(cluster: Cluster) -> ClusterConfig:
    if isinstance(cluster, ClusterConfig):
        return cluster
    return named_cluster(None if cluster is None else str(cluster))


def _place(path: Path | str | None) -> Path:
    if path is None:
        return new_run(None, RUNS)
    return new_run(Path(path).name, Path(path).parent)
