"""HPC Challenge on the nodes: all together and each alone, in rounds; stored as a run."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from wulf.base import store
from wulf.base.contracts import Launcher, MpiJob, NodeResult, RemoteProcess, Transport
from wulf.base.errors import BuildError, ImportFormatError, ProbeError, TransportError, UsageError
from wulf.base.importing import challenge as output
from wulf.base.importing.series import Series, Source
from wulf.base.native import build
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import (
    FactValue,
    Launch,
    LaunchResult,
    Manifest,
    NodeRecord,
    Operation,
    Part,
    Place,
    Plan,
    Workload,
)
from wulf.base.store.files import timestamp
from wulf.base.text import count, last_line, printable
from wulf.base.tool import Progress
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.clusters import config_of, distinct
from wulf.node.fleet.new_run import head, new_seed, place_of
from wulf.node.measuring.analysis import analyze
from wulf.node.measuring.imported import CONFIDENCE, PRECISION, operation_of, sample_of
from wulf.node.programs import blas_libraries
from wulf.node.programs.blas_runs import fewest_cpus, together
from wulf.stats.core.trend import TESTABLE
from wulf.tools.hpcc import program as hpcc
from wulf.tools.hpcc.request import SMALLEST, HpccRequest

ASK_TIMEOUT_S = 30.0
#: A run may take so many times what it should, and as much again [s].
PATIENCE, PATIENCE_S = 10.0, 120.0
#: Where runs are on the nodes, below the home directory.
_DIRECTORY = ".cache/wulf/hpcc"


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """Where one run of HPCC goes: on all nodes together, or on each of some alone, at the same time."""

    #: Node on which it is started → the node of every rank.
    places: dict[str, Place]
    mpi: MpiJob
    #: Nodes of one run.
    nodes: int
    #: That one run may have a part of [B]; None where it is unknown, and N is given.
    memory_bytes: float | None
    size: int = hpcc.SCOUT_SIZE
    expected_s: float = 0.0


class _Run(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one run of HPCC."""

    place: Place
    argv: list[str]
    started_at: str
    duration_s: float
    #: None where it failed.
    summary: output.Summary | None
    error: str = ""


class _Bench(msgspec.Struct, frozen=True, kw_only=True):
    """Where HPCC runs."""

    transport: Transport
    launcher: Launcher
    #: On every node, below the home directory.
    directory: str

    def run(self, job: _Job) -> list[_Run]:
        """Run HPCC once, or once on each of the job's nodes; whatever becomes of it."""
        text = hpcc.input_file(job.size, len(job.mpi.hosts)).encode()
        everyone = list(dict.fromkeys(node for place in job.places.values() for node in place))
        ready = self._sh(hpcc.PREPARE, everyone, stdin=text)
        argv = self.launcher.argv(job.mpi)
        started_at, begin = timestamp("milliseconds"), time.monotonic()
        lost = [answer.reason for answer in ready.values() if answer.status != "ok"]
        complaints = dict.fromkeys(job.places, "; ".join(lost)) if lost else self._start(job, argv)
        took_s = time.monotonic() - begin
        said = self._sh(hpcc.COLLECT, [node for node, complaint in complaints.items() if not complaint])
        return [
            _outcome(
                _Run(place=place, argv=argv, started_at=started_at, duration_s=took_s, summary=None),
                complaints[node],
                said.get(node),
            )
            for node, place in job.places.items()
        ]

    def _start(self, job: _Job, argv: Sequence[str]) -> dict[str, str]:
        """Run it where it is started, everywhere at the same time; return what went wrong there, or nothing.

        Whatever happens here, Ctrl-C too, it is ended there.
        """
        end = time.monotonic() + PATIENCE * job.expected_s + PATIENCE_S
        with ExitStack() as stack:
            started = {
                node: stack.enter_context(self.transport.start(argv, node, env=self.launcher.env(job.mpi)))
                for node in job.places
            }
            return {
                node: _complaint(process, node, max(end - time.monotonic(), 0.0))
                for node, process in started.items()
            }

    def _sh(self, script: str, nodes: Sequence[str], stdin: bytes | None = None) -> dict[str, NodeResult]:
        if not nodes:
            return {}
        argv = ["sh", "-c", script, "sh", self.directory]
        return self.transport.run(argv, nodes, timeout_s=ASK_TIMEOUT_S, stdin=stdin)

    def remove(self, nodes: Sequence[str]) -> None:
        """Remove what was written on the nodes."""
        self._sh(hpcc.REMOVE, nodes)


