"""What several files of unit tests are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.guard_states import Node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Return a guard at work in a network and file systems of its own."""
    made = Node(tmp_path)
    yield made
    made.end()
