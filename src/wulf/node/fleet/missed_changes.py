"""Nodes that were missing from a change: left out with the user's word, and refused until they are as the others."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Transport
from wulf.base.errors import TransportError, UsageError, WulfError
from wulf.base.nodeset import fold
from wulf.base.records import ChangeOutcome, Missed, NodeOutcome, NodeRecord, Values
from wulf.base.store import missing_nodes as book
from wulf.base.store.files import timestamp
from wulf.base.text import count
from wulf.node.change import steps
from wulf.node.cluster.inventory import ClusterConfig

#: How long a node may take to say that it is there [s].
ASK_TIMEOUT_S = 20.0


class BehindError(WulfError):
    """Nodes that are not as the others; says what brings them level."""


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes take part."""

    nodes: list[str]
    #: Node → why it does not.
    missing: dict[str, str] = {}


def present(transport: Transport, nodes: Sequence[str], allowed: int) -> Present:
    """Leave out nodes that do not answer at all.

    Parameters
    ----------
    allowed
        How many may be left out; with 0 nobody is asked.

    Raises
    ------
    TransportError
        More than `allowed` do not answer, or none does.
    """
    if allowed == 0:
        return Present(nodes=list(nodes))
    answers = transport.run(["true"], nodes, timeout_s=ASK_TIMEOUT_S)
    missing = {node: answer.reason for node, answer in answers.items() if answer.silent}
    left = [node for node in nodes if node not in missing]
    if len(missing) > allowed or not left:
        many = count(len(missing), "node", verbs=("does", "do"))
        raise TransportError(
            f"nothing was changed: {many} not answer, {fold(missing)} (--allow-missing {allowed}): "
            f"{next(iter(missing.values()))}"
        )
    return Present(nodes=left, missing=missing)


def require_level(config: ClusterConfig, records: Sequence[NodeRecord], wanted: Collection[str] = ()) -> None:
    """Refuse nodes that were missing from a change and are not as the others yet.

    Parameters
    ----------
    records
        What the nodes are like now, with the knobs of `behind`.
    wanted
        Knobs that are going to be set.

    Raises
    ------
    BehindError
        Names the nodes, and the commands that bring them level.
    """
    told = book.missed(key(config))
    known = [record for record in records if record.node in told and record.reachable and not record.error]
    lacking = {record.node: _lacking(told[record.node], record) for record in known}
    forget(config, [node for node, entry in lacking.items() if entry is None])
    refused = [
        entry
        for entry in lacking.values()
        if entry is not None and (entry.rollback or not entry.values.keys() <= set(wanted))
    ]
    if refused:
        lines = "".join(
            f"\n  {entry.node} ({', '.join(entry.changes)}): {' && '.join(commands(config, entry))}"
            for entry in refused
        )
        raise BehindError(
            f"{fold(entry.node for entry in refused)} missed a change and differs from the "
            f"others; bring it up to date first, or leave it out with --nodes:{lines}"
        )


def behind(config: ClusterConfig, nodes: Sequence[str]) -> dict[str, Missed]:
    """Return node → what it missed, of these nodes."""
    told = book.missed(key(config))
    return {node: told[node] for node in nodes if node in told}


def commands(config: ClusterConfig, entry: Missed) -> list[str]:
    """Return what brings a node level, as a shell takes it."""
    where = [*_cluster_option(config), "--nodes", entry.node]
    found = []
    if entry.rollback:
        found.append(
            ["wulf", "rollback", *(["--to", entry.rollback] * (entry.rollback != "original")), *where]
        )
    if entry.values:
        found.append(
            ["wulf", "settings", "set", *(f"{knob}={value}" for knob, value in entry.values.items()), *where]
        )
    if entry.persist:
        found.append(["wulf", "settings", "persist", *where])
    return [shlex.join(words) for words in found]


