"""Nodes: what they are, what is wrong with them, and settings that help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf.base import catalogue
from wulf.base.errors import UsageError
from wulf.base.records import Audit, Mending, NodeRecord
from wulf.base.store.tuning import TuningRun
from wulf.face.api.arguments import checked
from wulf.face.api.common import Cluster, config_of, place_of, stage
from wulf.face.logged import Logged
from wulf.node.fleet import change
from wulf.node.fleet.begin import new_seed
from wulf.node.fleet.look import judge, look
from wulf.node.trials import prepare
from wulf.tools.mend import work
from wulf.tools.tune import session as tuning


@checked
def node_facts(cluster: Cluster = None, *, nodes: str | None = None) -> list[NodeRecord]:
    """Return what the nodes are, as ``wulf audit facts`` does: ``records[0].facts``; nothing is changed."""
    config = config_of(cluster)
    return look(config, config.select(nodes))


@checked
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
    _require_profile(profile)
    config = config_of(cluster)
    return judge(look(config, config.select(nodes)), profile)


@checked
def mend(
    cluster: Cluster = None,
    findings: Sequence[str] = (),
    *,
    nodes: str | None = None,
    profile: catalogue.Profile = "hpc",
    measured: bool = True,
    mpi: str | None = None,
    seed: int | None = None,
    take_over: bool = False,
    relax: bool = False,
) -> Mending:
    """Set right what is certainly wrong, in one guarded step, as ``wulf mend`` does, until the next boot.

    Parameters
    ----------
    cluster, nodes, profile
        As for `audit`.
    findings
        Ids of findings; none for all that can be mended.
    measured
        Measure with and without it, and undo what makes something worse.
    take_over, relax
        What ``--take-over`` and ``--relax`` permit.

    Returns
    -------
    Mending
        ``left`` is what can be mended and is not yet.
    """
    _require_profile(profile)
    config = config_of(cluster)
    request = work.MendRequest(
        config=config,
        nodes=config.select(nodes),
        names=list(findings),
        profile=profile,
        permissions=change.Permissions(take_over=take_over, relax=relax),
        mpi=mpi or config.mpi.compiler,
        seed=new_seed(seed),
        measured=measured,
    )
    # What most nodes have only all of them tell.
    records = look(config, list(config.nodes))
    choice, plan = work.planned(request, judge(records, profile), records)
    return work.mend(request, choice, plan, records, stage)


@checked
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
    config = config_of(cluster)
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
    return tuning.start(request, place_of(path), watcher, set_kept=set_kept)


def _require_profile(profile: str) -> None:
    if profile not in catalogue.PROFILES:
        raise UsageError(f"there is no profile {profile!r}; there are: {', '.join(catalogue.PROFILES)}")
