"""What happened around a launch: the difference of two looks, and when it makes the launch suspect."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.contracts import NodeResult
from wulf.base.records import NodeContext, Scheduled
from wulf.node.cluster.inventory import local
from wulf.node.cluster.transport import open_transport
from wulf.node.facts.capture import scripts, snapshot
from wulf.node.facts.context import (
    Limits,
    RankScheduled,
    Snapshot,
    contamination,
    difference,
    read_snapshot,
)

LOOK = """\
#uptime
 100.00 150.00
#stat
 cpu0 100 0 50 9000 10 0 5 2 0 0
 cpu1 100 0 50 9000 10 0 5 2 0 0
 ctxt 123456
#pressure
 some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000
#loadavg
 0.50 0.40 0.30 1/100 999
#allowed
 Cpus_allowed_list:\t0
!frequency there is no cpufreq
#energy
 intel-rapl:0 package-0 5000000 262143328850
 intel-rapl:0:0 core 4000000 262143328850
#nic
 /sys/class/net/eth0/statistics/rx_errors:3
 /sys/class/net/eth0/statistics/rx_dropped:7
"""


def look(text: str, status: str = "ok", reason: str = "") -> Snapshot:
    answer = {"node": "n1", "status": status, "exit_code": 0, "stdout": text.encode(), "stderr": b""}
    return read_snapshot(msgspec.convert({**answer, "reason": reason}, NodeResult))


def node(ticks: dict[int, list[float]], uptime_s: float, **more: object) -> Snapshot:
    """Return a look; `ticks` are user, idle and steal of each CPU [1/100 s]."""
    rows = {cpu: [user, 0, 0, idle, 0, 0, 0, steal] for cpu, (user, idle, steal) in ticks.items()}
    return msgspec.convert({"node": "n1", "uptime_s": uptime_s, "ticks": rows, **more}, Snapshot)


def test_a_look_is_read() -> None:
    seen = look(LOOK)
    assert seen.uptime_s == 100.0
    assert seen.ticks == {
        0: (100, 0, 50, 9000, 10, 0, 5, 2),
        1: (100, 0, 50, 9000, 10, 0, 5, 2),
    }
    assert (seen.context_switches, seen.waited_s, seen.load1, seen.cpus) == (123456, 2.0, 0.5, [0])
    assert seen.nic_errors == {"rx_errors": 3, "rx_dropped": 7}
    assert (seen.cpu_frequency_hz, seen.unknown) == (None, {"cpu_frequency_hz": "there is no cpufreq"})


def test_waiting_without_pressure_information_comes_from_schedstat() -> None:
    rows = " cpu0 0 0 0 0 0 0 50 3000000000 9\n cpu1 0 0 0 0 0 0 50 1000000000 9\n"
    assert look(f"!pressure there is no /proc/pressure/cpu\n#schedstat\n{rows}").waited_s == 2.0
    assert "psi=1" in look("!pressure none\n!schedstat none\n").unknown["waited_s"]


def test_foreign_cpu_time_is_what_the_launch_cannot_have_used() -> None:
    before = node({0: [0, 0, 0], 1: [0, 0, 0]}, 10)
    after = node({0: [100, 0, 0], 1: [60, 40, 0]}, 11)
    assert difference(before, after, 1.0).foreign_cpu_ratio == pytest.approx(0.3)
    assert difference(before, after, 2.0).foreign_cpu_ratio == 0.0
    command = difference(before, after, None)
    assert command.foreign_cpu_ratio is command.cpu_wait_ratio is None, "its own processes are no other load"
    assert "launch itself" in command.unknown["foreign_cpu_ratio"]


def test_only_the_cpus_that_the_node_may_run_on_count() -> None:
    before = node({0: [0, 0, 0], 1: [0, 0, 0]}, 10, cpus=[0])
    after = node({0: [0, 90, 10], 1: [100, 0, 0]}, 11, cpus=[0])
    seen = difference(before, after, 0.0)
    assert (seen.foreign_cpu_ratio, seen.steal_ratio) == (0.0, pytest.approx(0.1))


def test_waiting_and_switches_are_rates() -> None:
    before = node({0: [0, 0, 0]}, 10, waited_s=1.0, context_switches=100)
    after = node({0: [0, 200, 0]}, 12, waited_s=1.5, context_switches=1100)
    seen = difference(before, after, 1.0)
    assert (seen.interval_s, seen.cpu_wait_ratio, seen.context_switches_per_s) == (2.0, 0.25, 500.0)


def test_a_node_that_was_restarted_is_unknown_not_zero() -> None:
    seen = difference(node({0: [9, 9, 9]}, 100), node({0: [1, 1, 1]}, 5), 1.0)
    assert (seen.interval_s, seen.steal_ratio, seen.foreign_cpu_ratio) == (None, None, None)
    assert "restarted" in seen.unknown["steal_ratio"]


def test_an_interface_that_was_reset_is_unknown_not_negative() -> None:
    seen = difference(node({}, 1, nic_errors={"rx_errors": 5}), node({}, 2, nic_errors={"rx_errors": 0}), 1.0)
    assert (seen.nic_errors, seen.unknown["nic_errors"]) == (
        {},
        "a counter went backwards: the interface was reset",
    )


def test_a_node_that_did_not_answer_says_why_everywhere() -> None:
    seen = difference(look(LOOK), look("", "timeout", "n1: no answer within 20 s"), 1.0)
    fields = set(NodeContext.__struct_fields__) - {"node", "unknown"}
    assert set(seen.unknown) == fields
    assert set(seen.unknown.values()) == {"n1: no answer within 20 s"}
    assert contamination([seen]) == []


@pytest.mark.parametrize(
    ("context", "reasons"),
    [
        (NodeContext(node="n1"), []),
        (NodeContext(node="n1", foreign_cpu_ratio=0.05, steal_ratio=0.005, interval_s=3.0), []),
        (NodeContext(node="n1", foreign_cpu_ratio=0.3), ["n1: other processes used 30% of the CPU time"]),
        (NodeContext(node="n1", steal_ratio=0.02), ["n1: the hypervisor took 2.0% of the CPU time"]),
        (
            NodeContext(node="n1", cpu_wait_ratio=0.18, interval_s=3.5),
            ["n1: processes waited for a CPU 18% of the time"],
        ),
        # All of a short launch is start-up.
        (NodeContext(node="n1", cpu_wait_ratio=0.18, interval_s=0.3), []),
        (
            NodeContext(node="n1", nic_errors={"rx_crc_errors": 2}, interval_s=3.0),
            ["n1: the interface counted errors: rx_crc_errors +2"],
        ),
        (NodeContext(node="n1", nic_errors={"rx_dropped": 20}, interval_s=3.0), []),
        (
            NodeContext(node="n1", nic_errors={"rx_dropped": 40}, interval_s=3.0),
            ["n1: the interface counted errors: rx_dropped +40"],
        ),
    ],
)
def test_limits(context: NodeContext, reasons: list[str]) -> None:
    assert contamination([context]) == reasons


def test_ranks_that_share_a_cpu_wait_for_each_other() -> None:
    context = NodeContext(node="n1", cpu_wait_ratio=0.9, interval_s=3.0)
    assert contamination([context], shared_cpu=True) == []
    assert contamination([context], limits=Limits(cpu_wait_ratio=0.95)) == []
    assert len(contamination([context, msgspec.structs.replace(context, node="n2")])) == 2


NAMES = st.sampled_from(["uptime", "stat", "pressure", "schedstat", "loadavg", "allowed", "frequency", "nic"])
BODIES = st.one_of(
    st.text(max_size=60),
    st.integers(0, 2**65).map(lambda n: f"cpu{n % 5} " + f"{n} " * 10),
    st.integers(0, 2**65).map(lambda n: f"some total={n}"),
    st.integers(-3, 2**65).map(lambda n: f"/sys/class/net/eth0/statistics/rx_errors:{n}"),
    st.text(max_size=8).map(lambda text: f"Cpus_allowed_list:{text}"),
    st.floats().map(lambda value: f"{value} {value}"),
)
TREES = st.one_of(
    st.text(max_size=200),
    st.lists(st.tuples(NAMES, BODIES), max_size=12).map(
        lambda pairs: "".join(f"#{name}\n {body}\n" for name, body in pairs)
    ),
    st.tuples(st.integers(0, len(LOOK)), st.integers(0, len(LOOK))).map(
        lambda ij: LOOK[: ij[0]] + LOOK[ij[1] :]
    ),
)


def powered(uptime_s: float, *zones: str) -> Snapshot:
    """Return a look with energy counters."""
    listed = "".join(f" {zone}\n" for zone in zones)
    return look(f"#uptime\n {uptime_s:.2f} 0.00\n#energy\n{listed}")


@pytest.mark.parametrize(
    ("before", "after", "joules", "reason"),
    [
        (["0 package-0 5000000 262143328850"], ["0 package-0 905000000 262143328850"], 900.0, ""),
        # Memory counts beside its package, cores within it do not; a second package comes round once.
        (
            ["0 package-0 0 9e10", "0:0 core 0 9e10", "0:1 dram 0 9e10", "1 package-1 89999000000 9e10"],
            [
                "0 package-0 500000000 9e10",
                "0:0 core 4 9e10",
                "0:1 dram 20000000 9e10",
                "1 package-1 79000000 9e10",
            ],
            600.0,
            "",
        ),
        (["0 package-0 unreadable 0"], ["0 package-0 unreadable 0"], None, "only root may read"),
        (["0 package-0 5 65000000"], ["0 package-0 6 65000000"], None, "may come round within 0 s"),
        (["0 package-0 5 90000000000"], ["1 package-1 6 90000000000"], None, "other energy counters"),
        (["0 package-0 5 0"], ["0 package-0 1 0"], None, "went backwards"),
        (["0 core 5 90000000000"], ["0 core 9 90000000000"], None, "no energy counters"),
        (["nonsense"], ["0 package-0 9 90000000000"], None, "cannot be told"),
    ],
)
def test_energy_is_what_the_counters_surely_say(
    before: list[str], after: list[str], joules: float | None, reason: str
) -> None:
    first, last = (
        powered(at, *(f"intel-rapl:{one.replace('9e10', '90000000000')}" for one in zones))
        for at, zones in ((100, before), (110, after))
    )
    seen = difference(first, last, 1.0)
    assert seen.cpu_joules == (None if joules is None else pytest.approx(joules))
    assert reason in seen.unknown.get("cpu_joules", "")


def test_energy_counters_are_read_from_where_the_kernel_has_them(tmp_path) -> None:
    for zone, name, spent in (("intel-rapl:0", "package-0", "123456"), ("intel-rapl:0:1", "dram", None)):
        place = tmp_path / "sys/class/powercap" / zone
        place.mkdir(parents=True)
        (place / "name").write_text(f"{name}\n")
        (place / "max_energy_range_uj").write_text("262143328850\n")
        if spent is not None:
            (place / "energy_uj").write_text(f"{spent}\n")
    script = scripts("energy.sh", "context.sh")

    def printed() -> Snapshot:
        shown = subprocess.run(
            ["sh", "-s", "--", "", str(tmp_path)], input=script, capture_output=True, check=True
        )
        return look(shown.stdout.decode())

    assert "only root may read" in printed().unknown["joules"]
    (tmp_path / "sys/class/powercap/intel-rapl:0:1/energy_uj").write_text("77\n")
    assert printed().joules == {
        "0": (pytest.approx(0.123456), pytest.approx(262143.32885)),
        "0:1": (pytest.approx(7.7e-5), pytest.approx(262143.32885)),
    }


@given(TREES, TREES)
def test_whatever_nodes_print_there_is_a_context(first: str, second: str) -> None:
    surrogate_free = [text.encode("utf-8", "replace").decode() for text in (first, second)]
    seen = difference(look(surrogate_free[0]), look(surrogate_free[1]), 1.0)
    for name in set(NodeContext.__struct_fields__) - {"node", "unknown", "nic_errors"}:
        assert (getattr(seen, name) is None) == (name in seen.unknown)
    for ratio in (seen.steal_ratio, seen.foreign_cpu_ratio, seen.cpu_wait_ratio):
        assert ratio is None or 0 <= ratio <= 1
    assert msgspec.json.decode(msgspec.json.encode(seen), type=NodeContext) == seen
    contamination([seen])


def test_this_machine_with_a_foreign_load_on_every_cpu() -> None:
    transport = open_transport(local())
    (before,) = snapshot(transport, ["local1"], "lo")
    load = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    try:
        time.sleep(1.0)
        (after,) = snapshot(transport, ["local1"], "lo")
    finally:
        for process in load:
            process.kill()
            process.wait()
    seen = difference(before, after, 0.0)
    assert seen.interval_s is not None and seen.interval_s > 0.9
    assert seen.foreign_cpu_ratio is not None and seen.foreign_cpu_ratio > 0.5
    assert seen.cpu_wait_ratio is None or seen.cpu_wait_ratio > 0.2
    assert seen.context_switches_per_s is not None and seen.context_switches_per_s > 0
    assert any("other processes used" in reason for reason in contamination([seen]))


def test_looking_is_cheap() -> None:
    transport = open_transport(local())
    costs = []
    for _ in range(5):
        begin = _cpu_time()
        snapshot(transport, ["local1"], "lo")
        costs.append(_cpu_time() - begin)
    # 10 ms; far below a launch's own start in any case.
    assert min(costs) < 0.1


def _cpu_time() -> float:
    """CPU time of this process and of what it started and has waited for [s]; a busy machine hardly changes it."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def rank(
    node: str, cpus: list[int], ran_s: float, waited_s: float | None, lasted_s: float = 4.0
) -> RankScheduled:
    seen = Scheduled(lasted_s=lasted_s, ran_s=ran_s, waited_s=waited_s, displaced=9)
    return RankScheduled(node, cpus, seen)


