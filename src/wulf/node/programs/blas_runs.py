"""Compare BLAS libraries on nodes by products of matrices, and prove which one a program uses."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from wulf.base.contracts import NodeResult, Transport
from wulf.base.errors import ProbeError, TransportError, UsageError
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import SCHEMA_VERSION, NodeRecord
from wulf.base.records.blas import BlasComparison, BlasLibrary
from wulf.base.text import last_line, printable
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.facts.values import cpu_list
from wulf.node.fleet import site
from wulf.node.programs import blas, shipping
from wulf.stats.estimate import ranking

ASK_TIMEOUT_S = 30.0
#: A launch: loading, one product to warm up, and those that count [s].
LAUNCH_TIMEOUT_S = 600.0
#: A launch goes on for so long, with one product at least [ms].
FOR_MS = 200
#: To see whether a library works at all.
TRIAL_SIZE = 64

Say = Callable[[str], None]


class BlasRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be compared, and how."""

    config: ClusterConfig
    nodes: list[str]
    #: Paths of libraries; None for all that are found.
    libraries: list[str] | None = None
    #: None for as many as the node with the fewest CPUs has.
    threads: int | None = None
    size: int = 1000
    #: None for as many as the number of libraries needs.
    rounds: int | None = None
    margin: float = 0.02
    seed: int = 0


class _Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where products are measured."""

    transport: Transport
    #: Nodes that may be busy at the same time.
    together: list[list[str]]
    program: str
    threads: int

    def measure(self, library: BlasLibrary, size: int, for_ms: int) -> dict[str, blas.Products | str]:
        """Return what each node measured, or why it did not."""
        argv = [self.program, library.path, "--size", str(size), "--products", "1", "--for-ms", str(for_ms)]
        variables = blas.environment(library.path, self.threads)
        found: dict[str, blas.Products | str] = {}
        for nodes in self.together:
            answers = self.transport.run(argv, nodes, timeout_s=LAUNCH_TIMEOUT_S, env=variables)
            found |= {node: _products(answer) for node, answer in answers.items()}
        return found


def compare(request: BlasRequest, say: Say) -> BlasComparison:
    """Find the libraries on the nodes and compare those that all nodes have.

    After Ctrl-C the rounds that are whole are compared.

    Raises
    ------
    UsageError
        There are fewer than two that can be compared; says how to get more.
    TransportError
        A node does not answer.
    KeyboardInterrupt
        Before the first round was whole.
    """
    program = shipping.built("dgemm", None, say)
    with site.connect(request.config, request.nodes, say) as (transport, records):
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        bench = _Bench(
            transport=transport,
            together=together(request.config, request.nodes),
            program=shipping.on_nodes(request.config, transport, program, request.nodes, say),
            threads=request.threads or fewest_cpus(records),
        )
        libraries, left_out = _working(bench, *_libraries(request, transport))
        if len(libraries) < 2:
            raise UsageError(_too_few(libraries, left_out))
        return _measured(request, bench, libraries, left_out, say)


def fewest_cpus(records: Sequence[NodeRecord]) -> int:
    """Return how many CPUs the node has that has the fewest; 1 where no node says."""
    counts = [len(cpu_list(str(one.facts["cpu.allowed"]))) for one in records if "cpu.allowed" in one.facts]
    return min(counts, default=1)


def proven(
    transport: Transport,
    node: str,
    program: str,
    library: BlasLibrary,
    before: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables with which a program uses a library on a node; the dynamic linker has been asked.

    Parameters
    ----------
    program
        Path, or a name that the node finds.
    before
        Variables that the program has besides; its LD_LIBRARY_PATH and LD_PRELOAD stay, behind the library.

    Raises
    ------
    ProbeError
        It would use another library, or has one built in; says which and why.
    """
    variables = blas.environment(library.path, before=before)
    everything = {**(before or {}), **variables}
    answer = transport.run(
        ["sh", "-c", blas.BINDINGS, "sh", program], [node], timeout_s=ASK_TIMEOUT_S, env=everything
    )[node]
    files = blas.bound(answer.stdout.decode(errors="replace"))
    if not files:
        why = last_line(answer.stderr) or "none of its libraries, or of its own calls, is bound to dgemm"
        raise ProbeError(f"{node}: {printable(program, 200)}: its BLAS library cannot be exchanged: {why}")
    wanted = PurePosixPath(library.path).parent
    others = [file for file in files if PurePosixPath(file).parent != wanted]
    if others:
        raise ProbeError(
            f"{node}: {printable(program, 200)} would use {printable(others[0], 200)}, not {library.path}: is a path "
            "built into it (RPATH), or another library in LD_PRELOAD?"
        )
    return variables


def installed(transport: Transport, nodes: Sequence[str]) -> tuple[list[BlasLibrary], dict[str, str]]:
    """Return the libraries that all nodes have, and why others are left out."""
    answers = transport.run(["sh", "-c", blas.FIND], nodes, timeout_s=ASK_TIMEOUT_S)
    bad = {node: answer.reason for node, answer in answers.items() if answer.status != "ok"}
    if bad:
        raise TransportError(reasons_text(bad))
    on_node = {node: blas.find(answer.stdout.decode(errors="replace")) for node, answer in answers.items()}
    places: dict[str, list[str]] = defaultdict(list)
    known: dict[str, BlasLibrary] = {}
    for node, libraries in on_node.items():
        for library in libraries:
            places[library.path].append(node)
            known.setdefault(library.path, library)
    missing = {
        library.name: f"it is not on {fold(set(nodes) - set(places[path]))}"
        for path, library in known.items()
        if len(places[path]) < len(nodes)
    }
    return [library for path, library in known.items() if len(places[path]) == len(nodes)], missing


