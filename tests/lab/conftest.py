"""Virtual clusters that a test may maltreat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require_lab
from tests.lab.host import Host
from wulf.node import lab


@pytest.fixture(scope="module")
def slurm_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
    """Three nodes with Slurm, on all of which jobs can start, for the tests of a module."""
    require_lab()
    missing = lab.supported(slurm=True)
    if missing:
        pytest.skip("; ".join(missing))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WULF_LAB_DIR", str(tmp_path_factory.mktemp("slurm") / "state"))
        raised, _ = lab.up(3, slurm=True)
        try:
            yield raised
        finally:
            raised.down()


@pytest.fixture
def spare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A place for a second lab that a test may maltreat; afterwards nothing of it may be left."""
    require_lab()
    directory = tmp_path / "spare"
    monkeypatch.setenv("WULF_LAB_DIR", str(directory))
    host = Host(directory)
    try:
        yield host
        left = lab.remains()
        if left is not None:
            left.down()
        assert host.leftovers() == []
    finally:
        left = lab.remains()
        if left is not None:
            left.down()
