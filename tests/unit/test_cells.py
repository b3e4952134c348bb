import msgspec
import pytest

from tests.unit import make_records as make
from wulf.base.records import Cell
from wulf.stats import estimate

replace = msgspec.structs.replace
CELL = Cell(op="mpi_pingpong", size_bytes=64, place=make.PAIR)


def launch(index, time_ns, *, contaminated=False, counts=100, **changes):
    """One launch of one cell whose iterations all take `time_ns` (a whole round trip)."""
    result = make.result(index, sizes=(64,))
    sample = replace(
        result.samples[0],
        histogram=[(time_ns, counts)],
        min_ns=time_ns,
        max_ns=time_ns,
        iterations=counts,
        **changes,
    )
    suspect = ["node01: another process took 30 % of the CPU"] if contaminated else []
    return replace(result, launch=replace(result.launch, contamination=suspect), samples=[sample])


def cells(results, plan=None, operations=None):
    return estimate.cells(
        [sample for result in results for sample in result.samples],
        [result.launch for result in results],
        plan or make.plan(),
        operations or [make.operation()],
    )


def test_time_is_the_median_of_launch_medians_in_seconds_and_halved():
    times = [20_000, 20_100, 20_200, 20_300, 20_400, 30_000, 20_250]
    (cell,) = cells([launch(index, time) for index, time in enumerate(times)])
    assert cell.cell == CELL
    assert cell.time.value == pytest.approx(20_250e-9 / 2)
    assert cell.time.unit == "s"
    assert cell.time.n == 7
    assert [point.median_s for point in cell.launches] == pytest.approx([time * 5e-10 for time in times])
    assert cell.quantiles_s["max"] == pytest.approx(15e-6)
    assert cell.quantiles_s["min"] == pytest.approx(10e-6)
    assert cell.iterations == 700


def test_bandwidth_is_size_over_time_with_bounds_in_order():
    (cell,) = cells([launch(index, 20_000 + 50 * index) for index in range(8)])
    assert cell.bandwidth.value == pytest.approx(64 / cell.time.value)
    assert cell.bandwidth.low == pytest.approx(64 / cell.time.high)
    assert cell.bandwidth.high == pytest.approx(64 / cell.time.low)
    assert cell.bandwidth.unit == "B/s"


def test_an_operation_that_moves_nothing_has_no_bandwidth():
    overhead = replace(make.operation(), moves_bytes=False)
    (cell,) = cells([launch(index, 20_000) for index in range(6)], operations=[overhead])
    assert cell.bandwidth is None


def test_a_launch_counts_once_however_many_iterations_it_has():
    results = [launch(index, 20_000 + index) for index in range(6)] + [launch(6, 90_000, counts=100_000)]
    (cell,) = cells(results)
    assert cell.time.value == pytest.approx(20_003e-9 / 2)
    assert cell.quantiles_s["p50"] == pytest.approx(45e-6)


def test_fewer_than_six_launches_have_no_interval_and_say_so():
    (cell,) = cells([launch(index, 20_000) for index in range(5)])
    assert (cell.time.low, cell.time.high) == (None, None)
    assert not cell.reached
    assert "too few for an interval: 5 launches" in cell.notes


def test_six_equal_launches_reach_any_precision():
    (cell,) = cells([launch(index, 20_000) for index in range(6)])
    assert cell.time.low == cell.time.high == pytest.approx(10e-6)
    assert cell.reached


def test_failed_launches_are_left_out_even_with_samples():
    results = [launch(index, 20_000) for index in range(6)]
    failed = launch(6, 90_000)
    failed = replace(failed, launch=replace(failed.launch, status="failed", error="node02: gone"))
    (cell,) = cells([*results, failed])
    assert cell.time.n == 6
    assert cell.quantiles_s["max"] == pytest.approx(10e-6)


def test_contaminated_launches_are_shown_but_not_used_when_there_are_enough_clean_ones():
    clean = [launch(index, 20_000) for index in range(6)]
    (cell,) = cells([*clean, launch(6, 40_000, contaminated=True), launch(7, 40_000, contaminated=True)])
    assert cell.time.n == 6
    assert cell.time.value == pytest.approx(10e-6)
    assert [point.contaminated for point in cell.launches] == [False] * 6 + [True] * 2
    assert cell.notes == ["made of 6 clean launches; 2 contaminated ones are only shown"]


def test_contaminated_launches_are_used_where_clean_ones_are_too_few():
    results = [launch(index, 20_000 if index < 5 else 40_000, contaminated=index >= 5) for index in range(11)]
    (cell,) = cells(results)
    assert cell.time.n == 11
    assert cell.time.value == pytest.approx(20e-6)
    assert "contaminated: 6 of 11 launches" in cell.notes[0]


def test_the_interval_widens_for_looks_after_the_first():
    results = [launch(index, 20_000 + 100 * index) for index in range(12)]
    (first,) = cells(results, make.plan(min_launches=12))
    (later,) = cells(results, make.plan(min_launches=6))
    assert later.time.confidence == first.time.confidence == 0.95
    assert later.time.high - later.time.low > first.time.high - first.time.low
    assert "looks" in later.time.method
    assert "looks" not in first.time.method


def test_lost_corrupt_and_far_out_values_are_counted():
    results = [launch(index, 20_000, lost=2, corrupt=1) for index in range(6)]
    sample = results[0].samples[0]
    values = [(20_000, 97), (90_000, 3)]
    results[0] = replace(results[0], samples=[replace(sample, histogram=values, max_ns=90_000)])
    (cell,) = cells(results)
    assert (cell.lost, cell.corrupt, cell.outlying) == (12, 6, 3)
    assert cell.quantiles_s["max"] == pytest.approx(45e-6)


def test_launches_in_two_groups_are_called_two_modes():
    results = [launch(index, (20_000 if index % 2 else 30_000) + 10 * index) for index in range(20)]
    (cell,) = cells(results)
    assert cell.modes_between == 2


def test_launches_are_in_time_order_whatever_the_order_of_the_samples():
    (cell,) = cells([launch(index, 20_000 + index) for index in (4, 0, 5, 2, 1, 3)])
    assert [point.index for point in cell.launches] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [5, 6, 9, 25])
def test_the_quick_look_while_measuring_agrees_with_the_estimate(count):
    results = [make.result(index) for index in range(count)]
    whole = cells(results)
    quick = estimate.launches_needed([estimate.medians(result) for result in results], make.plan())
    assert (quick == 0) == all(cell.reached for cell in whole)


def test_nothing_needs_the_minimum_of_launches():
    assert estimate.launches_needed([], make.plan()) == make.plan().min_launches
    assert cells([]) == []


def test_launches_far_apart_have_a_range():
    (near,) = cells([launch(index, 20_000 + 100 * (index % 5)) for index in range(12)])
    assert near.range_s is None
    (far,) = cells([launch(index, 132_000 + 5_600 * index) for index in range(12)])
    low, high = far.range_s
    assert low == pytest.approx(66e-6, rel=0.05)
    assert high == pytest.approx(97e-6, rel=0.05)
    (few,) = cells([launch(index, 132_000 + 30_000 * index) for index in range(3)])
    assert few.range_s is None
    (one_off,) = cells([*[launch(index, 20_000) for index in range(30)], launch(30, 90_000)])
    assert one_off.range_s is None
