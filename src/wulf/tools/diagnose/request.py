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
        "How much slower a node must be to be found for certain, at large and at small messages; if that "
        "takes more, the verdict is 'cannot tell'.",
        unit=SHARE,
        separator=",",
    ),
]


@dataclass(frozen=True)
class DiagnoseRequest:
    """Find the node, link or group of nodes that is slow, or show that all are alike.

    Without a run, all pairs are measured at a small and a large size, pairs without a common node at the same time.
    A node is suspected when it is slow with all others, a link when it is slower than its two nodes explain, a
    group when it is slow with all others but fast within itself: something between it and them is slow. Where all
    nodes are alike, something is suspected in one case out of a hundred. Suspects are measured once more, alone, in
    at most half of the budget, and are named only if they are slow again.

    It also names the known causes that the figures point to, each with its evidence and the next step: MTU, delayed
    acknowledgements, interrupt moderation, packet filters, duplex, links below their speed, losses, socket buffers,
    power states, busy nodes.

    It says how much slower a node must be to be found in nine cases out of ten. Where that is more than --must-see
    (25 % for large, 50 % for small messages), the verdict is "cannot tell".

    Exit code 3 when something is suspected, is worse than the baseline or could not be measured again, or when it
    cannot tell: it can be used in a prolog or an acceptance test.
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
            f"Condition under which a run counts as worse than the baseline. Default: {WORSE.spell(MARGIN)!r}.",
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
            raise UsageError("--fail-if needs --baseline, the run to compare with")

    @property
    def wanted(self) -> tuple[float, float]:
        """Slowdowns that have to be seen, at large and at small messages."""
        large, small = self.must_see
        return large, small
