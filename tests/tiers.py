"""Which parameters of a test are for `make test`: the others are for `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def mostly_thorough(values: Iterable[object], *kept: object) -> list[object]:
    """Return the parameters with the mark `thorough` on all but those that stay in `make test`."""
    return [value if value in kept else pytest.param(value, marks=pytest.mark.thorough) for value in values]


def thorough(*values: object) -> object:
    """Return one parameter, or the values of one, for `make test-all` only."""
    return pytest.param(*values, marks=pytest.mark.thorough)
