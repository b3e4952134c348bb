"""Where transfers to one break down: known ports; ``make bench NAME=incast`` counts how often it is right."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from bench import incast as world
from tests.unit import incast_fixture
from wulf.node.probe.many_to_one import parsed
from wulf.tools.incast import judging
from wulf.tools.incast.judging import Met
from wulf.tools.incast.record import BurstsSeen, exit_code


def test_the_cliff_is_where_messages_are_more_than_the_queue_holds() -> None:
    found = incast_fixture.made(clean=False)
    by_size = {cliff.size_bytes: cliff.senders for cliff in found.cliffs}
    assert world.near(incast_fixture.port(), by_size)
    assert exit_code(found) == 3
    assert {one.kind for one in found.remedies} >= {
        "fewer at a time",
        "smaller windows",
        "shorter timeout",
        "ECN",
    }


def test_the_depth_is_that_of_the_queue() -> None:
    deep = incast_fixture.made(clean=False).depth
    assert deep.bytes is not None
    assert deep.bytes.value == pytest.approx(100 * 1024, rel=world.DEPTH_WITHIN)
    assert deep.whole_bytes is not None
    assert deep.lossy_bytes is not None
    assert deep.whole_bytes < deep.lossy_bytes


def test_nothing_is_named_where_nothing_breaks() -> None:
    found = incast_fixture.made(clean=True)
    assert found.cliffs == []
    assert found.fine
    assert found.remedies == []
    # No burst lost anything: the queue holds at least the largest.
    assert found.depth.bytes is None
    assert found.depth.whole_bytes == found.depth.bursts[-1].sent_bytes
    assert not found.depth.reason


def test_too_few_rounds_tell_nothing() -> None:
    port = incast_fixture.port()
    assert judging.cells([port.round() for _ in range(judging.FEWEST_ROUNDS - 1)]) == ([], None)
    assert not incast_fixture.nothing().fine


def test_what_could_not_have_been_seen_is_no_all_clear() -> None:
    found = incast_fixture.made(clean=True)
    blind = [
        msgspec.structs.replace(cell, visible=50.0, visible_stalls=0.9) if cell.senders == 7 else cell
        for cell in found.cells
    ]
    unsure = msgspec.structs.replace(found, cells=blind)
    assert {cell.senders for cell in unsure.untold} == {7}
    assert exit_code(unsure) == 3


def test_a_number_of_senders_that_failed_in_a_round_is_left_out() -> None:
    port = incast_fixture.port(clean=True)
    rounds = [dict(port.round()) for _ in range(world.ROUNDS)]
    rounds[2] = {key: met for key, met in rounds[2].items() if key[0] != 4}
    cells, _ = judging.cells(rounds)
    assert {cell.senders for cell in cells} == {1, 2, 3, 5, 6, 7}


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.99, "does not grow with the burst"), (0.0, "even the smallest bursts")],
)
def test_losses_that_are_none_of_a_full_queue_tell_no_depth(share: float, words: str) -> None:
    lengths = np.array([1, 2, 4, 8, 16, 32]) * 10_000
    first = 2 if share else 0
    bursts = [
        BurstsSeen(
            sent_bytes=int(size), arrived_bytes=[int(size) if place < first else int(size * share)] * 4
        )
        for place, size in enumerate(lengths)
    ]
    deep = judging.depth(bursts, "")
    assert deep.bytes is None
    assert words in deep.reason


def test_a_receiver_that_lost_datagrams_itself_tells_no_depth() -> None:
    bursts = incast_fixture.made(clean=False).depth.bursts
    deep = judging.depth(bursts, "the receiver's own sockets were full")
    assert deep.bytes is None
    assert deep.reason == "the receiver's own sockets were full"


def test_stalls_of_a_single_sender_are_no_incast() -> None:
    port = incast_fixture.port(clean=True)
    random = np.random.default_rng(3)
    rounds = []
    for _ in range(8):
        stalling = {}
        for key, met in port.round().items():
            stalls = random.random(len(met.times_s)) < 0.1
            stalling[key] = Met(met.times_s + np.where(stalls, 5 * np.median(met.times_s), 0.0), 0)
        rounds.append(stalling)
    cells, _ = judging.cells(rounds)
    assert judging.cliffs(cells) == []


def test_reads_what_a_kernel_counts() -> None:
    tables = (
        "Tcp: RtoMin RetransSegs\nTcp: 200 17\nUdp: InDatagrams RcvbufErrors\nUdp: 5 3\n"
        "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 9\nsoftnet\n"
    )
    counted = parsed(tables + "0000000a 00000002 00000000\n0000000b 00000010 00000000\n")
    assert counted == (17, 9, 3, 18)
    assert parsed(tables + "what\n") is None
    assert parsed("softnet\n") is None
