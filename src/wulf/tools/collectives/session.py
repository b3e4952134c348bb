"""A whole search: ask the library, search each collective, write the file, prove it, judge it at held-out sizes."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from wulf.base import store
from wulf.base.contracts import Say
from wulf.base.errors import ProbeError, UsageError, WulfError
from wulf.base.records import SCHEMA_VERSION, Operation
from wulf.base.text import nearest
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed
from wulf.node.probe import ladder
from wulf.page.words import listed
from wulf.tools.collectives import effect
from wulf.tools.collectives.bench import Bench, LaunchError, Unit, operation_of, place_of
from wulf.tools.collectives.judge import Judge
from wulf.tools.collectives.record import OWN, CollectiveTuning, RuleEffect, StruckOut, TunedCell
from wulf.tools.collectives.request import CollectivesRequest
from wulf.tools.collectives.rules.decision import Found, decide, for_all_sizes
from wulf.tools.collectives.rules.halving import Candidate
from wulf.tools.collectives.rules.installed import Library
from wulf.tools.collectives.rules.rules import BUILT_IN, RuleFileError, Rules, chosen, counted_bytes
from wulf.tools.collectives.search import Result, Search

#: Sizes grow by this factor from the smallest, an even number of doubles [B].
SMALLEST, GROWTH = 8, 8
#: Part of the budget for what comes after the search: the proof and the held-out sizes.
AFTER_SHARE = 0.25


class CollectivesTask(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be tuned."""

    config: ClusterConfig
    nodes: list[str]
    collectives: list[str]
    max_bytes: int
    #: Numbers of ranks; empty for one on each node.
    ranks: list[int]
    budget_s: float
    #: Where the file goes.
    out: Path
    mpi: str | None
    seed: int


def task_of(request: CollectivesRequest, note: Say) -> CollectivesTask:
    """Return what a request comes to on the cluster that it names, and within the allocation that this runs in."""
    config = config_of(request.cluster)
    return CollectivesTask(
        config=config,
        nodes=config.select(request.nodes),
        collectives=list(request.collectives),
        max_bytes=request.max_size_bytes,
        ranks=sorted(set(request.ranks)),
        budget_s=allocation.capped(request.budget_s, note),
        out=Path(request.out),
        mpi=request.mpi or config.mpi.compiler,
        seed=new_seed(request.seed),
    )


class _State(msgspec.Struct):
    """What a search has given so far."""

    results: list[tuple[Unit, Result]] = []
    #: Of which the library's own decision failed.
    failed: list[Unit] = []
    rules: Rules = {}
    for_all: dict[str, Candidate] = {}
    #: Collectives that are left out of the file as jobs fail with their rules, and how.
    dropped: dict[str, str] = {}
    text: str = ""
    env: dict[str, str] = {}
    #: Whether calls were made with the file.
    tried: bool = False
    effects: list[RuleEffect] = []
    judge: Judge | None = None
    refused: str = ""
    interrupted: bool = False

    @property
    def measured(self) -> bool:
        """Whether any algorithm was compared with the library's own decision."""
        return any(cell.algorithm for _, result in self.results for cell in result.cells)


def sizes_to(most: int) -> list[int]:
    """Return the sizes at which it is decided, up to `most` [B]; raises UsageError where that is none."""
    if most < SMALLEST:
        raise UsageError(f"--max-size {most}: give {SMALLEST} B or more")
    sizes = [SMALLEST * GROWTH**n for n in range(64) if SMALLEST * GROWTH**n <= most]
    last = most // SMALLEST * SMALLEST
    return sizes if sizes[-1] == last else [*sizes, last]


def between(sizes: Sequence[int]) -> list[int]:
    """Return two sizes between each two, at thirds of the logarithm: a rule ends halfway, and one is on either side."""
    thirds = {
        round(a * (b / a) ** (part / 3) / SMALLEST) * SMALLEST
        for a, b in itertools.pairwise(sizes)
        for part in (1, 2)
    }
    return sorted(thirds - set(sizes))


def tune(task: CollectivesTask, say: Say) -> CollectiveTuning:
    """Search, write the file, prove it and judge it; what was found so far stays after Ctrl-C or a failure.

    Raises
    ------
    UsageError
        A collective or a number of ranks that cannot be.
    ProbeError
        The library does not say what it has, something in it stands before the rules, or nothing could be measured.
    """
    for ranks in task.ranks:
        place_of(task.nodes, ranks)
    begin = time.monotonic()
    tools = preparation.toolbox([operation_of(one) for one in task.collectives], task.mpi, say)
    operations = {operation.name: operation for operation in tools.operations}
    _require_collectives(operations)
    assert tools.mpi is not None
    with preparation.connect(task.config, task.nodes, say) as (transport, records):
        ready = preparation.ready(task.config, transport, records, tools, say)
        if ready.left_out:
            raise ProbeError("; ".join(absent.reason for absent in ready.left_out))
        bench = Bench(ready.launch, ready.where, task.nodes, operations, task.seed)
        say("asking the library for its algorithms")
        library = bench.library(tools.mpi)
        require_tunable(library, task.collectives)
        return carry_out(task, bench, library, _units(task, operations), begin, say)


