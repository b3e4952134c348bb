"""What no message carries: making communicators, and the wait for a connection."""

import msgspec
import pytest
from msgspec.structs import replace

from tests.unit import predict_fixture as fixture
from tests.unit.make_cells import curve
from tests.unit.make_records import operation
from wulf.base.trace.layout import Kind
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.node.replay import asking, predicting, replaying
from wulf.stats.prediction import calibrate, operation_times, setup_costs
from wulf.stats.prediction.draws import Likely, Sample
from wulf.stats.prediction.network import at

MADE, SPLIT, FIRST = 900e-6, 1100e-6, 10e-3
#: Three agreements of two messages that meet, as the run of `predict_fixture` has them [s].
AGREED = 3 * fixture.round_trip(8)


def cells(**times):
    found = []
    for name, time in times.items():
        (one,) = curve([0], [time], spread=0.0, op=f"mpi_{name}")
        found.append(replace(one, cell=replace(one.cell, place=fixture.BETWEEN)))
    return found


def way(**times):
    names = [operation(f"mpi_{name}") for name in times]
    return operation_times.between_nodes(
        [*fixture.cells((fixture.BETWEEN,), spread=0.0), *cells(**times)],
        [*fixture.OPERATIONS, *names],
        fixture.parameters((fixture.BETWEEN,)),
        "run",
    )


def test_making_a_communicator_comes_out_as_it_was_measured():
    found = calibrate.network(way(comm_dup=MADE), None)
    assert 1e-9 * found.making_ns + AGREED == pytest.approx(MADE, rel=1e-6)


def test_it_is_between_the_ways_to_make_one():
    measured = way(comm_dup=MADE, comm_split=SPLIT)
    drawn = [calibrate.network(measured, None, Sample(1, number)).making_ns * 1e-9 for number in range(200)]
    # By which one is not known: an interval of samples has to hold either.
    assert MADE - AGREED <= min(drawn) == pytest.approx(MADE - AGREED, rel=0.05)
    assert SPLIT - AGREED >= max(drawn) == pytest.approx(SPLIT - AGREED, rel=0.05)
    likely = calibrate.network(measured, None).making_ns * 1e-9
    assert likely == pytest.approx((MADE + SPLIT) / 2 - AGREED, rel=0.05)


def test_a_library_that_makes_one_without_all_messages_takes_no_time_less_than_none():
    assert calibrate.network(way(comm_dup=AGREED / 2), None).making_ns == 0


@pytest.mark.parametrize("one_launch", [False, True])
def test_a_connection_is_that_of_a_usual_launch_or_of_some(one_launch):
    launches = [0.5e-3] * 3 + [FIRST] * 6
    drawn = [
        setup_costs.connecting_ns(launches, 0.0, Sample(1, number), one_launch=one_launch) * 1e-9
        for number in range(300)
    ]
    assert setup_costs.connecting_ns(launches, 1e-3, Likely(), one_launch=one_launch) == pytest.approx(9e6)
    assert min(drawn) >= 0.5e-3
    assert max(drawn) <= FIRST
    share = sum(time < 5e-3 for time in drawn) / len(drawn)
    assert 0.2 < share < 0.45 if one_launch else share < 0.2


def test_what_was_not_measured_is_no_time():
    found = calibrate.network(way(), None)
    assert found.making_ns == found.connecting_ns == 0


def made_trace(path, count):
    """Two ranks make communicators and do nothing else."""
    streams = []
    for rank in range(2):
        stream = StreamWriter(rank, 2, host=fixture.BETWEEN[rank])
        for _ in range(count):
            stream.add(Kind.MAKE_COMMUNICATOR, bytes=8)
        streams.append(stream.finish(0))
    write_container(path, {"command": "./makes"}, streams)
    return path


@pytest.mark.parametrize("engine", ["static", "events"])
def test_a_program_takes_for_communicators_and_its_connection_what_was_measured(tmp_path, engine):
    run = fixture.calibrated_run(tmp_path / "run", (fixture.BETWEEN,), more=(MADE, FIRST))
    request = asking.PredictRequest(
        source=made_trace(tmp_path / "t.wtrace", 10), run=run, what_if=None, engine=engine
    )
    found = predicting.predict(request, lambda _: None)
    assert found.base.time.value == pytest.approx(10 * MADE, rel=0.02)
    # Where one sends to another that has not sent, its message waits for the connection.
    (once,) = predicting.predict_all(
        [msgspec.structs.replace(request, source=fixture.ping_pong(tmp_path / "p.wtrace", 1, count=1))],
        lambda _: None,
    )
    assert once.base.time.value == pytest.approx(FIRST, rel=0.02)
    assert not any("does not tell" in note for note in found.notes)


def test_what_an_older_calibration_lacks_is_said_where_the_program_needs_it(tmp_path):
    run = fixture.calibrated_run(tmp_path / "run", (fixture.BETWEEN,))

    def notes(trace):
        request = asking.PredictRequest(source=trace, run=run, what_if=None)
        return "\n".join(predicting.predict(request, lambda _: None).notes)

    assert "making a communicator" in notes(made_trace(tmp_path / "made.wtrace", 10))
    assert "acknowledgement" in notes(synchronous(tmp_path / "synchronous.wtrace", 10))
    other = notes(fixture.ping_pong(tmp_path / "other.wtrace", 8))
    assert "making a communicator" not in other
    assert "acknowledgement" not in other
    assert "connection" in other


