"""Where the ranks of imported outputs were: a list of nodes and files, or a pattern of the files' names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wulf.base.errors import ImportFormatError, UsageError
from wulf.base.text import printable
from wulf.node.cluster.names import check_node_name, is_node_name

#: What stands for the name of a node in a pattern.
NODE = "{}"
_MOST_LINES = 1_000_000
#: Longest name of a file that is taken apart [characters].
_LONGEST = 255


class Placed(NamedTuple):
    """A file, and the nodes of its ranks in their order; None where that is not said."""

    file: Path
    nodes: tuple[str, ...] | None = None


def placed(files: Sequence[Path], pairs: str | None, nodes: Sequence[str]) -> list[Placed]:
    """Return which file is of which nodes.

    Parameters
    ----------
    pairs
        None; a pattern of the files' names with ``{}`` for each node, such as ``latency-{}-{}.txt``; or a file with a
        line ``NODE,NODE,FILE`` for each, which names the files instead.
    nodes
        Names that nodes may have; any where there are none.

    Raises
    ------
    ImportFormatError
        A line or a name is not so; names it.
    """
    if pairs is None:
        return [Placed(file) for file in files]
    if NODE in pairs:
        return [Placed(file, _of_name(file, pairs, nodes)) for file in files]
    if files:
        raise UsageError(
            f"--pairs {pairs}: it names its files itself; a pattern of names has {NODE} for each node"
        )
    return list(_listed(Path(pairs), nodes))


def _listed(path: Path, nodes: Collection[str]) -> Iterator[Placed]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ImportFormatError(f"--pairs {path}: {reason}") from error
    if len(lines) > _MOST_LINES:
        raise ImportFormatError(f"--pairs {path}: more than {_MOST_LINES} lines")
    for number, line in enumerate(lines, 1):
        words = [word.strip() for word in line.partition("#")[0].split(",")]
        if words == [""]:
            continue
        names = tuple(words[:-1])
        if len(names) < 2 or not words[-1] or not all(is_node_name(name) for name in names):
            raise ImportFormatError(
                f"{path}, line {number}: expected NODE,NODE,FILE, got {printable(line, 80)!r}"
            )
        for name in names:
            if nodes and name not in nodes:
                raise ImportFormatError(f"{path}, line {number}: {name} is not among --nodes")
        yield Placed(path.parent / words[-1], names)


def _of_name(file: Path, pattern: str, nodes: Collection[str]) -> tuple[str, ...]:
    """Return the nodes in the name of a file, which can be taken apart in one way only."""
    ways = list(_ways(file.name[:_LONGEST], pattern.split(NODE), frozenset(nodes)))
    if len(ways) == 1:
        return tuple(check_node_name(name) for name in ways[0])
    if not ways:
        among = " with names of --nodes" if nodes else ""
        raise ImportFormatError(f"{file}: its name is not as in --pairs {pattern!r}{among}")
    both = " or ".join(", ".join(way) for way in ways[:2])
    raise ImportFormatError(
        f"{file}: its name can be of {both}: say --nodes, or list nodes and files in --pairs FILE"
    )


def _ways(name: str, parts: Sequence[str], nodes: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield the nodes that a name can be of; at most two ways, as more do not matter."""
    if not name.startswith(parts[0]):
        return
    rest = name[len(parts[0]) :]
    if len(parts) == 1:
        if not rest:
            yield ()
        return
    found = 0
    for begin in (one.start() for one in re.finditer(f"(?={re.escape(parts[1])})", rest)):
        node = rest[:begin]
        if not is_node_name(node) or (nodes and node not in nodes):
            continue
        for others in _ways(rest[begin:], parts[1:], nodes):
            yield (node, *others)
            found += 1
            if found > 1:
                return
