"""Launchers: argv and environment, and that the libraries here really start jobs with them."""

from __future__ import annotations

import os
import subprocess

import msgspec
import pytest

from wulf.base.contracts import MpiJob
from wulf.base.errors import BuildError, ConfigError, UsageError
from wulf.base.interfaces import Interfaces
from wulf.base.native.build import find_mpi
from wulf.node.cluster.launcher import launcher_for
from wulf.node.cluster.launcher.srun import Srun

JOB = MpiJob(
    program="/tmp/probe",
    arguments=["--op", "x"],
    hosts=[("node02", "198.18.0.12"), ("node01", "198.18.0.11")],
    interface="eth1",
    env={"WULF_X": "a b"},
)


def shared(job: MpiJob) -> MpiJob:
    return MpiJob(program=job.program, arguments=job.arguments, hosts=job.hosts, shared_cpu=True)


def test_an_interface_with_several_names_is_given_as_its_network() -> None:
    names = Interfaces(usual="eno1", of_node={"node02": "enp3s0"})
    job = msgspec.structs.replace(JOB, interface=names, subnet="198.18.0.0/24")
    said = launcher_for("openmpi").env(job)
    assert {said[name] for name in said if name.endswith("tcp_if_include")} == {"198.18.0.0/24"}
    mpich = launcher_for("mpich")
    assert "-iface" not in mpich.argv(job)
    assert mpich.env(job)["UCX_NET_DEVICES"] == "enp3s0,eno1"
    assert "FI_TCP_IFACE" not in mpich.env(job)
    # Where all hosts of a job have the same name it is that.
    alike = msgspec.structs.replace(job, hosts=JOB.hosts[:1])
    assert launcher_for("openmpi").env(alike)["OMPI_MCA_btl_tcp_if_include"] == "enp3s0"
    assert mpich.env(alike)["FI_TCP_IFACE"] == "enp3s0"


def test_openmpi() -> None:
    launcher = launcher_for("openmpi", "/opt/bin/mpirun", ["--mca", "a", "b"])
    words = launcher.argv(JOB)
    assert words[:5] == ["/opt/bin/mpirun", "-np", "2", "--host", "localhost:1,198.18.0.11:1"]
    assert words[-6:] == ["--mca", "a", "b", "/tmp/probe", "--op", "x"]
    assert launcher.env(JOB)["OMPI_MCA_btl_tcp_if_include"] == "eth1"
    assert words[words.index("-x") + 1] == "WULF_X"
    assert launcher.env(JOB)["WULF_X"] == "a b"
    assert "OMPI_MCA_mpi_yield_when_idle" not in launcher.env(JOB)
    assert launcher.env(shared(JOB))["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert "OMPI_MCA_btl_tcp_if_include" not in launcher.env(shared(JOB))


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        (["198.18.0.11"], "localhost:1"),
        (["198.18.0.11", "198.18.0.12"], "localhost:1,198.18.0.12:1"),
        (["node01", "node01", "node02"], "localhost:2,node02:1"),
        (
            ["198.18.0.11", "198.18.0.12", "198.18.0.11", "198.18.0.13"],
            "localhost:2,198.18.0.12:1,198.18.0.13:1",
        ),
        (["127.0.0.1", "127.0.0.1"], "localhost:2"),
    ],
)
def test_openmpi_is_told_of_its_own_node_as_localhost(addresses: list[str], said: str) -> None:
    """By its address Open MPI 5 finds no slots on the node that a job is started on; 4 and 5 take this."""
    hosts = [(f"n{index}", address) for index, address in enumerate(addresses)]
    words = launcher_for("openmpi").argv(MpiJob(program="x", arguments=[], hosts=hosts))
    assert words[1:5] == ["-np", str(len(addresses)), "--host", said]


POLICY_4, POLICY_5 = "OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"


def with_env(**env: str) -> MpiJob:
    return msgspec.structs.replace(JOB, shared_cpu=True, env=env)


@pytest.mark.parametrize("name", ["openmpi", "srun"])
def test_what_a_job_sets_outweighs_what_the_launcher_would(name: str) -> None:
    launcher = launcher_for(name)
    for parameter, value in (("mpi_yield_when_idle", "0"), ("btl_tcp_if_include", "10.0.0.0/8")):
        job = with_env(**{f"OMPI_MCA_{parameter}": value})
        assert launcher.env(job)[f"OMPI_MCA_{parameter}"] == value
        # A word of mpirun would outweigh the environment.
        assert parameter not in launcher.argv(job)


