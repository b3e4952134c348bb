"""The framing of what the capture scripts print: ``#name`` and indented lines, or ``!name reason``. Pure."""

from __future__ import annotations

from wulf.text import printable

#: Longest reason kept [characters].
LIMIT = 200
#: Largest whole number that a record can hold.
_MAX_WHOLE = 2**63 - 1
#: More CPUs than any Linux has.
_MAX_CPUS = 1 << 16


class Unknown(Exception):  # noqa: N818 - it is not an error, it is an answer
    """A fact that this node does not tell, and why."""


class Sections:
    """Named pieces of text, each there or missing for a reason."""

    def __init__(self, text: str) -> None:
        self._texts: dict[str, list[str]] = {}
        self._reasons: dict[str, str] = {}
        current: list[str] | None = None
        for line in text.split("\n"):
            if line.startswith("#"):
                current = self._texts.setdefault(line[1:].strip(), [])
            elif line.startswith("!"):
                name, _, reason = line[1:].partition(" ")
                self._reasons.setdefault(name, shown(reason.strip(), LIMIT) or "no reason given")
            elif line.startswith(" ") and current is not None:
                current.append(line[1:])

    def text(self, name: str) -> str:
        """Text of a section, without blank ends.

        Raises
        ------
        Unknown
            When the node did not print it; says the node's own reason where there is one.
        """
        if name in self._reasons:
            raise Unknown(self._reasons[name])
        if name not in self._texts:
            raise Unknown("the node did not print it")
        return "\n".join(self._texts[name]).strip()

    def lines(self, name: str) -> list[str]:
        """Return the lines of a section that are not blank; raises `Unknown` as `text` does."""
        return [line for line in self.text(name).splitlines() if line.strip()]


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
    if not 0 <= value < float("inf"):
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
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) * unit <= _MAX_WHOLE):
        raise Unknown(f"{what} is not a whole number: {shown(text, 40)}")
    return int(digits) * unit


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
