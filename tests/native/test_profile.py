"""What the library that counts says of a program, against what the program says of itself."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.native.conftest import MpiProbe
from tests.native.programs import program, required
from tests.tiers import mostly_thorough

pytestmark = pytest.mark.mpi


def ran(mpi_probe: MpiProbe, path: Path, ranks: int) -> subprocess.CompletedProcess[str]:
    """Run a program whose messages are counted into a file."""
    library = required(mpi_probe.family)
    counting, heat = (program(name, library.family) for name in ("libwulf-profile.so", "wulf-heat"))
    variables = {"LD_PRELOAD": str(counting), "WULF_PROFILE": str(path)}
    root = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    more = ["--oversubscribe"] if library.family == "openmpi" else []
    words = [library.mpirun, *more, "-n", str(ranks), str(heat), "--steps", "20"]
    done = subprocess.run(
        words, env=os.environ | variables | root, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("ranks", mostly_thorough([2, 3], 3))
def test_it_counts_what_the_program_has_sent(mpi_probe: MpiProbe, tmp_path: Path, ranks: int) -> None:
    path = tmp_path / "profile.json"
    done = ran(mpi_probe, path, ranks)
    says = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    profile = json.loads(path.read_text())
    sent = [one for one in profile["messages"] if one["kind"] == "point to point"]
    assert sum(one["count"] for one in sent) == int(says["messages"]) == 20 * 2 * ranks
    assert sum(one["bytes"] for one in sent) == int(says["bytes"])
    assert all(one["bytes"] < one["below_bytes"] * one["count"] <= 2 * one["bytes"] for one in sent)
    assert [rank["partners"] for rank in profile["ranks"]] == [min(ranks - 1, 2)] * ranks
    for rank in profile["ranks"]:
        assert 0 < sum(rank["ns"].values()) <= rank["run_ns"]
    assert "LD_PRELOAD" not in done.stderr


def test_a_program_without_its_variable_is_left_alone(mpi_probe: MpiProbe, tmp_path: Path) -> None:
    counting = program("libwulf-profile.so", mpi_probe.family)
    done = subprocess.run(
        ["sh", "-c", "echo untouched"],
        env=os.environ | {"LD_PRELOAD": str(counting)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "untouched\n", "")
    assert list(tmp_path.iterdir()) == []


def test_it_follows_no_link(mpi_probe: MpiProbe, tmp_path: Path) -> None:
    """In a directory that everybody can write to, somebody may have put a link where the file will be."""
    (tmp_path / "theirs").write_text("untouched")
    (tmp_path / "profile.json").symlink_to(tmp_path / "theirs")
    done = ran(mpi_probe, tmp_path / "profile.json", 2)
    assert "wulf-profile: cannot write" in done.stderr
    assert (tmp_path / "theirs").read_text() == "untouched"
