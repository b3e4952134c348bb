"""The pure part of predictions: networks, calibration, what-if, samples, words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import floats
from msgspec.structs import replace

from tests.unit.make_cells import cell, curve
from tests.unit.make_records import operation
from tests.unit.predict_fixture import (
    BETWEEN,
    EAGER,
    O_R,
    O_S,
    OPERATIONS,
    PER_BYTE,
    SIZES,
    WITHIN,
    L,
    cells,
    parameters,
    round_trip,
)
from wulf.base import networks
from wulf.base.errors import ConfigError, UsageError
from wulf.base.records import CurveLine, Estimate
from wulf.base.trace.layout import RECORD
from wulf.stats.prediction import calibrate, judge, network, operation_times, replayed, scenario, uncertainty
from wulf.stats.prediction.draws import WIDTH, Sample, bounded
from wulf.stats.prediction.errors import deviation, of_median
from wulf.stats.prediction.launches import Launches
from wulf.stats.prediction.spreads import Spreads


def way(places=(BETWEEN, WITHIN), lacking=()):
    kept = [cell for cell in cells(places) if cell.cell.op not in lacking]
    return operation_times.between_nodes(kept, OPERATIONS, parameters(), "RUN")


def test_what_a_size_takes_alone_is_no_part_of_the_calibration():
    pingpongs = [cell for cell in cells([BETWEEN]) if cell.cell.op == "mpi_pingpong"]
    alone = [
        replace(cell, cell=replace(cell.cell, op="order_alone"), time=replace(cell.time, value=9.0))
        for cell in pingpongs
    ]
    named = replace(OPERATIONS[0], name="order_alone", asked="mpi_pingpong")
    found = [*cells([BETWEEN, WITHIN]), *alone]
    with_it = operation_times.between_nodes(found, [*OPERATIONS, named], parameters(), "RUN")
    assert pingpongs and with_it == way()


def half_round_trip(link, size):
    """What the replay's rule says of a ping-pong, with its receiver waiting [ns]."""
    ways = 1 if size <= link.eager_bytes else 3
    parts = (link.send, link.wire, link.receive)
    return ways * link.latency_ns + sum(network.at(pieces, size) for pieces in parts)


@pytest.mark.parametrize("size", SIZES)
def test_each_measured_round_trip_comes_out_of_the_calibrated_link(size):
    measured = next(
        cell.time.value
        for cell in cells((BETWEEN,))
        if cell.cell.op == "mpi_pingpong" and cell.cell.size_bytes == size
    )
    assert half_round_trip(calibrate.link(way()), size) == pytest.approx(measured * 1e9, rel=0.005)


def test_parameters_are_those_the_run_was_made_of():
    link = calibrate.link(way())
    assert link.latency_ns == pytest.approx(L * 1e9, rel=0.02)
    assert network.at(link.send, 1024) == pytest.approx(O_S * 1e9, rel=0.02)
    assert network.at(link.wire, 65536) == pytest.approx(PER_BYTE * 65536 * 1e9, rel=0.02)
    assert network.at(link.receive, 1024) == pytest.approx(O_R * 1e9, rel=0.1)
    assert link.eager_bytes == EAGER
    # Beyond what was measured it goes on as before.
    assert half_round_trip(link, 4 << 20) == pytest.approx(round_trip(4 << 20) * 1e9, rel=0.02)


def test_samples_scatter_as_the_intervals_say_and_repeat_with_their_seed():
    one = way()
    latencies = [calibrate.link(one, Sample(1, number)).latency_ns for number in range(300)]
    found = next(c for c in cells((BETWEEN,)) if c.cell.op == "mpi_pingpong" and c.cell.size_bytes == 1)
    expected = (found.time.high - found.time.low) / 2 / WIDTH * 1e9
    assert np.std(latencies) == pytest.approx(expected, rel=0.3)
    assert calibrate.link(one, Sample(1, 7)) == calibrate.link(one, Sample(1, 7))
    assert calibrate.link(one, Sample(1, 7)) != calibrate.link(one, Sample(2, 7))


