import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.make_cells import cell, curve
from wulf.stats import model
from wulf.stats.core.segments import segments
from wulf.stats.model.causes import likely_cause

ROUND_TRIP = "ping-pong"
SIZES = [0, *(1 << k for k in range(21))]


def hockney(sizes, alpha=10e-6, beta=1e9):
    return [alpha + size / beta for size in sizes]


def test_a_straight_curve_gives_its_parameters():
    found = model.curve(curve(SIZES, hockney(SIZES)), ROUND_TRIP)
    assert found.robust.alpha.value == pytest.approx(10e-6, rel=0.02)
    assert found.robust.inverse_beta.value == pytest.approx(1e-9, rel=0.02)
    assert found.least_squares.inverse_beta.value == pytest.approx(1e-9, rel=0.02)
    assert found.robust.alpha.low <= 10.1e-6
    assert found.robust.alpha.high >= 9.9e-6
    assert len(found.segments) == 1
    assert found.zero_byte_latency.value == pytest.approx(10e-6, rel=0.01)
    assert found.asymptotic_bandwidth.value == pytest.approx(1e9, rel=0.02)
    assert found.n_half_bytes.value == pytest.approx(10_000, rel=0.05)
    assert found.notes == []


def test_a_time_in_which_no_bytes_move_has_no_bandwidth():
    cells = [replace(cell, bandwidth=None) for cell in curve(SIZES, hockney(SIZES))]
    found = model.curve(cells, "broadcast")
    assert found.robust.inverse_beta.value == pytest.approx(1e-9, rel=0.02)
    assert found.asymptotic_bandwidth is None and found.n_half_bytes is None
    assert found.notes == ["no bandwidth: bytes ÷ this time is none"]


def test_a_step_is_found_between_its_neighbours():
    sizes = sorted({*SIZES, 65535, 65537, 80000, 100000})
    times = [
        alpha + (30e-6 if size > 65536 else 0) for size, alpha in zip(sizes, hockney(sizes), strict=True)
    ]
    found = model.curve(curve(sizes, times, spread=0.002), ROUND_TRIP)
    breaks = [segment.breakpoint_interval for segment in found.segments[:-1]]
    assert (65536, 65537) in breaks
    assert any("64 KiB" in (segment.cause or "") for segment in found.segments)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_noise_alone_makes_no_segments(seed):
    found = model.curve(curve(SIZES, hockney(SIZES), spread=0.01, seed=seed), ROUND_TRIP)
    assert len(found.segments) <= 2


def test_a_single_bump_is_no_segment():
    times = hockney(SIZES)
    times[12] *= 1.4
    found = model.curve(curve(SIZES, times, spread=0.002), ROUND_TRIP)
    assert len(found.segments) == 1


def test_segments_cover_all_points_in_order():
    rng = np.random.default_rng(4)
    x = np.arange(40.0)
    y = np.where(x < 20, 10 + x, 60 + 2 * x) * (1 + 0.001 * rng.standard_normal(40))
    pieces = segments(x, y, 0.01 * y)
    assert [(piece.first, piece.last) for piece in pieces] == [(0, 19), (20, 39)]
    assert pieces[1].slope == pytest.approx(2, rel=0.05)


def test_too_few_sizes_give_no_line_but_a_note():
    found = model.curve(curve([0, 64], [1e-5, 1.1e-5]), ROUND_TRIP)
    assert found.robust is None
    assert found.least_squares is None
    assert found.segments == []
    assert "3 sizes" in found.notes[0]
    assert found.zero_byte_latency.value == pytest.approx(1e-5, rel=0.01)


def test_a_falling_curve_has_no_bandwidth():
    found = model.curve(curve(SIZES, [1e-3 - size * 1e-10 for size in SIZES], spread=0.0005), ROUND_TRIP)
    assert found.asymptotic_bandwidth is None
    assert found.n_half_bytes is None
    assert any("not identifiable" in note for note in found.notes)


def test_one_launch_gives_values_without_intervals():
    found = model.curve(
        [cell(size, [time]) for size, time in zip(SIZES, hockney(SIZES), strict=True)], ROUND_TRIP
    )
    assert found.robust.alpha.value == pytest.approx(10e-6, rel=1e-3)
    assert found.robust.alpha.low is None


