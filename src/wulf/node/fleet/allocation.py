"""The Slurm job that this process runs in: what it leaves of a budget, its nodes, how it starts MPI jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence

from wulf.base.contracts import Launcher, Say, Transport
from wulf.base.errors import SchedulerError, UsageError
from wulf.base.native.build import MpiLibrary
from wulf.base.nodeset import fold
from wulf.node.cluster import inventory, slurm
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.launcher import launcher_for
from wulf.node.cluster.launcher.srun import PLUGINS, Srun

#: Time that is left of an allocation to end what runs, put the nodes back and write the results [s].
RESERVE_S = 60.0
_ASK_S = 20.0
#: Share of a budget that stays for the work itself, however long it takes to prepare it.
LEAST_LEFT = 0.5


def current() -> str | None:
    """Return the number of the Slurm job that this process runs in; None outside of any."""
    return os.environ.get("SLURM_JOB_ID") or None


def capped(budget_s: float, say: Say) -> float:
    """Return a budget [s], or what the Slurm job leaves of it from now on.

    Raises
    ------
    SchedulerError
        The job ends too soon to do anything.
    """
    job = current()
    if job is None:
        return budget_s
    try:
        left_s = slurm.look(job).left_s
    except SchedulerError as error:
        say(f"when Slurm job {job} ends is not known and not taken into account: {error}")
        return budget_s
    if left_s is None or left_s - RESERVE_S >= budget_s:
        return budget_s
    ends = f"Slurm job {job} ends in {left_s:.0f} s"
    if left_s <= RESERVE_S:
        raise SchedulerError(
            f"{ends}: {RESERVE_S:.0f} s of that are kept to put everything back, so nothing more can be started"
        )
    say(
        f"{ends}: the budget is {left_s - RESERVE_S:.0f} s instead of {budget_s:.0f} s, "
        f"{RESERVE_S:.0f} s are kept to put everything back"
    )
    return left_s - RESERVE_S


def left_of(budget_s: float, passed_s: float, what: str, say: Say) -> float:
    """Return what preparing leaves of a budget [s]: it is part of it, but half stays in any case, which is said.

    Parameters
    ----------
    passed_s
        What preparing took [s].
    what
        What comes now.
    """
    left_s = budget_s - passed_s
    if left_s >= LEAST_LEFT * budget_s:
        return left_s
    left_s = LEAST_LEFT * budget_s
    say(
        f"preparing took {passed_s:.0f} s of the budget of {budget_s:.0f} s; {what} still gets {left_s:.0f} s, so all "
        f"of it takes about {passed_s + left_s:.0f} s"
    )
    return left_s


class Rounds:
    """Rounds of work within a budget that began when this was made.

    The first is always begun, however little there is; none that would end too late if it took as long as the longest
    so far.
    """

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._begin = time.monotonic()
        self._last: float | None = None
        self._longest_s = 0.0

    @property
    def passed_s(self) -> float:
        """Time since the beginning [s]."""
        return time.monotonic() - self._begin

    def another(self) -> bool:
        """Whether another round can be begun now; called before each."""
        now = time.monotonic()
        if self._last is not None:
            self._longest_s = max(self._longest_s, now - self._last)
            if now - self._begin + self._longest_s > self._budget_s:
                return False
        self._last = now
        return True


def rounds_left(budget_s: float, begin_s: float, what: str, say: Say) -> Rounds:
    """Return rounds within what preparing since `begin_s` leaves of a budget, and the Slurm job of that.

    Raises
    ------
    SchedulerError
        The job ends too soon to do anything.
    """
    return Rounds(capped(left_of(budget_s, time.monotonic() - begin_s, what, say), say))


def require_inside(config: ClusterConfig, nodes: Collection[str]) -> None:
    """Refuse nodes that are not of the allocation, where srun starts the jobs.

    Raises
    ------
    UsageError
        Names them.
    """
    if config.mpi.launcher != Srun.name or current() is None:
        return
    outside = set(nodes) - set(inventory.from_slurm(os.environ).nodes)
    if outside:
        raise UsageError(
            f"{fold(outside)}: not in the allocation of Slurm job {current()}; nothing was done there"
        )


def srun(
    config: ClusterConfig, mpi: MpiLibrary, transport: Transport, nodes: Sequence[str], say: Say
) -> Launcher:
    """Return what starts MPI jobs in the allocation: srun, or mpirun where srun has not what the library needs.

    Raises
    ------
    UsageError
        This is no allocation.
    """
    job = current()
    if job is None:
        raise UsageError(
            "[mpi] launcher srun: this is no Slurm allocation; use salloc, sbatch or wulf measure --submit"
        )
    arguments = config.mpi.arguments
    if any(word.startswith("--mpi") for word in arguments):
        return Srun(arguments=arguments, allocation=job, binding=config.binding())
    answer = transport.run([Srun.name, "--mpi=list"], nodes[:1], timeout_s=_ASK_S)[nodes[0]]
    there = slurm.mpi_plugins((answer.stdout + b"\n" + answer.stderr).decode(errors="replace"))
    plugin = PLUGINS[mpi.family]
    if plugin in there:
        say(f"MPI jobs start with srun --mpi={plugin} in Slurm job {job}")
        return Srun(arguments=arguments, allocation=job, plugin=plugin, binding=config.binding())
    say(
        f"srun has no {plugin}, by which {mpi.version} would start "
        f"({', '.join(sorted(there)) or answer.reason or 'it lists nothing'}): MPI jobs start with {mpi.mpirun}"
    )
    return launcher_for(mpi.launcher, mpi.mpirun, compiler=mpi.compiler, binding=config.binding())
