import numpy as np
import pytest

from bench import aa_sim
from tests.unit.make_cells import PAIR, analysis, cell, curve
from tests.unit.make_records import plan
from wulf.base.records import NodeRecord
from wulf.page.blocks import Verdict
from wulf.stats.estimate import compare
from wulf.tools.compare.page import view

SIZES = [1, 64, 1024, 65536]
TIMES = [10e-6, 10.1e-6, 12e-6, 80e-6]


def run(factor=1.0, seed=1, spread=0.005, name="run", op="mpi_pingpong", launches=8):
    return analysis(curve(SIZES, [time * factor for time in TIMES], launches, spread, seed, op), name)


def test_a_slower_run_is_worse_by_what_it_is():
    found = compare(run(seed=1), run(1.2, seed=2), [], [])
    assert found.verdict == "worse"
    assert found.pooled["mpi_pingpong"].ratio.value == pytest.approx(1.2, rel=0.02)
    assert all(cell.verdict == "worse" for cell in found.cells)
    assert all(cell.ratio.low <= cell.ratio.value <= cell.ratio.high for cell in found.cells)


def test_a_faster_run_is_better():
    assert compare(run(seed=1), run(0.8, seed=2), [], []).verdict == "better"


def test_equal_quiet_runs_do_not_differ():
    found = compare(run(seed=1, spread=0.001), run(seed=2, spread=0.001), [], [])
    assert found.verdict == "no difference"
    assert 0 < found.smallest_effect < 0.02
    assert found.smallest_effects == {"mpi_pingpong": found.smallest_effect}


def test_what_only_one_run_has_is_named():
    base = analysis([*run(seed=1).cells, *run(seed=3, op="tcp_rr").cells], "before")
    found = compare(base, run(seed=2, name="after"), [], [])
    assert found.unshared == ({"tcp_rr": [PAIR]}, {})
    (limits,) = (block for block in view.build(found).head if isinstance(block, Verdict))
    assert "Not compared, as only before has figures of it: tcp_rr." in limits.lines
    assert compare(run(seed=1), run(seed=2), [], []).unshared == ({}, {})


def test_noise_gives_no_decision():
    assert compare(run(seed=1, spread=0.3), run(1.05, seed=2, spread=0.3), [], []).verdict == "no decision"


def noisy(spread):
    found = compare(run(seed=1, spread=spread), run(seed=2, spread=spread), [], [])
    assert found.verdict == "no decision"
    return found


def test_where_what_matters_would_go_unseen_nothing_can_be_told():
    blind, seeing = noisy(0.5), noisy(0.05)
    assert blind.untold == ["mpi_pingpong"]
    assert seeing.untold == []
    assert view.build(blind).title.startswith("Cannot tell: ")
    lines = [line for block in view.build(blind).head for line in block.lines]
    assert any("even a change of 25 % would go unseen; longer runs on idle nodes" in line for line in lines)
    assert view.build(seeing).title.startswith("No decision")


def test_where_launches_resemble_each_other_nothing_can_be_told():
    rng = np.random.default_rng(4)
    slow = np.cumsum(0.05 * rng.standard_normal(40))
    runs = [analysis([cell(64, 10e-6 * np.exp(part))]) for part in (slow[:20], 0.5 + slow[20:])]
    assert compare(*runs, [], []).untold == ["mpi_pingpong"]


def test_a_change_inside_the_margin_does_not_matter():
    found = compare(run(seed=1, spread=0.001), run(1.01, seed=2, spread=0.001), [], [], margin=0.02)
    assert found.verdict == "no difference"
    smaller = compare(run(seed=1, spread=0.001), run(1.01, seed=2, spread=0.001), [], [], 0.001)
    assert smaller.verdict == "different"
    assert "--interleaved" in smaller.reason
    assert smaller.offset == pytest.approx(0.1)


def test_launches_that_depend_on_each_other_decide_nothing():
    rng = np.random.default_rng(4)
    slow = np.cumsum(0.05 * rng.standard_normal(40))
    runs = [analysis([cell(64, 10e-6 * np.exp(part))]) for part in (slow[:20], 0.5 + slow[20:])]
    found = compare(*runs, [], [])
    assert found.verdict == "no decision"
    assert "resemble each other" in found.reason
    assert found.smallest_effects == {"mpi_pingpong": None}


