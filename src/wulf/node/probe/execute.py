"""One launch: start the probe on a pair of nodes, read what it prints, end it whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from wulf.base.contracts import RemoteProcess
from wulf.base.errors import OverdueError, ProbeError, TransportError, UnreachableError, WulfError
from wulf.base.records import (
    RANKS_OF_A_PAIR,
    Launch,
    LaunchResult,
    NodeContext,
    Reference,
    Sample,
    Scheduled,
    Traffic,
)
from wulf.base.records.emulated import ProgramTimes
from wulf.base.store.files import timestamp
from wulf.base.text import last_words, printable
from wulf.node.probe import command, parse
from wulf.node.probe.background_traffic import traffic
from wulf.node.probe.schedule import LaunchPlan
from wulf.node.probe.start import SILENCE_S, START_S, Measurer, Site, start

#: A probe that has said its last line, and the MPI library around it, may take so long to end.
END_S = 5.0
#: Visits of a cell beyond those of the sweeps: the warm-up has so many at most.
_WARM_UP_VISITS = 8
#: A visit may last so many times what is aimed for; one operation alone aims for five times as much.
_AMPLE = 50
#: Announcing a visit, and checking what came, on a slow machine [s].
_VISIT_S = 0.25
#: A guard may take so long to make another setting [s].
_CHANGE_S = 5.0
#: No network that is measured is slower [B/s]; a visit sends a message there and back three times.
_SLOWEST = 1e6
_MESSAGES = 6


class LaunchContext(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen around a launch."""

    contexts: list[NodeContext]
    #: Node → why it could not be reached after the launch.
    unreachable: dict[str, str] = {}


#: From the plan of a launch to what is called after it. Raises UnreachableError when a node is gone before it.
Observation = Callable[[LaunchPlan], Callable[[], LaunchContext]]
#: From a launch to the reasons to distrust it.
Judge = Callable[[Launch], list[str]]


class _Output(msgspec.Struct):
    """What became of a launch so far."""

    argv: list[str] = []
    info: parse.Hello | None = None
    cells: list[parse.CellLine] = []
    samples: list[Sample] = []
    reference_lines: list[parse.ReferenceLine] = []
    scheduled_lines: list[parse.ScheduledLine] = []
    scheduled: list[Scheduled] = []
    references: list[Reference] = []
    programs: list[ProgramTimes] = []
    beside: list[Traffic] = []
    ran: command.Ran | None = None
    error: str | None = None


def run_launch(plan: LaunchPlan, site: Site, observe: Observation, judge: Judge) -> LaunchResult:
    """Run one launch to its end; a failure of the launch is a result, not an exception.

    Parameters
    ----------
    plan
        What to measure.
    site
        Where.
    observe
        Called before the launch; what it returns is called after it.
    judge
        Decides whether the launch is suspect.

    Raises
    ------
    KeyboardInterrupt
        The launch has been ended on the nodes.
    """
    started_at = timestamp("milliseconds")
    begin = time.monotonic()
    output = _Output()
    around = LaunchContext(contexts=[])
    try:
        finish = observe(plan)
    except UnreachableError as failure:
        output.error = str(failure)
        around = LaunchContext(contexts=[], unreachable=dict.fromkeys(failure.nodes, str(failure)))
        duration = time.monotonic() - begin
    else:
        begin = time.monotonic()
        _attempt(plan, site, output)
        duration = time.monotonic() - begin
        around = finish()
    if output.error is not None and around.unreachable:
        output.error = "; ".join(around.unreachable.values())
    return _result(plan, started_at, duration, output, around, judge)


def _attempt(plan: LaunchPlan, site: Site, output: _Output) -> None:
    try:
        if plan.command:
            output.argv[:] = ["sh", "-c", plan.command]
            ran = output.ran = command.run(site.transport, plan.place[0], plan.command, plan.env)
            output.samples = command.samples(plan, ran)
            return
        with traffic(plan, site) as others, start(plan, site, output.argv) as process:
            _read(process, output, plan, site.measurer, others.check)
            output.beside = others.carried()
            _let_it_end(process)
        output.samples = [
            parse.sample(line, plan.id, plan.place, line.arm or plan.setting) for line in output.cells
        ]
        output.references = [parse.reference(line, plan.place) for line in output.reference_lines]
        output.scheduled = parse.scheduled(output.scheduled_lines, plan.place)
    except WulfError as failure:
        output.error = str(failure)