def carry_out(
    task: CollectivesTask, bench: Bench, library: Library, units: Sequence[Unit], begin_s: float, say: Say
) -> CollectiveTuning:
    """Do what `tune` does where the library was asked and its nodes are ready.

    Parameters
    ----------
    begin_s
        From when on the budget counts, on the monotonic clock.

    Raises
    ------
    WulfError
        Nothing could be measured.
    """
    state = _State()
    left_s = allocation.left_of(task.budget_s, time.monotonic() - begin_s, "the search", say)
    end_s = time.monotonic() + left_s
    try:
        _search(task, (1 - AFTER_SHARE) * left_s, bench, library, units, state, say)
        _finish(task, bench, library, state, end_s, say)
    except KeyboardInterrupt:
        if not state.results:
            raise
        state.interrupted = True
    except WulfError as failure:
        if not state.measured:
            raise
        state.refused = str(failure)
    finally:
        bench.clean()
    if state.interrupted and not state.tried:
        _decide(library, state)
    return _record(task, library, state, bench, time.monotonic() - begin_s)


def save(found: CollectiveTuning, out: Path) -> CollectiveTuning:
    """Write the file, and beside it all that was found; return that with where the file is.

    One that was not tried gets another name: it may end jobs.
    """
    if found.text:
        target = out if found.tried else out.with_name(f"{out.name}.untried")
        store.write_atomically(target, found.text.encode())
        place = str(target.absolute())
        env = {name: place if value == PLACE else value for name, value in found.environment.items()}
        found = msgspec.structs.replace(found, path=place, environment=env)
    store.write_atomically(out.with_name(f"{out.name}.json"), msgspec.json.encode(found))
    return found


#: Stands in the environment for the file's place until that is known.
PLACE = "FILE"


def _require_collectives(operations: dict[str, Operation]) -> None:
    for operation in operations.values():
        if not operation.of_all:
            raise UsageError(f"--collectives: {operation.name} is none: not all ranks take part in it")


def require_tunable(library: Library, collectives: Sequence[str]) -> None:
    """Raise where a library has no choice for a collective, or where the rules of a file would not decide.

    Raises
    ------
    UsageError
        It has no algorithms for a collective.
    ProbeError
        Another component takes a collective first, or jobs read a file of rules already.
    """
    for one in collectives:
        if one not in library.algorithms:
            raise UsageError(
                f"--collectives: {library.version} has no choice for {one!r}{nearest(one, library.algorithms)}; "
                f"it has for: {', '.join(sorted(library.algorithms))}"
            )
    if library.rules_file:
        raise ProbeError(
            f"jobs read the rules in {library.rules_file} already, which override what is tried: set [mpi.env] "
            f'OMPI_MCA_coll_tuned_dynamic_rules_filename = ""'
        )
    taken = [one for one in collectives if one in library.taken]
    for name, priority in library.in_the_way.items() if taken else ():
        raise ProbeError(
            f"coll/{name} (priority {priority}) performs {', '.join(taken)} before coll/tuned's rules are asked: "
            f'set [mpi.env] OMPI_MCA_coll_{name}_priority = "0", and for your jobs'
        )


def _units(task: CollectivesTask, operations: dict[str, Operation]) -> list[Unit]:
    found = []
    for collective in task.collectives:
        operation = operations[operation_of(collective)]
        sizes = sizes_to(task.max_bytes)
        own = tuple(ladder.sizes_of(operation, sizes))
        held = tuple(
            size for size in ladder.within(between(sizes), operation.min_size_bytes, operation.max_size_bytes)
        )
        held = held if len(own) > 1 else own
        for ranks in task.ranks or [len(task.nodes)]:
            found.append(Unit(collective=collective, ranks=ranks, sizes=own, held_out=held))
    return found


def _search(
    task: CollectivesTask,
    budget_s: float,
    bench: Bench,
    library: Library,
    units: Sequence[Unit],
    state: _State,
    say: Say,
) -> None:
    end = time.monotonic() + budget_s
    failures = []
    for place, unit in enumerate(units):
        search = Search(unit, library, bench.times, task.seed)
        failure = ""
        try:
            search.run(max(end - time.monotonic(), 0) / (len(units) - place), say)
        except LaunchError as error:
            failure = str(error)
            failures.append(f"{unit}: {failure}")
            state.failed.append(unit)
        finally:
            state.results.append((unit, _named(unit, search.result(), failure)))
    if failures and not state.measured:
        raise ProbeError(listed(failures, 3))


def _named(unit: Unit, result: Result, failure: str) -> Result:
    """Name the library's own decision among what failed, where it did."""
    if not failure:
        return result
    own = StruckOut(collective=unit.collective, ranks=unit.ranks, algorithm=OWN, reason=failure)
    return msgspec.structs.replace(result, struck_out=[*result.struck_out, own])


