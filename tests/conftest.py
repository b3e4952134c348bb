"""A virtual cluster for the tests, in a directory of its own so that it never meets one of the user's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from wulf import lab

TESTS = Path(__file__).parent
#: Folders whose tests bring along all that they touch, so that several of them may run at the same time.
TOGETHER = ("unit", "golden", "statistics", "contract")
#: Folders of both kinds: a contract is kept by the virtual cluster, too.
BOTH = ("contract",)


def pytest_configure(config: pytest.Config) -> None:
    """Let programs under test be interrupted also where the tests run in the background, which ignores SIGINT."""
    # A slow machine is no finding.
    hypothesis.settings.register_profile(
        "wulf", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("wulf")
    config.addinivalue_line(
        "markers", "xdist_group: tests that share something (also where pytest-xdist is not in use)"
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", choices=("together", "alone"), help="only what may run side by side, or only the rest"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read the folders of the other part."""
    part = config.getoption("--part")
    if part is None or collection_path.parent != TESTS or not collection_path.is_dir():
        return None
    mine = collection_path.name in BOTH or (collection_path.name in TOGETHER) == (part == "together")
    return None if mine else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the chosen part; tests that share a fixture go to the same worker of pytest-xdist."""
    part = config.getoption("--part")
    chosen = [item for item in items if part in (None, _part(item))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
    for item in items:
        if place := _shared_place(item):
            item.add_marker(pytest.mark.xdist_group(place))


def _part(item: pytest.Item) -> str:
    """Whether a test has all it touches to itself; the others need the machine, which they share, to themselves."""
    own = item.path.relative_to(TESTS).parts[0] in TOGETHER
    return "together" if own and item.get_closest_marker("lab") is None else "alone"


def _shared_place(item: pytest.Item) -> str:
    """Return the folder or the file whose tests share a fixture with this one; empty when none do."""
    known = item._fixtureinfo.name2fixturedefs.values()
    scopes = {
        definition.scope for found in known for definition in found if definition.baseid.startswith("tests/")
    }
    if scopes & {"session", "package"}:
        return item.path.parent.name
    return item.path.stem if "module" in scopes else ""


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
