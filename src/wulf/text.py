"""Make text that came from a node or a file safe to show."""

from __future__ import annotations

import unicodedata

_KEPT = {"\n", "\t"}


def printable(raw: bytes | str, limit: int = 2000) -> str:
    """Return `raw` without control, bidirectional or escape characters, cut to `limit` characters."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if len(text) <= limit and text.isprintable():
        return text
    kept = "".join(c if c in _KEPT or unicodedata.category(c)[0] != "C" else "�" for c in text)
    return kept if len(kept) <= limit else kept[:limit] + "…"


def last_line(raw: bytes | str) -> str:
    """Return the last line that has a letter or digit in it, safe to show; empty when there is none."""
    lines = [line.strip(" \t�") for line in printable(raw).splitlines()]
    return next((line for line in reversed(lines) if any(map(str.isalnum, line))), "")
