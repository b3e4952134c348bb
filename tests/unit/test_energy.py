"""The energy of a run: as counted around launches of a command, and as predicted with the watts that were given."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.unit.make_records import result
from tests.unit.predict_fixture import prediction
from wulf.base.output_values import Unknown
from wulf.base.records import NodeContext, Usage
from wulf.base.units import format_value
from wulf.node.facts import energy
from wulf.page.terminal import page_text
from wulf.stats.estimate.resources import cpu_energy, energy_lacks, resources
from wulf.tools.measure.page.summary_tables import resources_table
from wulf.tools.predict.energy import with_energy
from wulf.tools.predict.page import view

UNKNOWN = {"cpu_joules": "no energy counters (RAPL): there is no /sys/class/powercap"}


def counted(*joules, interval_s=2.0):
    """Return a launch on as many nodes, whose counters said this around it."""
    names = [f"n{place}" for place in range(len(joules))]
    contexts = [
        NodeContext(node=name, interval_s=interval_s, cpu_joules=spent, unknown=UNKNOWN)
        for name, spent in zip(names, joules, strict=True)
    ]
    return replace(result().launch, place=(*names, *names), context=contexts)


@pytest.mark.parametrize(
    ("joules", "run_s", "expected", "lack"),
    [
        ((150.0, 50.0), 1.9, 200.0, None),
        ((150.0, None), 1.9, None, "no energy counters (RAPL): there is no /sys/class/powercap"),
        # Most of the time between the looks was not the run's.
        ((150.0, 50.0), 1.5, None, "less than 80%"),
    ],
)
def test_a_run_takes_what_all_its_nodes_count_and_else_the_reason_is_said(joules, run_s, expected, lack):
    launch = counted(*joules)
    lacks = energy_lacks(launch, run_s)
    if lack is None:
        assert lacks == {} and cpu_energy(launch) == expected
    else:
        assert lacks and all(lack in why for why in lacks.values())


def test_a_node_that_was_not_looked_at_is_not_one_that_takes_nothing():
    launch = counted(150.0, 50.0)
    assert energy_lacks(replace(launch, context=launch.context[:1]), 1.9) == {"n1": "it was not looked at"}


def used(joules, place=0):
    """Return a good launch of a command of 10 µs on one node."""
    one = result(place)
    run_s = one.samples[0].batch_medians_ns[0] * 1e-9
    names = sorted(set(one.launch.place))
    context = [NodeContext(node=name, interval_s=run_s, cpu_joules=joules, unknown=UNKNOWN) for name in names]
    usage = Usage(user_s=1.0, system_s=0.1, peak_bytes=1000)
    return replace(one, launch=replace(one.launch, usage=usage, context=context)), len(names)


def test_launches_of_a_command_have_a_median_of_energy():
    told = [used(joules, place) for place, joules in enumerate((10.0, 12.0, 11.0, 10.5, 11.5, 11.2, 10.8))]
    (found,) = resources([one for one, _ in told], 0.95)
    nodes = told[0][1]
    assert (found.cpu_energy.value, found.cpu_energy.unit) == (11.0 * nodes, "J")
    table = resources_table([found])
    assert "energy" in table.columns[-1].name and "RAPL" in table.note
    (without,) = resources([replace(used(None)[0])], 0.95)
    assert without.cpu_energy is None
    bare = resources_table([without])
    assert len(bare.columns) == len(table.columns) - 1
    assert "Energy: not told (" in bare.note and "there is no /sys/class/powercap" in bare.note
    assert "not told" not in table.note and found.energy_lacks == {}


def test_a_prediction_has_the_energy_of_all_nodes_with_the_watts_that_were_given():
    found = prediction()
    powered = with_energy(found, 350.0)
    for before, one in zip(
        [found.base, *found.scenarios, found.bound],
        [powered.base, *powered.scenarios, powered.bound],
        strict=True,
    ):
        watts = 350.0 * found.nodes
        assert one.energy.value == pytest.approx(before.time.value * watts)
        assert (one.energy.low, one.energy.high) == (
            pytest.approx(before.time.low * watts),
            pytest.approx(before.time.high * watts),
        )
        assert replace(one, energy=None) == before
    assert "350 W, as given" in powered.notes[-1]
    assert "energy" not in page_text(view.build(found))
    shown = page_text(view.build(powered))
    assert "energy" in shown and " kJ" in shown


@pytest.mark.parametrize(
    ("joules", "words"), [(12, "12.0 J"), (45_300, "45.3 kJ"), (7.2e6, "7.20 MJ"), (-2e3, "−2.00 kJ")]
)
def test_energy_is_written_in_units_of_its_size(joules, words):
    assert format_value(joules, "J") == words


@pytest.mark.parametrize(
    "line", ["intel-rapl:1 unreadable 5 9", "intel-rapl:1 package-1 5.5 9", "intel-rapl:1 package-1"]
)
def test_a_counter_that_cannot_be_told_is_not_left_out_of_a_sum(line):
    with pytest.raises(Unknown, match="cannot be told"):
        energy.joules(["intel-rapl:0 package-0 5 9", line])