def test_what_a_run_lacks_is_said_with_what_measures_it():
    with pytest.raises(UsageError, match=r"RUN has no mpi_recv_overhead between nodes: .*--suite calibrate"):
        way(lacking=("mpi_recv_overhead",))
    with pytest.raises(UsageError, match="within a node"):
        operation_times.within_node(cells((BETWEEN,)), OPERATIONS, parameters(), "RUN")
    assert any("gap between messages" in note for note in way(lacking=("train_16",)).notes)


def link_with_send_overhead(time_s):
    """The link of the fixture, but that its call that sends takes so long, whatever the size."""
    found = [
        replace(one, time=replace(one.time, value=time_s, low=0.9 * time_s, high=1.1 * time_s))
        if one.cell.op == "mpi_send_overhead"
        else one
        for one in cells((BETWEEN,))
    ]
    return calibrate.link(operation_times.between_nodes(found, OPERATIONS, parameters(), "RUN"))


def test_calls_that_take_longer_than_the_round_trip_are_parts_of_it():
    """As where both ranks share a CPU."""
    link = link_with_send_overhead(1e-3)
    assert link.latency_ns == pytest.approx(0, abs=1e-6)
    assert half_round_trip(link, 1) == pytest.approx(round_trip(1) * 1e9, rel=0.02)


def test_a_send_that_waits_for_the_wire_is_the_wires_time():
    """From 16 KiB on the call returns when the message has gone: twice the bandwidth must shorten that, too."""
    full = [
        replace(one, time=replace(one.time, value=PER_BYTE * one.cell.size_bytes, low=None, high=None))
        if one.cell.op == "mpi_send_overhead" and one.cell.size_bytes >= 16384
        else one
        for one in cells((BETWEEN,))
    ]
    link = calibrate.link(operation_times.between_nodes(full, OPERATIONS, parameters(), "RUN"))
    assert network.at(link.send, 32768) == pytest.approx(O_S * 1e9, rel=0.05)
    assert network.at(link.wire, 32768) == pytest.approx(PER_BYTE * 32768 * 1e9, rel=0.05)
    assert half_round_trip(link, 32768) == pytest.approx(round_trip(32768) * 1e9, rel=0.02)


def with_both_ways(times, where=BETWEEN):
    """The cells of the fixture, and what two ranks take that send to each other, by size [s]."""
    sizes = sorted(times)
    made = curve(sizes, [times[size] for size in sizes], op="mpi_exchange")
    found = [*cells((where,)), *(replace(one, cell=replace(one.cell, place=where)) for one in made)]
    return operation_times.between_nodes(found, [*OPERATIONS, operation("mpi_exchange")], parameters(), "RUN")


def exchange(link, size):
    """What the replay's rule says of two ranks that send to each other [ns]."""
    if size <= link.eager_bytes:
        return network.meeting_ns(link, size)
    gone = network.at(link.send, size) + 2 * link.latency_ns + network.at(link.wire, size)
    return gone + max(link.latency_ns + network.at(link.receive, size), network.at(link.after, size))


def nearer(way, gap_s):
    """The same with 28 us less on the way, and trains of so long a gap between messages."""

    def points(kind, times):
        return dataclasses.replace(way.points[kind], times=tuple(times))

    rounds = way.points[operation_times.ROUND_TRIP].times
    gaps = {
        kind: points(kind, [gap_s for _ in way.points[kind].sizes])
        for kind in (operation_times.SHORT, operation_times.LONG)
    }
    near = points(operation_times.ROUND_TRIP, [time - 28e-6 for time in rounds])
    return dataclasses.replace(way, points={**way.points, **gaps, operation_times.ROUND_TRIP: near})


NEAR = {size: round_trip(size) - 28e-6 for size in SIZES}


def test_messages_that_meet_take_what_was_measured_where_the_processor_is_what_takes_the_time():
    times = {size: time * (1.3 if size in (1, 262144) else 1.0) for size, time in NEAR.items()}
    link = calibrate.link(nearer(with_both_ways(times), 12e-6))
    for size in (1, 262144):
        assert exchange(link, size) == pytest.approx(times[size] * 1e9, rel=0.02)
    assert half_round_trip(link, 1) == pytest.approx(NEAR[1] * 1e9, rel=0.01)
    # Of a message at once that the wire takes the time of, they tell no more than shorter ones did.
    slow = calibrate.link(with_both_ways({size: 2 * round_trip(size) for size in SIZES}))
    assert network.at(slow.busy, 32768) == network.at(slow.busy, 1024)


