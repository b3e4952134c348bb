"""A watch as metrics, in the text format that both Prometheus (and its node exporter) and OpenMetrics read.

Only gauges and no timestamps: of other kinds the two formats differ, and the node exporter takes no timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from wulf.base.records.watched import Alarm, WatchedSeries, WatchReport
from wulf.base.text import printable

_Samples = Iterable[tuple[Mapping[str, str], float]]


def render(report: WatchReport, series: Sequence[WatchedSeries]) -> str:
    """Return the text of the file.

    Parameters
    ----------
    series
        Of which the last values are told: those of the nodes and of the cluster.
    """
    lines = [
        line for name, about, samples in _families(report, series) for line in _family(name, about, samples)
    ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _family(name: str, about: str, samples: _Samples) -> Iterator[str]:
    told = [f"wulf_watch_{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    if told:
        yield f"# HELP wulf_watch_{name} {about}"
        yield f"# TYPE wulf_watch_{name} gauge"
        yield from told


def _families(report: WatchReport, series: Sequence[WatchedSeries]) -> Iterator[tuple[str, str, _Samples]]:
    of = {"watch": report.name}
    last = report.last
    yield (
        "runs",
        "Runs that the history has, by status.",
        [({**of, "status": k}, n) for k, n in report.runs.items()],
    )
    if last is not None:
        yield "last_run_time_seconds", "When the last run began, in Unix time.", [(of, _unix(last.at))]
        yield (
            "last_run_measured",
            "Whether the last run has measured: 0 where it was skipped or failed.",
            [(of, float(last.status == "measured"))],
        )
        yield "last_run_pairs", "Pairs of nodes that the last run has measured.", [(of, last.pairs)]
        yield "last_run_skipped_nodes", "Nodes that the last run has left out.", [(of, len(last.skipped))]
    yield "learning", "Whether nothing is judged yet.", [(of, float(bool(report.learning)))]
    yield "untold", "Reasons why it cannot be told that nothing has changed.", [(of, len(report.untold))]
    yield "alarms", "Alarms that are open.", [(of, len(report.open))]
    yield (
        "alarm_ratio",
        "Of every open alarm: time after / time before.",
        [_alarm(of, one) for one in report.open],
    )
    yield (
        "time_ratio",
        "Time of the last run / what is usual.",
        [
            (
                {
                    **of,
                    "level": one.level,
                    "op": one.op,
                    "size_bytes": str(one.size_bytes),
                    **_ends(one.nodes),
                },
                1 + one.change[-1],
            )
            for one in series
            if one.level != "link" and one.change
        ],
    )
    yield "links", "Pairs of nodes that there are.", [(of, report.coverage.pairs)]
    yield "links_measured", "Pairs of nodes that have been measured.", [(of, report.coverage.measured)]
    yield (
        "findings",
        "Findings of the last audit.",
        [({**of, "severity": k}, n) for k, n in report.findings.items()],
    )


def _alarm(of: Mapping[str, str], alarm: Alarm) -> tuple[dict[str, str], float]:
    labels = {
        **of,
        "alarm": str(alarm.id),
        "level": alarm.level,
        "op": alarm.op,
        "size_bytes": str(alarm.size_bytes),
        "kind": alarm.kind,
        **_ends(alarm.nodes),
    }
    return labels, alarm.change.value


def _ends(nodes: Sequence[str]) -> dict[str, str]:
    return dict(zip(("node", "peer"), nodes, strict=False))


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return printable(text, 4000).replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return f"{value:.10g}"


def _unix(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
