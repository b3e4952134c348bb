"""When a figure is adjusted by the reference, and when it is not."""

import msgspec
import numpy as np
import pytest

from tests.unit.make_cells import PAIR, analysis, cell
from tests.unit.make_records import plan, result
from tests.unit.pages import said as words_of
from tests.unit.pages import table
from wulf.base.records import NodeRecord, Reference
from wulf.stats.core.covariates import huber
from wulf.stats.estimate import adjust, compare, reference_adjustment
from wulf.tools.compare.page.view import build

OTHER = ("node03", "node04")
#: Logarithm of the reference of each launch to 2 µs.
SLOW = np.tile([0.0, 0.1, 0.3, 0.05, 0.2], 4)
NOISE = np.tile([0.004, -0.003, 0.001, -0.002, 0.0, 0.003, -0.004], 3)[:20]


def references(logs=SLOW, places=(PAIR,)):
    made = []
    for index, log in enumerate(logs):
        time_ns = 2000 * float(np.exp(log))
        there = [Reference(place=place, medians_ns=[[time_ns], [time_ns]], at_us=[1]) for place in places]
        made.append(msgspec.structs.replace(result(index), references=there))
    return made


def following(size=64, slope=0.8, pair=PAIR, contaminated=(), logs=SLOW, step=0.0):
    return cell(
        size, 1e-5 * np.exp(step + slope * logs + NOISE[: len(logs)]), pair=pair, contaminated=contaminated
    )


def test_a_time_is_that_at_the_stated_reference():
    (found,) = adjust([following()], references(), plan(), at_s=2e-6)
    assert found.adjusted.reference_s == 2e-6
    assert found.adjusted.time.value == pytest.approx(1e-5, rel=0.01)
    assert found.adjusted.time.low <= 1e-5 <= found.adjusted.time.high
    assert found.adjusted.slope.value == pytest.approx(0.8, abs=0.03)
    assert found.time == following().time, "the raw figure stays"
    assert [point.reference_s for point in found.launches[:2]] == pytest.approx([2e-6, 2e-6 * np.exp(0.1)])


def test_without_a_word_it_is_the_middle_of_the_run():
    (found,) = adjust([following()], references(), plan())
    assert found.adjusted.reference_s == pytest.approx(2e-6 * np.exp(np.median(SLOW)))
    assert found.adjusted.time.value == pytest.approx(found.time.value, rel=0.02)
    assert found.adjusted.time.half_width_ratio < found.time.half_width_ratio / 5


def test_foreign_load_is_taken_out_and_no_launch_is():
    loaded = (0, 3, 7, 12, 18)
    slower = following(contaminated=loaded)
    medians = [point.median_s * (1.2 if point.contaminated else 1.0) for point in slower.launches]
    (found,) = adjust([cell(64, medians, contaminated=loaded)], references(), plan(), at_s=2e-6)
    assert found.adjusted.time.value == pytest.approx(1e-5, rel=0.01)
    assert found.adjusted.time.n == 20


def test_few_launches_take_the_slope_of_their_operation():
    few = SLOW[:7]
    cells = [following(size, pair=pair, logs=few) for pair in (PAIR, OTHER) for size in (64, 128)]
    found = adjust(cells, references(few, (PAIR, OTHER)), plan())
    assert len({one.adjusted.slope for one in found}) == 1


@pytest.mark.parametrize(
    ("cells", "results"),
    [
        ([following(slope=0.0)], references()),  # no correlation
        ([following(slope=-0.8)], references()),  # the wrong way round
        ([following()], [result(index) for index in range(20)]),  # no reference
        ([following(logs=SLOW[:4])], references(SLOW[:4])),  # too few
        ([following()], references(np.zeros(20))),  # a reference that never moves
    ],
)
def test_what_is_not_proven_is_not_adjusted(cells, results):
    (found,) = adjust(cells, results, plan())
    assert found.adjusted is None
    assert list(reference_adjustment.advise([found])) == []


