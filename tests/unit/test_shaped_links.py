"""Links that let bursts through faster than they carry more: what trains tell of them, and a program behind one."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.make_cells import analysis, curve
from tests.unit.make_records import manifest, operation
from tests.unit.predict_fixture import BETWEEN, OPERATIONS, SIZES, parameters
from wulf.base import store
from wulf.base.errors import UsageError
from wulf.base.trace.layout import Kind
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.node.replay import asking, predicting
from wulf.stats.prediction import calibrate, network, operation_times, scenario
from wulf.stats.prediction.draws import Sample
from wulf.stats.prediction.sustained import sustained

#: A token bucket of 128 KiB at 1 Gbit/s: so long a byte takes in the long run, and while there are tokens [s].
LONG_RUN, BURST, DEPTH = 8.36e-9, 0.4e-9, 128 << 10
O_S, O_R, L = 7e-6, 3.5e-6, 1e-6
ONE = [1, 1024, 4096, 16384, 65536, 262144, 1 << 20]
EIGHT = [16384, 65536, 131072, 262144]


class Bucket:
    """What passes at which time, byte counts at a time: tokens come back while nothing is sent."""

    def __init__(self, long_run=LONG_RUN, burst=BURST, depth=DEPTH):
        self.long_run, self.burst, self.depth = long_run, burst, depth
        self.tokens, self.at = float(depth), 0.0

    def sent(self, begin, size):
        """Return when a message that is ready at a time has left."""
        begin = max(begin, self.at)
        self.tokens = min(self.depth, self.tokens + (begin - self.at) / self.long_run)
        lacking = max(size - self.tokens, 0.0)
        took = max(size * self.burst, lacking * self.long_run)
        self.tokens = max(self.tokens + took / self.long_run - size, 0.0)
        self.at = begin + took
        return self.at


def half_round_trip(size, rounds=40, **of):
    """Both directions have a bucket, which rests while the other one is at work: the mean of a visit [s]."""
    ways, now = (Bucket(**of), Bucket(**of)), 0.0
    for turn in range(2 * rounds):
        now = ways[turn % 2].sent(now + O_S, size) + (L if size <= 65536 else 3 * L) + O_R
    return now / (2 * rounds)


def train(count, size, **of):
    """Time of a train behind a rest, with an answer of one byte [s]."""
    bucket = Bucket(**of)
    ready = [O_S * (1 + number) for number in range(count)]
    return max(bucket.sent(one, size) for one in ready) + L + O_R + half_round_trip(1)


def both_ways(size, rounds=40, **of):
    bucket, now = Bucket(**of), 0.0
    for _ in range(rounds):
        now = bucket.sent(now + O_S, size) + L + O_R
    return now / rounds


NAMES = [
    *OPERATIONS,
    operation("mpi_exchange"),
    *(replace(operation(f"burst_{n}"), asked=f"mpi_burst:{n}") for n in (1, 8)),
]


def shaped_cells(*, has_trains=True, spread=0.002, cold=0.0, **of):
    measured = {
        "mpi_pingpong": (SIZES, [half_round_trip(size, **of) for size in SIZES]),
        "mpi_exchange": (SIZES, [both_ways(size, **of) for size in SIZES]),
        "mpi_send_overhead": (SIZES, [O_S for _ in SIZES]),
        "mpi_isend_overhead": (SIZES, [O_S for _ in SIZES]),
        "mpi_recv_overhead": (SIZES, [O_R for _ in SIZES]),
        "train_1": (SIZES[:6], [train(1, size, **of) for size in SIZES[:6]]),
        "train_16": (SIZES[:6], [train(16, size, **of) / 16 for size in SIZES[:6]]),
    }
    if has_trains:
        measured["burst_1"] = (ONE, [train(1, size, **of) + cold for size in ONE])
        measured["burst_8"] = (EIGHT, [train(8, size, **of) + cold for size in EIGHT])
    return [
        replace(cell, cell=replace(cell.cell, place=BETWEEN))
        for seed, (op, (sizes, times)) in enumerate(measured.items())
        for cell in curve(sizes, times, spread=spread, seed=seed, op=op)
    ]


def shaped_way(**how):
    return operation_times.between_nodes(shaped_cells(**how), NAMES, parameters((BETWEEN,)), "RUN")


@pytest.mark.parametrize("has_trains", [True, False])
def test_rate_and_depth_of_a_bucket_are_found_and_no_message_is_faster_than_its_size_in_the_long_run(
    has_trains,
):
    way = shaped_way(has_trains=has_trains)
    assert way.is_shaped
    for draw in (None, Sample(1, 3)):
        link = calibrate.link(way, draw)
        assert network.bandwidth(link) == pytest.approx(1 / LONG_RUN, rel=0.03)
        assert link.depth_ns / link.wire[-1].per_byte_ns == pytest.approx(DEPTH, rel=0.15)
        for size in (4096, 16384, 65536, 262144, 1 << 20):
            assert network.at(link.wire, size) >= 0.97 * LONG_RUN * 1e9 * size
            assert network.at(link.burst, size) <= network.at(link.wire, size)


@pytest.mark.parametrize("cold", [0.0, 10e-6, 40e-6])
def test_what_comes_cold_behind_a_rest_is_not_taken_for_the_way_of_a_burst(cold):
    """A ping-pong of 1 KiB exhausts a bucket of 5 KiB at 100 Mbit/s: only one behind a rest tells its time."""
    bucket = {"long_run": 80e-9, "depth": 5 << 10}
    link = calibrate.link(shaped_way(cold=cold, **bucket))
    assert half_round_trip(1024, **bucket) > 35e-6
    passes = Bucket(**bucket).sent(0.0, 1024) * 1e9
    assert network.at(link.burst, 1024) == pytest.approx(passes, abs=1e3)
    assert network.bandwidth(link) == pytest.approx(1 / bucket["long_run"], rel=0.03)


def test_no_bound_by_bandwidth_has_frames_that_small_messages_may_share():
    """A stream of 512 B was faster than its frames at the rate: TCP puts those together that wait for the bucket."""
    link = calibrate.link(shaped_way())
    alone = network.only_wire(link)
    for size in (1, 64, 512, 65536):
        assert network.at(alone.wire, size) == pytest.approx(size * LONG_RUN * 1e9, rel=0.03)
        assert network.at(alone.wire, size) < network.at(link.wire, size)
    plain = calibrate.link(shaped_way(burst=LONG_RUN, depth=1))
    assert network.only_wire(plain).wire == plain.wire


def test_a_link_of_one_rate_has_no_bursts():
    plain = shaped_way(burst=LONG_RUN, depth=1)
    assert not plain.is_shaped
    link = calibrate.link(plain)
    assert link.burst == () and link.depth_ns == 0
    assert network.bandwidth(link) == pytest.approx(1 / LONG_RUN, rel=0.03)


@settings(max_examples=60, deadline=None)
@given(
    long_run=st.floats(0.2e-9, 100e-9),
    depth=st.integers(8 << 10, 400 << 10),
    faster=st.floats(3, 40),
)
def test_trains_tell_the_rate_of_any_bucket_that_they_empty(long_run, depth, faster):
    totals = [1 << 20, 2 << 20, 4 << 20]

    def time(size):
        held = max(size - depth, 0)
        return max(size * long_run / faster, held * long_run)

    singles = {size: time(size) for size in (4096, 65536)}
    found = sustained({total: time(total) for total in totals}, singles, {}, shaped=None)
    assert found.is_steady
    if depth > 65536 * (1 + 1 / faster):
        assert found.per_byte_ns == pytest.approx(long_run * 1e9, rel=0.02)
        assert found.depth_bytes == pytest.approx(depth, rel=0.05)


@settings(max_examples=60, deadline=None)
@given(
    depth=st.integers(5 << 10, 24 << 10),
    trains_off=st.floats(0.95, 1.05),
    cpu=st.floats(0.1e-9, 4e-9),
)
def test_the_depth_of_a_small_bucket_is_not_that_of_what_trains_are_off_by(depth, trains_off, cpu):
    """Of a megabyte an error of 5 % is 50 KB, ten times such a bucket."""

    def time(size):
        return max(size * cpu, max(size - depth, 0) * LONG_RUN)

    singles = {size: time(size) for size in ONE[2:]}
    trains = {8 * size: trains_off * time(8 * size) for size in EIGHT}
    found = sustained(trains, singles, {}, shaped=None)
    assert 0.4 * depth < found.depth_bytes < 2.5 * depth


def test_a_burst_that_its_calls_explain_may_have_been_held_wholly():
    """4 KiB take 13 us, all of it the CPU's: it is ahead by 2.5 KiB, and the bucket may hold all of it."""
    singles = {4096: 13e-6, 16384: 130e-6, 65536: 540e-6}
    trains = {8 * size: 8 * size * LONG_RUN for size in EIGHT}
    calls = {4096: 24e-6, 16384: 128e-6, 65536: 500e-6}
    likely, most = (sustained(trains, singles, calls, shaped=None, held=held).depth_bytes for held in (0, 1))
    assert likely == pytest.approx(4096 - 13e-6 / LONG_RUN) and most == 4096
    assert sustained(trains, singles, {}, shaped=None, held=1).depth_bytes == likely


