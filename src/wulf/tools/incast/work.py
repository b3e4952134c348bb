"""Have more and more nodes send to one, and judge what that takes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError, TransportError, UsageError
from wulf.base.nodeset import reasons_text
from wulf.base.records import SCHEMA_VERSION
from wulf.base.text import WAS, count, printable
from wulf.base.tool import Progress
from wulf.node.fleet import allocation, preparation
from wulf.node.fleet.clusters import config_of
from wulf.node.fleet.new_run import new_seed
from wulf.node.probe import many_to_one
from wulf.node.probe.many_to_one import Counts, Visit
from wulf.node.probe.start import Site
from wulf.tools.incast import judging
from wulf.tools.incast.judging import FEWEST_ROUNDS, PROBE_BYTES, Met, Round
from wulf.tools.incast.lacking import lacking
from wulf.tools.incast.record import BurstsSeen, Depth, Incast, RemedyKind, SenderCounts
from wulf.tools.incast.remedies import remedies
from wulf.tools.incast.request import IncastRequest

TRANSFERS, BURSTS = "tcp_incast", "udp_incast"
#: Senders to one at most: a probe that receives has a connection to each.
MOST_SENDERS = 63
#: So many numbers of senders are measured at most, and rounds.
NUMBERS, MOST_ROUNDS = 12, 12
SWEEPS, VISIT_US = 2, 4_000
#: Datagrams as large as a usual frame carries, and how many of them the bursts of a sender are.
DATAGRAM_BYTES, SHORTEST, LONGEST = 1472, 1, 2048
BURST_SWEEPS, BURST_US = 4, 1_000
#: Sizes of the second look, from the largest burst that arrives whole to three times the smallest that does not.
CLOSER, BEYOND = 8, 3


@dataclass
class _Taken:
    """What has been measured so far."""

    rounds: list[Round] = field(default_factory=list)
    evidence: dict[int, list[tuple[int, Counts]]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def find(request: IncastRequest, say: Progress) -> Incast:
    """Measure and judge transfers of many to one.

    Raises
    ------
    UsageError
        There are fewer than three nodes, or the receiver is none of them.
    TransportError
        Fewer than three nodes answer.
    """
    config = config_of(request.cluster)
    nodes = config.select(request.nodes)
    receiver = request.to or nodes[0]
    if receiver not in nodes:
        raise UsageError(f"--to {receiver}: it is none of the nodes")
    if len(nodes) < 3 or config.transport == "local":
        raise UsageError("incast takes a receiver and two senders: three nodes")
    tools = preparation.toolbox([TRANSFERS, BURSTS], None, say)
    with preparation.connect(config, nodes, say) as (transport, records):
        ready = preparation.ready(config, transport, records, tools, say)
        lacks = {record.node: record.error or "does not answer" for record in records if not record.reachable}
        lacks |= {one.node: one.reason for one in ready.left_out}
        senders = [node for node in nodes if node != receiver and node not in lacks][:MOST_SENDERS]
        if receiver in lacks or len(senders) < 2:
            raise TransportError(f"a receiver and two senders are needed: {reasons_text(lacks)}")
        run = _Run(request, ready.where, transport, receiver, senders, say)
        run.taken.missing += [f"{node}: {printable(why, 200)}" for node, why in lacks.items()]
        there = [record for record in records if record.node in (receiver, *senders)]
        return run.whole(lambda: lacking(transport, there))


def numbers(senders: int) -> list[int]:
    """Return with how many senders it is tried: all numbers, or of many some that are evenly spread."""
    if senders <= NUMBERS:
        return list(range(1, senders + 1))
    return sorted({round(senders ** (place / (NUMBERS - 1))) for place in range(NUMBERS)})


def lengths() -> list[int]:
    """Return how many datagrams the bursts of a sender have at first."""
    return [SHORTEST << step for step in range(LONGEST.bit_length())]


def closer(lossy: int) -> set[int]:
    """Return lengths about the shortest burst that lost something, and beyond it."""
    return {round(lossy / 2 * (2 * BEYOND) ** (place / (CLOSER - 1))) for place in range(CLOSER)}


class _Run:
    """Measures on a cluster that is ready."""

    def __init__(
        self,
        request: IncastRequest,
        where: Site,
        transport: Transport,
        receiver: str,
        senders: list[str],
        say: Progress,
    ) -> None:
        self._request, self._where, self._transport = request, where, transport
        self._receiver, self._senders, self._say = receiver, senders, say
        self._seed = new_seed(request.seed)
        self._launches = 0
        self.taken = _Taken()

    def whole(self, lacking: Callable[[], Mapping[RemedyKind, str]]) -> Incast:
        """Measure everything, and judge it; `lacking` is asked where something breaks, for what cannot be tried."""
        time_left = allocation.Rounds(allocation.capped(self._request.budget_s, self._say.note))
        deep = self._depth()
        self._rounds(time_left)
        found, rate = judging.cells(self.taken.rounds)
        if not found:
            self.taken.missing.append(
                f"{count(len(self.taken.rounds), 'round', verbs=WAS)} measured, and judging takes {FEWEST_ROUNDS}: "
                "a larger --budget"
            )
        cliffs = judging.cliffs(found)
        return Incast(
            schema_version=SCHEMA_VERSION,
            receiver=self._receiver,
            senders=self._senders,
            rounds=len(self.taken.rounds),
            rate=rate,
            cells=found,
            cliffs=cliffs,
            depth=deep,
            evidence=list(self._evidence()),
            remedies=remedies(found, cliffs, deep, lacking() if cliffs else {}),
            missing=list(dict.fromkeys(self.taken.missing)),
        )

    def _rounds(self, time_left: allocation.Rounds) -> None:
        """Measure all numbers of senders in turn, each round in an order of its own, while there is time."""
        order = random.Random(self._seed)  # noqa: S311 - reproducible, not secret
        counts = numbers(len(self._senders))
        while len(self.taken.rounds) < MOST_ROUNDS and time_left.another():
            self._say(
                f"{count(len(self._senders), 'sender')} to {self._receiver}: round {len(self.taken.rounds) + 1}"
            )
            met: dict[tuple[int, int], Met] = {}
            for many in order.sample(counts, len(counts)):
                met |= self._transfers(order.sample(self._senders, many))
            self.taken.rounds.append(met)

    def _transfers(self, senders: Sequence[str]) -> dict[tuple[int, int], Met]:
        """Measure transfers of all sizes from some senders."""
        sizes = [PROBE_BYTES, *sorted(set(self._request.sizes_bytes) - {PROBE_BYTES})]
        counted: list[Counts] = []
        visits = self._launch(
            senders, TRANSFERS, sizes, sweeps=SWEEPS, visit_us=VISIT_US, nodes=senders, take=counted.append
        )
        met = {(len(senders), size): _met(of_size) for size, of_size in visits.items()}
        made = sum(len(one.times_s) for one in met.values())
        self.taken.evidence.setdefault(len(senders), []).extend((made, one) for one in counted)
        return met

    def _launch(
        self,
        senders: Sequence[str],
        op: str,
        sizes: Sequence[int],
        *,
        sweeps: int,
        visit_us: int,
        nodes: Sequence[str],
        take: Callable[[Counts], None],
    ) -> dict[int, list[Visit]]:
        """Make one launch; `take` receives what `nodes` have counted meanwhile, where they say it."""
        self._launches += 1
        place = (self._receiver, *senders)
        before = many_to_one.counts(self._transport, nodes)
        try:
            seed = (self._seed + self._launches) & (2**63 - 1)
            visits = many_to_one.measure(
                self._where, place, op, sizes, sweeps=sweeps, visit_us=visit_us, seed=seed
            )
        except (ProbeError, TransportError) as error:
            self.taken.missing.append(f"{count(len(senders), 'sender')}: {printable(str(error), 200)}")
            return {}
        grown = many_to_one.grown(before, many_to_one.counts(self._transport, nodes), nodes)
        if grown is not None:
            take(grown)
        return visits

    def _evidence(self) -> Iterator[SenderCounts]:
        for senders, parts in sorted(self.taken.evidence.items()):
            if len(parts) == len(self.taken.rounds):
                yield SenderCounts(
                    senders=senders,
                    transfers=sum(made for made, _ in parts),
                    retransmitted=sum(counted.retransmitted for _, counted in parts),
                    timeouts=sum(counted.timeouts for _, counted in parts),
                )

    def _depth(self) -> Depth:
        """Look with bursts of all sizes, then closer at where they begin to lose."""
        self._say(f"bursts from {count(len(self._senders), 'sender')} to {self._receiver}")
        counted: list[Counts] = []
        seen = self._bursts(lengths(), counted)
        lossy = [length for length, burst in seen.items() if not burst.whole]
        if lossy:
            seen |= self._bursts(sorted(closer(min(lossy)) - seen.keys()), counted)
        return judging.depth(list(seen.values()), _spoiled(counted, looks=2 if lossy else 1))

    def _bursts(self, lengths: Sequence[int], counted: list[Counts]) -> dict[int, BurstsSeen]:
        """Return what arrives of bursts of so many datagrams from each sender."""
        sizes = {length * DATAGRAM_BYTES: length for length in lengths}
        if not sizes:
            return {}
        visits = self._launch(
            self._senders,
            f"{BURSTS}:{DATAGRAM_BYTES}",
            sorted(sizes),
            sweeps=BURST_SWEEPS,
            visit_us=BURST_US,
            nodes=[self._receiver],
            take=counted.append,
        )
        return {sizes[size]: _burst(size * len(self._senders), of_size) for size, of_size in visits.items()}


def _met(visits: Sequence[Visit]) -> Met:
    times = [one for visit in visits for one in visit.times_ns]
    return Met(np.array(times) * 1e-9, sum(sum(visit.again) for visit in visits))


def _burst(sent_bytes: int, visits: Sequence[Visit]) -> BurstsSeen:
    return BurstsSeen(
        sent_bytes=judging.on_wire(sent_bytes, DATAGRAM_BYTES),
        arrived_bytes=[judging.on_wire(came, DATAGRAM_BYTES) for visit in visits for came in visit.arrived],
    )


def _spoiled(counted: Sequence[Counts], looks: int) -> str:
    """Return why what bursts lose is not the switch's doing; empty where nothing speaks for that."""
    if len(counted) < looks:
        return "the receiver does not say what it has lost itself"
    if any(one.sockets_full for one in counted):
        return "the receiver's own sockets were full: raise its net.core.rmem_max"
    if any(one.backlog_full for one in counted):
        return "the receiver's kernel dropped packets itself: raise its net.core.netdev_max_backlog"
    return ""
