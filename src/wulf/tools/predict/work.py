"""From what is asked to what is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wulf.base.errors import ConfigError
from wulf.base.records import Prediction
from wulf.base.store import opened
from wulf.base.tool import Progress
from wulf.node.replay import asking, job_array, predicting
from wulf.tools.predict import energy
from wulf.tools.predict.request import PredictRequest


def predict(request: PredictRequest, progress: Progress) -> list[Prediction]:
    """Return a prediction of each trace; raises as `wulf.node.replay.predicting.predict`."""
    return replayed(request, questions(request), progress)


def replayed(
    request: PredictRequest, asked: Sequence[asking.PredictRequest], progress: Progress
) -> list[Prediction]:
    """Return what comes of questions, replayed where the request says."""
    replays = job_array.replayer(request.slurm, request.runs, progress.note)
    found = predicting.predict_all(asked, progress, replays)
    if request.node_watts is None:
        return found
    return [energy.with_energy(one, request.node_watts) for one in found]


def questions(
    request: PredictRequest, *, timelines: bool = False, timeline: str = ""
) -> list[asking.PredictRequest]:
    """Return what is asked of each trace.

    Parameters
    ----------
    timelines, timeline
        Whether a page shows where the time of the ranks goes, and on which network beside that as it is.

    Raises
    ------
    ConfigError
        The file of the placement cannot be read, or has something else than numbers.
    """
    run = opened(request.on, request.runs)
    placement = _placement(request.placement)
    return [
        asking.PredictRequest(
            source=source,
            again=_paths(request.again),
            run=run,
            what_if=request.what_if,
            own=_paths(request.own),
            ranks=request.ranks,
            ranks_per_node=request.ranks_per_node,
            placement=placement,
            rules=Path(request.rules) if request.rules is not None else None,
            find_run=lambda name: opened(name, request.runs),
            samples=request.samples,
            seed=request.seed,
            timelines=timelines,
            timeline=timeline,
            engine=request.engine,
            beside=_paths(request.beside),
            topology=Path(request.topology) if request.topology is not None else None,
            scratch=request.runs if request.slurm is not None else None,
        )
        for source in request.sources
    ]


def _paths(named: Sequence[Path | str]) -> list[Path]:
    return [Path(one) for one in named]


def _placement(given: Sequence[int] | Path | str) -> list[int]:
    if not isinstance(given, (str, Path)):
        return list(given)
    try:
        words = Path(given).read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {given}: {getattr(error, 'strerror', 'it is not text')}") from None
    for place, word in enumerate(words):
        if not (word.isascii() and word.isdigit()):
            raise ConfigError(f"{given}: number {place + 1}, of rank {place}, is {word!r}: no node")
    return [int(word) for word in words]
