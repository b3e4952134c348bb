"""Ranks by the speed of nodes, and the files that launchers take."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.make_records import manifest, node, operation, sample
from wulf.base.errors import UsageError
from wulf.base.records import Cell
from wulf.base.store import Run
from wulf.compose.node_speeds import speeds_of
from wulf.node.fleet import placement

SPEEDS = st.dictionaries(st.sampled_from("abcd"), st.floats(0.1, 10, allow_nan=False), min_size=1, max_size=4)


@given(speeds=SPEEDS, ranks=st.integers(1, 8))
def test_no_other_placement_is_done_sooner(speeds: dict[str, float], ranks: int) -> None:
    found = placement.ranks_of(speeds, ranks)
    assert sum(found.values()) == ranks and list(found) == list(speeds)

    def longest(counts: tuple[int, ...]) -> float:
        return max(count / speed for count, speed in zip(counts, speeds.values(), strict=True))

    every = (
        counts for counts in itertools.product(range(ranks + 1), repeat=len(speeds)) if sum(counts) == ranks
    )
    assert longest(tuple(found.values())) == pytest.approx(min(map(longest, every)))
    assert placement.gain(speeds, found, placement.even(list(speeds), ranks)) <= 1 + 1e-9


def test_a_node_gets_no_more_than_it_has_processors_for():
    found = placement.ranks_of({"fast": 4.0, "slow": 1.0}, 6, {"fast": 4, "slow": 4})
    assert found == {"fast": 4, "slow": 2}
    with pytest.raises(UsageError, match="9 ranks, and the nodes have 8"):
        placement.ranks_of({"fast": 4.0, "slow": 1.0}, 9, {"fast": 4, "slow": 4})
    with pytest.raises(UsageError, match="above 0"):
        placement.ranks_of({"fast": 0.0}, 1)


def test_each_launcher_has_its_own_file():
    found = {"a": 2, "b": 0, "c": 1}
    assert list(placement.lines(found, "openmpi")) == ["a slots=2", "c slots=1"]
    assert list(placement.lines(found, "mpich")) == ["a:2", "c:1"]
    assert list(placement.lines(found, "slurm")) == ["a", "a", "c"]
    assert placement.even(["a", "b", "c"], 5) == {"a": 2, "b": 2, "c": 1}


def test_speeds_are_of_fixed_work_and_processors(tmp_path):
    work = msgspec.structs.replace(operation("noise_1ms", "none"), asked="noise:1000", ranks=1)
    head = manifest(operations=[work])
    nodes = [
        msgspec.structs.replace(node(name), facts={"cpu.allowed": cpus})
        for name, cpus in (("node01", "0-3"), ("node02", "0-1"))
    ]
    samples = [
        msgspec.structs.replace(
            sample(0, 0, half_us=half_us), cell=Cell(op="noise_1ms", size_bytes=0, place=(name,))
        )
        for name, half_us in (("node01", 10.0), ("node02", 20.0))
    ]
    found = speeds_of(_run(tmp_path, head, nodes, samples))
    assert found.speeds["node01"] / found.speeds["node02"] == pytest.approx(4, rel=0.2)
    with pytest.raises(UsageError, match="hpcc"):
        speeds_of(_run(tmp_path, head, nodes, samples[:1]))


def _run(path, head, nodes, samples):
    from tests.unit.make_records import result
    from wulf.base.records import LaunchResult

    launch = result(op="noise_1ms").launch
    return Run(
        path=path,
        manifest=head,
        nodes=nodes,
        results=[LaunchResult(launch=launch, samples=samples)],
        truncated_bytes=0,
    )
