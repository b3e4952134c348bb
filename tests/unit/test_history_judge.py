"""Series taken apart, and which of them has changed."""

import math

import numpy as np
import pytest

from bench.watched import NOISES, SIZES_BYTES, Change, Cluster, Watch, key_of
from wulf.tools.watch.history import judge
from wulf.tools.watch.history.alarms import key_of as key_of_alarm
from wulf.tools.watch.history.decompose import NOBODY, decompose

USUAL = NOISES[0]
TEN_PERCENT = math.log(1.1)


def watched(days, changes, nodes=16, seed=1):
    watch = Watch(Cluster(USUAL, nodes, days, seed, changes))
    found = []
    while watch.run + 1 < days:
        watch.measure()
        if watch.run >= 30:
            found += [(watch.run, one) for one in watch.look()]
    return watch, found


def apart(noise=0.0, node=None, link=None):
    """Return the parts of 20 runs of 8 nodes of which one, or one pair, is slower in the last 5."""
    rng = np.random.default_rng(1)
    pairs = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    ends = np.array(pairs)
    runs = np.repeat(np.arange(20), len(pairs))
    places = np.tile(np.arange(len(pairs)), 20)
    values = (
        np.repeat(0.1 * rng.standard_normal(20), len(pairs)) + 0.2 * rng.standard_normal(len(pairs))[places]
    )
    late = runs >= 15
    if node is not None:
        values += 0.5 * (late & np.any(ends[places] == node, axis=1))
    if link is not None:
        values += 0.5 * (late & (places == pairs.index(link)))
    return decompose(runs, places, ends, values + noise * rng.standard_normal(values.size)), pairs


def test_a_node_that_changes_does_not_move_its_partners():
    parts, _ = apart(node=3)
    assert parts.nodes[3, 15:] - parts.nodes[3, 0] == pytest.approx(0.5)
    others = np.delete(parts.nodes, 3, axis=0)
    assert np.ptp(others) == pytest.approx(0, abs=1e-9)
    assert np.ptp(parts.left) == pytest.approx(0, abs=1e-9)


def test_a_link_that_changes_does_not_move_its_nodes():
    parts, pairs = apart(link=(2, 5))
    assert np.ptp(parts.nodes) == pytest.approx(0, abs=1e-9)
    left = parts.left.reshape(20, -1)[:, pairs.index((2, 5))]
    assert left[15:] - left[0] == pytest.approx(0.5)


def test_what_all_have_in_common_is_no_nodes():
    parts, _ = apart()
    assert np.ptp(parts.nodes) == pytest.approx(0, abs=1e-9)
    assert np.ptp(parts.cluster) > 0.1


def test_with_few_nodes_pairs_are_judged_as_they_are():
    ends = np.array([(0, 1), (0, 2), (1, 2)])
    runs, places = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    values = np.arange(12.0)
    parts = decompose(runs, places, ends, values)
    assert np.all(np.isnan(parts.cluster)) and np.all(np.isnan(parts.nodes))
    assert parts.left.tolist() == values.tolist()


def test_nodes_alone_are_freed_from_what_all_have_in_common():
    ends = np.array([(node, NOBODY) for node in range(6)])
    runs, places = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
    values = runs * 0.1 + places * 1.0
    values[(runs == 9) & (places == 2)] += 0.7
    parts = decompose(runs, places, ends, values)
    assert parts.nodes[2, 9] == pytest.approx(0.7)
    assert np.delete(parts.nodes, 2, axis=0) == pytest.approx(0)


@pytest.mark.parametrize(("level", "nodes"), [("node", (4,)), ("cluster", ())], ids=["a node", "the cluster"])
def test_a_step_is_found_where_it_is_and_only_there(level, nodes):
    change = Change(level=level, nodes=nodes, run=40, size=2 * TEN_PERCENT)
    watch, found = watched(46, [change])
    # Once for each size, and not again while it lasts.
    assert {key_of_alarm(one) for _, one in found} == {
        key_of(change, watch.cluster, size) for size in SIZES_BYTES
    }
    assert len(found) == len(SIZES_BYTES)
    assert all(run <= 42 for run, _ in found)
    # Where it began is found anew with the runs after it.
    assert {(one.before_run, one.after_run) for one in watch.alarms} == {(39, 40)}
    assert all(math.log(one.change.value) == pytest.approx(change.size, abs=0.04) for one in watch.alarms)


