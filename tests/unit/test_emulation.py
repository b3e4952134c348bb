"""What a pattern's trace marks and carries, and what a run of it says."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from wulf.base.errors import ProbeError
from wulf.base.pattern import language
from wulf.base.pattern.shape import shape
from wulf.base.records.emulated import ProgramTimes
from wulf.base.trace.layout import Flag, Kind, Mark
from wulf.base.trace.reader import Entry, Trace, read
from wulf.base.trace.traffic import traffic
from wulf.node.fleet.placement import spread
from wulf.node.probe import parse
from wulf.node.replay import patterns
from wulf.tools.emulate import work

HEAD = 'title = "t"\nranks = 4\n[[program]]\nname = "p"\niterations = 5\n[[program.step]]\n'


def made(tmp_path: Path, text: str, ranks: int = 4) -> Trace:
    (tmp_path / "a.toml").write_text(text)
    return read(patterns.pattern_trace(tmp_path / "a.toml", ranks, tmp_path))


def marks(trace: Trace, rank: int) -> list[Entry]:
    return [entry for entry in trace.streams[rank].records() if entry.kind is Kind.PHASE]


def test_every_iteration_is_marked_on_every_rank(tmp_path):
    trace = made(tmp_path, f'{HEAD}exchange = "ring"\nsize = 8')
    for rank in range(4):
        assert [one.request for one in marks(trace, rank)] == [Mark.ITERATION] * 5 + [Mark.END]
        assert {one.tag for one in marks(trace, rank)[:5]} == {1}
    # Nobody has run it: how long it takes is the question.
    assert all(stream.run_ns == 0 for stream in trace.streams)


def test_a_client_that_is_ahead_cannot_be_taken_for_one_that_is_not(tmp_path):
    text = f'{HEAD}exchange = "client-server"\nrequests = 2\nsize = 8'
    entries = list(made(tmp_path, text).streams[0].records())
    by_turn: list[set[int]] = []
    for entry in entries:
        if entry.kind is Kind.PHASE and entry.request == Mark.SERVE:
            by_turn.append(set())
        if entry.kind is Kind.RECV:
            assert entry.flags & Flag.WILD
            by_turn[-1].add(entry.tag)
    assert len(by_turn) == 5 and all(len(tags) == 1 for tags in by_turn)
    assert all(one != other for one, other in itertools.pairwise(by_turn))
    answers = {entry.tag for entry in entries if entry.kind is Kind.SEND}
    assert answers.isdisjoint(set.union(*by_turn))


def test_a_farm_says_what_its_tasks_are(tmp_path):
    text = f'{HEAD}exchange = "task-farm"\ntasks = 7\ncompute = "20 us"\nsize = 100\nreply = 30'
    trace = made(tmp_path, text)
    (*_, farm) = [one for one in marks(trace, 0) if one.request == Mark.FARM]
    assert farm.sizes().reshape(-1, 3).tolist() == [[100, 20000, 30]] * 7 and farm.peer == 0
    workers = [one for one in marks(trace, 2) if one.request == Mark.FARM]
    assert len(workers) == 5 and all(not one.payload for one in workers)


def test_steps_of_all_programs_have_tags_of_their_own(tmp_path):
    program = '[[program]]\nname = "{}"\niterations = 2\n[[program.step]]\nexchange = "ring"\nsize = 8\n'
    trace = made(tmp_path, 'title = "t"\nranks = 3\n' + program.format("a") + program.format("b"), 3)
    program_of, tags = 0, Counter()
    for entry in trace.streams[0].records():
        if entry.kind is Kind.PHASE:
            program_of = entry.tag
        elif entry.kind is Kind.ISEND:
            tags[program_of, entry.tag] += 1
    assert len(tags) == 2 and len({tag for _, tag in tags}) == 2


@pytest.mark.parametrize("method", ["blocking", "nonblocking", "persistent", "neighborhood", "one-sided"])
def test_every_method_carries_the_same(tmp_path, method):
    text = f'{HEAD}exchange = "halo-2d"\nperiodic = true\nsize = 100\nmethod = "{method}"'
    found = traffic(made(tmp_path, text, 9))
    assert len(found) == 9 * 4
    assert all((load.messages, load.bytes) == (5, 500) for load in found.values())
    assert not any(way.is_together for way in found)


@pytest.mark.parametrize(
    ("step", "ways", "messages"),
    [
        ('collective = "bcast"\nroot = 1', {(1, 0), (1, 2), (1, 3)}, 5),
        ('collective = "gather"\nroot = 3', {(0, 3), (1, 3), (2, 3)}, 5),
        ('collective = "alltoall"\ngroups = "rows"', {(0, 1), (1, 0), (2, 3), (3, 2)}, 5),
        ('collective = "allreduce"', set(), 0),
    ],
)
def test_what_a_collective_carries_for_whom(tmp_path, step, ways, messages):
    found = traffic(made(tmp_path, f"{HEAD}{step}\nsize = 8"))
    assert {(way.source, way.destination) for way in found} == ways
    assert all(way.is_together and load.messages == messages for way, load in found.items())


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("halo-1d", "line"),
        ("heat", "circle"),
        ("halo-2d", "grid"),
        ("fft-transpose", "grid"),
        ("hypercube", "hypercube"),
        ("client-server", "servers"),
        ("task-farm", "star"),
        ("tree", "tree"),
        ("pipeline", "line"),
        ("all-to-all", "circle"),
    ],
)
def test_how_a_program_is_drawn(name, layout):
    found = shape(patterns.read(name), 0, 8)
    assert found.layout == layout and len(found.words) == len(patterns.read(name).pattern.program[0].step)


def test_steps_in_words():
    text = f'{HEAD}times = 0.1\ncompute = {{ distribution = "normal", mean = "1 ms", sd = "20 us" }}\n'
    document = language.parse(text + 'exchange = "halo-2d"\nperiodic = true\nsize = 8192\n', "a.toml")
    assert shape(document, 0, 4).words == (
        "in every 10th iteration, compute 1 ms ± 20 us, halo-2d, periodic, 8192 B",
    )


def test_ranks_are_spread_or_fill_nodes():
    assert spread(["a", "b", "c"], 7) == ("a", "a", "a", "b", "b", "c", "c")
    assert spread(["a", "b"], 1) == ("a",)


def line(**changes: list[int]) -> parse.ProgramLine:
    usual = {"ranks": [0, 2], "time_ns": [100, 200], "compute_ns": [50, 50], "asked_ns": [50, 50]}
    return parse.ProgramLine(number=0, **usual | changes)


def test_the_share_of_mpi_is_the_mean_of_the_ranks():
    assert parse.program_times(line(), 3).mpi_share == pytest.approx((0.5 + 0.75) / 2)
    nothing = ProgramTimes(number=0, ranks=[0], time_ns=[0], compute_ns=[0], asked_ns=[0])
    assert nothing.mpi_share == 0


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [({"ranks": [0, 3]}, "there are no ranks"), ({"compute_ns": [1]}, "not a time for each")],
)
def test_a_line_that_cannot_be_is_refused(changes, complaint):
    with pytest.raises(ProbeError, match=complaint):
        parse.program_times(line(**changes), 3)


def test_a_run_of_something_else_has_no_pattern(tmp_path):
    assert work.kept(tmp_path) is None
