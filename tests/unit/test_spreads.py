"""How launches differ, of several operations together: what is claimed of intervals holds, and they are narrower."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.unit.make_cells import cell
from tests.unit.predict_fixture import BETWEEN, OPERATIONS, cells, parameters
from wulf.stats.prediction import operation_times
from wulf.stats.prediction.draws import WIDTH
from wulf.stats.prediction.errors import few
from wulf.stats.prediction.spreads import Spreads, spreads

#: How operations differ in how their launches do: alike, some, as much as can be.
WORLDS = {
    "alike": lambda _: np.full(7, 0.07),
    "some more": lambda _: np.array([0.05] * 5 + [0.3] * 2),
    "anyhow": lambda random: np.exp(random.uniform(math.log(0.02), math.log(0.3), 7)),
}


def cells_of(logs):
    """A cell of one operation for each row: launches whose times have these logarithms."""
    return [cell(1, np.exp(row)) for row in logs]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("launches", [3, 4, 8])
def test_an_interval_of_a_launch_holds_one_and_is_narrower_than_by_its_own_launches_alone(world, launches):
    random = np.random.default_rng(1)
    held, widths, alone = [], [], []
    for _ in range(300):
        sigma = WORLDS[world](random)[:, np.newaxis]
        cells = cells_of(sigma * random.standard_normal((len(sigma), launches)))
        found = spreads([[one] for one in cells])
        each = np.array([found.of_launch(one) for one in cells])
        by_itself = np.array([Spreads().of_launch(one) for one in cells])
        held.extend(np.abs(sigma[:, 0] * random.standard_normal(len(sigma))) <= WIDTH * each)
        widths.extend(each / sigma[:, 0])
        alone.extend(by_itself / sigma[:, 0])
    assert 0.92 < np.mean(held) < 0.97
    assert np.median(widths) < np.median(alone)


def test_what_was_launched_once_is_not_known_and_few_operations_say_nothing_of_others():
    logs = np.random.default_rng(2).normal(0, 0.05, (4, 4))
    cells = cells_of(logs)
    assert math.isnan(spreads([[one] for one in cells]).of_launch(cells_of([[0.0]])[0]))
    assert spreads([]) == spreads([[], []]) == spreads([[one] for one in cells[:2]]) == Spreads()
    # Launches that do not differ at all tell nothing of others.
    assert spreads([[one] for one in cells_of(np.zeros((5, 4)))]) == Spreads()
    own = float(np.std(logs[0], ddof=1)) * few(3)
    assert Spreads().of_launch(cells[0]) == pytest.approx(own)


def test_variances_that_differ_no_more_than_by_chance_are_one():
    logs = np.array([[-1.0, 1.0, -1.0, 1.0]]) * np.full((5, 1), 0.05)
    cells = cells_of(logs)
    found = spreads([[one] for one in cells])
    assert found.freedom == 5 * 3
    assert 0.05 < found.of_launch(cells[0]) < Spreads().of_launch(cells[0])


def test_what_the_link_takes_the_time_of_is_by_itself():
    found = cells((BETWEEN,), spread=0.02)
    points = operation_times.between_nodes(found, OPERATIONS, parameters((BETWEEN,)), "RUN").points
    turned = {one.cell.size_bytes: one for one in found if one.cell.op == operation_times.ROUND_TRIP}
    for size, spread in zip(
        points[operation_times.ROUND_TRIP].sizes, points[operation_times.ROUND_TRIP].spreads, strict=True
    ):
        assert (spread == pytest.approx(Spreads().of_launch(turned[size]))) == (size > 1024)
