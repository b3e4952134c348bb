"""Virtual clusters that a test may maltreat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require_lab
from tests.lab.host import Host
from wulf import lab


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
