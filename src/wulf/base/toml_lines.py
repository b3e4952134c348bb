"""On which line of a TOML text a key is: what the standard reader does not tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_NAME = r"[A-Za-z0-9_-]+"
_TABLES = re.compile(rf"\s*\[\[\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*\]\]")
_TABLE = re.compile(rf"\s*\[\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*\]")
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")


def of_keys(text: str) -> dict[str, int]:
    """Return the path of each key and table → its line, counted from 1.

    Paths are written as ``program[0].step[2].size``; keys within inline tables are not among them.
    """
    found: dict[str, int] = {}
    counts: Counter[str] = Counter()
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLES.match(line):
            path = _within(header[1], counts)
            table = f"{path}[{counts[path]}]"
            counts[path] += 1
        elif header := _TABLE.match(line):
            table = _within(header[1], counts)
        elif key := _KEY.match(line):
            name = re.sub(r"\s", "", key[1])
            found.setdefault(f"{table}.{name}" if table else name, number)
            continue
        else:
            continue
        found.setdefault(table, number)
    return found


def _within(header: str, counts: Mapping[str, int]) -> str:
    """Return the path of a table whose parents may be arrays: the last of each is meant."""
    *parents, name = (part.strip() for part in header.split("."))
    path = ""
    for parent in parents:
        path += parent
        if counts.get(path):
            path += f"[{counts[path] - 1}]"
        path += "."
    return path + name


def nearest(path: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of a key, or of the innermost table around it that has one; None where none has."""
    while path:
        for place in (path, f"{path}[0]"):  # what is written as an array of tables begins with its first one
            if place in lines:
                return lines[place]
        path = re.sub(r"(\.[^.\[\]]*|\[\d+\]|^[^.\[\]]*)$", "", path)
    return None
