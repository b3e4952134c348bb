"""Traffic between the nodes that a launch leaves free, for as long as it measures: streams, or the same as it does.

A figure beside traffic without traffic would be false: a stream that does not run from before the launch until after it
fails the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from wulf.base.contracts import RemoteProcess
from wulf.base.errors import ProbeError, TransportError
from wulf.base.records import Pair, Traffic
from wulf.base.text import last_line
from wulf.node.probe import parse
from wulf.node.probe.schedule import LaunchPlan
from wulf.node.probe.start import (
    PEER_TIMEOUT_S,
    SILENCE_S,
    START_S,
    Site,
    client_argv,
    new_token,
    serve,
    server_port,
)

OPERATION = "tcp_stream"
_MESSAGE_BYTES = 128 << 10
#: The operation makes visits five times as long, and between two it is silent for some round trips only.
_VISIT_US = 20_000
#: Hours of them: the stream is ended when the launch is over.
_SWEEPS = 100_000


class Streams:
    """The streams beside one launch."""

    def __init__(self, streams: Sequence[_Stream]) -> None:
        self._streams = streams

    def check(self) -> None:
        """Hear what the streams have said, without waiting; raise ProbeError where one has ended."""
        for stream in self._streams:
            stream.hear()

    def carried(self) -> list[Traffic]:
        """Return what each stream has carried, as soon as all have gone on after this was asked.

        Raises
        ------
        ProbeError
            One does not go on; names its nodes.
        """
        self.check()
        for stream in self._streams:
            stream.go_on()
        return [stream.carried() for stream in self._streams]


class _Stream:
    """A socket probe that streams from one node to another."""

    def __init__(self, pair: Pair, process: RemoteProcess) -> None:
        self._pair, self._process = pair, process
        self._first: parse.Progress | None = None
        self._last: parse.Progress | None = None

    def go_on(self) -> None:
        """Wait until it has moved something more."""
        try:
            for line in self._process.lines(SILENCE_S, START_S):
                if self._take(line):
                    return
        except TransportError as error:
            raise self._failed(f"fell silent: {error}") from error
        raise self._failed(f"ended early: {last_line(self._process.stderr()) or 'no message'}")

    def hear(self) -> None:
        """Take what it has said by now."""
        try:
            for line in self._process.ready():
                self._take(line)
        except TransportError as error:
            raise self._failed(f"cannot be read: {error}") from error

    def carried(self) -> Traffic:
        """Return what it has moved from the first time that it said so to the last."""
        if self._first is None or self._last is None or self._last.at_us <= self._first.at_us:
            raise self._failed("has moved nothing")
        return Traffic(
            pair=self._pair,
            moved_bytes=self._last.moved_bytes - self._first.moved_bytes,
            lasted_s=1e-6 * (self._last.at_us - self._first.at_us),
        )

    def _take(self, line: bytes) -> bool:
        """Take a line; whether it says that more has been moved."""
        said = parse.message(line)
        if isinstance(said, parse.ErrorLine):
            raise self._failed(f"ended early: {said.message}")
        if isinstance(said, parse.End):
            raise self._failed("ended before the launch that it was to accompany")
        # Its warm-up has pauses.
        if not isinstance(said, parse.Progress) or said.visits_done == 0:
            return False
        self._first = self._first or said
        self._last = said
        return True

    def _failed(self, what: str) -> ProbeError:
        return ProbeError(f"what runs beside it from {self._pair[0]} to {self._pair[1]} {what}")


@contextmanager
def traffic(plan: LaunchPlan, site: Site) -> Iterator[Streams]:
    """Have the pairs of nodes that a plan names stream to each other; none where it names none.

    Raises
    ------
    ProbeError
        A stream does not come up; names its nodes.
    """
    with ExitStack() as running:
        # All begin to start before the first one is waited for.
        tokens = [new_token() for _ in plan.beside]
        servers = [
            running.enter_context(serve(site, pair, token))
            for pair, token in zip(plan.beside, tokens, strict=True)
        ]
        streams = []
        for pair, token, server in zip(plan.beside, tokens, servers, strict=True):
            argv = client_argv(site, pair, [server_port(server, pair[1])], _arguments(plan))
            streams.append(
                _Stream(pair, running.enter_context(site.transport.start(argv, pair[0], line=token)))
            )
        for stream in streams:
            stream.go_on()
        yield Streams(streams)


def _arguments(plan: LaunchPlan) -> list[str]:
    sizes = ",".join(map(str, plan.sizes_bytes)) if plan.beside_op else _MESSAGE_BYTES
    words = {
        "--op": plan.beside_op or OPERATION,
        "--sizes": sizes,
        "--sweeps": _SWEEPS,
        "--visit-us": plan.visit_us if plan.beside_op else _VISIT_US,
        "--reference-us": 0,
        "--seed": plan.seed,
        "--peer-timeout": PEER_TIMEOUT_S,
    }
    return [str(word) for option in words.items() for word in option]
