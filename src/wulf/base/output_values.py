"""Words of a node's output → values, or the reason why there is none. Pure."""

from __future__ import annotations

from collections.abc import Callable

from wulf.base.text import printable

#: Longest reason kept [characters].
LIMIT = 200
#: Largest whole number that a record can hold.
_MAX_WHOLE = 2**63 - 1
#: No counter, size or time is as large; sums of such numbers stay finite.
_MAX_NUMBER = 1e20
#: More CPUs than any Linux has.
_MAX_CPUS = 1 << 16


class Unknown(Exception):  # noqa: N818 - it is not an error, it is an answer
    """A fact that this node does not tell, and why."""


class Absent(Unknown):
    """What the fact is about does not exist on this node: no such file, no such setting, not installed."""


class Unsupported(Unknown):
    """The kernel or the driver knows the question and says that it cannot do it."""


def optional(read: Callable[[], str]) -> str:
    """Return what `read` returns; that a program which nobody needs is not installed is no gap in what is known.

    Raises
    ------
    Absent
        When it is not installed.
    """
    try:
        return read()
    except Unknown as reason:
        if "not installed" in str(reason):
            raise Absent(str(reason)) from None
        raise


def shown(text: str, limit: int) -> str:
    """Return `text` safe to show; as `printable`, but quick when a node printed megabytes."""
    return printable(text[: limit + 1], limit)


def number(text: str, what: str) -> float:
    """Return `text` as a finite number that is not negative.

    Raises
    ------
    Unknown
        When it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < _MAX_NUMBER:
        raise Unknown(f"{what} is not a number: {shown(text, 40)}")
    return value


def whole(text: str, what: str, unit: int = 1) -> int:
    """Return `text`, a whole number of `unit`, in ones.

    Raises
    ------
    Unknown
        When it is none, or too large to be true.
    """
    digits = text.strip()
    # Not of any length: Python refuses to convert thousands of digits.
    if not (is_count(digits) and int(digits) * unit <= _MAX_WHOLE):
        raise Unknown(f"{what} is not a whole number: {shown(text, 40)}")
    return int(digits) * unit


def is_count(text: str) -> bool:
    """Whether `text` is a whole number that fits a counter: ASCII digits, and few enough of them."""
    return text.isascii() and text.isdigit() and len(text) < 20


def cpu_list(text: str) -> list[int]:
    """Expand the kernel's list of CPUs, ``0-3,8``.

    Raises
    ------
    Unknown
        When it is none.
    """
    result: list[int] = []
    for piece in text.strip().split(","):
        first, _, last = piece.partition("-")
        low, high = whole(first, "a CPU"), whole(last or first, "a CPU")
        if high - low + len(result) > _MAX_CPUS:
            raise Unknown("the list of CPUs is absurdly long")
        result.extend(range(low, high + 1))
    return result
