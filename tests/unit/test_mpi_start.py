"""Whose programs start the jobs of an MPI library, and whose say what it has."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from wulf import catalogue
from wulf.cluster import inventory
from wulf.cluster.launcher import launcher_for
from wulf.cluster.schema import MpiSection
from wulf.cluster.transport import open_transport
from wulf.errors import ConfigError
from wulf.experiment import objective
from wulf.probe import library
from wulf.probe.build import MpiLibrary, Probe
from wulf.probe.start import Site
from wulf.procedure import change, site
from wulf.procedure.mpi_tuning.bench import Bench
from wulf.procedure.tuning import prepare
from wulf.procedure.tuning.runner import job_environment
from wulf.records import NodeRecord

GOLDEN = Path(__file__).parents[1] / "golden" / "mpi"
MPICH = MpiLibrary(compiler="/usr/bin/mpicc.mpich", family="mpich", version="MPICH 4.0.2")


def test_a_library_is_asked_by_its_own_program_whatever_starts_the_jobs(tmp_path: Path) -> None:
    program = tmp_path / "ompi_info"
    program.write_text(f"#!{shutil.which('sh')}\ncat {GOLDEN / 'openmpi-4.1.4.txt'}\n")
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
        ConfigError, match=r'launcher = "openmpi" cannot start a job of MPICH 4\.0\.2: .*--mpi'
    ):
        site.mpi_launcher(config, MPICH, transport, config.nodes, pytest.fail)
    own = msgspec.structs.replace(config, mpi=MpiSection())
    assert site.mpi_launcher(own, MPICH, transport, config.nodes, pytest.fail).name == "mpich"


def test_what_ranks_of_open_mpi_5_are_bound_to_is_a_parameter_of_what_starts_them(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.write_text(f'#!{shutil.which("sh")}\necho \'{{"type":"library","version":"Open MPI v5.0.11"}}\'\n')
    probe.chmod(0o755)
    mpi = MpiLibrary(compiler=str(tmp_path / "mpicc"), family="openmpi", version="Open MPI 5.0.11")
    built = Probe(path=probe, digest="", mpi=mpi)
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
