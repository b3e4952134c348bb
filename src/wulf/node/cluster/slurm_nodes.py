"""Ask Slurm for its nodes: which are idle, who waits for some, to have idle ones for a while, to drain bad ones."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wulf.base.errors import SchedulerError
from wulf.base.nodeset import fold
from wulf.base.text import last_line, printable
from wulf.node.cluster import slurm
from wulf.node.cluster.names import expand

#: A job that waits for one of these waits for nodes.
_WAITS_FOR_NODES = frozenset({"Resources", "Priority"})
#: Behind everybody else's jobs: added to the number by which Slurm puts jobs behind others.
NICE = 10_000
#: Idle nodes are had within this time, or not at all [s].
IMMEDIATE_S = 30
_PATIENCE_S = 60.0
_GRANTED = re.compile(r"Granted job allocation (\d+)")


def states() -> dict[str, str]:
    """Return node → state, as Slurm names it: ``idle``, ``mixed``, ``allocated``, ``idle~``.

    Raises
    ------
    SchedulerError
        Slurm does not answer.
    """
    found = {}
    for line in slurm.ask(["sinfo", "--noheader", "--Node", "--format=%N %t"]).splitlines():
        name, _, state = line.strip().partition(" ")
        found[name] = {"alloc": "allocated", "mix": "mixed", "comp": "completing"}.get(state, state)
    return found


def waiting_for_nodes() -> int:
    """Return how many jobs wait for nodes to become free."""
    said = slurm.ask(["squeue", "--noheader", "--states=PENDING", "--format=%r"])
    return sum(line.strip() in _WAITS_FOR_NODES for line in said.splitlines())


@contextmanager
def allocation(nodes: Sequence[str], limit_s: float, options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Have idle nodes to oneself, behind everybody else's jobs; yields the job's number and its nodes, folded.

    Raises
    ------
    SchedulerError
        They are not idle any more, or Slurm refuses.
    """
    job = _allocated(nodes, limit_s, options)
    try:
        yield job, fold(expand(",".join(slurm.look(job).nodes)))
    finally:
        slurm.ask(["scancel", job])


def _allocated(nodes: Sequence[str], limit_s: float, options: Sequence[str]) -> str:
    argv = [
        "salloc",
        "--no-shell",
        f"--immediate={IMMEDIATE_S}",
        "--exclusive",
        f"--nice={NICE}",
        "--job-name=wulf-watch",
        f"--nodes={len(nodes)}",
        f"--nodelist={fold(nodes)}",
        f"--time={max(1, -(-int(limit_s) // 60))}",
        *options,
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except FileNotFoundError:
        raise SchedulerError("there is no salloc here: Slurm is not installed, or not in PATH") from None
    except subprocess.TimeoutExpired:
        raise SchedulerError(f"salloc hangs (given up after {_PATIENCE_S:g} s)") from None
    found = _GRANTED.search(done.stderr)
    if done.returncode != 0 or found is None:
        why = printable(last_line(done.stderr), 300) or f"exit code {done.returncode}"
        if "Connection timed out" in why:  # so salloc calls the end of --immediate
            why = f"other jobs came first: the nodes were not free within {IMMEDIATE_S} s"
        raise SchedulerError(f"salloc: {why.removeprefix('salloc: ').removeprefix('error: ')}")
    return found[1]


def drain_argv(nodes: Sequence[str], reason: str) -> list[str]:
    """Return the command that takes nodes out of service: jobs on them end, no new one starts."""
    return [
        "scontrol",
        "update",
        f"nodename={fold(nodes)}",
        "state=drain",
        f"reason={printable(reason, 200)}",
    ]


def drain(nodes: Sequence[str], reason: str) -> None:
    """Take nodes out of service.

    Raises
    ------
    SchedulerError
        Slurm refuses.
    """
    slurm.ask(drain_argv(nodes, reason))


def drain_command(nodes: Sequence[str], reason: str) -> str:
    """Return the same command for a shell."""
    return shlex.join(drain_argv(nodes, reason))
