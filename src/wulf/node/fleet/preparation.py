"""Make a cluster ready to be measured: look at the nodes, build the probes, put them where they run."""

from __future__ import annotations

import platform
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import TypeVar

import msgspec

from wulf import __version__
from wulf.base import catalogue
from wulf.base.contracts import Launcher, MpiJob, Say, Transport
from wulf.base.errors import BuildError, ConfigError, TransportError, UnreachableError, UsageError
from wulf.base.native import build
from wulf.base.nodeset import reasons_text
from wulf.base.output_values import cpu_list
from wulf.base.records import FactValue, LeftOut, NodeContext, NodeRecord, Operation, Place
from wulf.base.text import count, nearest, printable
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.launcher import families, launcher_for
from wulf.node.cluster.launcher.srun import Srun
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture, snapshot
from wulf.node.facts.context import Snapshot, contamination, difference, ranks_of
from wulf.node.fleet import allocation, install
from wulf.node.fleet.missed_changes import require_level
from wulf.node.probe.execute import LaunchContext, Observation, RunLaunch, launcher
from wulf.node.probe.schedule import LaunchPlan
from wulf.node.probe.start import Measurer, Site

#: A pair or a larger group of nodes.
Group = TypeVar("Group", bound=Place)


class Toolbox(msgspec.Struct, frozen=True, kw_only=True):
    """The probes of this machine that the wanted operations need, and what those are."""

    probes: list[build.Probe]
    operations: list[Operation]
    #: All operations of these probes.
    known: list[Operation]

    @property
    def mpi(self) -> build.MpiLibrary | None:
        """The MPI library to measure; None when no wanted operation needs one."""
        return next((probe.mpi for probe in self.probes if probe.mpi is not None), None)


