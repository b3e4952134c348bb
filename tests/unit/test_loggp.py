"""LogGP's parameters from what calls, trains and late receivers took."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tests.unit.make_cells import curve
from tests.unit.make_records import operation
from wulf.base.records import Parameter
from wulf.stats import model
from wulf.stats.model.causes import likely_cause, limits_of
from wulf.tools.measure.page import summary_tables

SIZES = [1, 64, 256, 1024, 4096, 16384, 32768]
L, O_S, O_R, GAP, PER_BYTE = 20e-6, 2e-6, 3e-6, 4e-6, 8e-10
#: What every train takes, for its answer.
ANSWER = 50e-6
CALLS = ("mpi_pingpong", "mpi_send_overhead", "mpi_recv_overhead")
LATE_US, LIMIT = 5000, 65536
#: Name → how the probe is asked for it.
OPERATIONS = [
    *(operation(name) for name in CALLS),
    *(replace(operation(f"train_{n}"), asked=f"mpi_rate:{n}") for n in (1, 16)),
    replace(
        operation("mpi_late_receiver"),
        parameter=Parameter(name="µs", usual=LATE_US, low=10, high=1_000_000),
    ),
]


def calls(latency=L, spread=0.005):
    round_trip = [O_S + latency + O_R + size * PER_BYTE for size in SIZES]
    flat = [1.0 for _ in SIZES]
    return [
        *curve(SIZES, round_trip, spread=spread, seed=2),
        *curve(SIZES, [O_S * one for one in flat], op="mpi_send_overhead", spread=spread, seed=3),
        *curve(SIZES, [O_R * one for one in flat], op="mpi_recv_overhead", spread=spread, seed=4),
    ]


def train(length, seed=5):
    gaps = [GAP + size * PER_BYTE for size in SIZES]
    each = [(ANSWER + gap + (length - 1) * gap) / length for gap in gaps]
    return curve(SIZES, each, op=f"train_{length}", seed=seed)


def late(limit=LIMIT, delay_s=LATE_US * 1e-6):
    sizes = [p + d for p in (16384, 32768, 65536, 131072) for d in (-128, 1)]
    return curve(sizes, [5e-6 if size <= limit else delay_s for size in sizes], op="mpi_late_receiver")


def found(cells, limits=None):
    (one,) = model.loggp(cells, OPERATIONS, limits or {})
    return one


def test_the_parameters_are_found_within_their_intervals():
    one = found([*calls(), *train(1), *train(16, seed=6), *late()], {"btl_tcp_eager_limit": LIMIT})
    for figure, true in (
        (one.latency, L),
        (one.send_overhead, O_S),
        (one.receive_overhead, O_R),
        (one.gap_per_byte, PER_BYTE),
    ):
        assert figure.low <= true <= figure.high
        assert figure.value == pytest.approx(true, rel=0.03)
    assert one.gap.value == pytest.approx(GAP, rel=0.2)
    assert one.eager_limit == (65408, 65537)
    assert one.eager_limit_said == ("btl_tcp_eager_limit", LIMIT)
    assert one.notes == []
    shown = [item.text for item in summary_tables.parameters_table([one]).rows[0]]
    assert shown[0] == "node01 → node02"
    assert "65536 B (btl_tcp_eager_limit), seen between 65408 B and 65537 B" in shown[-1]


def test_a_latency_that_the_calls_leave_nothing_of_is_no_number():
    one = found(calls(latency=0.0, spread=0.05))
    assert one.latency is None
    assert one.send_overhead is not None
    assert "L is not identifiable" in one.notes[0]
    assert "both calls take" in one.notes[0]
    assert summary_tables.parameters_table([one]).rows[0][1].text == "not identifiable"


def test_errors_of_all_three_are_in_the_interval_of_the_latency():
    one = found(calls(spread=0.05))
    sharp = found(calls(spread=0.005))
    assert one.latency.high - one.latency.low > 3 * (sharp.latency.high - sharp.latency.low)


def test_trains_of_one_length_give_no_gap():
    one = found([*late(), *train(16)])
    assert one.gap is None
    assert any("one number of messages" in note for note in one.notes)


def test_a_longer_train_that_is_quicker_gives_no_gap():
    quick = curve(SIZES, [1e-9 for _ in SIZES], op="train_16")
    one = found([*train(1), *quick])
    assert one.gap is None
    assert any("no longer than" in note for note in one.notes)


@pytest.mark.parametrize(
    ("limit", "note"),
    [(10**9, "or more: nothing waited"), (0, "below .*all sizes waited")],
)
def test_a_limit_that_was_not_seen_is_said_to_be_outside(limit, note):
    one = found(late(limit))
    assert one.eager_limit is None
    assert any(re.search(note, text) for text in one.notes)


def test_a_limit_that_is_not_at_one_size_is_none():
    cells = late()
    odd = [
        replace(cell, cell=replace(cell.cell, size_bytes=200_000)) if cell.cell.size_bytes == 16256 else cell
        for cell in cells
    ]
    one = found(odd)
    assert one.eager_limit is None
    assert any("not at one size" in note for note in one.notes)


def test_round_trips_alone_say_nothing():
    assert list(model.loggp(curve(SIZES, [1e-5] * len(SIZES)), OPERATIONS, {})) == []
    assert list(model.loggp(train(16), OPERATIONS, {})) == []


def test_limits_are_those_of_the_way_between_the_ranks():
    said = {"btl_tcp_eager_limit": 65536, "btl_vader_eager_limit": 4096, "btl_self_eager_limit": 1024}
    assert limits_of(said, ("a", "b")) == {"btl_tcp_eager_limit": 65536}
    assert limits_of(said, ("a", "a")).keys() == {"btl_vader_eager_limit", "btl_self_eager_limit"}
    mpich = {"MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE": 131072}
    assert limits_of(mpich, ("a", "b")) == limits_of(mpich, ("a", "a")) == mpich


def test_the_library_own_limit_explains_a_break_and_usual_ones_do_not():
    own = {"btl_tcp_eager_limit": 100_000, "btl_sm_eager_limit": 4096}
    assert likely_cause("mpi_pingpong", 99_900, 100_001, own) == (
        "likely: eager limit btl_tcp_eager_limit = 100000 B"
    )
    assert "eager" not in (likely_cause("mpi_pingpong", 65_500, 65_537, own) or "")
    assert "eager" in likely_cause("mpi_pingpong", 65_500, 65_537)
    assert likely_cause("tcp_rr", 99_900, 100_001, own) is None
