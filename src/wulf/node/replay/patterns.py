"""Patterns as traces: what a pattern's ranks do, written where a trace is expected."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wulf.base.errors import ConfigError, UsageError
from wulf.base.pattern import distributions, language, operations
from wulf.base.text import choices
from wulf.base.trace import reader, writer
from wulf.base.trace.layout import SELF, Kind

_SENDS = (
    Kind.SEND,
    Kind.SSEND,
    Kind.BSEND,
    Kind.ISEND,
    Kind.ISSEND,
    Kind.IBSEND,
    Kind.SENDRECV,
)


def gallery() -> dict[str, str]:
    """Return the patterns that come with this package: name → text."""
    place = resources.files("wulf") / "data" / "patterns"
    found = {
        one.name.removesuffix(".toml"): one.read_text()
        for one in place.iterdir()
        if one.name.endswith(".toml")
    }
    return dict(sorted(found.items()))


def named(name: str) -> str:
    """Return the text of a pattern of the gallery.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    known = gallery()
    if name not in known:
        raise UsageError(f"there is no pattern {name!r}{choices(name, known)}")
    return known[name]


def read(source: str) -> language.Document:
    """Read a pattern: a file, or the name of one of the gallery.

    Raises
    ------
    ConfigError
        It cannot be read, or is not a pattern; names file, line and key.
    UsageError
        There is no such file, and none of that name in the gallery.
    """
    path = Path(source)
    known = gallery()
    if not path.exists() and source in known:
        return language.parse(known[source], f"{source}.toml")
    if not path.exists():
        raise UsageError(f"there is no file {source}, and no pattern of that name{choices(source, known)}")
    try:
        return language.parse(path.read_text(), source)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"cannot read {source}: {reason}") from None


def pattern_trace(path: Path, ranks: int | None, directory: Path) -> Path:
    """Write the trace of a pattern, as one of a program that did the same.

    Parameters
    ----------
    path
        Its file, or its name in the gallery.
    ranks
        Of all programs together; None, or 0, for as many as the pattern says.

    Returns
    -------
    Path
        Of the trace, in the directory.

    Raises
    ------
    ConfigError, UsageError
        As `read` does, and where it cannot have so many ranks.
    TraceError
        A trace that it draws from cannot be read, or the trace cannot be written.
    """
    document = read(str(path))
    trace = directory / f"{Path(path).stem}.wtrace"
    written(document, ranks or None, trace)
    return trace


def written(document: language.Document, ranks: int | None, path: Path) -> operations.Operations:
    """Write the trace of a pattern to a file; returns what is in it.

    Raises
    ------
    ConfigError, TraceError
        As `pattern_trace` does.
    """
    made = operations.operations(document, ranks, samples(document))
    note = {
        "pattern": document.pattern.title,
        "seed": document.pattern.seed,
        "warm_up": document.pattern.warm_up,
        "programs": [{"name": name, "ranks": members} for name, members in made.programs.items()],
    }
    writer.write_container(path, note, made.streams)
    return made


def samples(document: language.Document) -> distributions.Samples:
    """Read what the empirical distributions of a pattern are drawn from; their traces are beside its file.

    Raises
    ------
    ConfigError
        A trace has nothing of the kind; names the key.
    TraceError
        It cannot be read.
    """
    found: dict[tuple[str, str], NDArray[np.int64]] = {}
    beside = Path(document.origin).parent
    for number, program in enumerate(document.pattern.program):
        for place, step in enumerate(program.step):
            for key, is_time in distributions.OF_STEP.items():
                amount = getattr(step, key)
                if not isinstance(amount, distributions.Empirical):
                    continue
                what = "times" if is_time else "sizes"
                values = _of_trace(beside / amount.trace, is_time=is_time)
                if not len(values):
                    document.fail(
                        f"program[{number}].step[{place}].{key}.trace", f"{amount.trace} has no {what}"
                    )
                found[amount.trace, what] = values
    return found  # type: ignore[return-value]  # the keys are those of a Literal


def _of_trace(path: Path, *, is_time: bool) -> NDArray[np.int64]:
    """Return the times between calls [ns], or the sizes of messages [B], of all ranks."""
    trace = reader.read(path)
    values = [
        entry.compute_ns if is_time else entry.bytes
        for stream in trace.streams
        for entry in stream.records()
        if (entry.kind > Kind.PHASE if is_time else entry.kind in _SENDS and entry.comm != SELF)
    ]
    return np.array(values, dtype=np.int64)
