"""What the socket probe does when the other side is gone, wrong or hostile."""

from __future__ import annotations

import random
import signal
import socket
import struct
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.native.probe import (
    TIMEOUT_S,
    TOKEN,
    Line,
    cells,
    client,
    lines_of,
    measuring,
    rest_of,
    run,
    secret,
    server,
)
from tests.tiers import mostly_thorough, thorough

ENDLESS = ("--sweeps", "100000", "--visit-us", "5000", "--peer-timeout")
#: Who waits so long for the other side does not come to the end of a test.
NEVER = "3600"
SHORT = ("--sweeps", "2", "--visit-us", "500")
REPLY_BYTES = 16 + 256 + 1024


def request(token: str = TOKEN, op: str = "tcp_rr", size: int = 4096) -> bytes:
    """Return a client's first message."""
    return struct.pack("<8s128s32sQII", b"WULFPRB1", token.encode(), op.encode(), size, 8, 1)


def command(kind: int, size: int, iterations: int) -> bytes:
    return struct.pack("<5Q", kind, size, iterations, 0, 1)


def no_sanitizer_report(stderr: bytes) -> None:
    assert b"Sanitizer" not in stderr, stderr.decode()
    assert b"runtime error" not in stderr, stderr.decode()


@pytest.mark.parametrize("op", mostly_thorough(["tcp_rr", "tcp_stream", "udp_rr"], "tcp_rr"))
@pytest.mark.parametrize(
    ("cause", "patience"),
    [
        (signal.SIGKILL, NEVER),  # the connection ends at once
        thorough(signal.SIGSTOP, "3"),
    ],
)
def test_names_a_peer_that_goes_away(net_probe: Path, op: str, cause: signal.Signals, patience: str) -> None:
    with (
        server(net_probe) as (process, port),
        measuring(client(net_probe, port, op, "1024", *ENDLESS, patience)) as near,
    ):
        process.send_signal(cause)
        last = rest_of(near)[-1]
    assert near.returncode == 3
    assert (last["code"], last["peer"]) == ("peer_lost", "far")
    assert "far" in last["message"]


def test_server_ends_when_its_client_is_killed(net_probe: Path) -> None:
    with server(net_probe, "--peer-timeout", NEVER) as (process, port):
        with measuring(client(net_probe, port, "tcp_rr", "1024", *ENDLESS, NEVER)) as near:
            near.kill()
        output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3
    assert lines_of(output)[-1]["code"] == "peer_lost"


