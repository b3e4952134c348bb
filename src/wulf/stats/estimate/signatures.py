"""Which known causes the figures of pairs of nodes look like.  Pure; each cause is a file of ``data/signatures``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from wulf.base import catalogue
from wulf.base.catalogue import Signature
from wulf.base.errors import ConfigError
from wulf.base.nodeset import fold
from wulf.base.predicate import Predicate
from wulf.base.records import CellEstimate, CurveModel, FactValue, NodeRecord, Pair
from wulf.base.records.diagnosed import Symptom
from wulf.base.text import in_command
from wulf.base.units import format_fact
from wulf.stats.estimate.features import is_feature, of_pair

_FIELD = re.compile(r"\{([A-Za-z0-9_.]+)\}")
Stream = tuple[str, Pair]


class Rule:
    """A signature with its predicate compiled.

    Parameters
    ----------
    directory
        That its file is in, for messages.
    known
        Whether it may speak of a feature.
    whose
        Whose features these are, in words.

    Raises
    ------
    ConfigError
        It speaks of what is not a feature; names its file.
    """

    def __init__(
        self,
        signature: Signature,
        directory: str = "signatures",
        known: Callable[[str], bool] = is_feature,
        whose: str = "a pair",
    ) -> None:
        source = catalogue.file_of(directory, signature.id)
        self.signature = signature
        self._when = Predicate(signature.when, f"{source}: when")
        for name in sorted({*self._when.names, *_FIELD.findall(signature.evidence)}):
            if not known(name):
                raise ConfigError(f"{source}: {name} is not a feature of {whose}")

    def matches(self, features: Mapping[str, FactValue]) -> bool:
        """Whether figures look like it; what is not known does not."""
        return self._when(NodeRecord(node="", reachable=True, facts=dict(features))) is True

    def evidence(self, features: Mapping[str, FactValue]) -> str:
        """Return what shows it."""
        return _FIELD.sub(lambda field: _written(field[1], features), self.signature.evidence)


def rules() -> list[Rule]:
    """Return all signatures, ready to use."""
    return [Rule(signature) for signature in catalogue.signatures().values()]


def symptoms(
    cells: Iterable[CellEstimate],
    models: Iterable[CurveModel],
    nodes: Sequence[NodeRecord],
    warned: Collection[str] = (),
) -> list[Symptom]:
    """Return which signatures the figures of a run bear, each with all pairs that do.

    Parameters
    ----------
    cells, models
        Of operations between pairs.
    nodes
        Their facts; a node without is taken as one of which nothing is known.
    warned
        Kinds of advice that the analysis gives.
    """
    known = {node.node: node for node in nodes}
    streams: dict[Stream, list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        first, second = cell.cell.place
        streams[cell.cell.op, (first, second)].append(cell)
    lines = {(model.op, tuple(model.place)): model for model in models}
    features = {
        (op, pair): of_pair(
            stream,
            lines.get((op, pair)),
            (_record(pair[0], known), _record(pair[1], known)),
            warned,
        )
        for (op, pair), stream in streams.items()
    }
    return list(_symptoms(features))


def _symptoms(features: Mapping[Stream, Mapping[str, FactValue]]) -> Iterator[Symptom]:
    for rule in rules():
        bearing = [stream for stream, shown in features.items() if rule.matches(shown)]
        if not bearing:
            continue
        op, pair = bearing[0]
        pairs = list(dict.fromkeys(pair for _, pair in bearing))
        nodes = list(dict.fromkeys(node for pair in pairs for node in pair))
        signature = rule.signature
        yield Symptom(
            id=signature.id,
            title=signature.title,
            op=op,
            pairs=pairs,
            of_pairs=len({pair for _, pair in features}),
            evidence=rule.evidence(features[bearing[0]]),
            why=signature.why,
            next=signature.next.format(
                nodes=in_command(fold(nodes), "NODES"),
                one=in_command(pair[0], "NODE"),
                other=in_command(pair[1], "NODE"),
            ),
        )


def _record(name: str, known: Mapping[str, NodeRecord]) -> NodeRecord:
    return known.get(name) or NodeRecord(node=name, reachable=False)


def _written(name: str, features: Mapping[str, FactValue]) -> str:
    value = features.get(name)
    return "unknown" if value is None else format_fact(name, value)
