"""Start the processes of a launch: the probe on one node, on two over sockets, or as an MPI job."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

import msgspec

from wulf.base.contracts import Launcher, MpiJob, RemoteProcess, Transport
from wulf.base.errors import ProbeError
from wulf.base.interfaces import Interface
from wulf.base.records import Place
from wulf.base.text import last_line
from wulf.node.probe import parse
from wulf.node.probe.schedule import LaunchPlan

#: The probe itself says after 8 s without progress that its peer is gone; this is for a probe that cannot.
SILENCE_S = 15.0
#: A visit of a slow, large cell prints nothing; the probe's own watchdog is the tighter bound.
PEER_TIMEOUT_S = 8
#: Beginning, the MPI library's own start and its end may take so long [s].
START_S = 60.0


class Measurer(msgspec.Struct, frozen=True, kw_only=True):
    """Another program with MPI than the probe, which speaks its protocol."""

    arguments: list[str]
    #: A launch of it may take so long, and be silent all the time [s]: it ends by itself when nothing moves.
    limit_s: float


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
    interface: Interface
    subnet: str | None
    #: Whether two of the nodes share a CPU, so that their ranks must yield while they wait.
    shares_cpu: Callable[..., bool]
    #: What `mpi_probe` is, where it is not the probe.
    measurer: Measurer | None = None


@contextmanager
def start(plan: LaunchPlan, site: Site, argv: list[str]) -> Iterator[RemoteProcess]:
    """Start the launch's processes; `argv` receives the command line of the measuring one."""
    if plan.transport == "net":
        with _start_net(plan, site, argv) as process:
            yield process
        return
    if plan.transport == "none":
        argv[:] = [site.net_probes[plan.place[0]], *probe_arguments(plan)]
        with site.transport.start(argv, plan.place[0]) as process:
            yield process
        return
    if site.mpi_probe is None or site.launcher is None:
        raise ProbeError(
            f"{plan.op} needs an MPI library, and none was found: install one, or name it with --mpi"
        )
    job = MpiJob(
        program=site.mpi_probe,
        arguments=site.measurer.arguments if site.measurer is not None else probe_arguments(plan),
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
    with start_net(site, plan.place, probe_arguments(plan), _guard_arguments(plan), argv=argv) as client:
        yield client


@contextmanager
def start_net(
    site: Site,
    place: Place,
    arguments: Sequence[str],
    more: Sequence[str] = (),
    argv: list[str] | None = None,
) -> Iterator[RemoteProcess]:
    """Start the socket probe: the first node of a place measures, those after it answer.

    Parameters
    ----------
    arguments, more
        What the one that measures is told, and what those that answer are told beside the usual.
    argv
        Receives the command line of the one that measures.
    """
    near, *others = place
    token = new_token()
    with ExitStack() as running:
        servers = [running.enter_context(serve(site, (near, far), token, more)) for far in others]
        ports = [server_port(server, far) for server, far in zip(servers, others, strict=True)]
        words = client_argv(site, place, ports, arguments)
        if argv is not None:
            argv[:] = words
        yield running.enter_context(site.transport.start(words, near, line=token))


def new_token() -> str:
    """Return a secret that a client and its server share."""
    return secrets.token_hex(16)


def serve(
    site: Site, pair: tuple[str, str], token: str, more: Sequence[str] = ()
) -> AbstractContextManager[RemoteProcess]:
    """Start the socket probe that answers, on the second node of a pair."""
    far = pair[1]
    address = site.addresses.get(far, far)
    argv = [site.net_probes[far], "--server", "--bind", address, "--token-stdin", *_waits(site, pair), *more]
    return site.transport.start(argv, far, line=token)


def client_argv(site: Site, place: Place, ports: Sequence[int], more: Sequence[str]) -> list[str]:
    """Return the command line of the socket probe that measures, on the first node; the others have these ports."""
    near, *others = place
    servers = [f"{site.addresses.get(far, far)}:{port}" for far, port in zip(others, ports, strict=True)]
    return [
        site.net_probes[near],
        "--connect",
        ",".join(servers),
        "--peer-name",
        ",".join(others),
        "--token-stdin",
        *_waits(site, place),
        *more,
    ]


def _waits(site: Site, place: Place) -> list[str]:
    return ["--yield"] if site.shares_cpu(*place) else []


def server_port(server: RemoteProcess, node: str) -> int:
    """Return the port at which a socket probe answers; raise ProbeError where it says none."""
    for line in server.lines(SILENCE_S, START_S):
        said = parse.message(line)
        if isinstance(said, parse.Hello) and said.port is not None:
            return said.port
        if isinstance(said, parse.ErrorLine):
            raise ProbeError(f"{node}: {said.message}")
    raise ProbeError(
        f"{node}: the probe's server ended at once: {last_line(server.stderr()) or 'no message'}"
    )


def probe_arguments(plan: LaunchPlan) -> list[str]:
    """Return what the measuring probe is told."""
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
        *(["--dir", plan.directory] if plan.transport == "mpi" and plan.directory else []),
        *(["--thread-level", plan.thread_level] if plan.transport == "mpi" and plan.thread_level else []),
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
