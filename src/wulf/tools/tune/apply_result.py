"""What was found to help: set it for good, and say how it stands on the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wulf.base import catalogue
from wulf.base.nodeset import fold
from wulf.base.records import ChangeOutcome, NodeRecord, Values, Whole
from wulf.base.store.tuning import AFTER, BEFORE, COMPARED, TuningRun
from wulf.node.change import steps
from wulf.node.change.guard import Guards
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import change
from wulf.node.trials.bench import job_line
from wulf.stats import estimate
from wulf.tools.tune.page import ChangeRow, TuningReport


def keep(
    guards: Guards,
    config: ClusterConfig,
    records: Sequence[NodeRecord],
    kept: Values,
    *,
    deadline_s: int,
    watch: Callable[[str], None],
) -> ChangeOutcome:
    """Set what the search kept on all nodes, confirmed; knobs that only a job has are left to the jobs."""
    knob_settings = [
        steps.check(knob, value)
        for name, value in kept.items()
        if not catalogue.unsettable(knob := catalogue.knob(name))
    ]
    wanted = {record.node: knob_settings for record in records}
    intention = change.plan(records, config.interface, wanted, change.VETTED)
    if not intention.plans:
        return ChangeOutcome(change="", kept=True, nodes=[])
    return change.make(guards, config, intention, deadline_s=deadline_s, watch=watch)


def rows(run: TuningRun) -> list[ChangeRow]:
    """Return what an administrator must know of every kept setting."""
    if run.result is None:
        return []
    manifest = run.manifest
    originals = {candidate.knob: candidate.original for candidate in manifest.plan.candidates}
    found = []
    for name, value in run.result.kept.items():
        knob = catalogue.knob(name)
        nodes = [r.node for r in manifest.records if not steps.has(knob, value, r.facts.get(name))]
        found.append(
            ChangeRow(
                knob=name,
                title=knob.title,
                original=originals.get(name, ""),
                value=value,
                nodes=fold(nodes or manifest.nodes),
                risk=knob.risk,
                stored=_stored(run, name, value),
                undo=f"wulf rollback --to {manifest.change}" if manifest.change else "",
            )
        )
    return found


def report(run: TuningRun) -> TuningReport:
    """Return what the report of a tuning run is made of.

    Raises
    ------
    ValueError
        It has no conclusion yet.
    """
    if run.result is None:
        raise ValueError("a run without a conclusion has no report")
    return TuningReport(
        plan=run.manifest.plan,
        trials=run.trials,
        tuning=run.result,
        nodes=fold(run.manifest.nodes),
        undo="wulf rollback" if run.manifest.change else "",
        changed=rows(run),
        audit_before=run.audit_before,
        audit_after=run.audit_after,
        mended=run.mended,
        whole=whole(run),
        pages=_pages(run),
    )


def whole(run: TuningRun) -> Whole | None:
    """Return the effect of mending and tuning together; None where nothing was mended, or there is no conclusion."""
    if run.result is None:
        return None
    return estimate.whole(run.mended, run.manifest.workload, run.manifest.plan, run.trials, run.result)


def _pages(run: TuningRun) -> list[tuple[str, str]]:
    """Return title and address of the pages of whole curves."""
    compared = (run.path / COMPARED).exists()
    # Runs of before there was a comparison have curves of before and after the tuning alone.
    titles = ("as found", "as left") if compared else ("before the tuning", "after the tuning")
    pages = [
        (title, f"{name}/report.html")
        for title, name in zip(titles, (BEFORE, AFTER), strict=True)
        if (run.path / name / "report.html").exists()
    ]
    return [*pages, ("as left against as found", COMPARED)] if compared else pages


def _stored(run: TuningRun, name: str, value: str) -> str:
    kind = catalogue.knob(name).access.kind
    if kind == "environment":
        return f"in the job's environment: {job_line({name: value})}"
    if kind == "mpi_parameter" and run.manifest.change:
        return "openmpi-mca-params.conf on the nodes"
    return run.manifest.stored.get(name, "")
