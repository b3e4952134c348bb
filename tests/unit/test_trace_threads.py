"""Threads of a rank that call MPI at the same time: what is told of them, what is replayed, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.otf2_archives import call, write
from tests.unit.predict_fixture import calibrated_run
from wulf.base.errors import TraceError
from wulf.base.trace import layout
from wulf.base.trace.export.operations import exported
from wulf.base.trace.layout import Kind, Unsound
from wulf.base.trace.reader import read
from wulf.base.trace.summary import summary
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.node.replay import asking, predicting
from wulf.page.terminal import page_text
from wulf.tools.trace.importing import import_trace
from wulf.tools.trace.page import build

RUN_NS = 1_000_000_000
FORMAT = Path(__file__).parents[2] / "native/trace/format.h"


def traced(path, *, threads=(), overlap_ns=0, marked=True):
    """Two ranks send each other messages; rank 1 has threads: name, calls, those at the same time, what these took."""
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2, host=f"node{rank + 1:02d}")
        for _ in range(50):
            for kind in (Kind.SEND, Kind.RECV) if rank == 0 else (Kind.RECV, Kind.SEND):
                stream.add(kind, peer=1 - rank, bytes=1000, compute_ns=9_000_000, call_ns=1_000_000)
        if rank == 1 and marked:
            stream.mark(Unsound.THREADS)
        if rank == 1 and threads:
            stream.threads(threads, overlap_ns)
        streams.append(stream.finish(RUN_NS))
    write_container(path, {"command": "./threads"}, streams)
    return read(path)


def predicted(trace, tmp_path):
    request = asking.PredictRequest(
        source=trace.path, run=calibrated_run(tmp_path / "cal"), what_if="latency=x2", samples=20
    )
    return predicting.predict(request, lambda _: None)


LITTLE = [("main", 60, 2, 400_000), ("helper", 40, 1, 500_000)]
MUCH = [("main", 60, 59, 300_000_000), ("one\x1b[2J", 20, 20, 200_000_000), ("two", 15, 0, 0)]


def test_the_layout_of_threads_is_that_of_the_header():
    text = FORMAT.read_text()
    assert layout.THREAD.itemsize == 16 + 3 * 8
    assert layout.THREADS.itemsize == 2 * 4 + 2 * 8 + 16 * layout.THREAD.itemsize
    for name, value in (
        ("TRACE_THREADS_OFFSET", layout.THREADS_OFFSET),
        ("TRACE_THREADS_NAMED", layout.THREADS["of"].shape[0]),
        ("TRACE_OVERLAP_PART", layout.OVERLAP_PART),
    ):
        assert re.search(rf"{name} = {value}\b", text)


def test_what_is_written_of_threads_is_read_and_a_changed_bit_is_found(tmp_path):
    trace = traced(tmp_path / "a.wtrace", threads=LITTLE, overlap_ns=300_000)
    told = trace.streams[1].threads
    assert (told.threads, told.overlap_ns, told.overlapping_ns) == (2, 300_000, 900_000)
    assert [tuple(one) for one in told.of] == LITTLE
    assert trace.streams[0].threads.threads == 0
    whole = bytearray(trace.path.read_bytes())
    place = whole.index(layout.STREAM_MAGIC, whole.index(layout.STREAM_MAGIC) + 1) + layout.THREADS_OFFSET
    whole[place + 40] ^= 1
    (tmp_path / "b.wtrace").write_bytes(whole)
    with pytest.raises(TraceError, match="checksum of its threads differs"):
        [stream.verify() for stream in read(tmp_path / "b.wtrace").streams]


def test_calls_at_the_same_time_for_a_little_are_replayed_in_turn_and_said(tmp_path):
    trace = traced(tmp_path / "a.wtrace", threads=LITTLE, overlap_ns=300_000)
    found = predicted(trace, tmp_path)
    (note,) = (one for one in found.notes if "Threads called" in one)
    assert "0.09 % of the run of rank 1" in note and "one after the other" in note
    assert found.base.model_s == pytest.approx(1.0, rel=0.2)
    assert summary(trace).unsound == [] and exported(trace)


def test_calls_at_the_same_time_for_more_are_refused_with_share_and_threads(tmp_path):
    trace = traced(tmp_path / "a.wtrace", threads=MUCH, overlap_ns=240_000_000)
    with pytest.raises(TraceError) as refused:
        predicted(trace, tmp_path)
    said = str(refused.value)
    assert "rank 1: 3 threads call MPI, at the same time for 24 % of the run" in said
    assert "'main': 59 of 60 calls" in said and "20 of 20 calls" in said and "'two'" not in said
    assert "with one thread that calls MPI" in said and "\x1b" not in said
    with pytest.raises(TraceError, match="threads"):
        exported(trace)
    shown = page_text(build(summary(trace)))
    words = " ".join(shown.split())
    assert "threads call MPI at the same time: 3 threads of rank 1, for 24 % of its run" in words
    assert "'main' in 59 of 60 calls" in words


@pytest.mark.parametrize("overlapping_ns", [RUN_NS // 1000, RUN_NS // 1000 + 1])
def test_the_limit_is_the_same_for_who_replays_and_who_shows(tmp_path, overlapping_ns):
    threads = [("main", 60, 2, overlapping_ns), ("helper", 40, 1, 0)]
    trace = traced(tmp_path / "a.wtrace", threads=threads, overlap_ns=1)
    if summary(trace).unsound:
        with pytest.raises(TraceError, match="at the same time"):
            predicted(trace, tmp_path)
    else:
        assert predicted(trace, tmp_path).scenarios
    assert bool(summary(trace).unsound) == (overlapping_ns > RUN_NS // 1000)


def test_a_trace_that_did_not_count_is_refused_without_figures(tmp_path):
    trace = traced(tmp_path / "a.wtrace")
    with pytest.raises(TraceError, match="rank 1: threads call MPI at the same time: in which order"):
        predicted(trace, tmp_path)
    assert "cannot be replayed: threads call MPI at the same time" in page_text(build(summary(trace)))


def test_an_archive_says_how_far_its_threads_overlap(tmp_path):
    records = [
        *call(0, "Send", 100, 150, ["mpi_send", 1, 0, 3, 8]),
        *call(1, "Recv", 100, 300, ["mpi_recv", 0, 0, 3, 8]),
        *call(0, "Send", 120, 140, ["mpi_send", 1, 0, 3, 8], thread=1),
        *call(0, "Send", 400, 410, ["mpi_send", 1, 0, 3, 8], thread=1),
    ]
    trace = import_trace(
        [write(tmp_path / "archive", records, threads=2)], "otf2", tmp_path / "came.wtrace", 1e9
    )
    told = trace.streams[0].threads
    assert (told.threads, told.overlap_ns, told.overlapping_ns) == (2, 20, 70)
    assert [one[1:] for one in told.of] == [(1, 1, 50), (2, 1, 20)]
    assert trace.streams[1].threads.threads == 0
