"""Write a trace for other simulators: files of a directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from wulf.base.errors import StoreError
from wulf.base.trace.export import goal, smpi
from wulf.base.trace.export.operations import exported
from wulf.base.trace.reader import Trace, read_verified
from wulf.stats.prediction.network import Link, Network, Pieces, at

#: Message of which the bandwidth of a link is taken [B].
_LONG = 1 << 20

Format = Literal["goal", "smpi"]


def export(trace: Path, form: Format, directory: Path, network: Network | None = None) -> list[Path]:
    """Write a trace in another format; returns the files.

    Parameters
    ----------
    network
        For SMPI's platform; without it there is none among the files.

    Raises
    ------
    TraceError
        The trace cannot be read, or uses what others cannot follow.
    StoreError
        A file cannot be written.
    """
    found = read_verified(trace)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if form == "goal":
            return [_written(directory / f"{trace.stem}.goal", goal.text(exported(found)))]
        return _smpi(found, trace.stem, directory, network)
    except OSError as error:
        raise StoreError(f"cannot write {error.filename or directory}: {error.strerror}") from None


def _smpi(trace: Trace, name: str, directory: Path, network: Network | None) -> list[Path]:
    """Write a file for each rank, their list, and where they run: each on a host of its own."""
    ranks = exported(trace, whole=smpi.REPLAYED)
    parts = [
        _written(directory / f"{name}.{rank}.ti", smpi.rank_lines(rank, done))
        for rank, done in enumerate(ranks)
    ]
    files = [
        _written(directory / f"{name}.traces", [part.name for part in parts]),
        _written(directory / f"{name}.hosts", [f"node-{rank}" for rank in range(trace.ranks)]),
    ]
    if network is not None:
        text = platform(network.between, trace.ranks)
        files.append(_written(directory / f"{name}.platform.xml", text.splitlines()))
    return [*files, *parts]


def platform(link: Link, nodes: int) -> str:
    """Return SMPI's platform of a network, each rank on its own node."""
    wire_ns = at(link.wire, _LONG) - at(link.wire, 0)
    return smpi.platform(
        nodes,
        latency_s=link.latency_ns * 1e-9,
        bandwidth=_LONG / (wire_ns * 1e-9),
        eager_bytes=link.eager_bytes,
        send=_pieces(link.send),
        receive=_pieces(link.receive),
    )


def _pieces(pieces: Pieces) -> list[tuple[int, float, float]]:
    return [(one.from_bytes, one.base_ns * 1e-9, one.per_byte_ns * 1e-9) for one in pieces]


def _written(path: Path, lines: Iterable[str]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path
