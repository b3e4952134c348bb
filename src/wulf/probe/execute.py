"""One launch: start the probe on a pair of nodes, read what it prints, end it whatever happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from wulf.errors import OverdueError, ProbeError, TransportError, UnreachableError, WulfError
from wulf.ports import Launcher, MpiJob, RemoteProcess, Transport
from wulf.probe import command, parse
from wulf.probe.schedule import LaunchPlan
from wulf.records import RANKS_OF_A_PAIR, Launch, LaunchResult, NodeContext, Reference, Sample
from wulf.store.files import timestamp
from wulf.text import last_line, printable

#: The probe itself says after 8 s without progress that its peer is gone; this is for a probe that cannot.
SILENCE_S = 15.0
#: A visit of a slow, large cell prints nothing; the probe's own watchdog is the tighter bound.
PEER_TIMEOUT_S = 8

#: A probe that has said its last line, and the MPI library around it, may take so long to end.
END_S = 5.0
#: Beginning, the MPI library's own start and its end may take so long [s].
START_S = 60.0
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
#: From the contexts to the reasons to distrust the launch.
Judge = Callable[[list[NodeContext]], list[str]]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where launches run: how to reach the nodes, and where the probes are on them."""

    transport: Transport
    #: Node name → address on the measured interface.
    addresses: dict[str, str]
    #: Node → path of the socket probe there.
    net_probes: dict[str, str]
    #: Path of the MPI probe on the nodes and the library's way to start it; None when there is no MPI.
    mpi_probe: str | None
    launcher: Launcher | None
    mpi_env: dict[str, str]
    interface: str | None
    subnet: str | None
    #: Whether two of the nodes share a CPU, so that their ranks must yield while they wait.
    shares_cpu: Callable[..., bool]


class _Output(msgspec.Struct):
    """What became of a launch so far."""

    argv: list[str] = []
    info: parse.Hello | None = None
    cells: list[parse.CellLine] = []
    samples: list[Sample] = []
    reference_lines: list[parse.ReferenceLine] = []
    references: list[Reference] = []
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
    return _result(plan, started_at, duration, output, around, judge(around.contexts))


def _attempt(plan: LaunchPlan, site: Site, output: _Output) -> None:
    try:
        if plan.command:
            output.argv[:] = ["sh", "-c", plan.command]
            ran = command.run(site.transport, plan.place[0], plan.command, plan.env)
            output.samples = [command.sample(plan, ran)]
            return
        with _start(plan, site, output.argv) as process:
            _read(process, output, plan)
            _let_it_end(process)
        output.samples = [
            parse.sample(line, plan.id, plan.place, line.arm or plan.setting) for line in output.cells
        ]
        output.references = [parse.reference(line, plan.place) for line in output.reference_lines]
    except WulfError as failure:
        output.error = str(failure)


def _result(
    plan: LaunchPlan,
    started_at: str,
    duration_s: float,
    output: _Output,
    around: LaunchContext,
    contamination: list[str],
) -> LaunchResult:
    failed = output.error is not None
    launch = Launch(
        id=plan.id,
        index=plan.index,
        op=plan.op,
        place=plan.place,
        pairs=plan.pairs,
        setting=plan.setting,
        purpose=plan.purpose,
        sizes_bytes=plan.sizes_bytes,
        seed=plan.seed,
        started_at=started_at,
        duration_s=duration_s,
        status="failed" if failed else "ok",
        error=printable(output.error or "", 1000) if failed else None,
        unreachable=sorted(around.unreachable),
        argv=output.argv,
        probe=None if output.info is None else parse.probe_info(output.info),
        context=around.contexts,
        contamination=contamination,
    )
    if failed:
        return LaunchResult(launch=launch, samples=[])
    return LaunchResult(launch=launch, samples=output.samples, references=output.references)


def _probe_arguments(plan: LaunchPlan) -> list[str]:
    return [
        "--op",
        plan.asked or plan.op,
        *(["--label", plan.op] if plan.asked else []),
        "--sizes",
        ",".join(str(size) for size in plan.sizes_bytes),
        "--sweeps",
        str(plan.sweeps),
        "--visit-us",
        str(plan.visit_us),
        "--reference-us",
        str(plan.reference_us),
        "--seed",
        str(plan.seed),
        "--peer-timeout",
        str(PEER_TIMEOUT_S),
        *(["--at-once"] if plan.pairs else []),
        *_alternation_arguments(plan),
    ]


def _alternation_arguments(plan: LaunchPlan) -> list[str]:
    alternation = plan.alternation
    if alternation is None:
        return []
    dwell, settle = str(alternation.dwell_sweeps), str(alternation.settle_sweeps)
    words = ["--arms", alternation.arms, "--dwell-sweeps", dwell, "--settle-sweeps", settle]
    return words + _guard_arguments(plan)


