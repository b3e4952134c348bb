"""Launches of collectives: what gives no time is a failure, and what was put on nodes is taken away again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit import make_records
from wulf.base.contracts import NodeResult
from wulf.node.probe.start import Site
from wulf.tools.collectives.bench import Bench, LaunchError

NODES = ["a", "b"]


class Transport:
    """Takes a file on the first node only."""

    def __init__(self) -> None:
        self.removed: list[tuple[list[str], list[str]]] = []

    def put(self, _file: Path, target: str, nodes: Sequence[str], **_: Any) -> dict[str, NodeResult]:
        full = f"b: {target}: no space left on device"
        return {
            node: NodeResult(
                node=node,
                status="ok" if node == "a" else "exit",
                exit_code=int(node != "a"),
                stdout=b"",
                stderr=b"",
                reason="" if node == "a" else full,
            )
            for node in nodes
        }

    def run(self, argv: list[str], nodes: Sequence[str], **_: Any) -> None:
        self.removed.append((argv, list(nodes)))


def site(transport: Transport) -> Site:
    return Site(
        transport=transport,  # type: ignore[arg-type]
        addresses={},
        net_probes={},
        mpi_probe="/cache/wulf-probe-mpi",
        launcher=None,
        mpi_env={},
        interface=None,
        subnet=None,
        shares_cpu=lambda *_: False,
    )


def test_a_file_that_only_some_nodes_take_is_taken_away_from_all() -> None:
    transport = Transport()
    bench = Bench(None, site(transport), NODES, {}, seed=1)  # type: ignore[arg-type]
    with pytest.raises(LaunchError, match="no space left"):
        bench.put("rules", "rules-1")
    bench.clean()
    ((argv, nodes),) = transport.removed
    # Two searches at the same time may not meet in it.
    assert argv[:2] == ["rm", "-f"] and re.fullmatch(r"/cache/rules-1-[0-9a-f]{8}", argv[2])
    assert nodes == NODES


def test_a_time_of_nothing_is_a_failure() -> None:
    operation = make_records.operation("mpi_bcast")
    result = make_records.result(op="mpi_bcast", sizes=(8, 64))
    bench = Bench(lambda _: result, site(Transport()), NODES, {"mpi_bcast": operation}, seed=1)
    assert set(bench.times("bcast", 2, [8, 64], {})) == {8, 64}
    nothing = msgspec.structs.replace(result.samples[0], histogram=[(0, 100)])
    result = msgspec.structs.replace(result, samples=[nothing, result.samples[1]])
    with pytest.raises(LaunchError, match="at 8 B took no time"):
        bench.times("bcast", 2, [8, 64], {})
    late = msgspec.structs.replace(result.samples[0], histogram=[])
    result = msgspec.structs.replace(result, samples=[late, result.samples[1]])
    assert set(bench.times("bcast", 2, [8, 64], {})) == {64}
