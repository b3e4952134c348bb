"""What `bench.probe_mpi` makes of the visits, with loops of known times on a noisy host."""

from __future__ import annotations

import random

import pytest

from bench import common
from bench.probe_mpi import ARMS, Visits, visits

SLOWER = 1.02


def launch(seed: int, blocks: int = 300, slower: float = SLOWER) -> Visits:
    """One launch on a host that jumps between two levels and interrupts one visit in three."""
    host = random.Random(seed)
    times: list[tuple[str, float]] = []
    level = 6000.0
    for _ in range(blocks):
        level = host.choice((6000.0, 7500.0)) if host.random() < 0.02 else level
        for arm in host.sample(ARMS, len(ARMS)):
            interrupted = host.expovariate(1 / 20000.0) if host.random() < 1 / 3 else 0.0
            own = slower if arm == "probe" else 1.0
            times.append((arm, own * level * host.lognormvariate(0, 0.01) + interrupted))
    return Visits(size=1, iterations=25, corrupt=0, visits=times)


def test_the_ratio_is_found_on_a_noisy_host() -> None:
    launches = [launch(seed) for seed in range(20)]
    found = common.shift("probe", [one.ratio("probe", ("bare", "again")) for one in launches], 1.01, 0.005)
    assert found.low is not None and found.high is not None
    assert found.low <= SLOWER <= found.high and found.low > 1.01
    assert found.sharp and not found.reached
    control = common.shift("control", [one.ratio("again", ("bare",)) for one in launches], 1)
    assert control.low is not None and control.high is not None
    assert control.low <= 1 <= control.high


def test_a_value_that_is_not_sharp_does_not_reach_its_goal() -> None:
    figure = common.Figure(name="x", value=1.0, goal=1.01, low=0.996, high=1.005, half_width=0.005)
    assert figure.reached
    assert not common.Figure(name="x", value=1.0, goal=1.01, low=0.99, high=1.005, half_width=0.005).reached
    assert not common.Figure(name="x", value=1.0, goal=1.01, half_width=0.005).reached, "no interval"
    assert not common.shift("x", [1.0] * 5, 1.01, 0.005).reached, "too few launches for one"


def test_the_last_line_has_the_interval(capsys: pytest.CaptureFixture[str]) -> None:
    wide = common.Figure(name="1B", value=1.002, goal=1.01, low=0.99, high=1.02, half_width=0.005)
    assert common.finish("probe-mpi", [wide, common.Figure(name="s", value=3, goal=5)]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "probe-mpi value=1B:1.002(0.990..1.020),s:3.000 goal=1B:1.01,s:5 short"


def test_what_a_launcher_says_is_passed_over() -> None:
    said = 'a warning\n{"size":1,"iterations":4,"corrupt":0,"visits":[["bare",1],["again",2],["probe",4]]}\n'
    (one,) = visits(said)
    assert one.ratio("probe", ("bare",)) == pytest.approx(4)
    assert one.ratio("again", ("bare",)) == pytest.approx(2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"corrupt": 1},
        {"visits": []},
        {"visits": [("bare", 1.0), ("bare", 1.0), ("probe", 1.0)]},
        {"visits": [("bare", 1.0), ("again", 1.0), ("probe", 1.0), ("bare", 1.0)]},
    ],
)
def test_incomplete_blocks_and_altered_messages_are_refused(wrong: dict[str, object]) -> None:
    whole = {"size": 1, "iterations": 4, "corrupt": 0, "visits": launch(1, blocks=3).visits}
    with pytest.raises(SystemExit, match="cannot be of 1 B"):
        Visits(**(whole | wrong)).ratio("probe", ("bare",))  # type: ignore[arg-type]
