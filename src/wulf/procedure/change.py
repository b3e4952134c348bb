"""Set values on nodes: look, refuse what must not be, change all nodes or none, say what became of it."""

from __future__ import annotations

import base64
import getpass
import hashlib
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources

import msgspec

from wulf import catalogue
from wulf.change import apply, live, steps
from wulf.change.guard import NONE, Answer, Guards, access_functions
from wulf.cluster.inventory import ClusterConfig
from wulf.cluster.transport import open_transport
from wulf.errors import WulfError
from wulf.facts.capture import capture
from wulf.nodeset import fold
from wulf.ports import Transport
from wulf.records import ChangeOutcome, JournalEntry, NodeRecord, NodeStatus, SetValue

#: How long a look at what a plan would do may take [s].
EXPLAIN_S = 60.0


class RefusedError(WulfError):
    """A change that must not be made; says why, for every node."""


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What a user has said in words."""

    #: Set it although something else on the node sets it, too.
    take_over: bool = False
    #: Relax the packet filter of an interface that faces the outside.
    relax: bool = False


#: For the settings of a search: they were found to be allowed, with the user's own permissions, before it began.
VETTED = Permissions(take_over=True, relax=True)


class Intention(msgspec.Struct, frozen=True, kw_only=True):
    """A change that may be made."""

    wanted: list[steps.Wanted]
    #: Node → steps; a node that has all values already is not in it.
    plans: dict[str, list[steps.Step]]
    #: (knob, value before, value wanted) → nodes.
    rows: dict[tuple[str, str, str], list[str]]


def owner() -> str:
    """Return who changes, as the nodes' locks name it."""
    return f"{getpass.getuser()}@{platform.node()}:{os.getpid()}"


def guards(transport: Transport) -> Guards:
    """Return the guards as this process speaks to them."""
    return Guards(transport, owner())


@contextmanager
def reach(config: ClusterConfig) -> Iterator[tuple[Transport, Guards]]:
    """Open the way to the nodes and their guards."""
    transport = open_transport(config)
    try:
        yield transport, guards(transport)
    finally:
        transport.close()


def intend(
    transport: Transport,
    config: ClusterConfig,
    nodes: Sequence[str],
    wanted: Sequence[steps.Wanted],
    permissions: Permissions,
) -> Intention:
    """Look at the nodes and plan the change.

    Raises
    ------
    RefusedError
        A node does not allow it; names all that do not, and why.
    """
    knobs = [wish.knob for wish in wanted]
    records = capture(transport, nodes, config.interface, knobs)
    return plan(records, config.interface, wanted, permissions)


def plan(
    records: Sequence[NodeRecord],
    interface: str | None,
    wanted: Sequence[steps.Wanted],
    permissions: Permissions,
) -> Intention:
    """Return what has to be done on nodes with these facts; raises as `intend`."""
    refused: dict[str, list[str]] = {}
    for record in records:
        for wish in wanted:
            reason = steps.obstacle(wish, record, take_over=permissions.take_over, relax=permissions.relax)
            if reason:
                refused.setdefault(reason, []).append(record.node)
    if refused:
        raise RefusedError(
            "nothing was changed:\n"
            + "\n".join(f"  {fold(names)}: {reason}" for reason, names in refused.items())
        )
    plans: dict[str, list[steps.Step]] = {}
    rows: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        lacking = [wish for wish in wanted if not steps.fulfilled(wish, record.facts.get(wish.knob.id))]
        for wish in wanted:
            before = record.facts.get(wish.knob.id)
            now = str(before) if steps.fulfilled(wish, before) else wish.value
            key = (wish.knob.id, "not set" if before is None else str(before), now)
            rows.setdefault(key, []).append(record.node)
        if lacking:
            plans[record.node] = steps.plan(lacking, interface)
    return Intention(wanted=list(wanted), plans=plans, rows=rows)


def make(
    transport: Transport,
    guard: Guards,
    config: ClusterConfig,
    intention: Intention,
    *,
    deadline_s: int,
    watch: Callable[[str], None] = lambda _: None,
) -> ChangeOutcome:
    """Make the change, prove its effect, confirm it over new connections; or put everything back."""
    nodes = list(intention.plans)
    after = live.checks(scene(transport, config, nodes), intention.wanted)
    outcome = apply.change(guard, intention.plans, deadline_s=deadline_s, live=after, watch=watch)
    return msgspec.structs.replace(outcome, notes=list(_rounded(intention, outcome)))


