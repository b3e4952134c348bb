"""Paths as `wulf diagnose paths` finds them, of simulated fabrics (`bench.paths`)."""

from __future__ import annotations

import functools

import msgspec
import numpy as np

from bench import paths
from wulf.base.records import SCHEMA_VERSION
from wulf.tools.fabric.record import InferredFabric
from wulf.tools.fabric.work import concluded
from wulf.tools.paths import judging, work
from wulf.tools.paths.record import Paths, Reproduction, Switch


def fabric(kind: str, seed: int = 1) -> paths.Fabric:
    """Return a fabric whose switches all answer, with what a kind plants."""
    found = paths.fabric(kind, np.random.default_rng(seed))
    found.silent = frozenset()
    return found


@functools.cache
def bad() -> Paths:
    """Return a fabric with a spine that loses packets."""
    world = fabric("loss spine")
    seen = paths.seen(world)
    found = judging.judge(seen, [])
    shown = Reproduction(
        nodes=("node00", "node01"),
        protocol="udp",
        port=20003,
        to_port=18500,
        well_port=20001,
        probe=["probe --server", "probe --connect"],
        plain=["iperf3 --server", "iperf3 --client"],
    )
    return Paths(
        schema_version=SCHEMA_VERSION,
        nodes=world.nodes,
        pairs=sorted({flow.nodes for flow in seen}),
        missing={"node00–node09": "node09 does not answer"},
        spread=judging.spread(seen, found.culprits),
        remarks=["node01: its bond chooses a member by layer2, not by ports"],
        switches=[Switch(address=name, name=name, hop=hop) for name, hop in work.switches(seen).items()],
        culprits=[msgspec.structs.replace(one, reproduction=shown) for one in found.culprits],
        sights=found.sights,
        mpi=judging.exposure(seen, found.culprits),
        seen=seen,
        addresses={},
        probes={},
    )


def nothing() -> Paths:
    """Return a fabric of which nothing was measured."""
    whole = bad()
    return msgspec.structs.replace(
        whole,
        pairs=[],
        spread="unknown",
        switches=[],
        culprits=[],
        sights=[],
        mpi=judging.exposure([], []),
        seen=[],
    )


def inferred(*, told: bool = True) -> InferredFabric:
    """Return the tree of switches of the fabric with a bad spine; or one that nothing tells."""
    whole = bad()
    nodes = whole.nodes if told else whole.nodes[:3]
    return concluded(
        nodes, {}, whole.seen if told else [], {}, {"node00–node01": "the probe stopped responding"}
    )
