"""Tuning for real, in a virtual cluster: what was planted is found and mended, and nothing else is touched.

(a) A 300-rule firewall with connection tracking on two of four nodes, a wrong MTU on the third, offload and receive
    buffers spoilt on the fourth: `wulf tune` keeps what mends them, and the ping-pong is then within the A/A limit of
    the same cluster without any mistake (measured in turns: kept, clean, clean, kept).
(b) With nothing wrong it keeps nothing.
(c) With interfaces that cannot segment and links that carry 9000 B, the sweep for large messages picks jumbo frames.
(d) The run time of a command, and a number in its output, are objectives.
(e) Persisted settings hold after a reboot of all nodes, in facts and figures; the rollback leaves every node byte for
    byte as it was before the first change.

Each part prints what it saw; the value of the bench is the number of statements that do not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.common import Figure, finish
from wulf.base import catalogue
from wulf.base.records import PASSING_FACTS, NodeRecord
from wulf.base.store.tuning import TuningRun, load_tuning
from wulf.node import lab
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import capture
from wulf.node.lab.planted_faults import MISTAKES
from wulf.node.lab.topology import Link
from wulf.tools.tune import verify

NODES = 4
WULF = [sys.executable, "-m", "wulf.face.cli.main"]
#: Facts that a reboot or a change of files makes differ, whatever else is as before.
TRANSIENT = PASSING_FACTS | {"nic.addresses", "network.addresses", "settings.changed_since_boot"}
PING = "ping -q -f -c 4000 node02"


class Scene(msgspec.Struct, frozen=True):
    """A virtual cluster and a directory for runs."""

    lab: lab.Lab
    directory: Path

    def wulf(self, *words: str) -> str:
        """Run a command of wulf; return what it printed."""
        done = subprocess.run(
            [*WULF, *words], cwd=self.directory, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 3):
            raise SystemExit(f"bench: wulf {' '.join(words)}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
        return done.stdout

    def tune(self, name: str, *words: str) -> TuningRun:
        """Tune; return the run."""
        begin = time.monotonic()
        self.wulf("tune", "--run", name, *words)
        run = load_tuning(self.directory / "runs" / name)
        assert run.result is not None, "a search that ended has a conclusion"
        control = run.result.control
        limit = f"{control.smallest_effect:.1%}" if control else "unknown"
        print(
            f"  {name}: kept {run.result.kept or 'nothing'}; {run.result.trials_used} trials of "
            f"{run.manifest.plan.trial_s:.1f} s, {time.monotonic() - begin:.0f} s in all; smallest effect {limit}"
        )
        if run.result.confirmation is not None:
            ratio = run.result.confirmation.ratio
            print(f"    confirmed against the original: {ratio.value:.3f} ({ratio.low} to {ratio.high})")
        for error, count in Counter(trial.error for trial in run.trials if trial.error).items():
            print(f"    {count} trials failed: {error}")
        return run

    def on(self, number: int, script: str) -> None:
        """Run a script on a node."""
        argv = self.lab.ssh_argv(self.lab.layout.names()[number - 1], ["sh", "-c", script])
        subprocess.run(argv, check=True, capture_output=True, timeout=120)

    def everywhere(self, script: str) -> None:
        """Run a script on all nodes."""
        for number in range(1, NODES + 1):
            self.on(number, script)

    def facts(self) -> dict[str, NodeRecord]:
        """Capture all nodes."""
        config = inventory.parse(self.lab.cluster_toml(), "lab")
        transport = open_transport(config)
        try:
            knobs = list(catalogue.knobs().values())
            records = capture(transport, config.nodes, config.interface, knobs)
        finally:
            transport.close()
        return {record.node: record for record in records}


class Statements:
    """What must hold, and whether it did."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.count = 0

    def require(self, holds: bool, text: str) -> None:
        """Note a statement."""
        self.count += 1
        print(f"  {'holds' if holds else 'DOES NOT HOLD'}: {text}")
        if not holds:
            self.failed.append(text)


