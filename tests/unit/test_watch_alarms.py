"""From changes to alarms: one for each change, and what closes it."""

import math
from datetime import UTC, datetime, timedelta

from wulf.tools.watch.history import alarms
from wulf.tools.watch.history.judge import Change, Key

NOW = datetime(2026, 3, 2, 2, 30, tzinfo=UTC)
NODE = Key("node", "mpi_pingpong", 64, ("node07",))
OTHER = Key("node", "mpi_pingpong", 64, ("node08",))


def change(ratio, after, key=NODE, kind="step", error=0.01):
    return Change(key, kind, after - 1, after, math.log(ratio), error)


def take(changes, before, run, now=NOW):
    """Return all alarms after a run."""
    new, others = alarms.take(changes, before, list(range(1, run + 1)), now)
    replaced = {one.id: one for one in others}
    return [replaced.get(one.id, one) for one in before] + new


def test_what_becomes_slower_is_an_alarm_and_what_becomes_faster_a_note():
    slower, faster = take([change(1.1, 40), change(0.9, 40, OTHER)], [], 41)
    assert (slower.id, slower.state, slower.direction, slower.closed_at) == (1, "open", "slower", None)
    assert (faster.id, faster.state, faster.direction) == (2, "noted", "faster")
    assert slower.change.low < 1.1 < slower.change.high
    assert (slower.before_run, slower.after_run, slower.found_run) == (39, 40, 41)


def test_a_young_alarm_is_found_anew_and_not_twice():
    before = take([change(1.07, 39)], [], 40)
    (one,) = take([change(1.1, 40)], before, 42)
    assert (one.id, one.after_run, one.found_run, round(one.change.value, 3)) == (1, 40, 40, 1.1)
    # Its level is not what is usual before its place is certain.
    assert alarms.known([one], range(1, 43)) == {}
    assert alarms.known([one], range(1, 45)) == {NODE: [40]}


def test_an_older_alarm_of_the_same_series_is_another_one():
    before = take([change(1.1, 40)], [], 41)
    first, second = take([change(1.1, 60)], before, 61)
    assert (first.state, second.state, second.id) == ("open", "open", 2)
    assert alarms.known([first, second], range(1, 70)) == {NODE: [40, 60]}


def test_an_alarm_whose_level_returns_is_closed():
    before = take([change(1.12, 40)], [], 41)
    first, second = take([change(1 / 1.11, 50)], before, 51)
    assert (first.state, first.closed_at) == ("returned", NOW.isoformat())
    assert second.state == "noted"


def test_an_alarm_whose_level_returns_only_in_part_stays():
    before = take([change(1.3, 40)], [], 41)
    first, second = take([change(0.9, 50)], before, 51)
    assert (first.state, second.state) == ("open", "noted")


def test_what_was_faster_for_a_while_is_no_alarm_when_it_ends():
    before = take([change(0.85, 40)], [], 41)
    first, second = take([change(1 / 0.85, 50)], before, 51)
    assert (first.state, second.state, second.direction) == ("noted", "noted", "slower")


def test_an_alarm_that_nobody_accepts_is_what_is_usual_after_a_month():
    before = take([change(1.1, 40)], [], 41)
    day = NOW + timedelta(days=alarms.AGE_DAYS)
    assert take([], before, 71, day)[0].state == "open"
    assert take([], before, 72, day + timedelta(days=1))[0].state == "aged"


def test_who_accepts_closes_what_is_open():
    before = take([change(1.1, 40), change(0.9, 40, OTHER)], [], 41)
    (accepted,) = alarms.accept(before, NOW, "new switch")
    assert (accepted.id, accepted.state, accepted.note) == (1, "accepted", "new switch")


def test_of_a_step_and_a_drift_of_one_series_there_is_one_alarm():
    found = take([change(1.1, 40), change(1.1, 20, kind="drift")], [], 41)
    assert [(one.kind, one.after_run) for one in found] == [("step", 40)]
