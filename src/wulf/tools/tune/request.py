"""What is asked: which figure is to become better, by which settings, and how long is searched."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, SHARE, Option, PathField, RunsField, Unit
from wulf.node.fleet.fields import ClusterField, MpiField, NodesField, RelaxField, SeedField, TakeOverField

BUDGET_S = 1800.0


def _patterns(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None


#: A value with blanks in it is quoted as for a shell.
KNOBS = Unit("", _patterns, shlex.join)
KnobsField = Annotated[
    Sequence[str],
    Option(
        "Only these, separated by spaces; * matches; with values: \"nic.mtu=1500,9000 nic.tso_gso='on on'\".",
        unit=KNOBS,
        metavar="KNOBS",
    ),
]
ObjectiveField = Annotated[
    str, Option("latency, bandwidth, incast, 'app: COMMAND' (run on the first node), or a .toml file.")
]
MatterField = Annotated[
    float, Option("Changes of the objective smaller than this do not matter.", unit=SHARE)
]


@dataclass(frozen=True)
class TuneRequest:
    """Find the settings that help, by experiment, and set them.

    Each candidate is switched on and off in random blocks while complete cycles are measured. What is proven to help
    is kept and the rest is tested again on top of it; at the end the whole set is confirmed against the original
    settings. A setting under which another figure gets worse (large messages, the slowest percent) is not kept.

    While it runs, the nodes put a setting back by themselves when they hear nothing for two minutes, or for three times
    as long as the longest measurement so far, an hour at most. Ctrl-C puts everything back and keeps the results;
    --resume goes on. What was kept is set until the next boot: 'wulf settings persist' keeps it, 'wulf rollback'
    takes it back.

    Exit code 3 when the search did not finish, 1 when what helps could not be set.
    """

    cluster: ClusterField = None
    path: PathField = None
    nodes: NodesField = None
    objective: ObjectiveField = "latency"
    match: Annotated[
        str, Option("With 'app:': regular expression with a group around the number in its output.")
    ] = ""
    better: Annotated[
        Literal["lower", "higher"], Option("With --match: whether a lower or a higher number is better.")
    ] = "lower"
    unit: Annotated[str, Option("With --match: unit of the number.")] = ""
    knobs: KnobsField = ()
    budget_s: Annotated[
        float | None,
        Option(
            "Total time (30m, 1h30m), including the preparation; at least half is left to the search. "
            "With --resume it starts again. Default: 30m.",
            unit=SECONDS,
            goes_on=True,
        ),
    ] = None
    margin: MatterField = 0.02
    mpi: MpiField = None
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False
    set_kept: Annotated[
        bool,
        Option("Put everything back at the end, even what helps.", names=("--only-search",), goes_on=True),
    ] = True
    runs: RunsField = RUNS


@dataclass(frozen=True)
class WholeRequest:
    """Do everything: audit, measure, mend, tune, confirm, measure again, and report the total effect.

    The same as 'wulf audit', 'wulf measure', 'wulf mend', 'wulf tune', 'wulf measure', 'wulf audit' and 'wulf report',
    in one run with one page. Ctrl-C puts the nodes back and keeps the results so far. Exit code 3 when the search did
    not finish.
    """

    cluster: ClusterField = None
    path: PathField = None
    nodes: NodesField = None
    objective: ObjectiveField = "latency"
    knobs: KnobsField = ()
    budget_s: Annotated[float, Option("Time for everything, such as 45m or 1h30m.", unit=SECONDS)] = BUDGET_S
    margin: MatterField = 0.02
    mpi: MpiField = None
    seed: SeedField = None
    persist: Annotated[bool, Option("Also write the files that keep what helps over reboots.")] = False
    curves: Annotated[bool, Option("Also measure whole curves before and after.")] = True
    take_over: TakeOverField = False
    relax: RelaxField = False
    runs: RunsField = RUNS
