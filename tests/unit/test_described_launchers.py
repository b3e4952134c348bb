"""Launchers that files describe: their words are those of documented options, and bindings mean what they should."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from wulf.base.contracts import MpiJob
from wulf.base.errors import UsageError
from wulf.base.native.build import identify
from wulf.node.cluster.launcher import families, launcher_for, names
from wulf.node.cluster.launcher.hosts import UNITS

GOLDEN = Path(__file__).parents[1] / "golden" / "mpi"
JOB = MpiJob(
    program="/tmp/probe",
    arguments=["--op", "x"],
    hosts=[("b", "10.0.0.2"), ("a", "10.0.0.1"), ("a", "10.0.0.1")],
    interface="eth1",
    env={"WULF_X": "a b"},
)
#: Launcher → file of the help text that it was written from, and options that only the manual has.
HELP = {
    "intelmpi": (
        "intelmpi-2021.18-help.txt",
        {"-host"},
    ),  # of an argument set: Developer Reference, local options
    "mvapich": ("mvapich2-mpirun_rsh-usage.txt", set()),
}


@pytest.mark.parametrize("name", HELP)
@pytest.mark.parametrize("binding", [None, *UNITS])
def test_every_option_is_documented(name: str, binding: str | None) -> None:
    file, more = HELP[name]
    known = set(re.findall(r"(?<![\w-])-[a-z][a-z-]*", (GOLDEN / file).read_text())) | more
    known |= {word.partition("/")[0] for word in known}
    if binding is not None and (name, binding) == ("mvapich", "hwthread"):
        return  # it cannot: see below
    words = launcher_for(name, binding=binding).argv(JOB)  # type: ignore[arg-type]
    options = {word for word in words[1 : words.index("/tmp/probe")] if word.startswith("-")}
    assert options
    assert options <= known


def test_intel_mpi() -> None:
    launcher = launcher_for("intelmpi", arguments=["-print-rank-map"])
    words = launcher.argv(JOB)
    program = ["/tmp/probe", "--op", "x"]
    sets = ["-n", "1", "-host", "10.0.0.2", *program, ":", "-n", "2", "-host", "10.0.0.1", *program]
    assert words[-len(sets) :] == sets
    assert words[words.index("-iface") + 1] == "eth1"
    assert words.index("-print-rank-map") < words.index("-host")
    env = launcher.env(JOB)
    assert (env["FI_TCP_IFACE"], env["WULF_X"], env["I_MPI_PIN"]) == ("eth1", "a b", "0")


def test_mvapich() -> None:
    launcher = launcher_for("mvapich")
    words = launcher.argv(JOB)
    assert words[:5] == ["mpirun_rsh", "-ssh", "-export", "-np", "3"]
    assert words[5:8] == ["10.0.0.2", "10.0.0.1", "10.0.0.1"]
    assert words[8:] == ["MV2_ENABLE_AFFINITY=0", "WULF_X=a b", "/tmp/probe", "--op", "x"]
    hydra = launcher_for("mvapich-hydra").argv(JOB)
    assert hydra[hydra.index("-hosts") + 1] == "10.0.0.2:1,10.0.0.1:2"


BOUND = {
    "openmpi": (["--bind-to", "socket"], {}),
    "mpich": (["-bind-to", "socket"], {}),
    "srun": (["--cpu-bind=sockets"], {}),
    "intelmpi": ([], {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "socket"}),
    "mvapich": ([], {"MV2_ENABLE_AFFINITY": "1", "MV2_CPU_BINDING_LEVEL": "socket"}),
    "mvapich-hydra": ([], {"MV2_CPU_BINDING_LEVEL": "socket"}),
}


@pytest.mark.parametrize("name", BOUND)
def test_every_launcher_binds(name: str) -> None:
    words, env = BOUND[name]
    launcher = launcher_for(name, binding="socket")
    said = launcher.argv(JOB)
    assert any(said[at : at + len(words)] == words for at in range(len(said)))
    assert env.items() <= launcher.env(JOB).items()


def test_all_of_them_are_tried_here() -> None:
    assert set(names()) == set(BOUND)
    assert {name: families(name) for name in ("openmpi", "intelmpi")} == {
        "openmpi": ("openmpi",),
        "intelmpi": ("mpich",),
    }


def test_a_job_outweighs_the_file() -> None:
    job = msgspec.structs.replace(JOB, env={"OMPI_MCA_hwloc_base_binding_policy": "core"})
    assert "--cpu-bind=cores" in launcher_for("srun", binding="none").argv(job)
    words = launcher_for("openmpi", binding="none").argv(job)
    assert words[words.index("--bind-to") + 1] == "core"


def test_what_a_launcher_cannot_bind_to_is_said() -> None:
    with pytest.raises(UsageError, match="mvapich cannot bind ranks to hwthread; it can to: none, core"):
        launcher_for("mvapich", binding="hwthread")


def test_libraries_that_are_made_of_mpich_are_told_apart(tmp_path: Path) -> None:
    def compiler(name: str, verbose: str, version: str) -> str:
        directory = tmp_path / name
        directory.mkdir()
        (directory / "mpicc").write_text(
            f"#!/bin/sh\ncase $1 in -show) echo gcc -lmpi;; -v) echo '{verbose}';; *) exit 1;; esac\n"
        )
        (directory / "mpichversion").write_text(f"#!/bin/sh\necho '{version}'\n")
        for file in directory.iterdir():
            file.chmod(0o755)
        return str(directory / "mpicc")

    intel = identify(compiler("intel", "mpigcc for the Intel(R) MPI Library 2021.18 for Linux*", ""))
    assert intel is not None
    assert (intel.version, intel.family, intel.launcher) == ("Intel MPI 2021.18", "mpich", "intelmpi")
    mvapich = identify(compiler("mvapich", "", "MVAPICH2 Version:     \t2.3.7"))
    assert mvapich is not None
    assert (mvapich.version, mvapich.family, mvapich.launcher) == ("MVAPICH2 2.3.7", "mpich", "mvapich")
    plain = identify(compiler("plain", "", "MPICH Version:    4.0.2"))
    assert plain is not None
    assert (plain.version, plain.launcher) == ("MPICH 4.0.2", "mpich")
