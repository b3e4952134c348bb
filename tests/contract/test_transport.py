"""What every transport promises (`wulf.base.contracts.Transport`), checked over each of them for real."""

from __future__ import annotations

import hashlib
import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.contract.site import Target, gone, running
from wulf.base.errors import InventoryError, OverdueError, TransportError, UsageError

AWKWARD = [
    "two words",
    "it's",
    'a "quote"',
    "$(touch /tmp/x)",
    "`id`",
    "a;b|c&d",
    "line\nbreak",
    "",
    "-x",
    "*",
    "\\",
    "!",
    "é×",
]


def unique_seconds() -> str:
    """An argument of sleep(1) by which exactly this test's process can be found."""
    return f"3{random.randrange(10**6):06d}.{random.randrange(10**6):06d}"


def test_ok(target: Target) -> None:
    results = target.transport.run(["echo", "hello"], target.nodes, timeout_s=20)
    assert list(results) == target.nodes
    for node, result in results.items():
        assert (result.node, result.status, result.exit_code, result.reason) == (node, "ok", 0, "")
        assert result.stdout == b"hello\n"
        assert result.stderr == b""


def test_exit_code_and_stderr(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["sh", "-c", "echo no >&2; exit 7"], [node], timeout_s=20)[node]
    assert (result.status, result.exit_code, result.stderr) == ("exit", 7, b"no\n")
    assert result.reason == f"{node}: exit code 7: no"


def test_exit_code_255_is_the_commands_own(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["sh", "-c", "exit 255"], [node], timeout_s=20)[node]
    assert (result.status, result.exit_code) == ("exit", 255)


def test_missing_command(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["wulf-no-such-command"], [node], timeout_s=20)[node]
    assert (result.status, result.exit_code) == ("exit", 127)
    assert "wulf-no-such-command" in result.reason


def test_timeout_ends_the_command_everywhere(target: Target) -> None:
    seconds = unique_seconds()
    results = target.transport.run(["sleep", seconds], target.nodes, timeout_s=1.5)
    for node, result in results.items():
        assert (result.status, result.exit_code) == ("timeout", None)
        assert node in result.reason
        assert "1.5 s" in result.reason
    assert gone(seconds)


def test_output_before_a_timeout_is_kept(target: Target) -> None:
    node = target.nodes[0]
    seconds = unique_seconds()
    result = target.transport.run(["sh", "-c", f"echo so far; sleep {seconds}"], [node], timeout_s=1.5)[node]
    assert (result.status, result.stdout) == ("timeout", b"so far\n")
    assert gone(seconds)


def test_nothing_is_interpreted(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["printf", "%s\\0", *AWKWARD], [node], timeout_s=20)[node]
    assert result.stdout.decode().split("\0")[:-1] == AWKWARD


def test_environment(target: Target) -> None:
    node = target.nodes[0]
    env = {"WULF_A": "a b'c\"$(id)", "WULF_B": "line\nbreak"}
    result = target.transport.run(
        ["sh", "-c", 'printf "%s|%s" "$WULF_A" "$WULF_B"'], [node], timeout_s=20, env=env
    )
    assert result[node].stdout.decode() == f"{env['WULF_A']}|{env['WULF_B']}"


@pytest.mark.parametrize("name", ["A=B", "-u", "A B", "$(id)", ""])
def test_environment_names_are_checked(target: Target, name: str) -> None:
    with pytest.raises(UsageError, match="environment"):
        target.transport.run(["true"], target.nodes, timeout_s=20, env={name: "x"})


@pytest.mark.parametrize("argv", [[], [""], ["-x"], ["A=B", "id"], ["echo", "a\0b"]])
def test_impossible_commands(target: Target, argv: list[str]) -> None:
    with pytest.raises(UsageError):
        target.transport.run(argv, target.nodes, timeout_s=20)
    with pytest.raises(UsageError):
        target.transport.start(argv, target.nodes[0])


@pytest.mark.parametrize(
    "name", ["-oProxyCommand=id", "node01;id", "a b", "$(id)", "../x", "node01\nid", "", "@all"]
)
def test_a_node_name_is_never_an_option_or_a_command(target: Target, name: str) -> None:
    with pytest.raises(InventoryError, match="not a node name"):
        target.transport.run(["true"], [target.nodes[0], name], timeout_s=20)
    with pytest.raises(InventoryError, match="not a node name"):
        target.transport.start(["true"], name)


def test_stdin(target: Target) -> None:
    data = random.Random(1).randbytes(300_000).hex().encode() + b"\n"
    for result in target.transport.run(["cat"], target.nodes, timeout_s=30, stdin=data).values():
        assert result.stdout == data


def test_no_stdin_is_an_empty_one(target: Target) -> None:
    node = target.nodes[0]
    assert target.transport.run(["wc", "-c"], [node], timeout_s=20)[node].stdout.strip() == b"0"


