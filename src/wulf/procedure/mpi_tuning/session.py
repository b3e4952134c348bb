"""A whole search: ask the library, search each collective, write the file, prove it, judge it at held-out sizes."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from wulf import store
from wulf.cluster.inventory import ClusterConfig
from wulf.collectives.decision import Found, decide, for_all_sizes
from wulf.collectives.halving import Candidate
from wulf.collectives.installed import Library
from wulf.collectives.rules import SIZELESS, Rules, chosen, counted_bytes
from wulf.errors import ProbeError, UsageError
from wulf.probe import ladder
from wulf.procedure import site
from wulf.procedure.mpi_tuning import effect
from wulf.procedure.mpi_tuning.bench import Bench, LaunchError, Unit, operation_of, place_of
from wulf.procedure.mpi_tuning.search import (
    FEWEST,
    MOST,
    Result,
    Say,
    Search,
    blocks_left_s,
    estimate_of,
    widest,
)
from wulf.records import SCHEMA_VERSION, Estimate, Operation
from wulf.records.collectives import CollectiveTuning, HeldOut, RuleEffect, StruckOut
from wulf.stats.paired import paired_shift
from wulf.text import nearest

#: Sizes grow by this factor from the smallest, an even number of doubles [B].
SMALLEST, GROWTH = 8, 8
#: Part of the budget for what comes after the search: the proof and the held-out sizes.
AFTER_SHARE = 0.25


class TuneRequest(msgspec.Struct, frozen=True, kw_only=True):
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


class _State(msgspec.Struct):
    """What a search has given so far."""

    results: list[tuple[Unit, Result]] = []
    rules: Rules = {}
    #: Sizes of rules are as Open MPI counts them.
    counted: bool = True
    for_all: dict[str, Candidate] = {}
    text: str = ""
    env: dict[str, str] = {}
    effects: list[RuleEffect] = []
    held_out: list[HeldOut] = []
    mean: Estimate | None = None
    refused: str = ""
    interrupted: bool = False


def sizes_to(most: int) -> list[int]:
    """Return the sizes at which it is decided, up to `most` [B]; raises UsageError where that is none."""
    if most < SMALLEST:
        raise UsageError(f"--max-size {most}: give {SMALLEST} B or more")
    sizes = [SMALLEST * GROWTH**n for n in range(64) if SMALLEST * GROWTH**n <= most]
    last = most // SMALLEST * SMALLEST
    return sizes if sizes[-1] == last else [*sizes, last]


def between(sizes: Sequence[int]) -> list[int]:
    """Return a size between each two: where a rule that was decided at its ends is least sure."""
    middles = [round(math.sqrt(a * b) / SMALLEST) * SMALLEST for a, b in itertools.pairwise(sizes)]
    return [size for size in middles if size not in sizes]


def tune(request: TuneRequest, say: Say) -> CollectiveTuning:
    """Search, write the file, prove it and judge it; after Ctrl-C what was found so far is written.

    Raises
    ------
    UsageError
        A collective or a number of ranks that cannot be.
    ProbeError
        The library does not say what it has, or another of its components takes the collectives before the rules.
    """
    for ranks in request.ranks:
        place_of(request.nodes, ranks)
    begin = time.monotonic()
    tools = site.toolbox([operation_of(one) for one in request.collectives], request.mpi, say)
    operations = {operation.name: operation for operation in tools.operations}
    _require_collectives(operations)
    assert tools.mpi is not None
    with site.connect(request.config, request.nodes, say) as (transport, records):
        ready = site.ready(request.config, transport, records, tools, say)
        if ready.left_out:
            raise ProbeError("; ".join(absent.reason for absent in ready.left_out))
        bench = Bench(ready.launch, ready.where, request.nodes, operations, request.seed)
        say("asking the library for its algorithms")
        library = bench.library(tools.mpi)
        _require_tunable(library, request.collectives)
        state = _State()
        try:
            _search(request, bench, library, _units(request, operations), state, say)
            _finish(request, bench, library, state, begin, say)
        except KeyboardInterrupt:
            if not state.results:
                raise
            state.interrupted = True
            if not state.text:
                _write(bench, library, state)
        finally:
            bench.clean()
    return _record(request, library, state, bench, time.monotonic() - begin)


def save(found: CollectiveTuning, out: Path) -> CollectiveTuning:
    """Write the file, and beside it all that was found; return that with where the file is."""
    if found.text:
        store.write_atomically(out, found.text.encode())
        place = str(out.absolute())
        env = {name: place if value == PLACE else value for name, value in found.environment.items()}
        found = msgspec.structs.replace(found, path=place, environment=env)
    store.write_atomically(out.with_name(f"{out.name}.json"), msgspec.json.encode(found))
    return found


#: What is called so is not forced.
OWN = "library's own decision"
#: Stands in the environment for the file's place until that is known.
PLACE = "FILE"


def _require_collectives(operations: dict[str, Operation]) -> None:
    for operation in operations.values():
        if not operation.of_all:
            raise UsageError(f"--collectives: {operation.name} is none: not all ranks take part in it")


def _require_tunable(library: Library, collectives: Sequence[str]) -> None:
    for one in collectives:
        if one not in library.algorithms:
            raise UsageError(
                f"--collectives: {library.version} has no choice for {one!r}{nearest(one, library.algorithms)}; "
                f"it has for: {', '.join(sorted(library.algorithms))}"
            )
    for name, priority in library.in_the_way.items():
        raise ProbeError(
            f"coll/{name} (priority {priority}) takes collectives between nodes before the rules of coll/tuned: say "
            f'[mpi.env] OMPI_MCA_coll_{name}_priority = "0" in the cluster file, and the same for your jobs'
        )


def _units(request: TuneRequest, operations: dict[str, Operation]) -> list[Unit]:
    found = []
    for collective in request.collectives:
        operation = operations[operation_of(collective)]
        sizes = sizes_to(request.max_bytes)
        own = tuple(ladder.sizes_of(operation, sizes))
        # A rule that sees no size is decided at one.
        own = own[len(own) // 2 :][:1] if collective in SIZELESS else own
        held = tuple(
            size for size in ladder.within(between(sizes), operation.min_size_bytes, operation.max_size_bytes)
        )
        held = held if len(own) > 1 else own
        for ranks in request.ranks or [len(request.nodes)]:
            found.append(Unit(collective=collective, ranks=ranks, sizes=own, held_out=held))
    return found


def _search(
    request: TuneRequest, bench: Bench, library: Library, units: Sequence[Unit], state: _State, say: Say
) -> None:
    end = time.monotonic() + (1 - AFTER_SHARE) * request.budget_s
    for place, unit in enumerate(units):
        search = Search(unit, library, bench.times, request.seed)
        failure = ""
        try:
            search.run(max(end - time.monotonic(), 0) / (len(units) - place), say)
        except LaunchError as error:
            failure = str(error)
        finally:
            state.results.append((unit, _named(unit, search.result(), failure)))
    if (
        all(not cell.kept and cell.ratio is None for _, result in state.results for cell in result.cells)
        and failure
    ):
        raise ProbeError(f"{units[-1]}: {failure}")


def _named(unit: Unit, result: Result, failure: str) -> Result:
    """Name the library's own decision among what failed, where it did."""
    if not failure:
        return result
    own = StruckOut(collective=unit.collective, ranks=unit.ranks, algorithm=OWN, reason=failure)
    return msgspec.structs.replace(result, struck_out=[*result.struck_out, own])


