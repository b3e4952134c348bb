"""What is asked: which study, how much of it, on which cluster."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.request import RUNS, SECONDS, SHARE, Argument, Option, PathField, RunsField
from wulf.node.fleet.fields import ClusterField, NodesField, RelaxField, SeedField, TakeOverField

#: Time for all of a study, where nobody says it [s].
BUDGET_S = 3600.0
MARGIN = 0.02


@dataclass(frozen=True)
class StudyRequest:
    """Run a study: factors, metrics and a design from a file, as one table with intervals.

    A file says what is varied (settings, MPI and BLAS libraries, environments, networks, ranks, commands), what is
    measured (operations, HPL, commands, a mix of jobs under Slurm), and how the levels are combined. Every run of a
    combination is paired with one of the base, in random order; settings are changed under the guard, and everything is
    put back. What is not available here is left out, with the reason. 'wulf report' prints the table as CSV, LaTeX,
    Markdown and as a page.

    Exit code 3 when runs failed or the budget ran out before all were made.
    """

    study: Annotated[
        str | None,
        Argument("A file, or the name of a study ('--list').", metavar="[STUDY]", complete="studies"),
    ] = None
    cluster: ClusterField = None
    path: PathField = None
    _: KW_ONLY
    list: Annotated[bool, Option("List the available studies, and do nothing else.")] = False
    dry_run: Annotated[
        bool, Option("Show factors, levels, runs, how long they take and what is missing; start nothing.")
    ] = False
    short: Annotated[bool, Option("The short form, as defined in the file.")] = False
    nodes: NodesField = None
    mpi: Annotated[str | None, Option("MPI library where no factor names one.")] = None
    replications: Annotated[
        int | None,
        Option(
            "Pairs of runs (the combination and the base) for each combination. Default: as the file says.",
            least=1,
        ),
    ] = None
    budget_s: Annotated[
        float | None,
        Option(
            "Time for all of it; the first run is always made. Default: 1h.",
            unit=SECONDS,
            goes_on=True,
        ),
    ] = None
    margin: Annotated[
        float | None, Option("Differences smaller than this do not matter. Default: 2%.", unit=SHARE)
    ] = None
    resume: Annotated[
        Path | str | None,
        Option("Continue this run of a study, without naming a STUDY.", metavar="RUN"),
    ] = None
    seed: SeedField = None
    take_over: TakeOverField = False
    relax: RelaxField = False
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse what does not go together.

        Raises
        ------
        UsageError
            Says what it takes.
        """
        asked = [name for name in ("list", "resume") if getattr(self, name)]
        if len(asked) + (self.study is not None) != 1:
            raise UsageError(
                "one of them: a STUDY, --list, or --resume RUN ('wulf bench study --list' names studies)"
            )
        if self.resume is not None and self.dry_run:
            raise UsageError("--resume goes on as the run was begun: it takes no --dry-run")
