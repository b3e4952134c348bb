"""Launches that take turns: their order, what is read from a side, the verdict, what is shown of it."""

import io
import math
from itertools import islice

import numpy as np
import pytest
from rich.console import Console

from bench import compare_power
from tests.unit.make_cells import analysis, cell
from wulf.base.errors import UsageError
from wulf.base.records import Cell
from wulf.node.trials import interleaving
from wulf.node.trials.alternation import in_turn
from wulf.page.page import html
from wulf.page.terminal import print_page
from wulf.stats.estimate import compare, compare_interleaved
from wulf.tools.compare import page as report

SMALL = Cell(op="mpi_pingpong", size_bytes=1, place=("a", "b"))
LARGE = Cell(op="mpi_pingpong", size_bytes=65536, place=("a", "b"))


def pairs(count, effect, seed=1, spread=0.03, drift=0.0):
    rng = np.random.default_rng(seed)
    taken = []
    for number in range(count):
        sides = []
        for factor in (1.0, 1.0 + effect):
            launch = math.exp(spread * rng.standard_normal() + drift * number)
            sides.append({SMALL: 1e-5 * launch * factor, LARGE: 8e-5 * launch * factor})
        taken.append(tuple(sides))
    return taken


def test_an_effect_smaller_than_an_offset_is_one():
    found = compare_interleaved("original", "x=1", pairs(20, 0.05, drift=0.05))
    assert found.verdict == "worse"
    assert found.design == "interleaved"
    assert found.offset == 0
    pooled = found.pooled["mpi_pingpong"]
    assert pooled.ratio.low < 1.05 < pooled.ratio.high
    assert [cell.size_bytes for cell in found.cells] == [1, 65536]
    assert len(found.cells[0].pairs_s) == 20
    assert 0 < found.smallest_effect < 0.05


def test_nothing_is_called_nothing_where_it_can_be():
    assert compare_interleaved("a", "b", pairs(20, 0.0, spread=0.005)).verdict == "no difference"
    assert compare_interleaved("a", "b", pairs(20, 0.0, spread=0.2)).verdict == "no decision"
    assert compare_interleaved("a", "b", pairs(4, 0.5)).verdict == "no decision"


def test_a_pair_of_which_one_launch_failed_is_left_out_and_told():
    taken = pairs(12, 0.3)
    taken[3] = ({}, taken[3][1])
    taken[5] = (taken[5][0], {})
    found = compare_interleaved("a", "b", taken, failures=({"node a died": 1}, {"node b died": 1}))
    assert found.pooled["mpi_pingpong"].ratio.n == 10
    assert found.verdict == "worse"
    assert "1 of 12 launches of the base failed: node a died" in found.reason
    nothing = compare_interleaved("a", "b", [({}, {})] * 8, failures=({"no route": 8}, {}))
    assert nothing.verdict == "no decision"
    assert nothing.cells == []
    assert "8 of 8 launches of the base failed: no route" in nothing.reason


def test_either_way_comes_first_by_chance_and_both_are_told_apart():
    log = []

    def measure(way, number):
        log.append((number, way))
        return f"{way}.{number}"

    told = []
    taken = list(islice(in_turn(measure, 5, lambda number, passed_s: told.append((number, passed_s))), 40))
    assert taken == [(f"0.{number}", f"1.{number}") for number in range(40)]
    firsts = [way for (_, way), _ in zip(log[::2], log[1::2], strict=True)]
    assert 10 < sum(firsts) < 30
    assert [number for number, _ in log] == [number for number in range(40) for _ in range(2)]
    assert [number for number, _ in told] == list(range(40))
    assert told[-1][1] >= told[0][1] >= 0


def test_an_interruption_keeps_the_pairs_that_are_whole():
    def measure(way, number):
        if number == 3 and way == 1:
            raise KeyboardInterrupt
        return way

    taken = []
    with pytest.raises(KeyboardInterrupt):
        for pair in in_turn(measure, 1, lambda number, passed_s: None):
            taken.append(pair)
    assert len(taken) == 3