def _finish(
    request: TuneRequest, bench: Bench, library: Library, state: _State, begin: float, say: Say
) -> None:
    say("writing the file and trying it")
    _write(bench, library, state)
    if not state.text:
        return
    cells = [(unit.collective, unit.ranks, size) for unit, _ in state.results for size in unit.sizes]
    wrong = effect.smoke(bench, cells, state.env)
    if wrong:
        state.text, state.env = "", {}
        state.refused = f"jobs fail with the file that was made: {'; '.join(wrong[:3])}"
        return
    say("proving that it is in effect")
    wanted = [
        (unit.collective, unit.ranks, one.size_bytes, one.choice)
        for unit, result in state.results
        for one in result.found
        if one.choice is not None and unit.collective in (state.for_all or state.rules)
    ]
    state.effects = effect.prove(bench, library, state.text, wanted, state.env)
    _judge(request, bench, state, begin + request.budget_s, say)


def _write(bench: Bench, library: Library, state: _State) -> None:
    """Decide, and put the file on the nodes."""
    found: dict[str, dict[int, list[Found]]] = {}
    for unit, result in state.results:
        found.setdefault(unit.collective, {})[unit.ranks] = result.found
    state.counted = library.family == "openmpi"
    if library.format == "cvars":
        state.for_all = for_all_sizes(found)
    else:
        state.rules = decide(found, library.fanout, state.counted)
    if not state.rules and not state.for_all:
        return
    state.text = effect.text_of(library, state.rules, state.for_all)
    digest = hashlib.sha256(state.text.encode()).hexdigest()[:12]
    path = bench.put(state.text, f"rules-{digest}") if library.format != "cvars" else ""
    state.env = effect.environment(library, path, state.for_all)


