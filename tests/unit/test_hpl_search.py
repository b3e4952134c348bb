"""The search for the quickest setting, in spaces whose times are made up."""

import itertools
import math

import numpy as np
import pytest

from wulf.tools.hpl import program
from wulf.tools.hpl.search import CUT, Search, coordinates

VALUES = {
    "layout": (program.Layout(1, 1, 2), program.Layout(1, 2, 1), program.Layout(2, 1, 1)),
    "nb": (32, 64, 96, 128, 192, 256),
    "bcast": (1, 3, 4),
    "depth": (0, 1),
    "swap": (0, 2),
}
SETTINGS = [dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())]
#: Time of a launch beside its solution [s].
BESIDE = {"small": 0.4, "large": 0.8}


class World:
    """Times by setting and order, with the noise of single launches."""

    def __init__(self, seed, noise=0.02):
        self.rng = np.random.default_rng(seed)
        self.noise = noise
        effects = {
            name: dict(zip(values, self.rng.permutation(np.linspace(0, size, len(values))), strict=True))
            for (name, values), size in zip(VALUES.items(), (0.3, 0.5, 0.03, 0.05, 0.02), strict=True)
        }
        sums = [sum(effects[name][value] for name, value in setting.items()) for setting in SETTINGS]
        self.large = 0.3 * np.exp(sums)
        self.small = 0.05 * np.exp(1.2 * np.array(sums) + self.rng.normal(0, 0.02, len(sums)))
        self.budget = 0.1 * float(np.sum(self.large + BESIDE["large"]))

    def launch(self, index, order):
        return float(
            (self.small if order == "small" else self.large)[index] * self.rng.lognormal(0, self.noise)
        )


def run(world, seed=1, broken=()):
    search, spent, launches = Search(SETTINGS, world.budget, seed), 0.0, []
    while (proposal := search.propose()) is not None:
        time_s = world.launch(proposal.index, proposal.order)
        if proposal.limit_s is not None:
            time_s = min(time_s, proposal.limit_s)
        cost = time_s + BESIDE[proposal.order]
        spent += cost
        launches.append(proposal)
        search.add(proposal.index, proposal.order, None if proposal.index in broken else time_s, cost)
    return search.best(), spent, launches


@pytest.mark.parametrize("seed", range(4))
def test_a_tenth_of_the_time_finds_what_is_nearly_the_best(seed):
    world = World(seed)
    best, spent, launches = run(world, seed)
    assert world.large.min() / world.large[best] >= 0.97
    assert spent <= 1.05 * world.budget
    assert len({one.index for one in launches}) < len(SETTINGS) / 4


def test_every_value_is_tried_first_with_small_problems():
    _, _, launches = run(World(3))
    first = [one for one in launches if one.order == "small"]
    tried = {(name, value) for one in first for name, value in SETTINGS[one.index].items()}
    assert tried == {(name, value) for values in SETTINGS for name, value in values.items()}
    assert [one.order for one in launches] == sorted((one.order for one in launches), reverse=True)


def test_a_setting_that_fails_is_neither_chosen_nor_tried_again():
    world = World(5)
    broken = set(np.argsort(world.large)[:20].tolist())
    best, _, launches = run(world, broken=broken)
    assert best not in broken
    tried = [one.index for one in launches if one.index in broken]
    assert len(tried) == len(set(tried))


def test_a_launch_that_is_much_slower_than_the_best_is_cut():
    search = Search(SETTINGS, 100.0, 1)
    assert search.propose().limit_s is None
    search.add(0, "small", 0.5, 1.0)
    search.add(1, "small", 0.4, 1.0)
    assert CUT * 0.39 < search.propose().limit_s < CUT * 0.45


def test_one_lucky_launch_does_not_cut_all_others():
    search = Search(SETTINGS, 1000.0, 1)
    for index, time_s in enumerate((1.0, 1.1, 0.95, 1.05, 1.0, 0.4, 1.0, 1.1, 0.9, 1.0)):
        search.add(7, "small", time_s, 2.0)
        search.add(index + 100, "small", 1.1 * time_s, 2.0)
    assert search.propose().limit_s > 1.1


def test_nothing_is_chosen_where_nothing_was_launched_or_all_failed():
    search = Search(SETTINGS[:2], 10.0, 1)
    assert search.best() is None
    for index in (0, 1):
        search.add(index, "small", None, 1.0)
    assert search.best() is None and search.propose() is None


def test_small_problems_are_tried_until_one_has_gone_well():
    search, tried = Search(SETTINGS, 10.0, 1), []
    while (proposal := search.propose()) is not None:
        assert (proposal.order, proposal.limit_s) == ("small", None)
        tried.append(proposal.index)
        search.add(proposal.index, "small", None, 4.0)
    assert len(set(tried)) == len(tried) == 2 and search.best() is None
    search = Search(SETTINGS, 10.0, 1)
    search.add(0, "small", None, 4.0)
    search.add(search.propose().index, "small", 0.5, 2.0)
    assert search.propose().order == "large"


def test_without_time_nothing_is_tried():
    assert Search(SETTINGS, 0.0, 1).propose() is None


def test_what_was_seen_with_small_problems_counts_where_there_was_no_time_for_larger_ones():
    search = Search(SETTINGS, 10.0, 1)
    for index, time_s in ((0, 0.5), (50, 0.3), (100, 0.6)):
        search.add(index, "small", time_s, 1.0)
    assert search.best() == 50


def test_like_settings_are_near_each_other():
    places = coordinates([{**SETTINGS[0], "nb": nb} for nb in (64, 128, 256)])
    near, far = np.abs(places[0] - places[1]).sum(), np.abs(places[0] - places[2]).sum()
    assert math.isclose(far, 2 * near)


def test_what_does_nothing_in_a_grid_is_no_difference():
    def differ(layout: program.Layout, name: str, *values: int) -> bool:
        one, other = coordinates([{**SETTINGS[0], "layout": layout, name: value} for value in values])
        return bool((one != other).any())

    row, column = program.Layout(1, 2, 1), program.Layout(2, 1, 1)
    swaps, kinds = (0, 2), (1, 3)
    assert differ(column, "swap", *swaps) and not differ(row, "swap", *swaps)
    assert differ(row, "bcast", *kinds) and not differ(column, "bcast", *kinds)


@pytest.mark.parametrize(("small_s", "order"), [(1.0, "small"), (5.0, "large")])
def test_the_small_order_is_tried_while_it_is_cheap(small_s, order):
    search = Search(SETTINGS, 1000.0, 1)
    while (proposal := search.propose()) is not None and proposal.order == "small":
        search.add(proposal.index, "small", 0.1, small_s)
    assert proposal is not None, "after the first settings it asks what the large order costs"
    search.add(proposal.index, "large", 1.0, 10.0)
    after = search.propose()
    assert after is not None
    assert after.order == order