@pytest.mark.parametrize(("size", "is_said"), [(fixture.SIZES[-1], False), (2 * fixture.SIZES[-1], True)])
def test_messages_larger_than_any_that_was_measured_are_told(tmp_path, size, is_said):
    run = fixture.calibrated_run(tmp_path / "run", (fixture.BETWEEN,))
    trace = fixture.ping_pong(tmp_path / "large.wtrace", size)
    found = predicting.predict(asking.PredictRequest(source=trace, run=run, what_if=None), lambda _: None)
    said = "100 % of the bytes of its sends are in messages larger than 1 MiB"
    assert any(note.startswith(said) for note in found.notes) is is_said


@pytest.mark.parametrize(
    ("asked", "longer"),
    [
        ("latency=+60us,bandwidth=x0.5", "latency=+60.0µs:"),
        ("latency=x2,latency=x0.5", "latency=x2:"),
        ("latency=x0.5,bandwidth=x0.1+latency=x0.9", ""),
        ("1gbe+latency=+1ms", ""),
    ],
)
def test_what_a_longer_way_is_taken_for_is_said(tmp_path, asked, longer):
    run = fixture.calibrated_run(tmp_path / "run", (fixture.BETWEEN,))
    trace = fixture.ping_pong(tmp_path / "p.wtrace", 8)
    found = predicting.predict(asking.PredictRequest(source=trace, run=run, what_if=asked), lambda _: None)
    said = [note for note in found.notes if "only the way is longer" in note]
    assert len(said) == bool(longer) and all(note.startswith(longer) for note in said)


def test_large_messages_of_persistent_requests_are_told_too(tmp_path):
    run = fixture.calibrated_run(tmp_path / "run", (fixture.BETWEEN,))
    streams = [StreamWriter(rank, 2, host=fixture.BETWEEN[rank]) for rank in (0, 1)]
    for rank, kind in enumerate((Kind.SEND_INIT, Kind.RECV_INIT)):
        streams[rank].add(kind, peer=1 - rank, bytes=2 * fixture.SIZES[-1], request=1)
        for _ in range(3):
            streams[rank].add(Kind.START, request=1)
            streams[rank].add(Kind.WAIT, request=1, peer=0 if rank else -1)
    write_container(tmp_path / "again.wtrace", {}, [one.finish(0) for one in streams])
    request = asking.PredictRequest(source=tmp_path / "again.wtrace", run=run, what_if=None)
    assert any("larger than 1 MiB" in note for note in predicting.predict(request, lambda _: None).notes)


def synchronous(path, count):
    """Rank 0 sends synchronously, and is sent to."""
    streams = []
    for rank in range(2):
        stream = StreamWriter(rank, 2, host=fixture.BETWEEN[rank])
        for _ in range(count):
            for kind in (Kind.SSEND, Kind.RECV)[:: 1 if rank == 0 else -1]:
                stream.add(kind, peer=1 - rank, bytes=1)
        streams.append(stream.finish(0))
    write_container(path, {"command": "./synchronous"}, streams)
    return path


def measured_synchronous(pingpong, call):
    found = []
    for name, time in (("mpi_ssend_pingpong", pingpong), ("mpi_ssend_overhead", call)):
        (one,) = curve([1], [time], spread=0.0, op=name)
        found.append(replace(one, cell=replace(one.cell, place=fixture.BETWEEN)))
    names = [operation(name) for name in ("mpi_ssend_pingpong", "mpi_ssend_overhead")]
    return operation_times.between_nodes(
        [*fixture.cells((fixture.BETWEEN,), spread=0.0), *found],
        [*fixture.OPERATIONS, *names],
        fixture.parameters((fixture.BETWEEN,)),
        "run",
    )


def test_a_round_trip_of_answered_messages_comes_out_as_it_was_measured(tmp_path):
    pingpong, call = fixture.round_trip(1) + 9e-6, 1.7 * fixture.round_trip(1)
    network = calibrate.network(measured_synchronous(pingpong, call), None)
    trace = synchronous(tmp_path / "s.wtrace", 100)
    found = replaying.replay(trace, [network], nodes=[0, 1], options=["--eager", "65536"])
    assert found.results[0].time_ns == pytest.approx(200e9 * pingpong, rel=0.01)
    alone = write_one(tmp_path / "one.wtrace")
    ends = replaying.replay(alone, [network], nodes=[0, 1], options=["--eager", "65536"])
    assert ends.results[0].time_ns == pytest.approx(1e9 * call, rel=0.01)


def write_one(path):
    """One synchronous message, whose sender ends last."""
    streams = []
    for rank, kind in enumerate((Kind.SSEND, Kind.RECV)):
        stream = StreamWriter(rank, 2, host=fixture.BETWEEN[rank])
        stream.add(kind, peer=1 - rank, bytes=1)
        streams.append(stream.finish(0))
    write_container(path, {"command": "./one"}, streams)
    return path


def test_without_a_measurement_an_answer_is_a_message_of_its_own():
    link = calibrate.link(way())
    assert link.answers == (at(link.send, 0), at(link.send, 0) + at(link.receive, 0))
