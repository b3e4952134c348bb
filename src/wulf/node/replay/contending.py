"""Replay a program event by event on the networks that are asked about, alone and beside others."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wulf.base.errors import ConfigError
from wulf.base.text import count
from wulf.node.replay import replaying
from wulf.stats.prediction import contended, judge, network, uplinks
from wulf.stats.prediction.contended import Seen
from wulf.stats.prediction.network import Network


@dataclass(frozen=True)
class Shared:
    """Where the programs are, and what there is between them."""

    trace: Path
    #: Of each rank its node, of the program, then of those beside it.
    nodes: Sequence[int]
    ranks: int
    #: Names of the nodes, by number.
    names: Sequence[str]
    rules: Path | None = None
    topology: Path | None = None
    #: Traces of programs that run at the same time, and what they are called.
    beside: Sequence[Path] = ()
    others: Sequence[str] = field(default=())


def contend(
    of: Shared, asked: judge.Asked, samples: int, seed: int, say: Callable[[str], None]
) -> tuple[Seen, Seen | None]:
    """Return what comes of the likely networks and of so many samples: alone, and with all others.

    Raises
    ------
    ConfigError
        The file of uplinks is wrong, or a node is at no switch.
    TraceError
        A trace beside cannot be replayed soundly.
    """
    rows = asked.networks[: (samples + 1) * asked.columns]
    is_lossy = bool(buffered(rows[: asked.columns]))
    if is_lossy:
        rows = [*rows, *(network.unbuffered(one) for one in rows[: asked.columns])]
    with tempfile.TemporaryDirectory(prefix="wulf-uplinks-") as name:
        options = ["--engine", "events", "--seed", str(seed)]
        if of.topology is not None:
            (Path(name) / "topology").write_text(_uplinks(of.topology, of.names))
            options += ["--topology", str(Path(name) / "topology")]
        say(f"replaying event by event on {count(len(rows), 'network')}")
        found = replaying.replay(of.trace, rows, nodes=of.nodes[: of.ranks], rules=of.rules, options=options)
        alone = contended.seen(found, asked.columns, has_lossless=is_lossy)
        if not of.beside:
            return alone, None
        say(f"replaying beside {', '.join(of.others)}")
        options += [word for path in of.beside for word in ("--beside", str(path))]
        found = replaying.replay(of.trace, rows, nodes=of.nodes, rules=of.rules, options=options)
        return alone, contended.seen(found, asked.columns, has_lossless=is_lossy)


def buffered(networks: Sequence[Network]) -> list[int]:
    """Return which networks lose what does not fit into a buffer."""
    return [place for place, one in enumerate(networks) if math.isfinite(one.between.buffer_bytes)]


def _uplinks(path: Path, names: Sequence[str]) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', 'it is not text')}") from None
    return uplinks.text(uplinks.read(text, str(path)), names, str(path))
