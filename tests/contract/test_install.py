"""Putting the probes on nodes of which some cannot run them: over a real sshd."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.site import SshSite, ssh_cluster
from wulf.base.native.build import MpiLibrary, Probe
from wulf.node.cluster.launcher import launcher_for
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet import install

#: A program that wants a library which is not on a node where LACKS is set.
PROBE = """#!/bin/sh
if [ "$LACKS" = {kind} ]; then
    echo "$0: error while loading shared libraries: libmpi.so.40: cannot open shared object file" >&2
    exit 127
fi
echo 1
"""
OPENMPI = MpiLibrary(compiler="/usr/bin/mpicc", family="openmpi", version="Open MPI 4.1.4")


def probe(directory: Path, kind: str) -> Probe:
    path = directory / f"wulf-probe-{kind}"
    path.write_text(PROBE.format(kind=kind))
    path.chmod(0o755)
    return Probe(path=path, digest="0123456789abcdef", mpi=OPENMPI if kind == "mpi" else None)


def installed(site: SshSite, tmp_path: Path, nodes: list[str], starter: str = "sh") -> install.Places:
    transport = open_transport(ssh_cluster(site))
    try:
        return install.install(
            ssh_cluster(site),
            transport,
            [probe(tmp_path, "net"), probe(tmp_path, "mpi")],
            launcher_for("openmpi", starter),
            nodes,
            lambda _: None,
        )
    finally:
        transport.close()


def test_a_node_without_mpi_is_left_out_of_mpi_only(ssh_site: SshSite, tmp_path: Path) -> None:
    places = installed(ssh_site, tmp_path, ["athome", "lacking"])
    assert set(places.net) == {"athome", "lacking"}
    assert places.lacks_net == {}
    assert list(places.lacks_mpi) == ["lacking"]
    assert "lacking" in places.lacks_mpi["lacking"]
    assert "libmpi.so.40" in places.lacks_mpi["lacking"]


@pytest.mark.parametrize("nodes", [["athome", "lacking", "elsewhere"], ["elsewhere", "athome", "lacking"]])
def test_a_node_with_another_home_directory_is_left_out_of_mpi_only(
    ssh_site: SshSite, tmp_path: Path, nodes: list[str]
) -> None:
    places = installed(ssh_site, tmp_path, nodes)
    assert set(places.lacks_mpi) == {"lacking", "elsewhere"}
    assert f"{ssh_site.directory}/elsewhere" in places.lacks_mpi["elsewhere"]
    assert places.net["elsewhere"].startswith(f"{ssh_site.directory}/elsewhere/")
    assert places.net["athome"].startswith(f"{ssh_site.directory}/home/")
    assert all(Path(place).is_file() for place in places.net.values())
    assert str(places.mpi).startswith(f"{ssh_site.directory}/home/")


def test_a_node_without_the_launcher_is_left_out_of_mpi(ssh_site: SshSite, tmp_path: Path) -> None:
    places = installed(ssh_site, tmp_path, ["athome"], "/nowhere/mpirun")
    assert list(places.lacks_mpi) == ["athome"]
    assert "/nowhere/mpirun" in places.lacks_mpi["athome"]


def test_a_node_that_says_nothing_sensible_is_left_out_of_all(ssh_site: SshSite, tmp_path: Path) -> None:
    places = installed(ssh_site, tmp_path, ["athome", "nologin"])
    assert set(places.net) == {"athome"}
    assert "nologin" in places.lacks_net["nologin"]
    assert set(places.lacks_mpi) == {"nologin"}
