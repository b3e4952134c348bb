"""Traces on the calibrated network and on others, with all samples."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wulf.base.contracts import Say
from wulf.base.errors import UsageError
from wulf.node.replay import contending, program_traces, replaying
from wulf.node.replay.asking import PredictRequest, Question, asked_of
from wulf.node.replay.replaying import Replayer
from wulf.stats.prediction import contended, judge, words
from wulf.stats.prediction.contended import Compared
from wulf.stats.prediction.replayed import Replayed

_UNSEEN = (
    "Messages are in their recorded order, and it may matter what is shared and who comes first ({}): this trace is so "
    "large that a replay event by event takes minutes; --engine both makes it."
)
_ALONE = (
    "No two ranks share an interface, no node gets messages of several, and nobody takes whoever comes first: messages "
    "in their recorded order are all there is to know."
)


@dataclass(frozen=True)
class Evaluated:
    """A trace on the calibrated network and on others, with all samples."""

    question: Question
    figures: judge.Figures
    found: Replayed
    #: What event by event comes of it; None where that was not looked at.
    compared: Compared | None = None

    def likely(self, scenario: int) -> float:
        """Run time on a scenario's network ÷ that on the network as it is, with likely parameters."""
        return self.figures.likely(scenario + 1)

    def changes(self, scenario: int) -> NDArray[np.float64]:
        """Return the same of every sample."""
        return self.figures.changes(scenario + 1)

    def notes(self) -> list[str]:
        """Return what must be known of the figures."""
        plan, question = self.found.plan, self.question
        fit = self.figures.fit if self.figures.own_s else None
        buffered = (plan.buffered, plan.largest_buffered_bytes)
        unseen = question.request.engine == "auto" and self.compared is None
        doubt = _UNSEEN.format("; ".join(question.may_matter)) if question.may_matter else _ALONE
        return [
            *words.notes(fit, question.spread, question.own, buffered, question.wildcards),
            *([doubt] if unseen else []),
            *question.known,
            *words.lost(plan.lost, plan.lost_from, plan.lost_to),
            *words.threads(question.overlaps),
            *words.files(question.files, self.figures.own_s),
            "Adding up in reductions is counted as taking no time: the calibration does not measure it.",
        ]


def evaluate(
    requests: Sequence[PredictRequest], say: Say, replays: Replayer = replaying.here
) -> list[Evaluated]:
    """Replay traces on all networks that are asked about, likely ones and samples.

    Parameters
    ----------
    replays
        Who does it, and where.

    Raises
    ------
    TraceError, UsageError
        As `predict`.
    """
    with ExitStack() as stack:

        def opened(source: Path, request: PredictRequest, ranks: int = 0) -> Path:
            return stack.enter_context(program_traces.opened(source, ranks, request.scratch))

        questions = []
        for one in requests:
            source, own = program_traces.usual(one.source, one.again)
            beside = [opened(other, one) for other in one.beside]
            questions.append(asked_of(one, opened(source, one, one.ranks), own, beside))
        found = replays([one.work() for one in questions], say)
        return [_evaluated(question, one, say) for question, one in zip(questions, found, strict=True)]


def _evaluated(question: Question, found: Replayed, say: Say) -> Evaluated:
    try:
        figures = judge.figures(found, question.asked, question.own, question.draws)
    except UsageError as lack:
        raise UsageError(f"{question.request.source}: {lack}") from None
    return Evaluated(question, figures, found, _compared(question, figures, found.plan.operations, say))


def _compared(question: Question, figures: judge.Figures, operations: int, say: Say) -> Compared | None:
    """Replay event by event, where that is asked for or does not take long."""
    request, asked = question.request, question.asked
    wanted = request.engine in ("events", "both") or (
        request.engine == "auto"
        and (
            question.is_shared
            or (bool(question.may_matter) and contended.is_affordable(operations, asked.columns))
        )
    )
    if not wanted:
        return None
    samples = contended.samples_for(operations, asked.columns, request.samples)
    alone, beside = contending.contend(question.shared, asked, samples, request.seed, say)
    # Not of the bound, which is no network.
    names = [judge.AS_IT_IS, *(one.name for one in question.scenarios[:-1])]
    return Compared(figures, alone, beside, names, question.shared.others, question.buffered)