ALONE = rank("n2", [1], 3.95, 0.04)


@pytest.mark.parametrize(
    ("first", "suspect"),
    [
        (rank("n1", [0], 3.95, 0.04), False),
        (rank("n1", [0], 3.6, 0.4), True),  # a load of 10 % beside one that spins
        (rank("n1", [0], 2.0, 2.0), True),
        (rank("n1", [0], 2.4, 0.02), False),  # it sleeps between messages
        (rank("n1", [0], 1.6, 0.2), True),
        (rank("n1", [0], 0.01, 0.01), False),  # it hardly ever runs
        (rank("n1", [0], 3.6, None), False),  # the kernel does not say
    ],
)
def test_a_rank_says_what_it_waited_for_others(first: RankScheduled, suspect: bool) -> None:
    found = contamination([], [first, ALONE])
    assert [reason.partition(":")[0] for reason in found] == (["n1"] if suspect else [])


def test_waits_of_others_do_not_count_where_ranks_tell_theirs() -> None:
    context = NodeContext(node="n1", cpu_wait_ratio=0.9, interval_s=3.0)
    assert contamination([context], [rank("n1", [0], 3.95, 0.04), ALONE]) == []
    assert contamination([context], [rank("n1", [0], 3.95, None), ALONE]) != []


def test_ranks_of_one_cpu_wait_for_each_other() -> None:
    pair = [rank("n1", [0], 2.0, 2.0), rank("n2", [0], 2.0, 2.0)]
    assert len(contamination([], pair)) == 2  # two machines, each with its CPU 0
    assert contamination([], pair, one_machine=lambda *_: True) == []
    loaded = [rank("n1", [0], 1.3, 2.7), rank("n2", [0], 1.3, 2.7)]
    assert len(contamination([], loaded, one_machine=lambda *_: True)) == 2


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_nobody_else_is_blamed_for_what_ranks_take_from_each_other(cpus: int, ranks: int, seed: int) -> None:
    """In each slice of time the CPUs go to some of those that want one, and the others wait."""
    random, slices = Random(seed), 200
    ran, waited = [0] * ranks, [0] * ranks
    for _ in range(slices):
        ready = [index for index in range(ranks) if random.random() < 0.7]
        random.shuffle(ready)
        for place, index in enumerate(ready):
            (ran if place < cpus else waited)[index] += 1
    allowed = list(range(cpus))
    assert (
        contamination([], [rank("n1", allowed, *each, slices) for each in zip(ran, waited, strict=True)])
        == []
    )
