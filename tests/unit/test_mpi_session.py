"""A whole search on a library whose times are known: what fails is said, and what is known stays."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from wulf.base.errors import ProbeError, UsageError
from wulf.node.cluster import inventory
from wulf.tools.collectives import session
from wulf.tools.collectives.bench import Bench, LaunchError, Pattern, Unit, operation_of
from wulf.tools.collectives.judge import Judge
from wulf.tools.collectives.record import OWN, CollectiveTuning
from wulf.tools.collectives.rules import classic, installed
from wulf.tools.collectives.rules.decision import for_all_sizes
from wulf.tools.collectives.rules.installed import Algorithm, Library
from wulf.tools.collectives.rules.rules import chosen, counted_bytes
from wulf.tools.collectives.search import Search

SIZES = (8, 512, 32768)
NAMES = ("linear", "binomial")
LIBRARY = Library(
    family="openmpi",
    version="Open MPI 4.1.4",
    format="classic-1",
    algorithms={
        one: tuple(Algorithm(number=n, name=name) for n, name in enumerate(NAMES, 1))
        for one in ("bcast", "reduce", "scan")
    },
    counted={"scan": "no size"},
)
FORCED, FILE = "OMPI_MCA_coll_tuned_{}_algorithm", "OMPI_MCA_coll_tuned_dynamic_rules_filename"


class Scripted(Bench):
    """A bench whose library reads files; binomial takes 0.7 of the default's time, linear twice."""

    def __init__(self, factors: Callable[[str, int, int], float] = lambda *_: 0.7) -> None:
        super().__init__(None, None, ["a", "b", "c", "d"], {}, seed=1)  # type: ignore[arg-type]
        self._factors = factors
        self._random = random.Random(1)
        self.texts: dict[str, str] = {}
        #: Collective, size, algorithm, whether it is a file that says it → raises what is due.
        self.fails: Callable[[str, int, int, bool], None] = lambda *_: None

    def _algorithm(self, collective: str, ranks: int, size: int, env: Mapping[str, str]) -> int:
        if FILE not in env:
            return int(env.get(FORCED.format(collective), 0))
        counted = counted_bytes(LIBRARY.counted.get(collective, "message"), size, ranks)
        rule = chosen(classic.read(self.texts[env[FILE]]), collective, ranks, counted)
        return rule.algorithm if rule else 0

    def _time(self, collective: str, size: int, algorithm: int) -> float:
        factor = self._factors(collective, size, algorithm) if algorithm == 2 else 1.0 + algorithm
        return 1e-5 * factor * self._random.gauss(1, 0.005)

    def times(
        self, collective: str, ranks: int, sizes: Sequence[int], env: Mapping[str, str]
    ) -> dict[int, float]:
        self.launches += 1
        ways = {size: self._algorithm(collective, ranks, size, env) for size in sizes}
        for size, way in ways.items():
            self.fails(collective, size, way, FILE in env)
        return {size: self._time(collective, size, way) for size, way in ways.items()}

    def calls(self, collective: str, ranks: int, size_bytes: int, env: Mapping[str, str]) -> str:
        self.fails(collective, size_bytes, self._algorithm(collective, ranks, size_bytes, env), FILE in env)
        return ""

    def pattern(self, collective: str, ranks: int, size_bytes: int, env: Mapping[str, str]) -> Pattern:
        return {(0, 1 + self._algorithm(collective, ranks, size_bytes, env)): (1, size_bytes)}

    def put(self, text: str, name: str) -> str:
        self.texts[name] = text
        return name

    def clean(self) -> None:
        pass


def units(*collectives: str) -> list[Unit]:
    held = tuple(session.between(SIZES))
    return [Unit(collective=one, ranks=4, sizes=SIZES, held_out=held) for one in collectives]


def tuned(bench: Bench, *collectives: str) -> CollectiveTuning:
    config = inventory.local()
    request = session.CollectivesTask(
        config=config,
        nodes=bench.nodes,
        collectives=list(collectives),
        max_bytes=SIZES[-1],
        ranks=[],
        budget_s=1.0,
        out=Path("rules.conf"),
        mpi=None,
        seed=1,
    )
    return session.carry_out(request, bench, LIBRARY, units(*collectives), time.monotonic(), lambda _: None)


