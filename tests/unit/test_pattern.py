"""Patterns: their language, what is wrong with one, and what its ranks do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from wulf.base.errors import ConfigError
from wulf.base.pattern import language, operations
from wulf.base.trace import reader
from wulf.base.trace.layout import Flag, Kind
from wulf.node.replay import patterns, replaying
from wulf.stats.prediction.network import Link, Network, Piece

SENDS = (Kind.SEND, Kind.ISEND, Kind.SENDRECV, Kind.START)
STEP = 'title = "t"\nranks = 4\n[[program]]\nname = "p"\niterations = 3\n[[program.step]]\n'
WIRE = (Piece(0, 100.0, 1.0),)
LINK = Link(latency_ns=5000.0, eager_bytes=4096, send=WIRE, receive=WIRE, wire=WIRE)


def counted(tmp_path: Path, text: str, ranks: int) -> list[Counter[Kind]]:
    """Return how many records of each kind each rank has."""
    (tmp_path / "one.toml").write_text(text)
    trace = reader.read(patterns.pattern_trace(tmp_path / "one.toml", ranks, tmp_path))
    assert trace.ranks == ranks
    return [Counter(entry.kind for entry in stream.records()) for stream in trace.streams]


@pytest.mark.parametrize(
    ("step", "ranks", "messages"),
    [
        ('exchange = "ring"', 5, 5),
        ('exchange = "halo-1d"', 5, 8),
        ('exchange = "halo-2d"\nperiodic = true', 9, 4 * 9),
        ('exchange = "halo-2d"', 12, 2 * (3 * 3 + 4 * 2)),
        ('exchange = "halo-3d"\nperiodic = true', 27, 6 * 27),
        ('exchange = "hypercube"', 8, 3 * 8),
        ('exchange = "all-to-all"', 5, 20),
        ('exchange = "tree"', 7, 12),
        ('exchange = "pipeline"', 5, 4),
        ('exchange = "token-ring"', 5, 5),
        ('exchange = "task-farm"\ntasks = 11', 4, 2 * 11 + 3),
        ('exchange = "client-server"\nservers = 2\nrequests = 3', 6, 2 * 3 * 4),
        ('exchange = "edges"\nedges = [[0, 1], [1, 2, 3]]', 3, 4),
    ],
)
def test_messages_of_an_iteration(tmp_path: Path, step: str, ranks: int, messages: int) -> None:
    kinds = counted(tmp_path, f"{STEP}{step}\nsize = 8", ranks)
    assert sum(of_rank[kind] for of_rank in kinds for kind in SENDS) == 3 * messages


@pytest.mark.parametrize("method", ["blocking", "nonblocking", "persistent"])
def test_every_method_sends_the_same(tmp_path: Path, method: str) -> None:
    kinds = counted(
        tmp_path, f'{STEP}exchange = "halo-2d"\nperiodic = true\nmethod = "{method}"\nsize = 8', 9
    )
    # Receives are started, too, where they are persistent.
    each = 8 if method == "persistent" else 4
    assert all(sum(of_rank[kind] for kind in SENDS) == each * 3 for of_rank in kinds)


def test_steps_that_are_made_now_and_then(tmp_path: Path) -> None:
    text = f'{STEP.replace("= 3", "= 100")}collective = "allreduce"\nsize = 8\ntimes = 0.1'
    assert all(of_rank[Kind.ALLREDUCE] == 10 for of_rank in counted(tmp_path, text, 4))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title = ", "p.toml:1: not TOML"),
        (f'{STEP}exchange = "halo-2"', "p.toml:7: program[0].step[0].exchange: 'halo-2'"),
        (f'{STEP}exchange = "ring"', "program[0].step[0].size: missing"),
        (f'{STEP}exchange = "ring"\nsize = -5', "p.toml:8: program[0].step[0].size: -5: 0 or more"),
        (f"{STEP}compute = 5", "p.toml:7: program[0].step[0].compute: 5: a time has a unit"),
        (
            f'{STEP}exchange = "ring"\nsize = "2 GiB"',
            "p.toml:8: program[0].step[0].size: 2 GiB: a message has less",
        ),
        (f'{STEP}compute = "5 us"\ntimes = 1e12', "more than 50000000 operations"),
        (f'{STEP}compute = "5 us"\nsice = 5', "p.toml:8: program[0].step[0].sice: unknown key"),
        (f'{STEP}compute = "5 us"\n[[task]]\nranks = 3', "p.toml:8: task: unknown key"),
        (
            f'{STEP}compute = "5 us"\ntasks = 5',
            "p.toml:8: program[0].step[0].tasks: only an exchange 'task-farm'",
        ),
        (f'{STEP}exchange = "hypercube"\nsize = 8', "a hypercube has 2, 4, 8"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        operations.operations(language.parse(text, "p.toml"), 6, {})
    assert complaint in str(raised.value)


@pytest.mark.parametrize("iterations", ["1000", "400"])  # too many marks; too many messages
def test_too_many_operations_are_refused_before_they_are_made(
    iterations: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MOST_RECORDS", 5000)
    text = f'{STEP.replace("= 3", f"= {iterations}")}exchange = "ring"\nsize = 8'
    with pytest.raises(
        ConfigError, match=r"p.toml:\d+: program\[0\].iterations: more than 5000 operations of 10 ranks"
    ):
        operations.operations(language.parse(text, "p.toml"), 10, {})


def test_a_graph_with_too_many_edges_is_refused_before_it_is_made() -> None:
    text = f'{STEP}exchange = "all-to-all"\nsize = 8'
    with pytest.raises(ConfigError, match="more than 50000000 operations of 200000 ranks: take fewer"):
        operations.operations(language.parse(text, "p.toml"), 200_000, {})


def test_receives_of_a_farm_say_that_their_source_was_any(tmp_path: Path) -> None:
    trace = reader.read(patterns.pattern_trace(Path("task-farm"), 4, tmp_path))
    received = [one for one in trace.streams[0].records() if one.kind is Kind.RECV]
    assert len(received) == 400 and all(one.flags & Flag.WILD for one in received)
    assert {one.peer for one in received} == {1, 2, 3}


@pytest.mark.parametrize("name", patterns.gallery())
def test_the_gallery_is_the_same_every_time_and_can_be_replayed(tmp_path: Path, name: str) -> None:
    for ranks in (2, 4, 8):
        first, second = (tmp_path / f"{ranks}-{place}" for place in "ab")
        first.mkdir()
        second.mkdir()
        trace = patterns.pattern_trace(Path(name), ranks, first)
        assert trace.read_bytes() == patterns.pattern_trace(Path(name), ranks, second).read_bytes()
        replaying.replay(trace, [Network(between=LINK, within=LINK)], nodes=[])
