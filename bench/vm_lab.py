"""Is a real driver's interrupt moderation found, cut and put back in virtual machines within five minutes?

Two nodes with an e1000e each (``--nic=igb``: that one) are raised from nothing; interrupts held back for 1 ms are
planted, named by the audit, found by experiment, cut, and put back. Beside it: how long the nodes take until they can
be logged in to, and how far two runs of the same measurement are apart, as figures in virtual time are to repeat.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.common import Figure, Statements, finish
from wulf.base.store import load
from wulf.node import lab
from wulf.node.lab.vm import image
from wulf.node.lab.vm.machine import Nic

MINUTES, BOOT_S = 5.0, 60.0
WULF = [sys.executable, "-m", "wulf.face.cli.main"]
#: Without MPI, whose start takes longer in virtual time than what is measured.
GOAL = '[[metric]]\nop = "tcp_rr"\nsize = "64B"\n'
USECS = "ethtool -c host0 | sed -n 's/^rx-usecs: *//p'"
MEASURE = (
    "--ops",
    "tcp_rr",
    "--ladder",
    "imb",
    "--max-size",
    "64B",
    "--max-launches",
    "6",
    "--budget",
    "40s",
)


def wulf(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run wulf as a user does."""
    return subprocess.run([*WULF, *words], cwd=directory, capture_output=True, text=True, check=False)


def usecs(cluster: lab.Lab) -> list[str]:
    """How long each node's NIC holds interrupts back [us]."""
    return [
        subprocess.run(
            cluster.ssh_argv(node, ["sh", "-c", USECS]), capture_output=True, text=True, check=False
        ).stdout.strip()
        for node in cluster.layout.names()
    ]


def half_round_trip_us(directory: Path, name: str) -> float:
    """Half the round trip of a byte, the median of the medians of launches [us]."""
    wulf(directory, "measure", "--run", name, "--cluster", "lab", *MEASURE)
    analysis = load(directory / "runs" / name).analysis()
    assert analysis is not None
    return analysis.cells[0].time.value * 1e6


def found_and_put_back(directory: Path, cluster: lab.Lab, statements: Statements) -> None:
    """Plant it, and have the audit name it, the tuner cut it, and rollback put it back."""
    statements.say("it is planted", wulf(directory, "lab", "plant", "moderation").returncode == 0)
    audit = wulf(directory, "audit", "--cluster", "lab")
    statements.say("the audit names it", "ethtool -C host0 rx-usecs 0" in audit.stdout)
    (directory / "goal.toml").write_text(GOAL)
    words = ("--cluster", "lab", "--knobs", "nic.rx_usecs=0", "--objective", "goal.toml", "--budget", "3m")
    tuned = wulf(directory, "tune", "--run", "cut", *words)
    statements.say("the tuner comes to its end", tuned.returncode == 0)
    statements.say("interrupts are not held back any more", usecs(cluster) == ["0", "0"])
    wulf(directory, "rollback", "--cluster", "lab")
    statements.say("and rollback puts it back", usecs(cluster) == ["1000", "1000"])


def main(arguments: list[str]) -> int:
    """Do all of it, once."""
    nic: Nic = "igb" if "--nic=igb" in arguments else "e1000e"
    missing = [*lab.supported(), *image.lacking(nic)]
    if missing:
        raise SystemExit("bench: no virtual machines here: " + "; ".join(missing))
    with tempfile.TemporaryDirectory(prefix="wulf-vm-") as place:
        directory = Path(place)
        os.environ["WULF_LAB_DIR"] = str(directory / "lab")
        statements = Statements()
        up = wulf(directory, "lab", "up", "--vm", "--nic", nic, "--nodes", "2")
        boot_s = time.monotonic() - statements.begin
        statements.say("two nodes are up", up.returncode == 0)
        cluster = lab.current()
        assert cluster is not None, up.stderr
        try:
            found_and_put_back(directory, cluster, statements)
            minutes = (time.monotonic() - statements.begin) / 60
            figures = [half_round_trip_us(directory, name) for name in ("one", "two")]
        finally:
            cluster.down()
    print(
        f"half a round trip of 1 B with interrupts held back for 1 ms: {figures[0]:.1f}, {figures[1]:.1f} us"
    )
    return finish(
        "vm-lab",
        [
            Figure(name="minutes", value=minutes, goal=MINUTES),
            Figure(name="up_s", value=boot_s, goal=BOOT_S),
            Figure(name="not-holding", value=float(statements.failed), goal=0),
            Figure(name="apart_us", value=abs(figures[0] - figures[1]), goal=1.0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
