"""The socket probe's TCP round trip against sockperf and qperf, on the same pair.

Goal: ratio <= 1.05 to both.

All three block in recv() and send small messages without delay (TCP_NODELAY). sockperf and the probe report
the median half round trip; qperf reports a mean over the run ("tcp_lat"), half a round trip as well.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from bench import common
from bench.probe_mpi import cell_medians
from wulf.base.native import build
from wulf.node.probe import parse

SIZE = 16  # sockperf's header needs 14 bytes
SECONDS = 1


def probe(pair: common.Pair, program: str) -> Callable[[], dict[str, float]]:
    """Return the arm that runs the probe's tcp_rr."""
    near, far = common.PAIR
    address = pair.config.address(far)

    def run() -> dict[str, float]:
        token = secrets.token_hex(8)
        with pair.transport.start(
            [program, "--server", "--bind", address, "--token-stdin"], far, line=token
        ) as server:
            hello = parse.message(next(server.lines(common.LINE_TIMEOUT_S)))
            assert isinstance(hello, parse.Hello)
            words = [program, "--connect", f"{address}:{hello.port}", "--token-stdin", "--op", "tcp_rr"]
            words += ["--sizes", str(SIZE), "--sweeps", "200", "--visit-us", "5000"]
            return {"time": cell_medians(pair.output(words, near, stdin=token))[f"{SIZE} B"]}

    return run


def sockperf(pair: common.Pair) -> Callable[[], dict[str, float]]:
    """Return the arm that runs sockperf ping-pong."""
    near, far = common.PAIR
    address = pair.config.address(far)

    def run() -> dict[str, float]:
        with pair.transport.start(["sockperf", "server", "--tcp", "-i", address, "-p", "11111"], far):
            _wait(pair, near, address, 11111)
            words = ["sockperf", "ping-pong", "--tcp", "-i", address, "-p", "11111"]
            said = pair.output([*words, "-m", str(SIZE), "-t", str(SECONDS)], near)
        found = re.search(r"percentile 50\.000\s*=\s*([\d.]+)", said)
        if found is None:
            raise SystemExit(f"bench: sockperf printed no median:\n{said}")
        return {"time": float(found[1]) * 1e-6}

    return run


def qperf(pair: common.Pair) -> Callable[[], dict[str, float]]:
    """Return the arm that runs qperf tcp_lat."""
    near, far = common.PAIR
    address = pair.config.address(far)

    def run() -> dict[str, float]:
        with pair.transport.start(["qperf"], far):
            _wait(pair, near, address, 19765)
            said = pair.output(["qperf", "-t", str(SECONDS), "-m", str(SIZE), address, "tcp_lat"], near)
        found = re.search(r"latency\s*=\s*([\d.]+)\s*(us|ms)", said)
        if found is None:
            raise SystemExit(f"bench: qperf printed no latency:\n{said}")
        return {"time": float(found[1]) * {"us": 1e-6, "ms": 1e-3}[found[2]]}

    return run


def _wait(pair: common.Pair, node: str, address: str, port: int) -> None:
    """Wait until somebody listens there."""
    script = (
        f"for i in $(seq 100); do (exec 3<>/dev/tcp/{address}/{port}) 2>/dev/null && exit 0; "
        "sleep 0.05; done; exit 1"
    )
    pair.output(["bash", "-c", script], node)


PEERS = {"sockperf": sockperf, "qperf": qperf}


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    rounds = 6 if "--quick" in arguments else 15
    for name in PEERS:
        common.require(name, package=name)
    with common.pair() as pair:
        program = pair.install(build.build(None).path)
        arms = {"probe": probe(pair, program)}
        arms |= {name: make(pair) for name, make in PEERS.items()}
        print(f"{rounds} rounds of one launch each, in random order; {SIZE} B; {' – '.join(common.PAIR)}")
        values = common.interleave(arms, rounds)
    common.show(values, "µs", 1e6)
    ours = values["probe"]["time"]
    return common.finish(
        "probe-tcp",
        [common.ratio(name, ours, values[name]["time"], 1.05) for name in values if name != "probe"],
    )
