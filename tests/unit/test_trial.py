"""Changes that are tried one after the other and never kept, on real guards in namespaces."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.unit.namespaces import Nodes
from wulf.base.contracts import NodeResult
from wulf.node.change.guard import STUCK, Answer, Guards
from wulf.node.change.steps import Step
from wulf.node.change.transaction import NotRestoredError, StepError
from wulf.node.change.trial import DEADLINE_S, Trial

pytestmark = pytest.mark.root

FIN, RETRIES = "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_retries2"


class Cluster(Nodes):
    """Nodes of which one can be unreachable for a word of the guard."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, ["a", "b"])
        self.before = self.values()
        #: (node, verb) that gets no answer, once.
        self.silent: tuple[str, str] | None = None
        #: What was run, and whether over new connections.
        self.ran: list[tuple[str, bool]] = []

    def run(self, argv: Sequence[str], nodes: Sequence[str], **more: object) -> dict[str, NodeResult]:  # type: ignore[override]
        self.ran.append((argv[4] if len(argv) > 4 else argv[0], bool(more.get("fresh"))))
        lost = [node for node in nodes if self.silent == (node, argv[4] if len(argv) > 4 else "")]
        found = super().run(argv, [node for node in nodes if node not in lost], **more)  # type: ignore[arg-type]
        for node in lost:
            self.silent = None
            found[node] = NodeResult(
                node=node,
                status="unreachable",
                exit_code=None,
                stdout=b"",
                stderr=b"",
                reason=f"{node}: lost",
            )
        return {node: found[node] for node in nodes}

    def values(self) -> dict[str, tuple[str, str]]:
        return {
            node: tuple(self.on(node, "sysctl", "-n", FIN, RETRIES).stdout.decode().split())  # type: ignore[misc]
            for node in ("a", "b")
        }


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.end()


def sysctl(target: str, value: str) -> list[Step]:
    return [Step(knob=f"tcp.{target[-8:]}", kind="sysctl", interface="-", target=target, value=value)]


@pytest.fixture
def trial(nodes: Cluster) -> Iterator[Trial]:
    made = Trial(Guards(nodes, "me"), ["a", "b"])
    made.take()
    yield made
    made.release()
    assert nodes.values() == nodes.before


def test_one_setting_after_the_other(nodes: Cluster, trial: Trial) -> None:
    trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}, dict, risky=False)
    assert {fin for fin, _ in nodes.values().values()} == {"33"}
    # The next one takes its place, and a node that it does not name is as it was originally.
    trial.set({"a": sysctl(RETRIES, "7")}, dict, risky=True)
    assert nodes.values() == {"a": (nodes.before["a"][0], "7"), "b": nodes.before["b"]}
    trial.set({}, dict, risky=False)
    assert nodes.values() == nodes.before


def test_connections_are_new_after_what_may_cut_off_and_after_the_way_back(
    nodes: Cluster, trial: Trial
) -> None:
    """One of before goes on to send segments of the size that passed then."""
    for value in ("33", "44"):
        trial.set({"a": sysctl(FIN, value)}, dict, risky=True)
        assert nodes.ran[-1] == ("extend", True)
    trial.set({"a": sysctl(RETRIES, "7")}, dict, risky=False)
    assert nodes.ran[-1] == ("extend", True)
    trial.set({}, dict, risky=False)
    assert not nodes.ran[-1][1]
    trial.set({"a": sysctl(FIN, "33")}, dict, risky=True)
    trial.set({}, dict, risky=False)
    assert nodes.ran[-2:] == [("undo", True), ("true", True)]


def test_without_its_effect_nothing_stays(nodes: Cluster, trial: Trial) -> None:
    trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}, dict, risky=False)
    with pytest.raises(StepError, match="b: nothing passes"):
        trial.set({"b": sysctl(FIN, "44")}, lambda: {"b": "nothing passes"}, risky=False)
    assert nodes.values() == nodes.before


def test_a_node_that_refuses_takes_it_from_the_others(nodes: Cluster, trial: Trial) -> None:
    with pytest.raises(StepError, match="b did not take it"):
        trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "no number")}, dict, risky=False)
    assert nodes.values() == nodes.before


def test_a_node_that_did_not_hear_of_the_next_one_is_put_back_too(nodes: Cluster, trial: Trial) -> None:
    trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}, dict, risky=False)
    nodes.silent = ("b", "swap")
    with pytest.raises(StepError, match="b did not take it: b: lost"):
        trial.set({"a": sysctl(FIN, "44"), "b": sysctl(FIN, "44")}, dict, risky=False)
    assert nodes.values() == nodes.before


