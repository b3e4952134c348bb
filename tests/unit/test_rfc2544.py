"""RFC 2544: the search finds planted limits, in few trials, and a page says what limits."""

from __future__ import annotations

import itertools
import math
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.make_records import sample
from wulf.base.errors import UsageError
from wulf.base.records import SCHEMA_VERSION, Estimate
from wulf.base.tool import Progress
from wulf.tools.rfc2544 import buffer, page, search, work
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
        burst=63,
        bursts=[63] * 6,
        buffer=buffer.corrected([buffer.Burst(63, 250_000.0)] * 6, 8237.0, 0.01),
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
        buffer_unknown="no rate without loss",
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


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 100_000))
def test_a_search_begins_anywhere(limit: int, near: int, most: int) -> None:
    tried: list[int] = []

    def passes(value: int) -> bool:
        tried.append(value)
        return value <= limit

    begin = min(near, most)
    assert search.highest(passes, 1, most, 0.0, begin) == (min(limit, most), limit >= most)
    assert len(tried) <= 2 * (abs(begin - min(limit, most)) + 1).bit_length() + 2


def longest(depth: int, arrival_per_s: float, leaves_per_s: float) -> int:
    """Return the longest burst of which nothing is lost: one frame is on its way, and so many wait."""

    def passes(length: int) -> bool:
        ends_s: list[float] = []
        for number in range(length):
            now_s = number / arrival_per_s
            if sum(end_s > now_s for end_s in ends_s[-depth - 1 :]) > depth:
                return False
            ends_s.append(max(ends_s[-1] if ends_s else 0.0, now_s) + 1 / leaves_per_s)
        return True

    found = search.highest(passes, 1, 100_000, 0.0, depth + 1).value
    assert found is not None
    return found


@given(st.integers(0, 100), st.floats(1.2, 100.0))
def test_of_a_burst_what_left_meanwhile_is_taken_off(depth: int, faster: float) -> None:
    leaves_per_s = 8256.0
    burst = buffer.Burst(longest(depth, faster * leaves_per_s, leaves_per_s), faster * leaves_per_s)
    found = buffer.corrected([burst] * 6, leaves_per_s, 0.01)
    assert found is not None
    assert found.frames.value == pytest.approx(depth + 1, abs=1 + 1e-9)
    assert found.frames.low is not None and found.frames.high is not None
    assert found.frames.low <= depth + 1 <= found.frames.high + 1e-9
    assert found.time.value == pytest.approx(found.frames.value / burst.arrival_per_s)


def test_where_bursts_fill_nothing_no_buffer_is_told() -> None:
    assert buffer.corrected([buffer.Burst(100, 8000.0)] * 6, 8000.0, 0.01) is None
    assert buffer.corrected([buffer.Burst(100, math.inf)] * 6, 8000.0, 0.01) is None
    known = rate(97, 0.0)
    some = [buffer.Burst(9, 1e5)]
    assert work.why_unknown(None, [], sender_limited=False, is_limit=False) == "no rate without loss"
    assert work.why_unknown(known, [], sender_limited=False, is_limit=False) == "no burst arrived whole"
    assert work.why_unknown(known, some, sender_limited=False, is_limit=True) == "no burst was lost"
    assert "sender" in work.why_unknown(known, some, sender_limited=True, is_limit=False)
    assert work.why_unknown(known, some, sender_limited=False, is_limit=False) == ""


def test_the_line_rate_is_that_of_the_standard() -> None:
    # RFC 2544, appendix B: frames a second of 10 Mbit/s Ethernet.
    assert [int(buffer.line_rate_per_s(size, 1e7)) for size in (64, 512, 1518)] == [14880, 2349, 812]


def test_the_page_says_the_rate_and_what_limits_it() -> None:
    assert "without loss" in page.build(made()).title
    assert page.exit_code(made()) == 0
    assert page.build(failed()).title == "No rate was found that loses nothing"
    assert page.exit_code(failed()) == 3


def test_what_the_sender_sends_is_the_middle_of_what_its_visits_say() -> None:
    one = sample(0, 64, 1.0, ("a", "b"), "udp_stream")  # type: ignore[no-untyped-call]
    steady = msgspec.structs.replace(one, sent_per_s=[40_000.0, None, 50_000.0, 60_000.0])
    assert work.sent_per_s(steady) == 50_000
    assert work.sent_per_s(one) == math.inf


def test_a_frame_without_room_is_refused() -> None:
    with pytest.raises(UsageError, match="--frames 60B"):
        Rfc2544Request(frames_bytes=[60])
    assert Rfc2544Request(long=True).length_s == 70
    assert Rfc2544Request(long=True).times == 20


@pytest.mark.parametrize(
    ("losses", "lossy", "says"),
    [([0.0] * 6, 0, ""), ([0.1] * 6, 6, "loses nothing"), ([None] * 6, 0, "6 of 6 repetitions failed")],
)
def test_a_repetition_that_failed_is_none_that_lost_something(
    monkeypatch: pytest.MonkeyPatch, losses: list[float | None], lossy: int, says: str
) -> None:
    bench = work._Bench(Rfc2544Request(), ("a", "b"), cast("Any", None), 1e9, cast("Progress", None))
    trials = itertools.cycle(losses)
    monkeypatch.setattr(bench, "_rate", lambda _, asked: rate(asked, next(trials)))
    found = bench._confirmed(1518, 100)
    assert found == (None if says else 100, 6, lossy)
    assert says in "; ".join(bench._notes)


def test_of_a_rate_that_was_not_found_no_limit_is_told() -> None:
    assert [item.text for item in page._sizes(failed()).rows[0]][3] == "unknown"


def test_the_highest_rate_that_was_to_be_tried_is_not_the_senders_limit() -> None:
    found = made()
    most = msgspec.structs.replace(found.sizes[0], sender_limited=True, rate_is_limit=True)
    shown = page.build(msgspec.structs.replace(found, sizes=[most]))
    assert "the highest rate that was to be tried" in shown.title
    assert "sender" not in shown.title
