"""Each system call of a guard fails in turn: nothing is granted, and nothing called done, that is not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.guard_place import SYSCTL, Place

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt install strace)"),
]

#: System call → how it fails.
CALLS = {
    "write": "ENOSPC",
    "openat": "EMFILE",
    "read": "EIO",
    "renameat": "ENOSPC",
    "mkdirat": "ENOSPC",
    "fsync": "EIO",
    "newfstatat": "EACCES",
    "getdents64": "EIO",
    "mmap": "ENOMEM",
    "connect": "ECONNREFUSED",
    "poll": "EINTR",
    "flock": "EINTR",
    "unlinkat": "EROFS",
    "prlimit64": "EPERM",
    "prctl": "EPERM",
    "setresuid": "EAGAIN",
    "chdir": "EACCES",
    "rt_sigaction": "EINVAL",
}
VERBS = ("begin", "apply", "confirm", "undo")
MOST = 120


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.done("lock", "me", "3600")
    yield made
    made.end()


def fails(place: Place, call: str, when: int, *words: str, stdin: str = "") -> tuple[int, str, bool]:
    """Let the guard do something while its n-th call of a kind fails; return code, answer, whether it was hit."""
    trace = place.directory / "trace"
    inject = f"inject={call}:error={CALLS[call]}:when={when}"
    argv = place.argv(*words)
    argv[4:4] = ["strace", "-qq", "-o", str(trace), "-e", f"trace={call}", "-e", inject]
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, "(INJECTED)" in trace.read_text()


def state(place: Place, change: str) -> str:
    try:
        return (place.state / "tx" / change / "state").read_text().split()[0]
    except (FileNotFoundError, IndexError):
        return ""


def judge(place: Place, verb: str, change: str, code: int, said: str) -> None:
    """What is said is so; and whatever it is, the way back is there."""
    value, word = place.value(), state(place, change)
    if code == 0:
        wanted = {"begin": ("1", "prepared"), "apply": ("0", "applied"), "confirm": ("0", "confirmed")}
        assert (value, word) == wanted.get(verb, ("1", "undone")), said
    if value == "0":
        assert word in ("applying", "applied", "undoing", "stuck", "confirmed"), (said, word)
    if word == "confirmed":
        place.done("rollback", f"{change}b", "me", "300", "original")
        place.done("apply", f"{change}b")
        place.done("confirm", f"{change}b")
    else:
        place.guard("undo", change)
        place.done("recover")
    assert place.value() == "1"
    assert state(place, change) in ("undone", "confirmed", ""), said


def met(place: Place, verb: str, call: str, when: int) -> bool:
    change = f"{verb}-{call}-{when}"
    place.done("lock", "me", "3600")  # what cannot be read of a deadline is over, and its owner gone
    step = f"k\tsysctl\t-\t{SYSCTL}\t0\n"
    for before in VERBS[: VERBS.index(verb) if verb != "undo" else 2]:
        place.done(before, change, *(("me", "300") if before == "begin" else ()), stdin=step)
    words = (verb, change, "me", "300") if verb == "begin" else (verb, change)
    code, said, hit = fails(place, call, when, *words, stdin=step)
    judge(place, verb, change, code, said)
    return hit


@pytest.mark.parametrize("verb", VERBS)
def test_some_call_of_each_kind_fails(place: Place, verb: str) -> None:
    hits = [met(place, verb, call, when) for call in CALLS for when in (1, 4)]
    assert sum(hits) > len(CALLS)


@pytest.mark.thorough
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("call", CALLS)
def test_every_call_of_each_kind_fails(place: Place, verb: str, call: str) -> None:
    for when in range(1, MOST):
        if not met(place, verb, call, when):
            break


@pytest.mark.parametrize("verb", VERBS)
def test_the_guard_is_ended_at_any_call(place: Place, verb: str) -> None:
    """Killed at its n-th call of any kind, which is the n-th thing that it does."""
    step = f"k\tsysctl\t-\t{SYSCTL}\t0\n"
    for when in range(3, 400, 29):
        change = f"{verb}-{when}"
        for before in VERBS[: VERBS.index(verb) if verb != "undo" else 2]:
            place.done(before, change, *(("me", "300") if before == "begin" else ()), stdin=step)
        words = (verb, change, "me", "300") if verb == "begin" else (verb, change)
        argv = place.argv(*words)
        argv[4:4] = ["strace", "-qq", "-o", "/dev/null", "-e", f"inject=all:signal=KILL:when={when}"]
        done = subprocess.run(argv, input=step, capture_output=True, text=True, timeout=100, check=False)
        judge(place, verb, change, done.returncode, done.stdout)
