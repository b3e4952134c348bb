"""GOAL and SMPI text of traces: the messages of the trace, and what no other format has turned into messages."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.predict_fixture import ping_pong, ring
from wulf.base.errors import TraceError
from wulf.base.trace.export import goal, smpi
from wulf.base.trace.export.operations import exported
from wulf.base.trace.layout import ANY, Flag, Kind, Unsound
from wulf.base.trace.reader import read
from wulf.base.trace.writer import StreamWriter, write_container


def trace_of(path, ranks, fill):
    streams = []
    for rank in range(ranks):
        stream = StreamWriter(rank, ranks)
        fill(rank, stream)
        streams.append(stream.finish(1000))
    write_container(path, {}, streams)
    return read(path)


def messages(ranks):
    """Who sends to whom how many bytes; every send has its receive, and every wait what was begun."""
    sent, received = Counter(), Counter()
    for rank, done in enumerate(ranks):
        begun = set()
        for one in done:
            if one.verb in ("send", "begin_send"):
                sent[rank, one.peer, one.bytes] += 1
            if one.verb in ("receive", "begin_receive"):
                received[one.peer, rank, one.bytes] += 1
            if one.verb.startswith("begin"):
                begun.add(one.number)
            if one.verb == "wait":
                begun.remove(one.number)
        assert not begun
    assert sent == received
    return sent


def test_a_ping_pong_as_goal(tmp_path):
    trace = read(ping_pong(tmp_path / "p.wtrace", 1024, count=1, compute_ns=500))
    assert list(goal.text(exported(trace))) == [
        "num_ranks 2",
        "rank 0 {",
        "l1: calc 500",
        "l2: send 1024b to 1 tag 0",
        "l2 requires l1",
        "l3: recv 1024b from 1 tag 0",
        "l3 requires l2",
        "}",
        "rank 1 {",
        "l1: calc 500",
        "l2: recv 1024b from 0 tag 0",
        "l2 requires l1",
        "l3: send 1024b to 0 tag 0",
        "l3 requires l2",
        "}",
    ]


def test_what_is_begun_holds_up_only_its_wait(tmp_path):
    trace = read(ring(tmp_path / "r.wtrace", ranks=2, steps=1))
    lines = list(goal.text(exported(trace)))
    first = lines[lines.index("rank 0 {") : lines.index("rank 1 {")]
    assert first[2].startswith("l2: recv 8192b") and first[4].startswith("l3: send 8192b")
    assert "l3 requires l1" in first and "l4 requires l2" in first and "l4 requires l3" in first


@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("kind", [kind for kind in Kind if Kind.BARRIER <= kind <= Kind.EXSCAN])
def test_collectives_become_messages_that_all_arrive(tmp_path, kind, ranks):
    of_each = (Kind.SCATTERV, Kind.ALLGATHERV, Kind.ALLTOALLV, Kind.ALLTOALLW, Kind.REDUCE_SCATTER)
    payload = b"".join((100 + one).to_bytes(8, "little") for one in range(ranks)) if kind in of_each else b""

    def fill(rank, stream):
        stream.add(kind, peer=1 if kind in (Kind.BCAST, Kind.REDUCE, Kind.GATHER, Kind.SCATTER) else -1, bytes=64,
                   payload=payload)  # fmt: skip

    sent = messages(exported(trace_of(tmp_path / "c.wtrace", ranks, fill)))
    least = {Kind.BARRIER: ranks, Kind.ALLTOALL: ranks * (ranks - 1), Kind.ALLGATHER: ranks * (ranks - 1)}
    assert sum(sent.values()) >= least.get(kind, ranks - 1)
    if kind == Kind.BCAST:
        assert sum(sent.values()) == ranks - 1
    if kind == Kind.ALLTOALLV:
        assert all(size == 100 + to for _, to, size in sent)


def test_a_collective_of_some_ranks_is_theirs_alone(tmp_path):
    def fill(rank, stream):
        if rank in (1, 3):
            stream.communicator(2, [1, 3], rank=rank // 2)
            stream.add(Kind.ALLREDUCE, comm=2, bytes=8)

    trace = trace_of(tmp_path / "s.wtrace", 4, fill)
    assert messages(exported(trace)) == {(3, 1, 8): 1, (1, 3, 8): 1}
    whole = exported(trace, whole=smpi.REPLAYED)
    assert not any("allreduce" in line for rank in range(4) for line in smpi.rank_lines(rank, whole[rank]))


def test_receives_from_anybody_are_from_whom_they_were(tmp_path):
    """Of any source and tag, and of a buffer larger than the message."""

    def fill(rank, stream):
        if rank == 0:
            for request in (1, 2):
                stream.add(Kind.IRECV, peer=ANY, tag=ANY, bytes=4096, request=request, flags=Flag.WILD)
            stream.add(Kind.WAIT_SOME, peer=2, tag=7, request=1)
            stream.add(Kind.WAIT_SOME, peer=1, tag=8, request=2)
        else:
            stream.add(Kind.SEND, peer=0, tag=9 - rank, bytes=10 * rank)

    trace = trace_of(tmp_path / "w.wtrace", 3, fill)
    assert messages(exported(trace)) == {(2, 0, 20): 1, (1, 0, 10): 1}


def test_neighbours_persistent_requests_and_both_ways_at_once(tmp_path):
    def fill(rank, stream):
        stream.communicator(2, [0, 1], rank=rank, sources=[1 - rank], targets=[1 - rank])
        stream.add(Kind.NEIGHBOR_ALLTOALL, comm=2, bytes=5)
        stream.add(Kind.SEND_INIT, peer=1 - rank, bytes=6, request=1)
        stream.add(Kind.RECV_INIT, peer=1 - rank, bytes=6, request=2)
        for _ in range(2):
            for request in (1, 2):
                stream.add(Kind.START, request=request)
            for request in (1, 2):
                stream.add(Kind.WAIT, peer=1 - rank, request=request)
        stream.add(Kind.SENDRECV, peer=1 - rank, bytes=7)
        stream.add(Kind.RECV_PART, peer=1 - rank, bytes=7)

    sent = messages(exported(trace_of(tmp_path / "n.wtrace", 2, fill)))
    assert sent == {(one, 1 - one, size): count for one in (0, 1) for size, count in ((5, 1), (6, 2), (7, 1))}


def test_smpi_text_and_platform(tmp_path):
    trace = read(ring(tmp_path / "r.wtrace", ranks=2, steps=1, compute_ns=100))
    done = exported(trace, whole=smpi.REPLAYED)
    assert list(smpi.rank_lines(0, done[0])) == [
        "0 init",
        "0 compute 100",
        "0 irecv 1 0 8192 6",
        "0 send 1 0 8192 6",
        "0 wait 1 0 0",
        "0 allreduce 8 0 6",
        "0 finalize",
    ]
    text = smpi.platform(
        2,
        latency_s=3e-5,
        bandwidth=1.25e8,
        eager_bytes=65536,
        send=[(0, 4e-6, 0)],
        receive=[(0, 5e-6, 1e-10)],
    )
    for said in ('radical="0-1"', 'lat="1.5e-05s"', 'id="smpi/or" value="0:5e-06:1e-10"', 'value="65537"'):
        assert said in text


def test_what_others_cannot_follow_is_refused_by_name(tmp_path):
    with pytest.raises(TraceError, match="one sided"):
        exported(trace_of(tmp_path / "u.wtrace", 2, lambda _, stream: stream.mark(Unsound.ONE_SIDED)))
    with pytest.raises(TraceError, match="rank 0 receives a message that rank 1 does not send"):
        exported(
            trace_of(
                tmp_path / "r.wtrace",
                2,
                lambda rank, stream: stream.add(Kind.RECV, peer=1) if rank == 0 else None,
            )
        )
