"""What is asked: which pairs are judged, and against what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from wulf.base.errors import UsageError
from wulf.base.must_see import MUST_SEE
from wulf.base.request import RUNS, SECONDS, SHARE, AnyRun, Argument, Option, PathField, RunsField, Unit
from wulf.base.units import parse_percent
from wulf.node.fleet.fields import ClusterField, NodesField

#: By how much a run may be worse than its baseline.
MARGIN = 0.05
_FAIL_IF = re.compile(r"\s*worse\s*>\s*([0-9.]+\s*%)\s*")


def fail_if(text: str) -> float:
    """Return the share by which a run may be worse than its baseline: 0.05 for ``worse > 5%``.

    Raises
    ------
    UsageError
        It says something else.
    """
    found = _FAIL_IF.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r}: write it as 'worse > 5%'")
    return parse_percent(found[1])


WORSE = Unit("", fail_if, lambda share: f"worse > {100 * share:g}%", 0, 1, "a share between 0 and 1")


_MustSeeField = Annotated[
    Sequence[float],
    Option(
        "Slower nodes that have to be seen, at large and at small messages: else it cannot tell.",
        unit=SHARE,
        separator=",",
    ),
]


@dataclass(frozen=True)
class DiagnoseRequest:
    """Say which node, link or group of nodes is slow, or that all are alike.

    Without a run all pairs are measured, at a small and a large size, pairs without a common node at the same time.
    A node is suspected that is slow with everybody, a link that is slower than both its nodes explain, a group that is
    slow with all others and quick among itself: something is between it and them. Of a cluster where all are alike
    something is suspected in one case of a hundred. Who is suspected is measured once more, alone, in half of the
    budget at most, and named only if it is slow then, too.

    Beside this it says which known causes the figures look like, each with its evidence and the next step: MTU, delayed
    acknowledgements, interrupt moderation, packet filters, duplex, links below their speed, losses, socket buffers,
    power states, busy nodes.

    It says how slow a node has to be to be named in nine cases of ten. Where that is worse than --must-see (25 % at
    large, 50 % at small messages), it cannot tell.

    Exit code 3 when something is suspected, worse than the baseline, could not be measured again, or cannot be told;
    so it can stand in a prolog or an acceptance test.
    """

    run: Annotated[
        AnyRun | None,
        Argument("A run of all pairs. Default: a new one is measured.", metavar="[RUN]", complete="runs"),
    ] = None
    cluster: ClusterField = None
    path: PathField = None
    nodes: NodesField = None
    budget_s: Annotated[float, Option("Time for measuring.", unit=SECONDS)] = 120.0
    baseline: Annotated[
        AnyRun | None,
        Option(
            "An earlier run of the same pairs and sizes, to compare with.", metavar="RUN", complete="runs"
        ),
    ] = None
    margin: Annotated[
        float | None,
        Option(
            f"When it counts as worse than the baseline. Default: {WORSE.spell(MARGIN)!r}.",
            names=("--fail-if",),
            unit=WORSE,
        ),
    ] = None
    must_see: _MustSeeField = MUST_SEE
    runs: RunsField = RUNS

    def __post_init__(self) -> None:
        """Refuse a margin without anything to hold against.

        Raises
        ------
        UsageError
            Says what it takes.
        """
        if len(self.must_see) != 2:
            raise UsageError("--must-see: two shares, for large and for small messages, like 25%,50%")
        if self.margin is not None and self.baseline is None:
            raise UsageError("--fail-if is about --baseline: name the run to compare with")

    @property
    def wanted(self) -> tuple[float, float]:
        """Slowdowns that have to be seen, at large and at small messages."""
        large, small = self.must_see
        return large, small