def test_a_command_that_does_not_read_its_stdin(target: Target) -> None:
    node = target.nodes[0]
    assert target.transport.run(["true"], [node], timeout_s=20, stdin=b"x" * 1_000_000)[node].status == "ok"


def test_bytes_are_kept_as_they_are(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["printf", "a\\r\\n\\nno newline at the end"], [node], timeout_s=20)[node]
    assert result.stdout == b"a\r\n\nno newline at the end"


def test_what_is_not_text_is_garbage(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["printf", "\\377\\376ok"], [node], timeout_s=20)[node]
    assert (result.status, result.stdout) == ("garbage", b"\xff\xfeok")
    assert result.reason == f"{node}: printed something that is not UTF-8 text"


def test_huge_output_is_bounded(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["head", "-c", "100M", "/dev/zero"], [node], timeout_s=60)[node]
    assert (result.status, result.reason) == ("garbage", f"{node}: printed more than 16 MiB")
    assert len(result.stdout) <= 16 << 20


def test_long_stderr_keeps_its_end(target: Target) -> None:
    node = target.nodes[0]
    result = target.transport.run(["sh", "-c", "seq 200000 >&2; exit 3"], [node], timeout_s=30)[node]
    assert (result.status, result.exit_code) == ("exit", 3)
    assert result.stderr.endswith(b"\n200000\n")
    assert len(result.stderr) <= 64 << 10


def test_the_same_node_twice_is_one_node(target: Target) -> None:
    node = target.nodes[0]
    assert list(target.transport.run(["true"], [node, node], timeout_s=20)) == [node]


def test_no_nodes(target: Target) -> None:
    assert target.transport.run(["true"], [], timeout_s=20) == {}