def remember(
    config: ClusterConfig,
    missing: Collection[str],
    change: str,
    *,
    values: Values | None = None,
    persist: bool = False,
    rollback: str = "",
) -> None:
    """Note what these nodes have missed: settings, the files that keep them, or the way back to a change."""
    if not missing:
        return
    now = timestamp()

    def add(told: dict[str, Missed]) -> dict[str, Missed]:
        noted = {}
        for node in missing:
            old = told.get(node, Missed(node=node, at=now))
            fresh = rollback == "original"
            noted[node] = Missed(
                node=node,
                at=now,
                changes=[*old.changes, *([change] if change else [])],
                values={} if fresh else {**old.values, **(values or {})},
                persist=not fresh and (old.persist or persist),
                rollback=rollback or old.rollback,
            )
        return told | noted

    book.update(key(config), add)


def caught_up(
    config: ClusterConfig,
    nodes: Collection[str],
    *,
    values: Collection[str] = (),
    persist: bool = False,
    rollback: str = "",
) -> None:
    """Strike out what nodes do not lack any more: knobs that were set, files, the way back."""

    def strike(told: dict[str, Missed]) -> dict[str, Missed]:
        return {
            node: left
            for node, entry in told.items()
            if (left := _without(entry, values, persist, rollback) if node in nodes else entry) is not None
        }

    if behind(config, list(nodes)):
        book.update(key(config), strike)


def forget(config: ClusterConfig, nodes: Collection[str]) -> None:
    """Strike out nodes altogether."""
    if nodes:
        book.update(
            key(config), lambda told: {node: entry for node, entry in told.items() if node not in nodes}
        )


def settle(
    config: ClusterConfig,
    there: Present,
    outcome: ChangeOutcome,
    *,
    values: Values | None = None,
    persist: bool = False,
    rollback: str = "",
) -> ChangeOutcome:
    """Note who has, and who has missed, what a change that is kept has done; add those to what became of it."""
    if outcome.kept:
        caught_up(config, there.nodes, values=values or (), persist=persist, rollback=rollback)
        remember(config, there.missing, outcome.change, values=values, persist=persist, rollback=rollback)
    told = behind(config, list(there.missing))
    nodes = [
        NodeOutcome(node=node, state="missing", reason=_until(config, reason, told.get(node)))
        for node, reason in there.missing.items()
    ]
    return msgspec.structs.replace(outcome, nodes=[*outcome.nodes, *nodes])


def allowed(count: int) -> int:
    """Return how many nodes may be missing, as the user says it.

    Raises
    ------
    UsageError
        It is below 0.
    """
    if count < 0:
        raise UsageError(f"--allow-missing {count}: how many nodes may be left out, 0 or more")
    return count


def key(config: ClusterConfig) -> str:
    """Return what a cluster is known by: the path of its file, or what it was made of."""
    path = Path(config.origin)
    return str(path.resolve()) if path.is_file() else config.origin


def _until(config: ClusterConfig, reason: str, entry: Missed | None) -> str:
    return f"{reason}; refused until: {' && '.join(commands(config, entry))}" if entry else reason


def _lacking(entry: Missed, record: NodeRecord) -> Missed | None:
    """Return what a node still lacks, as its facts say; None when it is level."""
    values = {
        name: value
        for name, value in entry.values.items()
        if not steps.fulfilled_on(steps.KnobSetting(knob=catalogue.knob(name), value=value), record)
    }
    return _whole(msgspec.structs.replace(entry, values=values))


def _without(entry: Missed, values: Collection[str], persist: bool, rollback: str) -> Missed | None:
    if rollback == "original":
        return None
    back = "" if rollback and rollback == entry.rollback else entry.rollback
    left = {name: value for name, value in entry.values.items() if name not in values}
    return _whole(
        msgspec.structs.replace(entry, values=left, persist=entry.persist and not persist, rollback=back)
    )


def _whole(entry: Missed) -> Missed | None:
    return entry if entry.values or entry.persist or entry.rollback else None


def _cluster_option(config: ClusterConfig) -> list[str]:
    if config.origin == "cluster.toml":
        return []
    name = "slurm" if config.origin.startswith("Slurm allocation") else config.origin
    return ["--cluster", name]
