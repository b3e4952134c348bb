"""Numbers that a command prints, as users name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, cast

from wulf.base.errors import UsageError
from wulf.base.records import Printed
from wulf.node.trials.interleaving import RUN_TIME

#: ``performance [GFLOPS] higher``.
_FIGURE = re.compile(r"(?P<name>[^\[\]]+?)(?:\s+\[(?P<unit>[^\[\]]*)\])?(?:\s+(?P<better>lower|higher))?")


def printed(matches: Sequence[str], names: Sequence[str]) -> tuple[Printed, ...]:
    """Return the numbers that are looked for in the output.

    Raises
    ------
    UsageError
        A regular expression or a name cannot be; says which.
    """
    if len(names) > len(matches):
        raise UsageError(f"--as {names[-1]!r}: there is no --match for it")
    numbered = ["result" if number == 1 else f"result {number}" for number in range(1, len(matches) + 1)]
    called = [*names, *numbered[len(names) :]]
    found = tuple(_figure(regex, name) for regex, name in zip(matches, called, strict=True))
    if len({RUN_TIME, *(figure.name for figure in found)}) <= len(found):
        raise UsageError(f"--as: every number needs a name of its own, and {RUN_TIME!r} is taken")
    return found


def _figure(regex: str, name: str) -> Printed:
    said = _FIGURE.fullmatch(name.strip())
    if said is None:
        raise UsageError(
            f"--as {name!r}: a name, its unit in brackets if it has one, and 'higher' if more is better"
        )
    try:
        groups = re.compile(regex).groups
    except re.error as error:
        raise UsageError(f"--match {regex!r} is not a regular expression: {error}") from None
    if groups != 1:
        raise UsageError(f"--match {regex!r}: one group (in parentheses) around the number")
    better = cast("Literal['lower', 'higher']", said["better"] or "lower")
    return Printed(name=said["name"], match=regex, unit=said["unit"] or "", better=better)
