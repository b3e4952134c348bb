"""Networks of a prediction: what a run measured, that of another run, and those of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from wulf.base import networks
from wulf.base.records import Analysis, CellEstimate
from wulf.base.store import Run
from wulf.node.measuring.analysis import analyze, measuring
from wulf.stats import estimate
from wulf.stats.prediction import calibrate, made_of, operation_times, scenario
from wulf.stats.prediction.draws import Draw
from wulf.stats.prediction.network import Network


class Calibrated:
    """The network that a run measured.

    Parameters
    ----------
    shares_nodes
        Whether ranks share a node, so that what is within nodes must be known.

    Raises
    ------
    UsageError
        The run lacks what is needed; says how it is measured.
    """

    def __init__(self, run: Run, *, shares_nodes: bool) -> None:
        found: Analysis = run.analysis() or analyze(run)
        known = (_with_means(found.cells, run), run.manifest.operations, found.parameters, str(run.path))
        self.between = operation_times.between_nodes(*known)
        self.within = operation_times.within_node(*known) if shares_nodes else None
        self.cost = _cost(run)

    @property
    def notes(self) -> list[str]:
        """What of it is not known."""
        return [note for way in (self.between, self.within) if way is not None for note in way.notes]

    @property
    def tells_launches(self) -> bool:
        """Whether it says how its launches differ."""
        return all(way.tells_launches for way in (self.between, self.within) if way is not None)

    def network(self, draw: Draw | None = None, compute: float = 1.0, *, one_launch: bool = False) -> Network:
        """Return what was measured, or with a draw what it may have been, or what one launch finds."""
        return calibrate.network(self.between, self.within, draw, compute=compute, one_launch=one_launch)

    def sampled(self, draws: Sequence[Draw], spread: float) -> tuple[list[Network], list[Network]]:
        """Return what the network may have been by each draw, and what single launches find where that is told.

        Parameters
        ----------
        spread
            Relative standard deviation of what the program computes.
        """
        computes = [max(0.0, 1 + spread * draw.of("compute")) for draw in draws]
        pairs = list(zip(draws, computes, strict=True))
        usual = [self.network(draw, compute) for draw, compute in pairs]
        single = [
            self.network(draw, compute, one_launch=True) for draw, compute in pairs if self.tells_launches
        ]
        return usual, single


def _cost(run: Run) -> made_of.Calibration:
    """Return what the run took: launches of the operation and place that has fewest, and the time of all."""
    launches = [one.launch for one in measuring(run.results)]
    counts = Counter((one.op, tuple(one.place)) for one in launches if one.status == "ok")
    return made_of.Calibration(
        origin=str(run.path),
        launches=min(counts.values(), default=0),
        time_s=sum(one.duration_s for one in launches),
    )


def _with_means(cells: Sequence[CellEstimate], run: Run) -> list[CellEstimate]:
    """Return cells with their mean times: a program waits for all of its messages, not for the usual one.

    Trains keep their medians: what they tell is a link's rate, of which a rank that was held up is no part. So does a
    run without its samples.
    """
    trains = {one.name for one in run.manifest.operations if (one.asked or one.name).startswith("mpi_burst")}
    evidence = measuring(run.results)
    samples = [sample for result in evidence for sample in result.samples]
    launches = [result.launch for result in evidence]
    means = estimate.means(samples, launches, run.manifest.plan, run.manifest.operations)
    return [
        one if one.cell.op in trains else msgspec.structs.replace(one, time=means.get(one.cell, one.time))
        for one in cells
    ]


def finder(own: Sequence[Path]) -> scenario.Find:
    """Return what finds a network by its name: those of these files first, then those that the user keeps.

    Raises
    ------
    ConfigError
        A file cannot be read or does not say all.
    """
    mine = {one.id: one for path in own for one in networks.read(path)}
    return lambda name: networks.named(name, mine)


class OtherRuns:
    """Makes a change of the name of a calibrated run: to its network, with the CPUs as they are."""

    def __init__(self, find_run: Callable[[str], Run], *, shares_nodes: bool) -> None:
        self._find_run, self._shares_nodes = find_run, shares_nodes
        self._known: dict[str, Calibrated] = {}

    def __call__(self, name: str) -> scenario.Change:
        """Return the change."""
        other = self._known[name] = Calibrated(self._find_run(name), shares_nodes=self._shares_nodes)
        return lambda network, draw: replace(other.network(draw), compute=network.compute)

    @property
    def notes(self) -> list[str]:
        """What is not known of the networks that were asked for."""
        return [
            f"@{name}: {note}"
            for name, other in self._known.items()
            for note in (*other.notes, *filter(None, [other.network().between.not_told.get("bandwidth")]))
        ]
