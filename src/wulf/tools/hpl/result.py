"""What follows from the launches of a run of HPL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wulf.base.errors import AnalysisError
from wulf.base.records import SCHEMA_VERSION, Estimate
from wulf.base.records.libraries import BlasRank
from wulf.base.text import count
from wulf.stats.core import intervals
from wulf.tools.hpl import program, run_time, top500
from wulf.tools.hpl.record import (
    Forecast,
    HplFigure,
    HplLaunch,
    HplManifest,
    HplPlan,
    HplResult,
    HplSetting,
    TimeModel,
)

CONFIDENCE = 0.95


def conclude(
    manifest: HplManifest, launches: Sequence[HplLaunch], blas: Sequence[BlasRank] = ()
) -> HplResult:
    """Return the conclusion from what was launched so far; `blas` is how its BLAS libraries compare.

    The rate is the median over fresh launches of what was chosen; what the search itself saw of it is not among them:
    it was chosen for being quick there.
    """
    plan = manifest.plan
    confirming = [launch for launch in launches if launch.phase == "confirm"]
    right = [launch for launch in confirming if launch.status == "ok"]
    figures = _figures(plan, confirming)
    chosen = confirming[-1] if confirming else None
    if figures:
        best = figures[0].problem
        right = [launch for launch in right if (launch.n, launch.setting) == (best.n, best.setting)]
        chosen = next((launch for launch in right), chosen)
    rates = [launch.gflops for launch in right if launch.gflops is not None]
    gflops = _median(rates, "GFLOPS")
    found = model(launches, chosen.setting) if chosen else None
    return HplResult(
        schema_version=SCHEMA_VERSION,
        run_id=manifest.id,
        status=manifest.status,
        n=chosen.n if chosen else None,
        setting=chosen.setting if chosen else None,
        gflops=gflops,
        time=_median([launch.time_s for launch in right if launch.time_s is not None], "s"),
        residual=max((launch.residual for launch in right if launch.residual is not None), default=None),
        of_peak=_scaled(gflops, 1 / plan.peak.gflops, "ratio") if plan.peak else None,
        **_costs(plan, gflops),
        **_powers(right),
        figures=figures,
        model=found,
        forecast=run_time.forecast(found, chosen.n) if chosen and found else None,
        launches={
            phase: sum(launch.phase == phase for launch in launches)
            for phase in dict.fromkeys(launch.phase for launch in launches)
        },
        cut=sum(launch.status == "cut" for launch in launches),
        failed=sum(launch.status == "failed" for launch in launches),
        blas=list(blas),
        library=library(plan, launches),
        settings=_count(plan.values) if plan.values else len(plan.asked),
        **_in_lists(gflops),
        notes=_notes(manifest, confirming, gflops),
    )


def _figures(plan: HplPlan, confirming: Sequence[HplLaunch]) -> list[HplFigure]:
    """Return what came of each problem that was asked for, the fastest first."""
    found = []
    for problem in plan.asked:
        own = [one for one in confirming if (one.n, one.setting) == (problem.n, problem.setting)]
        right = [one for one in own if one.status == "ok"]
        found.append(
            HplFigure(
                problem=problem,
                gflops=_median([one.gflops for one in right if one.gflops is not None], "GFLOPS"),
                time=_median([one.time_s for one in right if one.time_s is not None], "s"),
                failed=sum(one.status == "failed" for one in own),
            )
        )
    return sorted(found, key=lambda one: -(one.gflops.value if one.gflops else 0.0))


def _costs(plan: HplPlan, gflops: Estimate | None) -> dict[str, Any]:
    """Return the fields of a result that say what it cost by the user's own prices and watts."""
    prices = {name: _inverse(gflops, price, "per GFLOPS") for name, price in plan.prices.items()}
    return {
        "price_per_gflops": _inverse(gflops, plan.price, "per GFLOPS") if plan.price else None,
        "mflops_per_watt": _scaled(gflops, 1000 / plan.watts, "MFLOPS/W") if plan.watts else None,
        "prices_per_gflops": {name: price for name, price in prices.items() if price is not None},
    }


def _in_lists(gflops: Estimate | None) -> dict[str, Any]:
    """Return the fields of a result that say how it would have stood in lists of the Top500."""
    where = top500.last_list(gflops.value) if gflops else None
    return {
        "standings": top500.standings(gflops.value) if gflops else [],
        "last_list": where.name if where else None,
        "last_entry_gflops": where.entry_gflops if where else None,
        "unknown_lists": where.unknown if where else [],
    }


def _powers(right: Sequence[HplLaunch]) -> dict[str, Any]:
    """Return what nodes took by their own measure, and what a watt brought, over the launches that say it."""
    found: dict[str, Any] = {}
    for what in ("node", "cpu"):
        known = [
            (one.gflops, watts)
            for one in right
            if one.gflops is not None
            and one.power is not None
            and (watts := getattr(one.power, f"{what}_w")) is not None
        ]
        found[f"{what}_watts"] = _median([watts for _, watts in known], "W")
        found[f"mflops_per_{what}_watt"] = _median([1000 * rate / watts for rate, watts in known], "MFLOPS/W")
    return found


