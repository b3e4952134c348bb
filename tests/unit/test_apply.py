"""A change of several nodes as one transaction, on real guards in namespaces."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.namespaces import Nodes
from wulf.node.change import apply
from wulf.node.change.guard import Guards
from wulf.node.change.steps import Step

pytestmark = pytest.mark.root

FIN = "net.ipv4.tcp_fin_timeout"


def interrupt() -> dict[str, str]:
    raise KeyboardInterrupt


def test_a_second_ctrl_c_says_what_the_nodes_do_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = Nodes(tmp_path, ["a", "b"])
    try:
        before = nodes.on("a", "sysctl", "-n", FIN).stdout
        guards = Guards(nodes, "me")
        real = guards.call

        def impatient(names: Sequence[str], *words: str, **more: object):  # type: ignore[no-untyped-def]
            return interrupt() if words[0] == "undo" else real(names, *words, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(guards, "call", impatient)
        step = Step(knob="tcp.fin_timeout", kind="sysctl", interface="-", target=FIN, value="33")
        with pytest.raises(apply.Interrupted) as caught:
            apply.change(guards, {"a": [step], "b": [step]}, deadline_s=5, live=interrupt)
        outcome = caught.value.outcome
        assert [(node.node, node.state) for node in outcome.nodes] == [("a", "unknown"), ("b", "unknown")]
        assert "by itself within 5 s" in (outcome.nodes[0].reason or "")
        end = time.monotonic() + 30
        while nodes.on("a", "sysctl", "-n", FIN).stdout != before:
            assert time.monotonic() < end, "the node did not keep its word"
            time.sleep(0.2)
    finally:
        nodes.end()
