"""Programs and patterns: run, traced, performed, predicted; and the benchmarks that are programs."""

from __future__ import annotations

from pathlib import Path

from wulf.base.errors import StoreError
from wulf.base.records import Comparison, Prediction
from wulf.base.records.emulated import Emulated
from wulf.base.records.traced import TraceSummary
from wulf.base.store import Run, opened
from wulf.base.tool import Progress
from wulf.base.trace.summary import summary
from wulf.compose import traced_scaling
from wulf.face.api.declared import function
from wulf.face.api.measured import in_turn
from wulf.face.logged import Logged, LoggedHpl
from wulf.tools.application import work as characters
from wulf.tools.application.request import CharacteriseRequest
from wulf.tools.blas import work as blas
from wulf.tools.blas.request import BlasRequest
from wulf.tools.collectives import session as collectives
from wulf.tools.collectives.record import CollectiveTuning
from wulf.tools.collectives.request import CollectivesRequest
from wulf.tools.emulate import work as emulating
from wulf.tools.emulate.request import EmulateRequest
from wulf.tools.hpcc import work as hpcc
from wulf.tools.hpcc.request import HpccRequest
from wulf.tools.hpl import session as linpack
from wulf.tools.hpl.request import HplRequest
from wulf.tools.hpl.store import HplRun
from wulf.tools.predict import work as predicting
from wulf.tools.predict.request import PredictRequest
from wulf.tools.run import work as running
from wulf.tools.run.request import AgainstRequest, RunRequest, ScalingRequest
from wulf.tools.trace import work as tracing
from wulf.tools.trace.request import TraceRequest
from wulf.tools.worth import work as valuing
from wulf.tools.worth.request import WorthRequest


def _app(request: RunRequest, progress: Progress) -> Run:  # noqa: ARG001 - a run has its own
    return running.run(request, Logged())[0]


def _against(request: AgainstRequest, progress: Progress) -> Comparison:  # noqa: ARG001 - as with settings
    return in_turn(running.in_turn(request))


def _hpl(request: HplRequest, progress: Progress) -> HplRun:  # noqa: ARG001 - a run has its own
    return linpack.start(request, LoggedHpl())


def _trace(request: TraceRequest, progress: Progress) -> TraceSummary:
    found = tracing.trace(request, progress)
    if found.exit_code:
        progress.note(
            f"the command ended with exit code {found.exit_code}; {request.path} has what it did until then"
        )
    return summary(found.trace)


def _emulate(request: EmulateRequest, progress: Progress) -> Emulated:
    calibrated = opened(request.predict_on, request.runs) if request.predict_on is not None else None
    run, analysis = emulating.start(request, Logged())
    if calibrated is not None:
        emulating.predict(run, analysis, calibrated, progress)
    found = emulating.result(run, analysis)
    if found is None:
        raise StoreError(
            f"{run.path}: no launch of {request.pattern} succeeded; 'wulf report {run.path} --text' says why"
        )
    return found


def _predict(request: PredictRequest, progress: Progress) -> Prediction | list[Prediction]:
    found = predicting.predict(request, progress)
    return found[0] if isinstance(request.source, (str, Path)) else found


def _tune_collectives(request: CollectivesRequest, progress: Progress) -> CollectiveTuning:
    task = collectives.task_of(request, progress.note)
    return collectives.save(collectives.tune(task, progress), task.out)


tune_collectives = function(CollectivesRequest, _tune_collectives, name="tune_collectives")


app = function(RunRequest, _app)
app_against = function(AgainstRequest, _against)
predict = function(PredictRequest, _predict)
emulate = function(EmulateRequest, _emulate)
trace = function(TraceRequest, _trace)
characterise = function(CharacteriseRequest, characters.characterise)
hpl = function(HplRequest, _hpl)
run_hpcc = function(HpccRequest, hpcc.measure)
scaling = function(ScalingRequest, traced_scaling.measure)
compare_blas = function(BlasRequest, blas.compare)
worth = function(WorthRequest, valuing.value)
