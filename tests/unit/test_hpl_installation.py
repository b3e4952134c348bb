"""Where HPL is, which MPI library starts it, and where it runs."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.test_hpl_result import manifest
from wulf.base.contracts import NodeResult
from wulf.base.errors import TransportError, UsageError
from wulf.base.native.build import MpiLibrary
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.tools.hpl import installation, launching
from wulf.tools.hpl.record import HplSetting

LINKED = {"openmpi": "libmpi.so.40 => /lib/libmpi.so.40", "mpich": "libmpich.so.12 => /lib/libmpich.so.12"}
OPENMPI = MpiLibrary(compiler="/opt/openmpi/bin/mpicc", family="openmpi", version="Open MPI 4.1.4")
MPICH = MpiLibrary(compiler="/usr/bin/mpicc.mpich", family="mpich", version="MPICH 4.0.2")
CHOSEN = HplSetting(nb=128, p=2, q=2, threads=1, bcast=1, depth=1, swap=2)


@pytest.fixture
def here():
    transport = open_transport(inventory.local())
    yield transport
    transport.close()


class Nodes:
    """Nodes that have a program which is linked with a library, and the srun of an allocation."""

    def __init__(self, linked="", refused=()):
        self.linked = linked
        self.refused = refused
        self.said = []

    def run(self, argv, nodes, **_):
        self.said.append((list(argv), list(nodes)))
        words = " ".join(argv)
        text = "/home/me"
        if "ldd" in words:
            text = LINKED.get(self.linked, "not a dynamic executable")
        elif argv[0] == "srun":
            text = "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\n"
        return {
            node: NodeResult(
                node=node,
                status="exit" if node in self.refused else "ok",
                exit_code=int(node in self.refused),
                stdout=text.encode(),
                stderr=b"",
                reason="read-only" if node in self.refused else "",
            )
            for node in nodes
        }


def config(launcher=None, compiler=None):
    lines = [f'{key} = "{value}"' for key, value in (("launcher", launcher), ("compiler", compiler)) if value]
    return inventory.parse("\n".join(['[cluster]\nnodes = "node[01-02]"\n[mpi]', *lines]), "cluster.toml")


@pytest.fixture
def libraries(monkeypatch):
    """The libraries of this machine, which a test may take away."""
    found = [OPENMPI, MPICH]

    def find_mpi(wanted=None):
        return [one for one in found if wanted in (None, one.family, one.compiler)]

    monkeypatch.setattr(installation.build, "find_mpi", find_mpi)
    return found


def site(nodes, config, mpi=None):
    plan = msgspec.structs.replace(manifest().plan, mpi=mpi)
    return installation.site(config, nodes, plan, [], "2026-11-23-1200", lambda _: None)


def argv(site, **more):
    return site.launcher.argv(launching._job(site, msgspec.structs.replace(CHOSEN, **more)))


def test_a_path_that_begins_where_it_is_asked_for_is_made_a_whole_one(here, tmp_path, monkeypatch):
    (tmp_path / "xhpl").write_text("#!/bin/sh\n")
    (tmp_path / "xhpl").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert installation.program(here, ["local1"], "./xhpl") == f"{tmp_path}/./xhpl"
    assert installation.program(here, ["local1"], str(tmp_path / "xhpl")) == str(tmp_path / "xhpl")
    # A command of the shell has no path.
    assert installation.program(here, ["local1"], "true") == "true"


@pytest.mark.parametrize(
    ("linked", "mpi", "launcher", "compiler", "command"),
    [
        ("mpich", None, None, None, "/usr/bin/mpirun.mpich"),
        ("openmpi", None, None, None, "/opt/openmpi/bin/mpirun"),
        # A script, or a static program: what is asked for.
        ("", "mpich", None, None, "/usr/bin/mpirun.mpich"),
        ("mpich", "mpich", None, "/opt/openmpi/bin/mpicc", "/usr/bin/mpirun.mpich"),
        ("mpich", None, None, "/usr/bin/mpicc.mpich", "/usr/bin/mpirun.mpich"),
        ("openmpi", None, "mpich", None, "/usr/bin/mpirun.mpich"),
    ],
)
def test_the_library_that_is_asked_for_starts_the_job_or_else_that_of_the_program(
    libraries, linked, mpi, launcher, compiler, command
):
    words = argv(site(Nodes(linked), config(launcher, compiler), mpi))
    assert words[0] == command
    assert ("-disable-auto-cleanup" in words) == ("mpich" in command)


@pytest.mark.parametrize(("mpi", "compiler"), [("mpich", None), (None, "/usr/bin/mpicc.mpich")])
def test_a_program_of_another_library_than_the_one_that_is_asked_for_is_refused(libraries, mpi, compiler):
    with pytest.raises(UsageError, match=r"is built with openmpi: mpich cannot start its ranks; .*--program"):
        site(Nodes("openmpi"), config(None, compiler), mpi)


def test_a_library_without_its_compiler_starts_jobs_all_the_same(libraries):
    libraries.clear()
    words = argv(site(Nodes("mpich"), config()))
    assert words[0] == "mpirun" and "-disable-auto-cleanup" in words


@pytest.mark.parametrize("compilers", [True, False])
@pytest.mark.parametrize(("linked", "plugin"), [("openmpi", "pmix"), ("mpich", "pmi2")])
def test_srun_starts_the_job_in_the_allocation(libraries, monkeypatch, linked, plugin, compilers):
    if not compilers:
        libraries.clear()
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    found = site(Nodes(linked), config("srun"))
    words = argv(found)
    assert words[:4] == ["srun", "--jobid=12", "--overlap", f"--mpi={plugin}"]
    assert "--cpu-bind=cores" in words
    # The threads of a rank are not squeezed onto one core.
    words = argv(found, q=1, threads=2)
    assert "--cpu-bind=none" in words and "--overcommit" not in words and "--cpu-bind=cores" not in words


def test_a_run_has_a_directory_of_its_own_on_all_nodes_while_it_lasts(libraries):
    nodes = Nodes("openmpi")
    found = site(nodes, config())
    assert found.directory == "/home/me/.cache/wulf/hpl/2026-11-23-1200"
    nodes.said.clear()
    with pytest.raises(KeyboardInterrupt), launching.workplace(found):
        assert nodes.said == [(["mkdir", "-p", found.directory], ["node01", "node02"])]
        raise KeyboardInterrupt
    assert nodes.said[1:] == [(["rm", "-rf", found.directory], ["node01", "node02"])]


def test_a_node_that_takes_no_directory_is_named(libraries):
    found = site(Nodes("openmpi"), config())
    bad = msgspec.structs.replace(found, transport=Nodes(refused=("node02",)))
    with (
        pytest.raises(TransportError, match=r"2026-11-23-1200 cannot be made: node02.*read-only"),
        launching.workplace(bad),
    ):
        pass
