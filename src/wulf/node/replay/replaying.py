"""Run the replay of traces: a program of ``native``, built when it is first needed."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wulf.base.contracts import Say
from wulf.base.errors import TraceError, UsageError
from wulf.base.native import build
from wulf.base.text import count, last_line
from wulf.stats.prediction import network, replayed
from wulf.stats.prediction.network import Network
from wulf.stats.prediction.replayed import Replayed

#: No replay takes longer [s].
LIMIT_S = 3600.0
#: So many networks are evaluated at a time.
LANES = 8
_PREFIX = "wulf-replay: "
_TOO_MANY_LINES = "changes its slope more than"


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A trace on some of the networks that are asked about, as one run of the program takes it."""

    trace: str
    #: As the program reads them, and how many.
    networks: str
    count: int
    nodes: list[int]
    #: File of the library's algorithms; empty for none.
    rules: str = ""
    options: list[str] = []
    #: LOW_NS:HIGH_NS; empty for none. Left out where the curve has too many pieces.
    curve: str = ""


@dataclass(frozen=True)
class Work:
    """A trace on all networks that are asked about."""

    trace: Path
    networks: Sequence[Network]
    nodes: Sequence[int]
    rules: Path | None = None
    #: Up to which latency the curve of the first network goes [ns].
    curve_ns: float = 0.0
    #: NETWORKS:ROWS:CELLS:NS of the program's --timeline; empty for none.
    timelines: str = ""
    #: So many networks, the first ones, stay in one piece.
    together: int = 1

    def pieces(self, most: int) -> list[Piece]:
        """Return it in pieces of whole lanes, at most so many: what is of the first networks is in the first."""
        lanes = -(-len(self.networks) // LANES)
        each = max(LANES * -(-lanes // most), LANES * -(-self.together // LANES))
        return [self._piece(first, each) for first in range(0, len(self.networks), each)]

    def _piece(self, first: int, count: int) -> Piece:
        part = self.networks[first : first + count]
        options = ["--eager", str(min(one.surely_eager for one in self.networks))]
        if first == 0:
            options += ["--path", *(["--timeline", self.timelines] if self.timelines else [])]
        return Piece(
            trace=str(self.trace.absolute()),
            networks=network.text(part),
            count=len(part),
            nodes=list(self.nodes),
            rules=str(self.rules.absolute()) if self.rules is not None else "",
            options=options,
            curve=f"0:{self.curve_ns:.0f}" if first == 0 and self.curve_ns else "",
        )


#: Does all the work, wherever that is: what it comes to, in order.
Replayer = Callable[[Sequence[Work], Say], list[Replayed]]


def here(works: Sequence[Work], say: Say) -> list[Replayed]:
    """Do all the work on this machine.

    Raises
    ------
    TraceError
        A trace cannot be replayed soundly; says why.
    """
    found = []
    for work in works:
        say(
            f"{work.trace.name}: replaying {count(len(work.nodes), 'rank')} on {count(len(work.networks), 'network')}"
        )
        (piece,) = work.pieces(1)
        found.append(replayed.read(printed(piece), piece.count, str(work.trace)))
    return found


@functools.cache
def program() -> Path:
    """Return the replay, built if need be.

    Raises
    ------
    BuildError
        It cannot be built; it needs a compiler for C++20.
    """
    return build.build_program(build.REPLAY, None).path


def replay(
    trace: Path,
    networks: Sequence[Network],
    *,
    nodes: Sequence[int],
    rules: Path | None = None,
    options: Sequence[str] = (),
) -> Replayed:
    """Return what the program of a trace takes on networks.

    Parameters
    ----------
    nodes
        On which node each rank is; empty: each on its own.
    rules
        The library's algorithms of collectives, as the replay reads them.
    options
        More of the replay's own.

    Raises
    ------
    TraceError
        The trace cannot be replayed soundly; says why.
    UsageError
        The replay does not know an option.
    """
    piece = Piece(
        trace=str(trace),
        networks=network.text(networks),
        count=len(networks),
        nodes=list(nodes),
        rules=str(rules) if rules is not None else "",
        options=list(options),
    )
    return replayed.read(printed(piece), piece.count, str(trace))


def printed(piece: Piece) -> bytes:
    """Return what the program prints of a piece; raises as `replay`."""
    if not piece.curve:
        return _printed(piece, piece.options)
    try:
        return _printed(piece, [*piece.options, "--curve", piece.curve])
    except TraceError as error:
        if _TOO_MANY_LINES not in str(error):
            raise
        return _printed(piece, piece.options)


def _printed(piece: Piece, options: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="wulf-replay-") as name:
        directory = Path(name)
        (directory / "networks").write_text(piece.networks)
        argv = [str(program()), piece.trace, str(directory / "networks"), *options]
        if piece.nodes:
            (directory / "nodes").write_text(" ".join(map(str, piece.nodes)))
            argv += ["--nodes", str(directory / "nodes")]
        if piece.rules:
            argv += ["--rules", piece.rules]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            raise TraceError(
                f"{piece.trace}: the replay takes longer than {LIMIT_S:.0f} s: fewer --samples, --slurm, or a shorter "
                "trace"
            ) from None
    if b"usage: " in done.stderr:
        raise UsageError(f"the replay of this version does not know all of {' '.join(options)}")
    if done.returncode != 0:
        said = last_line(done.stderr).removeprefix(_PREFIX) or f"the replay ended with code {done.returncode}"
        raise TraceError(said if piece.trace in said else f"{piece.trace}: {said}")
    return done.stdout
