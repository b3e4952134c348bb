"""Several senders to one receiver that begin together: what each visit met (docs/protocol.md), and what nodes count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError
from wulf.base.records import Place
from wulf.base.text import last_words, printable
from wulf.node.probe import parse
from wulf.node.probe.start import SILENCE_S, START_S, Site, start_net

#: Nodes say within so long what they have counted [s].
COUNT_WITHIN_S = 15.0
_COUNTERS = "cat /proc/net/snmp /proc/net/netstat; echo softnet; cat /proc/net/softnet_stat"
#: As the kernel calls them: protocol, and name.
_RETRANSMITTED, _TIMEOUTS = ("Tcp", "RetransSegs"), ("TcpExt", "TCPTimeouts")
_SOCKETS_FULL = ("Udp", "RcvbufErrors")


class Visit(msgspec.Struct, frozen=True, tag="incast", tag_field="type"):
    """What one visit met."""

    size: int
    senders: int
    #: Of each iteration: how long it took, and of bursts how many bytes have arrived.
    times_ns: list[int]
    arrived: list[int]
    #: Segments that each sender has sent again.
    again: list[int]


class Counts(NamedTuple):
    """What a node has counted since it was booted."""

    retransmitted: int
    timeouts: int
    #: Datagrams that a socket had no room for, and packets that the kernel had none for.
    sockets_full: int
    backlog_full: int

    def since(self, before: Counts) -> Counts:
        """Return what has come to it."""
        return Counts(*(now - then for now, then in zip(self, before, strict=True)))


_visit = msgspec.json.Decoder(Visit)


def measure(
    site: Site, place: Place, op: str, sizes: Sequence[int], *, sweeps: int, visit_us: int, seed: int
) -> dict[int, list[Visit]]:
    """Have all nodes of a place but the first send to it; return the visits of each size, without those of warming up.

    Raises
    ------
    ProbeError
        It failed; says why.
    TransportError
        A node does not answer.
    """
    arguments = [
        *("--op", op, "--sizes", ",".join(map(str, sizes)), "--sweeps", str(sweeps)),
        *("--visit-us", str(visit_us), "--reference-us", "0", "--seed", str(seed)),
    ]
    visits: dict[int, list[Visit]] = defaultdict(list)
    with start_net(site, place, arguments) as client:
        for line in client.lines(SILENCE_S, START_S + SILENCE_S * len(sizes)):
            if line.startswith(b'{"type":"incast"'):
                visit = _decoded(line)
                visits[visit.size].append(visit)
                continue
            said = parse.message(line)
            if isinstance(said, parse.ErrorLine):
                raise ProbeError(f"{said.peer or place[0]}: {said.message}")
            if isinstance(said, parse.End):
                return {size: of_size[-sweeps:] for size, of_size in visits.items()}
        why = last_words(client.stderr()) or "no message"
    raise ProbeError(f"{place[0]}: the probe ended early: {why}")


def _decoded(line: bytes) -> Visit:
    try:
        return _visit.decode(line)
    except msgspec.DecodeError as error:
        raise ProbeError(f"the probe broke its protocol ({error}): {printable(line, 120)!r}") from error


def counts(transport: Transport, nodes: Sequence[str]) -> dict[str, Counts]:
    """Return what each node has counted; one that does not say it is missing."""
    answers = transport.run(["sh", "-c", _COUNTERS], list(nodes), timeout_s=COUNT_WITHIN_S)
    found = {}
    for node, answer in answers.items():
        counted = parsed(answer.stdout.decode(errors="replace")) if answer.status == "ok" else None
        if counted is not None:
            found[node] = counted
    return found


def parsed(text: str) -> Counts | None:
    """Return the counts that a node prints; None where one is not among them."""
    tables, _, softnet = text.partition("softnet\n")
    values = dict(_named(tables.splitlines()))
    wanted = [values.get(name) for name in (_RETRANSMITTED, _TIMEOUTS, _SOCKETS_FULL)]
    retransmitted, timeouts, full = wanted
    try:
        # A line for each CPU, in hexadecimal; the second column is what was dropped.
        backlog = sum(int(line.split()[1], 16) for line in softnet.splitlines())
    except (ValueError, IndexError):
        return None
    if retransmitted is None or timeouts is None or full is None:
        return None
    return Counts(retransmitted, timeouts, full, backlog)


def _named(lines: Sequence[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield names and values of tables whose lines come in twos: ``Tcp: name …``, ``Tcp: value …``."""
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        protocol, _, rest = names.partition(":")
        numbers = values.partition(":")[2].split()
        for name, number in zip(rest.split(), numbers, strict=False):
            if number.lstrip("-").isdecimal():
                yield (protocol, name), int(number)


def grown(before: Mapping[str, Counts], after: Mapping[str, Counts], nodes: Sequence[str]) -> Counts | None:
    """Return what some nodes together have counted in between; None where one of them has not said it."""
    if not set(nodes) <= before.keys() & after.keys():
        return None
    each = [after[node].since(before[node]) for node in nodes]
    return Counts(*map(sum, zip(*each, strict=True)))
