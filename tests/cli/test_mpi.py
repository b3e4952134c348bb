"""``wulf mpi`` on this machine: a default that was made bad is found, and the file that mends it is proven."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.command import wulf
from wulf.tools.collectives.rules import classic
from wulf.tools.collectives.rules.rules import chosen

needs_openmpi = pytest.mark.skipif(shutil.which("mpicc.openmpi") is None, reason="Open MPI is not installed")

#: Messages in parts of 1 B: no library would decide so.
BAD = """
[cluster]
nodes = "local[1-2]"
transport = "local"

[mpi]
env = { OMPI_MCA_coll_tuned_use_dynamic_rules = "1", OMPI_MCA_coll_tuned_bcast_algorithm = "3", \
OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize = "1" }
"""


@pytest.mark.mpi
@pytest.mark.thorough
@needs_openmpi
def test_a_bad_default_is_found_and_the_file_is_proven(tmp_path):
    (tmp_path / "cluster.toml").write_text(BAD, encoding="utf-8")
    words = (
        "tune collectives --cluster cluster.toml --mpi openmpi --collectives bcast --max-size 256 --budget 4m "
        "--seed 1"
    )
    done = wulf(
        tmp_path, *words.split(), "--out", "rules.conf", "--html", "page.html", "--json", timeout=1500
    )
    assert done.returncode in (0, 3), done.stderr + done.stdout
    found = json.loads(done.stdout)
    kept = [cell for cell in found["cells"] if cell["kept"]]
    if (
        not kept
    ):  # beside other work nothing may be proven, or ranks that spin not be heard: then there is no file
        assert not (tmp_path / "rules.conf").exists() and not found["text"]
        return
    assert done.returncode == 0, done.stderr
    assert all(cell["ratio"]["high"] < 1 / cell["limit"] for cell in kept)
    assert {effect["state"] for effect in found["effects"]} == {"in effect"}
    rules = classic.read((tmp_path / "rules.conf").read_text(encoding="utf-8"))
    for cell in kept:
        assert chosen(rules, "bcast", 2, cell["size_bytes"]).algorithm > 0
        assert chosen(rules, "bcast", 3, cell["size_bytes"]).algorithm == 0
    assert found["environment"]["OMPI_MCA_coll_tuned_dynamic_rules_filename"] == str(tmp_path / "rules.conf")
    assert found["mean"]["high"] < 1
    assert json.loads((tmp_path / "rules.conf.json").read_text(encoding="utf-8")) == found
    assert "Which algorithm wins where" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tune", "collectives", "--collectives", "pingpong"), "mpi_pingpong is none"),
        (("tune", "collectives", "--collectives", "gossip"), "mpi_gossip"),
        (("tune", "collectives", "--collectives", ","), "values separated by ','"),
        (("tune", "collectives", "--ranks", "1"), "from 2 on"),
        (("tune", "collectives", "--ranks", "3"), "multiple"),
        (("tune", "collectives", "--max-size", "4"), "8 B or more"),
        (("tune", "collectives", "--collectives", "reduce_scatter"), "reduce_scatter_block is"),
        (("tune", "collectives", "--out", "nowhere/rules.conf"), "--out nowhere/rules.conf"),
        (("tune", "collectives", "--html", "nowhere/page.html"), "--html nowhere/page.html"),
        (("compare", "libraries", "openmpi"), "two libraries"),
        (("compare", "libraries", "openmpi", "openmpi"), "nothing to compare"),
    ],
)
@needs_openmpi
def test_what_cannot_be_is_said(tmp_path, words, said):
    done = wulf(tmp_path, *words, *(("--cluster", "local")))
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.glob("rules*"))


@pytest.mark.mpi
@pytest.mark.thorough
@needs_openmpi
@pytest.mark.skipif(shutil.which("mpicc.mpich") is None, reason="MPICH is not installed")
def test_two_libraries_are_compared_at_collectives(tmp_path):
    done = wulf(
        *(tmp_path, "compare", "libraries", "openmpi", "mpich", "--cluster", "local", "--launches", "8"),
        *("--ops", "mpi_bcast,mpi_pingpong", "--sizes", "8,1KiB", "--html", "page.html", "--json"),
        timeout=300,
    )
    assert done.returncode in (0, 3), done.stderr
    (found,) = json.loads(done.stdout)
    assert found["differing_facts"] == {"MPI library": ["openmpi", "mpich"]}
    cells = {(cell["op"], cell["size_bytes"], tuple(cell["pair"])) for cell in found["cells"]}
    assert {("mpi_bcast", 8, ("local1", "local2")), ("mpi_pingpong", 1024, ("local1", "local2"))} <= cells
    # A collective whose starts were all late has no median in that launch, and a launch may have failed.
    counts = [cell["ratio"]["n"] for cell in found["cells"]]
    assert 4 <= max(counts) <= 8 and min(counts) > 0, found
    assert (tmp_path / "page.html").is_file()
