"""The search on a library whose times are known: what is best is found, what is not better is left alone."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from wulf.base.errors import UsageError
from wulf.stats.core.paired import paired_shift, paired_verdict
from wulf.tools.collectives.bench import LaunchError, Unit, place_of
from wulf.tools.collectives.rules.decision import decide
from wulf.tools.collectives.rules.installed import Algorithm, Library
from wulf.tools.collectives.rules.rules import chosen
from wulf.tools.collectives.search import FEWEST, MOST, Search, fewest
from wulf.tools.collectives.session import between, sizes_to

SIZES = (8, 512, 32768)
UNIT = Unit(collective="bcast", ranks=4, sizes=SIZES, held_out=())
NAMES = ("linear", "chain", "pipeline", "binomial", "broken")
LIBRARY = Library(
    family="openmpi",
    version="Open MPI 4.1.4",
    format="classic-1",
    algorithms={"bcast": tuple(Algorithm(number=n, name=name) for n, name in enumerate(NAMES, 1))},
    segmented=frozenset({"bcast"}),
)


class Simulated:
    """Times that scatter between launches and drift; an algorithm has its factor at each size."""

    def __init__(
        self, factors: Mapping[tuple[int, int], Mapping[int, float]], scatter: float, seed: int
    ) -> None:
        self._factors = factors
        self._scatter = scatter
        self._random = random.Random(seed)
        self.launches = 0

    def __call__(
        self, collective: str, ranks: int, sizes: Sequence[int], env: Mapping[str, str]
    ) -> dict[int, float]:
        assert (collective, ranks) == ("bcast", 4)
        self.launches += 1
        way = (
            int(env.get("OMPI_MCA_coll_tuned_bcast_algorithm", 0)),
            int(env.get("OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize", 0)),
        )
        if NAMES[way[0] - 1] == "broken" and way[0]:
            raise LaunchError("wrong data arrived")
        drift = 1 + 0.001 * self.launches
        shared = self._random.gauss(0, self._scatter)
        by_size = self._factors.get(way, {}) if way[0] else dict.fromkeys(SIZES, 1.0)
        return {
            size: 1e-5 * drift * by_size.get(size, 1.5) * (1 + shared + self._random.gauss(0, self._scatter))
            for size in sizes
        }


def searched(times: Simulated, budget_s: float = 100.0) -> Search:
    search = Search(UNIT, LIBRARY, times, seed=1)
    search.run(budget_s, lambda _: None)
    return search


@pytest.mark.parametrize("seed", range(5))
def test_what_is_best_at_each_size_is_found(seed: int) -> None:
    factors = {(4, 0): {8: 0.7, 512: 0.95}, (3, 8192): {32768: 0.6}, (1, 0): {8: 0.9}}
    found = searched(Simulated(factors, 0.01, seed)).result()
    best = {cell.size_bytes: (cell.algorithm, cell.segment_bytes) for cell in found.cells if cell.kept}
    assert best[8] == ("binomial", 0)
    assert best[32768] == ("pipeline", 8192)
    assert all(cell.ratio is not None and cell.ratio.n >= FEWEST for cell in found.cells if cell.kept)
    rules = decide({"bcast": {4: found.found}}, {}, counted={})
    rule = chosen(rules, "bcast", 4, 8)
    assert rule is not None
    assert rule.algorithm == 4


def test_nothing_is_kept_where_all_are_alike() -> None:
    ways = [(number, segment) for number in range(1, 5) for segment in (0, 8192)]
    kept = 0
    for seed in range(40):
        found = searched(Simulated({way: dict.fromkeys(SIZES, 1.0) for way in ways}, 0.03, seed)).result()
        kept += sum(cell.kept for cell in found.cells)
    assert kept <= 2, "of 120 cells in which nothing is better"


def test_an_algorithm_that_fails_is_struck_out_and_named() -> None:
    found = searched(Simulated({(4, 0): {8: 0.7}}, 0.01, 1)).result()
    assert {(one.algorithm, one.reason) for one in found.struck_out} == {("broken", "wrong data arrived")}
    assert any(cell.kept for cell in found.cells)


def test_a_gain_within_what_the_default_differs_from_itself_is_not_kept() -> None:
    found = searched(Simulated({(4, 0): dict.fromkeys(SIZES, 0.97)}, 0.10, 3)).result()
    assert not any(cell.kept for cell in found.cells)
    assert all(cell.reason for cell in found.cells)


def test_a_search_without_time_tells_what_it_did_not_do() -> None:
    times = Simulated({(4, 0): {8: 0.5}}, 0.01, 1)
    found = searched(times, budget_s=0.0).result()
    assert times.launches <= 4 + 3 * MOST
    assert len(found.cells) == len(SIZES)
    assert "not tried: there was no time left" in {one.reason for one in found.struck_out}


@pytest.mark.parametrize("budget_s", [30.0, 100.0, 300.0, 1000.0])
@pytest.mark.parametrize("launch_s", [1.0, 4.0])
def test_the_budget_is_the_whole_search_however_slow_launches_are(
    monkeypatch: pytest.MonkeyPatch, budget_s: float, launch_s: float
) -> None:
    now = 0.0
    monkeypatch.setattr("wulf.tools.collectives.search.time.monotonic", lambda: now)
    simulated = Simulated({(4, 0): dict.fromkeys(SIZES, 0.5)}, 0.01, 1)

    def times(*words: Any) -> dict[int, float]:
        nonlocal now
        now += launch_s
        return simulated(*words)

    search = Search(UNIT, LIBRARY, times, seed=1)
    search.run(budget_s, lambda _: None)
    assert now <= budget_s + launch_s
    cells = search.result().cells
    told = {cell.kept or not cell.judged or "first sight" in cell.reason for cell in cells}
    assert told == {True}, [cell.reason for cell in cells]
    # Ten blocks of three launches prove it, and thirteen candidates are each launched once before.
    assert any(cell.kept for cell in cells) == (budget_s >= 50 * launch_s)


def test_the_next_best_is_judged_when_the_best_one_fails_late() -> None:
    simulated = Simulated({(4, 0): {8: 0.5}, (1, 0): {8: 0.7}}, 0.01, 1)

    def fails_late(*words: Any) -> dict[int, float]:
        if words[3].get("OMPI_MCA_coll_tuned_bcast_algorithm") == "4" and simulated.launches > 25:
            raise LaunchError("it hung")
        return simulated(*words)

    search = Search(UNIT, LIBRARY, fails_late, seed=1)
    search.run(100.0, lambda _: None)
    found = search.result()
    assert "it hung" in {one.reason for one in found.struck_out}
    assert [(cell.algorithm, cell.kept) for cell in found.cells if cell.size_bytes == 8] == [("linear", True)]


def test_who_was_measured_in_a_round_that_was_cut_short_has_not_won(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("wulf.tools.collectives.search.time.monotonic", lambda: now)
    factors = {(n, 0): dict.fromkeys(SIZES, 0.9) for n in (1, 2, 3)} | {(4, 0): dict.fromkeys(SIZES, 0.5)}
    simulated = Simulated(factors, 0.001, 1)
    ways: list[str] = []

    def times(*words: Any) -> dict[int, float]:
        nonlocal now
        way = words[3].get("OMPI_MCA_coll_tuned_bcast_algorithm", "0")
        ways.append(way)
        # The first round is over; the clock ends the second one before the best one's turn.
        if ways.count(way) == 2 and way in "123":
            now = 60.0
        return simulated(*words)

    library = msgspec.structs.replace(LIBRARY, segmented=frozenset())
    for seed in range(4):
        now = 0.0
        ways.clear()
        search = Search(UNIT, library, times, seed)
        search.run(100.0, lambda _: None)
        best = {cell.algorithm for cell in search.result().cells}
        assert best == {"binomial"}, seed


def test_a_size_whose_calls_were_all_late_is_left_out() -> None:
    simulated = Simulated({(4, 0): {8: 0.7}}, 0.01, 1)

    def times(*words: Any) -> dict[int, float]:
        found = simulated(*words)
        return {size: time for size, time in found.items() if size != 512 or simulated.launches % 3}

    search = Search(UNIT, LIBRARY, times, seed=1)
    search.run(100.0, lambda _: None)
    cells = {cell.size_bytes: cell for cell in search.result().cells}
    assert cells[8].kept
    assert cells[512].control is None or cells[512].control.n < MOST


def test_a_library_whose_default_fails_ends_the_search() -> None:
    def dead(*_: object) -> dict[int, float]:
        raise LaunchError("no way")

    search = Search(UNIT, LIBRARY, dead, seed=1)
    with pytest.raises(LaunchError, match="no way"):
        search.run(1.0, lambda _: None)
    assert not any(cell.kept for cell in search.result().cells)


@pytest.mark.parametrize("comparisons", [1, 4, 7, 12])
def test_the_fewest_blocks_can_prove_something(comparisons: int) -> None:
    blocks = fewest(comparisons)
    differences = [0.001, *(-0.1 - 0.01 * number for number in range(blocks - 1))]
    assert paired_verdict(paired_shift(differences), comparisons, 0.0) == "better"
    assert blocks <= MOST


def test_sizes_and_those_between() -> None:
    assert sizes_to(4096) == [8, 64, 512, 4096]
    assert sizes_to(1000) == [8, 64, 512, 1000]
    assert between([8, 64, 512]) == [16, 32, 128, 256]
    with pytest.raises(UsageError, match="8 B"):
        sizes_to(4)


def test_ranks_are_spread_over_the_nodes() -> None:
    assert place_of(["a", "b", "c"], 2) == ("a", "b")
    assert place_of(["a", "b"], 4) == ("a", "a", "b", "b")
    with pytest.raises(UsageError, match="multiple"):
        place_of(["a", "b"], 3)
