"""Speed-up by ranks: the laws, what is not identifiable, and what more ranks would bring."""

from __future__ import annotations

import numpy as np
import pytest

from wulf.base.errors import UsageError
from wulf.base.units import format_change
from wulf.stats.core import scaling as laws
from wulf.tools.run import page, scaling
from wulf.tools.run.record import Scaling
from wulf.tools.run.request import RunRequest, ScalingRequest

COUNTS = (1, 2, 4, 8)


def launches(
    sigma: float = 0.1,
    kappa: float = 0.0,
    *,
    rounds: int = 8,
    noise: float = 0.01,
    counts: tuple[int, ...] = COUNTS,
) -> list[scaling.Launch]:
    """Return rounds of launches of a program that follows a law; every round has a factor of its own."""
    order = np.random.default_rng(3)
    found = []
    for number in range(rounds):
        slow = float(np.exp(order.normal(0, 0.2)))
        for count in counts:
            time = 10 * float(laws.curve(count, sigma, kappa)) * slow * float(np.exp(order.normal(0, noise)))
            found.append(scaling.Launch(count, number, time))
    return found


def concluded(made: list[scaling.Launch], text: str = "./solve in", per_node: int = 0) -> Scaling:
    failures: dict[int, dict[str, int]] = {one.ranks: {} for one in made}
    return scaling.conclude(text, ["node01", "node02"], made, failures, 8, 1, per_node=per_node)


def made(*, weak: bool = False) -> Scaling:
    return concluded(launches(), "./solve --rows {ranks}" if weak else "./solve in")


def failing() -> Scaling:
    return scaling.conclude(
        "./solve", ["node01"], launches(counts=(1,)), {1: {}, 2: {"exit code 1": 8}}, 8, 1
    )


def test_the_serial_share_that_is_planted_is_found_and_what_the_next_ranks_bring() -> None:
    found = made()
    amdahl, universal = found.laws
    share = amdahl.parameters["serial share"]
    assert share is not None
    assert share.low is not None and share.high is not None
    assert share.low <= 0.1 <= share.high
    assert share.high - share.low < 0.03
    assert "Amdahl's law is enough" in universal.reason
    two = found.forecasts[1]
    true = float(laws.curve(10, 0.1) / laws.curve(8, 0.1))
    assert two.ranks == 10
    assert two.ratio.value == pytest.approx(true, rel=0.01)
    assert page.build(found).title == f"Two more ranks than 8: {format_change(two.ratio)} of the run time"


def test_speed_up_and_efficiency_are_against_the_fewest_ranks_of_the_same_round() -> None:
    by_ranks = {point.ranks: point for point in made().points}
    assert by_ranks[1].speed_up is None
    eight = by_ranks[8]
    assert eight.speed_up is not None and eight.efficiency is not None
    assert eight.speed_up.value == pytest.approx(1 / float(laws.curve(8, 0.1)), rel=0.02)
    assert eight.efficiency.value == pytest.approx(eight.speed_up.value / 8)


def test_coherency_that_is_planted_is_found_and_more_ranks_are_slower() -> None:
    found = concluded(launches(0.02, 0.02, noise=0.005))
    coherency = found.laws[1].parameters["coherency"]
    assert coherency is not None and coherency.low is not None and coherency.high is not None
    assert coherency.low <= 0.02 <= coherency.high
    assert found.by == "universal scalability"
    assert found.forecasts[-1].ratio.value > 1


def test_what_is_not_identifiable_is_said() -> None:
    vague = concluded(launches(noise=1.0, rounds=2, counts=(1, 2)))
    assert "not identifiable" in vague.laws[0].reason
    assert "three numbers of ranks" in vague.laws[1].reason
    assert vague.forecasts == []
    assert "cannot be told" in page.build(vague).title


def test_a_work_that_grows_has_efficiencies_and_no_law() -> None:
    found = made(weak=True)
    last = found.points[-1]
    assert found.laws == []
    assert last.efficiency is not None and last.speed_up is not None
    assert last.speed_up.value == pytest.approx(8 * last.efficiency.value)


def test_nodes_that_are_added_with_the_ranks_are_what_is_forecast() -> None:
    found = scaling.conclude(
        "./solve", [f"n{n}" for n in range(4)], launches(), {n: {} for n in COUNTS}, 8, 1, per_node=2
    )
    assert [one.ranks for one in found.forecasts] == [10, 12, 16]
    assert page.build(found).title.startswith("Two more nodes than 4:")
    assert [point.nodes for point in found.points] == [1, 1, 2, 4]


def test_it_takes_two_numbers() -> None:
    with pytest.raises(UsageError, match="two different numbers"):
        ScalingRequest("./a", [4, 4])
    with pytest.raises(UsageError, match="one number"):
        from wulf.face.logged import Logged
        from wulf.tools.run import work

        work.run(RunRequest("./a", ranks=[1, 2]), Logged())
