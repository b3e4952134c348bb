"""How settings follow each other on the nodes: parts of a change that stays open, as far as that is possible."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from wulf.base.records import NodeRecord, Part, Workload
from wulf.node.cluster import inventory
from wulf.node.trials import bench as module
from wulf.node.trials.bench import TrialRunner

SACK, IDLE, MTU = "sysctl.net.ipv4.tcp_sack", "sysctl.net.ipv4.tcp_slow_start_after_idle", "nic.mtu"
NODES = ("node01", "node02")


class Nodes:
    """In place of the change under trial: what is made, by the names of knobs."""

    held = True

    def __init__(self) -> None:
        self.open: list[str] = []
        self.made: list[str] = []
        self.changes = 0
        self.guards = SimpleNamespace(transport=None)

    def renew(self, silence_s: float = 0.0) -> None:
        """Nobody has to be told."""

    def set(self, plans, live, *, risky):
        self.changes += 1
        self.open = [step.knob for step in plans[NODES[0]]] if plans else []
        self.made = list(self.open)

    def make_part(self, numbers):
        assert set(numbers) == set(NODES)
        self.made = [self.open[number - 1] for number in numbers[NODES[0]]]

    def alternate(self, parts):
        self.arms = [[self.open[number - 1] for number in part] for part in parts[NODES[0]]]
        return "/run/place"

    def restore(self):
        self.open, self.made = [], []


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    monkeypatch.setattr(module.live, "checks", lambda *_: dict)
    monkeypatch.setattr(module.change, "effect_probe", lambda *_: None)
    facts = {
        SACK: "1",
        IDLE: "1",
        MTU: "1500",
        "nic.name": "eth0",
        "nic.driver": "veth",
        "nic.mtu_bytes": 1500,
    }
    records = [NodeRecord(node=node, reachable=True, facts=facts) for node in NODES]
    config = inventory.parse('[cluster]\nnodes = "node[01-02]"\ninterface = "eth0"\n', "test")
    made = TrialRunner(config, None, SimpleNamespace(transport=None), None, records, {})
    made._trial = Nodes()
    return made


def test_the_original_setting_is_a_part_of_the_change_before(bench):
    for setting, made, changes in (
        ({SACK: "0", IDLE: "0"}, [SACK, IDLE], 1),
        ({}, [], 1),
        ({IDLE: "0"}, [IDLE], 1),
        ({IDLE: "0", SACK: "0"}, [IDLE, SACK], 1),
        ({SACK: "0"}, [SACK], 1),
        ({}, [], 1),
    ):
        bench.set(setting)
        assert sorted(bench._trial.made) == sorted(made)
        assert bench._trial.changes == changes


def test_what_can_cut_a_node_off_is_made_and_undone_whole(bench):
    bench.set({MTU: "9000"})
    bench.set({})
    assert bench._trial.changes == 2
    assert bench._trial.open == []


def test_another_value_is_another_change(bench):
    bench.set({SACK: "0"})
    bench.set({})
    bench.set({IDLE: "0"})
    assert (bench._trial.changes, bench._trial.made) == (2, [IDLE])


def test_after_a_restore_nothing_is_a_part(bench):
    bench.set({SACK: "0"})
    bench.restore()
    bench.set({SACK: "0"})
    assert bench._trial.changes == 2


def alternated(bench, first, second, monkeypatch):
    launched = object()
    monkeypatch.setattr(bench, "_run", lambda *_: launched)
    monkeypatch.setattr(bench, "_watch_settling", lambda *_: None)
    monkeypatch.setattr(module, "_under", lambda result, _: result)
    monkeypatch.setattr(module._Gathered, "take", lambda *_: None)
    bench._dwell_sweeps["tcp_rr"] = 4
    workload = Workload(parts=[Part(op="tcp_rr", sizes_bytes=[64], places=[NODES])], sweeps=4, visit_us=1000)
    bench.alternate(first, second, workload, [], 4, 1)


def test_the_arms_of_a_launch_are_those_that_were_asked_for_whatever_is_open(bench, monkeypatch):
    bench.set({SACK: "0", IDLE: "0"})
    for first, second in (({SACK: "0"}, {}), ({}, {IDLE: "0"}), ({SACK: "0"}, {IDLE: "0"})):
        alternated(bench, first, second, monkeypatch)
        assert bench._trial.arms == [list(first), list(second)]
        assert bench._trial.changes == 1
    # Which arm was the last one is not known: the next setting is made whatever it is.
    bench._trial.made = ["?"]
    bench.set({SACK: "0", IDLE: "0"})
    assert sorted(bench._trial.made) == sorted([SACK, IDLE])


def test_a_setting_against_itself_is_made_before(bench, monkeypatch):
    bench.set({SACK: "0"})
    alternated(bench, {}, {}, monkeypatch)
    assert bench._trial.made == []
