"""How much slower something has to be to matter: who could not have seen that much says "cannot tell"."""

from __future__ import annotations

#: Messages from this size on are large [B]: what the link carries counts, not what a node does for each of them.
LARGE_BYTES = 64 << 10
#: Slower by so much has to be seen, at large and at small messages, as a share.
MUST_SEE = 0.25, 0.5


def must_see(size_bytes: int, wanted: tuple[float, float] = MUST_SEE) -> float:
    """Return the slowdown that has to be seen at a size, as a share."""
    large, small = wanted
    return large if size_bytes >= LARGE_BYTES else small
