"""Run commands on nodes with the user's own ssh.

Launches come many, so connections are shared: the first command to a node leaves a master connection
(ControlMaster) behind a socket in a directory of our own, which `close` ends.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wulf.base.contracts import NodeResult
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.names import check_node_name, expand
from wulf.node.cluster.transport import shell
from wulf.node.cluster.transport.fanout import fan_out
from wulf.node.cluster.transport.stream import Stream
from wulf.node.cluster.transport.tree import gateway_check, tree_out

#: How long a shared connection stays open unused [s].
_PERSIST_S = 30
#: Commands to more nodes than this do not leave connections behind: each is a process on this machine.
_MAX_SHARED = 64
#: How long a gateway may take to say whether it has ClusterShell [s].
_GATEWAY_S = 10.0
#: Longest path of a socket (sun_path, 108 B) less what ssh appends while it makes one.
_MAX_SOCKET_PATH = 85

_Done = Callable[[str, shell.Raw], None]


class SshTransport:
    """Nodes reached with ssh, directly or through gateways."""

    name = "ssh"

    def __init__(self, config: ClusterConfig) -> None:
        self._ssh = config.ssh
        self._broken: dict[str, str] | None = None
        self._sockets = _private_directory()
        atexit.register(self.close)

    def run(
        self,
        argv: Sequence[str],
        nodes: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        each: Callable[[NodeResult], None] | None = None,
        fresh: bool = False,
    ) -> dict[str, NodeResult]:
        """Run the command on all nodes in parallel; see `wulf.base.contracts.Transport`."""
        names = [check_node_name(node) for node in dict.fromkeys(nodes)]
        mark = secrets.token_hex(8)
        text = shell.remote_text(shell.run_words(argv, env, mark, timeout_s))
        if fresh and self._sockets is not None:
            # The old connection may hang: it is not waited for, and ends by itself when it has been idle.
            for node in names:
                self._socket(node).unlink(missing_ok=True)
        spread = self._through_gateways if self._ssh.gateways else self._directly
        results: dict[str, NodeResult] = {}
        take = each or (lambda result: results.__setitem__(result.node, result))

        def done(node: str, raw: shell.Raw) -> None:
            result = shell.judge(node, raw, mark, timeout_s)
            if result.status in ("timeout", "unreachable"):
                self._forget(node)
            take(result)

        spread(text, names, stdin or b"", timeout_s, done)
        return {node: results[node] for node in names if node in results}

    def put(
        self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755
    ) -> dict[str, NodeResult]:
        """Copy a file to the same absolute path on all nodes, atomically and checked by SHA-256."""
        content = source.read_bytes()
        words = shell.put_words(target, hashlib.sha256(content).hexdigest(), mode)
        return self.run(words, nodes, timeout_s=timeout_s, stdin=content)

    def start(
        self,
        argv: Sequence[str],
        node: str,
        *,
        env: Mapping[str, str] | None = None,
        line: str | None = None,
    ) -> Stream:
        """Start a command on one node; see `wulf.base.contracts.Transport`. Always a direct connection."""
        mark = secrets.token_hex(8)
        text = shell.remote_text(shell.stream_words(argv, env, mark, line))
        return Stream(self._argv(check_node_name(node), text, share=True), node, mark, line)

    def close(self) -> None:
        """End the shared connections."""
        atexit.unregister(self.close)
        if self._sockets is None:
            return
        for socket in self._sockets.iterdir():
            _end_master(socket)
        shutil.rmtree(self._sockets, ignore_errors=True)
        self._sockets = None

    def _directly(self, text: str, names: list[str], stdin: bytes, timeout_s: float, done: _Done) -> None:
        share = len(names) <= _MAX_SHARED
        fan_out(
            lambda node: self._argv(node, text, share=share),
            names,
            stdin=stdin,
            timeout_s=timeout_s,
            fanout=self._ssh.fanout,
            done=done,
        )

    def _through_gateways(
        self, text: str, names: list[str], stdin: bytes, timeout_s: float, done: _Done
    ) -> None:
        """Nodes behind a gateway that does not work are unreachable; the others are reached."""
        broken = self._broken_gateways()
        gateways = {name: spec for name, spec in self._ssh.gateways.items() if name not in broken}
        lost = set()
        for name, reason in broken.items():
            for node in set(names).intersection(expand(self._ssh.gateways[name])):
                said = f"its gateway does not work: {reason}".encode()
                lost.add(node)
                done(node, shell.Raw(stdout=b"", stderr=said, code=shell.SSH_FAILED))
        left = [node for node in names if node not in lost]
        if not gateways:
            self._directly(text, left, stdin, timeout_s, done)
            return
        for node, raw in tree_out(text, left, self._ssh, gateways, stdin=stdin, timeout_s=timeout_s).items():
            done(node, raw)

    def _broken_gateways(self) -> dict[str, str]:
        """Gateway → why it cannot be used; asked once."""
        if self._broken is None:
            mark = secrets.token_hex(8)
            limit_s = self._ssh.connect_timeout_s + _GATEWAY_S
            text = shell.remote_text(shell.run_words(gateway_check(), None, mark, limit_s))
            raw: dict[str, shell.Raw] = {}
            self._directly(text, list(self._ssh.gateways), b"", limit_s, raw.__setitem__)
            answers = [shell.judge(name, raw[name], mark, limit_s) for name in self._ssh.gateways]
            self._broken = {answer.node: answer.reason for answer in answers if answer.status != "ok"}
        return self._broken

    def _argv(self, node: str, text: str, *, share: bool) -> list[str]:
        ssh = self._ssh
        words = ["ssh", *(["-F", ssh.config] if ssh.config else []), *ssh.options]
        words += ["-T", "-oBatchMode=yes", f"-oConnectTimeout={max(1, round(ssh.connect_timeout_s))}"]
        words += ["-oServerAliveInterval=5", "-oServerAliveCountMax=3", "-oLogLevel=ERROR", "-oForwardX11=no"]
        if self._sockets is not None:
            words += [f"-oControlMaster={'auto' if share else 'no'}", f"-oControlPath={self._socket(node)}"]
            words += [f"-oControlPersist={_PERSIST_S}"]
        else:
            words += ["-oControlMaster=no", "-oControlPath=none"]
        if ssh.user:
            words += ["-l", ssh.user]
        return [*words, "--", node, text]

    def _socket(self, node: str) -> Path:
        assert self._sockets is not None
        return self._sockets / hashlib.sha256(node.encode()).hexdigest()[:16]

    def _forget(self, node: str) -> None:
        """Drop a shared connection that may be dead, so that the next command makes a new one."""
        if self._sockets is not None and self._socket(node).exists():
            _end_master(self._socket(node))


def _private_directory() -> Path | None:
    """Make a directory only we can use (mode 0700); None when sockets in it would have too long a name."""
    path = Path(tempfile.mkdtemp(prefix="wulf-ssh-"))
    if len(str(path)) + 17 <= _MAX_SOCKET_PATH:
        return path
    path.rmdir()
    return None


def _end_master(socket: Path) -> None:
    # The name is only there because ssh wants one; -F /dev/null keeps it from meaning anything.
    words = ["ssh", "-F", "/dev/null", f"-oControlPath={socket}", "-O", "exit", "wulf"]
    # One that hangs ends by itself: its socket is removed, so nobody will use it again.
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(words, capture_output=True, timeout=5, check=False)
    socket.unlink(missing_ok=True)