UNPLANT = {
    "firewall": "systemctl disable --now --quiet nftables; rm -f /etc/nftables.conf; nft flush ruleset",
    "mtu": "ip link set dev host0 mtu 1500",
    "offload": "ethtool -K host0 tso on gso on",
    "sysctl": "rm -f /etc/sysctl.d/60-memory.conf; sysctl -q -w net.ipv4.tcp_rmem='4096 131072 33554432'",
}


def plant(scene: Scene) -> None:
    """Make all mistakes."""
    scene.wulf("lab", "plant")


def unplant(scene: Scene) -> None:
    """Mend all mistakes by hand."""
    for name, mistake in MISTAKES.items():
        for number in mistake.nodes:
            scene.on(number, UNPLANT[name])


def planted(scene: Scene, statements: Statements, budget: str) -> None:
    """(a) and (e)."""
    plant(scene)
    before = scene.facts()
    run = scene.tune("planted", "--budget", budget)
    assert run.result is not None
    kept = run.result.kept
    statements.require(kept.get("net.conntrack") == "notrack", "the firewall and its tracking are found")
    harmful = [
        effect.knob
        for effect in run.result.effects
        if effect.knob in kept and effect.phase == "backward" and effect.verdict == "better"
    ]
    statements.require(not harmful, f"nothing harmful is kept {harmful}")
    statements.require(
        run.result.confirmation is not None and run.result.confirmation.verdict == "better",
        "the kept set is confirmed to be better than the original",
    )
    like_clean(scene, run, statements)
    lasting(scene, run, before, statements)
    unplant(scene)


def like_clean(scene: Scene, run: TuningRun, statements: Statements) -> None:
    """Compare the tuned cluster with a clean one, in turns."""
    words = [f"{knob}={value}" for knob, value in run.result.kept.items()] if run.result else []
    tuned: list[float] = []
    clean: list[float] = []
    for place, values in (("tuned", tuned), ("clean", clean), ("clean", clean), ("tuned", tuned)):
        if place == "clean":
            scene.wulf("rollback")
            unplant(scene)
        elif tuned:  # since the search it is until the first turn of the other
            plant(scene)
            scene.wulf("settings", "set", *words)
        values.extend(costs(scene, run))
    ratio = verify.ratio(clean, tuned)
    assert run.result is not None and run.result.control is not None
    limit = 1 + run.result.control.smallest_effect
    statements.require(
        ratio.low is not None and ratio.low <= limit and ratio.value <= limit,
        f"tuned ÷ clean is {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}), A/A limit {limit:.3f}",
    )


def costs(scene: Scene, run: TuningRun) -> list[float]:
    """Measure the objective as the nodes are."""
    text = scene.wulf("settings", "verify", run.path.name, "--json")
    return [float(cost) for cost in json.loads(text)["figures"]["costs"]]


def lasting(scene: Scene, run: TuningRun, before: dict[str, NodeRecord], statements: Statements) -> None:
    """(e): persist, reboot, verify, roll back."""
    scene.wulf("settings", "persist")
    for node in scene.lab.layout.names():
        scene.lab.reboot(node)
    # These mistakes do not outlive a reboot; those that are not mended belong to the state before the first change.
    for mistake, knob in (("mtu", "nic.mtu"), ("offload", "nic.tso_gso")):
        if run.result is not None and knob not in run.result.kept:
            scene.wulf("lab", "plant", mistake)
    found = json.loads(scene.wulf("settings", "verify", run.path.name, "--json"))
    wrong = [one["what"] for one in found["settings"] if not one["holds"]]
    statements.require(not wrong, f"after a reboot of all nodes the settings hold {wrong}")
    figures = found["figures"]
    statements.require(
        figures["holds"],
        f"and the figures: {figures['against_kept']['value']:.3f} of what was confirmed, "
        f"{figures['against_original']['value']:.3f} of the original",
    )
    scene.wulf("rollback")
    after = scene.facts()
    differing = {
        f"{node}: {name}": (facts_of(before[node]).get(name), facts_of(after[node]).get(name))
        for node in before
        for name in facts_of(before[node]).keys() | facts_of(after[node]).keys()
        if facts_of(before[node]).get(name) != facts_of(after[node]).get(name)
    }
    statements.require(
        not differing, f"the rollback leaves every fact as before the first change {differing or ''}"
    )