def test_a_link_that_looks_strange_is_measured_again_at_once():
    watch = Watch(Cluster(USUAL, 16, 60, 1))
    for _ in range(40):
        watch.measure()
    watch.look()
    watch.suspects = []
    pair = watch.next_pairs()[-1]  # one whose turn it is, and that is not in every run
    places = tuple(watch.cluster.names.index(name) for name in pair)
    change = Change(level="link", nodes=places, run=40, size=2.5 * TEN_PERCENT)
    watch.cluster.changes.append(change)
    watch.measure()
    found = watch.look()
    assert pair in watch.suspects and pair in watch.next_pairs()
    for _ in range(2):
        watch.measure()
        found += watch.look()
    assert {key_of(change, watch.cluster, size) for size in SIZES_BYTES} <= set(map(key_of_alarm, found))


def test_what_goes_back_is_a_change_again():
    slow = Change(level="node", nodes=(2,), run=40, size=3 * TEN_PERCENT)
    back = Change(level="node", nodes=(2,), run=46, size=-3 * TEN_PERCENT)
    _, found = watched(52, [slow, back])
    of_one = [one for _, one in found if one.size_bytes == SIZES_BYTES[0] and one.level == "node"]
    assert [(one.after_run, one.direction, one.state) for one in of_one] == [
        (40, "slower", "open"),
        (46, "faster", "noted"),
    ]


def test_a_creep_is_found_against_the_first_weeks():
    change = Change(level="node", nodes=(7,), run=70, size=2 * TEN_PERCENT, over=70)
    cluster = Cluster(USUAL, 16, 141, 3, [change])
    watch = Watch(cluster)
    found = []
    while watch.run + 1 < cluster.days:
        watch.measure()
        if watch.run % 7 == 0 and watch.run > 70:
            found += watch.drifts()
    assert {key_of(change, cluster, size) for size in SIZES_BYTES} <= {one.key for one in found}
    assert all(one.kind == "drift" for one in found)


def test_nothing_is_judged_before_there_is_enough():
    watch = Watch(Cluster(USUAL, 8, 20, 1, [Change(level="node", nodes=(1,), run=8, size=1.0)]))
    for _ in range(14):
        watch.measure()
        assert watch.look() == []


def test_a_run_at_another_time_of_the_week_is_not_judged():
    watch = Watch(Cluster(USUAL, 8, 40, 1))
    for _ in range(30):
        watch.measure()
    timeline = watch.timeline(0)
    moved = timeline.local_s.copy()
    moved[-1] += 12 * 3600
    measured = watch.measured(0)
    strange = [
        judge.Measured(m.op, m.size_bytes, m.nodes, m.runs, m.first, m.second, m.logs + (m.runs >= 27))
        for m in measured
    ]
    assert judge.judge(strange, timeline, {}).changes
    assert not judge.judge(strange, judge.Timeline(timeline.numbers, moved), {}).changes


def test_weeks_are_medians_of_whole_weeks():
    watch = Watch(Cluster(USUAL, 8, 40, 1))
    for _ in range(36):
        watch.measure()
    weekly, weeks = judge.by_week(watch.measured(0), watch.timeline(0))
    assert weeks.numbers.tolist() == [0, 7, 14, 21, 28]
    first = weekly[0]
    chosen = (first.runs == 1) & (first.first == 0) & (first.second == 1)
    whole = watch.measured(0)[0]
    days = (whole.runs >= 7) & (whole.runs < 14) & (whole.first == 0) & (whole.second == 1)
    assert first.logs[chosen] == pytest.approx(np.median(whole.logs[days]))
    assert judge.week_is_over(watch.timeline(0))  # run 35 is a Monday
    watch.measure()
    assert not judge.week_is_over(watch.timeline(0))
