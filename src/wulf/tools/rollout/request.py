"""What is asked: which change goes to how many nodes first, and what must not get worse on its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, SHARE, Argument, Option, PathField, RunsField
from wulf.node.fleet.fields import ClusterField, MpiField, NodesField, RelaxField, SeedField, TakeOverField

#: No step may have more than so many times as many nodes as the one before.
MOST_GROWTH = 10
#: The nodes hold a change for so long without a word at most [s].
MOST_S = 3600.0
#: Fewer rounds prove nothing.
FEWEST_ROUNDS = 8


@dataclass(frozen=True)
class RolloutRequest:
    """Set what was found to help on a few nodes first, then in steps on all; put it back where it does harm.

    In every step, the nodes are measured in pairs with the change and without it, in random order, while the guard
    on each node undoes the change if it no longer hears from this program. A node keeps the change if latency,
    bandwidth and loss are shown not to get worse by more than --margin; otherwise it is put back. If most nodes of
    one hardware have to be put back, nothing more is set on that hardware. A node that does not answer, or a
    --check that fails, halts everything, and the step is put back.

    Nodes are grouped by hardware, driver and firmware: those of other hardware than the tuned ones are left alone.
    Where Slurm manages the nodes, only idle and drained ones are changed. Ctrl-C puts the step back; --resume goes
    on.

    Exit code 0 when all nodes have the change, 3 when some do not, 1 when the roll-out was halted.
    """

    cluster: ClusterField = None
    settings: Annotated[
        Sequence[str],
        Argument(
            "What to set. Default: what the newest tuning run has kept.",
            metavar="[KNOB=VALUE...]",
            complete="settings",
        ),
    ] = ()
    tuned: Annotated[
        str | None,
        Option("A tuning run: what it has kept is set.", names=("--from",), metavar="RUN"),
    ] = None
    canary: Annotated[int, Option("Nodes of each hardware in the first step.", least=1)] = 4
    growth: Annotated[
        float,
        Option("Factor by which each step has more nodes than the one before.", least=1, most=MOST_GROWTH),
    ] = 3.0
    margin: Annotated[float, Option("A figure that gets worse by this share counts as harm.", unit=SHARE)] = (
        0.05
    )
    tolerate: Annotated[
        float,
        Option(
            "Share of a step's nodes of one hardware that may have to be put back; if it is exceeded twice in a row, "
            "nothing more is set on that hardware.",
            unit=SHARE,
        ),
    ] = 0.5
    rounds: Annotated[
        int,
        Option(
            "Rounds of a step at most: where it is still not shown that the change does no harm, it is put back.",
            least=FEWEST_ROUNDS,
        ),
    ] = 60
    check: Annotated[
        str,
        Option(
            "The site's own test, run by a shell on the first node of the step: before the first step, and in each "
            "step with and without the change; any exit code other than 0 halts the roll-out. WULF_NODES has the "
            "nodes of the step.",
            metavar="COMMAND",
        ),
    ] = ""
    check_within_s: Annotated[
        float, Option("A --check that takes longer counts as failed.", unit=SECONDS)
    ] = 600.0
    other_hardware: Annotated[
        bool, Option("Also roll out to hardware that was not tested, with canaries of its own.")
    ] = False
    nodes: NodesField = None
    resume: Annotated[str | None, Option("Continue a roll-out with its original options.", metavar="RUN")] = (
        None
    )
    path: PathField = None
    mpi: MpiField = None
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        UsageError
            Names the options.
        """
        if self.settings and self.tuned:
            raise UsageError(f"KNOB=VALUE and --from {self.tuned}: one of the two says what is set")
        if self.resume and (self.settings or self.tuned or self.path):
            raise UsageError("--resume: what is set, and the run's name, are those that it was begun with")
        if self.margin <= 0 or not 1 <= self.check_within_s <= MOST_S:
            raise UsageError("--margin: more than 0; --check-within: from 1s to 1h")
