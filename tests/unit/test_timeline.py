"""A trace's timeline and sums: what is shown is what was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from wulf.base.trace.layout import Flag, Kind
from wulf.base.trace.reader import read
from wulf.base.trace.summary import summary
from wulf.base.trace.writer import StreamWriter, pack, write_container
from wulf.node.programs import linked
from wulf.page.page import html
from wulf.tools.trace import page


def stream(rank: int, ranks: int, steps: int) -> bytes:
    """A rank that computes 3 µs, sends for 1 µs, waits 2 µs, and reduces for 4 µs."""
    writer = StreamWriter(rank, ranks, host="node01", library="Some MPI", program="./a")
    for _ in range(steps):
        writer.add(Kind.ISEND, peer=(rank + 1) % ranks, bytes=100, request=1, compute_ns=3000, call_ns=1000)
        writer.add(Kind.WAIT, request=1, call_ns=2000)
        writer.add(Kind.ALLREDUCE, bytes=8, call_ns=4000)
    return writer.finish(steps * 10000)


@pytest.mark.parametrize(("ranks", "steps"), [(2, 20), (3, 2000), (100, 30)])
def test_shares_of_the_timeline_are_those_of_the_ranks(tmp_path: Path, ranks: int, steps: int) -> None:
    write_container(tmp_path / "a.wtrace", {}, [stream(rank, ranks, steps) for rank in range(ranks)])
    found = summary(read(tmp_path / "a.wtrace"))
    told = found.timeline
    assert (told.bin_s is None) == (steps == 20)
    assert len(told.rows) <= 48 and len(told.stretches) <= 4 * 4800
    assert [row.first for row in told.rows] == sorted({row.first for row in told.rows})
    assert told.rows[-1].last == ranks - 1
    end_s = steps * 10e-6
    for row in (0, len(told.rows) - 1):
        assert told.rows[row].end_s == pytest.approx(end_s)
        for part, share in {"messages": 0.1, "waiting": 0.2, "collectives": 0.4}.items():
            of_part = [one for one in told.stretches if one.row == row and one.part == part]
            spent = sum((one.end_s - one.begin_s) * one.share for one in of_part)
            assert spent / end_s == pytest.approx(share, rel=0.02)
        assert max(one.end_s for one in told.stretches if one.row == row) <= end_s * 1.0001
    first = found.ranks[0]
    assert first.compute_s == pytest.approx(0.3 * end_s)
    assert first.messages_s + first.waiting_s + first.collectives_s + first.other_s == pytest.approx(
        first.mpi_s
    )


def test_a_call_says_the_least_and_the_most_of_a_rank(tmp_path: Path) -> None:
    slow = StreamWriter(1, 2)
    slow.add(Kind.BARRIER, call_ns=9000)
    slow.add(Kind.ALLTOALLV, payload=(12).to_bytes(8, "little") + (30).to_bytes(8, "little"), call_ns=1)
    quick = StreamWriter(0, 2)
    quick.add(Kind.BARRIER, call_ns=1000)
    write_container(tmp_path / "a.wtrace", {}, [quick.finish(10**6), slow.finish(10**6)])
    calls = {one.call: one for one in summary(read(tmp_path / "a.wtrace")).calls}
    assert (calls["barrier"].least_s, calls["barrier"].most_s) == pytest.approx((1e-6, 9e-6))
    assert calls["alltoallv"].least_s == 0.0 and calls["alltoallv"].bytes == 42


def test_a_page_has_every_chart_and_stands_alone(tmp_path: Path) -> None:
    write_container(tmp_path / "a.wtrace", {"command": "./a <b>"}, [stream(rank, 4, 50) for rank in range(4)])
    found = summary(read(tmp_path / "a.wtrace"))
    text = html(page.build(found))
    assert "./a &lt;b&gt;" in text and "Clocks of ranks are not compared" in text
    assert {figure.id for figure in page.build(found).figures} == {
        *("timeline", "calls", "ranks", "matrix-bytes", "matrix-messages", "sizes", "collective-sizes")
    }


def test_an_empty_trace_has_a_page_too(tmp_path: Path) -> None:
    write_container(tmp_path / "a.wtrace", {}, [StreamWriter(0, 1).finish(1000)])
    found = summary(read(tmp_path / "a.wtrace"))
    assert "no rank sends another one a message" in html(page.build(found))


@pytest.mark.parametrize("flushed", [0, 100, 128, 200, 256])
def test_the_window_of_a_rank_that_was_killed_is_put_behind_its_stream(tmp_path: Path, flushed: int) -> None:
    """A window of 128 records, 256 of them whole: killed before, while and after the second one is appended."""
    writer = StreamWriter(0, 1)
    for tag in range(256):
        writer.add(Kind.SEND, tag=tag, flags=Flag(0))
    whole = writer.finish(0)
    header = bytearray(whole[:4096])
    header[28:32] = (0).to_bytes(4, "little")  # running
    streams = tmp_path / "streams"
    streams.mkdir()
    there = max(flushed, 128)
    (streams / "rank.000000").write_bytes(bytes(header) + whole[4096 : 4096 + 32 * there])
    (streams / "rank.000000.tail").write_bytes(whole[4096 + 32 * 128 :])
    pack(tmp_path / "a.wtrace", {}, streams)
    records = list(read(tmp_path / "a.wtrace").streams[0].records())
    assert [record.tag for record in records] == list(range(256))


def test_programs_of_a_command_are_told_apart() -> None:
    said = """\
program /usr/bin/mpirun
\tlibmpi.so.40 => /lib/libmpi.so.40 (0x1)
program ./a
setuid
\tlibmpich.so.12 => /lib/libmpich.so.12 (0x1)
program ./b
\tnot a dynamic executable
program ./c
script
"""
    found = {one.path: one for one in linked.parse(said)}
    assert sorted(found) == ["./a", "./b", "./c"]
    assert found["./a"].is_setuid and "libmpich.so.12" in found["./a"].mpi
    assert found["./b"].is_static and not found["./b"].mpi
    assert found["./c"].is_script
    assert linked.words_of(["mpirun -np 2 './my app'"]) == ["mpirun", "-np", "2", "./my app"]
    assert linked.words_of(["./a 'unclosed"]) == ["./a", "'unclosed"]
