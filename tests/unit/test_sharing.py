"""Whether sharing, or who comes first, can matter to a trace."""

from __future__ import annotations

import pytest

from tests.unit.predict_fixture import ping_pong, prediction, ring
from wulf.base.records import Estimate
from wulf.base.trace.layout import Flag, Kind
from wulf.base.trace.reader import read_verified
from wulf.base.trace.writer import StreamWriter, write_container
from wulf.node.replay import sharing


def said(path, nodes):
    return "; ".join(sharing.reasons(read_verified(path), nodes))


def test_two_ranks_on_two_nodes_share_nothing(tmp_path):
    assert said(ping_pong(tmp_path / "p.wtrace", 8), [0, 1]) == ""
    assert said(tmp_path / "p.wtrace", [0, 0]) == ""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([0, 1, 2, 3], "collectives are of 4 nodes"),
        ([0, 0, 1, 1], "up to 2 ranks share the interface of a node"),
        ([0, 0, 0, 0], ""),
    ],
)
def test_ranks_of_a_node_share_its_interface(tmp_path, nodes, expected):
    assert said(ring(tmp_path / "ring.wtrace", steps=3), nodes) == expected


def test_receives_from_anybody_are_counted(tmp_path):
    assert "12 calls take whoever comes first" in said(
        ring(tmp_path / "wild.wtrace", steps=3, wild=True), [0, 1, 2, 3]
    )


def incast(path, kinds):
    """Ranks 1 and 2 send to rank 0; nothing else."""
    streams = []
    for rank in range(3):
        stream = StreamWriter(rank, 3, host=f"node{rank}")
        for peer in [1, 2] if rank == 0 else [0]:
            stream.add(kinds[0] if rank else kinds[1], peer=peer, bytes=8, flags=Flag(0))
        streams.append(stream.finish(0))
    write_container(path, {}, streams)
    return path


def test_several_nodes_that_send_to_one_meet_there(tmp_path):
    assert (
        said(incast(tmp_path / "i.wtrace", (Kind.SEND, Kind.RECV)), [0, 1, 2]) == "up to 2 nodes send to one"
    )


def test_a_record_is_shown_on_a_line():
    found = prediction()
    shown = repr(found)
    assert len(shown) < 350 and "\n" not in shown and shown.startswith("Prediction(")
    assert "scenarios=[Predicted(" not in shown
    assert repr(found.scenarios).count("\n") == 0 and len(repr(found.scenarios)) < 350 * len(found.scenarios)
    one = Estimate(value=1.5, low=1.25, high=2.0, confidence=0.95, unit="s", n=6, method="x" * 500)
    assert len(repr(one)) < 350
