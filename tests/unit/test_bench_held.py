"""The bench that holds predictions against measurements: what it makes of what it has stored, and what it repeats."""

from __future__ import annotations

import msgspec
import pytest

from bench import held
from bench.accuracy import append
from bench.accuracy.launching import Launch
from tests.unit.predict_fixture import figure, predicted


def stored(directory, rounds=6):
    """Launches of 1 s on the network as it is and 2 s on the other, which were predicted from the fourth round on."""
    directory.mkdir()
    for number in range(rounds):
        for network, time_s in ((held.BASE, 1.0), (held.CHANGED, 2.0 if number < 5 else 9.0)):
            append(
                directory / held.LAUNCHES,
                Launch(round=number, network=network, program="heat", time_s=time_s, waited=0.5),
            )
        if number >= held.TAUGHT:
            for how, value in ((f"@{held.CHANGED}", 2.02), (held.BEFORE, 3.0)):
                one = msgspec.structs.replace(predicted(how, 1.0, 5, "slower"), time=figure(value))
                append(directory / held.SAID, held.Said(round=number, program="heat", how=how, predicted=one))
    return directory


def test_launches_are_held_against_what_was_said_before_them(tmp_path):
    kept = stored(tmp_path / "kept")
    # Ended while it was said, and said again.
    (kept / held.SAID).write_bytes((kept / held.SAID).read_bytes() * 2)
    calibrated, before = held.rows(kept, held.read_said(kept))
    assert (calibrated.how, before.how) == (f"@{held.CHANGED}", held.BEFORE)
    assert (calibrated.times, calibrated.inside) == ([2.0, 2.0, 9.0], 2)
    assert calibrated.error == pytest.approx(0.01) and before.inside == 0
    text = held.table([calibrated, before], tmp_path / "kept")
    assert (
        "| heat | `@100mbit` | 1.00 s | 2.02 s (1.92 s to 2.12 s) | 2.00 s | ±175.0 % | +1.0 % | 2 of 3 |"
        in text
    )
    assert "12 of 12 launches were disturbed" in text


def test_the_table_takes_the_place_of_the_one_before_it(tmp_path):
    page = held.PAGE.read_text()
    once = held.written(page, "| one |\n")
    assert held.written(once, "| two |\n") == held.written(page, "| two |\n")
    assert "| one |" in once and once.partition(held.BEGIN)[0] == page.partition(held.BEGIN)[0]
    with pytest.raises(SystemExit, match="has no place for the table"):
        held.written("# A page\n", "| one |\n")


def test_what_was_ended_before_anything_was_said_is_not_judged(tmp_path, capsys):
    with pytest.raises(SystemExit, match="fewer than 4 whole rounds"):
        held.judge(tmp_path, write=False)
