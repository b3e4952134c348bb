"""Programs side by side: what they do with MPI, and what settings bring them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec

from wulf.base.contracts import Say, Transport
from wulf.base.errors import EXIT_FINDINGS, BuildError, ProbeError, TransportError, UsageError
from wulf.base.native import build
from wulf.base.nodeset import reasons_text
from wulf.base.records import SCHEMA_VERSION, Analysis, Operation, Printed, Values
from wulf.base.records.profiled import Character, Characters, Gain, MpiProfile
from wulf.base.store import MANIFEST, Run, find_run, opened, write_atomically
from wulf.base.store.files import decode_file
from wulf.base.store.tuning import HEAD, TuningRun, load_tuning
from wulf.base.tool import Progress
from wulf.node.cluster import inventory
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet import change, install
from wulf.node.fleet.new_run import new_seed
from wulf.node.measuring.analysis import analyze
from wulf.node.probe import command
from wulf.node.trials import interleaving
from wulf.tools.application import profile
from wulf.tools.application.request import CharacteriseRequest

#: File of a run with what its program did with MPI.
PROFILE = "profile.json"
#: And with what settings bring it.
GAINS = "gains.json"
LIBRARY = "libwulf-profile.so"
#: Asking for a file and taking it away may take so long [s].
ASK_S = 20.0
#: The launch that is counted may take so many times what the command took in the run, and as much again [s].
PATIENCE, PATIENCE_S = 10.0, 60.0


def characterise(request: CharacteriseRequest, say: Progress) -> Characters:
    """Return what each program is like, and what each setting changes of its run time and of what it prints.

    A run that has no profile yet gets one, from one more launch of its command. Launches with a setting take turns
    with launches without; everything is put back. Profile and gains are kept with the run, and not made again.

    Raises
    ------
    KeyboardInterrupt
        What was whole is kept, and everything is put back.
    UsageError
        A run is not that of one command.
    ProbeError
        No program runs any more, or does anything with MPI; where only some do not, the record says why.
    """
    request = replace(request, seed=new_seed(request.seed))
    sides = [interleaving.side(text) for text in request.settings]
    if request.tuned is not None:
        sides += kept(load_tuning(find_run(str(request.tuned), request.runs, HEAD)))
    programs, failed = [], {}
    commands = [(run, _operation(run)) for run in (opened(one, request.runs) for one in request.programs)]
    for run, operation in commands:
        try:
            programs.append(_character(request, run, operation, sides, say))
        except (ProbeError, TransportError) as error:
            failed[run.manifest.id] = str(error)
            say.note(f"{run.manifest.id}: {error}")
    if not programs:
        raise ProbeError("; ".join(f"{run}: {reason}" for run, reason in failed.items()))
    return Characters(schema_version=SCHEMA_VERSION, programs=programs, failed=failed)


def exit_code(found: Characters) -> int:
    """Return the exit code: whether nothing could be said of a program."""
    return EXIT_FINDINGS if found.failed else 0


def _character(
    request: CharacteriseRequest,
    run: Run,
    operation: Operation,
    sides: Sequence[interleaving.Side],
    say: Progress,
) -> Character:
    """Return what one program is like, and what each setting changes of it."""
    found = profile.character(run.manifest.id, operation.command, _profile(run, operation, request.mpi, say))
    gains = [gain for side in sides for gain in _gains(request, run, operation, side, say)]
    return msgspec.structs.replace(found, gains=gains)


def kept(run: TuningRun) -> list[interleaving.Side]:
    """Return the settings that a search has kept, each alone, and all of them together."""
    values: Values = run.result.kept if run.result is not None else {}
    if not values:
        raise UsageError(f"{run.path} has kept nothing: there is no setting to try")
    single = [
        interleaving.Side(name=f"{knob}={value}", setting={knob: value}) for knob, value in values.items()
    ]
    together = interleaving.Side(name=", ".join(one.name for one in single), setting=values)
    return [*single, *([together] if len(single) > 1 else [])]


def _operation(run: Run) -> Operation:
    commands = [operation for operation in run.manifest.operations if operation.command]
    if len(commands) != 1:
        raise UsageError(
            f"{run.path} is not a run of one command: make one with 'wulf program run -- COMMAND'"
        )
    return commands[0]


def _profile(run: Run, operation: Operation, mpi: str | None, say: Say) -> MpiProfile:
    """Return the profile of a run's program, made by one more launch where there is none."""
    path = run.path / PROFILE
    if not path.exists():
        config = cluster_of(run)
        transport = open_transport(config)
        try:
            limit_s = _limit_s(run.analysis() or analyze(run), operation)
            text = launched(config, transport, nodes_of(run), operation.command, mpi, limit_s, say)
        finally:
            transport.close()
        profile.read(text, str(path))
        write_atomically(path, text)
    found = profile.read(path.read_bytes(), str(path))
    # Of several jobs in one command the longest is what it is about.
    return max(found, key=lambda one: max(rank.run_ns for rank in one.ranks))


