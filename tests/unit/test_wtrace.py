"""Traces as files: what is written is read again, and what is damaged is named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wulf.base.errors import TraceError
from wulf.base.trace import layout
from wulf.base.trace.layout import Flag, Kind, Mark, State, Unsound
from wulf.base.trace.reader import Stream, read, read_verified
from wulf.base.trace.writer import StreamWriter, pack, write_container

FORMAT = Path(__file__).parents[2] / "native" / "trace" / "format.h"


def made(rank: int, ranks: int = 2) -> StreamWriter:
    writer = StreamWriter(rank, ranks, host=f"node{rank}", library="Open MPI", program="./app")
    writer.communicator(2, [1, 0], rank=1 - rank, sources=[0], targets=[1])
    writer.add(Kind.SEND, peer=1 - rank, tag=7, bytes=1000, compute_ns=5, call_ns=6)
    writer.add(Kind.RECV, peer=1 - rank, tag=7, bytes=1000, compute_ns=2**33, call_ns=2**34, flags=Flag.WILD)
    writer.add(Kind.ALLTOALLV, payload=np.array([8, 16], dtype="<u8").tobytes())
    return writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.wtrace"
    write_container(path, {"command": ["./app"]}, [made(rank).finish(1000 + rank) for rank in range(2)])
    return path


def test_what_is_written_is_read(path):
    trace = read(path)
    assert trace.ranks == 2 and trace.note == {"command": ["./app"]} and trace.unsound == frozenset()
    stream = trace.streams[1]
    assert (stream.rank, stream.ranks, stream.run_ns, stream.state) == (1, 2, 1001, State.FINISHED)
    assert (stream.host, stream.library, stream.program) == ("node1", "Open MPI", "./app")
    stream.verify()
    communicator, send, receive, alltoallv = stream.records()
    assert communicator.comm == 2 and len(communicator.payload) == layout.COMMUNICATOR.itemsize + 4 * 4
    assert (send.kind, send.peer, send.tag, send.bytes) == (Kind.SEND, 0, 7, 1000)
    assert (send.compute_ns, send.call_ns) == (5, 6)
    assert (receive.compute_ns, receive.call_ns) == (2**33, 2**34) and receive.flags & Flag.WILD
    assert alltoallv.sizes().tolist() == [8, 16]


def numbers_of(enum: str, text: str) -> dict[str, int]:
    """Return the names and numbers of an enumeration of the header; comments and missing numbers are allowed."""
    body = re.search(r"enum " + enum + r" \{(.*?)\};", text, re.DOTALL)
    assert body
    names, number = {}, -1
    for item in re.sub(r"/\*.*?\*/", "", body[1], flags=re.DOTALL).split(","):
        if not item.strip():
            continue
        name, _, given = item.partition("=")
        number = int(given) if given.strip() else number + 1
        names[name.strip().removeprefix("TRACE_").removeprefix("MARK_")] = number
    return names


@pytest.mark.parametrize(
    ("enum", "own"),
    [
        ("trace_kind", Kind),
        ("trace_flags", Flag),
        ("trace_state", State),
        ("trace_unsound", Unsound),
        ("trace_mark", Mark),
    ],
)
def test_the_numbers_are_those_of_the_header(enum, own):
    assert numbers_of(enum, FORMAT.read_text()) == {one.name: one.value for one in own}


def test_the_layouts_have_the_sizes_of_the_header():
    assert layout.RECORD.itemsize == layout.SLOT_BYTES
    assert layout.HEADER.itemsize == 80 + 256 + 256 + 1024
    assert layout.CONTAINER.itemsize == 32 and layout.PART.itemsize == 16


def test_files_of_ranks_are_packed_and_a_missing_one_is_empty(tmp_path):
    (tmp_path / "rank.000001").write_bytes(made(1).finish(5))
    pack(tmp_path / "a.wtrace", {}, tmp_path)
    trace = read(tmp_path / "a.wtrace")
    assert [len(stream.slots) > 0 for stream in trace.streams] == [False, True]
    assert trace.streams[0].state is State.RUNNING
    (tmp_path / "nothing").mkdir()
    with pytest.raises(TraceError, match="no rank left a stream"):
        pack(tmp_path / "b.wtrace", {}, tmp_path / "nothing")
    with pytest.raises(TraceError, match="cannot write"):
        pack(tmp_path / "nowhere" / "b.wtrace", {}, tmp_path)


def test_damage_is_named(path, tmp_path):
    whole = path.read_bytes()
    bent = bytearray(whole)
    bent[-40] ^= 1
    other = tmp_path / "bent.wtrace"
    other.write_bytes(bent)
    with pytest.raises(TraceError, match="rank 1: damaged: its checksum differs"):
        read(other).streams[1].verify()
    header = whole.index(layout.STREAM_MAGIC)
    for field, bit in {"run_ns": 1, "unsound": 1, "state": 1, "host": 4}.items():
        bent = bytearray(whole)
        bent[header + layout.HEADER.fields[field][1]] ^= bit
        other.write_bytes(bent)
        with pytest.raises(TraceError, match="rank 0: damaged: its checksum differs"):
            read_verified(other)
    for text, content in {
        "not a trace": b"",
        "rank 1: cut off": whole[:-1],
        "its note: cut off": whole[:70],
        "cut off in the list of its ranks": whole[:40],
        "of version 9": whole[:8] + b"\t" + whole[9:],
    }.items():
        other.write_bytes(content)
        with pytest.raises(TraceError, match=text):
            read(other)
    with pytest.raises(TraceError, match="cannot read"):
        read(tmp_path / "none.wtrace")


def test_a_payload_longer_than_the_stream_is_named():
    stream = bytearray(made(0).finish(1))
    stream[layout.HEADER_BYTES + layout.SLOT_BYTES] = 255
    with pytest.raises(TraceError, match="record 0: what belongs to it is cut off"):
        list(Stream(memoryview(bytes(stream)), "x").records())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 255)), min_size=1, max_size=8), st.data())
def test_no_change_of_bytes_leads_anywhere_but_to_an_error(changes, data):
    stream = bytearray(made(0).finish(1))
    for place, value in changes:
        where = data.draw(st.sampled_from([place, layout.HEADER_BYTES + place])) % len(stream)
        stream[where] = value
    try:
        for record in Stream(memoryview(bytes(stream)), "x").records():
            assert len(record.payload) <= len(stream)
    except TraceError as error:
        assert str(error).startswith("x")
