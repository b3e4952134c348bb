"""A virtual cluster for the tests, in a directory of its own so that it never meets one of the user's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

from wulf import lab

#: Group of the tests on a virtual cluster that name no other. A group has one worker of pytest-xdist, so one cluster.
#: There are two at the same time and no more: each node takes 14 of the 128 inotify instances that Linux gives a user.
LAB = "lab"
#: The other group.
OTHER_LAB = "other lab"


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


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the chosen part; tests that share a fixture go to the same worker of pytest-xdist."""
    part = config.getoption("--part")
    chosen = [item for item in items if part in (None, part_of(item))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = sorted(chosen, key=_turn)
    for item in items:
        place = _shared_place(item)
        if place and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(place))


def part_of(item: pytest.Item) -> str:
    """Whether a test may run beside others, or needs the machine to itself."""
    return "together" if item.get_closest_marker("alone") is None else "alone"


def _turn(item: pytest.Item) -> int:
    """Return a number by which tests are put in order, so that none of the workers has nothing to do at the end.

    The groups of the virtual clusters are the longest, and in them what raises a cluster of its own comes before the
    one that stays. Beside them there are the tests of the guard, which wait; then those that only calculate.
    """
    if item.get_closest_marker("lab") is not None:
        return 0 if "spare" in item.fixturenames else 1
    return 2 if item.get_closest_marker("root") is not None else 3


def _shared_place(item: pytest.Item) -> str:
    """Return the folder or the file whose tests share a fixture with this one; empty when none do."""
    if item.get_closest_marker("lab") is not None:
        return LAB
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
def raised_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
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


@pytest.fixture
def lab_cluster(raised_lab: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> lab.Lab:
    """Four nodes, which are the lab (``WULF_LAB_DIR``) for this test: no other test of the worker meets them."""
    monkeypatch.setenv("WULF_LAB_DIR", str(raised_lab.directory))
    return raised_lab