def _guard_arguments(plan: LaunchPlan) -> list[str]:
    place = plan.alternation.place if plan.alternation is not None else ""
    return ["--alternate", place] if place else []


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


@contextmanager
def _start(plan: LaunchPlan, site: Site, argv: list[str]) -> Iterator[RemoteProcess]:
    """Start the launch's processes; `argv` receives the command line of the measuring one."""
    if plan.transport == "net":
        with _start_net(plan, site, argv) as process:
            yield process
        return
    if plan.transport == "none":
        argv[:] = [site.net_probes[plan.place[0]], *_probe_arguments(plan)]
        with site.transport.start(argv, plan.place[0]) as process:
            yield process
        return
    if site.mpi_probe is None or site.launcher is None:
        raise ProbeError(
            f"{plan.op} needs an MPI library, and none was found: install one, or name it with --mpi"
        )
    job = MpiJob(
        program=site.mpi_probe,
        arguments=_probe_arguments(plan),
        hosts=[(node, site.addresses.get(node, node)) for node in plan.place],
        interface=site.interface,
        subnet=site.subnet,
        shared_cpu=site.shares_cpu(*plan.place),
        env=site.mpi_env | plan.env,
    )
    argv[:] = site.launcher.argv(job)
    with site.transport.start(argv, plan.place[0], env=site.launcher.env(job)) as process:
        yield process


@contextmanager
def _start_net(plan: LaunchPlan, site: Site, argv: list[str]) -> Iterator[RemoteProcess]:
    near, far = plan.place
    address = site.addresses.get(far, far)
    token = secrets.token_hex(16)
    waits = ["--yield"] if site.shares_cpu(*plan.place) else []
    server_argv = [
        site.net_probes[far],
        "--server",
        "--bind",
        address,
        "--token-stdin",
        *waits,
        *_guard_arguments(plan),
    ]
    with site.transport.start(server_argv, far, line=token) as server:
        port = _server_port(server, far)
        argv[:] = [site.net_probes[near], "--connect", f"{address}:{port}", "--peer-name", far]
        argv += ["--token-stdin", *waits, *_probe_arguments(plan)]
        with site.transport.start(argv, near, line=token) as client:
            yield client


def _server_port(server: RemoteProcess, node: str) -> int:
    for line in server.lines(SILENCE_S, START_S):
        said = parse.message(line)
        if isinstance(said, parse.Hello) and said.port is not None:
            return said.port
        if isinstance(said, parse.ErrorLine):
            raise ProbeError(f"{node}: {said.message}")
    raise ProbeError(
        f"{node}: the probe's server ended at once: {last_line(server.stderr()) or 'no message'}"
    )


def _let_it_end(process: RemoteProcess) -> None:
    """Wait for a launch that is over: ending it by force takes longer, and the next one would run beside that."""
    with suppress(TransportError):
        process.wait(END_S)


def _read(process: RemoteProcess, output: _Output, plan: LaunchPlan) -> None:
    """Collect a probe's output until its last line."""
    who = "–".join(dict.fromkeys(plan.place))
    total_s = limit_s(plan)
    try:
        for line in process.lines(SILENCE_S, total_s):
            said = parse.message(line)
            if isinstance(said, parse.Hello):
                output.info = said
            elif isinstance(said, parse.CellLine):
                output.cells.append(said)
            elif isinstance(said, parse.ReferenceLine):
                output.reference_lines.append(said)
            elif isinstance(said, parse.ErrorLine):
                # Of many ranks the first does not know which one it was.
                better = _other_rank(process) if len(plan.place) > RANKS_OF_A_PAIR else None
                raise ProbeError(f"{said.peer or who}: {(better or said).message}")
            elif isinstance(said, parse.End):
                return
    except OverdueError as error:
        raise ProbeError(
            f"{who}: the probe was ended: it had not come to its end in {total_s:.0f} s, many times "
            f"what it was asked to take ({error})"
        ) from error
    except TransportError as error:
        raise ProbeError(f"{who}: the probe fell silent: {error}") from error
    cause = _other_rank(process)
    reason = cause.message if cause is not None else last_line(process.stderr()) or "no message"
    raise ProbeError(f"{who}: the probe ended early: {reason}")


def _other_rank(process: RemoteProcess) -> parse.ErrorLine | None:
    """Return what another rank than the first has said of a failure, on standard error."""
    for line in process.stderr().splitlines():
        with suppress(ProbeError):
            said = parse.message(line)
            if isinstance(said, parse.ErrorLine):
                return said
    return None
