"""Whose programs start the jobs of an MPI library, and whose say what it has."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from wulf.base import catalogue
from wulf.base.errors import ConfigError
from wulf.base.native.build import MpiLibrary, Probe
from wulf.base.records import NodeRecord
from wulf.node.cluster import inventory
from wulf.node.cluster.launcher import launcher_for
from wulf.node.cluster.schema import MpiSection
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet import change, preparation
from wulf.node.probe import library
from wulf.node.probe.start import Site
from wulf.node.trials import prepare
from wulf.node.trials.bench import job_environment
from wulf.node.trials.experiment import objective
from wulf.tools.collectives.bench import Bench

GOLDEN = Path(__file__).parents[1] / "golden" / "mpi"
MPICH = MpiLibrary(compiler="/usr/bin/mpicc.mpich", family="mpich", version="MPICH 4.0.2")


def test_a_library_is_asked_by_its_own_program_whatever_starts_the_jobs(tmp_path: Path) -> None:
    program = tmp_path / "ompi_info"
    program.write_text(f"#!/bin/sh\ncat {GOLDEN / 'openmpi-4.1.4.txt'}\n")
    program.chmod(0o755)
    config = inventory.local()
    where = Site(
        transport=open_transport(config),
        addresses={},
        net_probes={},
        mpi_probe="/probe",
        launcher=launcher_for("srun"),
        mpi_env={},
        interface=None,
        subnet=None,
        shares_cpu=lambda *_: True,
    )
    bench = Bench(pytest.fail, where, config.nodes, {}, seed=1)  # type: ignore[arg-type]
    mpi = MpiLibrary(compiler=str(tmp_path / "mpicc"), family="openmpi", version="Open MPI 4.1.4")
    assert "bcast" in bench.library(mpi).algorithms


def test_the_launcher_of_another_library_is_refused() -> None:
    config = msgspec.structs.replace(inventory.local(), mpi=MpiSection(launcher="openmpi"))
    transport = open_transport(config)
    with pytest.raises(
        ConfigError, match=r'launcher = "openmpi" cannot start jobs of MPICH 4\.0\.2: .*--mpi'
    ):
        preparation.mpi_launcher(config, MPICH, transport, config.nodes, pytest.fail)
    own = msgspec.structs.replace(config, mpi=MpiSection())
    assert preparation.mpi_launcher(own, MPICH, transport, config.nodes, pytest.fail).name == "mpich"


def probe(directory: Path, mpi: MpiLibrary, *parameters: tuple[str, str]) -> Probe:
    """A program that says these parameters of a library."""
    lines: list[dict[str, object]] = [{"type": "library", "version": mpi.version}]
    lines += [
        {"type": "parameter", "name": name, "value": value, "about": "", "values": {}}
        for name, value in parameters
    ]
    (directory / "said").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    program = directory / "probe"
    program.write_text(f"#!/bin/sh\ncat {directory}/said\n")
    program.chmod(0o755)
    return Probe(path=program, digest="", mpi=mpi)


def test_a_parameter_has_the_value_that_jobs_have(tmp_path: Path) -> None:
    mpi = MpiLibrary(compiler=str(tmp_path / "mpicc"), family="openmpi", version="Open MPI 4.1.4")
    built = probe(tmp_path, mpi, ("mpi_yield_when_idle", "0"), ("btl_tcp_links", "1"))
    tools = preparation.Toolbox(probes=[built], operations=[], known=[])
    goal = objective.application("mpirun ./a", "", "lower", "s")
    # Ranks that share CPUs yield already.
    for cpus, now, tried in (("0", "1", ["0"]), ("0-3", "0", ["1"])):
        records = [NodeRecord(node=f"local{n}", reachable=True, facts={"cpu.allowed": cpus}) for n in (1, 2)]
        known = prepare.library_of(tools, None, inventory.local(), records, lambda _: None)
        assert known is not None
        assert {name: one.value for name, one in known.parameters.items()} == {
            "mpi_yield_when_idle": now,
            "btl_tcp_links": "1",
        }
        choice = prepare.choose(records, goal, [], known, change.Permissions())
        assert [one.values for one in choice.candidates if one.knob == "ompi.mpi_yield_when_idle"] == [tried]


def test_what_ranks_of_open_mpi_5_are_bound_to_is_a_parameter_of_what_starts_them(tmp_path: Path) -> None:
    mpi = MpiLibrary(compiler=str(tmp_path / "mpicc"), family="openmpi", version="Open MPI 5.0.11")
    built = probe(tmp_path, mpi)
    name = catalogue.knob("prrte.binding").access.target
    assert library.parameters(built, {name: "core"}) == {}
    (tmp_path / "prterun").write_text("#!/bin/sh\n")
    (tmp_path / "prterun").chmod(0o755)
    assert library.parameters(built, {name: "core"})[name].value == "core"
    known = prepare.Library(name=mpi.version, family=mpi.family, parameters=library.parameters(built, {}))
    records = [NodeRecord(node="a", reachable=True, facts={})]
    goal = objective.application("mpirun ./a", "", "lower", "s")
    choice = prepare.choose(records, goal, ["prrte.binding", "ompi.binding"], known, change.Permissions())
    assert [(one.knob, one.values) for one in choice.candidates] == [
        ("prrte.binding", ["none", "core", "package"])
    ]
    assert job_environment({"prrte.binding": "core"}) == {name: "core"}