def measure(request: HpccRequest, say: Progress) -> store.Run:
    """Run HPCC on all nodes together and on each alone, and store it as a run that is analysed.

    After Ctrl-C, and when the time is over, the rounds that are whole are kept.

    Raises
    ------
    KeyboardInterrupt
        Before the first round was whole.
    ProbeError
        HPCC is missing on a node, or the first run, of a small problem, fails; says why.
    TransportError
        A node does not answer.
    UsageError
        The memory of a node is unknown, and N is not given.
    """
    path = place_of(request.path, request.runs)
    budget_s = allocation.capped(request.budget_s, say.note)
    cluster, seed = config_of(request.cluster), new_seed(request.seed)
    request = replace(request, cluster=cluster, seed=seed, budget_s=budget_s)
    rounds = allocation.Rounds(budget_s)
    with _bench(request, path, say) as (bench, jobs, records, software):
        say("a small problem first, to see how long it takes")
        scouted = [_scout(bench, job) for job in jobs]
        each_s = (budget_s - rounds.passed_s) / (request.launches * len(jobs))
        if request.size is None:
            say("a larger one")
            nearer = hpcc.SCOUT_SHARE * each_s
            scouted = [_scout(bench, job) for job in _sized(request, scouted, nearer)]
            each_s = (budget_s - rounds.passed_s) / (request.launches * len(jobs))
        sized = list(_sized(request, scouted, each_s))
        operations = _operations(sized, scouted)
        manifest = Manifest(
            **head(path.name, cluster, list(operations.values()), software),
            plan=_plan(request, sized, scouted),
        )
        with store.create(path, manifest) as writer:
            for record in records:
                writer.append(record)
            try:
                done = _rounds(request, bench, sized, (writer, operations), rounds, say)
                writer.update(status="complete" if done else "budget")
            except KeyboardInterrupt:
                writer.update(status="interrupted")
    run = store.load(path)
    if not run.results and run.manifest.status == "interrupted":
        raise KeyboardInterrupt
    store.save_analysis(path, analyze(run))
    return run


def _rounds(
    request: HpccRequest,
    bench: _Bench,
    jobs: Sequence[_Job],
    kept: tuple[store.Writer, Mapping[str, Operation]],
    rounds: allocation.Rounds,
    say: Progress,
) -> bool:
    """Run all jobs in rounds of random order; False when the time ended it."""
    writer, operations = kept
    index = 0
    for number in range(request.launches):
        if not rounds.another():
            return False
        say(f"round {number + 1} of {request.launches}, {rounds.passed_s:.0f} s of {request.budget_s:.0f} s")
        seed = new_seed(request.seed) + number
        order = random.Random(seed)  # noqa: S311 - reproducible, not secret
        runs = [run for job in order.sample(jobs, len(jobs)) for run in bench.run(job)]
        for run in runs:  # a round is stored as a whole: nodes are compared round by round
            for result in _results(run, operations, index, seed):
                writer.append(result)
                index += 1
            if run.error:
                say.note(f"  {fold(set(run.place))}: failed: {run.error}")
    return True


@contextmanager
def _bench(
    request: HpccRequest, path: Path, say: Progress
) -> Iterator[tuple[_Bench, list[_Job], list[NodeRecord], dict[str, FactValue]]]:
    config = config_of(request.cluster)
    nodes = distinct(config, request.nodes)
    with preparation.connect(config, nodes, say) as (transport, records):
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        program, family = _program(transport, nodes, request.program)
        library = _library(config, family)
        launcher = preparation.mpi_launcher(config, library, transport, nodes, say)
        ranks = request.ranks_per_node or fewest_cpus(records)
        bench = _Bench(transport=transport, launcher=launcher, directory=f"{_DIRECTORY}/{path.name}")
        jobs = _jobs(request, records, ranks, launcher.name, (bench.directory, program))
        _require_memory(request, records)
        software: dict[str, FactValue] = {"mpi": library.version, "hpcc": program}
        try:
            yield bench, jobs, records, software
        finally:
            bench.remove(nodes)


def _require_memory(request: HpccRequest, records: Sequence[NodeRecord]) -> None:
    """Refuse to choose N for nodes whose memory is unknown."""
    config = config_of(request.cluster)
    unknown = [record.node for record in records if preparation.memory_bytes(config, [record]) is None]
    if unknown and request.size is None:
        raise UsageError(
            f"{fold(unknown)}: the memory is not known ('wulf audit facts' says why), so that no N can be "
            f"chosen: give one "
            "with --size"
        )