def test_put(target: Target, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(random.Random(2).randbytes(500_000))
    name = f"/tmp/wulf-contract-{os.getpid()}-{random.randrange(10**9)}"
    path = f"{name}/new dir/it's a $(file)"
    node = target.nodes[0]
    for content in (source.read_bytes(), b"second\n"):
        source.write_bytes(content)
        assert target.transport.put(source, path, [node], timeout_s=30, mode=0o750)[node].status == "ok"
        shown = target.transport.run(
            ["sh", "-c", 'sha256sum <"$1"; stat -c %a "$1"; ls "${1%/*}" | wc -l', "sh", path],
            [node],
            timeout_s=20,
        )
        expected = subprocess.run(
            ["sha256sum"], input=content, capture_output=True, check=True
        ).stdout.decode()
        assert shown[node].stdout.decode() == f"{expected}750\n1\n"
    assert target.transport.run(["rm", "-r", name], [node], timeout_s=20)[node].status == "ok"


def test_put_on_all_nodes(target: Target, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("#!/bin/sh\necho it runs\n")
    path = f"/tmp/wulf-contract-{os.getpid()}-{random.randrange(10**9)}"
    assert {
        result.status for result in target.transport.put(source, path, target.nodes, timeout_s=30).values()
    } == {"ok"}
    for result in target.transport.run([path], target.nodes, timeout_s=20).values():
        assert result.stdout == b"it runs\n"
    target.transport.run(["rm", "-f", path], target.nodes, timeout_s=20)


def test_put_where_it_cannot_be(target: Target, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("x")
    node = target.nodes[0]
    for path, said in (("/proc/no/such", "/proc/no/"), ("/tmp", "/tmp is a directory")):
        result = target.transport.put(source, path, [node], timeout_s=20)[node]
        assert result.status == "exit"
        assert said in result.reason
    for path in ("relative", "/tmp/"):
        with pytest.raises(UsageError, match="absolute path"):
            target.transport.put(source, path, [node], timeout_s=20)


def test_stream(target: Target) -> None:
    node = target.nodes[0]
    read = f"/tmp/read-{unique_seconds()}"
    script = (
        f"echo line 1; until rm {read} 2>/dev/null; do sleep 0.05; done; echo line 2; echo line 3; "
        "echo last >&2; printf unfinished; exit 4"
    )
    with target.transport.start(["sh", "-c", script], node) as process:
        lines = process.lines(timeout_s=20)
        assert next(lines) == b"line 1"
        assert target.transport.run(["touch", read], [node], timeout_s=20)[node].status == "ok"
        assert list(lines) == [b"line 2", b"line 3", b"unfinished"]
        assert process.wait(timeout_s=20) == 4
        assert process.stderr() == b"last\n"


def test_lines_that_have_come_are_there_without_waiting(target: Target) -> None:
    script = "echo one; echo two; printf half; sleep 0.5; echo done; exec sleep 60"
    with target.transport.start(["sh", "-c", script], target.nodes[0]) as process:
        assert next(process.lines(timeout_s=20)) == b"one"
        begin, found = time.monotonic(), []
        while b"halfdone" not in found:
            found += process.ready()
            assert time.monotonic() - begin < 20
            time.sleep(0.01)
        begin = time.monotonic()
        assert process.ready() == [] and time.monotonic() - begin < 30
    assert found == [b"two", b"halfdone"]


def test_stream_passes_arguments_and_environment(target: Target) -> None:
    argv = ["sh", "-c", 'printf "%s\\n" "$A" "$1"', "sh", "$(id) 'x'"]
    with target.transport.start(argv, target.nodes[0], env={"A": "a b"}) as process:
        assert list(process.lines(timeout_s=20)) == [b"a b", b"$(id) 'x'"]
        assert process.wait(timeout_s=20) == 0


def test_a_line_reaches_a_command_and_nobody_else(target: Target) -> None:
    secret = f"{random.randrange(16**32):032x}"
    argv = ["sh", "-c", 'read -r said; printf %s "$said" | sha256sum; read -r more || echo end; sleep 60']
    with target.transport.start(argv, target.nodes[0], line=secret) as process:
        lines = process.lines(20)
        assert next(lines).split()[0].decode() == hashlib.sha256(secret.encode()).hexdigest()
        assert next(lines) == b"end"
        assert not running(secret)


@pytest.mark.parametrize("line", ["", "two\nlines", "-n", "$(id)", "\\0"])
def test_a_line_that_a_shell_would_change_is_refused(target: Target, line: str) -> None:
    with pytest.raises(UsageError, match="line"):
        target.transport.start(["cat"], target.nodes[0], line=line)


def test_wait_without_reading(target: Target) -> None:
    with target.transport.start(["seq", "100000"], target.nodes[0]) as process:
        assert process.wait(timeout_s=20) == 0
        assert len(list(process.lines(timeout_s=1))) == 100_000


def test_stream_time_limit(target: Target) -> None:
    node = target.nodes[0]
    seconds = unique_seconds()
    with target.transport.start(["sh", "-c", f"echo one; sleep {seconds}"], node) as process:
        lines = process.lines(timeout_s=2)
        assert next(lines) == b"one"
        with pytest.raises(TransportError, match=f"{node}: nothing has come for 2 s"):
            next(lines)
        with pytest.raises(TransportError, match=f"{node}: the command has not ended"):
            process.wait(timeout_s=0.2)
    assert gone(seconds)


def test_what_chatters_for_ever_is_ended(target: Target) -> None:
    node = target.nodes[0]
    word = f"chatter{random.randrange(10**9)}"
    with target.transport.start(["yes", word], node) as process:
        with pytest.raises(OverdueError, match=f"{node}: it goes on and on"):
            for _ in process.lines(timeout_s=20, total_s=1):
                pass
        with pytest.raises(TransportError, match=f"{node}: the command has not ended in 0.5 s"):
            process.wait(timeout_s=0.5)
    assert gone(word)


def test_silence_is_not_taken_for_the_end_of_the_time(target: Target) -> None:
    with (
        target.transport.start(["sleep", unique_seconds()], target.nodes[0]) as process,
        pytest.raises(TransportError, match=r"nothing has come for 0.5 s"),
    ):
        next(process.lines(timeout_s=0.5, total_s=60))


def test_stop_leaves_no_process(target: Target) -> None:
    seconds = unique_seconds()
    # A child and a grandchild that ignores polite requests.
    script = f"trap '' TERM; (sleep {seconds}; sleep {seconds}) & echo up; sleep {seconds}"
    with target.transport.start(["sh", "-c", script], target.nodes[0]) as process:
        assert next(process.lines(timeout_s=20)) == b"up"
        assert len(running(seconds)) >= 3
        process.stop()
        assert gone(seconds)
        process.stop()


def test_a_quick_stop_is_quick(target: Target) -> None:
    with target.transport.start(["sleep", unique_seconds()], target.nodes[0]) as process:
        with pytest.raises(TransportError):
            next(process.lines(timeout_s=0.5))
        began = time.monotonic()
        process.stop()
        assert time.monotonic() - began < 5  # one that is not quick takes 6


def test_what_outlives_a_stream_is_ended(target: Target) -> None:
    seconds = unique_seconds()
    with target.transport.start(
        ["sh", "-c", f"sleep {seconds} >/dev/null 2>&1 & echo done"], target.nodes[0]
    ) as process:
        assert list(process.lines(timeout_s=20)) == [b"done"]
        assert process.wait(timeout_s=20) == 0
    assert gone(seconds)


def test_a_stopped_stream_that_prints_all_the_time(target: Target) -> None:
    word = f"flood{random.randrange(10**9)}"
    with target.transport.start(["yes", word], target.nodes[0]) as process:
        assert next(process.lines(timeout_s=20)) == word.encode()
    assert gone(f"yes {word}")


def test_an_endless_line(target: Target) -> None:
    with (
        target.transport.start(["cat", "/dev/zero"], target.nodes[0]) as process,
        pytest.raises(TransportError, match="endless line"),
    ):
        next(process.lines(timeout_s=20))


def test_streams_of_two_nodes_at_once(target: Target) -> None:
    first, second = target.nodes[:2]
    with (
        target.transport.start(["echo", "a"], first) as one,
        target.transport.start(["echo", "b"], second) as two,
    ):
        target.transport.run(["true"], [first], timeout_s=20)
        assert (list(two.lines(timeout_s=20)), list(one.lines(timeout_s=20))) == ([b"b"], [b"a"])


def test_a_killed_controller_leaves_nothing_on_the_node(target: Target, tmp_path: Path) -> None:
    seconds = unique_seconds()
    from wulf.node.cluster.render import render

    (tmp_path / "cluster.toml").write_text(render(target.config))
    program = (
        "import sys, time; from pathlib import Path; from wulf.node.cluster.inventory import load; "
        "from wulf.node.cluster.transport import open_transport; t = open_transport(load(Path(sys.argv[1]))); "
        "p = t.start(['sleep', sys.argv[3]], sys.argv[2]).__enter__(); print('up', flush=True); "
        "time.sleep(60)"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "cluster.toml"), target.nodes[0], seconds]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"up\n"
        time.sleep(1)
        assert running(f"sleep {seconds}")
        controller.kill()
    assert gone(f"sleep {seconds}")


def test_mode_and_owner_of_the_connection_sockets(ssh: Target) -> None:
    ssh.transport.run(["true"], ssh.nodes, timeout_s=20)
    directory = ssh.transport._sockets  # type: ignore[attr-defined]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert len(list(directory.iterdir())) == len(ssh.nodes)
    ssh.transport.close()
    assert not directory.exists()
    assert gone(str(directory))


def test_connections_are_shared(ssh: Target) -> None:
    node = ssh.nodes[0]
    show = ["sh", "-c", "echo $SSH_CONNECTION"]
    ports = {ssh.transport.run(show, [node], timeout_s=20)[node].stdout for _ in range(3)}
    assert len(ports) == 1


def test_bad_nodes_are_named_while_others_finish(ssh: Target) -> None:
    nodes = ["node01", "down", "silent", "hangs", "nologin", "flood", "node02", "noisy"]
    began = time.monotonic()
    results = ssh.transport.run(["echo", "fine"], nodes, timeout_s=8)
    assert time.monotonic() - began < 30
    assert {node: result.status for node, result in results.items()} == {
        "node01": "ok",
        "down": "unreachable",
        "silent": "unreachable",
        "hangs": "timeout",
        "nologin": "garbage",
        "flood": "garbage",
        "node02": "ok",
        "noisy": "ok",
    }
    assert results["noisy"].stdout == b"fine\n"
    assert "Connection refused" in results["down"].reason
    assert "not available" in results["nologin"].reason
    for node, result in results.items():
        assert result.reason.startswith(f"{node}: ") or result.status == "ok"


def test_an_unreachable_node_in_a_stream(ssh: Target) -> None:
    with ssh.transport.start(["true"], "down") as process:
        assert list(process.lines(timeout_s=20)) == []
        with pytest.raises(TransportError, match=r"down: ssh could not connect: .*refused"):
            process.wait(timeout_s=20)


def test_ssh_itself_hangs(ssh: Target) -> None:
    result = ssh.transport.run(["true"], ["silent"], timeout_s=1)["silent"]
    assert result.status == "timeout"
    with (
        ssh.transport.start(["true"], "silent") as process,
        pytest.raises(TransportError, match=r"silent: nothing has come for 0\.5 s"),
    ):
        next(process.lines(timeout_s=0.5))


def test_a_login_script_that_prints(ssh: Target) -> None:
    with ssh.transport.start(["echo", "fine"], "noisy") as process:
        assert list(process.lines(timeout_s=20)) == [b"fine"]
        assert process.wait(timeout_s=20) == 0


@pytest.mark.parametrize("node", ["dash", "bash"])
def test_login_shells(ssh: Target, node: str) -> None:
    result = ssh.transport.run(["printf", "%s\\0", *AWKWARD], [node], timeout_s=20)[node]
    assert result.stdout.decode().split("\0")[:-1] == AWKWARD


def test_a_lost_connection_is_made_anew(ssh: Target) -> None:
    node = ssh.nodes[0]
    parent = ssh.transport.run(["sh", "-c", "ps -o ppid= -p $PPID"], [node], timeout_s=20)[node].stdout
    ssh.transport.run(["sh", "-c", f"kill {int(parent)}"], [node], timeout_s=20)
    assert ssh.transport.run(["echo", "again"], [node], timeout_s=20)[node].stdout == b"again\n"
