"""Theoretical peak of nodes: cores × operations a cycle × clock, with where each comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

import msgspec

from wulf.base.errors import AnalysisError
from wulf.base.nodeset import fold
from wulf.base.records import FactValue, NodeRecord
from wulf.base.text import count
from wulf.tools.hpl.record import Peak, PeakPart


class Core(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What cores of one kind do in a cycle."""

    name: str
    vendor: str
    family: int
    per_cycle: int
    #: What it consists of.
    units: str
    #: First and last model number of each range; all where there is none.
    models: list[tuple[int, int]] = []
    #: The fact ``cpu.vector``; any where there is none.
    vector: str | None = None

    def fits(self, facts: Mapping[str, FactValue]) -> bool:
        """Whether a node has such cores."""
        model = facts.get("cpu.model_number")
        return (
            facts.get("cpu.vendor") == self.vendor
            and facts.get("cpu.family") == self.family
            and self.vector in (None, facts.get("cpu.vector"))
            and (
                not self.models
                or any(low <= model <= high for low, high in self.models if isinstance(model, int))
            )
        )


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    core: list[Core]


@cache
def _cores() -> tuple[Core, ...]:
    text = resources.files("wulf").joinpath("data", "processors.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=_Table).core)


def peak(nodes: Sequence[NodeRecord], cores: Mapping[str, int]) -> Peak:
    """Return the theoretical peak of nodes.

    Parameters
    ----------
    cores
        Node → its cores that are used.

    Raises
    ------
    AnalysisError
        Something is not known of a node; says what, and how to give the peak.
    """
    alike: dict[tuple[str, int, float, int], list[NodeRecord]] = {}
    for record in nodes:
        core, clock_hz = _core(record), _clock(record)
        alike.setdefault((core.name, core.per_cycle, clock_hz, cores[record.node]), []).append(record)
    parts = [_part(records, count) for (_, _, _, count), records in alike.items() if count]
    return Peak(gflops=sum(part.gflops for part in parts), parts=parts)


def _part(records: Sequence[NodeRecord], cores: int) -> PeakPart:
    first = records[0]
    core, clock_hz = _core(first), _clock(first)
    gflops = len(records) * cores * core.per_cycle * clock_hz / 1e9
    nodes = [record.node for record in records]
    return PeakPart(
        nodes=nodes,
        cpu=str(first.facts.get("cpu.model", core.name)),
        cores=cores,
        per_cycle=core.per_cycle,
        clock_hz=clock_hz,
        gflops=gflops,
        derivation=(
            f"{len(nodes)} × {count(cores, 'core')} × {count(core.per_cycle, 'operation')} a cycle "
            f"({core.name}: {core.units}) × {clock_hz / 1e9:.3f} GHz ({_clock_source(first)}) = {gflops:.4g} GFLOPS"
        ),
    )


def _core(record: NodeRecord) -> Core:
    found = next((core for core in _cores() if core.fits(record.facts)), None)
    if found is None:
        said = ", ".join(
            f"{name.removeprefix('cpu.')} {record.facts.get(name, 'unknown')}"
            for name in ("cpu.vendor", "cpu.family", "cpu.model_number", "cpu.vector")
        )
        raise AnalysisError(
            f"{record.node}: how much a core of this CPU does in a cycle is not known ({said}): give the peak of "
            f"{fold([record.node])} and all others with --peak GFLOPS"
        )
    return found


def _clock(record: NodeRecord) -> float:
    for name in ("cpu.nominal_hz", "cpu.frequency_max_hz"):
        value = record.facts.get(name)
        if isinstance(value, int | float) and value > 0:
            return float(value)
    raise AnalysisError(f"{record.node}: the clock of its CPU is not known: give the peak with --peak GFLOPS")


def _clock_source(record: NodeRecord) -> str:
    return (
        "nominal, of the time stamp counter"
        if "cpu.nominal_hz" in record.facts
        else "highest that cpufreq allows"
    )