def _program(transport: Transport, nodes: Sequence[str], wanted: str) -> tuple[str, str | None]:
    """Return the path of the program, and the family of the MPI library that it is linked with.

    A name that nodes find at different paths remains one. The family is None where it cannot be seen, as of a script.

    Raises
    ------
    ProbeError
        A node does not have it, or a relative path is another one there.
    """
    answers = transport.run(["sh", "-c", hpcc.LOOK, "sh", wanted], nodes, timeout_s=ASK_TIMEOUT_S)
    missing = {
        node: f"{node}: {last_line(answer.stderr) or answer.reason}"
        for node, answer in answers.items()
        if answer.status != "ok"
    }
    if missing:
        raise ProbeError(f"{'; '.join(missing.values())}: {hpcc.MISSING}")
    said = [answer.stdout.decode(errors="replace").partition("\n") for answer in answers.values()]
    family = build.family_of("".join(linked for _, _, linked in said))
    paths = list(dict.fromkeys(path for path, _, _ in said))
    if len(paths) == 1:
        return paths[0], family
    if "/" in wanted:
        places = ", ".join(printable(path, 200) for path in paths)
        raise ProbeError(f"--program {wanted}: it is at {places}: give one path that all nodes have")
    return wanted, family


def _library(config: ClusterConfig, family: str | None) -> build.MpiLibrary:
    """Return the library that starts the program: the one that the site names, else the first of that family."""
    libraries = build.find_mpi(config.mpi.compiler)
    own = [library for library in libraries if config.mpi.compiler or family in (None, library.family)]
    if not own:
        raise BuildError(
            f"there is no {family or 'MPI library'} here to start HPCC with: install it, or name its compiler in "
            "cluster.toml ([mpi] compiler)"
        )
    return own[0]


def _jobs(
    request: HpccRequest, records: Sequence[NodeRecord], ranks: int, launcher: str, program: tuple[str, str]
) -> list[_Job]:
    """Return the runs of a round; `program` is the directory where it runs, and its path."""
    config = config_of(request.cluster)
    nodes = distinct(config, request.nodes)
    shares = preparation.sharing(config, records)

    def job(hosts: list[tuple[str, str]], places: dict[str, Place], *, inside: bool) -> _Job:
        busy = {node for place in places.values() for node in place}
        memory = preparation.memory_bytes(config, [record for record in records if record.node in busy])
        return _Job(
            places=places,
            nodes=1 if inside else len(nodes),
            # Of nodes of one host that run at the same time, each has its part.
            memory_bytes=None if memory is None else memory / len(places),
            mpi=MpiJob(
                program="sh",
                arguments=["-c", hpcc.RUN, "sh", *program],
                hosts=hosts,
                interface=None if inside else config.interface,
                subnet=None if inside else preparation.subnet(records),
                shared_cpu=any(shares(*place) for place in places.values()),
                env=dict(config.mpi.env) | blas_libraries.thread_variables(1),
            ),
        )

    whole = tuple(node for node in nodes for _ in range(ranks))
    jobs = [job([(node, config.address(node)) for node in whole], {nodes[0]: whole}, inside=len(nodes) == 1)]
    if len(nodes) == 1:
        return jobs
    # Each node starts its own job, of itself; srun starts them by name, one after the other.
    sets = [[node] for node in nodes] if launcher == "srun" else together(config, nodes)
    for alone in sets:
        host = alone[0] if launcher == "srun" else "localhost"
        hosts = [(alone[0], host)] * ranks
        jobs.append(job(hosts, {node: (node,) * ranks for node in alone}, inside=True))
    return jobs


class _Scouted(msgspec.Struct, frozen=True, kw_only=True):
    """What a smaller problem showed."""

    job: _Job
    summary: output.Summary
    took_s: float

    @property
    def times(self) -> tuple[int, float, float]:
        """Return its N, its time, and that of its HPL [s]."""
        hpl_s = next((one.value for one in self.summary.figures if one.name == "HPL_time"), self.took_s)
        return self.job.size, self.took_s, hpl_s


def _scout(bench: _Bench, job: _Job) -> _Scouted:
    """Run a job once, to see how long it takes."""
    runs = bench.run(msgspec.structs.replace(job, expected_s=max(job.expected_s, 60.0)))
    failed = [f"{fold(set(run.place))}: {run.error}" for run in runs if run.summary is None]
    if failed:
        raise ProbeError("; ".join(failed))
    summary = next(run.summary for run in runs if run.summary is not None)
    return _Scouted(job=job, summary=summary, took_s=runs[0].duration_s)


def _sized(request: HpccRequest, scouted: Sequence[_Scouted], each_s: float) -> Iterator[_Job]:
    """Yield the jobs with the N that fits into their part of the time, and into memory; the same N on each node."""
    sizes: dict[int, int] = {}
    whole = max(scout.job.nodes for scout in scouted)
    for scout in scouted:
        nodes = scout.job.nodes
        if request.size is not None:
            # As much on each node as in the run of all of them.
            size = round(request.size * (nodes / whole) ** 0.5)
        else:
            assert scout.job.memory_bytes is not None
            size = hpcc.fitting(hpcc.size_for(each_s, scout.times), scout.job.memory_bytes)
        sizes[nodes] = min(sizes.get(nodes, size), size)
    for scout in scouted:
        size = max(sizes[scout.job.nodes], SMALLEST)
        yield msgspec.structs.replace(scout.job, size=size, expected_s=max(each_s, scout.took_s))


