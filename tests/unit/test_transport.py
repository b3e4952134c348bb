"""The pure parts of transports: quoting, marks, and how an answer is judged."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import ConfigError, UsageError
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport, shell

MARK = "0123456789abcdef"


@given(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=20), max_size=5))
def test_quoting_gives_back_the_same_words(arguments: list[str]) -> None:
    text = shell.remote_text(shell.run_words(["echo", *arguments], None, MARK, 1.0))
    assert shlex.split(text)[-len(arguments) - 1 :] == ["echo", *arguments]


def test_wrappers_survive_any_login_shell() -> None:
    for words in (
        shell.run_words(["id"], None, MARK, 1),
        shell.stream_words(["id"], None, MARK),
        shell.stream_words(["id"], None, MARK, "5eed"),
        shell.put_words("/x", "0" * 64, 0o644),
    ):
        # "$!" is the one use of "!" that csh does not take for history.
        assert not set("\n\\'!") & set(words[2].replace("$!;", ""))


@pytest.mark.parametrize("login", ["tcsh", "fish", "dash", "bash"])
def test_wrappers_run_under_a_login_shell(login: str) -> None:
    if shutil.which(login) is None:
        pytest.skip(f"{login} is not installed")
    for words in (
        shell.run_words(["echo", "a b$c", "it's"], None, MARK, 5),
        shell.stream_words(["echo", "a b$c", "it's"], None, MARK),
    ):
        with subprocess.Popen(
            [login, "-c", shell.remote_text(words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            # stdin stays open meanwhile: its end would stop the stream.
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read().decode() == f"{MARK}\na b$c it's\n"
            assert process.stderr.read().decode() == f"{MARK} 0\n"


def raw(stdout: bytes = b"", stderr: bytes = b"", code: int | None = 0, **more: bool) -> shell.Raw:
    return shell.Raw(stdout=stdout, stderr=stderr, code=code, **more)


BEGIN, END = f"{MARK}\n".encode(), f"{MARK} 0\n".encode()


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (raw(BEGIN + b"x", END), "ok", ""),
        (raw(b"motd\n" + BEGIN + b"x", b"w\n" + END), "ok", ""),
        (raw(BEGIN, b"no\n" + f"{MARK} 3\n".encode(), 3), "exit", "n1: exit code 3: no"),
        (raw(BEGIN, f"{MARK} 255\n".encode(), 255), "exit", "n1: exit code 255"),
        (
            raw(b"", b"ssh: connect refused\r\n", 255),
            "unreachable",
            "n1: ssh could not connect: ssh: connect refused",
        ),
        (raw(b"", b"", 255), "unreachable", "n1: ssh could not connect"),
        (raw(BEGIN + b"x", b"", 255), "unreachable", "n1: connection lost while the command ran"),
        (raw(BEGIN + b"x", b"", -9), "unreachable", "n1: connection lost while the command ran"),
        (
            raw(b"go away\x1b[2J\n", b"", 1),
            "garbage",
            "n1: the login shell did not run the command; it printed: go away�[2J (exit code 1)",
        ),
        (raw(BEGIN + b"\xff", END), "garbage", "n1: printed something that is not UTF-8 text"),
        (raw(b"x", END), "garbage", "n1: printed something that is not UTF-8 text"),
        (raw(b"x", b"", None, timed_out=True), "timeout", "n1: no answer within 5 s"),
        (raw(BEGIN, b"", None, timed_out=True), "timeout", "n1: not done in 5 s"),
        (raw(b"x", b"", None, overflow=True), "garbage", "n1: printed more than 16 MiB"),
    ],
)
def test_judge(answer: shell.Raw, status: str, reason: str) -> None:
    result = shell.judge("n1", answer, MARK, 5.0)
    assert (result.node, result.status, result.reason) == ("n1", status, reason)
    assert MARK.encode() not in result.stdout + result.stderr


@given(st.binary(max_size=200), st.binary(max_size=200), st.none() | st.integers(-64, 255))
def test_judge_takes_anything(stdout: bytes, stderr: bytes, code: int | None) -> None:
    result = shell.judge("n1", raw(stdout, stderr, code, timed_out=code is None), MARK, 5.0)
    assert result.status != "ok"
    assert result.reason.startswith("n1: ")
    assert result.reason.isprintable()


def test_last_words_are_the_last_ones() -> None:
    assert shell.last_words(b"noise\n" * 1000 + b"no\tsuch \xc2\xa0file\r\n\n") == "no such file"
    assert shell.last_words(b" \r\n") == ""


@pytest.mark.parametrize("target", ["x", "", "/tmp/", "~/x"])
def test_targets_of_put(target: str) -> None:
    with pytest.raises(UsageError, match="absolute path"):
        shell.put_words(target, "0" * 64, 0o755)


def test_unknown_transport() -> None:
    import msgspec

    config = msgspec.structs.replace(inventory.local(), transport="rsh")
    with pytest.raises(ConfigError, match="allowed: local, ssh"):
        open_transport(config)
