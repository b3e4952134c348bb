"""A command as a benchmark: how long it runs, what it prints, and what it takes of its node."""

from __future__ import annotations

import math
import re
import shlex
import signal
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError, TransportError
from wulf.base.records import Cell, Output, Sample, Usage
from wulf.base.text import last_line, last_words, printable
from wulf.node.probe.schedule import LaunchPlan

#: A command may run so long [s].
LIMIT_S = 86400.0
#: Of what a command prints the end is kept [B].
OUTPUT_BYTES = 16 << 20
#: Nothing holds it up once its output has ended [s].
_END_S = 10.0
#: What a job of a queue says last: how long the command in it ran [ns], without the time in the queue.
JOB_TIME = "wulf-job-time"
_RUN_TIME = "wulf-run-time"
#: Stands between the change of directory that is put before a command, and the command.
_PLACED = "|| exit\n"
#: Exit codes of a shell that has found no program, or none that can be started.
NOT_STARTED = (126, 127)
_SIGNALLED = 128
#: Where Open MPI's launcher says this it has started nothing, and its exit code (132, 134 …) is no signal's.
_UNSTARTED = re.compile(r"was unable to (launch the specified application|find the specified executable)")
#: Prints how long the command took, its memory and its CPU times; its own output and exit code pass through. One line:
#: a login shell may be a csh. GNU time is tried first: others have no -q.
_TIMED = (
    "m=; t=/usr/bin/time; [ -x $t ] && $t -q -o /dev/null true 2>/dev/null && m=$(mktemp); "
    "trap 'rm -f \"$m\"' EXIT; trap 'exit 143' TERM INT HUP; "
    'b=$(date +%s%N); if [ -n "$m" ]; then $t -q -o "$m" -f %M sh -c "$1"; else sh -c "$1"; fi; c=$?; e=$(date +%s%N); '
    f'echo; echo "{_RUN_TIME} $b $e $([ -n "$m" ] && tail -n 1 "$m")"; LC_ALL=C; export LC_ALL; times; exit $c'
)
_JOB_TIME = re.compile(rf"^{JOB_TIME} (\d+)\n?".encode(), re.MULTILINE)
#: Seconds and nine digits: date(1) has no nanoseconds everywhere.
_CLOCK = re.compile(r"\d{19}")
#: Of the shell and of its children: time in the program, time in the kernel.
_CPU_TIMES = re.compile(r"(\d+)m([0-9.]+)s")
_TIMES = 4
#: A number is kept with so many digits before the point: as many as a histogram of nanoseconds holds exactly.
_DIGITS = 12


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was started."""

    #: As it was given to the shell.
    command: str
    #: Without the time in a queue; None where it did not finish.
    nanoseconds: int | None
    output: Output
    #: None where that is not known, as of a job that ran elsewhere.
    usage: Usage | None
    #: As the shell has it; None where it did not finish.
    exit_code: int | None
    #: Why it did not end well; empty when it did.
    error: str


def placed(command: str, transport: str, directory: str = "") -> str:
    """Return a command as it runs where its user expects: in `directory`, else where wulf was started.

    On nodes that have no directory of that name it runs in the home, as a login there does. What has a place already
    keeps it, so that a run goes on from anywhere as it began.

    Parameters
    ----------
    transport
        Name of the cluster's transport; with ``local`` it runs where wulf was started anyway.
    """
    if directory:
        return f"cd {shlex.quote(directory)} {_PLACED}{command}"
    if not command or transport == "local" or _PLACED in command:
        return command
    return f"cd {shlex.quote(str(Path.cwd()))} 2>/dev/null || cd {_PLACED}{command}"


def run(
    transport: Transport, node: str, command: str, env: Mapping[str, str], *, limit_s: float = LIMIT_S
) -> Ran:
    """Run a command for a shell on a node, `limit_s` [s] at most; the time is taken there.

    What it leaves running in its process group is ended with it, and so is all of it when this is interrupted.
    """
    argv = ["sh", "-c", _TIMED, "sh", command]
    kept: deque[bytes] = deque()
    with transport.start(argv, node, env=env) as process:
        try:
            _read(process.lines(limit_s, limit_s), kept)
            code = process.wait(_END_S)
        except TransportError as failure:
            return _failed(command, kept, process.stderr(), str(failure))
        stderr = process.stderr()
    printed = b"".join(kept)
    stdout, mark, said = printed.rpartition(f"\n{_RUN_TIME} ".encode())
    if not mark:
        return _failed(command, kept, stderr, f"it was ended from outside (exit code {code})")
    nanoseconds, usage = _usage(command, said.decode(errors="replace"))
    in_a_job = _JOB_TIME.search(stdout)
    stdout = _JOB_TIME.sub(b"", stdout)
    error = ""
    if code != 0:
        last = last_words(stderr) or last_line(stdout)
        error = (
            f"{named(command)}: {_ended(code, last)}"
            + (f": {last}" if last else "")
            + _sought(command, code, node)
        )
    return Ran(
        command=command,
        nanoseconds=int(in_a_job[1]) if in_a_job else nanoseconds,
        output=Output(stdout=_text(stdout), stderr=_text(stderr)),
        usage=None if in_a_job else usage,
        exit_code=code,
        error=error,
    )


def _ended(code: int, last: str) -> str:
    """Say how a command ended: of one that a signal has ended, a shell returns its number above 128."""
    names = {} if _UNSTARTED.search(last) else {one.value: one.name for one in signal.Signals}
    name = names.get(code - _SIGNALLED)
    return f"exit code {code}" + (f" ({name})" if name else "")


def _sought(command: str, code: int, node: str) -> str:
    """Say where a command was looked for that the shell has not found, or could not start."""
    place, mark, _ = command.partition(_PLACED)
    if code not in NOT_STARTED or not mark:
        return ""
    where = shlex.split(place)[1]
    return (
        f"; {node} has none in {where} (or the home, without that directory): copy it there, or give its path"
    )


def _read(lines: Iterable[bytes], kept: deque[bytes]) -> None:
    """Keep the end of what is printed."""
    size = 0
    for line in lines:
        kept.append(line + b"\n")
        size += len(line) + 1
        while size > OUTPUT_BYTES and len(kept) > 1:
            size -= len(kept.popleft())


def _failed(command: str, kept: Iterable[bytes], stderr: bytes, reason: str) -> Ran:
    return Ran(
        command=command,
        nanoseconds=None,
        output=Output(stdout=_text(b"".join(kept)), stderr=_text(stderr)),
        usage=None,
        exit_code=None,
        error=f"{named(command)}: {reason}" + (f": {last_words(stderr)}" if stderr.strip() else ""),
    )


def asked(command: str) -> str:
    """Return a command as it was given, without its directory."""
    return command.rpartition(_PLACED)[2]


def named(command: str) -> str:
    """Return a command as messages name it: without the directory and the environment that were put before it."""
    own = asked(command)
    if own.startswith("env "):
        with suppress(ValueError):
            own = shlex.join(dropwhile(lambda word: "=" in word, shlex.split(own)[1:]))
    return repr(printable(own, 200))


def _text(printed: bytes) -> str:
    return printed.decode(errors="surrogateescape")


def _usage(command: str, said: str) -> tuple[int, Usage]:
    """Return the run time [ns], and what was taken, as the shell printed them."""
    first, _, rest = said.partition("\n")
    begin, end, *memory = [*first.split(), "", ""][:3]
    if not (_CLOCK.fullmatch(begin) and _CLOCK.fullmatch(end)):
        raise ProbeError(
            f"{named(command)}: date +%s%N says {printable(first, 60)!r} on the node: no nanoseconds"
        )
    # Of the shell itself, then of what it ran.
    times_s = [60 * int(minutes) + float(seconds) for minutes, seconds in _CPU_TIMES.findall(rest)]
    peak = memory[0]
    return int(end) - int(begin), Usage(
        user_s=times_s[2] if len(times_s) == _TIMES else None,
        system_s=times_s[3] if len(times_s) == _TIMES else None,
        peak_bytes=1024 * int(peak) if peak.isdigit() else None,
    )


def run_time_s(ran: Ran) -> float:
    """Return the run time of a command that ended well [s].

    Raises
    ------
    ProbeError
        It did not; says how.
    """
    if ran.error or ran.nanoseconds is None:
        raise ProbeError(ran.error)
    if ran.nanoseconds <= 0:
        raise ProbeError(f"{named(ran.command)}: the node's clock went back while it ran")
    return ran.nanoseconds * 1e-9


def number(match: str, ran: Ran) -> float:
    """Return the last number that a regular expression finds in what a command printed.

    Raises
    ------
    ProbeError
        There is none; says what is there.
    """
    found = re.findall(match, ran.output.stdout, re.MULTILINE)
    try:
        # Fortran writes 1.0D+03.
        return float(found[-1].replace("D", "E").replace("d", "e"))
    except (IndexError, ValueError):
        what = f"{printable(found[-1], 60)!r}, which is not a number," if found else "nothing"
        end = printable(last_line(ran.output.stdout.encode(errors="replace")) or "nothing", 100)
        raise ProbeError(
            f"{named(ran.command)}: '{match}' matches {what} in its output, which ends: {end}"
        ) from None


def samples(plan: LaunchPlan, ran: Ran) -> list[Sample]:
    """Return the values of a launch: the run time, and every number that it was to print.

    Raises
    ------
    ProbeError
        It did not end well, or did not print a number; says so.
    """
    return [
        _sample(plan, plan.op, round(run_time_s(ran) * 1e9), 1.0),
        *(_number_sample(plan, op, number(match, ran)) for op, match in plan.prints.items()),
    ]


def _number_sample(plan: LaunchPlan, op: str, value: float) -> Sample:
    if not 1e-290 < value < 1e290:
        raise ProbeError(
            f"{named(plan.command)}: {op} is {value:g}: only numbers above zero can be compared as ratios"
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
