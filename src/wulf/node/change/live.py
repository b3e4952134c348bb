"""Whether a change has its effect on the wire, and not only in a file: checks before and after it.

A check is found by the name that the catalogue gives a knob (`Knob.live`): its first half runs before the change,
what that returns runs after it.
"""

from __future__ import annotations

import functools
import ipaddress
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources

import msgspec

from wulf.base.contracts import NodeResult, Transport
from wulf.base.interfaces import Interface, by_interface
from wulf.base.text import last_line
from wulf.node.change.steps import KnobSetting

TIMEOUT_S = 30.0
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?")

#: Node → why there is no effect; empty when all is well.
Reasons = dict[str, str]
After = Callable[[], Reasons]


class EffectProbe(msgspec.Struct, frozen=True, kw_only=True):
    """Where a change takes place."""

    transport: Transport
    nodes: Sequence[str]
    #: All nodes, in the order in which they are each other's neighbours: name → address, or a name that the nodes
    #: resolve themselves.
    addresses: Mapping[str, str]
    #: Interface of the cluster's network; None when only the routes say which.
    interface: Interface

    @property
    def has_neighbours(self) -> bool:
        """Whether there is anybody to talk to."""
        return len(self.addresses) > 1

    def ask(self, what: str, value: str, nodes: Sequence[str] | None = None) -> dict[str, NodeResult]:
        """Let every node do something with the next one."""
        listed = "\n".join(f"{name} {address}" for name, address in self.addresses.items())
        text = f"nodes={shlex.quote(listed)}\n{script()}"
        found: dict[str, NodeResult] = {}
        for name, named in by_interface(self.interface, self.nodes if nodes is None else nodes).items():
            argv = ["sh", "-s", "--", what, value, name or ""]
            found |= self.transport.run(argv, named, timeout_s=TIMEOUT_S, stdin=text.encode())
        return found


def own_addresses(transport: Transport, nodes: Sequence[str], interface: Interface) -> dict[str, str]:
    """Ask nodes for their IPv4 addresses on an interface; a node that has none, or does not answer, is left out."""
    answers: dict[str, NodeResult] = {}
    for name, named in by_interface(interface, nodes).items():
        argv = ["sh", "-s", "--", "own", "-", name or ""]
        answers |= transport.run(argv, named, timeout_s=TIMEOUT_S, stdin=script().encode())
    found = {node: answer.stdout.decode(errors="replace").strip() for node, answer in answers.items()}
    return {node: address for node, address in found.items() if _is_address(address)}


def checks(effect_probe: EffectProbe, wanted: Sequence[KnobSetting]) -> After:
    """Look at what must have changed afterwards; the returned function looks again and compares."""
    if not effect_probe.has_neighbours:
        return dict  # with whom?
    afters = [
        _CHECKS[knob_setting.knob.live](effect_probe, knob_setting.value)
        for knob_setting in wanted
        if knob_setting.knob.live
    ]

    def after() -> Reasons:
        found: Reasons = {}
        for check in afters:
            found |= check()
        return found

    return after


def _mtu(effect_probe: EffectProbe, value: str) -> After:
    """Let every node send its neighbour a packet of the whole MTU that must not be cut."""
    return lambda: failed(effect_probe.ask("carries", str(int(value) - 28)))


def _tracking(effect_probe: EffectProbe, value: str) -> After:
    """Look whether the count of tracked connections stands still while neighbours talk."""

    def after() -> Reasons:
        answers = effect_probe.ask("tracks", "-")
        numbers = _numbers(answers)
        found = failed(answers) | _unreadable(answers, numbers)
        for node, growth in numbers.items():
            if value == "notrack" and growth >= 5:
                found[node] = f"{growth:.0f} new connections were tracked while it talked to its neighbour"
        return found

    return after


def _interrupts(effect_probe: EffectProbe, value: str) -> After:
    """Look whether a longer delay makes fewer interrupts; an interface without any of its own is not asked."""
    before = _numbers(effect_probe.ask("interrupts", "-"))

    def after() -> Reasons:
        answers = effect_probe.ask("interrupts", "-")
        numbers = _numbers(answers)
        wanted_us = float(value) if value.replace(".", "").isdigit() else math.nan
        # A flood waits for each answer: both ends' delays bound its rate.
        limit = math.inf if not wanted_us else 2e6 / wanted_us
        found = failed(answers) | _unreadable([node for node in answers if node in before], numbers)
        return found | {
            node: f"{rate:.0f} interrupts/s under a flood, {before[node]:.0f} before; {value} µs allow {limit:.0f}"
            for node, rate in numbers.items()
            if before.get(node, 0) > 0 and rate > limit
        }

    return after


_CHECKS: Mapping[str, Callable[[EffectProbe, str], After]] = {
    "mtu": _mtu,
    "tracking": _tracking,
    "interrupts": _interrupts,
}


def failed(answers: Mapping[str, NodeResult]) -> Reasons:
    """Return the nodes that did not do what they were asked, and what they say."""
    return {
        node: last_line(answer.stderr) or answer.reason
        for node, answer in answers.items()
        if answer.status != "ok"
    }


def _numbers(answers: Mapping[str, NodeResult]) -> dict[str, float]:
    """Return the numbers of those that said one."""
    found = {}
    for node, answer in answers.items():
        words = answer.stdout.decode(errors="replace").split()
        if answer.status == "ok" and words and _NUMBER.fullmatch(words[-1]):
            found[node] = float(words[-1])
    return found


def _unreadable(answers: Iterable[str], numbers: Mapping[str, float]) -> Reasons:
    return {node: "its answer is not a number" for node in answers if node not in numbers}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


@functools.cache
def script() -> str:
    """Return the text that nodes run."""
    return resources.files("wulf.node.change").joinpath("live.sh").read_text()
