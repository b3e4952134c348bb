"""Commands as they are typed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def text_of(words: str | Sequence[str]) -> str:
    """Return a command for a shell; one word alone is one already."""
    if isinstance(words, str):
        return words
    return words[0] if len(words) == 1 else shlex.join(words)