def _operations(jobs: Sequence[_Job], scouted: Sequence[_Scouted]) -> dict[str, Operation]:
    found: dict[str, Operation] = {}
    for job, scout in zip(jobs, scouted, strict=True):
        for series in _series(_of_size(scout.summary, job.size)):
            found.setdefault(
                series.name, msgspec.structs.replace(operation_of(series), summary="HPC Challenge")
            )
    return found


def _of_size(summary: output.Summary, size: int) -> output.Summary:
    return msgspec.structs.replace(summary, settings=summary.settings | {"HPL_N": str(size)})


def _series(summary: output.Summary) -> list[Series]:
    """Return the results; all are of all ranks, whichever of them a test has chosen."""
    return [msgspec.structs.replace(output.series(figure, summary), ranks=0) for figure in summary.figures]


def _plan(request: HpccRequest, jobs: Sequence[_Job], scouted: Sequence[_Scouted]) -> Plan:
    places: dict[str, list[Place]] = defaultdict(list)
    sizes: dict[str, int] = {}
    for job, scout in zip(jobs, scouted, strict=True):
        for series in _series(_of_size(scout.summary, job.size)):
            places[series.name] += job.places.values()
            sizes[series.name] = min(series.times_s)
    parts = [
        Part(op=op, sizes_bytes=[sizes[op]], places=list(dict.fromkeys(of_op)), group=True)
        for op, of_op in places.items()
    ]
    return Plan(
        workload=Workload(parts=parts, sweeps=1, visit_us=0),
        ladder="hpcc",
        max_size_bytes=max(sizes.values()),
        precision=PRECISION,
        confidence=CONFIDENCE,
        budget_s=request.budget_s,
        min_launches=min(6, request.launches),
        max_launches=request.launches,
        tested_launches=TESTABLE,
        seed=new_seed(request.seed),
    )


def _complaint(process: RemoteProcess, node: str, limit_s: float) -> str:
    """Wait for the end of a run; return why it failed, or nothing."""
    try:
        code = process.wait(limit_s)
    except TransportError as failure:
        return str(failure)
    return "" if code == 0 else last_line(process.stderr()) or f"{node}: exit code {code}"


def _outcome(run: _Run, complaint: str, said: NodeResult | None) -> _Run:
    """Judge a run: it is good where it finished, with the ranks that were meant, and passed all its checks."""
    if complaint or said is None:
        return msgspec.structs.replace(run, error=complaint or "there is no output")
    if said.status != "ok":
        return msgspec.structs.replace(run, error=last_line(said.stderr) or said.reason)
    try:
        summary = output.summary(Source(said.stdout.decode(errors="replace"), f"{said.node}: hpccoutf.txt"))
    except ImportFormatError as error:
        return msgspec.structs.replace(run, error=str(error))
    if summary.ranks != len(run.place):
        why = (
            f"{summary.ranks} of {count(len(run.place), 'rank')} took part: is mpirun of the MPI library HPCC is "
            "linked with? Name that library's compiler in cluster.toml ([mpi] compiler)"
        )
        return msgspec.structs.replace(run, error=why)
    if summary.failures:
        return msgspec.structs.replace(run, error="; ".join(summary.failures))
    return msgspec.structs.replace(run, summary=summary)


def _results(run: _Run, operations: Mapping[str, Operation], index: int, seed: int) -> Iterator[LaunchResult]:
    """Yield a launch for each result, as a run has one of each operation; of a run that failed, one."""
    if run.summary is None:
        yield LaunchResult(launch=_launch(run, next(iter(operations)), [0], index, seed), samples=[])
        return
    for series in _series(run.summary):
        if series.name not in operations:
            continue  # the small problem did not have it, such as the time of a step that was too short
        (size, seconds) = next(iter(series.times_s.items()))
        launch = _launch(run, series.name, [size], index, seed)
        sample = sample_of(operations[series.name], size, seconds, run.place)
        yield LaunchResult(launch=launch, samples=[msgspec.structs.replace(sample, launch=launch.id)])
        index += 1


def _launch(run: _Run, op: str, sizes: list[int], index: int, seed: int) -> Launch:
    return Launch(
        id=f"{index:05d}",
        index=index,
        op=op,
        place=run.place,
        setting="default",
        sizes_bytes=sizes,
        seed=seed,
        started_at=run.started_at,
        duration_s=run.duration_s,
        status="ok" if run.summary is not None else "failed",
        error=None if run.summary is not None else printable(run.error, 1000),
        argv=run.argv,
        probe=None,
        context=[],
        contamination=[],
    )
