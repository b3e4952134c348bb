"""What a stored run of HPC Challenge says of the cluster, and of its nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from wulf.base import store
from wulf.base.errors import AnalysisError
from wulf.base.importing import challenge as output
from wulf.base.nodeset import fold
from wulf.base.records import SCHEMA_VERSION, Place
from wulf.node.measuring.imported import CONFIDENCE
from wulf.stats.core import intervals
from wulf.stats.estimate import outliers
from wulf.stats.estimate.cells import as_estimate
from wulf.tools.hpcc.record import HpccDifference, HpccFigure, HpccResult

#: Results of a node alone in which nodes are compared: its processors, its memory, what lies between its ranks.
COMPARED = (
    "HPL_Tflops",
    "StarDGEMM_Gflops",
    "StarSTREAM_Triad",
    "StarRandomAccess_GUPs",
    "StarFFT_Gflops",
    "RandomlyOrderedRingBandwidth_GBytes",
)
#: Nodes of one kind differ by less, as a share.
MARGIN = 0.05
#: Seed of a round; and a number where several have the same, as launches that were imported.
_Round = tuple[int, int]


def result(run: store.Run) -> HpccResult:
    """Return what a stored run of HPCC says.

    Raises
    ------
    AnalysisError
        It is not a run of HPCC, or none of its launches ended well.
    """
    values, sizes = _told(run)
    if not values:
        why = next(
            (one.launch.error for one in run.results if one.launch.error),
            "it is not a run of 'wulf bench hpcc'",
        )
        raise AnalysisError(f"{run.path}: there are no results of HPCC: {why}")
    whole = max(run.manifest.plan.workload.places, key=lambda place: len(set(place)))
    nodes = list(dict.fromkeys(whole))
    alone = {place[0]: place for place in values if len(set(place)) == 1 and len(nodes) > 1}
    comparable = _comparable({node: values[place] for node, place in alone.items()})
    failed = Counter(
        (one.launch.place, one.launch.started_at, one.launch.error) for one in run.results if one.launch.error
    )
    return HpccResult(
        schema_version=SCHEMA_VERSION,
        run_id=run.manifest.id,
        status=run.manifest.status,
        nodes=nodes,
        ranks_per_node=len(whole) // len(nodes),
        sizes={
            "together": sizes.get(whole, 0),
            **({"alone": sizes[next(iter(alone.values()))]} if alone else {}),
        },
        figures=_figures(values.get(whole, {})),
        by_node={node: _figures(values[alone[node]]) for node in nodes if node in alone},
        different=sorted(_different(comparable), key=lambda one: -one.ratio.value),
        compared=list(comparable),
        margin=MARGIN,
        false_alarm=outliers.FALSE_ALARM,
        launches_ok=len({(p, key) for p, named in values.items() for one in named.values() for key in one}),
        failures=dict(Counter(f"{fold(set(place))}: {error}" for place, _, error in failed)),
    )


def _told(run: store.Run) -> tuple[dict[Place, dict[str, dict[_Round, float]]], dict[Place, int]]:
    """Return the results by place, name and round; and how large the problem of a place was."""
    values: dict[Place, dict[str, dict[_Round, float]]] = defaultdict(lambda: defaultdict(dict))
    seen: Counter[tuple[Place, str, int]] = Counter()
    sizes: dict[Place, int] = {}
    for one in run.results:
        name = output.name_of(one.launch.op)
        kind = output.kind_of(name)
        if kind is None or not one.samples:
            continue
        value = output.value_of(kind, one.samples[0].batch_medians_ns[0] * 1e-9)
        key = (one.launch.place, name, one.launch.seed)
        values[one.launch.place][name][one.launch.seed, seen[key]] = value
        seen[key] += 1
        size = one.launch.op.partition(" N ")[2]
        if size:
            sizes[one.launch.place] = int(size)
    return values, sizes


def _figures(values: Mapping[str, Mapping[_Round, float]]) -> list[HpccFigure]:
    found = []
    for name, by_round in values.items():
        kind = output.kind_of(name)
        if kind is not None:
            middle = intervals.median(list(by_round.values()), CONFIDENCE)
            found.append(HpccFigure(name=name, value=as_estimate(middle, kind.unit), better=kind.better))
    return found


def _comparable(
    values: Mapping[str, Mapping[str, Mapping[_Round, float]]],
) -> dict[str, dict[str, list[float]]]:
    """Return result → node → its times [s], in the rounds that all nodes have; of results with enough of them."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in COMPARED if len(values) > 1 else ():
        kind = output.kind_of(name)
        shared = sorted(set.intersection(*(set(of_node.get(name, {})) for of_node in values.values())))
        if kind is not None and len(shared) >= outliers.FEWEST_ROUNDS:
            found[name] = {
                node: [output.seconds(kind, of_node[name][number]) for number in shared]
                for node, of_node in values.items()
            }
    return found


def _different(comparable: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[HpccDifference]:
    for name, times in comparable.items():
        for node, ratio in outliers.differing(times, MARGIN, outliers.FALSE_ALARM / len(comparable)):
            yield HpccDifference(node=node, name=name, ratio=ratio)
