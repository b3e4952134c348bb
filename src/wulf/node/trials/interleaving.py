"""Two settings, MPI libraries or sets of pairs measured in turn: look, take the nodes, alternate, put all back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import msgspec

from wulf.base import catalogue
from wulf.base.contracts import Say, Transport
from wulf.base.errors import ProbeError, TransportError, UsageError
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import (
    Cell,
    Comparison,
    NodeRecord,
    Operation,
    Pair,
    Part,
    Place,
    Printed,
    Values,
    Workload,
    command_operation,
    printed_operation,
)
from wulf.base.text import printable
from wulf.node.change import steps
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.cluster import inventory
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation, change, interfaces, preparation
from wulf.node.probe import command, ladder
from wulf.node.probe.execute import RunLaunch
from wulf.node.trials.alternation import in_turn
from wulf.node.trials.bench import TrialError, TrialRunner, on_nodes, open_runner
from wulf.stats import estimate

#: What a side may say beside knobs.
MPI, PAIRS = "mpi", "pairs"
#: How a side is called that changes nothing.
ORIGINAL = "original"
#: What the run time of a command is called.
RUN_TIME = "run time"
#: A comma of a list of values is not followed by NAME=.
_BETWEEN = re.compile(r",(?=[^,=]+=)")
SWEEPS, VISIT_US = 12, 1000


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two that are compared."""

    #: As the user wrote it.
    name: str
    #: Knob → value; what is not named is as it is.
    setting: Values = {}
    #: MPI library; None for that of the comparison.
    mpi: str | None = None
    #: Pairs of nodes, as ``--pairs`` takes them; None for those of the comparison.
    pairs: str | None = None
    #: A command; empty for that of the comparison.
    command: str = ""


class InterleaveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be compared, and how."""

    config: ClusterConfig
    nodes: list[str]
    sides: tuple[Side, Side]
    #: Names of operations; None for the first usual ping-pong.
    ops: list[str] | None
    sizes_bytes: list[int]
    pairs: str
    #: For a shell on the first node, beside the operations or instead of them; and numbers that it prints.
    command: str = ""
    prints: tuple[Printed, ...] = ()
    #: Pairs of launches.
    launches: int
    #: Time in which the last pair of launches is to end; the first is always made [s].
    budget_s: float
    margin: float
    permissions: change.Permissions
    mpi: str | None
    seed: int

    def __post_init__(self) -> None:
        """Refuse what cannot be compared.

        Raises
        ------
        UsageError
            Both sides are the same, have not as many pairs, or are too few launches for a test.
        """
        first, second = (msgspec.structs.replace(side, name="") for side in self.sides)
        if first == second:
            raise UsageError(f"both sides are {self.sides[0].name!r}: there is nothing to compare")
        if len(self.places(self.sides[0])) != len(self.places(self.sides[1])):
            raise UsageError(
                "both sides need the same number of pairs of nodes: the first is compared with the first, …"
            )
        if self.launches < FEWEST:
            raise UsageError(
                f"--launches {self.launches}: at least {FEWEST}, or no difference can stand out from chance"
            )

    def places(self, side: Side) -> list[Pair]:
        """Return the pairs of nodes between which a side is measured; none where only a command is."""
        if self.command and self.ops is None:
            return []
        return inventory.pairs(side.pairs or self.pairs, self.nodes)


#: A side that failed so often, and never worked, is not measured again.
GIVE_UP = 3
#: Pairs of launches whose p value can be below 1 %.
FEWEST = 8


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A side that is ready to be measured."""

    side: Side
    launch: RunLaunch
    operations: list[Operation]
    workload: Workload
    #: What setting it means on the nodes.
    plan: change.ChangePlan


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides, and the nodes that are theirs."""

    bench: TrialRunner
    arms: tuple[Arm, Arm]
    transport: Transport
    records: list[NodeRecord]
    operations: list[Operation]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    comparison: Comparison
    operations: list[Operation]
    interrupted: bool


def side(text: str) -> Side:
    """Return the side that a user writes: ``original``, or ``KNOB=VALUE,…`` with ``mpi=…`` and ``pairs=…`` among them.

    Raises
    ------
    UsageError
        It cannot be read, a knob cannot be set or have the value; says why.
    """
    if text == ORIGINAL:
        return Side(name=text)
    given: dict[str, str] = {}
    knobs: list[str] = []
    for word in _BETWEEN.split(text):
        name, _, value = word.partition("=")
        if name not in (MPI, PAIRS):
            knobs.append(word)
        elif name in given or not value:
            raise UsageError(f"{printable(text, 200)!r}: {name} is given twice, or without a value")
        else:
            given[name] = value
    wanted = steps.parse(knobs)
    return Side(
        name=text,
        setting={one.knob.id: one.value for one in wanted},
        mpi=given.get(MPI),
        pairs=given.get(PAIRS),
    )


@contextmanager
def prepared(request: InterleaveRequest, say: Say) -> Iterator[Ready]:
    """Build the probes, look at the nodes, and see whether both sides may be had; nothing is changed yet.

    Raises
    ------
    RefusedError
        A node does not allow a setting; names all that do not, and why.
    TransportError
        A node does not answer, or its settings cannot be changed by this user.
    UsageError
        Jobs would have no interface by a setting.
    """
    if any(one.setting for one in request.sides):
        change.require_right(request.config, request.nodes)
    tools = {name: _tools(request, name, say) for name in {one.mpi or request.mpi for one in request.sides}}
    members = list(
        dict.fromkeys(node for one in request.sides for pair in request.places(one) for node in pair)
    )
    if request.command or any(operation.of_all for box in tools.values() for operation in box.operations):
        members = list(dict.fromkeys([*members, *request.nodes]))
    with ExitStack() as stack:
        transport, records = stack.enter_context(preparation.connect(request.config, members, say))
        down = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        if down:
            raise TransportError(f"every node must take part: {reasons_text(down)}")
        guards = stack.enter_context(change.guarded(request.config, transport))
        sites = {name: _site(request, transport, records, box, say) for name, box in tools.items()}
        arms = [
            _arm(request, one, records, tools[one.mpi or request.mpi], sites[one.mpi or request.mpi])
            for one in request.sides
        ]
        operations = arms[0].operations
        bench = TrialRunner(
            request.config,
            transport,
            guards,
            arms[0].launch,
            records,
            {operation.name: operation for operation in operations},
        )
        yield Ready(
            bench=bench,
            arms=(arms[0], arms[1]),
            transport=transport,
            records=records,
            operations=operations,
        )


def interleave(request: InterleaveRequest, ready: Ready, say: Say) -> Outcome:
    """Measure both sides in turn and compare them; whatever happens, the nodes are as they were.

    After Ctrl-C the pairs of launches that are whole are compared.

    Raises
    ------
    KeyboardInterrupt
        Before the first pair of launches was whole.
    NotRestoredError
        A node could not be put back.
    """
    budget_s = allocation.capped(request.budget_s, say)
    rounds = allocation.Rounds(budget_s)
    turns = _Turns(request, ready)
    pairs: list[tuple[dict[Cell, float], dict[Cell, float]]] = []
    interrupted = False

    def announce(number: int, passed_s: float) -> None:
        left_s = min(passed_s / number * (request.launches - number), budget_s - passed_s) if number else 0
        left = f", about {left_s:.0f} s left" if number else ""
        say(f"measuring both alternately: {number + 1} of {request.launches}{left}")

    with ExitStack() as stack:
        if turns.changes:
            stack.enter_context(open_runner(ready.bench))
        try:
            taken = in_turn(turns.measure, request.seed, announce)
            while len(pairs) < request.launches and rounds.another() and not turns.hopeless(len(pairs)):
                pairs.append(next(taken))
        except KeyboardInterrupt:
            if not pairs:
                raise
            interrupted = True
        if turns.changes:
            say("putting everything back")
    found = estimate.compare_interleaved(
        request.sides[0].name,
        request.sides[1].name,
        pairs,
        request.margin,
        (dict(turns.failures[0]), dict(turns.failures[1])),
        _differing(request, ready.records),
        [operation.name for operation in ready.operations if operation.better == "higher"],
        [turns.first[number] == 1 for number in range(len(pairs))],
    )
    return Outcome(comparison=found, operations=ready.operations, interrupted=interrupted)


class _Turns:
    """Measures either side, and counts why that failed."""

    def __init__(self, request: InterleaveRequest, ready: Ready) -> None:
        self.failures: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        #: Pair → the side of its first launch.
        self.first: dict[int, int] = {}
        #: Whether a side has settings; else the nodes need not be taken.
        self.changes = any(arm.side.setting for arm in ready.arms)
        self._seed = request.seed
        self._ready = ready

    def hopeless(self, pairs: int) -> bool:
        """Whether one of the sides has never worked."""
        return pairs >= GIVE_UP and any(reasons.total() == pairs for reasons in self.failures)

    def measure(self, number: int, pair: int) -> dict[Cell, float]:
        """Return the median of every cell of one launch of each part; nothing where it failed.

        Where the sides have other nodes, the first side's stand for both.
        """
        arm, bench = self._ready.arms[number], self._ready.bench
        self.first.setdefault(pair, number)
        try:
            if self.changes:
                bench.set(arm.side.setting)
            bench.use(arm.launch, arm.operations)
            results = bench.launches(arm.workload, self._seed + pair)
        except NotRestoredError:
            raise
        except (TrialError, StepError) as failure:
            self.failures[number][printable(str(failure), 300)] += 1
            return {}
        names = {
            (there.op, place): own
            for here, there in zip(self._ready.arms[0].workload.parts, arm.workload.parts, strict=True)
            for own, place in zip(here.places, there.places, strict=True)
        }
        return {
            msgspec.structs.replace(
                cell, place=names[result.launch.op, cell.place], setting="default"
            ): median
            for result in results
            for cell, (median, _) in estimate.medians(result).items()
        }


def _tools(request: InterleaveRequest, mpi: str | None, say: Say) -> preparation.Toolbox:
    tools = preparation.toolbox([] if request.command and request.ops is None else request.ops, mpi, say)
    if request.ops is None and not request.command:
        first = next(operation for operation in tools.operations if operation.pattern == "ping-pong")
        tools = msgspec.structs.replace(tools, operations=[first])
    for operation in tools.operations:
        if not (operation.between_pairs or operation.of_all):
            raise UsageError(
                f"--ops {operation.name}: only operations between two nodes, or of all, are measured interleaved"
            )
    if any(one.mpi for one in request.sides) and tools.mpi is None:
        raise UsageError(
            "mpi=… compares nothing: no operation that is measured uses MPI; name one that does (--ops)"
        )
    return tools


def _site(
    request: InterleaveRequest,
    transport: Transport,
    records: list[NodeRecord],
    tools: preparation.Toolbox,
    say: Say,
) -> RunLaunch:
    ready = preparation.ready(request.config, transport, records, tools, say)
    if ready.left_out:
        raise ProbeError("; ".join(absent.reason for absent in ready.left_out))
    return ready.launch


def _arm(
    request: InterleaveRequest,
    one: Side,
    records: Sequence[NodeRecord],
    tools: preparation.Toolbox,
    launch: RunLaunch,
) -> Arm:
    interfaces.require(one.setting, records)
    places = list(request.places(one))
    text = one.command or request.command
    operations = [*tools.operations, *([_command(text, request.config.transport)] if text else [])]
    wanted = [steps.check(catalogue.knob(name), value) for name, value in on_nodes(one.setting).items()]
    parts = [
        Part(
            op=operation.name,
            sizes_bytes=[0] if operation.command else ladder.sizes_of(operation, request.sizes_bytes),
            places=_places(operation, request, places),
            group=not operation.between_pairs,
        )
        for operation in operations
    ]
    operations += [
        printed_operation(number, operation)
        for operation in operations
        if operation.command
        for number in request.prints
    ]
    return Arm(
        side=one,
        launch=launch,
        operations=operations,
        workload=Workload(parts=parts, sweeps=SWEEPS, visit_us=VISIT_US),
        plan=change.plan(
            records,
            request.config.interface,
            {record.node: wanted for record in records} if wanted else {},
            request.permissions,
        ),
    )


def _command(text: str, transport: str) -> Operation:
    operation = command_operation(text, name=RUN_TIME)
    return msgspec.structs.replace(operation, command=command.placed(text, transport))


def _places(operation: Operation, request: InterleaveRequest, pairs: Sequence[Pair]) -> list[Place]:
    """Return who takes part: the pairs, all nodes at once, or of a command the first node."""
    if operation.between_pairs:
        return list(pairs)
    return [tuple(request.nodes) if operation.of_all else (request.nodes[0],)]


def _differing(request: InterleaveRequest, records: Sequence[NodeRecord]) -> dict[str, tuple[str, str]]:
    """Return what the two sides differ in, as a comparison lists it."""
    first, second = request.sides
    who = fold(record.node for record in records)
    found: dict[str, tuple[str, str]] = {}
    for name in dict.fromkeys([*first.setting, *second.setting]):
        values = {str(record.facts.get(name, "not set")) for record in records}
        now = ", ".join(sorted(values))
        found[f"{who}: {name}"] = (first.setting.get(name, now), second.setting.get(name, now))
    if first.mpi != second.mpi:
        found["MPI library"] = (first.mpi or request.mpi or "found", second.mpi or request.mpi or "found")
    if first.command != second.command:
        found["command"] = (
            command.asked(first.command or request.command),
            command.asked(second.command or request.command),
        )
    if first.pairs != second.pairs:
        found["pairs of nodes"] = (first.pairs or request.pairs, second.pairs or request.pairs)
    return found