def test_trains_that_do_not_empty_the_bucket_tell_no_rate_and_the_question_is_refused():
    """A bucket of 1.5 MiB: the last train alone is beyond it."""
    way = shaped_way(depth=1536 << 10)
    link = calibrate.link(way)
    assert "does not tell the bandwidth of the long run" in link.not_told["bandwidth"]
    (wider,) = scenario.parse("bandwidth=x2", lambda name: None, lambda name: None)
    with pytest.raises(scenario.NotToldError, match=r"bandwidth=x2 is not answered: RUN does not tell"):
        wider.network(network.Network(link, None))


def test_a_latency_that_the_calls_hide_is_no_basis_for_a_multiple_of_it():
    link = calibrate.link(shaped_way())
    base = network.Network(link, None)
    times, absolute = scenario.parse("latency=x4,latency=100us", lambda name: None, lambda name: None)
    with pytest.raises(scenario.NotToldError, match=r"latency=x4 is not answered: .*anywhere from 0.* µs"):
        times.network(base)
    # What it is may differ by all of the sender's CPU time.
    asked = [absolute.network(base, Sample(1, number)).between.latency_ns for number in range(50)]
    assert link.latency_span_ns == pytest.approx(1e9 * O_S, rel=0.01)
    assert sorted({round(one) for one in asked}) == [round(100_000 - link.latency_span_ns), 100_000]
    (added,) = scenario.parse("latency=+100us", lambda name: None, lambda name: None)
    assert added.network(base).between.latency_ns == pytest.approx(link.latency_ns + 100_000)
    told, refused = asking.answerable([times, absolute], base)
    assert told == [absolute] and list(refused) == ["latency=x4"]
    with pytest.raises(UsageError, match="does not tell the latency"):
        asking.answerable([times], base)


