"""What if: changes of the calibrated network, as a user writes them.  Pure.

``10gbe`` is a network by its name; ``latency=5us``, ``latency=+5us``, ``latency=x0.5``, ``latency=5us..100us``,
``bandwidth=x2``, ``overhead=x0.5`` and ``compute=x0.9`` change the calibrated one; ``10gbe+latency=x2`` is both.
``buffer=64KiB`` gives the switch's port to each receiver a buffer of that size, and ``rto=5ms`` the timeout after which
what it lost comes again.
``@RUN`` is the network of another calibrated run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wulf.base.errors import UsageError
from wulf.base.networks import Between, Bounds, NamedNetwork, Stretch
from wulf.base.text import printable
from wulf.base.units import format_bytes, format_time, parse_duration, parse_size
from wulf.stats.prediction.draws import Draw, Likely, at_end, bounded
from wulf.stats.prediction.network import Link, Network, Piece, Pieces, at, faster, free, only_wire, scaled

#: A range of latencies is looked at in so many places, each as many times the one before.
STEPS = 5
BOUND = "ideal network"
#: Whether a call that goes on while its message leaves waits for the wire: what is drawn of it, and the middle.
_HELD, _WAITS = "held by the wire", 0.5
#: Between changes of one network; what follows '=' is part of a change: latency=+5us.
_AND = re.compile(r"(?<!=)\+")
_FACTOR = re.compile(r"x([0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_HOW = (
    "write the name of a network, latency=5us, latency=+5us, latency=x0.5, latency=5us..100us, bandwidth=x2, "
    "overhead=x0.5, compute=x0.9 or buffer=64KiB, several for one network with + between them; or "
    "@RUN, another calibrated run"
)

#: Name → network, and where it is not known an error that says what there is.
Find = Callable[[str], NamedNetwork]
Change = Callable[[Network, Draw], Network]
#: Name of a calibrated run → what it measured, as a change of any network to it.
Calibrated = Callable[[str], Change]


class NotToldError(UsageError):
    """A question about a parameter that the calibration does not tell."""


@dataclass(frozen=True)
class Scenario:
    """One network that is asked about."""

    name: str
    title: str
    changes: tuple[Change, ...]
    #: The networks by name that it is of.
    of: tuple[NamedNetwork, ...] = ()

    def network(self, base: Network, draw: Draw | None = None) -> Network:
        """Return what the calibrated network becomes."""
        for change in self.changes:
            base = change(base, draw or Likely())
        return base


def parse(text: str, find: Find, calibrated: Calibrated) -> list[Scenario]:
    """Return what a list asks about, with commas between.

    Raises
    ------
    UsageError
        A part of it is not understood, or there is no such network.
    """
    found = [
        one for part in text.split(",") if part.strip() for one in _scenarios(part.strip(), find, calibrated)
    ]
    if not found:
        raise UsageError(f"--what-if {text!r} asks nothing; {_HOW}")
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--what-if has {twice} twice")
    return found


def _scenarios(part: str, find: Find, calibrated: Calibrated) -> Iterator[Scenario]:
    begun = [Scenario("", "", ())]
    first, *others = _AND.split(part)
    whole = next((word.strip() for word in others if "=" not in word), None)
    if whole is not None:
        raise UsageError(
            f"--what-if {printable(part, 60)}: {printable(whole, 60)} is a whole network and would replace what "
            "stands before it: it comes first, and one is enough"
        )
    for word in (first, *others):
        begun = [_and(one, more) for one in begun for more in _one(word.strip(), find, calibrated)]
    if any(word.strip().startswith("rto=") for word in (first, *others)) and "buffer=" not in part:
        raise UsageError(
            f"--what-if {printable(part, 60)}: no timeout without a buffer that is full: buffer=64KiB+rto=5ms"
        )
    yield from begun


def _and(first: Scenario, then: Scenario) -> Scenario:
    return Scenario(
        name="+".join(filter(None, (first.name, then.name))),
        title=", ".join(filter(None, (first.title, then.title))),
        changes=(*first.changes, *then.changes),
        of=(*first.of, *then.of),
    )


def _one(word: str, find: Find, calibrated: Calibrated) -> list[Scenario]:
    if word.startswith("@"):
        return [
            Scenario(word, f"the network that {printable(word[1:], 60)} measured", (calibrated(word[1:]),))
        ]
    key, equals, value = word.partition("=")
    if not equals:
        network = find(word)
        return [Scenario(network.id, network.title, (_replaced(network),), (network,))]
    if key == "latency":
        return [_latency(change, shown) for change, shown in _latencies(value)]
    if key == "buffer":
        return [_buffer(parse_size(value))]
    if key == "rto":
        return [_timeout(parse_duration(value))]
    makes = {"bandwidth": _bandwidth, "overhead": _overhead, "compute": _compute}
    if key not in makes:
        raise UsageError(f"--what-if: there is no '{printable(key, 40)}' to change; {_HOW}")
    factor = _factor(value)
    if factor is None:
        raise UsageError(f"--what-if {printable(word, 60)}: write {key}=x2 for twice as much; {_HOW}")
    titles = {"bandwidth": "bandwidth", "overhead": "CPU time of messages", "compute": "compute time"}
    return [Scenario(f"{key}=x{factor:g}", f"{factor:g} times the {titles[key]}", (makes[key](factor),))]


def _factor(text: str) -> float | None:
    found = _FACTOR.fullmatch(text)
    return float(found[1]) if found and float(found[1]) > 0 else None


def _latencies(text: str) -> Iterator[tuple[Callable[[float], float], str]]:
    factor = _factor(text)
    if factor is not None:
        yield (lambda now: now * factor), f"x{factor:g}"
        return
    if text.startswith("x"):
        raise UsageError(f"--what-if latency={printable(text, 60)}: write latency=x0.5 for half of it")
    further = text.startswith("+")
    low, dots, high = text.removeprefix("+").partition("..")
    if re.fullmatch(r"[0-9.]+", low) or re.fullmatch(r"[0-9.]+", high):
        raise UsageError(f"--what-if latency={printable(text, 60)}: a latency has a unit, such as 5us")
    first = parse_duration(low)
    last = parse_duration(high) if dots else first
    if first > last:
        raise UsageError(f"--what-if latency={printable(text, 60)}: the smaller latency comes first")
    for value in np.geomspace(first, last, STEPS if last > first else 1):
        shown = format_time(float(value)).replace(" ", "")
        yield (_more(value * 1e9), f"+{shown}") if further else (_constant(value * 1e9), shown)


def bound() -> Scenario:
    """Return what no network is better than: messages between nodes take no time."""
    return Scenario(BOUND, "no message between nodes takes any time", (_free,))


def _free(network: Network, draw: Draw) -> Network:  # noqa: ARG001 - there is nothing to draw
    return replace(network, between=free(network.between), connecting_ns=0.0)


def by_bandwidth_alone(network: Network) -> Network:
    """Return a network on which messages between nodes take their size at the bandwidth, and nothing else any time."""
    return Network(only_wire(network.between), _free_within(network), compute=0.0)


def by_computing_alone(network: Network) -> Network:
    """Return a network on which nothing but computing takes any time."""
    return replace(
        network,
        between=free(network.between),
        within=_free_within(network),
        reduce_ns_per_byte=0.0,
        making_ns=0.0,
        connecting_ns=0.0,
    )


def _free_within(network: Network) -> Link | None:
    return None if network.within is None else free(network.within)


#: What makes of a network what it cannot take less than.
ALONE = (by_bandwidth_alone, by_computing_alone)


def with_bandwidth(network: Network, factor: float, waits: float = _WAITS) -> Network:
    """Return a network of so many times the bandwidth between nodes, all else as it is.

    Parameters
    ----------
    waits
        Whether a call that goes on while its message leaves waits for the wire (1), or is the CPU's work (0).
    """
    link = network.between
    return _with(
        network,
        # Of a link that lets bursts through it is bytes alone, those of frames among them.
        wire=scaled(link.wire, 1 / factor) if link.burst else faster(link.wire, factor),
        after=_after(link, 1.0, 1 / factor, waits),
        # What passes as a burst are so many bytes, whatever the rate.
        depth_ns=link.depth_ns / factor,
    )


def _after(link: Link, cpu: float, wire: float, waits: float) -> Pieces:
    """Return what keeps the sender when a message has left, where the CPU's work and the wire take so many times it.

    What grows with their size is either's: of messages that wait for their receivers it is the wire's time of the
    message the other way, or that of CPUs that send and receive at once; not the way and the receive of that message.
    """
    empty = at(link.after, 0) if link.after else 0.0
    grows = waits * wire + (1 - waits) * cpu

    def changed(one: Piece) -> Piece:
        before, then = empty, empty * cpu
        if one.from_bytes > link.eager_bytes:
            comes = link.latency_ns + at(link.receive, one.from_bytes)
            before = then = min(comes, at(link.after, one.from_bytes))
        return Piece(one.from_bytes, then + (one.base_ns - before) * grows, one.per_byte_ns * grows)

    return tuple(changed(one) for one in link.after)


def _constant(value: float) -> Callable[[float], float]:
    return lambda _: value


def _more(value: float) -> Callable[[float], float]:
    return lambda now: now + value


def _told(network: Network, parameter: str, asked: str) -> None:
    why = network.between.not_told.get(parameter)
    if why is not None:
        raise NotToldError(f"{asked} is not answered: {why}")


def _latency(new: Callable[[float], float], shown: str) -> Scenario:
    def change(network: Network, draw: Draw) -> Network:
        if shown.startswith("x"):
            _told(network, "latency", f"latency={shown}")
        # What a message takes stays the same where more of it is latency, and less the sender's CPU.
        more = at_end(draw.of("leaves"), 0.0) * network.between.latency_span_ns
        return _with(network, latency_ns=max(new(network.between.latency_ns + more) - more, 0.0))

    return Scenario(f"latency={shown}", f"latency {shown}", (change,))


def _bandwidth(factor: float) -> Change:
    def change(network: Network, draw: Draw) -> Network:
        _told(network, "bandwidth", f"bandwidth=x{factor:g}")
        return with_bandwidth(network, factor, at_end(draw.of(_HELD), _WAITS))

    return change


def _overhead(factor: float) -> Change:
    return lambda network, draw: _with(
        network,
        send=scaled(network.between.send, factor),
        receive=scaled(network.between.receive, factor),
        busy=scaled(network.between.busy, factor),
        after=_after(network.between, factor, 1.0, at_end(draw.of(_HELD), _WAITS)),
        answering_ns=factor * network.between.answers[0],
        answered_ns=factor * network.between.answers[1],
    )


def _buffer(size: int) -> Scenario:
    shown = format_bytes(size).replace(" ", "")
    return Scenario(
        f"buffer={shown}",
        f"{format_bytes(size)} of buffer before each receiver",
        (lambda network, _: _with(network, buffer_bytes=float(size)),),
    )


def _timeout(timeout_s: float) -> Scenario:
    shown = format_time(timeout_s)
    return Scenario(
        f"rto={shown.replace(' ', '')}",
        f"lost messages come again after {shown}",
        (lambda network, _: _with(network, timeout_ns=timeout_s * 1e9),),
    )


def _compute(factor: float) -> Change:
    return lambda network, _: replace(network, compute=network.compute * factor)


def _with(network: Network, **changed: object) -> Network:
    return replace(network, between=replace(network.between, **changed))  # type: ignore[arg-type]


def _replaced(named: NamedNetwork) -> Change:
    return lambda network, draw: replace(network, between=drawn(named.id, named.between, draw))


def drawn(name: str, known: Between, draw: Draw) -> Link:
    """Return the link of a network by name; each of its parameters is drawn by itself."""

    def value(what: str, bounds: Bounds) -> float:
        return bounded(bounds, draw.of(f"{name} {what}"))

    def pieces(what: str, stretches: Sequence[Stretch]) -> Pieces:
        return tuple(
            Piece(
                one.from_bytes,
                value(f"{what} base", one.base_us) * 1e3,
                value(f"{what} each", one.ns_per_byte),
            )
            for one in stretches
        )

    return Link(
        latency_ns=value("latency", known.latency_us) * 1e3,
        eager_bytes=known.eager_bytes,
        send=pieces("send", known.send),
        receive=pieces("receive", known.receive),
        wire=pieces("wire", known.wire),
    )
