"""Compare BLAS libraries on nodes by products of matrices."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from wulf.base.contracts import NodeResult, Transport
from wulf.base.errors import EXIT_INTERRUPTED, ProbeError, TransportError, UsageError
from wulf.base.nodeset import reasons_text
from wulf.base.records import SCHEMA_VERSION
from wulf.base.records.libraries import BlasComparison, BlasLibrary
from wulf.base.text import count, last_line
from wulf.base.tool import Progress
from wulf.node.fleet import preparation
from wulf.node.fleet.clusters import config_of, distinct
from wulf.node.fleet.new_run import new_seed
from wulf.node.programs import blas_libraries, shipping
from wulf.node.programs.blas_runs import fewest_cpus, installed, together
from wulf.stats.estimate import ranking
from wulf.tools.blas.request import BlasRequest

#: A launch: loading, one product to warm up, and those that count [s].
LAUNCH_TIMEOUT_S = 600.0
#: A launch goes on for so long, with one product at least [ms].
FOR_MS = 200
#: To see whether a library works at all.
TRIAL_SIZE = 64


class _Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where products are measured."""

    transport: Transport
    nodes: list[str]
    #: Nodes that may be busy at the same time.
    together: list[list[str]]
    program: str
    threads: int

    def measure(
        self, library: BlasLibrary, size: int, for_ms: int
    ) -> dict[str, blas_libraries.Products | str]:
        """Return what each node measured, or why it did not."""
        argv = [self.program, library.path, "--size", str(size), "--products", "1", "--for-ms", str(for_ms)]
        variables = blas_libraries.environment(library.path, self.threads)
        found: dict[str, blas_libraries.Products | str] = {}
        for nodes in self.together:
            answers = self.transport.run(argv, nodes, timeout_s=LAUNCH_TIMEOUT_S, env=variables)
            found |= {node: _products(answer) for node, answer in answers.items()}
        return found


def compare(request: BlasRequest, say: Progress) -> BlasComparison:
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
    config = config_of(request.cluster)
    nodes = distinct(config, request.nodes)
    program = shipping.built("dgemm", None, say)
    with preparation.connect(config, nodes, say) as (transport, records):
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        bench = _Bench(
            transport=transport,
            nodes=nodes,
            together=together(config, nodes),
            program=shipping.on_nodes(config, transport, program, nodes, say),
            threads=request.threads or fewest_cpus(records),
        )
        libraries, left_out = _working(bench, *_libraries(request.paths, bench))
        if len(libraries) < 2:
            raise UsageError(_too_few(libraries, left_out))
        return _measured(request, bench, libraries, left_out, say)


def _libraries(paths: Sequence[str] | None, bench: _Bench) -> tuple[list[BlasLibrary], dict[str, str]]:
    found, missing = installed(bench.transport, bench.nodes)
    if paths is None:
        return found, missing
    default = {library.path for library in found if library.default}
    return blas_libraries.named([(path, path in default) for path in dict.fromkeys(paths)]), {}


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
    return f"{have}: there is nothing to compare{why}. More, on every node (Debian, Ubuntu): {blas_libraries.MORE}"


class _Rounds(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured so far, by library."""

    #: Of each round, by node.
    rates: dict[str, list[dict[str, float]]]
    busy: defaultdict[str, list[float]]
    #: Reason → how often.
    failures: defaultdict[str, Counter[str]]

    def take(self, found: Mapping[str, Mapping[str, blas_libraries.Products | str]]) -> None:
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
    rounds: _Rounds, request: BlasRequest, bench: _Bench, libraries: Sequence[BlasLibrary], say: Progress
) -> bool:
    """Measure all libraries in each round; return whether all were, and not Ctrl-C ended them after the first."""
    wanted = request.rounds or ranking.rounds_needed(len(libraries))
    order = random.Random(new_seed(request.seed))  # noqa: S311 - reproducible, not secret
    for number in range(wanted):
        say(f"round {number + 1} of {wanted}: {count(len(libraries), 'library')} in random order")
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
    say: Progress,
) -> BlasComparison:
    rounds = _Rounds(
        rates={library.name: [] for library in libraries},
        busy=defaultdict(list),
        failures=defaultdict(Counter),
    )
    interrupted = not _measure_rounds(rounds, request, bench, libraries, say)
    sound = {name: rates for name, rates in rounds.rates.items() if name not in rounds.failures}
    nodes = bench.nodes
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


def _products(answer: NodeResult) -> blas_libraries.Products | str:
    if answer.status != "ok":
        return last_line(answer.stderr) or answer.reason
    try:
        return blas_libraries.products(answer.stdout)
    except ProbeError as error:
        return str(error)


def exit_code(found: BlasComparison) -> int:
    """Return the exit code: whether Ctrl-C has cut it short."""
    return EXIT_INTERRUPTED if found.interrupted else 0