@pytest.mark.parametrize("gap_us", [6, 9, 12])
def test_what_two_ranks_take_longer_that_send_to_each_other_is_no_part_of_what_sending_takes(gap_us):
    """A stream one way takes what its calls do, however long an exchange takes; and no receiver more than a train."""
    link = calibrate.link(
        nearer(with_both_ways({size: 1.3 * time for size, time in NEAR.items()}), gap_us * 1e-6)
    )
    one_way = calibrate.link(nearer(with_both_ways(NEAR), gap_us * 1e-6))
    assert network.at(link.after, 1) == pytest.approx(network.at(one_way.after, 1), abs=1)
    more = 1.3 * NEAR[1] - O_S - O_R
    assert network.at(link.busy, 1) == pytest.approx(1e9 * min(more, gap_us * 1e-6 - O_R), rel=0.03)
    assert network.meeting_ns(one_way, 1) == pytest.approx(NEAR[1] * 1e9, rel=0.03)


def test_what_processors_do_not_explain_of_messages_that_meet_is_their_way_or_is_not():
    times = {size: 1.3 * round_trip(size) for size in SIZES}
    way_of_both = with_both_ways(times)
    links = [calibrate.link(way_of_both, Sample(1, number)) for number in range(100)]
    once, both = (
        network.meeting_ns(link, 1) for link in (min(links, key=at_latency), max(links, key=at_latency))
    )
    assert once == pytest.approx(round_trip(1) * 1e9, rel=0.05)
    assert both == pytest.approx(times[1] * 1e9, rel=0.05)
    assert 30 < sum(link.latency_ns > 1.1 * L * 1e9 for link in links) < 70


def at_latency(link):
    return link.latency_ns


def test_a_send_that_ends_when_its_message_has_arrived_is_felt_by_who_sends_and_receives():
    """Both calls take 60 us, half a round trip 39."""
    link = link_with_send_overhead(55e-6)
    assert half_round_trip(link, 1) == pytest.approx(round_trip(1) * 1e9, rel=0.01)
    assert exchange(link, 1) == pytest.approx(60e3, rel=0.01)


def test_of_one_launch_of_each_operation_it_is_not_known_how_launches_differ():
    once = [replace(one, launches=one.launches[:1]) for one in cells((BETWEEN,))]
    assert not operation_times.between_nodes(once, OPERATIONS, parameters(), "RUN").tells_launches
    assert way().tells_launches
    # A usual launch is known all the same.
    link = calibrate.link(operation_times.between_nodes(once, OPERATIONS, parameters(), "RUN"), Sample(1, 0))
    assert half_round_trip(link, 1) > 0


def test_how_often_large_messages_meet_is_drawn_for_each_network():
    one = with_both_ways({size: round_trip(size) for size in SIZES})
    points = one.points[operation_times.BOTH_WAYS]
    wide = replace_points(one, lows=points.times, highs=tuple(2 * time for time in points.times))
    draws = [Sample(1, number) for number in range(200)]
    afters = [network.at(calibrate.link(wide, draw).after, 262144) for draw in draws]
    whole = round_trip(262144) * 1e9
    assert min(afters) == pytest.approx(0, abs=0.05 * whole)
    assert max(afters) == pytest.approx(whole, rel=0.1)
    elsewhere = [network.at(calibrate.link(renamed(wide), draw).after, 262144) for draw in draws]
    assert abs(np.corrcoef(afters, elsewhere)[0, 1]) < 0.25


def test_an_exchange_that_was_held_up_is_not_taken_for_messages_that_meet():
    """One of few that a retransmission made seven times as long: messages wait for two of the others at most."""
    one = with_both_ways({size: round_trip(size) for size in SIZES})
    points = one.points[operation_times.BOTH_WAYS]
    held_up = replace_points(one, lows=points.times, highs=tuple(7 * time for time in points.times))
    afters = [network.at(calibrate.link(held_up, Sample(1, number)).after, 262144) for number in range(200)]
    whole = round_trip(262144) * 1e9
    assert 1.9 * whole < max(afters) < 2.2 * whole


