"""Who is given a change next, who keeps it, and what ends a roll-out (`wulf.tools.rollout`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest

from bench.rollout import HARMS, fleet, roll
from wulf.base.errors import UsageError
from wulf.base.records import NodeRecord, Pair
from wulf.tools.rollout.evidence import STATES, Loss, Match, Round, State, StepTest
from wulf.tools.rollout.hardware_kinds import hardware, in_common, made_of
from wulf.tools.rollout.record import Hardware, RolledNode, RolloutPlan, RolloutStep
from wulf.tools.rollout.request import RolloutRequest
from wulf.tools.rollout.schedule import Course, HaltError, measure, still_known
from wulf.tools.rollout.work import plan_of

PLAN = plan_of(RolloutRequest(settings=["nic.mtu=9000"]), {"nic.mtu": "9000"}, "", 1)
NAMES = [f"node{number:02}" for number in range(1, 41)]
#: Match and state → time, or why there is none.
Time = Callable[[Match, State], float | str]


class Bench:
    """Nodes whose times and losses are known exactly."""

    def __init__(
        self, time: Time, lost: Mapping[str, int] | None = None, refusing: Sequence[str] = ()
    ) -> None:
        self._time, self._lost, self._refusing = time, lost or {}, refusing

    def prepare(self, matches: Sequence[Match]) -> dict[str, str]:
        return {node: "no" for match in matches for node in match.pair if node in self._refusing}

    def round(self, matches: Sequence[Match], number: int) -> Round:
        found = {}
        for state in STATES:
            times = {match.pair: self._time(match, state) for match in matches}
            found[state] = {
                # Nothing scatters by nothing.
                pair: time if isinstance(time, str) else {"t": time * (1 + 0.001 * ((7 * number) % 5))}
                for pair, time in times.items()
            }
        return found

    def losses(self, matches: Sequence[Match]) -> dict[Pair, Loss | str]:
        nodes = {match.pair: match.pair[: 1 + match.both] for match in matches}
        return {pair: Loss(sum(self._lost.get(n, 0) for n in some), 0, 4000) for pair, some in nodes.items()}


def slower(*harmed: str, only_together: bool = False) -> Time:
    def time(match: Match, state: State) -> float:
        having = [node for node, on in zip(match.pair, state, strict=True) if on]
        bad = 0 if only_together and len(having) < 2 else len({*having} & {*harmed})
        return 1.2**bad * 0.9 ** len(having)

    return time


def judged(time: Time, matches: Sequence[Match], **more) -> dict[str, RolledNode]:
    test = StepTest(PLAN, matches)
    measure(test, Bench(time, **more), PLAN.rounds)
    found = test.outcomes(1, dict.fromkeys(NAMES, "A"))
    assert test.passed == [one.node for one in found if one.state == "kept"]
    return {one.node: one for one in found}


def states(found: Mapping[str, RolledNode]) -> dict[str, str]:
    return {node: one.state for node, one in found.items()}


BOTH = [Match("node01", "node02", both=True)]
SINGLE = [Match("node01", "node02", both=False)]


def test_a_node_that_harms_is_told_from_its_partner() -> None:
    found = judged(slower("node02"), BOTH)
    assert states(found) == {"node01": "kept", "node02": "harmed"}
    assert "+8" in found["node02"].reason
    assert found["node01"].figures[0].ratio.value == pytest.approx(0.9)


def test_harm_that_takes_both_nodes_is_seen_and_blamed_on_neither() -> None:
    found = judged(slower("node02", only_together=True), BOTH)
    assert states(found) == {"node01": "cannot tell", "node02": "cannot tell"}
    assert "which node" in found["node01"].reason


def test_losses_are_told_from_those_of_the_partner() -> None:
    found = judged(slower(), BOTH, lost={"node01": 60})
    assert states(found) == {"node01": "harmed", "node02": "kept"}
    assert "datagrams lost with it, 0 without" in found["node01"].reason


def test_a_node_that_gives_no_figures_with_the_change_never_passes() -> None:
    dead = lambda match, state: "it died" if state[0] else 1.0  # noqa: E731
    found = judged(dead, BOTH)
    assert found["node01"].state == "harmed"
    assert "it died" in found["node01"].reason


@pytest.mark.parametrize("dead_state", STATES)
def test_silence_is_no_evidence_for_a_change(dead_state: State) -> None:
    """Where one state of a pair gives no figures, never are both of its nodes kept."""

    def time(match: Match, state: State) -> float | str:
        return "silent" if state == dead_state and match.both else 1.0

    found = judged(time, BOTH)
    assert not all(one.state == "kept" for one in found.values())


def test_without_any_figure_nothing_is_told() -> None:
    assert states(judged(lambda *_: "silent", BOTH)) == {"node01": "cannot tell", "node02": "cannot tell"}


def test_a_refusing_node_is_out_and_its_partner_goes_on() -> None:
    found = judged(slower(), BOTH, refusing=["node01"])
    assert states(found) == {"node01": "refused", "node02": "kept"}


def test_a_change_that_costs_less_than_the_margin_is_kept_and_one_at_the_margin_is_not() -> None:
    def costs(share: float) -> Time:
        return lambda _, state: 1 + share * state[0]

    assert judged(costs(0.01), SINGLE)["node01"].state == "kept"
    assert judged(costs(math.expm1(PLAN.margin) + 0.01), SINGLE)["node01"].state != "kept"


def kind(name: str, nodes: Sequence[str], *, tried: bool = True) -> Hardware:
    return Hardware(name=name, nodes=list(nodes), tried=tried)


def through(course: Course, time: Time, free: Sequence[str] = NAMES) -> list[int]:
    """Roll out to the end; return how many nodes each step had."""
    sizes = []
    while matches := course.next(free):
        test = StepTest(PLAN, matches)
        measure(test, Bench(time), PLAN.rounds)
        sizes.append(len(test.nodes))
        course.take(test.outcomes(len(sizes), course.kind_of))
    return sizes


def test_steps_grow_and_every_node_is_tried_once() -> None:
    course = Course(PLAN, [kind("A", NAMES)])
    assert through(course, slower()) == [4, 12, 24]
    assert {one.state for one in course.nodes({})} == {"kept"}
    assert not course.waiting


def test_untested_hardware_is_never_given_the_change() -> None:
    course = Course(PLAN, [kind("A", NAMES[:30]), kind("B", NAMES[30:], tried=False)])
    through(course, slower())
    assert {one.state for one in course.nodes({}) if one.node in NAMES[30:]} == {"other hardware"}


def test_hardware_on_which_it_harms_is_given_up_after_two_steps_and_others_go_on() -> None:
    course = Course(PLAN, [kind("A", NAMES[:20]), kind("B", NAMES[20:])])
    through(course, slower(*NAMES[20:]))
    found = {one.node: one.state for one in course.nodes({})}
    assert {found[node] for node in NAMES[:20]} == {"kept"}
    assert sorted(found[node] for node in NAMES[20:]).count("harmed") == 8
    assert [bool(one.ended) for one in course.hardware()] == [False, True]


def test_an_odd_node_and_a_second_try_have_partners_that_stay() -> None:
    course = Course(PLAN, [kind("A", NAMES[:7])])
    first = course.next(NAMES)
    assert [match.both for match in first] == [True, True]
    course.take([RolledNode(node=n, state="cannot tell", hardware="A") for m in first for n in m.pair])
    second = course.next(NAMES)
    assert [match.both for match in second] == [True, False]
    course.take([RolledNode(node=n, state="kept", hardware="A") for n in (*second[0].pair, second[1].first)])
    third = course.next(NAMES)
    kept = {*second[0].pair, second[1].first}
    assert all(not match.both and match.second in kept for match in third)


def test_busy_nodes_wait_and_nobody_is_measured_with_them() -> None:
    course = Course(PLAN, [kind("A", NAMES[:8])])
    sizes = through(course, slower(), free=NAMES[:4])
    assert sizes == [4]
    assert sorted(course.waiting) == NAMES[4:8]
    assert {one.state for one in course.nodes({node: "busy" for node in NAMES[4:8]})} == {"kept", "busy"}


def test_a_node_of_which_it_could_not_be_told_says_so_until_it_is_tried_again() -> None:
    course = Course(PLAN, [kind("A", NAMES[:2])])
    why = "it is not shown that it costs less than 5%, after 60 rounds"
    course.take([RolledNode(node=node, state="cannot tell", reason=why, hardware="A") for node in NAMES[:2]])
    # Nobody is known to be good whom they could be measured with.
    assert not course.next(NAMES)
    assert {(one.state, one.reason) for one in course.nodes({}, "interrupted")} == {("cannot tell", why)}
    assert [one.state for one in course.nodes({NAMES[0]: "Slurm says allocated"})] == ["busy", "cannot tell"]


def test_when_the_time_is_over_nothing_more_is_measured_and_who_is_open_keeps_nothing() -> None:
    turns = iter([True] * 3)
    test = StepTest(PLAN, BOTH)
    measure(test, Bench(slower()), PLAN.rounds, lambda: next(turns, False))
    assert test.rounds == 3
    assert {one.state for one in test.outcomes(1, dict.fromkeys(NAMES, "A"))} == {"cannot tell"}


def test_a_halt_is_passed_on() -> None:
    class Halting(Bench):
        def round(self, matches: Sequence[Match], number: int) -> Round:
            raise HaltError("node01 does not answer")

    with pytest.raises(HaltError, match="node01"):
        measure(StepTest(PLAN, BOTH), Halting(slower()), PLAN.rounds)


@pytest.mark.parametrize("harm", ["", *HARMS])
def test_simulated_fleets(harm: str) -> None:
    """Small ones, with a seed; the rates are those of ``make bench NAME=rollout``."""
    ended = roll(fleet(3, harm, NAMES, noisy=False, silent=-1), NAMES, PLAN, 3)
    assert ended.harmful_kept == 0
    assert ended.gain_kept > 0.6


def step(state: str, *outcomes: RolledNode) -> RolloutStep:
    return RolloutStep(number=1, nodes=[], started_at="", state=state, outcomes=list(outcomes))


def test_who_goes_on_believes_the_nodes_and_not_what_was_about_to_be() -> None:
    """Killed between "proven" and "done", or booted since: what a node has now counts."""
    kept = [RolledNode(node=node, state="kept", hardware="A") for node in NAMES[:2]]
    harmed = RolledNode(node=NAMES[2], state="harmed", hardware="A")
    for state in ("proven", "done"):
        assert still_known([step(state, *kept, harmed)], {NAMES[0]}) == [[kept[0], harmed]]
    for state in ("halted", "interrupted"):
        assert still_known([step(state, *kept, harmed)], set(NAMES)) == []


def test_a_node_that_has_lost_it_is_tried_again() -> None:
    course = Course(PLAN, [kind("A", NAMES[:4])])
    for outcomes in still_known(
        [step("done", *(RolledNode(node=node, state="kept", hardware="A") for node in NAMES[:4]))],
        set(NAMES[1:4]),
    ):
        course.take(outcomes)
    ((node, partner, both),) = course.next(NAMES[:4])
    assert (node, both) == (NAMES[0], False)
    assert partner in NAMES[1:4]


def record(node: str, **facts: str) -> NodeRecord:
    unknown = {name.replace("_", "."): "needs root" for name, value in facts.items() if value == "?"}
    known = {name.replace("_", ".", 1): value for name, value in facts.items() if value != "?"}
    return NodeRecord(node=node, reachable=True, facts=known, unknown=unknown)


def test_nodes_are_told_apart_by_hardware_driver_and_firmware() -> None:
    records = [
        record("a", cpu_model="X", nic_firmware="1", nic_mtu="1500"),
        record("b", cpu_model="X", nic_firmware="1", nic_mtu="9000"),
        record("c", cpu_model="X", nic_firmware="2"),
        record("d", cpu_model="?", nic_firmware="1"),
    ]
    kinds = hardware(records, (), others=False)
    assert [(one.nodes, one.tried) for one in kinds] == [(["a", "b"], True), (["c"], False), (["d"], False)]
    assert kinds[1].facts == {"cpu.model": "X", "nic.firmware": "2"}
    assert [one.tried for one in hardware(records, (), others=True)] == [True, True, True]
    assert [one.tried for one in hardware(records, {made_of(records[2])}, others=False)] == [
        False,
        True,
        False,
    ]


def test_what_harmed_nodes_have_in_common_is_named() -> None:
    records = [
        record("a", nic_firmware="1", cpu_model="X", node_hostname="a"),
        record("b", nic_firmware="1", cpu_model="X", node_hostname="b"),
        record("c", nic_firmware="2", cpu_model="X", node_hostname="c"),
        record("d", nic_firmware="2", cpu_model="X", node_hostname="c"),
    ]
    assert in_common(records, {"c", "d"}, {"a", "b"}) == {"nic.firmware": "2"}
    assert in_common(records, {"c"}, {"a", "b"}) == {}
    # Where it is not known of a node that kept the change, it sets nothing apart.
    assert in_common([record("a"), *records[1:]], {"c", "d"}, {"a", "b"}) == {}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"settings": ["nic.mtu=9000"], "tuned": "r"}, "--from"),
        ({"resume": "r", "settings": ["nic.mtu=9000"]}, "--resume"),
        ({"margin": 0.0}, "--margin"),
        ({"check_within_s": 7200.0}, "--check-within"),
    ],
)
def test_requests_that_cannot_be(more, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        RolloutRequest(**more)


def test_a_plan_has_the_rules_of_its_request() -> None:
    plan: RolloutPlan = plan_of(RolloutRequest(canary=2, check="true"), {"k": "v"}, "runs/t", 5)
    assert (plan.canary, plan.check, plan.source, plan.settings) == (2, "true", "runs/t", {"k": "v"})
