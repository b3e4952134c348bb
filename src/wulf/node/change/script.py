"""Settings as shell scripts that stand alone.  Pure.

How a thing is set where wulf is not is said in `access/`; tests hold it against what the guard does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Literal

from wulf.base import access
from wulf.node.change.shell_functions import access_functions, state_functions
from wulf.node.change.steps import NOTHING, Step

#: Of a boot script: what is set together.
Part = Literal["node", "nic", "firewall", "latency"]


def kinds(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the kinds of access whose functions the steps need."""
    found = {step.kind for step in steps}
    for kind in list(found):
        found.update(access.kinds()[kind].needs)
    return tuple(sorted(found))


def at_boot(steps: Sequence[tuple[Part, Step]], head: str) -> str:
    """Return a script that sets things at boot: one line for each, in their order.

    Parameters
    ----------
    head
        First comment line: whose it is.
    """
    lines = [_line(step, part) for part, step in steps]
    return "\n".join(
        [
            "#!/bin/sh",
            head,
            access_functions(kinds(step for _, step in steps)),
            boot_text(),
            *lines,
            'exit "$failed"',
            "",
        ]
    )


def kept(lines: Sequence[str], head: str, rest: str = "") -> str:
    """Return the script by which a node's own guard sets things at boot; the guard writes it, of these lines.

    Parameters
    ----------
    lines
        See `kept_lines`.
    head
        First comment line: whose it is.
    rest
        What stands for lines that come later.
    """
    return "\n".join(["#!/bin/sh", head, _text("kept.sh").rstrip("\n"), *lines, f'{rest}exit "$failed"', ""])


def kept_lines(steps: Sequence[tuple[Part, Step]]) -> list[str]:
    """Return the lines of that script."""
    return [_line(step, part) for part, step in steps]


def boot_text() -> str:
    """Return what a boot script has before the lines that set things."""
    return _text("boot.sh")


def undoable(steps: Sequence[Step], head: str, state: str) -> str:
    """Return a script that applies settings, puts them back, and says what is set.

    Parameters
    ----------
    head
        First comment line: whose it is.
    state
        Directory on the node where it keeps the state before.
    """
    lines = [f"\t{_line(step)}" for step in steps]
    settings = ["settings() {", *lines, "}", '[ "$verb" = undo ] || settings', "finish", ""]
    names = f"STATE={shlex.quote(state)}"
    needed = kinds(steps)
    parts = [access_functions(needed), state_functions(needed)]
    return "\n".join(["#!/bin/sh", head, *parts, names, _text("undoable.sh"), *settings])


def _line(step: Step, part: Part | None = None) -> str:
    words = [step.knob, step.kind, step.interface or NOTHING, step.target, step.value]
    return " ".join(["keep", *([part] if part else []), *(shlex.quote(word) for word in words)])


def _text(name: str) -> str:
    return resources.files("wulf.node.change").joinpath(name).read_text()
