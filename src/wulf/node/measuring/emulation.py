"""A pattern as what a run measures: its files in the run, the program that performs it, its operations."""

from __future__ import annotations

import math
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from wulf.base.contracts import Say, Transport
from wulf.base.errors import BuildError, StoreError, TransportError
from wulf.base.native import build
from wulf.base.records import Operation, Place
from wulf.base.records.emulated import EmulatedPattern
from wulf.base.store import write_atomically
from wulf.base.store.files import decode_file, has
from wulf.node.cluster.config import ClusterConfig
from wulf.node.fleet.preparation import Toolbox
from wulf.node.probe.start import Measurer

#: Files of a run: what is performed, and its operations.
HEAD = "emulation.json"
TRACE = "pattern.wtrace"
PROGRAM = "wulf-emulate"
#: Operation that is the time of the whole.
WHOLE = "run time"
#: Without progress on a rank for so long it counts as gone: this, and so many times what all computing takes when
#: one CPU does it and messages go slowly [s, B/s, s].
PATIENCE_S, PATIENCE = 60.0, 20.0
_SLOW, _SLOW_MESSAGE_S = 10e6, 1e-4
#: Starting, agreeing, saying what came of it [s].
_START_S = 60.0
_LONGEST_S = 86400.0
_PUT_S = 300.0
_ASK_S = 20.0


class Emulation(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern that is ready to be performed."""

    pattern: EmulatedPattern
    #: Its operations, on this machine.
    trace: Path
    #: Node of every rank; empty for a run that goes on, which has it in its plan.
    place: Place = ()

    @property
    def operations(self) -> list[Operation]:
        """What its run measures: the whole first, of which each launch gives the others, too."""
        whole = _operation(WHOLE, self.pattern, "run time")
        found = [whole]
        for program in self.pattern.programs:
            if program.op:
                found.append(_operation(program.op, self.pattern, "run time of a program", whole))
            found.append(_operation(program.iteration_op, self.pattern, "time of an iteration", whole))
        return found

    @property
    def slow_s(self) -> float:
        """Time of a pass where everything is slow [s]."""
        pattern = self.pattern
        waiting_s = pattern.bytes / _SLOW + pattern.messages * _SLOW_MESSAGE_S
        return pattern.least_s * pattern.ranks + waiting_s

    def toolbox(self, mpi: str | None, say: Say) -> Toolbox:
        """Build the program.

        Raises
        ------
        BuildError
            There is no MPI library, or it cannot be built.
        """
        libraries = build.find_mpi(mpi)
        if not libraries:
            raise BuildError(
                "no MPI library was found: install one (Debian: libopenmpi-dev openmpi-bin), or give the path of its "
                "compiler with --mpi"
            )
        say(f"building the emulator with {libraries[0].version}")
        program = build.build_program(PROGRAM, libraries[0])
        whole = self.operations[0]
        return Toolbox(probes=[program], operations=[whole], known=[whole])

    @contextmanager
    def installed(self, config: ClusterConfig, transport: Transport, node: str) -> Iterator[Measurer]:
        """Put the operations on the node of the first rank, which gives them to the others; takes them away again.

        Raises
        ------
        TransportError
            The node does not take them.
        """
        if config.transport == "local":
            yield self._measurer(str(self.trace))
            return
        target = f"/tmp/wulf-pattern-{secrets.token_hex(8)}.wtrace"  # noqa: S108 - nobody can guess it
        try:
            answer = transport.put(self.trace, target, [node], timeout_s=_PUT_S, mode=0o644)[node]
            if answer.status != "ok":
                raise TransportError(f"{answer.reason}: cannot write {target}")
            yield self._measurer(target)
        finally:
            transport.run(["rm", "-f", target], [node], timeout_s=_ASK_S)

    def keep(self, path: Path) -> None:
        """Write down in a run what it is, so that it can go on and be reported."""
        write_atomically(path / HEAD, msgspec.json.format(msgspec.json.encode(self.pattern), indent=1))
        try:
            shutil.copyfile(self.trace, path / TRACE)
        except OSError as error:
            raise StoreError(f"cannot write {path / TRACE}: {error.strerror}") from error

    def _measurer(self, trace: str) -> Measurer:
        pattern = self.pattern
        patience_s = min(PATIENCE_S + PATIENCE * self.slow_s, _LONGEST_S)
        words = ["--trace", trace, "--op", WHOLE, "--compute", pattern.compute]
        words += ["--method", pattern.method, *(["--dir", pattern.directory] if pattern.directory else [])]
        words += ["--passes", str(pattern.passes), "--warm-up", str(pattern.warm_ups)]
        words += ["--patience", str(math.ceil(patience_s)), *(["--check"] if pattern.checked else [])]
        for program in pattern.programs:
            words += ["--program", program.op, "--iteration", program.iteration_op]
        passes = pattern.passes + pattern.warm_ups + 1
        return Measurer(arguments=words, limit_s=_START_S + min(passes * patience_s, _LONGEST_S))


def kept(path: Path) -> Emulation | None:
    """Return what a run performs; None where it is not a run of a pattern.

    Raises
    ------
    StoreError
        Its operations are gone.
    """
    if not has(path, HEAD):
        return None
    if not has(path, TRACE):
        raise StoreError(f"{path} has no {TRACE} any more: it cannot go on")
    return Emulation(pattern=decode_file(path / HEAD, EmulatedPattern), trace=path / TRACE)


def _operation(
    name: str, pattern: EmulatedPattern, quantity: str, whole: Operation | None = None
) -> Operation:
    return Operation(
        name=name,
        transport="mpi",
        ranks=0,
        pattern="emulation",
        axis="",
        axis_unit="",
        quantity=quantity,
        better="lower",
        moves_bytes=False,
        usual=0,
        divisor=1,
        timing="batch" if quantity != "time of an iteration" else "iteration",
        min_size_bytes=0,
        max_size_bytes=0,
        lossy=False,
        summary=f"pattern: {pattern.title}",
        printed_by=whole.name if whole is not None else "",
    )
