"""Record what a program does with MPI: every rank writes a file of its own, and they become one trace."""

from __future__ import annotations

import base64
import itertools
import os
import secrets
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from wulf import __version__
from wulf.base.contracts import NodeResult, Say, Transport
from wulf.base.errors import NoStreamError, TraceError, TransportError
from wulf.base.native import build
from wulf.base.native.build import MpiLibrary
from wulf.base.nodeset import reasons_text
from wulf.base.records import NodeRecord
from wulf.base.text import HAS, WAS, count, printable
from wulf.base.trace.layout import HEADER_BYTES
from wulf.base.trace.reader import Trace, read
from wulf.base.trace.summary import run_time
from wulf.base.trace.writer import FILE_OF_RANK, pack, written
from wulf.base.units import format_time
from wulf.node.cluster.config import ClusterConfig
from wulf.node.fleet import install, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.placement import spread
from wulf.node.probe import command
from wulf.node.programs.preload import preloaded
from wulf.tools.trace import program as traced_program
from wulf.tools.trace.request import TraceRequest

LIBRARY = "libwulf-tracer.so"
#: Asking for a file of a rank may take so long [s].
FETCH_S = 600.0
_PART_BYTES = 8 << 20
#: The least limit of the file of a rank.
LEAST_BYTES = 64 << 10
#: While ranks write, they are looked at again after so long [s].
_AGAIN_S = 0.5
#: Files of ranks can be large; /tmp is memory on many systems.
_PLACE = "/var/tmp"  # noqa: S108 - a name in it that nobody can guess


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where a command is traced."""

    config: ClusterConfig
    nodes: list[str]
    #: Whether what the command prints is shown; what it says as errors always is.
    shown: bool = True


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    trace: Trace
    exit_code: int


def trace(request: TraceRequest, say: Say) -> Traced:
    """Run a command with the tracer in every rank, and write the trace; raises as `traced`."""
    return launches(request, say)[0]


def launches(request: TraceRequest, say: Say) -> list[Traced]:
    """Do that as often as is asked for, each launch with a trace of its own, until one fails; raises as `traced`."""
    config = config_of(request.where)
    where = Where(config=config, nodes=config.select(request.nodes))
    for launch in range(1, request.again + 2):
        _require_writable(request.output_of(launch))
    found: list[Traced] = []
    for launch in range(1, request.again + 2):
        if request.again:
            say(f"launch {launch} of {request.again + 1}")
        asked = replace(request, mpi=request.mpi or config.mpi.compiler, path=request.output_of(launch))
        found.append(traced(asked, where, say))
        if found[-1].exit_code:
            break
    return found


def differences(found: Sequence[Traced]) -> str:
    """Say how the run times of launches differ; empty where there is one, or they do not say how long they took."""
    times = [run_time(one.trace) for one in found]
    known = [time for time in times if time]
    if len(known) < 2 or len(known) < len(times):
        return ""
    middle = statistics.median(known)
    return (
        f"{count(len(known), 'launch')} took {format_time(min(known))} to {format_time(max(known))}, the median "
        f"{format_time(middle)} (−{1 - min(known) / middle:.1%}, +{max(known) / middle - 1:.1%})"
    )


def traced(request: TraceRequest, where: Where, say: Say) -> Traced:
    """Run a command with the tracer in every rank on these nodes, and write the trace.

    Raises
    ------
    BuildError
        There is no MPI library, or no compiler.
    TraceError
        No rank left a file, or the trace cannot be written.
    TransportError
        A node is lost, or cannot take the tracer.
    """
    _require_writable(request.output)
    if request.limit_bytes < LEAST_BYTES:
        raise TraceError(
            f"--limit: a rank's file takes {LEAST_BYTES // 1024} KiB at least: its header, and some calls"
        )
    library = traced_program.library(request.mpi, request.words)
    say(f"building the tracer, with {library.version}")
    program = build.build_program(LIBRARY, library)
    text = request.words[0] if len(request.words) == 1 else shlex.join(request.words)
    note = {"command": text, "library": library.version, "wulf": __version__}
    if request.ranks:
        note["ranks"] = str(request.ranks)
    if where.config.transport == "local" and not request.ranks:
        return _here(request, where, library, str(program.path), note, say)
    with preparation.connect(where.config, where.nodes, say) as (transport, records):
        path, lacking = install.install_program(where.config, transport, program, where.nodes)
        if path is None or lacking:
            raise TransportError(reasons_text(lacking))
        return _there(request, where, library, path, note, transport, records, say)


def _here(
    request: TraceRequest,
    where: Where,
    library: MpiLibrary,
    path: str,
    note: dict[str, str],
    say: Say,
) -> Traced:
    """Run it on this machine, with this terminal."""
    with tempfile.TemporaryDirectory(prefix="wulf-trace-", dir=_PLACE) as directory:
        given, variables = preloaded(note["command"], library.family, path, _own(request, directory))
        told = [f"{name}={value}" for name, value in variables.items()]
        printed = None if where.shown else subprocess.DEVNULL
        done = subprocess.run(["env", *told, "sh", "-c", given], stdout=printed, check=False)
        code = done.returncode
        return _packed(
            request,
            note,
            Path(directory),
            code,
            lambda: traced_program.why(request.words, library, code),
            say,
        )


def _there(  # what is there, part by part
    request: TraceRequest,
    where: Where,
    library: MpiLibrary,
    path: str,
    note: dict[str, str],
    transport: Transport,
    records: list[NodeRecord],
    say: Say,
) -> Traced:
    """Run it on the first node, and fetch what the ranks have left there."""
    first, text = where.nodes[0], note["command"]
    if request.ranks:
        place = spread(where.nodes, request.ranks)
        text = preparation.mpi_command(where.config, transport, records, request.mpi, place, text, say)
    target = f"{_PLACE}/wulf-trace-{secrets.token_hex(8)}"
    try:
        text = command.placed(text, where.config.transport)
        given, variables = preloaded(text, library.family, path, _own(request, target))
        say("the program runs")
        ran = command.run(transport, first, given, variables)
        if where.shown:
            sys.stdout.write(ran.output.stdout)
        sys.stderr.write(ran.output.stderr)
        with tempfile.TemporaryDirectory(prefix="wulf-trace-", dir=_PLACE) as directory:
            fetch(transport, first, target, Path(directory), say)
            code = 1 if ran.error else 0
            return _packed(
                request,
                note,
                Path(directory),
                code,
                lambda: traced_program.why(request.words, library, code, transport, first),
                say,
            )
    finally:
        transport.run(["rm", "-rf", target], where.nodes, timeout_s=FETCH_S)


def _own(request: TraceRequest, directory: str) -> dict[str, str]:
    return {"WULF_TRACE": directory, "WULF_TRACE_LIMIT": str(request.limit_bytes)}


def settled(take: Callable[[], None], state: Callable[[], object], say: Say) -> None:
    """Take the files of ranks, again as long as ranks write to them: those of a launcher that was killed may go on.

    Parameters
    ----------
    take
        Raises TraceError or TransportError; that counts where `state` is the same after it.
    state
        How far the ranks have come.
    """
    before = state()
    while True:
        failure: TraceError | TransportError | None = None
        try:
            take()
        except (TraceError, TransportError) as error:
            failure = error
        after = state()
        if after == before:
            if failure is not None:
                raise failure
            return
        before = after
        say("ranks of the command still write: waiting for their end")
        time.sleep(_AGAIN_S)


def fetch(transport: Transport, node: str, source: str, target: Path, say: Say) -> None:
    """Fetch what the ranks have left in a directory of a node, when they no longer write to it.

    Raises
    ------
    TransportError
        The node does not answer, or cannot read a file.
    """

    def state() -> bytes:
        # The headers count the records; that a file goes is in the list.
        text = f"cd {shlex.quote(source)} && ls && for file in rank.*; do head -c {HEADER_BYTES} $file | cksum; done"
        return _asked(transport, node, ["sh", "-c", text]).stdout

    def take() -> None:
        for left in target.iterdir():
            left.unlink()
        _fetch_once(transport, node, source, target)

    settled(take, state, say)


def _asked(transport: Transport, node: str, argv: list[str]) -> NodeResult:
    """Return what a command on the node said, whatever its exit code: a node that is lost is no empty directory."""
    answer = transport.run(argv, [node], timeout_s=FETCH_S)[node]
    if answer.status not in ("ok", "exit"):
        raise TransportError(f"{node}: cannot fetch what the ranks recorded: {answer.reason}")
    return answer


def _fetch_once(transport: Transport, node: str, source: str, target: Path) -> None:
    listed = _asked(transport, node, ["ls", source])
    for name in listed.stdout.decode(errors="replace").split():
        # What a node answers is no path here: it could lead anywhere.
        if not FILE_OF_RANK.fullmatch(name):
            raise TransportError(
                f"{node}: {printable(name, 60)!r} among the files of ranks is not a name of one"
            )
        with (target / name).open("wb") as file:
            for part in _parts(transport, node, f"{source}/{name}"):
                file.write(part)


def _parts(transport: Transport, node: str, path: str) -> Iterator[bytes]:
    """Yield a file of a node: what it prints must be text, and not too much of it."""
    for first in itertools.count(1, _PART_BYTES):
        text = f"tail -c +{first} {shlex.quote(path)} | head -c {_PART_BYTES} | base64 -w 0"
        answer = transport.run(["sh", "-c", text], [node], timeout_s=FETCH_S)[node]
        if answer.status != "ok":
            raise TransportError(f"{node}: cannot read {path}, what a rank recorded: {answer.reason}")
        try:
            part = base64.b64decode(answer.stdout, validate=True)
        except ValueError:
            raise TransportError(f"{node}: cannot read {path}: what came is not what was asked for") from None
        if len(part) > _PART_BYTES:
            raise TransportError(f"{node}: cannot read {path}: more came than was asked for")
        yield part
        if len(part) < _PART_BYTES:
            return


def _packed(
    request: TraceRequest,
    note: dict[str, str],
    directory: Path,
    exit_code: int,
    why: Callable[[], str],
    say: Say,
) -> Traced:
    try:
        settled(lambda: pack(request.output, note, directory), lambda: written(directory), say)
    except NoStreamError as error:
        raise TraceError(f"{error}: {why()}") from None
    found = read(request.output)
    if request.ranks not in (0, found.ranks):
        request.output.unlink()
        raise TraceError(
            f"each of {request.ranks} ranks was alone: the program's MPI library is not {note['library']} (--mpi)"
            if found.ranks == 1
            else f"{count(request.ranks, 'rank', verbs=WAS)} started, and "
            f"{count(found.ranks, 'rank', verbs=HAS)} left a trace"
        )
    return Traced(trace=found, exit_code=exit_code)


def _require_writable(output: Path) -> None:
    """Refuse before a long run what could not be written after it."""
    if not output.parent.is_dir():
        raise TraceError(f"cannot write {output}: there is no directory {output.parent}")
    if output.is_dir():
        raise TraceError(f"cannot write {output}: it is a directory")
    if not os.access(output if output.exists() else output.parent, os.W_OK):
        raise TraceError(f"cannot write {output}: there is no right to")