def nodes_of(run: Run) -> list[str]:
    """Return the nodes of a run, the one on which its command is started first."""
    first = [node for place in run.manifest.plan.workload.places for node in place]
    return list(dict.fromkeys([*first, *(record.node for record in run.nodes if record.reachable)]))


def cluster_of(run: Run) -> ClusterConfig:
    return inventory.parse(run.manifest.cluster, str(run.path / MANIFEST))


def _limit_s(analysis: Analysis, operation: Operation) -> float:
    """Return how long one more launch of a run's command may take, by its run time there [s].

    Ranks that have not loaded the library are waited for by those that have.
    """
    if command.JOB_TIME in operation.command:
        return command.LIMIT_S  # its run time is without the time in the queue
    times = [cell.time.value for cell in analysis.cells if cell.cell.op == operation.name]
    return min(PATIENCE * max(times) + PATIENCE_S, command.LIMIT_S) if times else command.LIMIT_S


def launched(
    config: ClusterConfig,
    transport: Transport,
    nodes: Sequence[str],
    line: str,
    mpi: str | None,
    limit_s: float,
    say: Say,
) -> bytes:
    """Launch a program once with the library that counts; return what that wrote.

    Raises
    ------
    ProbeError
        It does not run, or does nothing with MPI.
    """
    libraries = build.find_mpi(mpi)
    if not libraries:
        raise BuildError("no MPI library was found: name that of the program with --mpi")
    say(f"building what counts calls, with {libraries[0].version}")
    program = build.build_program(LIBRARY, libraries[0])
    path, lacking = install.install_program(config, transport, program, nodes)
    if path is None or lacking:
        raise TransportError(reasons_text(lacking))
    say(f"one launch of {command.named(line)}, counted")
    target = f"/tmp/wulf-profile-{secrets.token_hex(8)}"  # noqa: S108 - nobody can guess it
    try:
        text, variables = profile.counted(line, libraries[0].family, path, target)
        ran = command.run(transport, nodes[0], text, variables, limit_s=limit_s)
        if ran.error:
            raise ProbeError(
                f"{ran.error} (with {LIBRARY} loaded, {limit_s:.0f} s at most; is it of the program's own MPI, --mpi?)"
            )
        answer = transport.run(["cat", target], [nodes[0]], timeout_s=ASK_S)[nodes[0]]
    finally:
        transport.run(["rm", "-f", target], nodes, timeout_s=ASK_S)
    if answer.status != "ok" or not answer.stdout.strip():
        raise ProbeError(
            f"{command.named(line)}: no MPI call was seen on {nodes[0]}: another library than {libraries[0].version} "
            "(--mpi), linked statically, Fortran, or no MPI_Finalize"
        )
    return answer.stdout


def _gains(
    request: CharacteriseRequest, run: Run, operation: Operation, side: interleaving.Side, say: Say
) -> list[Gain]:
    """Return what a setting brings a program: as it is kept with the run, or measured now and kept."""
    path = run.path / GAINS
    known = decode_file(path, list[Gain]) if path.exists() else []
    found = [gain for gain in known if gain.setting == side.name]
    if not found:
        found = _measured_gains(request, run, operation, side, say)
        write_atomically(path, msgspec.json.format(msgspec.json.encode([*known, *found]), indent=1))
    return found


def _measured_gains(
    request: CharacteriseRequest, run: Run, operation: Operation, side: interleaving.Side, say: Say
) -> list[Gain]:
    config = cluster_of(run)
    nodes = nodes_of(run)
    asked = interleaving.InterleaveRequest(
        config=config,
        nodes=nodes,
        sides=(interleaving.Side(name=interleaving.ORIGINAL), side),
        ops=None,
        sizes_bytes=[0],
        pairs="ring",
        command=operation.command,
        prints=tuple(_printed(run)),
        launches=request.launches,
        budget_s=request.budget_s,
        margin=request.margin,
        permissions=change.Permissions(take_over=request.take_over, relax=request.relax),
        mpi=request.mpi,
        seed=new_seed(request.seed),
    )

    def tell(text: str) -> None:
        say(f"{run.manifest.id}, {side.name}: {text}")

    with interleaving.prepared(asked, tell) as ready:
        outcome = interleaving.interleave(asked, ready, tell)
    if outcome.interrupted:
        raise KeyboardInterrupt
    found = outcome.comparison
    if not found.pooled:
        return [Gain(setting=side.name, ratio=None, verdict="no decision", reason=found.reason)]
    return [
        Gain(
            setting=side.name,
            what=what,
            ratio=whole.ratio,
            verdict=whole.verdict,
            reason=found.reason,
        )
        for what, whole in found.pooled.items()
    ]


def _printed(run: Run) -> Iterator[Printed]:
    for operation in run.manifest.operations:
        if operation.printed_by:
            yield Printed(
                name=operation.name, match=operation.match, unit=operation.unit, better=operation.better
            )
