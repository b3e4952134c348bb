"""The site's own command between the steps of a roll-out: simulated nodes, real commands and a real course."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tests.unit.test_rollout import Bench, kind, slower
from wulf.base.contracts import NodeResult
from wulf.base.errors import EXIT_ERROR, TransportError
from wulf.base.records import SCHEMA_VERSION, ChangeOutcome, NodeRecord
from wulf.base.text import printable
from wulf.node.change.transaction import StepError
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.transport.local import LocalTransport
from wulf.node.fleet import change
from wulf.node.trials.bench import TrialError
from wulf.tools.rollout import page, stepping
from wulf.tools.rollout.measuring import NodeBench, Where
from wulf.tools.rollout.record import CheckRun, Rollout, RolloutManifest
from wulf.tools.rollout.request import RolloutRequest
from wulf.tools.rollout.schedule import Course, HaltError
from wulf.tools.rollout.site_check import PAIRS, SiteCheck
from wulf.tools.rollout.store import RolloutWriter, load_rollout
from wulf.tools.rollout.work import Rolling, exit_code, plan_of

NODES = [f"node{number:02}" for number in range(1, 9)]
CONFIG = ClusterConfig(name="t", nodes=tuple(NODES), transport="local")


class Nodes(LocalTransport):
    """Nodes of which some may be dead; commands run on this machine."""

    def __init__(self) -> None:
        super().__init__(CONFIG)
        self.dead: set[str] = set()

    def run(self, argv: Sequence[str], nodes: Sequence[str], **more: Any) -> dict[str, NodeResult]:
        found = super().run(argv, nodes, **more)
        for node in self.dead & set(found):
            found[node] = msgspec.structs.replace(
                found[node], status="unreachable", reason=f"{node}: no route"
            )
        return found

    def start(self, argv: Sequence[str], node: str, *, env: Mapping[str, str] | None = None) -> Any:
        if node in self.dead:
            raise TransportError(f"{node}: no route")
        return super().start(argv, node, env=env)


class World:
    """Simulated nodes: who has the change on trial is in one file, who has it for good in another."""

    def __init__(self, directory: Path) -> None:
        self.on_trial, self.kept = directory / "on-trial", directory / "kept"
        self.nodes = Nodes()
        self.refuses, self.outlasts = "", False
        self.has([], self.on_trial)
        self.has([], self.kept)

    def has(self, nodes: Collection[str], place: Path) -> None:
        place.write_text("".join(f"{node}\n" for node in sorted(nodes)))

    def where(self) -> Where:
        records = [NodeRecord(node=node, reachable=True) for node in NODES]
        return Where(
            config=CONFIG, transport=self.nodes, guards=cast("Any", None), records=records,
            tools=cast("Any", None), wanted=[],
        )  # fmt: skip

    def make(self, _guards: object, _config: object, nodes: Sequence[str], **_: object) -> ChangeOutcome:
        self.has([*self.kept.read_text().split(), *nodes], self.kept)
        return ChangeOutcome(change=f"change-of-{nodes[0]}", kept=True, nodes=[])

    def roll_back(self, *given: Any, **_: object) -> ChangeOutcome:
        nodes, name = given[3], given[4]
        self.has(set(self.kept.read_text().split()) - set(nodes), self.kept)
        return ChangeOutcome(change=name, kept=True, nodes=[])

    @contextmanager
    def opened(self, *_: object) -> Iterator[NodeBench]:
        try:
            yield cast("NodeBench", WorldBench(self))
        finally:
            self.has([], self.on_trial)


class WorldBench(Bench):
    """All measure the change as harmless; what the check finds is another thing."""

    def __init__(self, world: World) -> None:
        super().__init__(slower())
        self._world = world

    def have(self, nodes: Collection[str]) -> None:
        if self._world.refuses and nodes:
            raise StepError(self._world.refuses)
        self._world.has(nodes, self._world.on_trial)

    @contextmanager
    def held(self, silence_s: float) -> Iterator[None]:
        yield
        if self._world.outlasts:
            raise TrialError(f"it took {silence_s:.0f} s")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(stepping, "opened", made.opened)
    monkeypatch.setattr(Where, "plan", lambda _, nodes: nodes)
    monkeypatch.setattr(change, "make", made.make)
    monkeypatch.setattr(change, "roll_back", made.roll_back)
    return made


def plan(check: str, within_s: float = 20.0) -> Any:
    request = RolloutRequest(
        settings=["nic.mtu=9000"], check=check, check_within_s=within_s, canary=2, growth=2
    )
    return plan_of(request, {"nic.mtu": "9000"}, "", 1)


def once(world: World, check: str, within_s: float = 20.0) -> CheckRun:
    return SiteCheck(world.where(), plan(check, within_s)).run(NODES[1:3], changed=True)


@pytest.mark.parametrize(
    ("check", "passed", "said"),
    [
        ('test "$WULF_NODES" = "node[02-03]"', True, ""),
        ("exec >&- 2>&-", True, ""),
        ("sleep 60 & exit 0", True, ""),  # what it leaves is ended with it
        ("head -c 100000 /dev/urandom; echo; printf '\\nwulf-run-time 1 2 3\\n'", True, ""),
        ("head -c 100000 /dev/urandom >&2; printf '\\377\\033[2J' >&2; exit 3", False, "exit code 3"),
        ("echo node03 is too slow; exit 1", False, "exit code 1: node03 is too slow"),
        ("echo much; echo that is why >&2; exit 1", False, "exit code 1: that is why"),
        ("kill -9 $$", False, "exit code 137 (SIGKILL)"),
        ("kill -KILL 0", False, ""),
        ("./no-such-check", None, "exit code 127"),
        ("/etc/passwd", None, "exit code 126"),
    ],
)  # fmt: skip
def test_how_a_check_ends(world: World, check: str, passed: bool | None, said: str) -> None:
    found = once(world, check)
    assert found.passed is passed, found
    assert said in found.reason and len(found.reason) <= 301
    assert found.reason == printable(found.reason) and (passed or found.reason)


@pytest.mark.parametrize("check", ["sleep 60", "sleep 60 & wait", "while :; do echo yes; done"])
def test_a_check_that_does_not_end_has_failed(world: World, check: str) -> None:
    found = once(world, check, within_s=1.0)
    assert (found.passed, found.run_time_s) == (False, None) and found.reason


def test_a_check_on_a_node_that_does_not_answer_says_nothing(world: World) -> None:
    world.nodes.dead = {NODES[1]}
    assert once(world, "true").passed is None


def test_a_check_of_a_step_runs_with_the_change_and_without_it(world: World) -> None:
    done: list[CheckRun] = []
    on_trial = f"cat {world.on_trial} >>{world.on_trial}.log; echo . >>{world.on_trial}.log"
    SiteCheck(world.where(), plan(on_trial)).between(WorldBench(world), NODES[:2], done)
    assert sorted(run.changed for run in done) == [False] * PAIRS + [True] * PAIRS
    seen = Path(f"{world.on_trial}.log").read_text().split(".\n")[:-1]
    assert seen == ["".join(f"{node}\n" for node in NODES[:2]) * run.changed for run in done]


def test_a_check_that_takes_longer_with_the_change_halts(world: World) -> None:
    check = SiteCheck(
        world.where(), plan(f"if test -s {world.on_trial}; then sleep 0.4; else sleep 0.01; fi")
    )
    with pytest.raises(HaltError, match="takes longer with the change"):
        for _ in range(30):
            check.between(WorldBench(world), NODES[:2], [])


def test_a_change_that_is_not_taken_or_not_held_fails_no_check(world: World) -> None:
    for world.refuses, world.outlasts in (("node01: no", False), ("", True)):
        done: list[CheckRun] = []
        with pytest.raises(HaltError, match="could not be run"):
            SiteCheck(world.where(), plan("true")).between(WorldBench(world), NODES[:2], done)
        assert done[-1].passed is None


class Quiet:
    """Says nothing."""

    def __call__(self, text: str) -> None:
        del text

    def note(self, text: str) -> None:
        del text


def roll(world: World, directory: Path, check: str) -> Rollout:
    """Roll out on all nodes, in steps of two, four and two."""
    rules = plan(check)
    kinds = [kind("A", NODES)]
    manifest = RolloutManifest(
        schema_version=SCHEMA_VERSION, id="r", created_at="", updated_at="", status="running",
        wulf_version="", command_line=[], operations=[], cluster="", software={}, plan=rules,
        nodes=NODES, hardware=kinds,
    )  # fmt: skip
    with RolloutWriter.create(directory / "r", manifest) as writer:
        found = Rolling(world.where(), writer, Course(rules, kinds), [], Quiet()).run()
    assert load_rollout(directory / "r").result == found
    page.build(found)
    # What the record says of the nodes is what they have.
    having = {one.node for one in found.nodes if one.state == "kept"}
    assert set(world.kept.read_text().split()) == having
    assert not world.on_trial.read_text()
    return found


#: What of the nodes are, in shell: whether the step has the change, and how many have it for good.
WITH_IT, KEPT = "test -s {0.on_trial}", "$(wc -l <{0.kept})"


@pytest.mark.parametrize(
    ("check", "kept", "said"),
    [
        ("true", 8, ""),
        ("false", 0, "fails before the change"),
        ("./no-such-check", 0, "could not be run before the change"),
        # It dies wherever the change is.
        (f"if {WITH_IT}; then kill -9 $$; fi", 0, "fails with the change of this step: "),
        # It fails from the second step on, with the change.
        (f"if {WITH_IT} && test {KEPT} -ge 2; then exit 1; fi", 2, "fails with the change of this step: "),
        # It is gone in the second step.
        (f"if test {KEPT} -ge 2; then exit 127; fi", 2, "could not be run"),
        # What was kept in the first step makes it fail in the second, with the change and without.
        (f"test {KEPT} -lt 2", 0, "the earlier steps were put back"),
        (f"if {WITH_IT}; then test {KEPT} -lt 6; else test {KEPT} -lt 6; fi", 0, "were put back"),
        # It fails for good in the second step, whatever is put back.
        ("if test {1} -ge 2; then touch {0.kept}.bad; fi; test ! -e {0.kept}.bad", 0, "put back; it still fails"),
        # One node is bad: it is seen only in its step, with the change.
        (f"if {WITH_IT} && grep -q node05 {{0.on_trial}}; then echo node05 is ill; exit 1; fi", None, "node05 is ill"),
    ],
)  # fmt: skip
def test_what_a_check_halts_and_undoes(
    world: World, tmp_path: Path, check: str, kept: int | None, said: str
) -> None:
    found = roll(world, tmp_path, check.format(world, KEPT.format(world)))
    assert said in found.reason
    assert (found.status, exit_code(found)) == (("halted", EXIT_ERROR) if said else ("complete", 0))
    having = [one.node for one in found.nodes if one.state == "kept"]
    if kept is None:
        assert "node05" not in having and len(having) in (0, 2, 6)
    else:
        assert len(having) == kept
    assert len(found.changes) == len([step for step in found.steps if step.state == "done"])
    if said:
        assert all(one.reason for one in found.nodes if one.state != "kept")


def test_earlier_steps_that_cannot_be_put_back_are_named(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = ChangeOutcome(change="", kept=False, reason="node01: locked", nodes=[])
    monkeypatch.setattr(change, "roll_back", lambda *_, **__: outcome)
    found = roll(world, tmp_path, f"test {KEPT} -lt 2".format(world))
    assert found.status == "halted"
    assert any("still have change" in note for step in found.steps for note in step.notes)