def test_a_file_that_helps_is_written_tried_proven_and_judged(tmp_path: Path) -> None:
    found = session.save(tuned(Scripted(), "bcast", "reduce"), tmp_path / "rules.conf")
    assert found.effective
    assert found.tried
    assert not found.unjudged
    assert found.mean is not None
    assert found.mean.value == pytest.approx(0.7, rel=0.02)
    assert set(classic.read((tmp_path / "rules.conf").read_text())) == {"bcast", "reduce"}
    assert len(found.held_out) == 2 * len(session.between(SIZES))


def test_the_mean_of_ruled_sizes_is_apart_and_the_default_stands_beside_it() -> None:
    found = tuned(Scripted(lambda _collective, size, _way: 0.7 if size >= SIZES[1] else 3.0), "bcast")
    ruled = [one for one in found.held_out if one.ruled]
    assert 0 < len(ruled) < len(found.held_out)
    assert found.mean is not None
    assert found.mean_ruled is not None
    assert found.mean_ruled.value == pytest.approx(0.7, rel=0.02)
    assert found.mean.value == pytest.approx(0.7 ** (len(ruled) / len(found.held_out)), rel=0.02)
    for control in (found.mean_control, found.mean_ruled_control):
        assert control is not None
        assert control.value == pytest.approx(1.0, rel=0.01)


def test_a_file_that_fails_at_a_size_between_is_told() -> None:
    bench, calls = Scripted(), 0

    def fails(collective: str, size: int, _way: int, filed: bool) -> None:
        nonlocal calls
        calls += filed
        # The trial of every size goes well.
        if collective == "reduce" and filed and size not in SIZES and calls > 2 * 7:
            raise LaunchError("wrong data arrived")

    bench.fails = fails
    found = tuned(bench, "bcast", "reduce")
    (failure,) = found.unjudged
    assert (failure.collective, failure.with_file, failure.judged) == ("reduce", 1, False)
    assert "wrong data" in failure.reason
    assert {one.collective for one in found.held_out} == {"bcast"}
    assert found.mean is None, "no block has all sizes"


def test_a_file_that_fails_when_it_is_tried_between_is_not_written() -> None:
    bench = Scripted()

    def fails(_collective: str, size: int, _way: int, filed: bool) -> None:
        if filed and size == 128:
            raise LaunchError("it hung")

    bench.fails = fails
    found = tuned(bench, "bcast")
    assert not found.text
    assert "it hung" in found.refused


def test_only_the_collective_whose_rules_fail_is_left_out() -> None:
    bench = Scripted()

    def fails(collective: str, _size: int, way: int, filed: bool) -> None:
        if collective == "reduce" and filed and way:
            raise LaunchError("the job was ended")

    bench.fails = fails
    found = tuned(bench, "bcast", "reduce")
    assert set(classic.read(found.text)) == {"bcast"}
    assert "the job was ended" in found.dropped["reduce"]
    assert {cell.collective for cell in found.cells if cell.kept} == {"bcast"}


def test_what_was_found_until_ctrl_c_is_not_written_as_a_file_that_was_tried(tmp_path: Path) -> None:
    bench = Scripted()

    def fails(collective: str, _size: int, _way: int, _filed: bool) -> None:
        if collective == "reduce":
            raise KeyboardInterrupt

    bench.fails = fails
    found = session.save(tuned(bench, "bcast", "reduce"), tmp_path / "rules.conf")
    assert found.interrupted
    assert not found.tried
    assert found.path == str(tmp_path / "rules.conf.untried")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rules.conf.json", "rules.conf.untried"]
    assert FILE in found.environment


def test_ctrl_c_while_the_file_is_tried_writes_no_file_that_was(tmp_path: Path) -> None:
    bench = Scripted()

    def fails(_collective: str, _size: int, _way: int, filed: bool) -> None:
        if filed:
            raise KeyboardInterrupt

    bench.fails = fails
    session.save(tuned(bench, "bcast"), tmp_path / "rules.conf")
    assert not (tmp_path / "rules.conf").exists()


