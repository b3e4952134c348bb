"""From a stored run of all pairs to a verdict in words."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.unit.make_records import manifest, operation, plan, result, sample
from wulf import store
from wulf.errors import AnalysisError
from wulf.procedure.diagnosing import diagnose
from wulf.records import LaunchResult
from wulf.report.diagnosis import lines

NODES = [f"node{number:02d}" for number in range(1, 9)]


def measured(tmp_path, slow=(), share=1.0, size=262144, pairs=None, seed=1):
    """Store a run of all pairs, 64 B and 256 KiB, six launches each; some nodes are slower at one size."""
    rng = np.random.default_rng(seed)
    pairs = pairs or list(itertools.combinations(NODES, 2))
    wanted = plan(ops=["mpi_pingpong"], pairs=pairs, sizes_bytes=[64, 262144])
    path = tmp_path / "run"
    with store.create(path, manifest(plan=wanted, operations=[operation("mpi_pingpong", "mpi")])) as writer:
        for index, (pair, _) in enumerate(itertools.product(pairs, range(6))):
            made = result(index, pair=pair, op="mpi_pingpong")
            samples = []
            for bytes_, time_us in ((64, 20.0), (262144, 300.0)):
                slower = share ** len(set(slow) & set(pair)) if bytes_ == size else 1.0
                samples.append(
                    sample(
                        index, bytes_, time_us * slower * float(np.exp(0.01 * rng.standard_normal())), pair
                    )
                )
            writer.append(LaunchResult(launch=made.launch, samples=samples))
        writer.update(status="complete")
    return store.load(path)


def test_a_slow_node_is_named_with_what_it_costs(tmp_path):
    found = diagnose(measured(tmp_path, ["node05"], 2.0))
    assert [(matrix.size_bytes, [s.nodes for s in matrix.suspects]) for matrix in found.matrices] == [
        (64, []),
        (262144, [["node05"]]),
    ]
    assert found.matrices[1].suspects[0].slower == pytest.approx(1.0, abs=0.05)
    said = list(lines(found))
    assert (
        said[0].startswith("of 8 nodes") and "node05: slow with everybody, 2 × the time at 256 KiB" in said[1]
    )
    assert said[-1] == "next: wulf audit --nodes node05"


def test_where_all_are_alike_it_is_fine(tmp_path):
    found = diagnose(measured(tmp_path))
    assert found.fine
    assert next(lines(found)).startswith(
        "fine: of 8 nodes, node[01-08] none is slower than the others by more than 10 %"
    )


def test_a_ring_does_not_tell_a_node_from_its_links(tmp_path):
    ring = list(itertools.pairwise([*NODES, NODES[0]]))
    with pytest.raises(AnalysisError, match="wulf measure --pairs all"):
        diagnose(measured(tmp_path, pairs=ring))


def test_pairs_that_are_missing_are_counted(tmp_path):
    pairs = list(itertools.combinations(NODES, 2))[1:]
    found = diagnose(measured(tmp_path, pairs=pairs))
    assert {matrix.missing for matrix in found.matrices} == {1}
    assert any("1 pair not measured" in line for line in lines(found))
