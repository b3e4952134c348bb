"""Local programs, one per node, many at once: when each of them is over, and what of it is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wulf.node.cluster.transport.fanout import fan_out
from wulf.node.cluster.transport.shell import STDERR_LIMIT, STDOUT_LIMIT, Raw


def run(
    script: str, nodes: int = 1, *, stdin: bytes = b"", timeout_s: float = 60.0, fanout: int = 8
) -> dict[str, Raw]:
    answers: dict[str, Raw] = {}
    fan_out(
        lambda node: ["sh", "-c", script, "sh", node],
        [f"n{index}" for index in range(nodes)],
        stdin=stdin,
        timeout_s=timeout_s,
        fanout=fanout,
        done=answers.__setitem__,
    )
    return answers


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=300_000), st.integers(1, 9))
def test_bytes_come_back_as_they_went(content: bytes, nodes: int) -> None:
    answers = run("cat; cat >&2 <&-; exit 3", nodes, stdin=content, fanout=3)
    assert set(answers) == {f"n{index}" for index in range(nodes)}
    assert all((raw.stdout, raw.code, raw.timed_out) == (content, 3, False) for raw in answers.values())


@pytest.mark.parametrize(
    ("script", "code", "timed_out"),
    [
        pytest.param("exec >&-; sleep 0.3; exit 4", 4, False, id="it outlives its output a little"),
        pytest.param("exec >&-; sleep 60", None, True, id="it outlives its output for good"),
        pytest.param("sleep 60 >/dev/null & exit 5", 5, False, id="what it leaves behind has stderr open"),
        pytest.param("kill -KILL $$", -9, False, id="it is killed"),
        pytest.param("exec sleep 60 <&-", None, True, id="it takes no input, and too long"),
    ],
)
def test_when_it_is_over(script: str, code: int | None, timed_out: bool) -> None:
    limit_s = 0.5 if script.startswith("exec sleep") else 60.0
    answer = run(script, stdin=b"x" * 200_000, timeout_s=limit_s)["n0"]
    assert (answer.code, answer.timed_out, answer.overflow) == (code, timed_out, False)


def test_no_more_than_so_many_at_once_and_none_is_left_out() -> None:
    at_once: list[int] = []
    started: set[str] = set()

    def build(node: str) -> list[str]:
        started.add(node)
        at_once.append(len(started))
        return ["sh", "-c", "sleep 0.05"]

    nodes = [f"n{index}" for index in range(20)]
    fan_out(build, nodes, stdin=b"", timeout_s=60, fanout=4, done=lambda node, _raw: started.discard(node))
    assert len(at_once) == len(nodes)
    assert max(at_once) == 4
    assert not started


def test_only_so_much_is_kept() -> None:
    long = run(f"head -c {STDOUT_LIMIT + 1} /dev/zero; sleep 60")["n0"]
    assert (len(long.stdout), long.overflow, long.timed_out) == (STDOUT_LIMIT, True, False)
    loud = run(f"head -c {3 * STDERR_LIMIT} /dev/zero >&2; echo end >&2")["n0"]
    assert len(loud.stderr) == STDERR_LIMIT
    assert loud.stderr.endswith(b"end\n")
    assert loud.code == 0


def test_what_a_caller_raises_ends_the_others() -> None:
    def done(node: str, _raw: Raw) -> None:
        raise RuntimeError(node)

    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="n1"):
        fan_out(
            lambda node: ["sh", "-c", "" if node == "n1" else "sleep 600"],
            ["n0", "n1", "n2"],
            stdin=b"",
            timeout_s=600,
            fanout=3,
            done=done,
        )
    assert time.monotonic() - begin < 300


def test_a_program_that_is_not_there_is_said() -> None:
    with pytest.raises(FileNotFoundError):
        fan_out(lambda _: ["/nowhere/ssh"], ["n0"], stdin=b"", timeout_s=60, fanout=1, done=lambda *_: None)


def test_threads_do_not_disturb_each_other() -> None:
    found: dict[int, dict[str, Raw]] = {}

    def work(number: int) -> Callable[[], None]:
        return lambda: found.__setitem__(number, run(f"echo {number} $1", 12))

    threads = [threading.Thread(target=work(number)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {
        number: {node: raw.stdout for node, raw in answers.items()} for number, answers in found.items()
    } == {
        number: {f"n{index}": f"{number} n{index}\n".encode() for index in range(12)} for number in range(3)
    }
