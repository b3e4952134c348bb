"""Networks of two virtual nodes that differ in one thing each, made and unmade while the nodes run."""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from pathlib import Path

from bench.common import PAIR, Pair
from wulf.base.native import build
from wulf.node.lab.cluster import Lab
from wulf.node.lab.system import NETNS_DIRECTORY
from wulf.node.lab.topology import bridge_of

BASE = "1gbit"
#: Frames are held for so long, and for as long as it takes to wake who holds them: how much later they come, ping says.
DELAYED = "delay100us"
DELAY_NS = 100_000
#: A bucket of three frames: with a larger one short messages would not be slowed down at all.
_BUCKET = "tbf rate {} burst 5kb latency 20ms"
RATE = f"tc qdisc replace dev host0 root handle 1: {_BUCKET}"
_CLEAN = f"nft delete table inet bench 2>/dev/null; {RATE.format('1gbit')}"
#: The same rate behind a delay, where the nodes have a kernel of their own.
_NETEM = (
    f"tc qdisc replace dev host0 root handle 2: netem delay {DELAY_NS // 1000}us; "
    f"tc qdisc replace dev host0 parent 2:1 handle 3: {_BUCKET.format('1gbit')}"
)
#: Of both ends of a cable [B].
_MTU = {"mtu600": 600}
_USUAL_MTU = 1500
_RULES = (
    "i=0; { echo 'table inet bench { chain input { type filter hook input priority 0; policy accept;'; "
    'while [ $i -lt 300 ]; do echo "ip saddr 203.0.113.$((i % 250)) tcp dport $((30000 + i)) drop"; '
    "i=$((i + 1)); done; "
    "printf 'ct state invalid drop\\n}\\n}\\n'; } | nft -f -"
)
#: Name → what makes the network so, on each node.
_COMMANDS = {
    BASE: _CLEAN,
    "100mbit": f"{_CLEAN}; {RATE.format('100mbit')}",
    "mtu600": _CLEAN,
    "filter": f"{_CLEAN}; {_RULES}",
    DELAYED: _CLEAN,
}
NAMES = tuple(_COMMANDS)
CHANGED = tuple(name for name in NAMES if name != BASE)
#: Changed network → the same as a change of the calibrated one, where one can say it before there is such a network.
SAID = {"100mbit": "bandwidth=x0.1"}
_PINGS = 200


class Networks:
    """The network between the two nodes, as one of `NAMES`."""

    def __init__(self, nodes: Pair, lab: Lab) -> None:
        self.nodes, self._lab = nodes, lab
        self._delayer: subprocess.Popen[bytes] | None = None

    def become(self, name: str) -> None:
        """Make it so."""
        self._without_delay()
        mtu = _MTU.get(name, _USUAL_MTU)
        # No frame is ever longer than what its receiver takes.
        if mtu < _USUAL_MTU:
            self._cables(mtu)
        for node in PAIR:
            script = f"ip link set dev host0 mtu {mtu}; {_COMMANDS[name]}"
            self.nodes.output(["sh", "-c", script], node=node)
        self._cables(mtu)
        if name == DELAYED:
            self._with_delay()

    def one_way_s(self) -> float:
        """Return half the median time of a ping between the nodes [s]: what whoever asks can say of a latency.

        One behind the other: with pauses it is more by 40 us where frames are held, as who holds them must wake up.
        """
        address = self._lab.layout.nodes[1].address
        argv = ["ping", "-n", "-A", "-c", str(_PINGS), str(address)]
        said = re.findall(r"time=([0-9.]+) ms", self.nodes.output(argv, node=PAIR[0]))
        return statistics.median(map(float, said)) * 1e-3 / 2

    def close(self) -> None:
        """Leave it as it was raised, but for its rate."""
        self.become(BASE)

    def _with_delay(self) -> None:
        """Hold frames back, each way: in virtual machines by their kernels, else by a process before the switch."""
        if self._lab.layout.vm is not None:
            for name in PAIR:
                self.nodes.output(["sh", "-c", _NETEM], node=name)
            return
        node = self._lab.layout.nodes[1]
        program = build.build_program("wulf-delay", None).path
        outer, tap = f"vb-{node.name}", f"tap-{node.name}"
        self._inside("ip", "link", "set", outer, "nomaster", "arp", "off")
        cpus = ",".join(map(str, node.cpus))
        self._delayer = subprocess.Popen(
            [*self._enter, "taskset", "--cpu-list", cpus, str(program), outer, tap, str(DELAY_NS)]
        )
        for _ in range(100):
            shown = subprocess.run(
                [*self._enter, "ip", "link", "show", tap], capture_output=True, check=False
            )
            if shown.returncode == 0:
                break
            time.sleep(0.02)
        self._inside("ip", "link", "set", tap, "master", bridge_of(0), "up")

    def _without_delay(self) -> None:
        if self._delayer is None:
            return
        self._delayer.kill()
        self._delayer.wait()
        self._delayer = None
        name = self._lab.layout.nodes[1].name
        self._inside("ip", "link", "set", f"vb-{name}", "arp", "on", "master", bridge_of(0), "up")

    def _cables(self, mtu: int) -> None:
        for node in PAIR:
            self._inside("ip", "link", "set", f"vb-{node}", "mtu", str(mtu))

    @property
    def _enter(self) -> list[str]:
        return ["nsenter", f"--net={NETNS_DIRECTORY / self._lab.state.namespace}"]

    def _inside(self, *argv: str) -> None:
        """Run a command where the switch is."""
        done = subprocess.run([*self._enter, *argv], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"bench: {' '.join(argv)}: {done.stderr.strip()}")


def waited_us() -> int:
    """Return for how long some process has waited for a processor of this machine, since it was started [us]."""
    line = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    return int(line.rpartition("total=")[2])