def facts_of(record: NodeRecord) -> dict[str, object]:
    """All facts of a node but those of the moment, known or not."""
    known: dict[str, object] = {**record.facts, **record.absent, **record.unsupported, **record.unknown}
    return {name: value for name, value in known.items() if name not in TRANSIENT}


def clean(scene: Scene, statements: Statements, budget: str) -> None:
    """(b)."""
    run = scene.tune("clean", "--budget", budget)
    assert run.result is not None
    statements.require(not run.result.kept, "with nothing wrong nothing is kept")


def jumbo(scene: Scene, statements: Statements, budget: str) -> None:
    """(c)."""
    scene.everywhere("ethtool -K host0 tso off gso off gro off; ip link set dev host0 mtu 1500")
    run = scene.tune("jumbo", "--objective", "bandwidth", "--knobs", "nic.mtu", "--budget", budget)
    assert run.result is not None
    mtu = int(run.result.kept.get("nic.mtu", "0"))
    statements.require(mtu > 1500, f"the sweep picks jumbo frames: {mtu} B")
    if mtu > 1500:
        ping = f"ping -q -M do -c 1 -W 2 -s {mtu - 28}"
        scene.everywhere(f"{ping} node01 && {ping} node04")
        statements.require(True, f"a packet of {mtu} B passes uncut from every node")
    for effect in run.result.effects:
        print(
            f"    {effect.phase} {effect.tried}: {effect.ratio.value:.3f} {effect.verdict}, {effect.trials} trials"
        )
    scene.wulf("rollback")
    scene.everywhere("ethtool -K host0 tso on gso on")


def application(scene: Scene, statements: Statements, budget: str) -> None:
    """(d)."""
    scene.wulf("lab", "plant", "firewall")
    common = ["--knobs", "net.conntrack", "--budget", budget, "--objective", f"app: {PING}"]
    for name, words in (
        ("run-time", []),
        ("number", ["--match", r"= [0-9.]+/([0-9.]+)/", "--unit", "ms"]),
    ):
        run = scene.tune(name, *common, *words)
        assert run.result is not None
        statements.require(
            set(run.result.kept) == {"net.conntrack"}, f"the {name} of a command finds the firewall"
        )
        scene.wulf("rollback")
    for number in MISTAKES["firewall"].nodes:
        scene.on(number, UNPLANT["firewall"])


PARTS: dict[str, tuple[Callable[[Scene, Statements, str], None], str, str, int | None]] = {
    # name: function, budget, quick budget, MTU of the links
    "planted": (planted, "10m", "3m", None),
    "clean": (clean, "6m", "2m", None),
    "application": (application, "3m", "90s", None),
    "jumbo": (jumbo, "4m", "4m", 9000),
}


@contextmanager
def raised(mtu: int | None, nodes: int = NODES) -> Iterator[Scene]:
    """Raise a virtual cluster of its own."""
    missing = lab.supported()
    if missing:
        raise SystemExit("bench: no virtual cluster here: " + "; ".join(str(item) for item in missing))
    with tempfile.TemporaryDirectory(prefix="wulf-tune-") as directory:
        os.environ["WULF_LAB_DIR"] = str(Path(directory) / "lab")
        up, _ = lab.up(nodes, Link(mtu=mtu))
        try:
            yield Scene(up, Path(directory))
        finally:
            up.down()


def main(arguments: list[str]) -> int:
    """Run the parts that are named, or all."""
    quick = "--quick" in arguments
    named = [word for word in arguments if not word.startswith("--")]
    statements = Statements()
    for name, (part, budget, short, mtu) in PARTS.items():
        if named and name not in named:
            continue
        print(f"{name}:")
        with raised(mtu) as scene:
            part(scene, statements, short if quick else budget)
    print(f"  {statements.count} statements")
    return finish("tune-lab", [Figure(name="not-holding", value=float(len(statements.failed)), goal=0)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