def _result(
    plan: LaunchPlan,
    started_at: str,
    duration_s: float,
    output: _Output,
    around: LaunchContext,
    judge: Judge,
) -> LaunchResult:
    failed = output.error is not None
    launch = Launch(
        id=plan.id,
        index=plan.index,
        op=plan.op,
        place=plan.place,
        pairs=plan.pairs,
        beside=output.beside,
        setting=plan.setting,
        purpose=plan.purpose,
        sizes_bytes=plan.sizes_bytes,
        seed=plan.seed,
        started_at=started_at,
        utc_offset_s=_utc_offset_s(started_at),
        duration_s=duration_s,
        status="failed" if failed else "ok",
        error=printable(output.error or "", 1000) if failed else None,
        unreachable=sorted(around.unreachable),
        argv=output.argv,
        probe=None if output.info is None else parse.probe_info(output.info),
        usage=None if output.ran is None else output.ran.usage,
        context=around.contexts,
        scheduled=output.scheduled,
        contamination=[],
    )
    launch = msgspec.structs.replace(launch, contamination=judge(launch))
    printed = None if output.ran is None else output.ran.output
    if failed:
        return LaunchResult(launch=launch, samples=[], output=printed)
    return LaunchResult(
        launch=launch,
        samples=output.samples,
        references=output.references,
        programs=output.programs,
        output=printed,
    )


def limit_s(plan: LaunchPlan) -> float:
    """Time [s] after which a launch is ended, whatever it prints.

    Many times what the probe was asked to take; but no more than one that is never silent for too long can take,
    which says something after every visit (after all those of its warm-up at once).
    """
    visit_s = _VISIT_S + _AMPLE * (plan.visit_us + len(plan.place) * plan.reference_us) * 1e-6
    visits = plan.sweeps + _WARM_UP_VISITS
    asked = sum(visits * (visit_s + _MESSAGES * size / _SLOWEST) for size in plan.sizes_bytes)
    if plan.alternation is not None:
        asked += _CHANGE_S * len(plan.alternation.arms)
    return START_S + min(asked, SILENCE_S * len(plan.sizes_bytes) * (plan.sweeps + 1))


def _let_it_end(process: RemoteProcess) -> None:
    """Wait for a launch that is over: ending it by force takes longer, and the next one would run beside that."""
    with suppress(TransportError):
        process.wait(END_S)


def _read(
    process: RemoteProcess,
    output: _Output,
    plan: LaunchPlan,
    measurer: Measurer | None,
    meanwhile: Callable[[], None],
) -> None:
    """Collect a probe's output until its last line; `meanwhile` is called after each."""
    who = "–".join(dict.fromkeys(plan.place))
    total_s = limit_s(plan) if measurer is None else measurer.limit_s
    silence_s = SILENCE_S if measurer is None else total_s
    try:
        for line in process.lines(silence_s, total_s):
            said = parse.message(line)
            if isinstance(said, parse.ErrorLine):
                knows = _who_knows_more(said, _other_rank(process), len(plan.place))
                raise ProbeError(f"{knows.peer or who}: {knows.message}")
            if isinstance(said, parse.End):
                return
            _keep(said, output, len(plan.place))
            meanwhile()
    except OverdueError as error:
        raise ProbeError(
            f"{who}: the probe was ended: it had not finished in {total_s:.0f} s, many times "
            f"what it should take ({error})"
        ) from error
    except TransportError as error:
        raise ProbeError(f"{who}: the probe stopped responding: {error}") from error
    cause = _other_rank(process)
    reason = cause.message if cause is not None else last_words(process.stderr()) or "no message"
    raise ProbeError(f"{who}: the probe ended early: {reason}")


def _keep(said: parse.Message | None, output: _Output, ranks: int) -> None:
    if isinstance(said, parse.Hello):
        output.info = said
    elif isinstance(said, parse.CellLine):
        output.cells.append(said)
    elif isinstance(said, parse.ReferenceLine):
        output.reference_lines.append(said)
    elif isinstance(said, parse.ScheduledLine):
        output.scheduled_lines.append(said)
    elif isinstance(said, parse.ProgramLine):
        output.programs.append(parse.program_times(said, ranks))


def _utc_offset_s(started_at: str) -> int:
    """Return how far this machine's local time was from UTC then [s]."""
    offset = datetime.fromisoformat(started_at).astimezone().utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _who_knows_more(first: parse.ErrorLine, other: parse.ErrorLine | None, ranks: int) -> parse.ErrorLine:
    """Return which of the failures that the first and another rank have said is the cause."""
    if other is None:
        return first
    # A rank that has only lost another one does not know why: the launcher ends them all.
    lost = first.code == parse.PEER_LOST, other.code == parse.PEER_LOST
    if lost[0] != lost[1]:
        return other if lost[0] else first
    # Of many ranks the first does not know which one it was; of two it knows better.
    return other if ranks > RANKS_OF_A_PAIR else first


def _other_rank(process: RemoteProcess) -> parse.ErrorLine | None:
    """Return what another rank than the first has said of a failure, on standard error."""
    for line in process.stderr().splitlines():
        with suppress(ProbeError):
            said = parse.message(line)
            if isinstance(said, parse.ErrorLine):
                return said
    return None


#: Runs one launch, wherever that is.
RunLaunch = Callable[[LaunchPlan], LaunchResult]


def launcher(site: Site, observe: Observation, judge: Judge) -> RunLaunch:
    """Return the function that runs one launch on a site."""
    return lambda plan: run_launch(plan, site, observe, judge)
