"""Three nodes of namespaces with a switch between them: real interfaces, real tools, their own /etc/hosts and guard."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.unit import spaces
from wulf.node.cluster.transport import shell

#: What every node has of its own.
_OWN = (
    "mount --make-rprivate / && mount -t sysfs sysfs /sys && mkdir -p /var/lib/wulf && "
    "mount -t tmpfs none /var/lib/wulf && mount -t tmpfs none /run && mount -t tmpfs none /etc/systemd/system"
)


class Network:
    """Nodes ``node01`` …, reached with nsenter instead of ssh: a `Transport` for tests."""

    name = "namespaces"

    def __init__(self, directory: Path, count: int = 3) -> None:
        self._directory = directory
        self._keepers: dict[str, subprocess.Popen[bytes]] = {}
        self.names = [f"node{n:02d}" for n in range(1, count + 1)]
        self.addresses = {name: f"198.18.7.{n}" for n, name in enumerate(self.names, start=1)}
        self.down: set[str] = set()
        self._keep("switch", "true")
        self.on("switch", "ip link add br0 type bridge && ip link set br0 up")
        for name in self.names:
            (directory / f"hosts.{name}").write_text("127.0.0.1 localhost\n")
            self._keep(name, f"{_OWN} && mount --bind {directory}/hosts.{name} /etc/hosts")
            self._plug(name)

    def _keep(self, name: str, prepare: str) -> None:
        ready = self._directory / f"ready.{name}"
        keeper = subprocess.Popen(
            [
                "unshare",
                "--net",
                "--mount",
                shutil.which("bash") or "sh",
                "-c",
                f"{prepare} && ip link set lo up && touch {ready} && exec sleep 600",
            ]
        )
        self._keepers[name] = keeper
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert keeper.poll() is None, f"{name} cannot be made"
            assert time.monotonic() < deadline, f"{name} is not made"
            time.sleep(0.02)

    def _plug(self, name: str) -> None:
        node, switch = self._keepers[name].pid, self._keepers["switch"].pid
        words = f"ip link add eth0 netns {node} type veth peer name p-{name} netns {switch}"
        subprocess.run(words.split(), check=True)
        self.on("switch", f"ip link set p-{name} master br0 up")
        self.on(name, f"ip addr add {self.addresses[name]}/24 dev eth0 && ip link set eth0 up")

    def names_mean(self, node: str, *lines: str) -> None:
        """Write a node's /etc/hosts."""
        (self._directory / f"hosts.{node}").write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n")

    def without(self, node: str, *programs: str) -> None:
        """Take programs away from a node."""
        for program in programs:
            for path in {Path(found).resolve() for found in _all_of(program)}:
                self.on(node, f"mount --bind /dev/null {path}")

    def on(self, node: str, text: str) -> str:
        """Run a line of shell on a node."""
        words = [*self._enter(node), "sh", "-c", text]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout

    def _enter(self, node: str) -> list[str]:
        return ["nsenter", f"--target={self._keepers[node].pid}", "--net", "--mount"]

    def run(
        self,
        argv: Sequence[str],
        nodes: Sequence[str],
        *,
        timeout_s: float,
        stdin=None,
        env=None,
        each=None,
        fresh=False,
    ):
        """Run a command on nodes, all at once; see `wulf.base.contracts.Transport`."""
        del fresh
        with ThreadPoolExecutor() as pool:
            asked = [pool.submit(self._answer, node, argv, timeout_s, stdin or b"", env) for node in nodes]
        results = [one.result() for one in asked]
        if each is not None:
            for result in results:
                each(result)
        return {} if each is not None else {result.node: result for result in results}

    def _answer(self, node, argv, timeout_s, stdin, env):
        mark = secrets.token_hex(8)
        if node in self.down:
            return shell.judge(
                node,
                shell.Raw(stdout=b"", stderr=b"No route to host", code=shell.SSH_FAILED),
                mark,
                timeout_s,
            )
        words = [*self._enter(node), *shell.run_words(argv, env, mark, timeout_s)]
        done = subprocess.run(words, input=stdin, capture_output=True, timeout=120, check=False)
        raw = shell.Raw(stdout=done.stdout, stderr=done.stderr, code=done.returncode)
        return shell.judge(node, raw, mark, timeout_s)

    def put(self, source: Path, target: str, nodes: Sequence[str], *, timeout_s: float, mode: int = 0o755):
        """Copy a file to nodes."""
        import hashlib

        content = source.read_bytes()
        words = shell.put_words(target, hashlib.sha256(content).hexdigest(), mode)
        return self.run(words, nodes, timeout_s=timeout_s, stdin=content)

    def close(self) -> None:
        """End everything."""
        spaces.end({spaces.space_of(keeper.pid) for keeper in self._keepers.values()})
        for keeper in self._keepers.values():
            keeper.wait()


def _all_of(program: str) -> list[str]:
    places = [*os.environ["PATH"].split(":"), "/usr/sbin", "/sbin", "/bin", "/usr/bin"]
    return [f"{place}/{program}" for place in places if os.access(f"{place}/{program}", os.X_OK)]
