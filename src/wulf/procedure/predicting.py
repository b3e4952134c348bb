"""From a trace, a calibrated run and networks to a prediction."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from wulf import networks
from wulf.errors import TraceError, UsageError
from wulf.networks import NamedNetwork
from wulf.predict import calibrate, judge, scenario, uncertainty
from wulf.predict.draws import Draw, Sample
from wulf.predict.network import Network
from wulf.predict.replayed import Replayed
from wulf.predict.scenario import Scenario
from wulf.procedure import replaying
from wulf.procedure.analysis import analyze
from wulf.records import SCHEMA_VERSION, Analysis, Estimate, Prediction
from wulf.store import Run
from wulf.wtrace.reader import Trace, read
from wulf.wtrace.summary import command_of

Say = Callable[[str], None]
#: What is asked about without --what-if.
USUAL = "1gbe-tuned,10gbe,25gbe,25gbe-roce"
#: The curve goes up to so many times the latency now, and this at least [s].
FAR, FAR_S = 50.0, 1e-3
_TOO_MANY_LINES = "changes its slope more than"


def _no_run(name: str) -> Run:
    raise UsageError(f"@{name}: runs are not looked for here")


class PredictRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of which program."""

    #: A trace, or a pattern (``.toml``).
    source: Path
    run: Run
    what_if: str
    #: Files or directories with networks of the user's own.
    own: list[Path] = []
    #: Ranks of a pattern that leaves their number open; 0: as it says.
    ranks: int = 0
    #: In blocks; 0: where the trace says that they were.
    ranks_per_node: int = 0
    #: On which node each rank is; empty: as `ranks_per_node` says.
    placement: list[int] = []
    rules: Path | None = None
    #: Finds a run that ``@RUN`` names.
    find_run: Callable[[str], Run] = _no_run
    samples: int = 200
    seed: int = 1


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
        known = (found.cells, run.manifest.operations, found.parameters, str(run.path))
        self.between = calibrate.between_nodes(*known)
        self.within = calibrate.within_node(*known) if shares_nodes else None

    @property
    def notes(self) -> list[str]:
        """What of it is not known."""
        return [note for way in (self.between, self.within) if way is not None for note in way.notes]

    def network(self, draw: Draw | None = None, compute: float = 1.0) -> Network:
        """Return what was measured, or with a draw what it may have been."""
        within = calibrate.link(self.within, draw) if self.within is not None else None
        return Network(calibrate.link(self.between, draw), within, compute=compute)


@dataclass(frozen=True)
class Evaluated:
    """A trace on the calibrated network and on others, with all samples."""

    request: PredictRequest
    trace: Trace
    nodes: list[int]
    scenarios: list[Scenario]
    base: Network
    sampled: list[Network]
    asked: judge.Asked
    figures: judge.Figures
    found: Replayed
    spread: float
    known: list[str]

    def likely(self, scenario: int) -> float:
        """Run time on a scenario's network ÷ that on the network as it is, with likely parameters."""
        return self.figures.likely(scenario + 1)

    def changes(self, scenario: int) -> NDArray[np.float64]:
        """Return the same of every sample."""
        return self.figures.changes(scenario + 1)

    def notes(self) -> list[str]:
        """Return what must be known of the figures."""
        plan = self.found.plan
        fit = self.figures.fit if self.figures.own_s else None
        return [
            *judge.notes(fit, self.spread, (plan.buffered, plan.largest_buffered_bytes)),
            *self.known,
            "Adding up in reductions is counted as taking no time: the calibration does not measure it.",
        ]


def evaluate(request: PredictRequest, say: Say) -> Evaluated:
    """Replay a trace on all networks that are asked about, likely ones and samples; raises as `predict`."""
    with traced(request.source, request.ranks) as path:
        trace = read(path)
        nodes = placed(trace, request.ranks_per_node, request.placement)
        calibrated = Calibrated(request.run, shares_nodes=len(set(nodes)) < len(nodes))
        scenarios = scenario.parse(
            request.what_if,
            finder(request.own),
            other_runs(request.find_run, shares_nodes=calibrated.within is not None),
        )
        spread = uncertainty.compute_spread([stream.slots[stream.starts()] for stream in trace.streams])
        draws = [Sample(request.seed, number) for number in range(request.samples)]
        sampled = [
            calibrated.network(draw, compute=max(0.0, 1 + spread * draw.of("compute"))) for draw in draws
        ]
        base = calibrated.network()
        asked = judge.asked(base, sampled, scenarios, draws)
        say(f"replaying {trace.ranks} ranks on {len(asked.networks)} networks")
        found = _replayed(path, asked.networks, nodes, request)
        return Evaluated(
            request=request,
            trace=trace,
            nodes=nodes,
            scenarios=scenarios,
            base=base,
            sampled=sampled,
            asked=asked,
            figures=judge.figures(found, asked, own_time(trace), draws),
            found=found,
            spread=spread,
            known=calibrated.notes,
        )