STEPS, BIG, SMALL = 300, 64 << 10, 16 << 10


def exchanges(path, run_ns=0):
    """Two ranks: each step 2 × 64 KiB each way by isend and irecv, a sum of 8 B; every tenth an alltoall of 16 KiB."""
    streams = []
    for rank in (0, 1):
        stream, peer = StreamWriter(rank, 2, host=f"node{rank + 1:02d}"), 1 - rank
        for step in range(STEPS):
            for tag in (1, 2):
                stream.add(Kind.IRECV, peer=peer, bytes=BIG, tag=tag, request=tag)
            for tag in (1, 2):
                stream.add(Kind.ISEND, peer=peer, bytes=BIG, tag=tag, request=2 + tag)
            for request in (1, 2, 3, 4):
                stream.add(Kind.WAIT, request=request)
            stream.add(Kind.ALLREDUCE, bytes=8)
            if step % 10 == 0:
                stream.add(Kind.ALLTOALL, bytes=SMALL)
        streams.append(stream.finish(run_ns))
    write_container(path, {"command": "./exchanges"}, streams)
    return path


def shaped_run(path, kinds=None):
    """A calibrated run; with `kinds` it was ended when it had only these operations, and no eager limit."""
    with store.create(path, manifest(id=path.name, status="complete", operations=NAMES)):
        pass
    known = [one for one in shaped_cells() if kinds is None or one.cell.op in kinds]
    told = parameters((BETWEEN,)) if kinds is None else []
    found = replace(analysis(known, path.name), parameters=told, launches_seen=0)
    store.save_analysis(path, found)
    return store.load(path)