def replace_points(way, **changed):
    points = {
        **way.points,
        operation_times.BOTH_WAYS: dataclasses.replace(way.points[operation_times.BOTH_WAYS], **changed),
    }
    return dataclasses.replace(way, points=points)


def renamed(way):
    return dataclasses.replace(way, origin="ANOTHER")


def test_one_launch_lies_within_a_wider_interval_than_the_usual_one():
    rng = np.random.default_rng(1)
    numbers = rng.standard_normal(4000)
    own = Launches([1.0, 1.02, 1.04, 0.98, 1.01, 0.97])
    usual, single = own.usual(numbers), own.single(numbers)
    assert own.median_s == pytest.approx(1.005)
    assert np.std(np.log(single)) > 1.8 * np.std(np.log(usual)) > 0
    assert not Launches([1.0, 1.1]).is_told
    assert Launches([1.0, 1.1]).usual(numbers) == pytest.approx(np.ones_like(numbers))


@pytest.mark.parametrize("count", [3, 6, 10])
def test_the_next_launch_lies_within_the_interval_of_one_launch_as_often_as_that_says(count):
    rng = np.random.default_rng(count)
    numbers = rng.standard_normal(400)
    hits = 0
    for _ in range(1000):
        known, following = np.split(np.exp(0.05 * rng.standard_normal(count + 1)), [count])
        own = Launches(list(known))
        low, high = np.percentile(own.median_s * own.single(numbers), [2.5, 97.5])
        hits += low <= following[0] <= high
    assert 0.92 <= hits / 1000 <= 0.98


def test_pieces_go_through_their_points_and_never_fall():
    pieces = network.through([1, 10, 100], [5.0, 4.0, 50.0])
    assert [network.at(pieces, size) for size in (0, 1, 10, 100)] == pytest.approx([5, 5, 5, 50])
    assert network.at(network.faster(pieces, 2), 100) == pytest.approx(27.5)


@pytest.mark.parametrize("name", networks.networks())
def test_every_network_has_a_whole_file(name):
    one = networks.networks()[name]
    link = scenario.drawn(name, one.between, Sample(1, 1))
    assert one.costs is not None
    assert link.latency_ns > 0
    assert network.at(link.wire, 1 << 20) > 0


@pytest.mark.parametrize(
    ("name", "measured_us"),
    [
        ("1gbe", (25.0, 50.0, 117.0)),
        ("1gbe-tuned", (20.0, 23.0, 25.0)),
        ("ib-edr", (0.9, 0.95)),
        ("ib-hdr", (1.2,)),
    ],
)
def test_half_round_trips_that_were_published_lie_within_the_bounds(name, measured_us):
    """Of the smallest message: both calls and the latency; the figures are those of the file's evidence."""
    between = networks.networks()[name].between
    parts = (between.latency_us, between.send[0].base_us, between.receive[0].base_us)
    for measured in measured_us:
        assert sum(one.low for one in parts) <= measured <= sum(one.high for one in parts), measured


def write(path, without="", replaced=("", "")):
    text = networks.text("25gbe-roce").replace("25gbe-roce", "mine").replace(*replaced)
    path.write_text(
        "\n".join(line for line in text.splitlines() if not (without and line.startswith(without)))
    )
    return path


def test_a_network_of_the_users_own_is_found_before_others(tmp_path):
    (own,) = networks.read(write(tmp_path / "mine.toml"))
    assert networks.named("mine", {own.id: own}) is own
    assert [one.id for one in networks.read(tmp_path)] == ["mine"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"without": "latency_us"},
            r"mine\.toml:6: between\.latency_us: missing; it is half the round trip.*not guessed",
        ),
        ({"without": "eager_bytes"}, "late receiver.*mpi_late_receiver"),
        ({"replaced": ("low = 0.9", "low = 9")}, "low, value and high must be in this order"),
        ({"replaced": ("from_bytes = 8193", "from_bytes = 0")}, "from_bytes begins at 0 and ascends"),
        (
            {"replaced": ("latency_us", "latency")},
            "latency: unknown key; did you mean 'latency_us'|latency_us: missing",
        ),
    ],
)
def test_what_a_users_network_lacks_is_asked_for_by_name(tmp_path, change, said):
    with pytest.raises(ConfigError, match=said):
        networks.read(write(tmp_path / "mine.toml", **change))


