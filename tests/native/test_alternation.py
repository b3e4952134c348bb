"""Two settings in one launch: each has its own cells, and is made when the probe asks for it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.native.conftest import MpiProbe
from tests.native.probe import TIMEOUT_S, client, lines_of, run, secret, server
from tests.tiers import mostly_thorough

ARMS = (
    "--sweeps",
    "12",
    "--arms",
    "abba",
    "--dwell-sweeps",
    "3",
    "--settle-sweeps",
    "1",
    "--visit-us",
    "500",
)


@contextmanager
def guard(place: Path, answer: str = "ok") -> Iterator[list[str]]:
    """Stand in for a node's guard; yields the letters that it was asked for."""
    asked: list[str] = []
    for end in ("ask", "answer"):
        os.mkfifo(f"{place}.{end}")

    # Open for both, from the beginning to the end: what is written between two reads would be lost with its reader.
    requests = os.fdopen(os.open(f"{place}.ask", os.O_RDWR))

    def listen() -> None:
        while (letter := requests.readline().strip()) != "end":
            asked.append(letter)
            with suppress(OSError):  # who asked has gone
                end = os.open(f"{place}.answer", os.O_WRONLY | os.O_NONBLOCK)
                os.write(end, f"{answer}\n".encode())
                os.close(end)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield asked
    finally:
        Path(f"{place}.ask").write_text("end\n")
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        requests.close()


def test_both_sides_have_either_setting_made(net_probe: Path, tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    with guard(near) as here, guard(far) as there, server(net_probe, "--alternate", str(far)) as (_, port):
        lines = run(client(net_probe, port, "tcp_rr", "64,1024", *ARMS, "--alternate", str(near)))
    assert here == there == list("abba")
    found = [line for line in lines if line["type"] == "cell"]
    assert [(line["arm"], line["size"]) for line in found] == [
        (arm, size) for arm in "ab" for size in (64, 1024)
    ]
    # Two dwells of each, without what settles.
    assert all(len(line["batch_medians_ns"]) == 4 for line in found)
    references = [line for line in lines if line["type"] == "reference"]
    assert [line["arm"] for line in references] == ["a", "b"]
    assert all([len(values) for values in line["medians_ns"]] == [12, 12] for line in references)


def test_without_a_guard_both_are_the_same_setting(mpi_probe: MpiProbe) -> None:
    lines = run(mpi_probe.argv(4, "--op", "mpi_pingpong", "--sizes", "0,64", "--at-once", *ARMS))
    found = [(line["arm"], *line["ranks"], line["size"]) for line in lines if line["type"] == "cell"]
    assert sorted(found) == sorted(
        (arm, first, first + 1, size) for arm in "ab" for first in (0, 2) for size in (0, 64)
    )
    assert lines[-1]["type"] == "end"


@pytest.mark.parametrize("side", mostly_thorough(["near", "far"], "near"))
def test_a_setting_that_is_not_made_ends_the_launch(net_probe: Path, tmp_path: Path, side: str) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    says = {"near": "ok", "far": "ok", side: "the driver refuses"}
    with (
        guard(near, says["near"]),
        guard(far, says["far"]),
        server(net_probe, "--alternate", str(far)) as (_, port),
        secret() as stdin,
    ):
        argv = client(net_probe, port, "tcp_rr", "64", *ARMS, "--alternate", str(near))
        done = subprocess.run(argv, stdin=stdin, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 3
    line = lines_of(done.stdout)[-1]
    assert line["type"] == "error"
    if side == "near":
        assert line["code"] == "setting"
        assert "the driver refuses" in line["message"]


def test_nobody_who_makes_them_is_named(net_probe: Path, tmp_path: Path) -> None:
    argv = [str(net_probe), "--op", "empty", "--sizes", "0", *ARMS, "--alternate", str(tmp_path / "none")]
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 3
    assert "none.answer: No such file" in lines_of(done.stdout)[-1]["message"]
    os.mkfifo(tmp_path / "gone.ask")
    os.mkfifo(tmp_path / "gone.answer")
    argv[-1] = str(tmp_path / "gone")
    done = subprocess.run(argv, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert "no guard listens" in lines_of(done.stdout)[-1]["message"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--arms", "aaaa"), "--arms: give letters a and b"),
        (("--arms", "abc"), "--arms: give letters a and b"),
        (("--arms", "ab", "--sweeps", "5"), "--sweeps: must be --dwell-sweeps for each of --arms"),
        (("--arms", "ab", "--sweeps", "2", "--settle-sweeps", "1"), "--settle-sweeps: must be fewer"),
    ],
)
def test_what_cannot_be_is_refused(net_probe: Path, words: tuple[str, ...], complaint: str) -> None:
    argv = [net_probe, "--op", "empty", "--sizes", "0", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