def scene(transport: Transport, config: ClusterConfig, nodes: Sequence[str]) -> live.Scene:
    """Return where effects on the wire are looked for: from each of these nodes to a neighbour."""
    everyone = config.nodes if config.transport != "local" else ()
    return live.Scene(
        transport=transport,
        nodes=nodes,
        addresses=[config.address(node) for node in everyone],
        interface=config.interface or "",
    )


def explain(
    transport: Transport, plans: Mapping[str, Sequence[steps.Step]]
) -> dict[tuple[str, ...], list[str]]:
    """Return the commands that the plans would run → the nodes that would run these; nothing is changed.

    Raises
    ------
    RefusedError
        A node cannot say.
    """
    script = access_functions() + resources.files("wulf.change").joinpath("explain.sh").read_text()
    found: dict[tuple[str, ...], list[str]] = {}
    for node, plan_steps in plans.items():
        argv = ["sh", "-s", "--", *(step.line() for step in plan_steps)]
        answer = transport.run(argv, [node], timeout_s=EXPLAIN_S, stdin=script.encode())[node]
        if answer.status != "ok":
            raise RefusedError(answer.reason)
        lines = tuple(line.partition("\t")[2] or line for line in answer.stdout.decode().splitlines())
        found.setdefault(lines, []).append(node)
    return found


def status(guard: Guards, nodes: Sequence[str]) -> list[NodeStatus]:
    """Ask the guards what is set; nodes where nothing was ever changed have no guard."""
    return [_status(answer) for answer in guard.call(nodes, "status").values()]


def changed(statuses: Sequence[NodeStatus]) -> dict[str, list[SetValue]]:
    """Node → what confirmed changes have set there and is not as it was."""
    return {status.node: [value for value in status.settings if value.differs] for status in statuses}


def knob_of(value: SetValue) -> steps.Wanted:
    """Return the wish that a confirmed value stands for.

    Raises
    ------
    UsageError
        It is of a knob that this wulf does not know.
    """
    return steps.Wanted(knob=catalogue.knob(value.knob), value=value.now)


def _rounded(intention: Intention, outcome: ChangeOutcome) -> Iterator[str]:
    """Say where a driver made something else of a value."""
    got: dict[tuple[str, str, str], list[str]] = {}
    for node in outcome.nodes:
        for wish in intention.wanted:
            value = node.values.get(wish.knob.id)
            if value is not None and not steps.same(wish.value, value):
                got.setdefault((wish.knob.id, wish.value, value), []).append(node.node)
    for (name, asked, value), nodes in got.items():
        yield f"{name}: asked for {asked}, the driver made {value} of it on {fold(nodes)}"


def _wanted(kind: str, value: str) -> str:
    """Return a wanted value as the guard shows the present one: a file by the beginning of its SHA-256."""
    if kind == "stored" and value.startswith("file:"):
        return hashlib.sha256(base64.b64decode(value.split(":", 2)[2])).hexdigest()[:12]
    return value


def _status(answer: Answer) -> NodeStatus:
    if not answer.done:
        return NodeStatus(node=answer.node, error="" if answer.code == NONE else answer.reason)
    boot = "".join(row[0] for row in answer.rows("boot"))
    lock = next(iter(answer.rows("lock")), None)
    return NodeStatus(
        node=answer.node,
        owner=lock[0] if lock else None,
        owned_s=int(lock[1]) if lock else None,
        lease_s=int(lock[2]) if lock else None,
        settings=[
            SetValue(
                knob=row[0],
                kind=row[1],
                interface=row[2],
                target=row[3],
                change=row[4],
                differs=row[5] == "different",
                now=row[6].strip(),
                wanted=_wanted(row[1], row[7]),
            )
            for row in answer.rows("set")
        ],
        journal=[
            JournalEntry(
                change=row[0],
                at=row[1],
                owner=row[2],
                this_boot=row[3] == boot,
                steps=int(row[4]),
                rollback_to=row[5] or None,
                state=": ".join(row[6:]),
            )
            for row in answer.rows("tx")
        ],
        log=[row[0] for row in answer.rows("log")],
    )