def predict(request: PredictRequest, say: Say) -> Prediction:
    """Return what a program takes on the network of a run, and on others.

    Raises
    ------
    TraceError
        The trace cannot be replayed soundly; says why.
    UsageError
        The run lacks measurements, a network is not known, or ranks and nodes do not fit.
    """
    return _prediction(evaluate(request, say))


def _prediction(of: Evaluated) -> Prediction:
    request, figures, plan = of.request, of.figures, of.found.plan
    run = request.run.manifest.id
    as_it_is = judge.as_it_is(figures, f"measured: {run}")
    predicted = [judge.on(one, place, figures) for place, one in enumerate(of.scenarios, 1)]
    far_s = _far_ns([of.base]) * 1e-9
    tolerance = judge.tolerances(of.found.curve, far_s, of.base, of.sampled, figures.times[:, 0])
    here_s = of.base.between.latency_ns * 1e-9
    return Prediction(
        schema_version=SCHEMA_VERSION,
        trace=str(request.source),
        command=command_of(of.trace),
        ranks=of.trace.ranks,
        nodes=len(set(of.nodes)),
        run=run,
        samples=request.samples,
        seed=request.seed,
        operations=plan.operations,
        own_s=figures.own_s,
        gap=_gap(as_it_is.change) if figures.own_s else None,
        base=as_it_is,
        scenarios=predicted,
        curve=of.found.curve,
        tolerance=tolerance,
        hops=judge.hop_sources(of.found.hops),
        buffered=plan.buffered,
        largest_buffered_bytes=plan.largest_buffered_bytes,
        conclusion=list(judge.conclusion(as_it_is, predicted, tolerance, here_s)),
        notes=of.notes(),
    )


def _gap(change: Estimate) -> Estimate:
    return msgspec.structs.replace(change, method="model ÷ program's own time, on the network as it is")


def _replayed(
    path: Path, asked: Sequence[Network], nodes: Sequence[int], request: PredictRequest
) -> Replayed:
    """Replay all, with the curve where it has not too many pieces."""
    try:
        return replaying.replay(
            path,
            asked,
            nodes=nodes,
            rules=request.rules,
            options=["--path", "--curve", f"0:{_far_ns(asked):.0f}"],
        )
    except TraceError as error:
        if _TOO_MANY_LINES not in str(error):
            raise
        return replaying.replay(path, asked, nodes=nodes, rules=request.rules, options=["--path"])


def _far_ns(asked: Sequence[Network]) -> float:
    """Return up to which latency the curve goes, of the first of these networks [ns]."""
    return max(FAR * asked[0].between.latency_ns, FAR_S * 1e9)


@contextmanager
def traced(source: Path, ranks: int) -> Iterator[Path]:
    """Give the trace to replay: of a pattern it is made for that, and taken away.

    Raises
    ------
    UsageError
        There is no such file.
    """
    if not source.is_file():
        raise UsageError(
            f"{source}: there is no such file: 'wulf trace -o {source} -- COMMAND' writes a trace"
        )
    if source.suffix != ".toml":
        yield source
        return
    if find_spec("wulf.procedure.patterns") is None:
        raise UsageError(f"{source}: this version of wulf predicts traces, not yet patterns")
    patterns = import_module("wulf.procedure.patterns")
    with tempfile.TemporaryDirectory(prefix="wulf-pattern-") as directory:
        yield patterns.pattern_trace(source, ranks, Path(directory))


def placed(trace: Trace, ranks_per_node: int, placement: Sequence[int]) -> list[int]:
    """Return on which node each rank is; by the trace, where nothing is said.

    Raises
    ------
    UsageError
        The placement is that of another number of ranks.
    """
    if placement:
        if len(placement) != trace.ranks:
            raise UsageError(f"the placement has {len(placement)} ranks, the trace {trace.ranks}")
        return list(placement)
    if ranks_per_node:
        return [rank // ranks_per_node for rank in range(trace.ranks)]
    hosts = [stream.host or f"\0{stream.rank}" for stream in trace.streams]
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return [numbers[host] for host in hosts]


def finder(own: Sequence[Path]) -> scenario.Find:
    """Return what finds a network by its name, those of the user's files first.

    Raises
    ------
    ConfigError
        A file cannot be read or does not say all.
    """
    mine: dict[str, NamedNetwork] = {one.id: one for path in own for one in networks.read(path)}
    return lambda name: networks.named(name, mine)


def other_runs(find_run: Callable[[str], Run], *, shares_nodes: bool) -> scenario.Calibrated:
    """Return what makes a change of the name of a calibrated run: to its network, with the CPUs as they are."""

    def to_run(name: str) -> scenario.Change:
        other = Calibrated(find_run(name), shares_nodes=shares_nodes)
        return lambda network, draw: replace(other.network(draw), compute=network.compute)

    return to_run


def own_time(trace: Trace) -> float | None:
    """Return how long the traced program ran, by its slowest rank; None where the trace does not say [s]."""
    longest = max(stream.run_ns for stream in trace.streams)
    return longest * 1e-9 if longest else None
