"""Record what a program does with MPI: every rank writes a file of its own, and they become one trace."""

from __future__ import annotations

import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from wulf import __version__
from wulf.apps.preload import preloaded
from wulf.cluster.config import ClusterConfig
from wulf.errors import BuildError, TraceError, TransportError
from wulf.nodeset import reasons_text
from wulf.ports import Transport
from wulf.probe import build, command
from wulf.probe.build import MpiLibrary
from wulf.procedure import install, site
from wulf.records import NodeRecord
from wulf.wtrace.reader import Trace, read
from wulf.wtrace.writer import pack

Say = Callable[[str], None]
LIBRARY = "libwulf-tracer.so"
#: Asking for a file of a rank may take so long [s].
FETCH_S = 600.0
#: Files of ranks can be large; /tmp is memory on many systems.
_PLACE = "/var/tmp"  # noqa: S108 - a name in it that nobody can guess


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be traced, and where the trace goes."""

    config: ClusterConfig
    nodes: list[str]
    #: One word is for a shell.
    words: list[str]
    output: Path
    #: Ranks of an MPI program; 0: the command starts its own.
    ranks: int = 0
    #: As `wulf.probe.build.find_mpi` takes it; None for that of the command.
    mpi: str | None = None
    #: Of the file of each rank, at most [B].
    limit_bytes: int


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    trace: Trace
    exit_code: int


def trace(request: TraceRequest, say: Say) -> Traced:
    """Run a command with the tracer in every rank, and write the trace.

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
    library = _library(request)
    say(f"building the tracer, with {library.version}")
    program = build.build_program(LIBRARY, library)
    text = request.words[0] if len(request.words) == 1 else shlex.join(request.words)
    note = {"command": text, "library": library.version, "wulf": __version__}
    if request.config.transport == "local" and not request.ranks:
        return _here(request, text, library, str(program.path), note)
    with site.connect(request.config, request.nodes, say) as (transport, records):
        path, lacking = install.install_program(request.config, transport, program, request.nodes)
        if path is None or lacking:
            raise TransportError(reasons_text(lacking))
        return _there(request, text, library, path, note, transport, records, say)


def _here(request: TraceRequest, text: str, library: MpiLibrary, path: str, note: dict[str, str]) -> Traced:
    """Run it on this machine, with this terminal."""
    with tempfile.TemporaryDirectory(prefix="wulf-trace-", dir=_PLACE) as directory:
        given, variables = preloaded(text, library.family, path, _own(request, directory))
        told = [f"{name}={value}" for name, value in variables.items()]
        done = subprocess.run(["env", *told, "sh", "-c", given], check=False)
        return _packed(request, note, Path(directory), done.returncode)


def _there(  # what is there, part by part
    request: TraceRequest,
    text: str,
    library: MpiLibrary,
    path: str,
    note: dict[str, str],
    transport: Transport,
    records: list[NodeRecord],
    say: Say,
) -> Traced:
    """Run it on the first node, and fetch what the ranks have left there."""
    first = request.nodes[0]
    if request.ranks:
        count = len(request.nodes)
        place = tuple(request.nodes[rank * count // request.ranks] for rank in range(request.ranks))
        text = site.mpi_command(request.config, transport, records, request.mpi, place, text, say)
    target = f"{_PLACE}/wulf-trace-{secrets.token_hex(8)}"
    try:
        given, variables = preloaded(text, library.family, path, _own(request, target))
        say("the program runs")
        ran = command.run(transport, first, given, variables)
        sys.stdout.write(ran.output.stdout)
        sys.stderr.write(ran.output.stderr)
        with tempfile.TemporaryDirectory(prefix="wulf-trace-", dir=_PLACE) as directory:
            _fetch(transport, first, target, Path(directory))
            return _packed(request, note, Path(directory), 1 if ran.error else 0)
    finally:
        transport.run(["rm", "-rf", target], request.nodes, timeout_s=FETCH_S)


def _own(request: TraceRequest, directory: str) -> dict[str, str]:
    return {"WULF_TRACE": directory, "WULF_TRACE_LIMIT": str(request.limit_bytes)}


def _fetch(transport: Transport, node: str, source: str, target: Path) -> None:
    listed = transport.run(["ls", source], [node], timeout_s=FETCH_S)[node]
    for name in listed.stdout.decode(errors="replace").split() if listed.status == "ok" else []:
        answer = transport.run(["cat", f"{source}/{name}"], [node], timeout_s=FETCH_S)[node]
        if answer.status != "ok":
            raise TransportError(f"{node}: cannot read {source}/{name}, what a rank recorded")
        (target / name).write_bytes(answer.stdout)


def _packed(request: TraceRequest, note: dict[str, str], directory: Path, exit_code: int) -> Traced:
    try:
        pack(request.output, note, directory)
    except TraceError as error:
        ended = f"; the command ended with exit code {exit_code}" if exit_code else ""
        raise TraceError(
            f"{error}{ended}. Is the program linked dynamically, with {note['library']} (--mpi names another), "
            "and not written in Fortran?"
        ) from None
    return Traced(trace=read(request.output), exit_code=exit_code)


def _library(request: TraceRequest) -> MpiLibrary:
    """Return the MPI library of the command: the one that is named, or whose mpirun stands first."""
    libraries = build.find_mpi(request.mpi)
    if not libraries:
        raise BuildError("no MPI library was found: name that of the program with --mpi")
    words = request.words[0].split() if len(request.words) == 1 else request.words
    starter = shutil.which(words[0]) if words else None
    if request.mpi is None and starter is not None:
        same = [one for one in libraries if _is_same(one.mpirun, starter)]
        return same[0] if same else libraries[0]
    return libraries[0]


def _is_same(mpirun: str, starter: str) -> bool:
    found = shutil.which(mpirun)
    return found is not None and Path(found).resolve() == Path(starter).resolve()


def _require_writable(output: Path) -> None:
    """Refuse before a long run what could not be written after it."""
    if not output.parent.is_dir():
        raise TraceError(f"cannot write {output}: there is no directory {output.parent}")