def find(name):
    return networks.named(name, {})


def no_run(name):
    raise AssertionError(name)


def test_what_if_is_a_list_of_networks_and_changes():
    found = scenario.parse("10gbe, latency=5us..80us,bandwidth=x2,1gbe-tuned+compute=x0.5", find, no_run)
    assert [one.name for one in found] == [
        "10gbe",
        *(f"latency={value}" for value in ("5.00µs", "10.0µs", "20.0µs", "40.0µs", "80.0µs")),
        "bandwidth=x2",
        "1gbe-tuned+compute=x0.5",
    ]
    base = network.Network(calibrate.link(way()), None)
    twice = found[6].network(base).between
    assert network.at(twice.wire, 65536) == pytest.approx(network.at(base.between.wire, 65536) / 2, rel=1e-3)
    assert (twice.latency_ns, twice.send) == (base.between.latency_ns, base.between.send)
    assert found[3].network(base).between.latency_ns == pytest.approx(20_000)
    assert found[-1].network(base).compute == 0.5


def test_a_latency_may_be_added_to_what_there_is():
    found = scenario.parse("latency=+5us..80us,bandwidth=x2+latency=+7us", find, no_run)
    assert [one.name for one in found] == [
        *(f"latency=+{value}" for value in ("5.00µs", "10.0µs", "20.0µs", "40.0µs", "80.0µs")),
        "bandwidth=x2+latency=+7.00µs",
    ]
    base = network.Network(calibrate.link(way()), None)
    later = [one.network(base).between.latency_ns - base.between.latency_ns for one in found]
    assert later == pytest.approx([5_000, 10_000, 20_000, 40_000, 80_000, 7_000])


def test_a_buffer_may_be_full():
    plain, small, slow = scenario.parse("latency=x1,buffer=64KiB,10gbe+buffer=1MiB+rto=5ms", find, no_run)
    base = network.Network(calibrate.link(way()), None)
    assert [one.name for one in (small, slow)] == ["buffer=64KiB", "10gbe+buffer=1MiB+rto=5.00ms"]
    assert "buffer" not in network.text([base, plain.network(base)])
    lines = network.text([small.network(base), slow.network(base)]).splitlines()
    assert [line for line in lines if line.startswith(("buffer", "timeout"))] == [
        "buffer between 65536",
        "timeout between 200000000",
        "buffer between 1048576",
        "timeout between 5000000",
    ]
    assert network.unbuffered(small.network(base)) == base


def test_a_latency_of_which_only_a_span_is_known_is_drawn_at_both_ends():
    (asked,) = scenario.parse("latency=x0.5", find, no_run)
    link = calibrate.link(way())
    base = network.Network(link, None)
    drawn = {asked.network(base, Sample(1, number)).between.latency_ns for number in range(40)}
    least = (link.latency_ns + link.latency_span_ns) / 2 - link.latency_span_ns
    assert link.latency_span_ns > 0
    assert sorted(drawn) == pytest.approx([least, link.latency_ns / 2])
    assert asked.network(base).between.latency_ns == link.latency_ns / 2


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0, 6.0])
def test_the_smaller_of_two_noisy_figures_is_hardly_too_small(apart):
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((4000, 2)) / np.sqrt(2)
    ones, others = 100.0 + noise[:, 0], 100.0 + apart + noise[:, 1]
    found = [calibrate.smaller(one, other, 1.0) for one, other in zip(ones, others, strict=True)]
    # The bare minimum is too small by 0.4 where both are the same.
    assert np.mean(found) == pytest.approx(100.0, abs=0.2)
    assert all(min(pair) <= value <= np.mean(pair) for *pair, value in zip(ones, others, found, strict=True))
    assert calibrate.smaller(3.0, 5.0, 0.0) == 3.0 == calibrate.smaller(float("inf"), 3.0, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rto=5ms", "no timeout without a buffer"),
        ("buffer=large", "is not a size"),
        ("buffer=64KiB+rto=x2", "is not a duration"),
        ("10gb", "no network '10gb'; did you mean '10gbe'"),
        ("latency=100us..5us", "the smaller latency comes first"),
        ("bandwidth=2", "write bandwidth=x2"),
        ("bandwith=x2", "no 'bandwith' to change"),
        (" , ", "asks nothing"),
        ("", "asks nothing"),
        ("10gbe,10gbe", "has 10gbe twice"),
        ("latency=fast", "is not a duration"),
        ("latency=5", "has a unit"),
        ("latency=5us..9", "has a unit"),
        ("latency=+5", "has a unit"),
        ("latency=+", "is not a duration"),
        ("latency=+x2", "is not a duration"),
        ("latency=x0", "write latency=x0.5"),
        ("latency=xinf", "write latency=x0.5"),
        ("bandwidth=xinf", "write bandwidth=x2"),
        ("10gbe+1gbe-tuned", "1gbe-tuned is a whole network"),
        ("latency=5us+10gbe", "it comes first"),
    ],
)
def test_a_what_if_that_is_not_understood_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        scenario.parse(text, find, no_run)