def _libraries(request: BlasRequest, transport: Transport) -> tuple[list[BlasLibrary], dict[str, str]]:
    if request.libraries is None:
        return installed(transport, request.nodes)
    found, _ = installed(transport, request.nodes)
    default = {library.path for library in found if library.default}
    return blas.named([(path, path in default) for path in dict.fromkeys(request.libraries)]), {}


def _working(
    bench: _Bench, libraries: Sequence[BlasLibrary], left_out: Mapping[str, str]
) -> tuple[list[BlasLibrary], dict[str, str]]:
    """Try every library on every node: what does not work, or is not what it seems, is left out."""
    working: list[BlasLibrary] = []
    lost = dict(left_out)
    for library in libraries:
        found = bench.measure(library, TRIAL_SIZE, 0)
        reasons = {f"{library.name} on {node}": said for node, said in found.items() if isinstance(said, str)}
        reasons |= {
            f"{library.name} on {node}": f"its dgemm_ is in {said.file}: another library does its work"
            for node, said in found.items()
            if not isinstance(said, str) and not _is_of(said.file, library.path)
        }
        lost |= reasons
        if not reasons:
            versions = {said.version for said in found.values() if not isinstance(said, str)}
            working.append(msgspec.structs.replace(library, version=" | ".join(sorted(versions))))
    return working, lost


def _is_of(file: str, library: str) -> bool:
    """Whether a file, with all links followed, is a library: it lies beside it, or another link leads to it."""
    real, own = PurePosixPath(file), PurePosixPath(library)
    return real.parent == own.parent or real.name.partition(".so")[0] == own.name.partition(".so")[0]


def _too_few(libraries: Sequence[BlasLibrary], left_out: Mapping[str, str]) -> str:
    have = f"only {libraries[0].name} can be used" if libraries else "no BLAS library can be used"
    why = "".join(f"; {name}: {reason}" for name, reason in left_out.items())
    return f"{have}: there is nothing to compare{why}. More, on every node (Debian, Ubuntu): {blas.MORE}"


class _Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured so far, by library."""

    #: Of each round, by node.
    rates: dict[str, list[dict[str, float]]]
    busy: defaultdict[str, list[float]]
    #: Reason → how often.
    failures: defaultdict[str, Counter[str]]

    def take(self, found: Mapping[str, Mapping[str, blas.Products | str]]) -> None:
        """Take one round: what each library reached on each node, or why it reached nothing."""
        for name, of_nodes in found.items():
            self.rates[name].append({})
            for node, said in of_nodes.items():
                if isinstance(said, str):
                    self.failures[name][said] += 1
                else:
                    self.rates[name][-1][node] = said.middle
                    self.busy[name].append(said.busy_cpus)


def _measure_rounds(
    rounds: _Rounds, request: BlasRequest, bench: _Bench, libraries: Sequence[BlasLibrary], say: Say
) -> bool:
    """Measure all libraries in each round; return whether all were, and not Ctrl-C ended them after the first."""
    wanted = request.rounds or ranking.rounds_needed(len(libraries))
    order = random.Random(request.seed)  # noqa: S311 - reproducible, not secret
    for number in range(wanted):
        say(f"round {number + 1} of {wanted}: {len(libraries)} libraries in random order")
        try:
            found = {
                library.name: bench.measure(library, request.size, FOR_MS)
                for library in order.sample(libraries, len(libraries))
            }
        except KeyboardInterrupt:
            if not number:
                raise
            return False
        rounds.take(found)
    return True


def _measured(
    request: BlasRequest,
    bench: _Bench,
    libraries: Sequence[BlasLibrary],
    left_out: Mapping[str, str],
    say: Say,
) -> BlasComparison:
    rounds = _Rounds(
        rates={library.name: [] for library in libraries},
        busy=defaultdict(list),
        failures=defaultdict(Counter),
    )
    interrupted = not _measure_rounds(rounds, request, bench, libraries, say)
    sound = {name: rates for name, rates in rounds.rates.items() if name not in rounds.failures}
    nodes = request.nodes
    return BlasComparison(
        schema_version=SCHEMA_VERSION,
        nodes=nodes,
        libraries=list(libraries),
        left_out=dict(left_out),
        size=request.size,
        threads=bench.threads,
        rounds=len(rounds.rates[libraries[0].name]),
        margin=request.margin,
        ranking=ranking.rank(sound, request.margin),
        by_node={node: ranking.rank(_of(sound, node), request.margin, len(nodes)) for node in nodes}
        if len(nodes) > 1
        else {},
        busy_cpus={name: sorted(values)[len(values) // 2] for name, values in rounds.busy.items()},
        failures={name: dict(reasons) for name, reasons in rounds.failures.items()},
        interrupted=interrupted,
    )


def _of(rates: Mapping[str, Sequence[Mapping[str, float]]], node: str) -> dict[str, list[dict[str, float]]]:
    return {
        name: [{node: one[node]} if node in one else {} for one in rounds] for name, rounds in rates.items()
    }


def together(config: ClusterConfig, nodes: Sequence[str]) -> list[list[str]]:
    """Return sets of nodes of which no two have a CPU in common: each set is measured at the same time."""
    sets: list[list[str]] = []
    for node in nodes:
        free = next((one for one in sets if not any(_same_cpus(config, node, other) for other in one)), None)
        if free is None:
            sets.append([node])
        else:
            free.append(node)
    return sets


def _same_cpus(config: ClusterConfig, first: str, second: str) -> bool:
    return config.transport == "local" or config.shares_cpu(first, second)


def _products(answer: NodeResult) -> blas.Products | str:
    if answer.status != "ok":
        return last_line(answer.stderr) or answer.reason
    try:
        return blas.products(answer.stdout)
    except ProbeError as error:
        return str(error)
