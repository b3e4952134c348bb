"""A launch beside traffic of other pairs, with the real probe over the real transport of one machine."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.tiers import thorough
from wulf.base.records import LaunchResult
from wulf.node.cluster.inventory import parse
from wulf.node.cluster.transport import open_transport
from wulf.node.probe import background_traffic, execute, start
from wulf.node.probe.schedule import LaunchPlan

NODES = ("n1", "n2", "n3", "n4", "n5", "n6")
CLUSTER = '[cluster]\nnodes = "n[1-6]"\ntransport = "local"\n'


def launch(probes: dict[str, str], **more: object) -> LaunchResult:
    fields: dict[str, object] = {
        "id": "00000",
        "index": 0,
        "op": "tcp_rr_beside_traffic",
        "asked": "tcp_rr",
        "transport": "net",
        "place": ("n1", "n2"),
        "beside": [("n3", "n4"), ("n5", "n6")],
        "setting": "default",
        "purpose": "measure",
        "sizes_bytes": [64],
        "sweeps": 5,
        "visit_us": 200_000,
        "seed": 1,
    }
    transport = open_transport(parse(CLUSTER, "test"))
    site = start.Site(
        transport=transport,
        addresses=dict.fromkeys(NODES, "127.0.0.1"),
        net_probes=probes,
        mpi_probe=None,
        launcher=None,
        mpi_env={},
        interface=None,
        subnet=None,
        shares_cpu=lambda *_: False,
    )
    seen = execute.LaunchContext(contexts=[])
    try:
        return execute.run_launch(LaunchPlan(**fields | more), site, lambda _: lambda: seen, lambda *_: [])  # type: ignore[arg-type]
    finally:
        transport.close()


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_launch_says_what_other_pairs_carried_meanwhile(net_probe: Path) -> None:
    found = launch(dict.fromkeys(NODES, str(net_probe)), visit_us=50_000)
    assert found.launch.error is None
    assert [sample.cell.op for sample in found.samples] == ["tcp_rr_beside_traffic"]
    assert [one.pair for one in found.launch.beside] == [("n3", "n4"), ("n5", "n6")]
    for one in found.launch.beside:
        # Of a launch of five visits.
        assert one.lasted_s > 0.2
        assert one.bytes_per_s > 0


def test_without_others_nothing_streams(net_probe: Path) -> None:
    found = launch(dict.fromkeys(NODES, str(net_probe)), beside=[], visit_us=1000)
    assert (found.launch.error, found.launch.beside) == (None, [])


@pytest.mark.parametrize(
    ("node", "text", "said"),
    [
        # The one that sends, and the one that takes.
        thorough("n5", "timeout 1 PROBE", "what runs beside it from n5 to n6 ended early"),
        thorough("n6", "timeout 1.5 PROBE", "what runs beside it from n5 to n6 ended early"),
        (
            "n3",
            "echo no such probe >&2; exit 1;",
            "what runs beside it from n3 to n4 ended early: no such probe",
        ),
        ("n4", "echo no such probe >&2; exit 1;", "n4: the probe's server ended at once: no such probe"),
        thorough("n3", "sleep 60;", "what runs beside it from n3 to n4 fell silent"),
    ],
)
def test_a_stream_that_does_not_run_to_the_end_fails_the_launch_and_names_its_nodes(
    net_probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str, text: str, said: str
) -> None:
    monkeypatch.setattr(background_traffic, "SILENCE_S", 3.0)
    broken = script(tmp_path / "probe", f'{text.replace("PROBE", shlex.quote(str(net_probe)))} "$@"')
    found = launch(dict.fromkeys(NODES, str(net_probe)) | {node: broken})
    assert found.launch.status == "failed"
    assert said in (found.launch.error or "")
    assert found.samples == []


def test_a_stream_of_a_few_visits_is_no_traffic(net_probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_traffic, "_SWEEPS", 8)
    found = launch(dict.fromkeys(NODES, str(net_probe)))
    assert "ended before the launch that it was to accompany" in (found.launch.error or "")