@pytest.mark.parametrize(
    ("env", "words", "unit"),
    [
        ({}, ["--bind-to", "none"], "none"),
        ({POLICY_4: "socket"}, ["--bind-to", "socket"], "sockets"),
        # Open MPI 4 does not read this one, nor version 5 the other one.
        ({POLICY_5: "package"}, ["--bind-to", "package"], "sockets"),
        ({POLICY_4: "core:overload-allowed"}, ["--bind-to", "core:overload-allowed"], "cores"),
        ({POLICY_4: "core", POLICY_5: "core"}, ["--bind-to", "core"], "cores"),
    ],
)
def test_what_ranks_are_bound_to(env: dict[str, str], words: list[str], unit: str) -> None:
    said = launcher_for("openmpi").argv(with_env(**env))
    at = said.index("--bind-to")
    assert said[at : at + 2] == words
    assert f"--cpu-bind={unit}" in launcher_for("srun").argv(with_env(**env))


def test_each_version_has_its_own_binding_where_both_are_said() -> None:
    job = with_env(**{POLICY_4: "socket", POLICY_5: "core"})
    assert "--bind-to" not in launcher_for("openmpi").argv(job)
    with pytest.raises(
        UsageError, match=f"{POLICY_4}=socket and {POLICY_5}=core: srun binds ranks to one of"
    ):
        launcher_for("srun").argv(job)
    with pytest.raises(UsageError, match=f"{POLICY_4}=l3cache: srun binds ranks to one of none, hwthread"):
        launcher_for("srun").argv(with_env(**{POLICY_4: "l3cache"}))


def test_mpich() -> None:
    launcher = launcher_for("mpich")
    words = launcher.argv(JOB)
    assert words[words.index("-hosts") + 1] == "198.18.0.12:1,198.18.0.11:1"
    assert words[words.index("-iface") + 1] == "eth1"
    assert words[-3:] == ["/tmp/probe", "--op", "x"]
    assert launcher.env(JOB)["UCX_NET_DEVICES"] == "eth1"
    assert "UCX_NET_DEVICES" not in launcher.env(shared(JOB))


def test_srun() -> None:
    launcher = launcher_for("srun")
    words = launcher.argv(JOB)
    assert words[words.index("--nodelist") + 1] == "node02,node01"
    assert "--distribution=arbitrary" in words
    assert not {word.partition("=")[0] for word in words} & {"--jobid", "--mpi", "--overcommit"}
    assert launcher.env(JOB)["OMPI_MCA_btl_tcp_if_include"] == "eth1"


def test_srun_in_an_allocation() -> None:
    launcher = Srun(arguments=["--mpi=pmi2"], allocation="12", plugin="pmix")
    job = MpiJob(program="x", arguments=[], hosts=[*JOB.hosts, *JOB.hosts], shared_cpu=True)
    words = launcher.argv(job)
    assert words[:4] == ["srun", "--jobid=12", "--overlap", "--mpi=pmix"]
    assert words[-2:] == ["--mpi=pmi2", "x"]  # the last one counts
    assert words[words.index("--nodes") + 1] == "2"
    assert words[words.index("--ntasks") + 1] == "4"
    assert words[words.index("--nodelist") + 1] == "node02,node01,node02,node01"
    assert "--overcommit" in words and "--cpu-bind=none" in words


@pytest.mark.parametrize("address", ["fd00::1", "a,b", "-x", "", "a b"])
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_addresses_that_would_mean_something_else(name: str, address: str) -> None:
    job = MpiJob(program="x", arguments=[], hosts=[("node01", address)])
    with pytest.raises(UsageError, match="node01: "):
        launcher_for(name).argv(job)


def test_unknown_launcher() -> None:
    with pytest.raises(ConfigError, match="allowed: openmpi, mpich, srun"):
        launcher_for("aprun")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "address", "shared_cpu"),
    [
        ("openmpi", "127.0.0.1", False),
        ("openmpi", "198.18.0.11", True),
        ("mpich", "127.0.0.1", False),
        ("mpich", "127.0.0.1", True),
    ],
)
def test_the_library_here_starts_a_job(name: str, address: str, shared_cpu: bool) -> None:
    try:
        found = find_mpi(name)[0]
    except BuildError as error:
        pytest.skip(str(error))
    assert found.family == name
    assert any(digit.isdigit() for digit in found.version)
    launcher = launcher_for(found.family, found.mpirun)
    job = MpiJob(
        program="/bin/sh",
        # What ends before Hydra has told it all it has to tell ends Hydra with a SIGPIPE; an MPI program waits for it.
        arguments=["-c", 'echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $WULF_X"; sleep 0.3'],
        hosts=[("local1", address), ("local2", address)],
        interface="lo",
        shared_cpu=shared_cpu,
        env={"WULF_X": "it's a 'test'"},
    )
    answer = subprocess.run(
        launcher.argv(job),
        env={**os.environ, **launcher.env(job)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert sorted(answer.stdout.splitlines()) == ["rank 0 it's a 'test'", "rank 1 it's a 'test'"]
