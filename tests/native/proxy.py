"""A man in the middle with known faults: delays answers, drops datagrams, flips a byte."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: What becomes of an answer: other bytes, or None when it gets lost.
Fault = Callable[[bytes], bytes | None]
CHUNK = 1 << 17


def delay(seconds: float) -> Fault:
    """Hold every answer up."""

    def fault(answer: bytes) -> bytes:
        time.sleep(seconds)
        return answer

    return fault


def flip(size: int) -> Fault:
    """Change one payload byte of every message of `size` bytes; leave everything else alone."""

    def fault(answer: bytes) -> bytes:
        if len(answer) != size:
            return answer
        return answer[:-3] + bytes([answer[-3] ^ 0x10]) + answer[-2:]

    return fault


class DropEvery:
    """Lose every nth, and not more than so many."""

    def __init__(self, every: int, most: float = math.inf) -> None:
        self.every, self.most = every, most
        self.seen = 0
        self.dropped = 0

    def __call__(self, answer: bytes) -> bytes | None:
        self.seen += 1
        if self.seen % self.every or self.dropped >= self.most:
            return answer
        self.dropped += 1
        return None


class OvertakeEvery:
    """Hold every nth of a size back until the next has passed; the one after that is lost."""

    def __init__(self, every: int, size: int) -> None:
        self.every, self.size = every, size
        self.seen = 0
        self.held = b""
        self.overtaken = 0

    def __call__(self, datagram: bytes) -> bytes | None:
        if len(datagram) != self.size:
            return datagram
        self.seen += 1
        if self.seen % self.every == 0:
            self.held = datagram
            return None
        if self.held and self.seen % self.every == 2:
            self.overtaken += 1
            return self.held
        return datagram


def _pump_tcp(source: socket.socket, sink: socket.socket, fault: Fault | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            passed = fault(data) if fault else data
            if passed is not None:
                sink.sendall(passed)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _relay_tcp(front: socket.socket, port: int, fault: Fault | None) -> None:
    with contextlib.suppress(OSError):
        near, _ = front.accept()
        far = socket.create_connection(("127.0.0.1", port))
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        forward = threading.Thread(target=_pump_tcp, args=(near, far, None), daemon=True)
        forward.start()
        _pump_tcp(far, near, fault)
        forward.join()
        near.close()
        far.close()


def _relay_udp(front: socket.socket, back: socket.socket, fault: Fault | None, there: Fault | None) -> None:
    client: list[tuple[str, int]] = []

    def forward() -> None:
        with contextlib.suppress(OSError):
            while True:
                data, address = front.recvfrom(CHUNK)
                if not data:  # shut down
                    return
                client[:] = [address]
                passed = there(data) if there else data
                if passed is not None:
                    back.send(passed)

    threading.Thread(target=forward, daemon=True).start()
    while True:
        try:
            data = back.recv(CHUNK)
        except ConnectionRefusedError:
            continue
        except OSError:
            return
        if not data:  # shut down
            return
        passed = fault(data) if fault else data
        if passed is not None and client:
            front.sendto(passed, client[0])


@contextmanager
def proxy(
    port: int, tcp: Fault | None = None, udp: Fault | None = None, udp_there: Fault | None = None
) -> Iterator[int]:
    """Stand between a client and the server at `port`; yields the port to connect to.

    Faults are those of answers, `udp_there` is of what the client sends.
    """
    with (
        socket.socket() as listener,
        socket.socket(type=socket.SOCK_DGRAM) as front,
        socket.socket(type=socket.SOCK_DGRAM) as back,
    ):
        listener.bind(("127.0.0.1", 0))
        own = int(listener.getsockname()[1])
        front.bind(("127.0.0.1", own))
        listener.listen(1)
        back.connect(("127.0.0.1", port))
        relays = [
            threading.Thread(target=_relay_tcp, args=(listener, port, tcp)),
            threading.Thread(target=_relay_udp, args=(front, back, udp, udp_there)),
        ]
        for relay in relays:
            relay.start()
        try:
            yield own
        finally:
            for end in (listener, front, back):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for relay in relays:
                relay.join(5)
