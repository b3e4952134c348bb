"""From a trace, a calibrated run and networks to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import numpy as np

from wulf.base.contracts import Say
from wulf.base.errors import UsageError
from wulf.base.records import SCHEMA_VERSION, Estimate, Floor, Predicted, Prediction, Timeline
from wulf.base.records.contended import Contended, Contention
from wulf.base.trace.summary import command_of
from wulf.node.replay import replaying
from wulf.node.replay.asking import PredictRequest, Question
from wulf.node.replay.evaluating import Evaluated, evaluate
from wulf.node.replay.replaying import Replayer
from wulf.stats.prediction import contended, curves, judge, made_of, network, replayed, words
from wulf.stats.prediction.replayed import Replayed

#: What has a verdict.
_Told = TypeVar("_Told", Predicted, Contended)


def as_it_is(request: PredictRequest, say: Say) -> Estimate:
    """Return what the model says of a program on the network as it is [s]; raises as `predict`."""
    (of,) = evaluate([request], say)
    return judge.as_it_is(of.figures, "").time


def predict(request: PredictRequest, say: Say) -> Prediction:
    """Return what a program takes on the network of a run, and on others.

    Raises
    ------
    TraceError
        The trace cannot be replayed soundly; says why.
    UsageError
        The run lacks measurements, a network is not known, or ranks and nodes do not fit.
    """
    return predict_all([request], say)[0]


def predict_all(
    requests: Sequence[PredictRequest], say: Say, replays: Replayer = replaying.here
) -> list[Prediction]:
    """Return the same of several traces; raises as `predict`."""
    return [_prediction(one) for one in evaluate(requests, say, replays)]


def _prediction(of: Evaluated) -> Prediction:
    question, figures, plan = of.question, of.figures, of.found.plan
    request, base = question.request, question.base
    judged = _taken_apart(_judged(of), of)
    calibrated_s = figures.times[:, 0]
    by_bandwidth = curves.by_bandwidth(base, figures.grid)
    told = Prediction(
        schema_version=SCHEMA_VERSION,
        trace=str(request.source),
        command=command_of(question.trace),
        ranks=question.trace.ranks,
        nodes=len(set(question.nodes)),
        run=request.run.manifest.id,
        latency_s=base.between.latency_ns * 1e-9,
        bandwidth=network.bandwidth(base.between),
        samples=request.samples,
        seed=request.seed,
        operations=plan.operations,
        own_s=figures.own_s,
        traces=1 + len(request.again),
        gap=_gap(judged.as_it_is.change) if figures.own_s else None,
        base=judged.as_it_is,
        scenarios=judged.predicted,
        bound=judged.bound,
        floors=_floors(question, figures),
        refused=question.refused,
        not_told=dict(base.between.not_told),
        curve=of.found.curve,
        tolerance=curves.tolerances(
            of.found.curve, question.far_ns * 1e-9, base, question.sampled, calibrated_s
        ),
        bandwidth_curve=by_bandwidth,
        bandwidth_need=curves.needs(by_bandwidth, base, question.sampled, calibrated_s),
        hops=judge.hop_sources(of.found.hops),
        buffered=plan.buffered,
        largest_buffered_bytes=plan.largest_buffered_bytes,
        wildcards=question.wildcards,
        files_s=sum(question.files.values()),
        timelines=_timelines(of.found, judged.predicted, request.timeline),
        conclusion=[],
        notes=of.notes(),
        engine="events" if judged.by_events else "static",
        contention=judged.contention,
    )
    return _concluded(told)


@dataclass(frozen=True)
class _Judged:
    """What each network comes to, by the engine whose figures are shown."""

    as_it_is: Predicted
    predicted: list[Predicted]
    bound: Predicted
    contention: Contention | None
    by_events: bool


def _judged(of: Evaluated) -> _Judged:
    question, figures = of.question, of.figures
    request = question.request
    as_it_is = judge.as_it_is(figures, f"measured: {request.run.manifest.id}")
    *predicted, bound = [judge.on(one, place, figures) for place, one in enumerate(question.scenarios, 1)]
    if of.compared is None:
        return _Judged(as_it_is, predicted, bound, None, question.by_events)
    contention = contended.contention(of.compared, str(request.topology or ""))
    by_events = question.by_events or (request.engine == "auto" and contended.may_matter(contention))
    if by_events:
        as_it_is, predicted = contended.leading(of.compared, contention, as_it_is, predicted)
    return _Judged(as_it_is, predicted, bound, contention, by_events)


def _taken_apart(judged: _Judged, of: Evaluated) -> _Judged:
    """Return the same with what intervals are made of, where they are by messages in their order."""
    if judged.by_events:
        return judged
    whole = [judged.as_it_is, *judged.predicted]
    others = [of.figures.usual(column) for column in range(1, len(whole))]
    times = np.column_stack([of.figures.modelled(), *others])
    parts = made_of.parts(of.question.draws, times, [one.time for one in whole], of.question.calibration)
    first, *rest = [
        msgspec.structs.replace(one, made_of=some) for one, some in zip(whole, parts, strict=True)
    ]
    return replace(judged, as_it_is=first, predicted=rest)


def _floors(question: Question, figures: judge.Figures) -> list[Floor]:
    """Return what each network cannot take less than, by bandwidth and by computing alone."""
    names = [judge.AS_IT_IS, *(one.name for one in question.scenarios)]
    return [
        Floor(
            network=name,
            bandwidth_s=float(bandwidth_s),
            computing_s=float(computing_s),
            least=figures.floor(column),
        )
        for column, (name, (bandwidth_s, computing_s)) in enumerate(zip(names, figures.floors, strict=True))
    ]


def _concluded(told: Prediction) -> Prediction:
    """Return a prediction with what it comes to; nothing firm where the model explains little of the program."""
    if not told.explains:
        return _nothing_firm(told)
    # Of a model that explains little it is no news that contention matters little, too.
    meaning = told.contention.meaning[:1] if told.contention is not None else []
    return msgspec.structs.replace(told, conclusion=[*words.conclusion(told), *meaning])


def _nothing_firm(told: Prediction) -> Prediction:
    """Return what is said where the model explains little of the program."""
    scenarios = [_untold(one) for one in told.scenarios]
    contention = told.contention
    if contention is not None:
        contention = msgspec.structs.replace(
            contention, scenarios=[_untold(one) for one in contention.scenarios]
        )
    told = msgspec.structs.replace(
        told, scenarios=scenarios, bound=_untold(told.bound), contention=contention
    )
    return msgspec.structs.replace(told, conclusion=list(words.conclusion(told)))


def _untold(one: _Told) -> _Told:
    """Return what a model that explains little of the program says of it: nothing firm."""
    return msgspec.structs.replace(one, verdict=judge.UNTOLD)


def _timelines(found: Replayed, predicted: Sequence[Predicted], chosen: str) -> list[Timeline]:
    """Return those of the network as it is, and of the one that is chosen: the fastest where none is named."""
    if not found.rank_times:
        return []
    names = [one.name for one in predicted]
    if chosen and chosen not in names:
        raise UsageError(f"--timeline {chosen}: is not among the networks asked about: {', '.join(names)}")
    fastest = min(predicted, key=lambda one: one.change.value).name
    place = names.index(chosen or fastest)
    return [
        *replayed.timelines(found, 0, judge.AS_IT_IS),
        *replayed.timelines(found, place + 1, names[place]),
    ]


def _gap(change: Estimate) -> Estimate:
    return msgspec.structs.replace(change, method="model ÷ program's own time, on the network as it is")