class MeasuringSite(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster on which launches can run."""

    nodes: list[NodeRecord]
    launch: RunLaunch
    #: What it runs on.
    where: Site
    software: dict[str, FactValue]
    #: Nodes that answer but cannot take part in some of the operations.
    left_out: list[LeftOut]
    #: Time of one look at a pair of nodes [s].
    look_s: float


def toolbox(ops: Sequence[str] | None, mpi: str | None, say: Say, directory: str = "") -> Toolbox:
    """Build the probes that `ops` need.

    Parameters
    ----------
    ops
        Names of operations; None for the usual ones, of which those that need MPI are left out (and that is
        said) where there is no MPI library. Nothing is built where none is named.
    mpi
        Which library, as `wulf.base.native.build.find_mpi` takes it.
    directory
        Where operations on files are to have them; empty where nobody has said that.

    Raises
    ------
    UsageError
        An operation does not exist, or needs a directory.
    BuildError
        A probe cannot be built, or an operation needs MPI and there is none.
    """
    if ops is not None and not ops:
        return Toolbox(probes=[], operations=[], known=[])
    if not build.is_built(None):
        say("building the probe")
    net = build.build(None)
    probes = [net]
    known = {operation.name: operation for operation in build.operations(net)}
    strange = [op for op in ops or () if op.partition(":")[0] not in known]
    if ops is None or strange:
        libraries = build.find_mpi(mpi)
        if libraries:
            if not build.is_built(libraries[0]):
                say(f"building the probe with {libraries[0].version}")
            probes.append(build.build(libraries[0]))
            known |= {operation.name: operation for operation in build.operations(probes[-1])}
        elif ops is None:
            say("no MPI library was found: MPI is not measured (see --mpi)")
        else:
            raise BuildError(
                f"{strange[0]!r} needs MPI{nearest(strange[0], known)}, and there is no MPI library: "
                "install one (Debian: libopenmpi-dev openmpi-bin), or name its compiler with --mpi"
            )
    wanted = list(ops) if ops is not None else usual(known.values())
    chosen = _chosen(wanted, known, directory)
    return Toolbox(probes=probes, operations=chosen, known=list(known.values()))


def _chosen(wanted: Sequence[str], known: Mapping[str, Operation], directory: str) -> list[Operation]:
    """Return the operations of these names; raises UsageError for one that is none, or that lacks a directory."""
    chosen = []
    for op in dict.fromkeys(wanted):
        found = build.find(op, known)
        if found is None:
            raise UsageError(
                f"there is no operation {op!r}{nearest(op, known)} ('wulf measure --ops list' names all)"
            )
        if found.files and not directory:
            raise UsageError(f"{op} works on files: name a directory for them with wulf measure --dir")
        chosen.append(found)
    return chosen


def usual(operations: Iterable[Operation]) -> list[str]:
    """Return the names of those that are measured when none is named, in their order."""
    return [op.name for op in sorted(operations, key=lambda op: op.usual) if op.usual]


def measurable(places: Iterable[Group], nodes: Sequence[NodeRecord]) -> tuple[list[Group], list[Group]]:
    """Divide pairs or groups into those whose nodes answer and those with one that does not.

    Raises
    ------
    TransportError
        No pair is left; names the nodes.
    """
    down = {record.node: record.error or "does not answer" for record in nodes if not record.reachable}
    everyone = list(places)
    lost = [place for place in everyone if down.keys() & set(place)]
    if len(lost) == len(everyone):
        raise TransportError(f"no pair of nodes can be measured: {reasons_text(down)}")
    return [place for place in everyone if place not in lost], lost


@contextmanager
def connect(
    config: ClusterConfig, nodes: Sequence[str], say: Say
) -> Iterator[tuple[Transport, list[NodeRecord]]]:
    """Open the way to the nodes and take their facts; it is closed again when the context ends.

    Raises
    ------
    BehindError
        A node has missed a change and is not as the others.
    UsageError
        A node is not of the Slurm allocation in which srun starts the jobs.
    """
    allocation.require_inside(config, nodes)
    transport = open_transport(config)
    try:
        say(f"looking at {count(len(nodes), 'node')}" if len(nodes) > 1 else f"looking at {nodes[0]}")
        records = capture(transport, nodes, config.interface, list(catalogue.knobs().values()))
        require_level(config, records)
        yield transport, records
    finally:
        transport.close()


def ready(
    config: ClusterConfig,
    transport: Transport,
    nodes: list[NodeRecord],
    tools: Toolbox,
    say: Say,
    measurer: Measurer | None = None,
) -> MeasuringSite:
    """Put the probes on the nodes that answer, and return how to launch there.

    A node that does not take a probe, or on which it does not run, is left out of the operations that need it.

    Parameters
    ----------
    measurer
        How the program with MPI is asked, where that is not the probe.

    Raises
    ------
    TransportError
        No node answers.
    """
    up = [record.node for record in nodes if record.reachable]
    if not up:
        down = {record.node: record.error or "does not answer" for record in nodes}
        raise TransportError(f"no node answers: {reasons_text(down)}")
    mpi = tools.mpi
    start = mpi_launcher(config, mpi, transport, up, say) if mpi is not None else None
    places = install.install(config, transport, tools.probes, start, up, say)
    where = _where(config, transport, nodes, places, start, measurer)
    return MeasuringSite(
        nodes=nodes,
        where=where,
        launch=launcher(
            where,
            _observation(config, transport),
            lambda launch: contamination(
                launch.context,
                ranks_of(launch),
                one_machine=partial(_one_machine, config),
                shared_cpu=_share(config, launch.context),
            ),
        ),
        software=software(tools),
        left_out=_left_out(tools, places),
        look_s=look_s(config, transport, up),
    )


def _where(
    config: ClusterConfig,
    transport: Transport,
    nodes: Sequence[NodeRecord],
    places: install.Places,
    start: Launcher | None,
    measurer: Measurer | None,
) -> Site:
    return Site(
        transport=transport,
        addresses={node: config.address(node) for node in config.nodes},
        net_probes=places.net,
        mpi_probe=places.mpi,
        launcher=start,
        mpi_env=dict(config.mpi.env),
        interface=config.interface,
        subnet=subnet(nodes),
        shares_cpu=sharing(config, nodes),
        measurer=measurer,
    )


def _left_out(tools: Toolbox, places: install.Places) -> list[LeftOut]:
    found = []
    for reasons, needed in ((places.lacks_net, _needs_net), (places.lacks_mpi, _needs_mpi)):
        ops = [operation.name for operation in tools.operations if needed(operation)]
        if ops:
            found += [LeftOut(node=node, ops=ops, reason=printable(r, 500)) for node, r in reasons.items()]
    return found


def _needs_net(operation: Operation) -> bool:
    return operation.transport in ("net", "none") or operation.beside_traffic


def _needs_mpi(operation: Operation) -> bool:
    return operation.transport == "mpi"


def mpi_command(
    config: ClusterConfig,
    transport: Transport,
    nodes: Sequence[NodeRecord],
    mpi: str | None,
    place: Place,
    command: str,
    say: Say,
) -> str:
    """Return for a shell on the first node how an MPI program is started with a rank on each node of a place.

    Parameters
    ----------
    mpi
        Which library, as `wulf.base.native.build.find_mpi` takes it.
    command
        The program and its arguments, quoted as for a shell.

    Raises
    ------
    BuildError
        There is no MPI library.
    UsageError
        It is no single program with its arguments.
    """
    libraries = build.find_mpi(mpi)
    if not libraries:
        raise BuildError("no MPI library was found: install one, or give the path of its compiler with --mpi")
    program, *arguments = _words(command)
    start = mpi_launcher(config, libraries[0], transport, list(dict.fromkeys(place)), say)
    job = MpiJob(
        program=program,
        arguments=arguments,
        hosts=[(node, config.address(node)) for node in place],
        interface=config.interface,
        subnet=subnet(nodes),
        shared_cpu=sharing(config, nodes)(*place),
        env=dict(config.mpi.env),
    )
    variables = [f"{name}={value}" for name, value in start.env(job).items()]
    return shlex.join(["env", *variables, *start.argv(job)])


def _words(command: str) -> list[str]:
    """Return a program and its arguments; refuse what only a shell understands: ranks are not started by one."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError as error:
        raise UsageError(f"{printable(command, 200)!r}: {error}") from None
    strange = [word for word in words if word and set(word) <= set("();<>|&")]
    if not words or strange or "=" in words[0]:
        raise UsageError(
            f"--ranks: {printable(command, 200)!r} is not a program with its arguments, and ranks are not started by a "
            "shell: put the rest into a script"
        )
    return words


def look_s(config: ClusterConfig, transport: Transport, nodes: Sequence[str]) -> float:
    """Time of one look at two nodes [s]: every launch has one before it and one after it."""
    begin = time.monotonic()
    snapshot(transport, nodes[:2], config.interface)
    return time.monotonic() - begin


def software(tools: Toolbox) -> dict[str, FactValue]:
    """Versions of what measures, for the provenance of a run."""
    facts: dict[str, FactValue] = {
        "wulf": __version__,
        "python": platform.python_version(),
        "controller_kernel": platform.release(),
        "compiler": build.compiler_version(),
    }
    facts |= {f"python_{name}": metadata.version(name) for name in ("numpy", "scipy", "ClusterShell")}
    for probe in tools.probes:
        facts["probe_mpi_sha256" if probe.mpi else "probe_net_sha256"] = probe.digest
        if probe.prebuilt:
            facts["probe_net_prebuilt"] = True
    if tools.mpi is not None:
        facts |= {"mpi": tools.mpi.version, "mpi_compiler": tools.mpi.compiler}
    return facts


def mpi_launcher(
    config: ClusterConfig, mpi: build.MpiLibrary, transport: Transport, nodes: Sequence[str], say: Say
) -> Launcher:
    """Return how jobs of a library are started on nodes: as the cluster's file says, else by the library itself.

    Raises
    ------
    ConfigError
        The file names the launcher of another library: every rank would be a job of its own.
    """
    name = config.mpi.launcher or mpi.launcher
    if name == Srun.name:
        return allocation.srun(config, mpi, transport, nodes, say)
    if mpi.family not in families(name):
        raise ConfigError(
            f'{config.origin}: [mpi] launcher = "{name}" cannot start jobs of {mpi.version}: '
            "leave it out, and each library starts its own jobs, or name another library with --mpi"
        )
    return launcher_for(
        name, mpi.mpirun, config.mpi.arguments, compiler=mpi.compiler, binding=config.binding()
    )


def job_variables(config: ClusterConfig, family: str, nodes: Sequence[NodeRecord]) -> dict[str, str]:
    """Return the environment of jobs of a library's family on all these nodes, before a trial adds to it."""
    job = MpiJob(
        program="",
        arguments=[],
        hosts=[],
        interface=config.interface,
        subnet=subnet(nodes),
        shared_cpu=sharing(config, nodes)(*(record.node for record in nodes)),
        env=dict(config.mpi.env),
    )
    return launcher_for(config.mpi.launcher or family, binding=config.binding()).env(job)


def subnet(nodes: Iterable[NodeRecord]) -> str | None:
    """Return the subnet of the measured interface (CIDR); None where the nodes have several."""
    subnets = {str(record.facts["nic.subnet"]) for record in nodes if "nic.subnet" in record.facts}
    return subnets.pop() if len(subnets) == 1 else None


def sharing(config: ClusterConfig, nodes: Sequence[NodeRecord]) -> Callable[..., bool]:
    """Return whether ranks on some nodes share a CPU: those of several nodes, or more than a node has CPUs."""
    cpus = {
        record.node: len(cpu_list(str(record.facts["cpu.allowed"])))
        for record in nodes
        if "cpu.allowed" in record.facts
    }

    def share(*place: str) -> bool:
        # On one machine all ranks have the same CPUs, whatever their nodes are called.
        where = [place[0]] * len(place) if config.transport == "local" and place else place
        return config.shares_cpu(*place) or any(
            node in cpus and ranks > cpus[node] for node, ranks in Counter(where).items()
        )

    return share


def memory_bytes(config: ClusterConfig, nodes: Sequence[NodeRecord]) -> int | None:
    """Return the memory of nodes together, as the smallest allows [B]; None where a node does not say.

    Containers, and nodes on the same CPUs, have that of one host.
    """
    sizes = [record.facts.get("memory.total_bytes") for record in nodes]
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    if len(known) < len(sizes):
        return None
    contained = any(record.facts.get("node.container", "none") != "none" for record in nodes)
    one_host = contained or config.shares_cpu(*(record.node for record in nodes))
    return min(known) if one_host else min(known) * len(known)


def _one_machine(config: ClusterConfig, one: str, other: str) -> bool:
    return one == other or config.transport == "local" or config.shares_cpu(one, other)


def _share(config: ClusterConfig, contexts: Sequence[NodeContext]) -> bool:
    return config.shares_cpu(*(context.node for context in contexts))


def _counted_once(config: ClusterConfig, contexts: Sequence[NodeContext]) -> list[NodeContext]:
    """Return contexts of which one node of each machine has its energy: the counters are those of all of them."""
    found: list[NodeContext] = []
    for context in contexts:
        same = next((one.node for one in found if _one_machine(config, one.node, context.node)), None)
        if same is None or context.cpu_joules is None:
            found.append(context)
            continue
        why = f"it is on one machine with {same}, whose counters have it already"
        unknown = {**context.unknown, "cpu_joules": why}
        found.append(msgspec.structs.replace(context, cpu_joules=None, unknown=unknown))
    return found


def _lost(snapshots: Iterable[Snapshot]) -> dict[str, str]:
    return {look.node: look.unreachable for look in snapshots if look.unreachable is not None}


def _observation(config: ClusterConfig, transport: Transport) -> Observation:
    def observe(plan: LaunchPlan) -> Callable[[], LaunchContext]:
        place = plan.place
        nodes = list(dict.fromkeys(place))

        def own_cpus(node: str) -> float | None:
            if plan.command:
                return None  # a command's own processes are its business
            # On one machine all ranks are on every "node", and so is what streams beside them.
            everything = len(place) + 2 * len(plan.beside)
            return float(everything if config.transport == "local" else place.count(node))

        before = snapshot(transport, nodes, config.interface)
        lost = _lost(before)
        if lost:
            raise UnreachableError("; ".join(lost.values()), list(lost))

        def finish() -> LaunchContext:
            after = snapshot(transport, nodes, config.interface)
            contexts = [difference(a, b, own_cpus(a.node)) for a, b in zip(before, after, strict=True)]
            return LaunchContext(contexts=_counted_once(config, contexts), unreachable=_lost(after))

        return finish

    return observe
