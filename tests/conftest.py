"""A virtual cluster for the tests, in a directory of its own so that it never meets one of the user's."""

from __future__ import annotations

import argparse
import functools
import gc
import os
import re
import signal
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

import hypothesis
import pytest

from wulf.node import lab

#: What `make quick`, `make test` and `make test-all` run: the second has the tests of the first, the third has neither.
TIERS = ("quick", "test", "all")
#: What pytest-xdist adds to the name of a test.
_GROUP = re.compile(r"@[^@\]]*$")
#: Where the fixtures of virtual clusters have them, below the directory of a worker.
LAB_PLACES = ("lab*/state", "slurm*/state", "*/spare")
#: Group of the tests on a virtual cluster that name no other. A group has one worker of pytest-xdist, so one cluster.
#: There are two at the same time and no more: each node takes 14 of the 128 inotify instances that Linux gives a user.
LAB = "lab"
#: The other group.
OTHER_LAB = "other lab"
#: The tests on virtual machines, which take none of those instances.
MACHINES = "virtual machines"


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
    if hasattr(config, "workerinput"):
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # takes virtual clusters down then, too
    if config.getoption("--note-passed"):
        config.pluginmanager.register(_Notes(config.getoption("--note-passed")))


@pytest.hookimpl(trylast=True)  # the reporter of the terminal is there then
def pytest_sessionstart(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Failures(reporter))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Look no more for garbage in what is there from now on: it takes some of the time of the tests."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take down the virtual clusters of workers that were ended: a run may be interrupted at any time."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        return
    base = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] - as pytest-xdist does
    for pattern in LAB_PLACES:
        for place in base.glob(f"popen-gw*/{pattern}"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("WULF_LAB_DIR", str(place))
                left = lab.remains()
                if left is not None:
                    left.down()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("wulf")
    group.addoption(
        "--tier", choices=TIERS, help="the tests of make quick, make test (with quick's), make test-all"
    )
    group.addoption("--shard", type=_shard, help="K/N: every N-th group of tests, beginning with the K-th")
    group.addoption("--passed-before", type=Path, help="leave out the tests that this file names")
    group.addoption("--note-passed", type=Path, help="write the name of every test that passes to this file")


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard: K/N, such as 2/4")
    return int(number), int(count)


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only the chosen tests; those that share a fixture go to the same worker of pytest-xdist."""
    for item in items:
        place = _shared_place(item)
        if place and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(place))
    wanted = config.getoption("--tier")
    chosen = [
        item for item in items if wanted in (None, tier(item)) or (wanted, tier(item)) == ("test", "quick")
    ]
    chosen = _not_passed(config, _of_shard(config, _in_order(chosen)))
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def tier(item: pytest.Item) -> str:
    """Return the tier of a test: the first of `TIERS` that runs it."""
    if "thorough" in _marks(item):
        return "all"
    return "quick" if _only_calculates(item) else "test"


def _only_calculates(item: pytest.Item) -> bool:
    marked = _marks(item) & {"root", "lab", "mpi", "browser"}
    return not marked and item.nodeid.startswith(("tests/unit/", "tests/golden/"))


@functools.cache  # each process of the tests asks all of them several times, before it runs any
def _marks(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


def _of_shard(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests of this shard: groups stay together, and the longest kinds are dealt out first."""
    number, count = config.getoption("--shard") or (1, 1)
    groups = {group: place for place, group in enumerate(dict.fromkeys(map(_group, items)))}
    return [item for item in items if groups[_group(item)] % count == number - 1]


def _group(item: pytest.Item) -> str:
    """Return what is not divided: tests that share a fixture, or one test with all its parameters."""
    marker = item.get_closest_marker("xdist_group")
    own = marker is None or "spare" in item.fixturenames
    return item.nodeid.partition("[")[0] if own else str(marker.args[0])


def _not_passed(config: pytest.Config, items: list[pytest.Item]) -> list[pytest.Item]:
    file = config.getoption("--passed-before")
    passed = set(file.read_text().splitlines()) if file and file.exists() else set()
    return [item for item in items if item.nodeid not in passed]


class _Failures:
    """Names a test that fails at once: the others may take a quarter of an hour."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.write_line(f"\nfailed ({report.when}): {_GROUP.sub('', report.nodeid)}")


class _Notes:
    """Writes down the tests that pass, or are skipped, as soon as they have ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self._failed:
            with self._path.open("a") as file:
                file.write(_GROUP.sub("", report.nodeid) + "\n")


def _in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which they begin, so that nobody has nothing to do, at the end least of all.

    The groups of the virtual clusters are the longest, and in them what raises a cluster of its own comes before the
    one that stays. Beside them come tests that wait, as those of the guard do, and tests that start programs, always as
    many of the one kind and of the other: of each kind alone the CPUs would have too little to do, or too much. Those
    that only calculate come last: they are short, and keep all CPUs at work.
    """
    kinds: tuple[list[pytest.Item], ...] = ([], [], [], [], [])
    for one in items:
        kinds[_kind(one)].append(one)
    own_cluster, cluster, waiting, starting, calculating = kinds
    turns = [(at / len(kind), one) for kind in (waiting, starting) for at, one in enumerate(kind)]
    mixed = [one for _, one in sorted(turns, key=itemgetter(0))]
    return [*own_cluster, *cluster, *mixed, *calculating]


def _kind(item: pytest.Item) -> int:
    if "lab" in _marks(item):
        return 0 if {"spare", "slurm_lab"} & set(item.fixturenames) else 1
    if "root" in _marks(item):
        return 2
    return 4 if _only_calculates(item) else 3


def _shared_place(item: pytest.Item) -> str:
    """Return the folder or the file whose tests share a fixture with this one; empty when none do."""
    if "lab" in _marks(item):
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
