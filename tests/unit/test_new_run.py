"""How long work is begun, and ended early."""

from __future__ import annotations

import signal

import pytest

from wulf.base.errors import UsageError
from wulf.base.signals import end_gently
from wulf.node.fleet.new_run import new_run


@pytest.fixture
def signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_end_of_the_session_is_an_interrupt(signals, number):
    signal.signal(number, signal.SIG_DFL)
    end_gently()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_under_nohup_the_hang_up_stays_ignored(signals):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_gently()
    signal.raise_signal(signal.SIGHUP)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "latest", "-x", "a b", "x" * 102])
def test_what_cannot_be_the_name_of_a_run(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        new_run(name, tmp_path)


def test_a_name_that_is_taken(tmp_path):
    (tmp_path / "first").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        new_run("first", tmp_path)
    assert new_run("second", tmp_path) == tmp_path / "second"
    assert new_run(None, tmp_path).parent == tmp_path