def test_bounds_are_a_95_percent_interval_on_either_side():
    bounds = networks.Bounds(value=10, low=5, high=40)
    assert [bounded(bounds, number) for number in (-WIDTH, 0, WIDTH)] == pytest.approx([5, 10, 40])
    from_zero = networks.Bounds(value=1, low=0, high=2)
    assert [bounded(from_zero, number) for number in (-WIDTH, 0, WIDTH)] == pytest.approx([0, 1, 2])


def records(times):
    made = np.zeros(len(times), dtype=RECORD)
    made["kind"] = np.where(np.arange(len(times)) % 2, 8, 11)
    made["compute_ns"] = times
    return made


def test_the_spread_of_compute_times_is_that_of_their_sum():
    rng = np.random.default_rng(1)
    calls = np.where(np.arange(4000) % 2, 10_000, 1_000)
    assert uncertainty.compute_spread([records(calls)]) == pytest.approx(0, abs=1e-12)
    noisy = calls * (1 + 0.2 * rng.standard_normal(4000))
    expected = 0.2 * np.sqrt(np.sum(calls.astype(float) ** 2)) / calls.sum()
    assert uncertainty.compute_spread([records(noisy)]) == pytest.approx(expected, rel=0.4)
    assert uncertainty.compute_spread([records(calls[:10])]) == 0


def test_the_misfit_counts_as_much_as_the_networks_differ():
    changes, numbers = np.array([1.0, 0.5, 0.5]), np.array([2.0, 2.0, 0.0])
    assert uncertainty.misfit(1.2, changes, numbers) == pytest.approx([1.0, 1.2**0.5, 1.0])


@pytest.mark.parametrize(
    ("calls", "wire", "common"), [(0.1, 0.0, 1.1 / 10.1), (0.0, 0.1, 1.0), (0.1, 0.1, None)]
)
def test_a_misfit_is_one_of_as_much_time_or_as_large_a_part(calls, wire, common):
    """Calls of 100 ms and a second of bytes, which another network takes ten seconds for."""
    rng = np.random.default_rng(3)
    of_calls = 0.1 * np.exp(3 * calls * rng.standard_normal(200))
    of_wire = 1.0 * np.exp(wire * rng.standard_normal(200))
    found = uncertainty.in_common(10.1 / 1.1, of_calls + of_wire, of_calls + 10 * of_wire)
    if common is None:
        assert 1.1 / 10.1 < found < 1
    else:
        assert found == pytest.approx(common, rel=0.2)


def test_nothing_is_known_of_a_misfit_without_samples_that_differ():
    times = np.arange(1.0, 10.0)
    assert uncertainty.in_common(2.0, times[:0], times[:0]) == 1
    assert uncertainty.in_common(2.0, np.ones(9), times) == 1
    assert uncertainty.in_common(0.0, times, np.zeros(9)) == 1


@given(fit=floats(0.2, 5), change=floats(0.02, 50), part=floats(0, 1))
def test_a_misfit_lies_between_as_much_time_and_as_large_a_part(fit, change, part):
    ends = sorted((1.0, 1 / change))
    common = ends[0] + part * (ends[1] - ends[0])
    found = float(change * uncertainty.carried_over(np.array([fit]), common)[0])
    as_time, as_part = change + fit - 1, change * fit
    assert found > 0
    assert min(as_time, as_part) * (1 - 1e-9) <= found <= max(as_time, as_part) * (1 + 1e-9)


