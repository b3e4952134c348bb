"""RFC 2544: the search finds planted limits, in few trials, and a page says what limits."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.make_records import sample
from wulf.base.errors import UsageError
from wulf.base.records import SCHEMA_VERSION, Estimate
from wulf.tools.rfc2544 import page, search, work
from wulf.tools.rfc2544.record import FrameSize, Rate, Rfc2544
from wulf.tools.rfc2544.request import Rfc2544Request


def rate(mbit: int, loss: float | None, sent: float = 1.0) -> Rate:
    frames = mbit * 1e6 / 8 / 1472
    return Rate(asked_mbit_s=mbit, frames_per_s=frames, sent_per_s=sent * frames, loss=loss)


def made() -> Rfc2544:
    latency = Estimate(value=5e-5, low=4e-5, high=6e-5, confidence=0.95, unit="s", n=6, method="x")
    size = FrameSize(
        frame_bytes=1518,
        throughput=rate(97, 0.0),
        sender_limited=False,
        repetitions=6,
        losses=[rate(194, 0.5), rate(97, 0.0)],
        burst=61,
        latency=latency,
    )
    return Rfc2544(
        schema_version=SCHEMA_VERSION, pair=("node01", "node02"), trial_s=3.0, precision=0.01, sizes=[size]
    )


def failed() -> Rfc2544:
    size = FrameSize(
        frame_bytes=64,
        throughput=None,
        sender_limited=True,
        repetitions=6,
        lossy_repetitions=6,
        losses=[rate(1, None)],
        burst=None,
        latency=None,
        notes=["node02: silent"],
    )
    return Rfc2544(
        schema_version=SCHEMA_VERSION, pair=("node01", "node02"), trial_s=3.0, precision=0.01, sizes=[size]
    )


@given(st.integers(0, 200_000), st.integers(1, 100_000), st.sampled_from([0.0, 0.01, 0.1]))
def test_a_planted_limit_is_found_to_the_precision(limit: int, most: int, precision: float) -> None:
    tried: list[int] = []

    def passes(value: int) -> bool:
        tried.append(value)
        return value <= limit

    found = search.highest(passes, 1, most, precision)
    if limit < 1:
        assert found.value is None
    elif limit >= most:
        assert found == (most, True)
    else:
        assert found.value is not None
        assert found.value <= limit <= found.value + max(1, precision * found.value)
        assert not found.is_limit
    assert max(tried) <= most
    assert len(tried) <= 2 * most.bit_length() + 2


def test_the_page_says_the_rate_and_what_limits_it() -> None:
    assert "without loss" in page.build(made()).title
    assert page.exit_code(made()) == 0
    assert page.build(failed()).title == "No rate was found that loses nothing"
    assert page.exit_code(failed()) == 3


def test_what_the_sender_sends_is_told_from_the_ends_of_visits() -> None:
    one = sample(0, 64, 1.0, ("a", "b"), "udp_stream")  # type: ignore[no-untyped-call]
    steady = msgspec.structs.replace(one, batch_at_us=[1000, 2000, 3000], batch_iterations=50)
    assert work.sent_per_s(steady) == pytest.approx(50_000)


def test_a_frame_without_room_is_refused() -> None:
    with pytest.raises(UsageError, match="--frames 60B"):
        Rfc2544Request(frames_bytes=[60])
    assert Rfc2544Request(long=True).length_s == 70
    assert Rfc2544Request(long=True).times == 20
