"""What nodes take while something runs, as they measure it: CPUs by energy counters (RAPL), the whole node by IPMI."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from wulf.base.contracts import Transport
from wulf.base.errors import WulfError
from wulf.base.output_values import Unknown, number
from wulf.base.records import NodesPower
from wulf.node.facts import energy
from wulf.node.facts.capture import scripts
from wulf.node.facts.tree import Tree

#: From one look to the next [s]: a counter of energy comes round after minutes.
EVERY_S = 10.0
ASK_S = 20.0
#: A run is so much of the time in which its energy was counted, at least.
RUNNING = 0.8
_LOOK = b"""export LC_ALL=C
energy "$1"
node_power
date +'#time%n %s%N'
"""


def script() -> bytes:
    """Return what a node's shell runs for a look; its argument stands before /sys, for trees that were captured."""
    return scripts("energy.sh") + _LOOK


class Reading(NamedTuple):
    """What a node says at a time."""

    at_s: float
    #: Domain → energy since some time, and where it comes round [J]; empty where there is a `lack`.
    joules: energy.Joules
    #: Of the whole node [W]; None where there is a `node_lack`.
    node_w: float | None
    #: What was looked at and says nothing; empty where it does.
    lack: str = ""
    node_lack: str = ""


def parse(text: str) -> Reading | None:
    """Return what the script printed; None where it did not come complete."""
    tree = Tree(text)
    try:
        at_s = number(tree.text("time"), "the time") * 1e-9
    except Unknown:
        return None
    joules, node_w, lack, node_lack = energy.Joules(), None, "", ""
    try:
        joules = energy.joules(tree.lines("energy"))
    except Unknown as reason:
        lack = str(reason)
    try:
        node_w = number(tree.text("node_power"), "the node's power")
    except Unknown as reason:
        node_lack = str(reason)
    return Reading(at_s, joules, node_w, lack, node_lack)


def cpu_watts(readings: Sequence[Reading]) -> float:
    """Return the mean power of a node's CPUs [W].

    Raises
    ------
    Unknown
        The readings do not say it; names why.
    """
    for one in readings:
        if one.lack:
            raise Unknown(one.lack)
    if len(readings) < 2:
        raise Unknown("fewer than two readings")
    lasted_s = readings[-1].at_s - readings[0].at_s
    if lasted_s <= 0:
        raise Unknown("its clock went backwards from one reading to the other")
    return (
        sum(
            energy.spent(before.joules, after.joules, after.at_s - before.at_s)
            for before, after in pairwise(readings)
        )
        / lasted_s
    )


def node_watts(readings: Sequence[Reading]) -> float:
    """Return the mean power of a whole node [W].

    Raises
    ------
    Unknown
        A reading does not say it; names why.
    """
    watts = []
    for one in readings:
        if one.node_w is None:
            raise Unknown(one.node_lack or "a reading without the node's power")
        watts.append(one.node_w)
    if not watts:
        raise Unknown("it has not answered")
    return statistics.fmean(watts)


def of_nodes(readings: Mapping[str, Sequence[Reading]]) -> NodesPower:
    """Return what all nodes took together, as far as all of them say it."""
    cpu_w, lacks = _total(cpu_watts, readings)
    node_w, node_lacks = _total(node_watts, readings)
    return NodesPower(cpu_w=cpu_w, node_w=node_w, lacks=lacks, node_lacks=node_lacks)


def _total(
    watts: Callable[[Sequence[Reading]], float], readings: Mapping[str, Sequence[Reading]]
) -> tuple[float | None, dict[str, str]]:
    """Return the power of all nodes, None where a node does not say its own; and node → why not."""
    found, lacks = [], {}
    for node, several in readings.items():
        try:
            found.append(watts(several))
        except Unknown as reason:
            lacks[node] = str(reason)
    return sum(found) if found and not lacks else None, lacks


#: Readings of the whole node's power that have a mean to speak of, at least.
FEWEST = 3


def joules(readings: Mapping[str, Sequence[Reading]], of: Literal["cpu", "node"], run_s: float) -> float:
    """Return the energy of a run [J]: the mean power of all nodes meanwhile, for as long as it ran.

    Parameters
    ----------
    of
        CPUs and their memory (RAPL), or whole nodes (IPMI).
    run_s
        Of what ran, without its start.

    Raises
    ------
    Unknown
        A node does not say it; names what was looked at.
    """
    found = of_nodes(readings)
    watts, lacks = (found.cpu_w, found.lacks) if of == "cpu" else (found.node_w, found.node_lacks)
    if watts is None:
        raise Unknown("; ".join(f"{node}: {why}" for node, why in lacks.items()) or "no node was looked at")
    longest_s = max(several[-1].at_s - several[0].at_s for several in readings.values())
    if run_s < RUNNING * longest_s:
        raise Unknown(f"it ran {run_s:.1f} of the {longest_s:.1f} s between the first and the last look")
    fewest = min(map(len, readings.values()))
    if of == "node" and fewest < FEWEST:
        raise Unknown(
            f"{fewest} readings of a node's power, {EVERY_S:g} s apart, are too few: {FEWEST} at least"
        )
    return watts * run_s


class Meter:
    """Looks at the nodes now and then while something runs on them."""

    def __init__(self, transport: Transport, nodes: Sequence[str]) -> None:
        self._transport = transport
        self.readings: dict[str, list[Reading]] = {node: [] for node in nodes}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_again, daemon=True)

    def __enter__(self) -> Meter:
        """Look for the first time, and begin to look again and again."""
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look for the last time."""
        self._over.set()
        self._thread.join()
        self._look()

    def power(self) -> NodesPower:
        """Return what the nodes took meanwhile."""
        return of_nodes(self.readings)

    def _look_again(self) -> None:
        while not self._over.wait(EVERY_S):
            self._look()

    def _look(self) -> None:
        try:
            answers = self._transport.run(
                ["sh", "-s", "--", ""], list(self.readings), timeout_s=ASK_S, stdin=script()
            )
        except WulfError:
            return  # what is missing is said: it is no reason to end what is measured
        for node, answer in answers.items():
            found = parse(answer.stdout.decode(errors="replace")) if answer.status == "ok" else None
            if found is not None:
                self.readings[node].append(found)