@pytest.mark.parametrize("candidate_is_earlier", [False, True])
def test_a_drift_that_goes_on_from_run_to_run_is_no_effect(candidate_is_earlier):
    rng = np.random.default_rng(4)
    path = 0.01 * np.arange(40) + 0.02 * rng.standard_normal(40)
    parts = [path[20:], path[:20]] if candidate_is_earlier else [path[:20], path[20:]]
    runs = [analysis([cell(64, 10e-6 * np.exp(part))]) for part in parts]
    found = compare(*runs, [], [], candidate_is_earlier=candidate_is_earlier)
    assert found.verdict == "no decision"
    assert "drift" in found.reason
    # In the other order it would be a step back of twice as much, which no drift explains.
    wrong = compare(*runs, [], [], candidate_is_earlier=not candidate_is_earlier)
    assert wrong.verdict in ("better", "worse")


def test_a_change_no_larger_than_a_run_s_own_is_no_decision():
    drifting = np.linspace(1.0, 1.3, 12)
    base = analysis([cell(64, 10e-6 * drifting)])
    candidate = analysis([cell(64, 11.8e-6 * (1 + 0.001 * np.arange(12)))])
    assert compare(base, candidate, [], []).verdict == "no decision"


def test_operations_that_disagree_are_mixed():
    base = analysis(run(seed=1).cells + run(seed=2, op="tcp_rr").cells)
    candidate = analysis(run(1.3, seed=3).cells + run(0.7, seed=4, op="tcp_rr").cells)
    found = compare(base, candidate, [], [])
    assert found.verdict == "mixed"
    assert "tcp_rr" in found.reason


def test_runs_without_common_cells_are_said_to_be():
    found = compare(run(), run(op="tcp_rr"), [], [])
    assert found.verdict == "no decision"
    assert "in common" in found.reason
    assert found.smallest_effect is None


def test_contaminated_launches_do_not_vote_when_there_are_clean_ones():
    medians = [10e-6 + 1e-9 * index for index in range(8)]
    slow = [*medians, 30e-6, 31e-6]
    dirty = cell(64, slow, contaminated={8, 9})
    clean_time = cell(64, medians).time
    import msgspec

    dirty = msgspec.structs.replace(dirty, time=clean_time)
    found = compare(analysis([cell(64, medians)]), analysis([dirty]), [], [])
    assert found.cells[0].ratio.high < 1.01


def test_differing_facts_are_listed_and_passing_ones_are_not():
    def node(kernel, load):
        return [NodeRecord(node=PAIR[0], reachable=True, facts={"kernel": kernel, "node.load1": load})]

    found = compare(run(), run(), node("6.1", 0.1), node("6.12", 3.0))
    assert found.differing_facts == {"node01: kernel": ("6.1", "6.12")}


def test_too_few_launches_decide_nothing():
    found = compare(run(launches=2), run(1.5, seed=2, launches=2), [], [])
    assert found.verdict == "no decision"


@pytest.mark.thorough
def test_simulated_aa_pairs_are_rarely_called_different():
    rates = aa_sim.false_rates(60, seed=3)
    rates = {case.name: rates[case.name] for case in aa_sim.CASES if case.counts}
    # 60 pairs each: five per cent of all cases together, with room for chance.
    assert np.mean(list(rates.values())) <= 0.05


def test_a_node_that_was_absent_is_one_difference():
    facts = {f"fact.{index}": index for index in range(270)}
    there = [NodeRecord(node=PAIR[0], reachable=True, facts=facts)]
    gone = [NodeRecord(node=PAIR[0], reachable=False, error="node01: no route to host")]
    found = compare(run(), run(), there, gone)
    assert found.differing_facts == {"node01: all facts": ("270 facts", "unknown: node01: no route to host")}


def test_another_way_to_measure_is_listed():
    alone, together = plan(), plan(at_once=True, visit_us=500)
    found = compare(run(seed=1), run(seed=2), [], [], plans=(alone, together)).differing_facts
    assert found == {
        "pairs measured": ("one at a time", "at the same time"),
        "length of a visit": ("2000 µs", "500 µs"),
    }
    assert compare(run(seed=1), run(seed=2), [], [], plans=(alone, alone)).differing_facts == {}