def carried_s(rate=1.0):
    """By arithmetic: all bytes of a rank but those that the bucket had at the beginning [s]."""
    return ((2 * BIG + 8) * STEPS + SMALL * STEPS // 10 - DEPTH) * LONG_RUN / rate


def test_a_program_that_fills_the_link_takes_its_bytes_at_the_rate_of_the_long_run(tmp_path):
    """That of which half the time was predicted once, and of slower links half of what they took."""
    trace = exchanges(tmp_path / "e.wtrace", run_ns=round(1.01e9 * carried_s()))
    request = asking.PredictRequest(
        source=trace,
        run=shaped_run(tmp_path / "cal"),
        what_if="bandwidth=x0.3,bandwidth=x0.1,latency=x4",
        samples=40,
    )
    found = predicting.predict(request, lambda _: None)
    assert found.base.model_s == pytest.approx(carried_s(), rel=0.02)
    for one, rate in zip(found.scenarios, (0.3, 0.1), strict=True):
        true = 1.01 * carried_s() / rate
        assert one.time.low <= true * 1.02 and true * 0.98 <= one.time.high
        assert one.time.value == pytest.approx(true, rel=0.02)
        assert one.time.high - one.time.low < 0.1 * true
    assert list(found.refused) == ["latency=x4"]
    # Two lines that nothing undercuts.
    floors = {one.network: one for one in found.floors}
    assert floors["as it is"].bandwidth_s == pytest.approx(carried_s(), rel=0.02)
    for one in (found.base, *found.scenarios):
        assert one.model_s >= max(floors[one.name].bandwidth_s, floors[one.name].computing_s) * (1 - 1e-9)
        least = floors[one.name].least
        assert least.low <= least.value <= least.high and one.time.value >= least.value * (1 - 1e-9)
        assert one.time.low >= least.low * (1 - 1e-9)


def test_what_fits_into_the_bucket_is_fast(tmp_path):
    """Two messages of 4 KiB and then 5 ms of computing: the long run's rate has nothing to do with it."""
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2, host=f"node{rank + 1:02d}")
        for _ in range(50):
            kinds = (Kind.SEND, Kind.RECV) if rank == 0 else (Kind.RECV, Kind.SEND)
            stream.add(kinds[0], peer=1 - rank, bytes=BIG, compute_ns=5_000_000)
            stream.add(kinds[1], peer=1 - rank, bytes=BIG)
        streams.append(stream.finish(0))
    write_container(tmp_path / "p.wtrace", {"command": "./rests"}, streams)
    request = asking.PredictRequest(
        source=tmp_path / "p.wtrace", run=shaped_run(tmp_path / "cal"), what_if=None, samples=20
    )
    each = predicting.predict(request, lambda _: None).base.model_s / 50 - 5e-3
    fast = 2 * (O_S + BURST * BIG + L + O_R)
    assert each == pytest.approx(fast, rel=0.1) and each < 0.3 * 2 * LONG_RUN * BIG


def test_small_messages_take_a_slow_link_for_their_frames_too(tmp_path):
    """4,000 of 256 B on a tenth of the rate: with 66 B of Ethernet, IP and TCP each, a quarter more."""
    size, count, frame = 256, 4000, 66
    streams = []
    for rank, kind in enumerate((Kind.SEND, Kind.RECV)):
        stream = StreamWriter(rank, 2, host=f"node{rank + 1:02d}")
        for _ in range(count):
            stream.add(kind, peer=1 - rank, bytes=size)
        streams.append(stream.finish(0))
    write_container(tmp_path / "s.wtrace", {"command": "./stream"}, streams)
    request = asking.PredictRequest(
        source=tmp_path / "s.wtrace", run=shaped_run(tmp_path / "cal"), what_if="bandwidth=x0.1", samples=20
    )
    found = predicting.predict(request, lambda _: None)
    (slower,) = found.scenarios
    bytes_s = (count * (size + frame) - DEPTH) * LONG_RUN / 0.1
    assert slower.model_s == pytest.approx(bytes_s, rel=0.03)


HOLDS = 7e-9


def held_run(path):
    """A network whose MPI_Send of 16 KiB and more goes on while its message leaves: 7 ns a byte."""
    found = [
        replace(one, time=replace(one.time, value=O_S + HOLDS * one.cell.size_bytes, low=None, high=None))
        if one.cell.op == "mpi_send_overhead" and one.cell.size_bytes >= 16384
        else one
        for one in shaped_cells(burst=LONG_RUN, depth=1)
    ]
    with store.create(path, manifest(id=path.name, status="complete", operations=NAMES)):
        pass
    analysed = replace(analysis(found, path.name), parameters=parameters((BETWEEN,)), launches_seen=0)
    store.save_analysis(path, analysed)
    return store.load(path)


