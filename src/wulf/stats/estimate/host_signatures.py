"""What would make a node quieter: known causes that its figures look like.  Pure; each is a file of data."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from wulf.base import catalogue
from wulf.base.nodeset import fold
from wulf.base.records import CpuNoise, FactValue, HostAdvice, HostNoise, NodeRecord
from wulf.base.text import in_command
from wulf.base.units import format_estimate, format_spread
from wulf.stats.estimate.signatures import Rule

#: Name → what it is. Names with a dot are facts of the node.
FEATURES: Mapping[str, str] = {
    "cpus": "how many CPUs were watched",
    "noisiest_cpu": "number of the CPU of whose time detours take most",
    "noisiest_ratio": "share of its time that they take",
    "noisiest": "the same with its interval",
    "noisiest_to_typical": "that share ÷ the median of the other CPUs' shares",
    "noisiest_apart": "whether the interval of that share lies above those of the other CPUs, of their median",
    "tick_cpus": "how many CPUs have detours that come with the kernel's tick",
    "tick_per_s": "rate of that tick",
    "tick_ratio": "share of the time that detours take on these CPUs, median",
    "tick": "the same with the interval of the CPU that has the median",
    "wake_gap_s": "length of the longest sleep",
    "wake_short": "by how much it is late from the shortest sleep",
    "wake_long": "by how much it is late from the longest sleep",
    "wake_growth": "that delay ÷ the one from the shortest sleep",
    "wake_added_s": "their difference",
    "wake_grows": "whether the interval of the delay from the longest sleep lies above that from the shortest",
    "steal_ratio": "share of the CPU time that the hypervisor took",
    "steal": "the same with its interval",
    "foreign_ratio": "share of the CPU time that other processes used",
    "foreign": "the same with its interval",
}


def is_feature(name: str) -> bool:
    """Whether a signature of a node may speak of it."""
    return name in FEATURES or "." in name


def rules() -> list[Rule]:
    """Return all signatures of nodes, ready to use."""
    return [
        Rule(signature, "host_signatures", is_feature, "a node")
        for signature in catalogue.host_signatures().values()
    ]


def advise(hosts: Sequence[HostNoise], nodes: Sequence[NodeRecord]) -> list[HostNoise]:
    """Return what is known of nodes, with what would make each quieter.

    Parameters
    ----------
    nodes
        Their facts; a node without is taken as one of which nothing is known.
    """
    facts = {node.node: node.facts for node in nodes}
    features = {host.node: of_host(host, facts.get(host.node, {})) for host in hosts}
    found: dict[str, list[HostAdvice]] = {host.node: [] for host in hosts}
    for rule in rules():
        bearing = [node for node, shown in features.items() if rule.matches(shown)]
        for node in bearing:
            found[node].append(_advice(rule, bearing, features[node]))
    return [msgspec.structs.replace(host, advice=found[host.node]) for host in hosts]


def _advice(rule: Rule, bearing: Sequence[str], shown: Mapping[str, FactValue]) -> HostAdvice:
    signature = rule.signature
    return HostAdvice(
        id=signature.id,
        title=signature.title,
        evidence=rule.evidence(shown),
        why=signature.why,
        # The same for all that bear it, so that they are said together.
        next=signature.next.format(
            nodes=in_command(fold(bearing), "NODES"), one=in_command(bearing[0], "NODE")
        ),
    )


def of_host(host: HostNoise, facts: Mapping[str, FactValue]) -> dict[str, FactValue]:
    """Return all features that a node has."""
    return {
        **facts,
        "cpus": len(host.cpus),
        **dict(_of_noisiest(host.cpus)),
        **dict(_of_tick(host.cpus)),
        **dict(_of_wakes(host)),
        **dict(_of_load(host)),
    }


def _of_noisiest(cpus: Sequence[CpuNoise]) -> Iterator[tuple[str, FactValue]]:
    if len(cpus) < 2:
        return
    noisiest, *others = sorted(cpus, key=lambda cpu: -cpu.detoured.value)
    typical = statistics.median(cpu.detoured.value for cpu in others)
    yield "noisiest_cpu", noisiest.cpu
    yield "noisiest_ratio", noisiest.detoured.value
    yield "noisiest", format_spread(noisiest.detoured)
    if typical > 0:
        yield "noisiest_to_typical", float(f"{noisiest.detoured.value / typical:.3g}")
    highest = [cpu.detoured.high for cpu in others if cpu.detoured.high is not None]
    if noisiest.detoured.low is not None and len(highest) == len(others):
        yield "noisiest_apart", noisiest.detoured.low > statistics.median(highest)


def _of_tick(cpus: Sequence[CpuNoise]) -> Iterator[tuple[str, FactValue]]:
    ticked = sorted((cpu for cpu in cpus if cpu.tick_hz), key=lambda cpu: cpu.detoured.value)
    if not ticked:
        return
    middle = ticked[len(ticked) // 2]
    yield "tick_cpus", len(ticked)
    yield "tick_per_s", middle.tick_hz
    yield "tick_ratio", middle.detoured.value
    yield "tick", format_spread(middle.detoured)


def _of_wakes(host: HostNoise) -> Iterator[tuple[str, FactValue]]:
    if len(host.wakes) < 2:
        return
    short, long = host.wakes[0].late, host.wakes[-1].late
    yield "wake_gap_s", host.wakes[-1].gap_s
    yield "wake_short", format_estimate(short)
    yield "wake_long", format_estimate(long)
    yield "wake_added_s", long.value - short.value
    if short.value > 0:
        yield "wake_growth", long.value / short.value
    if short.high is not None and long.low is not None:
        yield "wake_grows", long.low > short.high


def _of_load(host: HostNoise) -> Iterator[tuple[str, FactValue]]:
    for name, share in (("steal", host.steal), ("foreign", host.foreign)):
        if share is not None:
            yield f"{name}_ratio", share.value
            yield name, format_spread(share)
