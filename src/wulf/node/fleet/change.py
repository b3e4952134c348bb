"""Set values on nodes: look, refuse what must not be, change all nodes or none, say what became of it."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Transport
from wulf.base.errors import WulfError
from wulf.base.interfaces import Interface, interface_of
from wulf.base.nodeset import fold
from wulf.base.records import ChangeOutcome, NodeRecord, NodeStatus
from wulf.base.text import printable
from wulf.node.change import answers, apply, live, steps
from wulf.node.change.connectivity import Carrying
from wulf.node.change.guard import Guards, program
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture
from wulf.node.fleet import missed_changes

#: How long a look at what a plan would do may take [s].
EXPLAIN_S = 60.0
#: Lets the guard's program, which comes on stdin, explain the steps that are the arguments. It takes no root.
_EXPLAIN = (
    'at=$(mktemp "${TMPDIR:-/tmp}/wulf-explain.XXXXXX") && trap \'rm -f "$at"\' EXIT && cat >"$at" && '
    'chmod 700 "$at" && printf "%s\\n" "$@" | "$at" explain'
)
#: States of a change that is neither kept nor taken back, as its journal has them.
_UNCONFIRMED = frozenset({"preparing", "prepared", "applying", "applied", "undoing"})
#: So many nodes after it may stand for the neighbours of a node.
NEIGHBOURS = 3


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


class ChangePlan(msgspec.Struct, frozen=True, kw_only=True):
    """A change that may be made."""

    #: Node → what it is to have.
    wanted: dict[str, list[steps.KnobSetting]]
    #: Node → steps; a node that has all values already is not in it.
    plans: dict[str, list[steps.Step]]
    #: (knob, value before, value wanted) → nodes.
    rows: dict[tuple[str, str, str], list[str]]

    @property
    def settings(self) -> dict[str, steps.KnobSetting]:
        """Knob and value, as a user writes them → what is wanted somewhere."""
        return {str(one): one for wanted in self.wanted.values() for one in wanted}

    def alike(self) -> Iterator[tuple[list[str], list[steps.KnobSetting]]]:
        """Yield the nodes that are changed to have the same."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for node in self.plans:
            groups.setdefault(tuple(map(str, self.wanted[node])), []).append(node)
        for nodes in groups.values():
            yield nodes, self.wanted[nodes[0]]


def owner() -> str:
    """Return who changes, as the nodes' locks name it."""
    return f"{getpass.getuser()}@{platform.node()}:{os.getpid()}"


@contextmanager
def open_guards(config: ClusterConfig) -> Iterator[tuple[Transport, Guards]]:
    """Open the way to the nodes and their guards, as the user who changes settings."""
    transport = open_transport(config.for_changes())
    try:
        yield transport, Guards(transport, owner(), by_sudo=config.change.become == "sudo")
    finally:
        transport.close()


def require_right(config: ClusterConfig, nodes: Sequence[str]) -> None:
    """Refuse nodes on which this user cannot change settings, before anything is built or measured.

    Raises
    ------
    TransportError
        Names the first node, and what to do.
    """
    with open_guards(config) as (_, guards):
        guards.require_right(nodes)


@contextmanager
def guarded(config: ClusterConfig, transport: Transport) -> Iterator[Guards]:
    """Return the guards for one who also measures over `transport`; another user who changes has his own way."""
    if config.for_changes().ssh.user == config.ssh.user:
        yield Guards(transport, owner(), by_sudo=config.change.become == "sudo")
        return
    with open_guards(config) as (_, guards):
        yield guards


def intend(
    transport: Transport,
    config: ClusterConfig,
    nodes: Sequence[str],
    wanted: Sequence[steps.KnobSetting],
    permissions: Permissions,
) -> ChangePlan:
    """Look at the nodes and plan the change.

    Raises
    ------
    RefusedError
        A node does not allow it; names all that do not, and why.
    BehindError
        A node has missed an earlier change; says what brings it level.
    """
    missed = {name for entry in missed_changes.behind(config, nodes).values() for name in entry.values}
    named = {knob_setting.knob.id: knob_setting.knob for knob_setting in wanted}
    knobs = {name: catalogue.knob(name) for name in missed} | named
    records = capture(transport, nodes, config.interface, list(knobs.values()))
    missed_changes.require_level(config, records, named)
    return plan(records, config.interface, {node: list(wanted) for node in nodes}, permissions)


