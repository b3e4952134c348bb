"""Traces of other simulators, as one of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from wulf.base.errors import TraceError
from wulf.base.trace.imported import goal, smpi
from wulf.base.trace.imported.numbers import MOST_TEXT
from wulf.base.trace.reader import Trace, read
from wulf.base.trace.writer import write_container
from wulf.page.words import listed

Format = Literal["goal", "smpi"]


def import_trace(files: Sequence[Path], form: Format, output: Path, speed: float) -> Trace:
    """Write a trace of what other programs wrote.

    Parameters
    ----------
    files
        Of GOAL one; of SMPI those of all ranks, or the list of them that ``smpirun -replay`` takes.
    speed
        SMPI: operations that a host computes in a second.

    Raises
    ------
    TraceError
        A file cannot be read or followed, or the trace not be written.
    """
    if form == "goal":
        if len(files) != 1:
            raise TraceError(f"GOAL has all ranks in one file, and these are {len(files)}")
        streams = goal.streams(_text(files[0]), str(files[0]))
    else:
        streams = smpi.streams({str(file): _text(file) for file in _listed(files)}, speed)
    names = listed([file.name for file in files], 3)
    write_container(output, {"command": f"{form.upper()} of {names}"}, streams)
    return read(output)


def _listed(files: Sequence[Path]) -> Iterator[Path]:
    """Yield files, and instead of a list of files those that are in it."""
    for file in files:
        names = [line.strip() for line in _text(file).splitlines() if line.strip()]
        # A line of a trace begins with a rank and has more words.
        if names and len(names[0].split()) == 1 and all(_is_file(file.parent / name) for name in names):
            yield from (file.parent / name for name in names)
        else:
            yield file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a line of a trace can be no name at all
        return False


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_TEXT:
            raise TraceError(f"cannot read {file}: it has more than {MOST_TEXT >> 20} MiB")
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TraceError(f"cannot read {file}: {reason}") from None
