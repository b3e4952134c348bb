"""Run the replay of traces: a program of ``native``, built when it is first needed."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wulf.errors import TraceError, UsageError
from wulf.predict import network, replayed
from wulf.predict.network import Network
from wulf.probe import build
from wulf.text import last_line

#: No replay takes longer [s].
LIMIT_S = 3600.0
_PREFIX = "wulf-replay: "


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
) -> replayed.Replayed:
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
    with tempfile.TemporaryDirectory(prefix="wulf-replay-") as name:
        directory = Path(name)
        (directory / "networks").write_text(network.text(networks))
        argv = [str(program()), str(trace), str(directory / "networks"), *options]
        if nodes:
            (directory / "nodes").write_text(" ".join(map(str, nodes)))
            argv += ["--nodes", str(directory / "nodes")]
        if rules is not None:
            argv += ["--rules", str(rules)]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            raise TraceError(
                f"{trace}: the replay takes longer than {LIMIT_S:.0f} s: fewer --samples, or a shorter trace"
            ) from None
    if b"usage: " in done.stderr:
        raise UsageError(f"the replay of this version does not know all of {' '.join(options)}")
    if done.returncode != 0:
        said = last_line(done.stderr).removeprefix(_PREFIX) or f"the replay ended with code {done.returncode}"
        raise TraceError(said if str(trace) in said else f"{trace}: {said}")
    return replayed.read(done.stdout, len(networks), str(trace))