def test_what_was_measured_stays_when_a_node_does_not_take_the_file(tmp_path: Path) -> None:
    bench = Scripted()

    def put(_text: str, _name: str) -> str:
        raise LaunchError("no space left on device")

    bench.put = put  # type: ignore[method-assign, assignment]
    found = session.save(tuned(bench, "bcast"), tmp_path / "rules.conf")
    assert "no space left" in found.refused
    assert not found.text
    assert len(json.loads((tmp_path / "rules.conf.json").read_text())["cells"]) == len(SIZES)


def test_every_collective_whose_default_fails_is_named() -> None:
    bench = Scripted()

    def fails(collective: str, _size: int, _way: int, _filed: bool) -> None:
        if collective == "bcast":
            raise LaunchError("the node is gone")

    bench.fails = fails
    found = tuned(bench, "bcast", "reduce")
    assert [(one.collective, one.algorithm) for one in found.not_searched] == [("bcast", OWN)]
    assert set(classic.read(found.text)) == {"reduce"}


def test_where_sizes_cannot_be_told_apart_one_choice_must_hold_at_all() -> None:
    good = tuned(Scripted(lambda _c, size, _w: 0.7 if size <= 512 else 0.99), "scan")
    assert [cell.kept for cell in good.cells[:2]] == [True, True]
    bad = tuned(Scripted(lambda _c, size, _w: 0.7 if size <= 512 else 1.3), "scan")
    assert not bad.text
    assert not any(cell.kept for cell in bad.cells)
    assert "cannot tell sizes apart" in bad.cells[0].reason


def test_a_library_of_variables_measures_its_choice_at_all_sizes() -> None:
    sizes = tuple(session.sizes_to(1 << 20))
    library = installed.mpich("MPICH 3.3", [f"algorithm=MPIR_Bcast_intra_{name}" for name in NAMES])
    assert library.format == "cvars"

    def times(_c: str, _r: int, sizes: Sequence[int], env: Mapping[str, str]) -> dict[int, float]:
        factor = {"linear": 2.0, "binomial": 0.7}.get(env.get("MPIR_CVAR_BCAST_INTRA_ALGORITHM", ""), 1.0)
        return {size: 1e-5 * (factor if size == 8 else 1 + (factor > 1)) for size in sizes}

    unit = Unit(collective="bcast", ranks=4, sizes=sizes, held_out=())
    search = Search(unit, library, times, seed=1)
    search.run(1.0, lambda _: None)
    found = search.result().found
    assert for_all_sizes({"bcast": {4: found}})["bcast"].name == "binomial"


def test_what_stands_before_the_rules_is_said() -> None:
    session.require_tunable(LIBRARY, ["bcast"])
    with pytest.raises(ProbeError, match="override what is tried"):
        session.require_tunable(msgspec.structs.replace(LIBRARY, rules_file="/etc/rules.conf"), ["bcast"])
    han = msgspec.structs.replace(LIBRARY, in_the_way={"han": 35}, taken=frozenset({"bcast"}))
    session.require_tunable(han, ["scan"])
    with pytest.raises(ProbeError, match="performs bcast before"):
        session.require_tunable(han, ["scan", "bcast"])
    with pytest.raises(UsageError, match="no choice for 'gossip'"):
        session.require_tunable(LIBRARY, ["gossip"])


def test_held_out_sizes_lie_on_both_sides_of_where_a_rule_ends() -> None:
    for low, high in ((8, 64), (512, 4096)):
        middle = (low * high) ** 0.5
        below, above = session.between([low, high])
        assert low < below < middle < above < high


def test_too_few_blocks_are_said() -> None:
    class Once(Scripted):
        def times(self, *words: object) -> dict[int, float]:  # type: ignore[override]
            if self.launches >= 9:
                raise LaunchError("no more")
            return super().times(*words)  # type: ignore[arg-type]

    judge = Judge(units("bcast"), Once().times, {}, seed=1)
    judge.run(time.monotonic() + 1, lambda _: None)
    assert judge.held_out(lambda *_: True) == []
    (failure,) = judge.failures()
    assert (failure.judged, failure.without_file + failure.with_file > 0) == (False, True)


def test_what_the_probe_measures_as_another_collective_is_refused() -> None:
    assert operation_of("reduce_scatter_block") == "mpi_reduce_scatter"
    for wrong in ("reduce_scatter", "ireduce_scatter"):
        with pytest.raises(UsageError, match=f"{wrong}_block is"):
            operation_of(wrong)
