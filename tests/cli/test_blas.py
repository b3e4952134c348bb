"""``wulf bench blas`` on this machine, with the libraries that are installed here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import wulf

ROOT = Path("/usr/lib/x86_64-linux-gnu")
HERE = sorted(str(path) for path in ROOT.glob("*/libblas.so.3"))
pytestmark = pytest.mark.skipif(len(HERE) < 2, reason="fewer than two BLAS libraries are installed")


@pytest.mark.thorough
def test_all_libraries_are_compared(tmp_path):
    words = ("bench", "blas", "--cluster", "local", "--size", "200", "--threads", "1", "--seed", "4")
    done = wulf(tmp_path, *words, "--json", timeout=400)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sorted(one["path"] for one in found["libraries"]) == HERE
    assert not found["left_out"] and not found["failures"]
    assert sorted(one["library"] for one in found["ranking"]) == sorted(
        one["name"] for one in found["libraries"]
    )
    first, *others = found["ranking"]
    assert first["verdict"] == "fastest" and first["ratio"] is None
    for rank in found["ranking"]:
        assert rank["rate"]["low"] <= rank["rate"]["value"] <= rank["rate"]["high"]
        assert rank["rate"]["unit"] == "GFLOPS" and rank["rate"]["n"] == found["rounds"]
    assert all(rank["ratio"]["low"] <= rank["ratio"]["value"] <= rank["ratio"]["high"] for rank in others)


def test_a_library_that_does_not_work_is_named(tmp_path):
    """Wrong products, another word size, a layer over a library elsewhere: each is left out with its reason."""
    source = tmp_path / "wrong.c"
    source.write_text("void dgemm_(void) {}\n")
    library = tmp_path / "libwrong.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    layer = tmp_path / "liblayer.so"
    subprocess.run(
        ["cc", "-shared", "-Wl,--no-as-needed", "-o", layer, HERE[0], f"-Wl,-rpath,{Path(HERE[0]).parent}"],
        check=True,
    )
    paths = [*HERE[:2], str(library), str(layer), str(tmp_path / "none.so")]
    words = (
        "bench",
        "blas",
        "--cluster",
        "local",
        "--libraries",
        ",".join(paths),
        "--size",
        "64",
        "--rounds",
        "1",
    )
    done = wulf(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "libwrong.so on local1: wulf-dgemm: a product is wrong" in said
    assert "liblayer.so on local1: its dgemm_ is in" in said
    assert "none.so on local1: wulf-dgemm:" in said and "No such file" in said
    assert "(no interval)" in said and "not enough evidence" in said


def test_nothing_to_compare_is_refused_with_how_to_get_more(tmp_path):
    words = ("bench", "blas", "--cluster", "local", "--libraries", f"{HERE[0]},/nonesuch/libblas.so.3")
    done = wulf(tmp_path, *words)
    assert done.returncode == 2
    assert "nothing to compare" in done.stderr and "apt install libopenblas0-pthread" in done.stderr
    one = wulf(tmp_path, "bench", "blas", "--cluster", "local", "--libraries", HERE[0])
    assert one.returncode == 2 and "two absolute paths or more" in one.stderr


def test_a_shipped_program_is_built_and_its_path_printed(tmp_path):
    done = wulf(tmp_path, "program", "shipped", "dgemm", "--cluster", "local")
    assert done.returncode == 0, done.stderr
    assert subprocess.run([done.stdout.strip(), "--version"], check=False).returncode == 0
    assert "heat" in wulf(tmp_path, "program", "shipped").stdout
    assert Path(wulf(tmp_path, "program", "shipped", "heat", "--source").stdout.strip()).name == "heat.c"
    unknown = wulf(tmp_path, "program", "shipped", "haet")
    assert unknown.returncode == 2 and "did you mean 'heat'" in unknown.stderr


@pytest.mark.thorough
@pytest.mark.mpi
@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="openmpi is not installed")
def test_a_shipped_program_is_measured_as_any_command(tmp_path):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    path = wulf(
        tmp_path, "program", "shipped", "heat", "--cluster", "local", "--mpi", "openmpi"
    ).stdout.strip()
    command = f"mpirun.openmpi -np 1 --bind-to none {path} --rows 64 --steps 10"
    words = ("measure", "--cluster", "local", "--command", command, "--max-launches", "6")
    done = wulf(tmp_path, *words, **root)
    assert done.returncode in (0, 3), done.stderr  # 3: the target is missed in so short a time
    assert "run time" in done.stdout
