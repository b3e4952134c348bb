"""Speed-up by ranks: the laws, what is not identifiable, and what more ranks would bring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.unit.predict_fixture import ring
from wulf.base.errors import TraceError, UsageError
from wulf.base.units import format_change
from wulf.page.parts import Table
from wulf.stats.core import scaling as laws
from wulf.tools.run import efficiency_loss, page, scaling
from wulf.tools.run.record import Scaling, ScalingLaunch, ScalingLoss, ScalingPlan
from wulf.tools.run.request import RunRequest, ScalingRequest

COUNTS = (1, 2, 4, 8)


def launches(
    sigma: float = 0.1,
    kappa: float = 0.0,
    *,
    rounds: int = 8,
    noise: float = 0.01,
    counts: tuple[int, ...] = COUNTS,
) -> list[ScalingLaunch]:
    """Return rounds of launches of a program that follows a law; every round has a factor of its own."""
    order = np.random.default_rng(3)
    found = []
    for number in range(rounds):
        slow = float(np.exp(order.normal(0, 0.2)))
        for count in counts:
            time = 10 * float(laws.curve(count, sigma, kappa)) * slow * float(np.exp(order.normal(0, noise)))
            found.append(ScalingLaunch(ranks=count, round=number, time_s=time))
    return found


def planned(ranks: Sequence[int], text: str = "./solve in", nodes: int = 2, per_node: int = 0) -> ScalingPlan:
    return ScalingPlan(
        command=text,
        ranks=sorted(set(ranks)),
        nodes=[f"node{number:02}" for number in range(1, nodes + 1)],
        per_node=per_node,
        weak="{ranks}" in text,
        rounds=8,
        budget_s=60,
        seed=1,
    )


def concluded(made: list[ScalingLaunch], text: str = "./solve in") -> Scaling:
    return scaling.conclude(planned([one.ranks for one in made], text), made)


def made(*, weak: bool = False) -> Scaling:
    return concluded(launches(), "./solve --rows {ranks}" if weak else "./solve in")


def failing() -> Scaling:
    failed = [ScalingLaunch(ranks=2, round=number, time_s=None, reason="exit code 1") for number in range(8)]
    return scaling.conclude(planned([1, 2], nodes=1), [*launches(counts=(1,)), *failed])


def split() -> Scaling:
    """Return one with traces: half of what is lost at 4 ranks is waiting, a quarter each computing and transfer."""
    losses = [
        ScalingLoss(ranks=1, run_s=8.0, computing_s=8.0, waiting_s=0.0, transfer_s=0.0),
        ScalingLoss(ranks=4, run_s=3.0, computing_s=9.0, waiting_s=2.0, transfer_s=1.0),
    ]
    return scaling.conclude(
        planned(COUNTS), launches(), losses, {8: "the program failed with the tracer"}, run="runs/s"
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
    found = scaling.conclude(planned(COUNTS, nodes=4, per_node=2), launches())
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


def test_the_loss_is_split_and_its_parts_are_what_the_efficiency_lacks() -> None:
    shown = page.build(split())
    (table,) = [part for part in shown.head if getattr(part, "title", "") == "Where the efficiency goes"]
    assert isinstance(table, Table)
    (row,) = table.rows
    assert [column.name for column in table.columns] == [
        "ranks",
        "efficiency",
        "computing",
        "waiting",
        "transfer",
    ]
    assert [item.raw for item in row] == pytest.approx([4, 8 / 12, 1 / 12, 2 / 12, 1 / 12])
    assert "the trace does not tell" in str(shown.head[0])


def test_a_trace_says_who_waited_and_what_messages_took(tmp_path: Path) -> None:
    even = efficiency_loss.of(ring(tmp_path / "even.wtrace", ranks=4, run_ns=24_000_000))
    assert even.computing_s + even.files_s + even.waiting_s + even.transfer_s == pytest.approx(4 * even.run_s)
    assert even.waiting_s == pytest.approx(0, abs=0.01 * even.run_s)
    assert even.transfer_s > 0
    with pytest.raises(TraceError):
        efficiency_loss.of(ring(tmp_path / "cut.wtrace", cut=True))
