"""One launch: start the probe on a pair of nodes, read what it prints, end it whatever happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import msgspec

from wulf.errors import ProbeError, TransportError, WulfError
from wulf.measure import parse
from wulf.measure.schedule import LaunchPlan
from wulf.ports import Launcher, MpiJob, RemoteProcess, Transport
from wulf.records import Launch, LaunchResult, NodeContext, Pair, Sample
from wulf.text import last_line, printable

#: The probe itself says after 8 s without progress that its peer is gone; this is for a probe that cannot.
SILENCE_S = 15.0
#: A visit of a slow, large cell prints nothing; the probe's own watchdog is the tighter bound.
PEER_TIMEOUT_S = 8

#: A probe that has said its last line, and the MPI library around it, may take so long to end.
END_S = 5.0

#: From the pair to what is called after the launch and gives the contexts of its nodes.
Observation = Callable[[Pair], Callable[[], list[NodeContext]]]
#: From the contexts to the reasons to distrust the launch.
Judge = Callable[[list[NodeContext]], list[str]]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where launches run: how to reach the nodes, and where the probes are on them."""

    transport: Transport
    #: Node name → address on the measured interface.
    addresses: dict[str, str]
    #: Path of the socket probe on the nodes.
    net_probe: str
    #: Path of the MPI probe on the nodes and the library's way to start it; None when there is no MPI.
    mpi_probe: str | None
    launcher: Launcher | None
    mpi_env: dict[str, str]
    interface: str | None
    subnet: str | None
    #: Whether two nodes share a CPU, so that their ranks must yield while they wait.
    shares_cpu: Callable[[str, str], bool]


class _Output(msgspec.Struct):
    """What a probe has said so far."""

    info: parse.Hello | None = None
    cells: list[parse.CellLine] = []
    ended: bool = False


def run_launch(
    plan: LaunchPlan, site: Site, observe: Observation, judge: Callable[..., list[str]]
) -> LaunchResult:
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
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    finish = observe(plan.pair)
    begin = time.monotonic()
    output = _Output(cells=[])
    argv: list[str] = []
    samples: list[Sample] = []
    error: str | None = None
    try:
        with _start(plan, site, argv) as process:
            _read(process, output, plan.pair)
            _let_it_end(process)
        samples = [parse.sample(line, plan.id, plan.pair, plan.setting) for line in output.cells]
    except WulfError as failure:
        error = printable(str(failure), 1000)
    duration = time.monotonic() - begin
    context = finish()
    launch = Launch(
        id=plan.id,
        index=plan.index,
        op=plan.op,
        pair=plan.pair,
        setting=plan.setting,
        purpose=plan.purpose,
        sizes_bytes=plan.sizes_bytes,
        seed=plan.seed,
        started_at=started_at,
        duration_s=duration,
        status="ok" if error is None else "failed",
        error=error,
        argv=argv,
        probe=None if output.info is None else parse.probe_info(output.info),
        context=context,
        contamination=judge(context),
    )
    return LaunchResult(launch=launch, samples=[] if error else samples)


def _probe_arguments(plan: LaunchPlan) -> list[str]:
    return [
        "--op",
        plan.op,
        "--sizes",
        ",".join(str(size) for size in plan.sizes_bytes),
        "--sweeps",
        str(plan.sweeps),
        "--visit-us",
        str(plan.visit_us),
        "--seed",
        str(plan.seed),
        "--peer-timeout",
        str(PEER_TIMEOUT_S),
    ]


@contextmanager
def _start(plan: LaunchPlan, site: Site, argv: list[str]) -> Iterator[RemoteProcess]:
    """Start the launch's processes; `argv` receives the command line of the measuring one."""
    if plan.transport == "net":
        with _start_net(plan, site, argv) as process:
            yield process
        return
    if site.mpi_probe is None or site.launcher is None:
        raise ProbeError(
            f"{plan.op} needs an MPI library, and none was found: install one, or name it with --mpi"
        )
    job = MpiJob(
        program=site.mpi_probe,
        arguments=_probe_arguments(plan),
        hosts=[(node, site.addresses.get(node, node)) for node in plan.pair],
        interface=site.interface,
        subnet=site.subnet,
        shared_cpu=site.shares_cpu(*plan.pair),
        env=site.mpi_env,
    )
    argv[:] = site.launcher.argv(job)
    with site.transport.start(argv, plan.pair[0], env=site.launcher.env(job)) as process:
        yield process


@contextmanager
def _start_net(plan: LaunchPlan, site: Site, argv: list[str]) -> Iterator[RemoteProcess]:
    near, far = plan.pair
    address = site.addresses.get(far, far)
    token = secrets.token_hex(16)
    waits = ["--yield"] if site.shares_cpu(*plan.pair) else []
    server_argv = [site.net_probe, "--server", "--bind", address, "--token", token, *waits]
    with site.transport.start(server_argv, far) as server:
        port = _server_port(server, far)
        argv[:] = [site.net_probe, "--connect", f"{address}:{port}", "--peer-name", far]
        argv += ["--token", token, *waits, *_probe_arguments(plan)]
        with site.transport.start(argv, near) as client:
            yield client


def _server_port(server: RemoteProcess, node: str) -> int:
    for line in server.lines(SILENCE_S):
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


def _read(process: RemoteProcess, output: _Output, pair: Pair) -> None:
    """Collect a probe's output until its last line."""
    try:
        for line in process.lines(SILENCE_S):
            said = parse.message(line)
            if isinstance(said, parse.Hello):
                output.info = said
            elif isinstance(said, parse.CellLine):
                output.cells.append(said)
            elif isinstance(said, parse.ErrorLine):
                raise ProbeError(f"{said.peer or '–'.join(pair)}: {said.message}")
            elif isinstance(said, parse.End):
                output.ended = True
                return
    except TransportError as error:
        raise ProbeError(f"{'–'.join(pair)}: the probe fell silent: {error}") from error
    raise ProbeError(
        f"{'–'.join(pair)}: the probe ended early: {last_line(process.stderr()) or 'no message'}"
    )
