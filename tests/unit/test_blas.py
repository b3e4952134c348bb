"""BLAS libraries: found, told apart, proven to be in use; with the libraries that are installed here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from wulf.base.errors import ProbeError, UsageError
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.programs import blas_libraries
from wulf.node.programs import blas_runs as procedure
from wulf.stats.estimate.ranking import rank, rounds_needed
from wulf.tools.hpl.libraries import libraries_of

ROOT = Path("/usr/lib/x86_64-linux-gnu")
REFERENCE = ROOT / "blas" / "libblas.so.3"


@pytest.fixture
def here():
    transport = open_transport(inventory.local())
    yield transport
    transport.close()


def installed_here():
    return sorted(str(path) for path in ROOT.glob("*/libblas.so.3"))


def test_a_library_that_several_paths_lead_to_is_there_once():
    found = blas_libraries.find(
        "default\t/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\n"
        "/usr/lib/x86_64-linux-gnu/atlas/libblas.so.3.10.3\t/usr/lib/x86_64-linux-gnu/atlas/libblas.so.3\n"
        "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\t/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\n"
        "/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3\t/usr/lib/x86_64-linux-gnu/libblas.so.3\n"
    )
    assert [(one.name, one.default) for one in found] == [("atlas", False), ("openblas-pthread", True)]


def test_names_are_unique():
    paths = [
        "/opt/a/lib/libopenblas.so",
        "/opt/b/lib/libopenblas.so",
        "/usr/lib/x86_64-linux-gnu/libblas.so.3",
    ]
    names = [one.name for one in blas_libraries.named([(path, False) for path in paths])]
    assert names == ["libopenblas.so", "/opt/b/lib/libopenblas.so", "libblas.so.3"]


def test_the_environment_keeps_what_was_there():
    assert blas_libraries.environment("/x/atlas/libblas.so.3") == {"LD_LIBRARY_PATH": "/x/atlas"}
    found = blas_libraries.environment(
        "/opt/lib/libmine.so", 2, {"LD_LIBRARY_PATH": "/mpi", "LD_PRELOAD": "/a.so"}
    )
    assert found["LD_LIBRARY_PATH"] == "/opt/lib:/mpi"
    assert found["LD_PRELOAD"] == "/opt/lib/libmine.so:/a.so"
    assert {found["OMP_NUM_THREADS"], found["OPENBLAS_NUM_THREADS"], found["BLIS_NUM_THREADS"]} == {"2"}


@pytest.mark.parametrize(
    "text", [b"", b'{"type":"library","path":"/a","version":""}\n', b"nonsense\n", b'{"type":"x"}']
)
def test_what_is_no_output_of_the_product_is_refused(text):
    with pytest.raises(ProbeError, match="wulf-dgemm printed"):
        blas_libraries.products(text)


@pytest.mark.skipif(not REFERENCE.exists(), reason="libblas3 is not installed")
def test_libraries_of_this_machine_are_found(here):
    found, missing = procedure.installed(here, ["local1"])
    assert set(installed_here()) == {one.path for one in found} and not missing
    assert sum(one.default for one in found) == 1


@pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is not installed")
@pytest.mark.parametrize("path", installed_here())
def test_a_program_is_proven_to_use_a_library(here, path):
    (library,) = blas_libraries.named([(path, False)])
    assert procedure.proven(here, "local1", "hpcc", library) == {"LD_LIBRARY_PATH": str(Path(path).parent)}


@pytest.mark.skipif(not REFERENCE.exists(), reason="libblas3 is not installed")
def test_a_path_that_is_built_in_is_seen(here, tmp_path):
    program = _calls_dgemm(
        tmp_path, str(REFERENCE), "-Wl,--disable-new-dtags", f"-Wl,-rpath,{REFERENCE.parent}"
    )
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(REFERENCE, other / "libblas.so.3")
    (library,) = blas_libraries.named([(str(other / "libblas.so.3"), False)])
    with pytest.raises(ProbeError, match=r"would use .*/blas/libblas\.so\.3.*RPATH"):
        procedure.proven(here, "local1", str(program), library)
    # What is loaded before all others comes before that, too.
    shutil.copy(REFERENCE, other / "libmine.so")
    (library,) = blas_libraries.named([(str(other / "libmine.so"), False)])
    assert procedure.proven(here, "local1", str(program), library)["LD_PRELOAD"] == str(other / "libmine.so")


@pytest.mark.skipif(not REFERENCE.exists(), reason="libblas3 is not installed")
def test_what_a_job_has_besides_is_part_of_the_proof(here, tmp_path):
    program = str(_calls_dgemm(tmp_path, str(REFERENCE)))
    mine = tmp_path / "libmine.so"
    shutil.copy(REFERENCE, mine)
    (library,) = blas_libraries.named([(str(REFERENCE), False)])
    found = procedure.proven(here, "local1", program, library, {"LD_LIBRARY_PATH": "/opt/mpi/lib", "A": "b"})
    assert found == {"LD_LIBRARY_PATH": f"{REFERENCE.parent}:/opt/mpi/lib"}
    with pytest.raises(ProbeError, match=r"would use .*/libmine\.so.*LD_PRELOAD"):
        procedure.proven(here, "local1", program, library, {"LD_PRELOAD": str(mine)})
    # HPL takes any library by its path, and keeps what its MPI library needs.
    found, left_out = libraries_of(here, ["local1"], program, str(mine), {"LD_LIBRARY_PATH": "/opt/mpi/lib"})
    assert found == {"libmine.so": {"LD_LIBRARY_PATH": f"{tmp_path}:/opt/mpi/lib", "LD_PRELOAD": str(mine)}}
    assert left_out == {}
    with pytest.raises(UsageError, match=r"--blas /nowhere/libmine\.so: it is not there on local1"):
        libraries_of(here, ["local1"], program, "/nowhere/libmine.so", {})


def test_a_library_that_is_built_in_cannot_be_exchanged(here, tmp_path):
    own = tmp_path / "own.c"
    own.write_text("void dgemm_(void) {}\n")
    program = _calls_dgemm(tmp_path, str(own), "-static")
    (library,) = blas_libraries.named([(str(REFERENCE), False)])
    with pytest.raises(ProbeError, match="cannot be replaced"):
        procedure.proven(here, "local1", str(program), library)
    with pytest.raises(ProbeError, match="there is no program nonesuch"):
        procedure.proven(here, "local1", "nonesuch", library)


def _calls_dgemm(directory: Path, *words: str) -> Path:
    source = directory / "calls.c"
    source.write_text("void dgemm_(void);\nint main(int n, char **v) { if (n > 9) dgemm_(); return !v; }\n")
    program = directory / "calls"
    subprocess.run(["cc", "-o", program, source, *words], check=True)
    return program


def test_rounds_are_enough_for_a_proof():
    for ways in (2, 3, 7):
        rounds = rounds_needed(ways)
        rates = {f"way{number}": [{"a": 10.0 - number}] * rounds for number in range(ways)}
        first, *others = rank(rates, 0.02)
        assert first.library == "way0" and all(one.verdict == "slower" for one in others)


def test_a_round_in_which_one_failed_does_not_count_for_it():
    rates = {"a": [{"n1": 10.0, "n2": 20.0}] * 10, "b": [{"n1": 9.0}] * 9 + [{"n1": 9.0, "n2": 18.0}]}
    first, second = rank(rates, 0.02)
    assert (first.library, second.rate.n, second.verdict) == ("a", 1, "no decision")
    assert first.rate.value == pytest.approx(200**0.5)
    assert second.ratio.value == pytest.approx(0.9)
