"""Does the tuner find a packet filter that costs 5 % of the small-message time, on real nodes, in three minutes?

Two virtual nodes. A packet filter is sized until it costs 5 % of the time of the latency objective (launches in turn
with the cluster's interface exempt from it, and not); what it really costs is measured in the same way at the end.
Then the tuner runs, with that filter in a random half of the runs, and with ten knobs beside
`net.conntrack=exempt` that do nothing for short messages between two nodes.

found     of the runs with the filter, the share that keeps `net.conntrack=exempt`: goal ≥ 0.9
false     of the runs without it, those that keep it; and runs that keep anything else: goal none
within    of the runs that found it, the share whose interval holds what the filter really costs: goal ≥ 0.9
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence

from bench.common import Figure, finish
from bench.tune_lab import Scene, raised

RUNS, BUDGET = 20, "3m"
COST = 0.05
#: The size is right when the cost is within this share of what is wanted.
NEAR = 0.3
FIRST_RULES = 150
ATTEMPTS = 5
CAUSE = "net.conntrack=exempt"
USELESS = (
    "sysctl.net.ipv4.tcp_slow_start_after_idle=0",
    "sysctl.net.ipv4.tcp_sack=0",
    "sysctl.net.ipv4.tcp_low_latency=1",
    "sysctl.net.ipv4.tcp_limit_output_bytes=262144,4194304",
    "sysctl.net.ipv4.tcp_rmem='4096 131072 16777216'",
    "sysctl.net.ipv4.tcp_congestion_control=reno",
    "sysctl.net.ipv4.tcp_autocorking=0",
    "ompi.btl_tcp_sndbuf=262144",
    "ompi.btl_tcp_links=2",
    "ompi.btl_tcp_eager_limit=131072",
)
NODES = ["--cluster", "lab", "--nodes", "node[01-02]"]


def filtered(scene: Scene, rules: int) -> None:
    """Give both nodes a packet filter of so many rules; none for 0."""
    script = "nft flush ruleset"
    if rules:
        script += (
            "; { echo 'table inet planted { chain in { type filter hook input priority 0; policy accept;'; "
            f'for i in $(seq {rules}); do echo "ip saddr 203.0.113.$((i % 250)) tcp dport $((20000 + i)) drop"; done; '
            "echo 'ct state invalid drop'; echo '}'; echo '}'; } | nft -f -"
        )
    for number in (1, 2):
        scene.on(number, script)


def cost(scene: Scene, launches: int) -> tuple[float, float, float]:
    """What the filter costs of the time of 1 B: share, and its interval."""
    words = ["compare", "--interleaved", CAUSE, "original", *NODES, "--ops", "mpi_pingpong", "--sizes", "1"]
    (found,) = json.loads(scene.wulf(*words, "--launches", str(launches), "--budget", "10m", "--json"))
    ratio = found["pooled"]["mpi_pingpong"]["ratio"]
    return ratio["value"] - 1, (ratio["low"] or ratio["value"]) - 1, (ratio["high"] or ratio["value"]) - 1


def sized(scene: Scene) -> int:
    """Return the number of rules that cost what is wanted."""
    rules = FIRST_RULES
    for _ in range(ATTEMPTS):
        filtered(scene, rules)
        found, low, high = cost(scene, 30)
        print(f"  {rules} rules cost {found:+.1%} ({low:+.1%} to {high:+.1%})", flush=True)
        if abs(found - COST) <= NEAR * COST:
            break
        rules = max(min(round(rules * COST / max(found, COST / 4)), 4 * rules), rules // 4, 1)
    return rules


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    print(__doc__)
    runs, budget = (2, "2m") if "--quick" in arguments else (RUNS, BUDGET)
    planted = [number % 2 == 0 for number in range(runs)]
    random.Random(20261122).shuffle(planted)
    found, false, others, intervals = 0, 0, 0, []
    with raised(None) as scene:
        rules = sized(scene)
        for number, has_filter in enumerate(planted):
            filtered(scene, rules if has_filter else 0)
            words = [
                "--budget",
                budget,
                "--only-search",
                "--seed",
                str(number),
                "--knobs",
                " ".join((CAUSE, *USELESS)),
            ]
            run = scene.tune(f"run{number:02d}", *NODES, *words)
            assert run.result is not None
            kept = set(run.result.kept)
            others += bool(kept - {"net.conntrack"})
            if "net.conntrack" in kept:
                found, false = found + has_filter, false + (not has_filter)
                if has_filter and run.result.confirmation is not None:
                    intervals.append(run.result.confirmation.ratio)
        filtered(scene, rules)
        true, low, high = cost(scene, 60)
        filtered(scene, 0)
    print(f"  {rules} rules really cost {true:+.1%} ({low:+.1%} to {high:+.1%})")
    # The tuner says what is gained: the inverse.
    within = [one for one in intervals if one.low and one.high and one.low <= 1 / (1 + true) <= one.high]
    total = sum(planted)
    print(
        f"  found {found} of {total}, kept in {false} of {runs - total} without it, anything else in {others}"
    )
    return finish(
        "tune-live",
        [
            Figure(name="missed", value=1 - found / total, goal=0.1),
            Figure(name="false", value=float(false), goal=0.0),
            Figure(name="runs-with-anything-else", value=float(others), goal=0.0),
            Figure(name="outside-its-interval", value=1 - len(within) / max(len(intervals), 1), goal=0.1),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
