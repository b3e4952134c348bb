"""Is a fault of one card below a bond named, and nothing where there is none?

Two virtual machines, each with a bond of two cards (e1000e). One fault after the other is planted on one card of one
node, in random order: 100 Mbit/s, half duplex, interrupts held back for 1 ms, no link; the first two on the card that
stands by, as the emulated one passes nothing then. After each the cards are put right, and the nodes audited again.
Goals: each of ten faults named with its card, nothing said of a card in ten audits of clean nodes.

`--seed=N` (1), `--draws=N` (10).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.common import Figure, finish
from wulf.node import lab

WULF = [sys.executable, "-m", "wulf.face.cli.main"]
CARDS = ("eth0", "eth1")
#: Kind → (what makes it, the finding that names it, a word of it).
FAULTS = {
    "speed": ("ethtool -s {card} speed 100 duplex full autoneg off", "nic.slow_link", "100 Mbit/s"),
    "duplex": ("ethtool -s {card} speed 100 duplex half autoneg off", "nic.half_duplex", "half"),
    "moderation": ("ethtool -C {card} rx-usecs 1000", "nic.interrupt_moderation", "rx-usecs 1000"),
    "down": ("ip link set dev {card} down", "nic.member_out", "is down"),
}
MEND = "ip link set dev {card} up; ethtool -C {card} rx-usecs 3; ethtool -s {card} autoneg on"
#: Until a link is up again [s].
SETTLED_S = 5
#: A node that has not answered is asked again so often.
TRIES = 3


def run(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run wulf as a user does."""
    return subprocess.run([*WULF, *words], cwd=directory, capture_output=True, text=True, check=False)


def audited(directory: Path) -> list[tuple[str, str, str]]:
    """Return (kind of fault, node, what was found) of all that an audit of both nodes names."""
    for _ in range(TRIES):
        audit = json.loads(run(directory, "audit", "--cluster", "lab", "--json").stdout or "{}")
        if audit and not audit["unreachable"]:
            break
    else:
        raise SystemExit("bench: a node does not answer")
    return [
        (kind, node, one["found"])
        for one in audit["findings"]
        for kind, (_, finding, word) in FAULTS.items()
        for node in one["nodes"]
        if one["id"] == finding and word in one["found"]
    ]


def on(cluster: lab.Lab, node: str, script: str) -> None:
    """Run a script on a node."""
    subprocess.run(cluster.ssh_argv(node, ["sh", "-c", script]), capture_output=True, check=False)


def active(cluster: lab.Lab, node: str) -> str:
    """Return which card of a node's bond carries its traffic."""
    argv = cluster.ssh_argv(node, ["cat", "/sys/class/net/host0/bonding/active_slave"])
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def draw(
    cluster: lab.Lab, directory: Path, kind: str, node: str, order: random.Random
) -> tuple[bool, list[tuple[str, str, str]]]:
    """Plant a fault, audit, mend and audit again; return whether it was named, and what was said of clean nodes."""
    cards = CARDS if kind in ("moderation", "down") else [c for c in CARDS if c != active(cluster, node)]
    card = order.choice(cards)
    on(cluster, node, FAULTS[kind][0].format(card=card))
    time.sleep(SETTLED_S)
    found = audited(directory)
    on(cluster, node, MEND.format(card=card))
    time.sleep(SETTLED_S)
    # What the bond is made of names all its cards.
    named = any(
        one == kind and where == node and card in text.rpartition(f"{CARDS[1]}: ")[2]
        for one, where, text in found
    )
    clean = audited(directory)
    print(f"  {kind:10s} {node} {card}: {'named' if named else found}; then {clean or 'nothing'}", flush=True)
    return named, clean


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    options = dict(one.removeprefix("--").split("=") for one in arguments)
    order, draws = random.Random(int(options.get("seed", "1"))), int(options.get("draws", "10"))
    with tempfile.TemporaryDirectory(prefix="wulf-bond-") as name:
        directory = Path(name)
        up = run(directory, "lab", "up", "--vm", "--bond", "--nodes", "2")
        if up.returncode != 0:
            raise SystemExit(f"bench: {up.stderr}")
        try:
            cluster = lab.current()
            assert cluster is not None
            found = [
                draw(cluster, directory, kind, order.choice(cluster.layout.names()), order)
                for kind in order.sample([list(FAULTS)[n % len(FAULTS)] for n in range(draws)], draws)
            ]
        finally:
            run(directory, "lab", "down")
    return finish(
        "bond",
        [
            Figure(name="not-named", value=float(sum(not named for named, _ in found)), goal=0.0),
            Figure(name="false", value=float(sum(bool(clean) for _, clean in found)), goal=0.0),
        ],
    )