@pytest.mark.parametrize("change", [10.0, 0.1])
def test_a_program_whose_calls_are_uncertain_is_predicted_as_well_as_its_bytes_are_known(change):
    """Worlds of which the model knows calls to 20 % and bytes to 1 %: what it says of another bandwidth holds."""
    rng = np.random.default_rng(4)

    def drawn(count):
        return np.exp(0.2 * rng.standard_normal(count)), np.exp(0.01 * rng.standard_normal(count))

    inside, off, by_change = [], [], []
    for _ in range(300):
        (calls, wire), (calls_s, wire_s) = (one.ravel() for one in drawn(1)), drawn(200)
        here = np.array([2.0, *(calls_s + wire_s)])
        there = np.array([1 + change, *(calls_s + change * wire_s)])
        of = judge.Figures(
            times=np.column_stack([here, there]),
            paths=[],
            own_s=float(calls[0] + wire[0]),
            numbers=rng.standard_normal(200),
            grid=[],
        )
        truth = float(calls[0] + change * wire[0]) / of.own_s
        found = uncertainty.estimate(of.likely(1), of.changes(1), "ratio", "")
        inside.append(found.low <= truth <= found.high)
        off.append(abs(found.value / truth - 1))
        by_change.append(abs(there[0] / here[0] / truth - 1))
    assert 0.93 <= np.mean(inside) <= 1
    assert np.median(off) < 0.3 * np.median(by_change)


CURVE = [
    CurveLine(latency_s=at, time_s=time, hops=hops)
    for at, time, hops in ((0, 1.0, 0), (1e-3, 1.0, 100), (2e-3, 1.1, 200))
]


@pytest.mark.parametrize(("slower", "latency"), [(0.05, 1.5e-3), (0.2, 2.5e-3)])
def test_tolerance_is_where_the_curve_reaches_it(slower, latency):
    assert replayed.tolerated(CURVE, 0.0, slower) == pytest.approx(latency)
    assert replayed.tolerated(CURVE[:1], 0.0, slower) is None


def ratio(low, value, high):
    return Estimate(value=value, low=low, high=high, confidence=0.95, unit="ratio", n=20, method="test")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((0.8, 0.85, 0.9), "faster"),
        ((1.1, 1.2, 1.3), "slower"),
        ((0.99, 1.0, 1.01), "no difference"),
        ((0.9, 0.97, 1.05), "cannot be told"),
    ],
)
def test_a_verdict_needs_the_whole_interval(change, said):
    assert judge.verdict(ratio(*change)) == said


@pytest.mark.parametrize("count", range(1, 9))
def test_the_median_of_few_is_as_sure_as_order_statistics_have_it(count):
    drawn = np.random.default_rng(count).standard_normal((200_000, count))
    ratio = np.median(drawn, axis=1).std() / drawn.mean(axis=1).std()
    assert of_median(count) == pytest.approx(ratio, rel=0.01)
    assert of_median(count) < of_median(1000)


@pytest.mark.parametrize("launches", [3, 4, 5, 6, 10])
def test_of_a_calibration_an_interval_holds_a_usual_launch_and_one_launch_holds_the_next(launches):
    """Launches of one operation scatter by 8 %: both hold what they say, however few there were."""
    rng, worlds, usual, single = np.random.default_rng(launches), 2000, 0, 0
    for _ in range(worlds):
        times = 1e-5 * np.exp(0.08 * rng.standard_normal(launches))
        found = cell(1, times, "mpi_pingpong")
        off, spread = deviation(found) / found.time.value, Spreads().of_launch(found)
        middle = math.log(found.time.value / 1e-5)
        usual += abs(middle) <= WIDTH * off
        single += abs(0.08 * rng.standard_normal() - middle) <= WIDTH * math.hypot(off, spread)
    # Three standard errors of so many worlds below what is asked for.
    assert usual / worlds > 0.93 - 3 * 0.0055
    assert single / worlds == pytest.approx(0.95, abs=3 * 0.005)