def library(plan: HplPlan, launches: Sequence[HplLaunch]) -> str:
    """Return the BLAS library that the last launch of a chosen setting had; empty where none was asked for."""
    env = next((launch.env for launch in reversed(launches) if launch.phase != "blas"), {})
    return next((name for name, own in plan.libraries.items() if env == {**plan.env, **own}), "")


def model(launches: Sequence[HplLaunch], chosen: HplSetting) -> TimeModel | None:
    """Return the time of a setting by the order, from launches of before the result; None where they are too few."""
    own = [
        launch for launch in launches if launch.phase not in ("blas", "confirm") and launch.setting == chosen
    ]
    # Before the BLAS library was chosen the same setting had another one.
    timings = [
        (launch.n, launch.time_s)
        for launch in own
        if launch.status == "ok" and launch.time_s and launch.env == own[-1].env
    ]
    try:
        return run_time.fit(timings)
    except AnalysisError:
        return None


def predicted(found: TimeModel | None, n: int) -> Forecast | None:
    """Return what a model predicts of an order; None without one."""
    return run_time.forecast(found, n) if found else None


def _count(values: dict[str, list[str]]) -> int:
    total = 1
    for several in values.values():
        total *= len(several)
    return total


def _median(values: Sequence[float], unit: str) -> Estimate | None:
    if not values:
        return None
    found = intervals.median(values, CONFIDENCE)
    return Estimate(
        value=found.value,
        low=found.low,
        high=found.high,
        confidence=found.confidence,
        unit=unit,
        n=found.n,
        method=found.method,
    )


def _scaled(estimate: Estimate | None, factor: float, unit: str) -> Estimate | None:
    if estimate is None:
        return None
    low = None if estimate.low is None else estimate.low * factor
    high = None if estimate.high is None else estimate.high * factor
    return Estimate(
        value=estimate.value * factor,
        low=low,
        high=high,
        confidence=estimate.confidence,
        unit=unit,
        n=estimate.n,
        method=estimate.method,
    )


def _inverse(estimate: Estimate | None, total: float, unit: str) -> Estimate | None:
    if estimate is None:
        return None
    return Estimate(
        value=total / estimate.value,
        low=None if estimate.high is None else total / estimate.high,
        high=None if estimate.low is None else total / estimate.low,
        confidence=estimate.confidence,
        unit=unit,
        n=estimate.n,
        method=estimate.method,
    )


def _notes(manifest: HplManifest, confirming: Sequence[HplLaunch], gflops: Estimate | None) -> list[str]:
    plan, found = manifest.plan, []
    if gflops is None:
        found.append("no fresh launch of a chosen setting was made: there is no figure yet")
    elif gflops.low is None:
        found.append(f"too few for an interval, which takes 6: {count(gflops.n, 'fresh launch')}")
    if plan.peak_unknown:
        found.append(plan.peak_unknown)
    if plan.largest_n is None:
        found.append("the memory of the nodes is unknown: the order is limited by time alone")
    elif not plan.asked and confirming and confirming[-1].n < plan.largest_n:
        found.append(
            f"the order {confirming[-1].n} is limited by time: {plan.largest_n} would fill "
            f"{100 * program.MEMORY_SHARE:.0f} % of the memory, and is faster as a rule"
        )
    if len(plan.asked) > 1:
        found.append(
            f"the figure is that of the fastest of {len(plan.asked)} problems: it was chosen by these same launches"
        )
    found += _threshold_note(plan.asked_threshold)
    if lacks := {why for one in confirming if one.power is not None for why in one.power.lacks.values()}:
        found.append(f"the CPUs' power is not known: {', '.join(sorted(lacks))}")
    if lacks := {why for one in confirming if one.power is not None for why in one.power.node_lacks.values()}:
        found.append(f"the power of whole nodes is not known: {', '.join(sorted(lacks))}")
    if plan.kind == "hpcc" and not plan.asked:
        found.append(
            "HPL ran within hpcc, which makes all its other tests first at every launch: with an xhpl more settings "
            "are tried in the same time, and bad ones are cut short"
        )
    failed = [launch for launch in confirming if launch.status == "failed"]
    found += [f"launch {launch.index} of the chosen setting failed: {launch.reason}" for launch in failed]
    return found


def _threshold_note(asked: float | None) -> list[str]:
    """Say by what results were judged where a file wants that otherwise (HPL's TUNING, line 13)."""
    if asked is None or asked == program.THRESHOLD:
        return []
    means = (
        ", with which HPL checks nothing," if asked < 0 else ", which no result passes," if asked == 0 else ""
    )
    return [
        f"the file's threshold of {asked:g}{means} was not used: results were checked against {program.THRESHOLD:g}"
    ]
