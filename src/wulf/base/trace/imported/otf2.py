"""OTF2, the archives of Score-P, EZTrace and TAU: read by its own library, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import msgspec

from wulf.base.errors import TraceError
from wulf.base.text import count, printable
from wulf.base.trace.imported import otf2_program, otf2_streams
from wulf.base.trace.imported.otf2_ranks import Ranks
from wulf.base.trace.imported.otf2_record import Archive, Definitions, End

#: Debian's package is for this Python alone.
_OF_SYSTEM = "/usr/bin/python3"
_MISSING = (
    "OTF2 archives are read by OTF2's own library, which is not installed: `{python} -m pip install otf2`, or as root "
    "`apt-get install python3-otf2`"
)
#: At the beginning of an anchor file.
_MAGIC_BYTES = 8
#: So much of what the library says is looked at [B].
_MOST_SAID = 1 << 16


class Streams(NamedTuple):
    """The streams of all ranks, and what could not be followed, in sentences."""

    streams: list[bytes]
    notes: list[str]


def streams(anchor: Path) -> Streams:
    """Return the streams of all ranks.

    Raises
    ------
    TraceError
        The library is not installed, or the archive cannot be read or followed.
    """
    if anchor.is_dir():
        anchor = _within(anchor)
    _require_anchor(anchor)
    for python in dict.fromkeys((sys.executable, _OF_SYSTEM)):
        found = _read(python, anchor)
        if found is not None:
            return found
    raise TraceError(_MISSING.format(python=sys.executable))


def _within(directory: Path) -> Path:
    """Return the anchor file of the archive in a directory, such as Score-P makes one for each run."""
    found = sorted(directory.glob("*.otf2"))
    if len(found) != 1:
        raise TraceError(
            f"{directory}: {count(len(found), 'anchor file')} (*.otf2) are in it: name the one to read"
        )
    return found[0]


def _require_anchor(anchor: Path) -> None:
    try:
        with anchor.open("rb") as file:
            begin = file.read(_MAGIC_BYTES)
    except OSError as error:
        raise TraceError(f"cannot read {anchor}: {error.strerror}") from None
    if b"OTF2" not in begin:
        raise TraceError(f"{anchor}: not the anchor file of an OTF2 archive (traces.otf2)")


def _read(python: str, anchor: Path) -> Streams | None:
    """Return what is in an archive; None where this Python has no library for it."""
    command = [python, otf2_program.__file__, str(anchor)]
    with TemporaryFile() as errors:
        try:
            program = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except OSError:  # there is no such Python
            return None
        with program:
            assert program.stdout is not None
            try:
                archive, end = _follow(program.stdout, str(anchor))
            except BaseException:
                program.kill()
                raise
        errors.seek(0)
        said = errors.read(_MOST_SAID)
    if program.returncode == otf2_program.NOT_INSTALLED:
        return None
    if program.returncode or archive is None or end is None:
        raise TraceError(f"{anchor}: {_why(program.returncode, said)}")
    return Streams(otf2_streams.streams(archive, end), archive.notes)


def _follow(lines: IO[bytes], origin: str) -> tuple[Archive | None, End | None]:
    """Return what the program wrote, and its last line; None of what did not come."""
    first = lines.readline()
    if not first:
        return None, None
    try:
        archive = Archive(msgspec.json.decode(first, type=Definitions), origin)
        ranks = Ranks(archive)
        record = msgspec.json.Decoder(list[Any])
        for line in lines:
            if line.startswith(b"{"):
                return archive, msgspec.json.decode(line, type=End)
            ranks.take(record.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError) as error:
        raise TraceError(f"{origin}: damaged: {error}") from None
    return archive, None


def _why(code: int, said: bytes) -> str:
    """Return why an archive could not be read: what the library said, or how its process ended."""
    if code == -signal.SIGXCPU:
        return "it takes longer to read than all that is on the disk could: damaged"
    if code < 0:
        return f"damaged: OTF2's library ended with {signal.Signals(-code).name}"
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    words = printable(lines[-1].strip(), 200) if lines else "it ends too early"
    return f"OTF2's library cannot read it: {words}"
