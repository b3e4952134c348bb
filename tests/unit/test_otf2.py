"""OTF2: what its own writer writes comes back as it was, an archive of EZTrace is read, and damage is one message."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.command import wulf
from tests.unit import otf2_archives as archives
from tests.unit.otf2_archives import REAL, as_score_p, call, of_trace, write
from tests.unit.predict_fixture import ring
from wulf.base.errors import TraceError
from wulf.base.trace.imported import otf2
from wulf.base.trace.imported.otf2_sizes import KINDS, ROOTED, SUMMED, Part, own_bytes
from wulf.base.trace.layout import Flag, Kind, Unsound
from wulf.base.trace.reader import communicator, read
from wulf.base.trace.summary import summary
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.page.terminal import page_text
from wulf.tools.trace import page as report
from wulf.tools.trace.importing import import_trace


def imported(anchor, tmp_path):
    return import_trace([anchor], "otf2", tmp_path / "came.wtrace", 1e9)


def told(trace):
    """Return all records, with members for communicators and without the computing at the end."""
    found = []
    for stream in trace.streams:
        members = {0: range(trace.ranks), 1: (stream.rank,)}
        rows = []
        for one in stream.records():
            if one.kind is Kind.COMMUNICATOR:
                members[one.comm] = communicator(one.payload, trace.ranks, "").members
            elif one.kind is not Kind.PHASE:
                flags = one.flags & ~(Flag.WILD | Flag.IN_PLACE)
                wait = one.kind in (Kind.WAIT, Kind.WAIT_SOME, Kind.TEST)
                what = () if wait else (tuple(members[one.comm]), one.peer, one.tag, one.bytes)
                rows.append((one.kind, flags, *what, one.request, one.compute_ns, one.call_ns, one.payload))
        found.append(rows)
    return found


def many_kinds(path):
    """Write a trace of three ranks with a call of each kind."""
    ranks, streams = 3, []
    sizes = b"".join(size.to_bytes(8, "little") for size in (40, 0, 1000))
    equal = b"".join(size.to_bytes(8, "little") for size in (34, 33, 33))
    for rank in range(ranks):
        made = StreamWriter(rank, ranks)
        after, before = (rank + 1) % ranks, (rank - 1) % ranks
        if rank != 1:
            made.communicator(2, [2, 0], rank=[2, 0].index(rank))
        made.communicator(3, [2, 1, 0], rank=2 - rank)
        made.add(Kind.IRECV, peer=before, tag=5, request=1, bytes=70_000, compute_ns=1000 + rank, call_ns=300)
        made.add(Kind.ISEND, peer=after, tag=5, request=2, bytes=70_000, compute_ns=5, call_ns=400)
        made.add(Kind.WAIT, request=1, peer=before, flags=Flag.FIRST, call_ns=9000, compute_ns=77)
        made.add(Kind.WAIT, request=2, peer=after, flags=Flag.NEXT)
        made.add(Kind.SENDRECV, peer=after, tag=9, bytes=10, flags=Flag.FIRST, call_ns=2000)
        made.add(Kind.RECV_PART, peer=before, tag=9, bytes=10, flags=Flag.NEXT)
        if rank == 0:
            made.add(Kind.SSEND, peer=1, tag=1, bytes=3, call_ns=6_000_000_000)
            made.add(Kind.SEND, peer=0, comm=2, tag=1, bytes=3, call_ns=10)
        elif rank == 1:
            made.add(Kind.RECV, peer=0, tag=1, bytes=3, call_ns=20)
        else:
            made.add(Kind.RECV, comm=2, peer=1, tag=1, bytes=3, call_ns=20)
        for kind in KINDS:
            root = 1 if kind in ROOTED else -1
            own = {Kind.BARRIER: 0, Kind.ALLTOALLV: 0, Kind.ALLTOALLW: 0}.get(kind, 8)
            payload = b""
            if kind in (Kind.ALLGATHERV, Kind.REDUCE_SCATTER, Kind.SCATTERV, Kind.GATHERV):
                own = (40, 0, 1000)[rank]
                payload = (
                    sizes if kind is not Kind.GATHERV and (kind is not Kind.SCATTERV or rank == root) else b""
                )
            if kind in SUMMED:
                payload = equal
            made.add(kind, peer=root, bytes=own, payload=payload, compute_ns=50, call_ns=100)
        made.add(Kind.ALLREDUCE, comm=3, bytes=16, call_ns=100)
        made.add(Kind.ALLREDUCE, comm=1, bytes=24, call_ns=100)
        streams.append(made.finish(50_000_000_000))
    write_container(path, {}, streams)
    return read(path)


def test_calls_come_back_with_their_times_sizes_and_communicators(tmp_path):
    trace = many_kinds(tmp_path / "a.wtrace")
    came = imported(of_trace(trace, tmp_path / "archive"), tmp_path)
    assert told(came) == told(trace)
    assert [stream.run_ns for stream in came.streams] == [stream.run_ns for stream in trace.streams]
    assert not came.unsound
    assert [stream.host for stream in came.streams] == ["node00", "node00", "node01"]


def test_a_program_is_summed_up_as_its_own_trace_is(tmp_path):
    trace = read(ring(tmp_path / "ring.wtrace", run_ns=20_000_000))
    first, again = summary(trace), summary(imported(of_trace(trace, tmp_path / "archive"), tmp_path))
    calls = [{one.call: (one.count, one.seconds) for one in told.calls} for told in (first, again)]
    assert calls[1] == {**calls[0], "phase": (4, 0)}
    assert again.pairs == first.pairs
    assert [one.mpi_s for one in again.ranks] == [one.mpi_s for one in first.ranks]


@given(
    kind=st.sampled_from(KINDS),
    ranks=st.integers(1, 40),
    words=st.integers(0, 10**6),
    data=st.data(),
)
def test_sizes_are_told_from_what_score_p_counts(kind, ranks, words, data):
    rank, root = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, ranks - 1))
    own = 4 * words
    if kind is Kind.EXSCAN and ranks == 1:
        return  # nothing is sent
    total = own * ranks if kind in SUMMED else own + data.draw(st.integers(0, 10**6))
    sent, received = as_score_p(kind, rank, ranks, own, total, root)
    expected = 0 if kind is Kind.BARRIER else own
    assert own_bytes(Part(kind, rank, ranks, sent, received), by_arguments=False) == expected


@pytest.mark.parametrize(
    ("kind", "ranks", "sent", "received", "own"),
    [
        (Kind.ALLREDUCE, 4, 24, 24, 8),
        (Kind.GATHER, 4, 0, 300, 100),
        (Kind.BCAST, 4, 400, 100, 100),
        (Kind.SCATTER, 4, 300, 0, 100),
        (Kind.SCAN, 4, 8, 16, 8),
    ],
)
def test_what_is_in_place_is_told_by_the_sizes(kind, ranks, sent, received, own):
    assert own_bytes(Part(kind, 2, ranks, sent, received), by_arguments=False) == own


def test_an_archive_of_eztrace_is_read(tmp_path):
    archives.python()
    trace = imported(REAL, tmp_path)
    found = summary(trace)
    assert (trace.ranks, found.unsound) == (4, [])
    assert {(one.call, one.count, one.bytes) for one in found.calls} == {
        ("MPI_Comm_split", 4, 0),
        ("phase", 4, 0),
        ("send", 4, 240_000),
        ("ssend", 4, 400),
        ("recv", 8, 240_400),
        ("allreduce", 16, 128),
        ("bcast", 8, 8000),
        ("alltoall", 8, 800),
        ("gather", 8, 240),
        ("reduce", 8, 64),
        ("scatterv", 8, 200),
        ("allgatherv", 8, 200),
        ("barrier", 8, 0),
    }
    assert {(one.source, one.destination) for one in found.pairs} == {(0, 1), (1, 0), (2, 3), (3, 2)}
    assert all(rank.compute_s > 0.002 for rank in found.ranks)
    assert trace.note["remarks"] == ["records that say nothing of messages: 4 ThreadBegin, 4 ThreadEnd"]


def unsound(records, tmp_path, **said):
    trace = imported(write(tmp_path / "archive", records, **said), tmp_path)
    return trace, trace.note["remarks"]


def pair(first=100, then=300, thread=0):
    """Return a message from rank 0 to rank 1."""
    return [
        *call(0, "Send", first, first + 50, ["mpi_send", 1, 0, 3, 8], thread=thread),
        *call(1, "Recv", first, then, ["mpi_recv", 0, 0, 3, 8]),
    ]


def test_threads_that_take_turns_are_one_after_the_other(tmp_path):
    records = [*pair(), *pair(1000, 1300, thread=1)]
    trace, _ = unsound(records, tmp_path, threads=2)
    assert not trace.unsound
    assert [(one.kind, one.compute_ns) for one in trace.streams[0].records()][:2] == [
        (Kind.SEND, 0),
        (Kind.SEND, 850),
    ]


def test_threads_at_the_same_time_are_marked(tmp_path):
    trace, _ = unsound(
        [*pair(), *call(0, "Send", 120, 140, ["mpi_send", 1, 0, 3, 8], thread=1)], tmp_path, threads=2
    )
    assert Unsound.THREADS in trace.streams[0].unsound
    shown = page_text(report.build(summary(trace)))
    assert "cannot be replayed: threads call MPI at the same time" in shown
    # Shares of the run time would add up to more than all of it.
    assert "calls of all threads of a rank together take" in shown and "; in MPI " not in shown


@pytest.mark.parametrize(
    ("records", "mark", "remark"),
    [
        (
            call(0, "Send", 600, 700),
            None,
            "1 call of MPI_Send moved nothing: taken as to MPI_PROC_NULL",
        ),
        (call(0, "Scan", 600, 700), Unsound.PASSED, "1 call of MPI_Scan without what was moved"),
        (
            call(0, "Send", 600, 700, ["mpi_send", 1, 0, 3, 8]),
            Unsound.PASSED,
            "rank 0 sends 2 messages to rank 1, which receives 1: calls are missing",
        ),
        ([[0, 0, "measurement_on_off", 600, 2]], Unsound.PASSED, "rank 0: recording was switched off"),
        (call(0, "Win_fence", 600, 700), Unsound.ONE_SIDED, ""),
        (call(0, "File_write_all", 600, 700), Unsound.FILES, ""),
        (call(0, "Comm_spawn", 600, 700), Unsound.PROCESSES, ""),
        (
            [
                *call(0, "Irecv", 600, 700, ["mpi_irecv_request", 7]),
                *call(0, "Wait", 800, 900, ["mpi_request_cancelled", 7]),
            ],
            None,
            "",
        ),
        (
            [
                *call(0, "Isend", 600, 700, ["mpi_isend", 1, 0, 3, 8, 7]),
                *call(0, "Wait", 800, 900, ["mpi_request_cancelled", 7]),
            ],
            Unsound.CANCELLED,
            "",
        ),
        ([[0, 0, "buffer_flush", 600, 650]], None, "records that say nothing of messages: 1 BufferFlush"),
    ],
)
def test_what_cannot_be_followed_is_marked_and_named(tmp_path, records, mark, remark):
    trace, remarks = unsound([*pair(), *records], tmp_path)
    assert trace.streams[0].unsound | trace.streams[1].unsound == ({mark} if mark is not None else set())
    assert any(one.startswith(remark) for one in remarks) if remark else not remarks


def test_looks_in_vain_are_neither_computing_nor_in_a_call(tmp_path):
    records = [
        *call(0, "Isend", 100, 150, ["mpi_isend", 1, 0, 3, 8, 4]),
        *call(0, "Test", 200, 300, ["mpi_request_test", 4]),
        *call(0, "Test", 320, 400, ["mpi_isend_complete", 4]),
        *call(1, "Recv", 100, 300, ["mpi_recv", 0, 0, 3, 8]),
    ]
    trace, _ = unsound(records, tmp_path)
    assert [(one.kind, one.compute_ns, one.call_ns) for one in trace.streams[0].records()][:2] == [
        (Kind.ISEND, 0, 50),
        (Kind.TEST, 70, 80),
    ]


def test_collectives_that_are_only_begun_are_known_when_they_end(tmp_path):
    def begun(rank):
        return [
            *call(rank, "Iallgatherv", 100, 150, ["non_blocking_collective_request", 4]),
            *call(
                rank, "Wait", 200, 300, ["non_blocking_collective_complete", 7, 0, archives.NONE, 80, 40, 4]
            ),
        ]

    trace, _ = unsound([*begun(0), *begun(1)], tmp_path)
    first, second = trace.streams[0].records()
    assert (first.kind, first.flags & Flag.NONBLOCKING, first.request, first.bytes) == (
        Kind.ALLGATHERV,
        4,
        1,
        40,
    )
    assert (second.kind, second.request, first.sizes().tolist()) == (Kind.WAIT, 1, [40, 40])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (call(0, "Isend", 1, 2, ["mpi_send", 1, 0, 3, 8]), r"rank 0: MPI_Isend without its request"),
        (
            call(0, "Irecv", 1, 2, ["mpi_irecv_request", 4]),
            r"rank 0: a receive is begun and its end is not recorded",
        ),
        (call(0, "Wait", 1, 2, ["mpi_isend_complete", 4]), r"rank 0: request 4 ends, and was not begun"),
        (call(0, "Send", 1, 2, ["mpi_send", 7, 0, 3, 8]), r"rank 0: there is no rank 7 in communicator 0"),
        (
            call(0, "Send", 1, 2, ["mpi_send", 1, 0, 3, 1 << 60]),
            r"rank 0: damaged: a message of 1152921504606846976",
        ),
        (
            call(0, "Bcast", 1, 2, ["mpi_collective_end", 1, 0, 9, 8, 8]),
            r"rank 0: bcast of 2 ranks from root 9",
        ),
        (
            call(0, "Barrier", 1, 2, ["mpi_collective_end", 0, 0, 9, 0, 0]),
            r"1 of rank 0, 0 of rank 1: some are",
        ),
        ([[0, 0, "leave", 5, "MPI_Send"]], r"rank 0: MPI_Send is left, and was not entered"),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path, records, said):
    with pytest.raises(TraceError, match=said):
        imported(write(tmp_path / "archive", records), tmp_path)
    assert not (tmp_path / "came.wtrace").exists()


def test_an_archive_without_ranks_is_refused(tmp_path):
    with pytest.raises(TraceError, match="it names no ranks of MPI"):
        imported(write(tmp_path / "archive", [[0, 0, "enter", 1, "main"]], ranks=1, comms=[]), tmp_path)


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(otf2, "_OF_SYSTEM", str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(
        TraceError, match=r"which is not installed: `.*pip install otf2`, or as root `apt-get install"
    ):
        otf2.streams(REAL)


def damaged(directory: Path, seed: int) -> Path:
    """Return the anchor of a copy in which a file is cut off, or has other bytes."""
    chance = random.Random(seed)
    shutil.copytree(REAL.parent, directory)
    files = sorted(file for file in directory.rglob("*") if file.suffix in (".otf2", ".def", ".evt"))
    file = files[seed % len(files)]
    data = bytearray(file.read_bytes())
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    else:
        for _ in range(chance.choice([1, 1, 3, 20])):
            data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(data)
    return directory / REAL.name


def survives(anchor):
    """Read it: one message, if any."""
    try:
        otf2.streams(anchor)
    except TraceError as error:
        assert len(str(error)) < 600, error
        assert "\n" not in str(error)
        assert "Traceback" not in str(error)


@pytest.mark.parametrize("seed", range(10))
def test_damage_is_one_message(tmp_path, seed):
    archives.python()
    survives(damaged(tmp_path / "archive", seed))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10, 400))
def test_any_damage_is_one_message(tmp_path, seed):
    archives.python()
    survives(damaged(tmp_path / "archive", seed))


def test_a_missing_file_of_a_rank_is_not_a_rank_that_does_nothing(tmp_path):
    archives.python()
    shutil.copytree(REAL.parent, tmp_path / "archive")
    (tmp_path / "archive/eztrace_log/1073741822.evt").unlink()
    with pytest.raises(TraceError):
        otf2.streams(tmp_path / "archive" / REAL.name)


def test_the_command_names_what_is_left_out(tmp_path):
    archives.python()
    output = tmp_path / "real.wtrace"
    done = wulf(tmp_path, "program", "trace", "import", str(REAL.parent), "--from", "otf2", "-o", str(output))
    assert done.returncode == 0
    assert "4 ranks" in done.stdout
    assert done.stderr.splitlines() == [
        "records that say nothing of messages: 4 ThreadBegin, 4 ThreadEnd",
        f"trace: {output}",
    ]
    refused = wulf(tmp_path, "program", "trace", "show", str(REAL))
    assert "an OTF2 archive: `wulf program trace import" in refused.stderr
