"""A diagnosis in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from wulf.nodeset import fold
from wulf.records.diagnosed import Diagnosis, Kind, Matrix, Suspect
from wulf.report.words import count, name, percent
from wulf.text import printable
from wulf.units import format_bytes, format_time

_WORDS: dict[Kind, str] = {
    "node": "slow with everybody",
    "link": "slower between them than both explain",
    "sending": "slower in sending than in receiving",
    "receiving": "slower in receiving than in sending",
    "group": "slow with all others and quick among themselves: something is between them and the others",
}
_NEXT: dict[Kind, str] = {
    "node": "wulf audit --nodes {nodes}",
    "link": "wulf measure --pairs {pair}",
    "sending": "wulf audit --nodes {nodes}",
    "receiving": "wulf audit --nodes {nodes}",
    "group": "look at the switch or the uplink of {nodes}",
}


def lines(found: Diagnosis) -> Iterator[str]:
    """Yield the verdict, and what it comes from."""
    where = f"{count(len(found.nodes), 'node')}, {fold(map(printable, found.nodes))}"
    if found.fine:
        yield f"fine: of {where} none is slower than the others by more than {percent(found.margin)}"
    else:
        yield f"of {where} these are slower than their like:"
    for matrix in found.matrices:
        for suspect in matrix.suspects:
            yield f"  {_suspect(suspect, matrix, found)}"
    for matrix in found.matrices:
        yield (
            f"{name(matrix.op)} at {format_bytes(matrix.size_bytes)}: {format_time(matrix.typical_s)} between "
            f"{count(matrix.pairs, 'pair')}; nodes that are alike differ by ±{percent(matrix.scatter)}"
            + (f"; {count(matrix.missing, 'pair')} not measured" if matrix.missing else "")
        )
    commands = [_next(suspect) for matrix in found.matrices for suspect in matrix.suspects]
    yield from (f"next: {command}" for command in dict.fromkeys(commands))


def _suspect(suspect: Suspect, matrix: Matrix, found: Diagnosis) -> str:
    nodes = fold(map(printable, suspect.nodes))
    said = f"{nodes}: {_WORDS[suspect.kind]}, {1 + suspect.slower:.2g} × the time at {format_bytes(matrix.size_bytes)}"
    speeds = {found.link_bits_per_s[node] for node in suspect.nodes if node in found.link_bits_per_s}
    if matrix.size_bytes >= 1 << 16 and suspect.kind in ("node", "group"):
        rate = matrix.size_bytes * 8 / (matrix.typical_s * (1 + suspect.slower)) / 1e9
        said += f", {rate:.2g} Gbit/s" + (
            f" where the link says {speeds.pop() / 1e9:g} Gbit/s" if len(speeds) == 1 else ""
        )
    return f"{said} (chance of that where all are alike: {suspect.p_value:.1g})"


def _next(suspect: Suspect) -> str:
    return _NEXT[suspect.kind].format(nodes=fold(suspect.nodes), pair=":".join(suspect.nodes))