def test_a_node_that_is_gone_is_waited_for_once(
    nodes: Cluster, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}, dict, risky=False)
    real, asked = trial.guards.call, []

    def gone(names: Sequence[str], *words: str, **more: object):  # type: ignore[no-untyped-def]
        asked.append((words[0], "b" in names))
        answers = real([name for name in names if name != "b"], *words, **more)  # type: ignore[arg-type]
        lost = Answer(node="b", code=None, lines=[], reason="b: no answer")
        return {name: answers.get(name, lost) for name in names}

    monkeypatch.setattr(trial.guards, "call", gone)
    # As long as a node takes to undo it by itself, without a test of that length.
    monkeypatch.setattr(trial, "_deadline_s", 0.2)
    monkeypatch.setattr("wulf.node.change.trial.RETRY_S", 0.1)
    monkeypatch.setattr("wulf.node.change.transaction.RETRY_S", 0.1)
    with pytest.raises(NotRestoredError, match="b: no answer"):
        trial.restore()
    assert asked.count(("undo", True)) > 2
    asked.clear()
    with pytest.raises(NotRestoredError, match="b: no answer"):
        trial.restore()
    assert asked == [("undo", True)]
    monkeypatch.undo()
    trial.restore()
    assert nodes.values() == nodes.before


def interrupt() -> dict[str, str]:
    raise KeyboardInterrupt


def test_ctrl_c_is_not_lost_and_a_node_that_is_stuck_is_not_forgotten(
    nodes: Cluster, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = trial.guards.call

    def stuck(names: Sequence[str], *words: str, **more: object):  # type: ignore[no-untyped-def]
        answers = real([name for name in names if (name, words[0]) != ("b", "undo")], *words, **more)  # type: ignore[arg-type]
        lost = Answer(node="b", code=STUCK, lines=[], reason="it cannot be put back")
        return {name: answers.get(name, lost) for name in names}

    monkeypatch.setattr(trial.guards, "call", stuck)
    both = {"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}
    with pytest.raises(KeyboardInterrupt) as caught:
        trial.set(both, interrupt, risky=False)
    assert any("b could not be put back" in note for note in caught.value.__notes__)
    assert nodes.values()["a"] == nodes.before["a"]
    for _ in range(2):
        with pytest.raises(NotRestoredError, match="b could not be put back"):
            trial.restore()
    monkeypatch.undo()
    trial.restore()
    assert nodes.values() == nodes.before


def test_parts_of_a_change_are_made_while_it_stays_open(nodes: Cluster, trial: Trial) -> None:
    both = [*sysctl(FIN, "33"), *sysctl(RETRIES, "7")]
    trial.set({"a": both, "b": both}, dict, risky=False)
    trial.make_part({"a": [1], "b": []})
    assert nodes.values() == {"a": ("33", nodes.before["a"][1]), "b": nodes.before["b"]}
    trial.make_part({"a": [1, 2], "b": [2]})
    assert nodes.values() == {"a": ("33", "7"), "b": (nodes.before["b"][0], "7")}


def test_a_part_that_a_node_does_not_make_is_taken_from_all(nodes: Cluster, trial: Trial) -> None:
    trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}, dict, risky=False)
    nodes.silent = ("b", "part")
    with pytest.raises(StepError, match="b did not take it: b: lost"):
        trial.make_part({"a": [1], "b": [1]})
    assert nodes.values() == nodes.before


def test_what_takes_long_is_held_when_that_is_said_before(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, later = time.monotonic, 0.0
    monkeypatch.setattr("wulf.node.change.trial.time.monotonic", lambda: real() + later)
    trial.set({"a": sysctl(FIN, "33")}, dict, risky=False)
    later += DEADLINE_S + 1
    assert not trial.held
    trial.renew(3 * DEADLINE_S)
    later += 2 * DEADLINE_S
    assert trial.held
    later += 2 * DEADLINE_S
    assert not trial.held
    trial.restore()
    assert trial.held


def test_nodes_that_were_not_taken_are_told_nothing(nodes: Cluster) -> None:
    never = Trial(Guards(nodes, "me"), ["a", "b"])
    nodes.silent = ("a", "lock")
    never.renew(10 * DEADLINE_S)
    assert nodes.silent == ("a", "lock")


def test_what_a_node_was_not_told_does_not_count(nodes: Cluster, trial: Trial) -> None:
    trial.set({"a": sysctl(FIN, "33"), "b": sysctl(FIN, "33")}, dict, risky=False)
    nodes.silent = ("b", "extend")
    before = trial._deadline_s, trial._renewed_s
    with pytest.raises(StepError, match="b: lost"):
        trial.renew(3 * DEADLINE_S)
    assert (trial._deadline_s, trial._renewed_s) == before