def test_who_computes_behind_a_call_that_goes_on_while_its_message_leaves_begins_later(tmp_path):
    """Rank 0 sends 32 KiB, then computes a millisecond; rank 1 receives. The call is the CPU's work, or waits."""
    size, compute_s, steps = 32768, 1e-3, 50
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2, host=f"node{rank + 1:02d}")
        for step in range(steps):
            if rank == 0:
                stream.add(Kind.SEND, peer=1, bytes=size, compute_ns=round(1e9 * compute_s) if step else 0)
            else:
                stream.add(Kind.RECV, peer=0, bytes=size)
        streams.append(stream.finish(0))
    write_container(tmp_path / "h.wtrace", {"command": "./sends"}, streams)
    request = asking.PredictRequest(
        source=tmp_path / "h.wtrace", run=held_run(tmp_path / "cal"), what_if="bandwidth=x4", samples=80
    )
    found = predicting.predict(request, lambda _: None)

    def taken(factor):
        return (steps - 1) * (compute_s + O_S + factor * HOLDS * size)

    assert found.base.model_s == pytest.approx(taken(1), rel=0.02)
    (faster,) = found.scenarios
    own = found.base.model_s
    # Whether it waits for the wire or works nobody has measured: the interval has both.
    for factor in (1, 1 / 4):
        assert (
            faster.change.low <= taken(factor) / own * 1.01
            and taken(factor) / own * 0.99 <= faster.change.high
        )


@pytest.mark.parametrize(("waits", "slower_by"), [(1.0, 4.0), (0.0, 1.0), (0.5, 2.5)])
def test_messages_that_meet_take_the_wires_time_of_each_other_or_that_of_cpus(waits, slower_by):
    """Of those that wait for their receivers: at a quarter of the rate it is four times, or as long, or between."""
    link = calibrate.link(shaped_way(burst=LONG_RUN, depth=1))
    meeting = dataclasses.replace(
        link, after=(network.Piece(0, 3e3, 0.0), network.Piece(link.eager_bytes + 1, 0.0, 4.0))
    )
    slower = scenario.with_bandwidth(network.Network(meeting, None), 0.25, waits).between
    # Not the way and the receive of the other message, behind which its sender waits.
    comes = link.latency_ns + network.at(link.receive, 1 << 20)
    assert network.at(slower.after, 1 << 20) == pytest.approx(comes + slower_by * (4.0 * (1 << 20) - comes))
    assert network.at(slower.after, 1) == pytest.approx(3e3)


def test_a_calibration_that_was_ended_before_its_trains_tells_the_rate_and_what_it_lacks(tmp_path):
    """It said half of what such a link takes, and no word of what had not been measured."""
    trace = exchanges(tmp_path / "e.wtrace", run_ns=round(carried_s() * 1e9))
    cut = shaped_run(tmp_path / "cut", kinds=(*operation_times.NEEDED, operation_times.BOTH_WAYS))
    request = asking.PredictRequest(
        source=trace,
        run=shaped_run(tmp_path / "cal"),
        what_if="@cut",
        samples=40,
        find_run=lambda _: cut,
    )
    found = predicting.predict(request, lambda _: None)
    (one,) = found.scenarios
    assert one.time.value == pytest.approx(carried_s(), rel=0.05)
    of_the_other = [note for note in found.notes if note.startswith("@cut: between: ")]
    assert any("no message was seen to wait" in note for note in of_the_other)
    assert any("mpi_rate" in note for note in of_the_other)


def test_a_usual_launch_is_not_said_to_be_faster_than_its_bytes(tmp_path):
    """Launches differ by half; what they send takes its time in each of them."""
    own = [1.02, 1.5, 1.04, 1.6, 1.01]
    first, *others = (
        exchanges(tmp_path / f"{place}.wtrace", run_ns=round(1e9 * more * carried_s()))
        for place, more in enumerate(own)
    )
    request = asking.PredictRequest(
        source=first, again=others, run=shaped_run(tmp_path / "cal"), what_if="bandwidth=x0.3", samples=60
    )
    found = predicting.predict(request, lambda _: None)
    (least,) = (one.least for one in found.floors if one.network == found.scenarios[0].name)
    (one,) = found.scenarios
    assert least.low <= one.time.low <= one.time.value <= one.time.high
    assert one.launch.low < one.time.low
