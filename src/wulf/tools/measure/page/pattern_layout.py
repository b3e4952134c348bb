"""Where the ranks of a program stand in its picture, and which edges leave it.  Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from wulf.base.records.emulated import EmulatedProgram

Point = tuple[float, float]
#: Of a row of ranks that has to be broken.
_ROW = 12
#: How far planes of a mesh are shifted, of the distance of two ranks.
_PLANE = (0.31, 0.24)
#: Where each dimension of a hypercube leads.
_BITS: tuple[Point, ...] = ((1, 0), (0, 1), (0.42, 0.34), (2.3, 0.0), (0.0, 2.2), (5.2, 0.9), (0.0, 4.8))


def places(program: EmulatedProgram) -> list[Point]:  # noqa: PLR0911 - one for each layout
    """Return a point for each rank of a program, the distance of neighbours being about 1, y upwards."""
    count = len(program.ranks)
    match program.layout:
        case "grid":
            return _grid(program.dims)
        case "line":
            return _snake(count)
        case "star":
            return [(0.0, 0.0), *_workers(count - 1)]
        case "servers":
            return _servers(count, program.servers)
        case "tree":
            return _tree(count, program.fan_out)
        case "hypercube" if count <= 1 << len(_BITS):
            return [_corner(rank) for rank in range(count)]
        case _:
            return _circle(count)


def _circle(count: int) -> list[Point]:
    """Return points clockwise from the top."""
    radius = max(count / (2 * math.pi), 0.8)
    angles = [2 * math.pi * rank / max(count, 1) for rank in range(count)]
    return [(radius * math.sin(angle), radius * math.cos(angle)) for angle in angles]


def _workers(count: int) -> list[Point]:
    """Return points around a master; two of them so that neither line goes through it."""
    return _circle(count) if count != 2 else [(-0.7, -0.8), (0.7, -0.8)]


def _snake(count: int) -> list[Point]:
    """Return points of a line, there and back in rows, so that neighbours stay neighbours."""
    row = count if count <= _ROW else math.ceil(math.sqrt(2 * count))
    found = []
    for rank in range(count):
        line, column = divmod(rank, row)
        found.append((float(column if line % 2 == 0 else row - 1 - column), -float(line)))
    return found


def _lies(dims: Sequence[int]) -> bool:
    """Whether a mesh is drawn with its rows going down: pictures are wider than high."""
    return len(dims) == 2 and dims[0] > dims[1]


def _grid(dims: Sequence[int]) -> list[Point]:
    """Return points of a mesh; of one in three dimensions the planes behind each other."""
    if len(dims) == 2:
        rows, columns = dims
        points = [(float(column), -float(row)) for row in range(rows) for column in range(columns)]
        return [(-y, -x) for x, y in points] if _lies(dims) else points
    # No two ranks of different planes on the same point.
    shrink = min(1.0, 0.9 / (_PLANE[0] * max(dims[0] - 1, 1)))
    return [
        (column + plane * _PLANE[0] * shrink, -row + plane * _PLANE[1] * shrink)
        for plane, row, column in itertools.product(*map(range, dims))
    ]


def _servers(count: int, servers: int) -> list[Point]:
    """Return servers above their clients, every second one a little lower; of many clients a circle around them."""
    clients = count - servers
    if clients > 2 * _ROW:
        inner = [(0.0, 0.0)] if servers == 1 else [(0.4 * x, 0.4 * y) for x, y in _circle(servers)]
        return [*inner, *_circle(clients)]
    width = max(clients - 1, 1)
    found = [(width * (server + 1) / (servers + 1), 2.4) for server in range(servers)]
    for client in range(clients):
        low = 0.5 * (client % 2) if clients > 4 else 0.0
        found.append((float(client) if clients > 1 else width / 2, -low))
    return found


def _tree(count: int, fan_out: int) -> list[Point]:
    """Return points of a tree, level by level, each rank above the middle of its children."""
    children = {
        rank: range(rank * fan_out + 1, min(rank * fan_out + fan_out, count - 1) + 1) for rank in range(count)
    }
    across: dict[int, float] = {}
    free = 0.0
    level: dict[int, int] = {0: 0}
    for rank in range(count):
        for child in children[rank]:
            level[child] = level[rank] + 1
    for rank in _leaves_first(children):
        own = [across[child] for child in children[rank]]
        if own:
            across[rank] = (own[0] + own[-1]) / 2
        else:
            across[rank], free = free, free + 1
    return [(across[rank], -1.4 * level[rank]) for rank in range(count)]


def _leaves_first(children: Mapping[int, range]) -> Iterator[int]:
    """Yield ranks from left to right, each after its children."""
    waiting = [(0, False)]
    while waiting:
        rank, is_done = waiting.pop()
        if is_done:
            yield rank
            continue
        waiting.append((rank, True))
        waiting += [(child, False) for child in reversed(children[rank])]


def _corner(rank: int) -> Point:
    chosen = [_BITS[bit] for bit in range(len(_BITS)) if rank >> bit & 1]
    return sum(x for x, _ in chosen), sum(y for _, y in chosen)


def around(program: EmulatedProgram, one: int, other: int) -> Point | None:
    """Return in which direction an edge leaves a mesh to come in again at its other side; None where it does not.

    Parameters
    ----------
    one, other
        Places within the program.
    """
    if program.layout != "grid" or not program.dims:
        return None
    here, there = _coordinates(one, program.dims), _coordinates(other, program.dims)
    differing = [axis for axis in range(len(program.dims)) if here[axis] != there[axis]]
    if len(differing) != 1:
        return None
    (axis,) = differing
    if program.dims[axis] <= 2 or abs(here[axis] - there[axis]) != program.dims[axis] - 1:
        return None
    way = 1.0 if here[axis] > there[axis] else -1.0
    directions: tuple[Point, ...] = (_PLANE, (0.0, -1.0), (1.0, 0.0))
    x, y = directions[axis + 3 - len(program.dims)]
    if _lies(program.dims):
        x, y = -y, -x
    return way * x, way * y


def _coordinates(rank: int, dims: Sequence[int]) -> list[int]:
    found = []
    for length in reversed(dims):
        rank, place = divmod(rank, length)
        found.append(place)
    return found[::-1]