def plan(
    records: Sequence[NodeRecord],
    interface: Interface,
    wanted: Mapping[str, list[steps.KnobSetting]],
    permissions: Permissions,
) -> ChangePlan:
    """Return what has to be done on nodes with these facts; raises as `intend`.

    Parameters
    ----------
    wanted
        Node → what it is to have; a node that is not in it stays as it is.
    """
    records = [record for record in records if record.node in wanted]
    refused: dict[str, list[str]] = {}
    for record in records:
        for knob_setting in wanted[record.node]:
            reason = steps.obstacle(
                knob_setting, record, take_over=permissions.take_over, relax=permissions.relax
            )
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
        for knob_setting in wanted[record.node]:
            before = steps.value_words(knob_setting.knob, record)
            now = str(before) if steps.fulfilled_on(knob_setting, record) else knob_setting.value
            key = (knob_setting.knob.id, "not set" if before is None else before, now)
            rows.setdefault(key, []).append(record.node)
        if needed := steps.lacking(wanted[record.node], interface_of(interface, record.node), record):
            plans[record.node] = needed
    return ChangePlan(wanted=dict(wanted), plans=plans, rows=rows)


def make(
    guard: Guards,
    config: ClusterConfig,
    intention: ChangePlan,
    *,
    deadline_s: int,
    watch: Callable[[str], None] = lambda _: None,
) -> ChangeOutcome:
    """Make the change, prove its effect, confirm it over new connections; or put everything back."""
    where = effect_probe(guard.transport, config, list(intention.plans))
    carries = Carrying(where).look()
    effects = [
        live.checks(effect_probe(guard.transport, config, nodes), wanted)
        for nodes, wanted in intention.alike()
    ]

    def proofs() -> live.Reasons:
        without = {node: f"no effect: {reason}" for has in effects for node, reason in has().items()}
        return without or carries.reasons()

    outcome = apply.change(guard, intention.plans, deadline_s=deadline_s, live=proofs, watch=watch)
    return with_notes(outcome, [*_rounded(intention, outcome), *carries.notes()])


def roll_back(
    transport: Transport,
    guard: Guards,
    config: ClusterConfig,
    nodes: Sequence[str],
    to: str,
    *,
    deadline_s: int,
    watch: Callable[[str], None] = lambda _: None,
) -> ChangeOutcome:
    """Go back to the state before change `to`, or to the original one; prove that data still pass, and confirm."""
    carries = carrying(transport, config, nodes, whole=False)
    outcome = apply.rollback(guard, nodes, to, deadline_s=deadline_s, live=carries.reasons, watch=watch)
    return with_notes(outcome, carries.notes() if outcome.change else [])


def carrying(
    transport: Transport, config: ClusterConfig, nodes: Sequence[str], *, whole: bool = True
) -> Carrying:
    """See what the nodes' measured interface carries before a change; see `Carrying`.

    Where there are direct links the routes say which interface that is: a neighbour that is asked over the switch
    may answer over its cable, where who asked does not listen.
    """
    probe = effect_probe(transport, config, nodes)
    if config.links:
        probe = msgspec.structs.replace(probe, interface=None)
    return Carrying(probe, whole=whole).look()


def with_notes(outcome: ChangeOutcome, notes: Sequence[str]) -> ChangeOutcome:
    """Add remarks to what became of a change."""
    return msgspec.structs.replace(outcome, notes=[*outcome.notes, *notes])


