"""What a person says of a run, beside its records: ``RUN/labels.json``.

A file of its own: it may be written while the run is, and by whom the records are not for.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from wulf.base.errors import StoreError, UsageError
from wulf.base.records import Record
from wulf.base.store.files import decode_file, write_record
from wulf.base.text import printable

LABELS = "labels.json"
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}")
_LONGEST_NOTE = 10_000


class Labels(Record, frozen=True, kw_only=True):
    """Tags and a note."""

    tags: tuple[str, ...] = ()
    note: str = ""


def labels(path: Path) -> Labels:
    """Return what has been said of a run.

    Raises
    ------
    StoreError
        The file is there and cannot be read.
    """
    file = path / LABELS
    try:
        return decode_file(file, Labels) if file.exists() else Labels()
    except StoreError as error:
        raise StoreError(f"{error}; the records are not affected: remove it to begin anew") from None


def tagged(before: Labels, add: list[str], remove: list[str]) -> Labels:
    """Return labels with other tags.

    Raises
    ------
    UsageError
        A word cannot be a tag.
    """
    for tag in add:
        if not _TAG.fullmatch(tag):
            raise UsageError(
                f"{printable(tag, 80)!r} cannot be a tag: letters, digits and ._:+-, a letter or a digit first"
            )
    kept = [tag for tag in dict.fromkeys([*before.tags, *add]) if tag not in remove]
    return msgspec.structs.replace(before, tags=tuple(kept))


def noted(before: Labels, note: str) -> Labels:
    """Return labels with another note.

    Raises
    ------
    UsageError
        It is too long.
    """
    if len(note) > _LONGEST_NOTE:
        raise UsageError(f"a note has at most {_LONGEST_NOTE} characters")
    return msgspec.structs.replace(before, note=printable(note, _LONGEST_NOTE))


def save_labels(path: Path, said: Labels) -> None:
    """Store what is said of a run."""
    write_record(path / LABELS, said)
