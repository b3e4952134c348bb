"""Whether a change has its effect on the wire, and not only in a file: checks before and after it.

A check is found by the name that the catalogue gives a knob (`Knob.live`): its first half runs before the change,
what that returns runs after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from importlib import resources

import msgspec

from wulf.change.steps import Wanted
from wulf.ports import NodeResult, Transport
from wulf.text import last_line

TIMEOUT_S = 30.0

#: Node → why there is no effect; empty when all is well.
Reasons = dict[str, str]
After = Callable[[], Reasons]


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change takes place."""

    transport: Transport
    nodes: Sequence[str]
    #: Addresses of all nodes on the cluster's network, in any order.
    addresses: Sequence[str]
    interface: str

    def ask(self, what: str, value: str) -> dict[str, NodeResult]:
        """Let every node do something with the next one."""
        script = resources.files("wulf.change").joinpath("live.sh").read_bytes()
        argv = ["sh", "-s", "--", what, value, *self.addresses]
        return self.transport.run(argv, self.nodes, timeout_s=TIMEOUT_S, stdin=script)


def checks(scene: Scene, wanted: Sequence[Wanted]) -> After:
    """Look at what must have changed afterwards; the returned function looks again and compares."""
    if len(scene.addresses) < 2:
        return dict  # with whom?
    afters = [_CHECKS[wish.knob.live](scene, wish.value) for wish in wanted if wish.knob.live]

    def after() -> Reasons:
        found: Reasons = {}
        for check in afters:
            found |= check()
        return found

    return after


def _mtu(scene: Scene, value: str) -> After:
    """Let every node send its neighbour a packet of the whole MTU that must not be cut."""
    return lambda: _failed(scene.ask("carries", str(int(value) - 28)))


def _tracking(scene: Scene, value: str) -> After:
    """Look whether the count of tracked connections stands still while neighbours talk."""

    def after() -> Reasons:
        answers = scene.ask("tracks", "-")
        found = _failed(answers)
        for node, growth in _numbers(answers).items():
            if value == "notrack" and growth >= 5:
                found[node] = f"{growth:.0f} new connections were tracked while it talked to its neighbour"
        return found

    return after


def _interrupts(scene: Scene, value: str) -> After:
    """Look whether a longer delay makes fewer interrupts; an interface without any of its own is not asked."""
    before = _numbers(scene.ask("interrupts", scene.interface))

    def after() -> Reasons:
        answers = scene.ask("interrupts", scene.interface)
        wanted_us = float(value) if value.replace(".", "").isdigit() else math.nan
        # A flood waits for each answer: both ends' delays bound its rate.
        limit = math.inf if not wanted_us else 2e6 / wanted_us
        return _failed(answers) | {
            node: f"{rate:.0f} interrupts/s under a flood, {before[node]:.0f} before; {value} µs allow {limit:.0f}"
            for node, rate in _numbers(answers).items()
            if before.get(node, 0) > 0 and rate > limit
        }

    return after


_CHECKS: Mapping[str, Callable[[Scene, str], After]] = {
    "mtu": _mtu,
    "tracking": _tracking,
    "interrupts": _interrupts,
}


def _failed(answers: Mapping[str, NodeResult]) -> Reasons:
    return {
        node: last_line(answer.stderr) or answer.reason
        for node, answer in answers.items()
        if answer.status != "ok"
    }


def _numbers(answers: Mapping[str, NodeResult]) -> dict[str, float]:
    return {
        node: float(answer.stdout.decode().split()[-1])
        for node, answer in answers.items()
        if answer.status == "ok" and answer.stdout.strip()
    }
