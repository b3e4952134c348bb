"""A virtual cluster for the tests, in a directory of its own so that it never meets one of the user's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from wulf import lab


def pytest_configure() -> None:
    """Let programs under test be interrupted also where the tests run in the background, which ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def require_lab() -> None:
    """Skip where no virtual cluster can run; fail when it was asked for (WULF_REQUIRE=lab)."""
    missing = lab.supported()
    if not missing:
        return
    reason = "no virtual cluster here: " + "; ".join(missing)
    if "lab" in os.environ.get("WULF_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def lab_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
    """Four nodes, up for the whole session."""
    require_lab()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WULF_LAB_DIR", str(tmp_path_factory.mktemp("lab") / "state"))
        raised, was_up = lab.up(4)
        assert not was_up
        try:
            yield raised
        finally:
            raised.down()
