"""A command as a benchmark: how long it runs, what it prints, and what it takes of its node."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from wulf.errors import ProbeError
from wulf.ports import Transport
from wulf.probe.schedule import LaunchPlan
from wulf.records import Cell, Output, Sample, Usage
from wulf.text import last_line, printable

#: A command may run so long [s].
LIMIT_S = 86400.0
#: What a batch script prints of the command in it: how long it ran, without the time in the queue.
JOB_TIME = "wulf-job-time"
_RUN_TIME = "wulf-run-time"
#: Prints how long the command took, its memory and its CPU times; its own output and exit code pass through.
_TIMED = f"""
memory=
[ -x /usr/bin/time ] && memory=$(mktemp)
begin=$(date +%s%N)
if [ -n "$memory" ]; then /usr/bin/time -q -o "$memory" -f %M sh -c "$1"; else sh -c "$1"; fi
code=$?
end=$(date +%s%N)
printf '\\n{_RUN_TIME} %s %s\\n' $((end - begin)) "$([ -n "$memory" ] && cat "$memory" && rm -f "$memory")"
times
exit $code
"""
_JOB_TIME = re.compile(rf"^{JOB_TIME} (\d+)\n?".encode(), re.MULTILINE)
#: Of the shell and of its children: time in the program, time in the kernel.
_CPU_TIMES = re.compile(r"(\d+)m([0-9.]+)s")
_TIMES = 4
#: A number is kept with so many digits before the point: as many as a histogram of nanoseconds holds exactly.
_DIGITS = 12


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command that came to an end."""

    #: As it was given to the shell.
    command: str
    #: Without the time in a queue.
    nanoseconds: int
    output: Output
    usage: Usage
    #: Why it did not end well; empty when it did.
    error: str


def run(transport: Transport, node: str, command: str, env: Mapping[str, str]) -> Ran:
    """Run a command for a shell on a node; the time is taken there.

    Raises
    ------
    ProbeError
        It did not come to an end; says how.
    """
    answer = transport.run(["sh", "-c", _TIMED, "sh", command], [node], timeout_s=LIMIT_S, env=env)[node]
    error = f"{printable(command, 200)!r}: {last_line(answer.stderr) or answer.reason}"
    stdout, mark, said = answer.stdout.rpartition(f"\n{_RUN_TIME} ".encode())
    if not mark:
        raise ProbeError(error)
    nanoseconds, usage = _usage(said.decode(errors="replace"))
    in_a_job = _JOB_TIME.search(stdout)
    return Ran(
        command=command,
        nanoseconds=int(in_a_job[1]) if in_a_job else nanoseconds,
        output=Output(stdout=_text(_JOB_TIME.sub(b"", stdout)), stderr=_text(answer.stderr)),
        usage=usage,
        error="" if answer.status == "ok" else error,
    )


def _text(printed: bytes) -> str:
    return printed.decode(errors="surrogateescape")


def _usage(said: str) -> tuple[int, Usage]:
    """Return the run time [ns], and what was taken, as the shell printed them."""
    first, _, rest = said.partition("\n")
    nanoseconds, *memory = first.split()
    # Of the shell itself, then of what it ran.
    times_s = [60 * int(minutes) + float(seconds) for minutes, seconds in _CPU_TIMES.findall(rest)]
    return int(nanoseconds), Usage(
        user_s=times_s[2] if len(times_s) == _TIMES else None,
        system_s=times_s[3] if len(times_s) == _TIMES else None,
        peak_bytes=1024 * int(memory[-1]) if memory else None,
    )


def number(match: str, ran: Ran) -> float:
    """Return the last number that a regular expression finds in what a command printed.

    Raises
    ------
    ProbeError
        There is none; says what is there.
    """
    found = re.findall(match, ran.output.stdout, re.MULTILINE)
    try:
        return float(found[-1])
    except (IndexError, ValueError):
        what = f"{printable(found[-1], 60)!r}, which is no number," if found else "nothing"
        end = printable(last_line(ran.output.stdout.encode(errors="replace")) or "nothing", 100)
        raise ProbeError(
            f"{printable(ran.command, 200)!r}: {match!r} matches {what} in its output, which ends: {end}"
        ) from None


def samples(plan: LaunchPlan, ran: Ran) -> list[Sample]:
    """Return the values of a launch: the run time, and every number that it was to print.

    Raises
    ------
    ProbeError
        It did not end well, or did not print a number; says so.
    """
    if ran.error:
        raise ProbeError(ran.error)
    return [
        _sample(plan, plan.op, ran.nanoseconds, 1.0),
        *(_number_sample(plan, op, match, ran) for op, match in plan.prints.items()),
    ]


def _number_sample(plan: LaunchPlan, op: str, match: str, ran: Ran) -> Sample:
    value = number(match, ran)
    if not 0 < value < math.inf:
        raise ProbeError(
            f"{plan.command!r}: {op} is {value:g}: only numbers above zero can be compared as ratios"
        )
    # A histogram holds whole numbers: as many digits of any value, small or large.
    divisor = 10.0 ** (_DIGITS - 9 - math.floor(math.log10(value)))
    return _sample(plan, op, round(value * 1e9 * divisor), divisor)


def _sample(plan: LaunchPlan, op: str, nanoseconds: int, divisor: float) -> Sample:
    return Sample(
        launch=plan.id,
        cell=Cell(op=op, size_bytes=0, place=plan.place, setting=plan.setting),
        timing="batch",
        divisor=divisor,
        iterations=1,
        batch_iterations=1,
        histogram=[(nanoseconds, 1)],
        min_ns=nanoseconds,
        max_ns=nanoseconds,
        batch_medians_ns=[float(nanoseconds)],
        warmup_medians_ns=[],
        warmup_settled=True,
    )
