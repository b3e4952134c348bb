"""The audit of 100, 1,000 and 10,000 nodes: the controller's work, its memory, and how they grow.

The nodes are a program in place of ssh that answers with trees captured from a real node (made as long as those
of a 64-core machine, and varied: one in fifty has another kernel, MTU, parameter or service). All else is real:
the fan-out, the parsing of every node's text, the checks, the comparison across nodes, the printed result.

Beside it, `clush -b` asks 1,000 of the same nodes for the same text and gathers what is alike, which is all that it
does; 10,000 would take it ten minutes and 9 GiB.

Goals: a node takes at most twice the processor time of clush; 10,000 nodes take at most 1 GiB of memory; time grows
with the number of nodes to the power of at most 1.1.
"""

from __future__ import annotations

import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path

from ClusterShell.CLI.Clush import main as clush
from rich.console import Console

from bench.common import Figure, finish
from wulf.node.cluster import inventory
from wulf.node.fleet.look import judge, look
from wulf.page.sections import findings as shown
from wulf.page.terminal import print_page

CAPTURED = Path(__file__).parents[1] / "tests" / "golden" / "lab-node.tree"
FAKE = Path(__file__).parent / "native" / "fake_ssh.c"
SIZES = (100, 1000, 10000)
#: One variant in so many differs from the rest.
VARIANTS = 50
INTERFACE = "host0"


def trees(directory: Path) -> None:
    """Write the answers: one usual tree many times, and a few that differ."""
    usual = CAPTURED.read_text(encoding="utf-8")
    usual = usual.replace(" node01\n", " @NODE@\n", 1).replace("198.18.0.10/15", "@A@/8")
    usual += "-\n" + "".join(_cpu(cpu) for cpu in range(2, 64))
    for index in range(VARIANTS):
        (directory / f"{index}.tree").write_text(usual, encoding="utf-8")
    odd = (
        ("/sys/class/net/host0/mtu:1500", "/sys/class/net/host0/mtu:9000"),
        ("/proc/sys/net/ipv4/tcp_sack:1", "/proc/sys/net/ipv4/tcp_sack:0"),
    )
    for index, (old, new) in enumerate(odd):
        assert old in usual
        (directory / f"{7 + index}.tree").write_text(usual.replace(old, new), encoding="utf-8")
    peers = "#date 0\n @TIME@\n#end 0\n @TIME@\n#path.1 0\n n1 1500\n!clock ping is not installed\n"
    names = "".join(f"#name.n{n} 0\n 10.0.0.{n}\n" for n in range(1, 65))
    (directory / "peers.tree").write_text(peers + names, encoding="utf-8")


def _cpu(cpu: int) -> str:
    place = f"/sys/devices/system/cpu/cpu{cpu}"
    return (
        f"{place}/cpufreq/scaling_governor:performance\n{place}/cpufreq/scaling_max_freq:3500000\n"
        f"{place}/cpufreq/scaling_min_freq:800000\n{place}/cpufreq/scaling_cur_freq:{3400000 + cpu}\n"
        f"{place}/cpufreq/cpuinfo_max_freq:3500000\n"
        f"/proc/irq/{200 + cpu}/smp_affinity_list:{cpu}\n/proc/irq/{200 + cpu}/effective_affinity_list:{cpu}\n"
    )


def one(count: int) -> dict[str, float]:
    """Audit so many nodes in this process; return what it took."""
    config = inventory.from_nodes(f"n[1-{count}]", interface=INTERFACE)
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.monotonic()
    audit = judge(look(config, list(config.nodes)), "hpc")
    page = io.StringIO()
    print_page(shown.page(audit), Console(file=page, width=100))
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert not audit.unreachable, next(iter(audit.unreachable.values()))
    return {
        "nodes": count,
        "wall_s": wall,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "memory_mib": after.ru_maxrss / 1024,
        "findings": len(audit.findings),
        "lines": page.getvalue().count("\n"),
    }


def gather(count: int) -> dict[str, float]:
    """Let clush gather the same text from so many nodes in this process; return what it took."""
    # What the stand-in looks for in a command of ours.
    command = "sh -c : wulf 0123456789abcdef -s -- x"
    sys.argv = [
        "clush",
        "-b",
        "-S",
        "--nostdin",
        "-f",
        str(inventory.local().ssh.fanout),
        "-w",
        f"n[1-{count}]",
        command,
    ]
    before = resource.getrusage(resource.RUSAGE_SELF)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), suppress(SystemExit):
        clush()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "memory_mib": after.ru_maxrss / 1024,
    }


def apart(what: str, count: int, environment: Mapping[str, str]) -> dict[str, float]:
    """Run one of them in a process of its own."""
    words = [sys.executable, "-m", "bench.audit_scale", what, str(count)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"bench: {what} {count} nodes: {done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main(arguments: list[str]) -> int:
    """Entry point."""
    for name, measured in (("--one", one), ("--gather", gather)):
        if name in arguments:
            print(json.dumps(measured(int(arguments[-1]))))
            return 0
    print(__doc__)
    sizes = SIZES[:2] if "--quick" in arguments else SIZES
    results = []
    with tempfile.TemporaryDirectory(prefix="wulf-bench-") as name:
        directory = Path(name)
        (directory / "bin").mkdir()
        subprocess.run(["cc", "-O2", "-o", directory / "bin" / "ssh", FAKE], check=True)
        trees(directory)
        environment = os.environ | {
            "PATH": f"{directory}/bin:{os.environ['PATH']}",
            "WULF_FAKE_TREES": str(directory),
            "WULF_FAKE_COUNT": str(VARIANTS),
        }
        size = (directory / "0.tree").stat().st_size
        print(f"a node prints {size / 1024:.0f} KiB\n")
        print("| nodes | wall [s] | controller CPU [s] | per node [ms] | memory [MiB] | findings | lines |")
        print("|---:|---:|---:|---:|---:|---:|---:|")
        for count in sizes:
            row = apart("--one", count, environment)
            results.append(row)
            print(
                f"| {count} | {row['wall_s']:.1f} | {row['cpu_s']:.1f} | {1e3 * row['cpu_s'] / count:.2f} "
                f"| {row['memory_mib']:.0f} | {row['findings']:.0f} | {row['lines']:.0f} |",
                flush=True,
            )
        theirs = apart("--gather", SIZES[1], environment)
        print(f"\nclush -b, {SIZES[1]} nodes: {theirs['cpu_s']:.1f} s of CPU, {theirs['memory_mib']:.0f} MiB")
    print()
    last, first = results[-1], results[-2]
    growth = math.log(last["cpu_s"] / first["cpu_s"]) / math.log(last["nodes"] / first["nodes"])
    return finish(
        "audit-scale",
        [
            Figure(
                name="cpu-of-a-node-by-clush",
                value=(last["cpu_s"] / last["nodes"]) / (theirs["cpu_s"] / SIZES[1]),
                goal=2.0,
            ),
            Figure(name="memory-mib", value=last["memory_mib"], goal=1024.0),
            Figure(name="growth-exponent", value=growth, goal=1.1),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