def test_says_when_nobody_listens(net_probe: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        last = run(client(net_probe, closed.getsockname()[1], "tcp_rr", "8"), 3)[-1]
    assert (last["code"], last["peer"]) == ("refused", "far")


def test_says_when_it_cannot_listen(net_probe: Path) -> None:
    last = run([net_probe, "--server", "--bind", "192.0.2.1"], 3)[-1]
    assert last["code"] == "system"
    assert "192.0.2.1" in last["message"]


def test_turns_a_wrong_token_away_and_waits_for_the_right_one(net_probe: Path) -> None:
    with server(net_probe) as (_, port):
        argv = client(net_probe, port, "tcp_rr", "8", *SHORT)
        for wrong in ("bad0", TOKEN[:-1], TOKEN + "0"):
            assert run(argv, 3, wrong)[-1]["code"] == "token"
        assert cells(run(argv))


def test_silent_strangers_keep_nobody_waiting(net_probe: Path) -> None:
    # More than are heard at once; each would have taken 2 s in turn, and the client's patience is 30 s.
    with ExitStack() as strangers, server(net_probe) as (_, port):
        for number in range(70):
            stranger = strangers.enter_context(socket.create_connection(("127.0.0.1", port)))
            stranger.sendall(b"WULFPRB1"[: number % 9])
        argv = client(net_probe, port, "tcp_rr", "8", *SHORT, "--peer-timeout", "30")
        assert cells(run(argv))


def test_a_stranger_does_not_stay(net_probe: Path) -> None:
    with server(net_probe) as (_, port), socket.create_connection(("127.0.0.1", port)) as stranger:
        stranger.settimeout(TIMEOUT_S)
        assert stranger.recv(1) == b""


@pytest.mark.parametrize("line", ["", "\n", "not hex\n", "0" * 128 + "\n"])
@pytest.mark.parametrize(
    "role", [["--server"], ["--connect", "127.0.0.1:1", "--op", "tcp_rr", "--sizes", "8"]]
)
def test_takes_no_other_token(sanitized_probe: Path, role: list[str], line: str) -> None:
    argv = [sanitized_probe, *role, "--token-stdin"]
    done = subprocess.run(argv, input=line.encode(), capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 3
    assert "--token-stdin" in lines_of(done.stdout)[-1]["message"]


def test_serves_one_client_only(net_probe: Path) -> None:
    with server(net_probe) as (_, port), measuring(client(net_probe, port, "tcp_rr", "8", *ENDLESS, NEVER)):
        assert run(client(net_probe, port, "tcp_rr", "8", *SHORT), 3)[-1]["code"] == "refused"


@pytest.mark.parametrize("size", [0, 1 << 63, (16 << 20) + 1])
def test_refuses_an_impossible_size(sanitized_probe: Path, size: int) -> None:
    with server(sanitized_probe) as (_, port), socket.create_connection(("127.0.0.1", port)) as visitor:
        visitor.sendall(request(size=size))
        assert visitor.recv(REPLY_BYTES).startswith(b"size\0")


def test_survives_garbage_and_still_serves(sanitized_probe: Path) -> None:
    noise = random.Random(1)
    with server(sanitized_probe) as (process, port):
        for length in (0, 1, 7, 184, 5000):
            with socket.create_connection(("127.0.0.1", port)) as visitor:
                visitor.sendall(b"WULFPRB1"[: noise.randrange(9)] + noise.randbytes(length))
        with socket.socket(type=socket.SOCK_DGRAM) as visitor:
            for length in (0, 1, 8, 60000):
                visitor.sendto(noise.randbytes(length), ("127.0.0.1", port))
        found = cells(run(client(sanitized_probe, port, "udp_rr", "8,1024", *SHORT)))
        _, stderr = process.communicate(timeout=TIMEOUT_S)
    assert set(found) == {8, 1024}
    assert process.returncode == 0
    no_sanitizer_report(stderr)


def hostile_commands() -> list[bytes]:
    noise = random.Random(2)
    largest = (1 << 64) - 1
    impossible = [command(1, largest, 1), command(1, 4097, 1), command(1, 8, 0), command(1, 8, largest)]
    impossible += [command(4, 0, 0), command(4, largest, 0)]
    return [*impossible, command(1, 0, 5), command(7, 8, 1), *(noise.randbytes(40) for _ in range(3))]


@pytest.mark.parametrize("op", ["tcp_rr", "tcp_stream"])
def test_ends_in_order_on_hostile_commands(sanitized_probe: Path, op: str) -> None:
    for hostile in hostile_commands():
        with server(sanitized_probe) as (process, port):
            with socket.create_connection(("127.0.0.1", port)) as visitor:
                visitor.sendall(request(op=op) + hostile)
                output, stderr = process.communicate(timeout=TIMEOUT_S)
            last: Line = lines_of(output)[-1]
        assert process.returncode == 3
        assert last["code"] == "size"
        no_sanitizer_report(stderr)


def test_client_survives_a_hostile_server(sanitized_probe: Path) -> None:
    noise = random.Random(3)
    for length in (0, 100, REPLY_BYTES, 20000):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            argv = client(sanitized_probe, listener.getsockname()[1], "tcp_rr", "64", *SHORT)
            with (
                secret() as stdin,
                subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as near,
            ):
                connection, _ = listener.accept()
                connection.sendall(noise.randbytes(length))
                connection.close()
                output, stderr = near.communicate(timeout=TIMEOUT_S)
        assert near.returncode == 3
        assert lines_of(output)[-1]["type"] == "error"
        no_sanitizer_report(stderr)
