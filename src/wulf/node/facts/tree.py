"""What the capture scripts print: the files and outputs of one node, or why they cannot be had. Pure.

See the head of ``capture.sh`` for the format. Whatever a node prints, reading it never fails: a line that does
not belong there is passed over.
"""

from __future__ import annotations

import bisect
import fnmatch
import functools
import re
from collections.abc import Iterator

from wulf.base.output_values import LIMIT, Absent, Unknown, Unsupported, shown

_NOT_SUPPORTED = re.compile(r"not supported|Invalid argument|Inappropriate ioctl", re.IGNORECASE)
_NOT_ALLOWED = re.compile(
    r"Permission denied|not permitted|must be root|need to be root|only root|privilege", re.IGNORECASE
)
_NOT_THERE = re.compile(r"No such (file|device)|there is no ", re.IGNORECASE)
#: Exit code of timeout(1).
_TIMED_OUT = 124


class Unasked(Unknown):
    """Neither a text nor a reason came from the node."""


class Tree:
    """Files and outputs of one node, each there or missing for a reason.

    A name that begins with ``/`` is a file; another is an output.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[str, list[str]] = {}
        self._codes: dict[str, int] = {}
        self._reasons: dict[str, str] = {}
        # A file may be read twice, in two batches: the first reading counts.
        batch = 0
        batches: dict[str, int] = {}
        last, file = "", list[str]()
        current: list[str] | None = None
        for line in text.split("\n"):
            kind = line[:1]
            if kind == "/":
                path, colon, content = line.partition(":")
                if path == last:
                    file.append(content)
                elif colon and batches.setdefault(path, batch) == batch:
                    last, file = path, self._lines.setdefault(path, [])
                    file.append(content)
            elif kind == "-":
                batch += 1
                last = ""
            elif kind == " ":
                if current is not None:
                    current.append(line[1:])
            elif kind == "#":
                name, _, code = line[1:].strip().partition(" ")
                current = self._lines.setdefault(name, [])
                self._codes[name] = int(code) if code.isascii() and code.isdigit() and len(code) < 4 else 0
            elif kind == "!":
                name, _, reason = line[1:].partition(" ")
                self._reasons.setdefault(name, shown(reason.strip(), LIMIT) or "no reason given")

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    def text(self, name: str) -> str:
        """Return a file, or the output of a command that succeeded, without blank ends.

        Raises
        ------
        Unknown
            When it is not there: `Absent` or `Unsupported` where that is the reason.
        """
        return "\n".join(self._found(name)).strip()

    def lines(self, name: str) -> list[str]:
        """Return the lines that are not blank; raises as `text` does."""
        return [line for line in self._found(name) if line.strip()]

    def empty(self, path: str) -> bool:
        """Whether a file was looked for, was there, and had nothing to say."""
        return path not in self._lines and isinstance(self._missing(path), Unasked)

    def refused(self, prefix: str) -> bool:
        """Whether some file whose path begins with `prefix` may not be read by this user."""
        return any(
            path.startswith(prefix) and _NOT_ALLOWED.search(reason) for path, reason in self._reasons.items()
        )

    def require(self, program: str) -> None:
        """Raise `Unknown` with the node's reason when it said that it does not have a program."""
        if program in self._reasons:
            raise self._missing(program)

    def output(self, name: str) -> tuple[str, int]:
        """Return what a command printed, and its exit code, whether it succeeded or not.

        Raises
        ------
        Unknown
            When it did not run.
        """
        if name not in self._lines or name in self._cut:
            raise self._missing(name)
        return "\n".join(self._lines[name]).strip(), self._codes.get(name, 0)

    def matching(self, pattern: str) -> list[tuple[str, str]]:
        """Return (path, text) of the files that a pattern names, in the order of their paths.

        Raises
        ------
        Unknown
            When there is none.
        """
        if "*" not in pattern:
            return [(pattern, self.text(pattern))]
        prefix, match = pattern.partition("*")[0], _pattern(pattern).fullmatch
        # The end is compared first because that is much quicker, and there are thousands of paths.
        ending = pattern.rpartition("*")[2]
        found = [path for path in self._paths(prefix) if path.endswith(ending) and match(path)]
        if found:
            return [(path, "\n".join(self._lines[path]).strip()) for path in found]
        refused = next((path for path in self._reasons if path != pattern and match(path)), pattern)
        raise self._missing(refused)

    def files(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield (path, text) of the files whose path begins with `prefix`, in the order of their paths."""
        for path in self._paths(prefix):
            yield path, "\n".join(self._lines[path]).strip()

    @functools.cached_property
    def _sorted(self) -> list[str]:
        return sorted(path for path in self._lines if path.startswith("/"))

    def _paths(self, prefix: str) -> list[str]:
        # No path has a character beyond this one.
        last = prefix + chr(0x10FFFF)
        return self._sorted[bisect.bisect_left(self._sorted, prefix) : bisect.bisect_left(self._sorted, last)]

    def outputs(self, prefix: str) -> list[str]:
        """Return the rest of the names of the outputs that begin with `prefix`."""
        return [name[len(prefix) :] for name in self._codes if name.startswith(prefix)]

    @functools.cached_property
    def _cut(self) -> set[str]:
        """Outputs of which the node printed a part, and why not the rest: a part of them is no answer."""
        return {name for name in self._reasons if name in self._codes}

    @functools.cached_property
    def _empty_patterns(self) -> list[re.Pattern[str]]:
        """Patterns of files that matched none."""
        return [
            _glob(path)
            for path, reason in self._reasons.items()
            if path.startswith("/") and "*" in path and _NOT_THERE.search(reason)
        ]

    def _found(self, name: str) -> list[str]:
        if name not in self._lines or name in self._cut:
            raise self._missing(name)
        code = self._codes.get(name, 0)
        if code != 0:
            raise _failure(name, self._lines[name], code)
        return self._lines[name]

    def _missing(self, name: str) -> Unknown:
        reason = self._reasons.get(name)
        if reason is None and any(pattern.fullmatch(name) for pattern in self._empty_patterns):
            return Absent(f"there is no {shown(name, 80)}")
        if reason is None:
            return Unasked("the node did not print it")
        if _NOT_ALLOWED.search(reason):
            return Unknown("only root may read it")
        if _NOT_SUPPORTED.search(reason):
            return Unsupported("the kernel or the driver does not support it")
        if _NOT_THERE.search(reason):
            return Absent(f"there is no {shown(name, 80)}" if name.startswith("/") else reason)
        return Unknown(reason)


def _failure(name: str, lines: list[str], code: int) -> Unknown:
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    text = "\n".join(lines[-4:])
    if _NOT_ALLOWED.search(text):
        return Unknown("only root may see it")
    if _NOT_SUPPORTED.search(text):
        return Unsupported("the kernel or the driver does not support it")
    if _NOT_THERE.search(text):
        return Absent(shown(said, LIMIT))
    command = name.partition(".")[0]
    if code == _TIMED_OUT:
        return Unknown(f"{shown(command, 40)} did not answer in time")
    return Unknown(f"{shown(command, 40)} failed: {shown(said, LIMIT) or f'exit code {code}'}")


@functools.lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


@functools.lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile("[^/]*".join(re.escape(piece) for piece in pattern.split("*")))