def _judge(request: TuneRequest, bench: Bench, state: _State, end_s: float, say: Say) -> None:
    """Measure the held-out sizes with the file and without, in turn."""
    order = random.Random(f"{request.seed}:held out")  # noqa: S311 - reproducible, not secret
    ratios: dict[tuple[Unit, int], list[float]] = {}
    controls: dict[tuple[Unit, int], list[float]] = {}
    votes: list[float] = []
    units = [unit for unit, _ in state.results if unit.held_out]
    try:
        begin_s = time.monotonic()
        for block in range(MOST):
            if len(votes) >= FEWEST and time.monotonic() >= end_s:
                break
            left_s = blocks_left_s(block, time.monotonic() - begin_s, end_s - time.monotonic())
            say(
                f"held-out sizes with the file in effect: block {block + 1} of {MOST}, about {left_s:.0f} s left"
            )
            logs: list[float] = []
            for unit in units:
                times = _three(bench, unit, state.env, order)
                if times is None:
                    continue
                for size in unit.held_out:
                    base, filed, again = (times[arm][size] for arm in range(3))
                    ratios.setdefault((unit, size), []).append(math.log(filed / base))
                    controls.setdefault((unit, size), []).append(math.log(again / base))
                    logs.append(math.log(filed / base))
            if logs:
                votes.append(sum(logs) / len(logs))
    finally:
        state.mean = estimate_of(paired_shift(votes)) if votes else None
        state.held_out = _held_out(units, ratios, controls, state)


def _three(
    bench: Bench, unit: Unit, env: dict[str, str], order: random.Random
) -> list[dict[int, float]] | None:
    """Measure without the file, with it, and without it again, in random order; None where one failed."""
    arms: list[dict[int, float]] = [{}, {}, {}]
    places = [0, 1, 2]
    order.shuffle(places)
    with suppress(LaunchError):
        for arm in places:
            arms[arm] = bench.times(unit.collective, unit.ranks, unit.held_out, env if arm == 1 else {})
        return arms
    return None


def _held_out(
    units: Sequence[Unit],
    ratios: dict[tuple[Unit, int], list[float]],
    controls: dict[tuple[Unit, int], list[float]],
    state: _State,
) -> list[HeldOut]:
    found = []
    for unit in units:
        own = {size: paired_shift(controls[unit, size]) for size in unit.held_out if (unit, size) in controls}
        limit = widest(list(own.values()))
        for size, control in own.items() if limit is not None else ():
            ratio, same = estimate_of(paired_shift(ratios[unit, size])), estimate_of(control)
            assert ratio is not None
            assert same is not None
            assert limit is not None
            found.append(
                HeldOut(
                    collective=unit.collective,
                    ranks=unit.ranks,
                    size_bytes=size,
                    ratio=ratio,
                    control=same,
                    limit=limit,
                    ruled=_ruled(state, unit, size),
                )
            )
    return found


def _ruled(state: _State, unit: Unit, size: int) -> bool:
    if state.for_all:
        return unit.collective in state.for_all
    counted = counted_bytes(unit.collective, size, unit.ranks) if state.counted else size
    rule = chosen(state.rules, unit.collective, unit.ranks, counted)
    return rule is not None and rule.algorithm != 0


def _record(
    request: TuneRequest, library: Library, state: _State, bench: Bench, lasted_s: float
) -> CollectiveTuning:
    uses = effect.environment(library, PLACE, state.for_all) if state.text else {}
    return CollectiveTuning(
        schema_version=SCHEMA_VERSION,
        library=library.version,
        format=library.format,
        nodes=list(request.nodes),
        seed=request.seed,
        cells=[cell for _, result in state.results for cell in result.cells],
        struck_out=[one for _, result in state.results for one in result.struck_out],
        effects=state.effects,
        held_out=state.held_out,
        mean=state.mean,
        text=state.text,
        refused=state.refused,
        environment=uses,
        launches=bench.launches,
        lasted_s=lasted_s,
        interrupted=state.interrupted,
    )
