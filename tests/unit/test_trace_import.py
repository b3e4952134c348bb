"""Traces of other simulators become ours: what is exported comes back, and what cannot be followed is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.predict_fixture import ring
from wulf.base.errors import TraceError
from wulf.base.trace.layout import Kind
from wulf.base.trace.reader import read
from wulf.base.trace.summary import summary
from wulf.node.replay import replaying
from wulf.stats.prediction.network import Link, Network, Piece
from wulf.tools.trace import exporting
from wulf.tools.trace.importing import import_trace

CALL = (Piece(0, 1000, 0.1),)
LINK = Link(latency_ns=20_000, eager_bytes=65_536, send=CALL, receive=CALL, wire=(Piece(0, 0, 8),))
GOAL = """\
num_ranks 2 /* two of them */
rank 0 {
a: calc 1000
m: send 8b to 1 tag 7
b: calc 500   // not before it has begun
m requires a
b irequires m
c: recv 16b from 1
c requires m
}
rank 1 {
recv 8b from 0 tag 7
l2: send 16b to 0 cpu 0 nic 0
}
"""
SMPI = """\
0 init
0 compute 2e6
0 isend 1 3 100 0
0 wait 0 1 3
0 allreduce 4 0 0
1 init
1 irecv 0 3 100 0
1 waitall
1 allreduce 4 0 0
0 finalize
1 finalize
"""


def kinds(stream):
    return [(one.kind, one.peer, one.tag, one.bytes, one.compute_ns) for one in stream.records()]


def test_goal_is_made_in_an_order_that_its_dependencies_allow(tmp_path):
    (tmp_path / "a.goal").write_text(GOAL)
    first, second = import_trace([tmp_path / "a.goal"], "goal", tmp_path / "a.wtrace", 1e9).streams
    assert kinds(first) == [
        (Kind.ISEND, 1, 7, 8, 1000),
        (Kind.WAIT, 1, 7, 8, 500),
        (Kind.IRECV, 1, 0, 16, 0),
        (Kind.WAIT, 1, 0, 16, 0),
    ]
    assert [kind for kind, *_ in kinds(second)] == [Kind.IRECV, Kind.ISEND, Kind.WAIT, Kind.WAIT]
    replayed = replaying.replay(tmp_path / "a.wtrace", [Network(between=LINK, within=LINK)], nodes=[0, 1])
    # Both messages are under way at the same time: one latency, and what the CPU does at both ends.
    assert 20_000 + 1500 < replayed.results[0].time_ns < 2 * 20_000


def test_smpi_has_sizes_of_its_types_and_computing_of_its_speed(tmp_path):
    (tmp_path / "a.ti").write_text(SMPI)
    first, second = import_trace([tmp_path / "a.ti"], "smpi", tmp_path / "a.wtrace", 2e9).streams
    assert kinds(first) == [
        (Kind.ISEND, 1, 3, 800, 1_000_000),
        (Kind.WAIT, 1, 3, 800, 0),
        (Kind.ALLREDUCE, -1, 0, 32, 0),
    ]
    assert [kind for kind, *_ in kinds(second)] == [Kind.IRECV, Kind.WAIT, Kind.ALLREDUCE]


@pytest.mark.parametrize("form", ["goal", "smpi"])
def test_what_is_exported_comes_back(tmp_path, form):
    trace = ring(tmp_path / "ring.wtrace", run_ns=20_000_000)
    exported = exporting.export(trace, form, tmp_path / form)
    (listed,) = [one for one in exported if one.suffix in (".goal", ".traces")]
    came_back = import_trace([listed], form, tmp_path / "back.wtrace", 1e9)
    told, again = summary(read(trace)), summary(came_back)
    assert [rank.compute_s for rank in again.ranks] == pytest.approx([rank.compute_s for rank in told.ranks])
    if form == "smpi":
        assert {(one.source, one.destination): one.bytes for one in again.pairs} == {
            (one.source, one.destination): one.bytes for one in told.pairs
        }
    networks = [Network(between=LINK, within=LINK)]
    nodes = list(range(len(told.ranks)))
    times = [
        replaying.replay(path, networks, nodes=nodes).results[0].time_ns for path in (trace, came_back.path)
    ]
    # GOAL has no collectives: what the export makes of them is not the MPI library's own way.
    assert times[1] == pytest.approx(times[0], rel=0.1 if form == "goal" else 0.02)


@pytest.mark.parametrize(
    ("form", "old", "new", "said"),
    [
        ("goal", "num_ranks 2", "ranks 2", r"a:1: ranks 2: outside of a rank"),
        ("goal", "m requires a", "m requires z", r"a:6: z: there is no such step"),
        ("goal", "send 8b to 1", "send 8b to 5", r"a:4: there is no rank 5"),
        ("goal", "calc 1000", "calc 1000 cpu 1", r"a:3: a second CPU"),
        ("goal", "rank 1 {", "rank 0 {", r"a:11: rank 0: below num_ranks, each once"),
        (
            "goal",
            "m requires a",
            "m requires a\na requires m",
            r"a: rank 0: \d steps in a circle, each waiting for another",
        ),
        ("goal", "calc 500", "sleep 500", r"a:5: sleep 500: neither calc, send nor recv"),
        ("smpi", "wait 0 1 3", "wait 0 1 4", r"a:4: wait 0 1 4: there is no such message under way"),
        ("smpi", "0 compute 2e6", "0 compute fast", r"a:2: compute fast: argument 1 is not a number"),
        ("smpi", "isend 1 3 100 0", "isend 9 3 100 0", r"a:3: .*there is no rank 9"),
        ("smpi", "isend 1 3 100 0", "isend 1 3 100 99", r"there is no type 99"),
        ("smpi", "1 waitall", "1 waitany", r"a:8: waitany: an action that cannot be followed here"),
        ("smpi", "1 waitall", "waitall", r"a:8: waitall: a rank and what it does"),
        ("smpi", "1 init", "3 init", r"there are lines of rank 3, and none of rank 2"),
    ],
)
def test_what_cannot_be_followed_is_named(tmp_path, monkeypatch, form, old, new, said):
    monkeypatch.chdir(tmp_path)
    text = {"goal": GOAL, "smpi": SMPI}[form]
    assert old in text
    Path("a").write_text(text.replace(old, new, 1))
    with pytest.raises(TraceError, match=said):
        import_trace([Path("a")], form, Path("a.wtrace"), 1e9)
    assert not Path("a.wtrace").exists()