def effect_probe(transport: Transport, config: ClusterConfig, nodes: Sequence[str]) -> live.EffectProbe:
    """Return where effects on the wire are looked for: from each of these nodes to a neighbour.

    Who is not in ``[addresses]`` says itself which address it has on the cluster's interface; without an interface
    its name stands for it, which the nodes look up themselves.
    """
    around = neighbourhood(config.nodes, nodes) if config.transport != "local" else []
    asked = [node for node in around if node not in config.addresses]
    known = dict(config.addresses)
    if asked and config.interface:
        known |= live.own_addresses(transport, asked, config.interface)
        around = [node for node in around if node in known or node in nodes]
    return live.EffectProbe(
        transport=transport,
        nodes=nodes,
        addresses={node: known.get(node, node) for node in around},
        interface=config.interface,
    )


def neighbourhood(everyone: Sequence[str], nodes: Sequence[str]) -> list[str]:
    """Return some nodes with those that come after each of them, in the order of all."""
    chosen = set(nodes)
    places = [place for place, node in enumerate(everyone) if node in chosen]
    near = {(place + step) % len(everyone) for place in places for step in range(NEIGHBOURS + 1)}
    return [everyone[place] for place in sorted(near)]


def explain(
    transport: Transport, plans: Mapping[str, Sequence[steps.Step]]
) -> dict[tuple[str, ...], list[str]]:
    """Return the commands that the plans would run → the nodes that would run these; nothing is changed.

    Raises
    ------
    RefusedError
        A node cannot say.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for node, plan_steps in plans.items():
        argv = ["sh", "-c", _EXPLAIN, "wulf", *(step.line() for step in plan_steps)]
        answer = transport.run(argv, [node], timeout_s=EXPLAIN_S, stdin=program())[node]
        if answer.status != "ok":
            said = answer.stdout.decode(errors="replace").removeprefix("error\t")
            raise RefusedError(f"{node}: {printable(said.strip(), 300)}" if said else answer.reason)
        lines = tuple(line.partition("\t")[2] or line for line in answer.stdout.decode().splitlines())
        found.setdefault(lines, []).append(node)
    return found


def status(guard: Guards, nodes: Sequence[str]) -> list[NodeStatus]:
    """Ask the guards what is set; nodes where nothing was ever changed have no guard."""
    return [answers.status(answer) for answer in guard.call(nodes, "status").values()]


def require_confirmed(guard: Guards, nodes: Sequence[str]) -> list[str]:
    """Refuse to call nodes as wanted while a change is open there, which may be taken back at any time.

    Returns remarks on nodes whose guards do not say.

    Raises
    ------
    RefusedError
        Names the nodes, the change and whose it is.
    """
    found: dict[str, list[str]] = {}
    remarks = []
    for node in status(guard, nodes) if nodes else []:
        if node.error:
            remarks.append(f"{node.node}: whether a change is open there is not known: {node.error}")
        for entry in node.journal:
            if entry.state.partition(":")[0] in _UNCONFIRMED:
                said = (
                    f"change {entry.change} of {entry.owner}, which nobody has confirmed yet, is open there"
                )
                found.setdefault(said, []).append(node.node)
    if found:
        raise RefusedError(
            "nothing was changed:\n"
            + "\n".join(f"  {fold(names)}: {reason}" for reason, names in found.items())
            + "\nwhat it has set is taken back when its time is over: 'wulf settings status' says more; then try again"
        )
    return remarks


def _rounded(intention: ChangePlan, outcome: ChangeOutcome) -> Iterator[str]:
    """Say where a driver made something else of a value."""
    got: dict[tuple[str, str, str], list[str]] = {}
    for node in outcome.nodes:
        for knob_setting in intention.wanted.get(node.node, []):
            value = node.values.get(knob_setting.knob.id)
            if value is not None and not steps.same(knob_setting.value, value):
                got.setdefault((knob_setting.knob.id, knob_setting.value, value), []).append(node.node)
    for (name, asked, value), nodes in got.items():
        yield f"{name}: asked for {asked}, the driver made {value} of it on {fold(nodes)}"
