"""The table that the guard has compiled in is that of the catalogue."""

from __future__ import annotations

from pathlib import Path

from wulf.base import access, catalogue
from wulf.base.native.build import source_directory
from wulf.node.change import table


def test_the_table_is_not_old():
    made = (source_directory() / "guard/table.inc").read_text()
    assert made == table.table(), "run: .venv/bin/python -m wulf.node.change.table >native/guard/table.inc"


def test_every_knob_and_kind_that_can_be_set_is_in_it():
    text = table.table()
    for knob in catalogue.knobs().values():
        assert (f'KNOB("{knob.id}", ' in text) == (not catalogue.unsettable(knob)), knob.id
    for name, kind in access.kinds().items():
        assert (f"KIND({name}, " in text) == kind.settable, name


def test_every_kind_that_can_be_set_is_one_file_of_the_guard():
    files = {path.stem for path in Path(source_directory() / "guard/kind").glob("*.c")}
    assert {name for name, kind in access.kinds().items() if kind.settable} <= files
