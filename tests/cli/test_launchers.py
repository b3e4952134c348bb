"""MPI libraries with launchers of their own, and a site's own launcher, through a measured run.

Intel MPI was tried with the library itself when its launcher was written; here its compiler and its launcher are
stand-ins in front of MPICH (`tests.cli.stand_in`), as are those of MVAPICH2.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import stand_in
from tests.cli.command import wulf

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="MPICH is not installed"),
]
MEASURE = ["--ops", "mpi_pingpong", "--ladder", "short", "--budget", "15s"]
CLUSTER = '[cluster]\nnodes = "a,b"\ntransport = "local"\n[mpi]\n'


def measured(place: Path, *words: str) -> dict[str, object]:
    """Measure a little; return the head of the run."""
    done = wulf(place, "measure", "--run", "one", *MEASURE, *words, timeout=400)
    assert done.returncode in (0, 3), done.stderr
    return dict(json.loads((place / "runs" / "one" / "manifest.json").read_text()))


@pytest.mark.parametrize(
    ("make", "version", "words"),
    [
        (stand_in.intel_mpi, "Intel MPI 2021.18", ["-host"]),
        (stand_in.mvapich, "MVAPICH2 2.3.7", ["127.0.0.1 127.0.0.1", "MV2_CPU_BINDING_LEVEL=core"]),
    ],
)
def test_a_library_starts_its_jobs_by_its_own_launcher(
    tmp_path: Path, make: Callable[[Path], Path], version: str, words: list[str]
) -> None:
    compiler = make(tmp_path / "lib")
    (tmp_path / "cluster.toml").write_text(CLUSTER + 'binding = "core"\n')
    head = measured(tmp_path, "--mpi", str(compiler))
    software = head["software"]
    assert isinstance(software, dict)
    assert software["mpi"] == version
    started = (tmp_path / "lib" / "log").read_text()
    for word in words:
        assert word in started


def test_a_site_has_a_launcher_of_its_own(tmp_path: Path) -> None:
    place = tmp_path / "config" / "wulf" / "launchers"
    place.mkdir(parents=True)
    (place / "ours.toml").write_text(
        'id = "ours"\ntitle = "A script of ours"\nfamilies = ["mpich"]\n'
        f'command = "{tmp_path}/start"\narguments = ["{{ranks}}"]\n'
        '[hosts]\nstyle = "list"\neach = ["{address}:{ranks}"]\n'
        '[[evidence]]\nsource = "ours"\nhow_known = "checked"\n'
    )
    (tmp_path / "start").write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/log\nranks=$1\nshift 2\n'
        'exec mpiexec.mpich -n "$ranks" -launcher fork -disable-auto-cleanup "$@"\n'
    )
    (tmp_path / "start").chmod(0o755)
    (tmp_path / "cluster.toml").write_text(CLUSTER + 'launcher = "ours"\ncompiler = "mpicc.mpich"\n')
    measured(tmp_path)
    assert (tmp_path / "log").read_text().startswith("2 127.0.0.1:2 ")
    (tmp_path / "cluster.toml").write_text(CLUSTER + 'launcher = "ours"\ncompiler = "mpicc.openmpi"\n')
    if shutil.which("mpicc.openmpi"):
        refused = wulf(tmp_path, "measure", *MEASURE, timeout=400)
        assert refused.returncode == 1
        assert "cannot start jobs of Open MPI" in " ".join(refused.stderr.split())
