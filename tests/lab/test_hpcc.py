"""A node whose default BLAS library is another one is named by HPC Challenge; a path makes it like the others."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli.command import wulf
from tests.lab.test_nodes import on

REFERENCE = Path("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3")
FAST = Path("/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3")
LINK = "libblas.so.3-x86_64-linux-gnu"
pytestmark = [
    pytest.mark.lab,
    pytest.mark.root,
    pytest.mark.thorough,
    pytest.mark.mpi,
    pytest.mark.skipif(shutil.which("hpcc") is None, reason="hpcc is not installed"),
    pytest.mark.skipif(
        not (REFERENCE.exists() and FAST.exists()), reason="two BLAS libraries are not installed"
    ),
]


def test_a_node_with_another_blas_library_is_named(lab_cluster, tmp_path):
    lab = {"WULF_LAB_DIR": os.environ["WULF_LAB_DIR"]}
    words = [
        "bench",
        "hpcc",
        "--cluster",
        "lab",
        "--size",
        "800",
        "--launches",
        "6",
        "--json",
        "--run",
        "planted",
    ]
    on(lab_cluster, "node03", f"update-alternatives --set {LINK} {REFERENCE}")
    try:
        done = wulf(tmp_path, *words, timeout=600, **lab)
        libraries = ["--libraries", f"{FAST},{REFERENCE}", "--size", "300"]
        blas = wulf(tmp_path, "bench", "blas", "--cluster", "lab", *libraries, "--json", timeout=300, **lab)
    finally:
        on(lab_cluster, "node03", f"update-alternatives --auto {LINK}")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["nodes"] == ["node01", "node02", "node03", "node04"] and not found["failures"]
    # Whether the figures of a busy machine tell it is not asked (tests/unit/test_hpcc.py does, on recorded ones): no
    # other node is named for it.
    named = {one["name"]: one["node"] for one in found["different"]}
    assert named.get("StarDGEMM_Gflops") in (None, "node03"), found["different"]
    assert found["by_node"].keys() == set(found["nodes"])
    # Loaded by its path, a library is what it is on every node, whatever the default is.
    assert blas.returncode == 0, blas.stderr
    ranking = json.loads(blas.stdout)["by_node"]["node03"]
    assert {one["library"] for one in ranking} == {"openblas-pthread", "blas"}