def test_launches_that_still_depend_on_each_other_are_not_adjusted():
    walk = np.sort(NOISE) * 40
    cells = [cell(64, 1e-5 * np.exp(0.8 * SLOW + walk))]
    assert adjust(cells, references(), plan())[0].adjusted is None


def test_the_reader_is_told():
    (advice,) = reference_adjustment.advise(adjust([following()], references(), plan(), at_s=2e-6))
    assert (advice.kind, advice.subject, advice.severity) == ("adjusted", "mpi_pingpong", "note")
    assert "2.00 µs" in advice.text and "times less" in advice.text


def runs(step, logs=SLOW):
    first = analysis(adjust([following()], references(), plan()), "before")
    second = analysis(adjust([following(logs=logs, step=step)], references(logs), plan()), "after")
    return first, second


def node(**facts):
    return [NodeRecord(node="node01", reachable=True, facts=facts)]


def test_a_change_is_adjusted_beside_the_raw_one():
    shuffled = np.roll(SLOW, 2)
    found = compare(*runs(0.02, shuffled), [], [])
    change = found.adjusted["mpi_pingpong"]
    assert change.ratio.value == pytest.approx(np.exp(0.02), abs=0.003)
    assert change.ratio.high - change.ratio.low < (
        found.pooled["mpi_pingpong"].ratio.high - found.pooled["mpi_pingpong"].ratio.low
    )
    view = build(found)
    assert [column.name for column in table(view, "Over all").columns][2] == "adjusted"
    assert any("same speed of the nodes" in line for line in words_of(view))


@pytest.mark.parametrize(
    ("logs", "before", "after", "said"),
    [
        (SLOW + 0.5, {}, {}, "the setting may be what moved it"),
        (SLOW, {"cpu.governor": "powersave"}, {"cpu.governor": "performance"}, "cpu.governor differs"),
        (SLOW, {"kernel.cmdline": "quiet"}, {"kernel.cmdline": "mitigations=off"}, "kernel.cmdline differs"),
        (SLOW, {}, {"nic.mtu": "9000"}, "all facts differs"),
    ],
)
def test_a_change_is_not_adjusted_where_the_reference_may_have_moved(logs, before, after, said):
    found = compare(*runs(0.02, logs), node(**before), node(**after))
    change = found.adjusted["mpi_pingpong"]
    assert change.ratio is None and said in change.reason
    assert any(said in line for line in words_of(build(found)))


def test_a_change_of_the_network_is_adjusted():
    found = compare(*runs(0.02, np.roll(SLOW, 2)), node(**{"nic.mtu": "1500"}), node(**{"nic.mtu": "9000"}))
    assert found.adjusted["mpi_pingpong"].ratio is not None


def test_runs_without_a_reference_have_no_adjusted_change():
    found = compare(analysis([following()], "before"), analysis([following()], "after"), [], [])
    assert found.adjusted == {}


def test_huber_is_least_squares_without_outliers_and_bounded_with():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(30), rng.standard_normal(30)])
    y = x @ [1.0, 2.0] + 0.1 * rng.uniform(-1, 1, 30)
    calm = huber(x, y)
    assert calm.coefficients == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0], abs=0.01)
    y[3] += 100
    assert huber(x, y).coefficients == pytest.approx(calm.coefficients, abs=0.1)
    assert huber(x[:4], y[:4]) is None
    assert huber(np.column_stack([x, x[:, 1]]), y) is None


def test_runs_learn_from_each_other_how_times_follow():
    still = -0.2 + 0.0005 * np.tile([1.0, -1.0], 10)  # a run in which the reference hardly moves cannot tell
    slow = reference_adjustment.Measured([following()], references(), plan())
    fast = reference_adjustment.Measured([following(logs=still)], references(still), plan())
    assert adjust(*fast, at_s=2e-6)[0].adjusted is None
    ours, theirs = (cells[0] for cells in reference_adjustment.adjust_all([slow, fast], at_s=2e-6))
    assert theirs.time.value == pytest.approx(1e-5 * np.exp(0.8 * -0.2), rel=0.01)
    assert theirs.adjusted.time.value == pytest.approx(ours.adjusted.time.value, rel=0.01)
