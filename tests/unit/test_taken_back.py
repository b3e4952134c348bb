"""Receives that a program cancels: those that got no message are as if they had not been."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.unit.odd_traces import Doing, of, receive, send, stream
from tests.unit.predict_fixture import calibrated_run
from wulf.base import store
from wulf.base.records import Prediction
from wulf.base.trace.export import goal
from wulf.base.trace.export.operations import exported
from wulf.base.trace.layout import ANY, NOBODY, Flag, Kind
from wulf.base.trace.reader import read
from wulf.base.trace.writer import write_container
from wulf.node.replay import asking, predicting

#: What is begun before a message comes, and how that ends: a receive, and its first call.
SPECIFIC = of(Kind.IRECV, peer=1, request=1, bytes=64)
WILD = of(Kind.IRECV, peer=ANY, tag=ANY, request=1, bytes=64, flags=Flag.WILD)
PERSISTENT = of(Kind.RECV_INIT, peer=1, request=1, bytes=64)
ENDS = [of(Kind.CANCEL, request=1), of(Kind.WAIT, request=1, peer=NOBODY)]
TAKEN_BACK = {
    "from one rank": [SPECIFIC, *ENDS],
    "from anybody": [WILD, *ENDS],
    "looked for": [SPECIFIC, ENDS[0], of(Kind.TEST, request=1, peer=NOBODY)],
    "persistent": [PERSISTENT, *[of(Kind.START, request=1), *ENDS] * 2, of(Kind.FREE, request=1)],
    "the first of two": [SPECIFIC, of(Kind.IRECV, peer=NOBODY, request=2), *ENDS, of(Kind.WAIT, request=2)],
}
#: The message comes later, with the same envelope.
LATER = [send(1), receive(1)]
PEER = [receive(0), send(0)]


def trace(path: Path, *doing: Doing) -> Path:
    write_container(path, {}, [stream(rank, len(doing), one) for rank, one in enumerate(doing)])
    return path


@pytest.fixture(scope="module")
def predict(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Prediction]:
    run: store.Run = calibrated_run(tmp_path_factory.mktemp("runs") / "cal")
    return lambda path: predicting.predict(
        asking.PredictRequest(source=path, run=run, what_if="latency=x2", samples=20), lambda _: None
    )


def times(found: Prediction) -> list[float]:
    return [one.time.value for one in found.scenarios]


@pytest.mark.parametrize("begun", TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_one_that_was_taken_back_takes_no_message_of_another(
    predict: Callable[[Path], Prediction], tmp_path: Path, begun: Sequence[Doing]
) -> None:
    with_it = trace(tmp_path / "with.wtrace", [*begun, *LATER], PEER)
    without = trace(tmp_path / "without.wtrace", LATER, PEER)
    assert times(predict(with_it)) == times(predict(without))
    assert list(goal.text(exported(read(with_it)))) == list(goal.text(exported(read(without))))


@pytest.mark.parametrize("kind", [SPECIFIC, WILD], ids=["from one rank", "from anybody"])
def test_one_that_was_cancelled_too_late_is_a_receive(
    predict: Callable[[Path], Prediction], tmp_path: Path, kind: Doing
) -> None:
    came = of(Kind.WAIT, request=1, peer=1, bytes=64)
    late = trace(tmp_path / "late.wtrace", [kind, send(1), of(Kind.CANCEL, request=1), came], PEER)
    plain = trace(tmp_path / "plain.wtrace", [kind, send(1), came], PEER)
    assert times(predict(late)) == times(predict(plain))
    assert list(goal.text(exported(read(late)))) == list(goal.text(exported(read(plain))))