def test_a_side_is_read():
    assert interleaving.side("original") == interleaving.Side(name="original")
    found = interleaving.side("nic.mtu=9000,pairs=node01:node02,node03:node04,mpi=mpich")
    assert found.setting == {"nic.mtu": "9000"}
    assert found.pairs == "node01:node02,node03:node04"
    assert found.mpi == "mpich"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("faster", "not KNOB=VALUE"),
        ("mpi=", "without a value"),
        ("mpi=a,mpi=b", "given twice"),
        ("nic.mtuu=9000", "did you mean"),
        ("nic.mtu=large", "a whole number"),
    ],
)
def test_a_side_that_cannot_be_read_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        interleaving.side(text)


@pytest.mark.parametrize("world", ["independent", "AR(1) 0.5", "regimes of 4 to 12", "drift of 1 SD a run"])
def test_interleaved_effects_are_found_and_not_made_up(world):
    same, slower = (
        compare_power.shares(compare_power.in_turn, compare_power.WORLDS[world], effect, 60)
        for effect in (0.0, 0.05)
    )
    assert compare_power.claims(same) <= 0.05
    assert slower["worse"] >= 0.85


def carried(left, effect, seed, count=30, spread=0.02):
    """Launches in turn, of which a candidate leaves something to the next one."""
    rng = np.random.default_rng(seed)
    order = (rng.random(count) < 0.5).tolist()
    taken, last = [], False
    for first in order:
        times = {}
        for candidate in (first, not first):
            log = spread * rng.standard_normal() + left * last + effect * candidate
            times[candidate] = {SMALL: 1e-5 * math.exp(log)}
            last = candidate
        taken.append((times[False], times[True]))
    return compare_interleaved("a", "b", taken, candidate_first=order)


def test_what_a_launch_leaves_to_the_next_is_no_effect_of_its_setting():
    found = [carried(0.06, 0.0, seed) for seed in range(40)]
    assert sum(one.verdict in ("better", "worse") for one in found) <= 2
    assert sum("a launch changes the next one" in one.reason for one in found) > 30


def test_an_effect_is_found_where_a_launch_leaves_something_too():
    found = [carried(0.06, 0.06, seed) for seed in range(20)]
    assert sum(one.verdict == "worse" for one in found) > 15
    median = np.median([one.pooled["mpi_pingpong"].ratio.value for one in found])
    assert median == pytest.approx(math.exp(0.06), abs=0.01)


def test_launches_that_leave_nothing_are_compared_as_they_are():
    found = [carried(0.0, 0.05, seed) for seed in range(20)]
    assert all(one.verdict == "worse" for one in found)
    assert not any("changes the next" in one.reason for one in found)


@pytest.mark.parametrize("world", ["AR(1) 0.5", "drift of 1 SD a run", "offset within ±5 %"])
def test_two_runs_claim_no_effect_that_a_run_s_offset_explains(world):
    found = compare_power.shares(compare_power.two_runs, compare_power.WORLDS[world], 0.0, 60)
    assert compare_power.claims(found) <= 0.05


def test_what_is_shown_says_that_both_took_turns():
    found = compare_interleaved("original", "x=1", pairs(20, 0.05), differing={"node[01-02]: x": ("0", "1")})
    text = io.StringIO()
    print_page(report.build(found), Console(file=text, width=200))
    assert "measured interleaved" in text.getvalue()
    assert "offset" not in text.getvalue()
    assert "Worse" in text.getvalue()
    page = html(report.build(found))
    assert "measured interleaved" in page
    assert "node[01-02]" in page


def test_different_runs_are_shown_with_what_would_tell():
    rng = np.random.default_rng(2)
    runs = [
        analysis([cell(64, 1e-5 * factor * np.exp(0.01 * rng.standard_normal(12)))]) for factor in (1, 1.04)
    ]
    found = compare(*runs, [], [])
    assert found.verdict == found.cells[0].verdict == "different"
    text = io.StringIO()
    print_page(report.build(found), Console(file=text, width=200))
    assert "Different runs: it may be an offset between them" in text.getvalue()
    assert "by up to 10 %" in text.getvalue()
    assert "1 different" in html(report.build(found))
