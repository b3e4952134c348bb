"""Settings as shell scripts that stand alone.  Pure.

How a thing is set is said once, in `access/`: these scripts carry the same functions as the guard.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Literal

from wulf.change.guard import access_functions
from wulf.change.steps import NOTHING, Step

#: Of a boot script: what is set together.
Part = Literal["node", "nic", "firewall", "latency"]
#: Kind → kinds whose functions its own use.
_NEEDS = {
    "sysctl": ("file",),
    "idle_states": ("file",),
    "turbo": ("file",),
    "service": ("firewall",),
    "mpi_parameter": ("stored",),
}


def functions(steps: Iterable[Step]) -> str:
    """Return the access functions that the steps need."""
    kinds = {step.kind for step in steps}
    for kind in list(kinds):
        kinds.update(_NEEDS.get(kind, ()))
    return access_functions(tuple(sorted(kinds)))


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
            functions(step for _, step in steps),
            _text("boot.sh"),
            *lines,
            'exit "$failed"',
            "",
        ]
    )


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
    return "\n".join(["#!/bin/sh", head, functions(steps), names, _text("undoable.sh"), *settings])


def _line(step: Step, part: Part | None = None) -> str:
    words = [step.knob, step.kind, step.interface or NOTHING, step.target, step.value]
    return " ".join(["keep", *([part] if part else []), *(shlex.quote(word) for word in words)])


def _text(name: str) -> str:
    return resources.files("wulf.change").joinpath(name).read_text()
