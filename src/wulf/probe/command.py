"""A command as a benchmark: how long it runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wulf.errors import ProbeError
from wulf.ports import Transport
from wulf.probe.schedule import LaunchPlan
from wulf.records import Cell, Sample
from wulf.text import last_line, printable

#: A command may run so long [s].
LIMIT_S = 3600.0
#: Prints how long the command took; its own output and exit code pass through.
_TIMED = """
begin=$(date +%s%N)
sh -c "$1"
code=$?
printf '\\nwulf-run-time %s\\n' $(($(date +%s%N) - begin))
exit $code
"""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command that ended well."""

    nanoseconds: int
    #: What it printed.
    text: str


def run(transport: Transport, node: str, command: str, env: Mapping[str, str]) -> Ran:
    """Run a command for a shell on a node; the time is taken there.

    Raises
    ------
    ProbeError
        It failed, or did not end; says how.
    """
    answer = transport.run(["sh", "-c", _TIMED, "sh", command], [node], timeout_s=LIMIT_S, env=env)[node]
    if answer.status != "ok":
        raise ProbeError(f"{printable(command, 200)!r}: {last_line(answer.stderr) or answer.reason}")
    text, _, nanoseconds = answer.stdout.decode(errors="replace").rpartition("\nwulf-run-time ")
    return Ran(nanoseconds=int(nanoseconds), text=text)


def sample(plan: LaunchPlan, ran: Ran) -> Sample:
    """Return the one value of a launch."""
    return Sample(
        launch=plan.id,
        cell=Cell(op=plan.op, size_bytes=0, place=plan.place, setting=plan.setting),
        timing="batch",
        divisor=1,
        iterations=1,
        batch_iterations=1,
        histogram=[(ran.nanoseconds, 1)],
        min_ns=ran.nanoseconds,
        max_ns=ran.nanoseconds,
        batch_medians_ns=[float(ran.nanoseconds)],
        warmup_medians_ns=[],
        warmup_settled=True,
    )