def _finish(
    task: CollectivesTask, bench: Bench, library: Library, state: _State, end_s: float, say: Say
) -> None:
    say("writing the file and trying it")
    _decide(library, state)
    while state.text and not state.tried:
        _try(bench, library, state)
    if not state.text:
        return
    say("proving that it is in effect")
    wanted = [
        (unit.collective, unit.ranks, size, way)
        for unit, _ in state.results
        for size in unit.sizes
        if (way := _says(library, state, unit, size)) is not None
    ]
    state.effects = effect.prove(bench, library, state.rules, wanted, state.env)
    state.judge = Judge(_to_try(state), bench.times, state.env, task.seed)
    state.judge.run(end_s, say)


def _decide(library: Library, state: _State) -> None:
    """Make the file of all that was found and not dropped; there is none where nothing helps."""
    found: dict[str, dict[int, list[Found]]] = {}
    for unit, result in state.results:
        if unit.collective not in state.dropped:
            found.setdefault(unit.collective, {})[unit.ranks] = result.found
    state.text = ""
    if library.format == "cvars":
        state.for_all = for_all_sizes(found)
    else:
        state.rules = decide(found, library.fanout, library.counted)
    try:
        if state.rules or state.for_all:
            state.text = effect.text_of(library, state.rules, state.for_all)
    except RuleFileError as failure:
        state.refused = str(failure)


def _try(bench: Bench, library: Library, state: _State) -> None:
    """Put the file on the nodes and make calls with it; drop the collectives that fail, and make it again."""
    digest = hashlib.sha256(state.text.encode()).hexdigest()[:12]
    path = bench.put(state.text, f"rules-{digest}") if library.format != "cvars" else ""
    state.env = effect.environment(library, path, state.for_all)
    cells = [
        (unit.collective, unit.ranks, size)
        for unit in _to_try(state)
        for size in sorted({*unit.sizes, *unit.held_out})
    ]
    wrong = effect.smoke(bench, cells, state.env)
    ruled = {one: why for one, why in wrong.items() if one in state.rules or one in state.for_all}
    if not wrong:
        state.tried = True
        return
    state.dropped |= ruled
    _decide(library, state)
    if not ruled or not state.text:
        state.refused = f"jobs fail with the file that was made: {listed(list(wrong.values()), 3)}"
        state.text = ""


def _to_try(state: _State) -> list[Unit]:
    """Return the units that are to work with the file: all but those without rules that do not work without it."""
    ruled = {*state.rules, *state.for_all}
    return [unit for unit, _ in state.results if unit.collective in ruled or unit not in state.failed]


def _says(library: Library, state: _State, unit: Unit, size: int) -> Candidate | None:
    """Return what the file says for a size; None for the library's own decision."""
    if library.format == "cvars":
        return state.for_all.get(unit.collective)
    counted = counted_bytes(library.counted.get(unit.collective, "message"), size, unit.ranks)
    rule = chosen(state.rules, unit.collective, unit.ranks, counted)
    if rule is None or rule.algorithm == BUILT_IN:
        return None
    names = {way.number: way.name for way in library.algorithms[unit.collective]}
    return Candidate(number=rule.algorithm, name=names[rule.algorithm], segment_bytes=rule.segment_bytes)


def _as_written(library: Library, state: _State, unit: Unit, cell: TunedCell) -> TunedCell:
    """Return a cell that is kept if the file has it."""
    says = _says(library, state, unit, cell.size_bytes)
    if not cell.kept:
        return cell
    if cell.collective in state.dropped:
        reason = f"jobs fail with it in the file: {state.dropped[cell.collective]}"
    elif state.refused:
        reason = "the file is refused"
    elif says is None or (says.name, says.segment_bytes) != (cell.algorithm, cell.segment_bytes):
        reason = "the library cannot tell sizes apart, and this may be slower at some"
    else:
        return cell
    return msgspec.structs.replace(cell, kept=False, reason=reason)


def _record(
    task: CollectivesTask, library: Library, state: _State, bench: Bench, lasted_s: float
) -> CollectiveTuning:
    text = "" if state.refused else state.text
    uses = effect.environment(library, PLACE, state.for_all) if text else {}
    judge = state.judge

    def ruled(unit: Unit, size: int) -> bool:
        return _says(library, state, unit, size) is not None

    return CollectiveTuning(
        schema_version=SCHEMA_VERSION,
        library=library.version,
        format=library.format,
        nodes=list(task.nodes),
        seed=task.seed,
        cells=[
            _as_written(library, state, unit, cell) for unit, result in state.results for cell in result.cells
        ],
        struck_out=[one for _, result in state.results for one in result.struck_out],
        effects=state.effects,
        held_out=judge.held_out(ruled) if judge else [],
        held_out_failures=judge.failures() if judge else [],
        mean=judge.mean() if judge else None,
        mean_control=judge.mean_control() if judge else None,
        mean_ruled=judge.mean(ruled) if judge else None,
        mean_ruled_control=judge.mean_control(ruled) if judge else None,
        dropped=state.dropped,
        text=text,
        tried=state.tried,
        refused=state.refused,
        environment=uses,
        launches=bench.launches,
        lasted_s=lasted_s,
        interrupted=state.interrupted,
    )