def test_least_squares_follows_outliers_and_the_robust_line_does_not():
    times = hockney(SIZES, alpha=1e-3)
    times[-1] *= 3
    found = model.curve(curve(SIZES, times, spread=0.001), ROUND_TRIP)
    assert found.robust.inverse_beta.value == pytest.approx(1e-9, rel=0.1)
    assert found.least_squares.inverse_beta.value > 2e-9


def test_causes_are_named_only_where_they_lie():
    assert likely_cause("tcp_rr", 1448, 1449) == "likely: MTU 1500 (one TCP segment with time stamps)"
    assert likely_cause("udp_rr", 1448, 1449) is None
    assert "UDP datagram" in likely_cause("udp_rr", 1472, 1473)
    assert " or " in likely_cause("mpi_pingpong", 65500, 65537)
    assert "64 KiB" in likely_cause("mpi_pingpong", 65470, 65480)
    assert likely_cause("tcp_rr", 20000, 20001) is None
    assert likely_cause("tcp_rr", 1024, 2048) is None
    assert likely_cause("tcp_rr", 0, 1) is None


def test_without_intervals_noise_is_not_taken_for_steps():
    rng = np.random.default_rng(1)
    cells = [
        cell(size, [time * np.exp(0.05 * rng.standard_normal())])
        for size, time in zip(SIZES, hockney(SIZES), strict=True)
    ]
    found = model.curve(cells, ROUND_TRIP)
    assert found.segments == []
    assert any("steps from noise" in note for note in found.notes)


def test_a_stream_has_no_latency():
    assert model.curve(curve(SIZES, hockney(SIZES)), "stream").zero_byte_latency is None


def test_a_bandwidth_that_no_size_came_near_is_said_not_printed():
    small = [0, *(1 << k for k in range(11))]
    found = model.curve(curve(small, hockney(small, beta=24e6), spread=0.001), ROUND_TRIP)
    assert found.robust.inverse_beta.value == pytest.approx(1 / 24e6, rel=0.05)
    assert found.asymptotic_bandwidth is not None  # 1 KiB takes 43 µs, of which 33 µs are its bytes
    found = model.curve(curve(small, hockney(small, beta=1e9), spread=0.0005), ROUND_TRIP)
    assert found.asymptotic_bandwidth is None and found.n_half_bytes is None
    assert any("bandwidth is not identifiable: the largest size, 1 KiB, reaches" in n for n in found.notes)


def test_a_slope_that_drowns_in_noise_is_said_not_printed():
    small = [0, *(1 << k for k in range(11))]
    rng = np.random.default_rng(3)
    cells = [
        cell(size, time * np.exp(0.05 * rng.standard_normal(8)))
        for size, time in zip(small, hockney(small, alpha=30e-6), strict=True)
    ]
    found = model.curve(cells, ROUND_TRIP)
    assert found.asymptotic_bandwidth is None and found.robust is None
    assert all(segment.slope is None for segment in found.segments)
    assert found.zero_byte_latency is not None


def test_no_figure_of_a_model_spans_more_than_a_factor_of_two():
    rng = np.random.default_rng(5)
    for spread in (0.002, 0.02, 0.1, 0.3):
        cells = [
            cell(size, time * np.exp(spread * rng.standard_normal(8)))
            for size, time in zip(SIZES[:15], hockney(SIZES[:15]), strict=True)
        ]
        found = model.curve(cells[1:], ROUND_TRIP)
        lines = [fit for fit in (found.robust, found.least_squares) if fit]
        figures = [found.asymptotic_bandwidth, found.n_half_bytes, found.zero_byte_latency]
        figures += [figure for fit in lines for figure in (fit.alpha, fit.inverse_beta)]
        figures += [figure for piece in found.segments for figure in (piece.intercept, piece.slope)]
        assert all(f.low > 0 and f.high <= 2 * f.low for f in figures if f is not None and f.low is not None)


def test_a_latency_below_all_measured_sizes_is_not_extrapolated():
    large = [1 << k for k in range(16, 23)]
    found = model.curve(curve(large, hockney(large, alpha=20e-6), spread=0.0005), ROUND_TRIP)
    assert found.zero_byte_latency is None
    assert any("smallest size, 64 KiB" in note for note in found.notes)
    assert found.asymptotic_bandwidth is not None
