"""Traces of other programs, as one of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from wulf.base.errors import TraceError
from wulf.base.trace.imported import goal, otf2, smpi
from wulf.base.trace.imported.numbers import MOST_TEXT
from wulf.base.trace.reader import Trace, read
from wulf.base.trace.writer import write_container
from wulf.page.words import listed
from wulf.tools.trace.request import ImportFormat


class _Imported(NamedTuple):
    streams: list[bytes]
    #: What could not be followed, in sentences.
    remarks: Sequence[str] = ()


def import_trace(files: Sequence[Path], form: ImportFormat, output: Path, speed: float) -> Trace:
    """Write a trace of what other programs wrote; its note has as ``remarks`` what could not be followed.

    Parameters
    ----------
    files
        Of GOAL one; of SMPI those of all ranks, or the list of them that ``smpirun -replay`` takes; of OTF2 the anchor
        file of the archive, or the directory that it is in.
    speed
        SMPI: operations that a host computes in a second.

    Raises
    ------
    TraceError
        A file cannot be read or followed, or the trace not be written.
    """
    found = _FORMATS[form](files, speed)
    names = listed([file.name for file in files], 3)
    note = {"command": f"{form.upper()} of {names}", "remarks": list(found.remarks)}
    write_container(output, note, found.streams)
    return read(output)


def _goal(files: Sequence[Path], _: float) -> _Imported:
    file = _one(files, "GOAL has all ranks in one file")
    return _Imported(goal.streams(_text(file), str(file)))


def _smpi(files: Sequence[Path], speed: float) -> _Imported:
    return _Imported(smpi.streams({str(file): _text(file) for file in _listed(files)}, speed))


def _otf2(files: Sequence[Path], _: float) -> _Imported:
    return _Imported(*otf2.streams(_one(files, "an OTF2 archive has one anchor file")))


_FORMATS: Mapping[ImportFormat, Callable[[Sequence[Path], float], _Imported]] = {
    "goal": _goal,
    "smpi": _smpi,
    "otf2": _otf2,
}


def _one(files: Sequence[Path], why: str) -> Path:
    if len(files) != 1:
        raise TraceError(f"{why}, and these are {len(files)}")
    return files[0]


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
