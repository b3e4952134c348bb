"""The socket probe over loopback: what it prints, and that its figures are true."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from tests.native.probe import TIMEOUT_S, cells, client, lines_of, run, server
from tests.native.programs import HERE, compiled
from tests.native.proxy import DropEvery, OvertakeEvery, delay, flip, proxy
from tests.tiers import mostly_thorough
from wulf.base.records import Operation

SHORT = ("--sweeps", "3", "--visit-us", "500")
#: Far more than the proxy itself takes, and a processor that others use.
DELAY_S = 0.2


def test_lists_its_operations(net_probe: Path) -> None:
    said = subprocess.run([net_probe, "--list"], capture_output=True, check=True).stdout
    operations = {item.name: item for item in msgspec.json.decode(said, type=list[Operation])}
    assert {"empty", "tcp_connect", "tcp_rr", "tcp_stream", "tcp_streams", "udp_rr"} <= set(operations)
    assert operations["udp_rr"].lossy
    assert not operations["tcp_rr"].lossy


@pytest.mark.parametrize("op", ["tcp_rr", "tcp_stream", "tcp_streams", "udp_rr"])
def test_measures_every_size(net_probe: Path, op: str) -> None:
    with server(net_probe) as (process, port):
        lines = run(client(net_probe, port, op, "1024,8,30000", *SHORT))
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    assert lines_of(rest)[-1]["type"] == "end"
    assert process.returncode == 0
    hello = lines[0]
    assert hello["op"] == op
    assert len(hello["hosts"]) == len(hello["cpus"]) == 2
    found = cells(lines)
    assert list(found) == [8, 1024, 30000]
    for cell in found.values():
        assert cell["corrupt"] == 0
        assert len(cell["batch_medians_ns"]) == 3
        assert cell["timing"] == ("batch" if "stream" in op else "iteration")


def test_measures_itself_alone(net_probe: Path) -> None:
    lines = run([net_probe, "--op", "empty", "--sizes", "0", *SHORT])
    assert 0 < cells(lines)[0]["min_ns"] < 10_000
    (reference,) = [line for line in lines if line["type"] == "reference"]
    assert [len(values) for values in reference["medians_ns"]] == [3]


@pytest.mark.parametrize("op", mostly_thorough(["tcp_rr", "tcp_stream", "udp_rr"], "udp_rr"))
def test_references_are_among_the_visits(net_probe: Path, op: str) -> None:
    with server(net_probe) as (_, port):
        lines = run(client(net_probe, port, op, "64,1024", "--reference-us", "700", *SHORT))
    (reference,) = [line for line in lines if line["type"] == "reference"]
    # Both sides; three sweeps, two sizes.
    assert [len(values) for values in reference["medians_ns"]] == [6, 6]
    # Of both sides one after the other, before the visit beside which it is.
    visits = sorted(at for cell in cells(lines).values() for at in cell["batch_at_us"])
    for before, at, visit in zip([0, *visits], reference["at_us"], visits, strict=False):
        assert before + 2 * 700 <= at <= visit


def test_makes_no_reference_when_none_is_wanted(net_probe: Path) -> None:
    with server(net_probe) as (_, port):
        lines = run(client(net_probe, port, "tcp_rr", "64", "--reference-us", "0", *SHORT))
    assert [line["type"] for line in lines if line["type"] not in ("progress", "cell")] == [
        "hello",
        "scheduled",
        "end",
    ]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--op", "tcp_rr", "--sizes", "8"], "--connect"),
        (["--op", "mpi_pingpong", "--sizes", "8"], "--op"),
        (["--op", "tcp_rr", "--sizes", "0", "--connect", "127.0.0.1:1"], "--sizes"),
        (["--server", "--port", "x"], "--port"),
        (["--wrong"], "--wrong"),
    ],
)
def test_names_a_bad_option(net_probe: Path, words: list[str], option: str) -> None:
    done = subprocess.run([net_probe, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert option in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout


@pytest.mark.parametrize("op", mostly_thorough(["tcp_rr", "udp_rr"], "tcp_rr"))
def test_sees_a_known_delay(net_probe: Path, op: str) -> None:
    fault = delay(DELAY_S)
    faults = {"tcp": fault} if op == "tcp_rr" else {"udp": fault}
    with server(net_probe) as (_, port), proxy(port, **faults) as near:
        patient = ("--sweeps", "2", "--datagram-timeout-us", "1000000")
        cell = cells(run(client(net_probe, near, op, "64", *patient)))[64]
    # The proxy's own way and an overslept timer come on top; a factor of two would be a wrong divisor.
    assert DELAY_S / 2 * 1e9 <= cell["min_ns"] / cell["divisor"] < 0.9 * DELAY_S * 1e9


def test_counts_every_lost_datagram(net_probe: Path) -> None:
    # A slow machine has at least 21 answers: two visits that warm up, five sweeps, three each.
    drop = DropEvery(5, most=3)
    with server(net_probe) as (_, port), proxy(port, udp=drop) as near:
        # A time-out that no answer on this machine exceeds: what counts as lost is what was dropped.
        patient = ("--sweeps", "5", "--visit-us", "2000", "--datagram-timeout-us", "1000000")
        cell = cells(run(client(net_probe, near, "udp_rr", "64", *patient)))[64]
    assert drop.dropped > 0
    assert cell["lost"] + cell["warmup_lost"] == drop.dropped
    assert cell["max_ns"] < 1_000_000_000


def test_says_when_nothing_is_answered(net_probe: Path) -> None:
    with server(net_probe) as (_, port), proxy(port, udp=DropEvery(1)) as near:
        lines = run(client(net_probe, near, "udp_rr", "64", *SHORT, "--datagram-timeout-us", "2000"), 3)
    assert lines[-1]["code"] == "size"
    assert "64 B" in lines[-1]["message"]


@pytest.mark.parametrize("op", ["tcp_rr", "udp_rr"])
def test_sees_corrupt_payload(net_probe: Path, op: str) -> None:
    faults = {"tcp" if op == "tcp_rr" else "udp": flip(64)}
    with server(net_probe) as (_, port), proxy(port, **faults) as near:
        cell = cells(run(client(net_probe, near, op, "64", *SHORT, "--datagram-timeout-us", "1000000")))[64]
    assert cell["corrupt"] == 3


def test_times_how_long_a_connection_takes(net_probe: Path) -> None:
    with server(net_probe) as (process, port):
        cell = cells(run(client(net_probe, port, "tcp_connect", "0", *SHORT)))[0]
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    assert lines_of(rest)[-1]["type"] == "end"
    assert cell["timing"] == "iteration"
    assert cell["min_ns"] > 1_000


@pytest.mark.parametrize("streams", mostly_thorough([1, 3, 64], 3))
def test_as_many_streams_as_are_asked_for(net_probe: Path, streams: int) -> None:
    with server(net_probe) as (process, port):
        arguments = client(net_probe, port, f"tcp_streams:{streams}", "7,1000,70000", *SHORT)
        found = cells(run(arguments))
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    assert lines_of(rest)[-1]["type"] == "end"
    assert [cell["corrupt"] for cell in found.values()] == [0, 0, 0]


def test_a_steady_stream_counts_what_is_lost(net_probe: Path) -> None:
    fault = DropEvery(5)
    visits = ("--sweeps", "3", "--visit-us", "80000")  # 20 datagrams each, one in 4 ms
    with server(net_probe) as (_, port), proxy(port, udp_there=fault) as near:
        cell = cells(run(client(net_probe, near, "udp_stream:1", "500", *visits)))[500]
    assert cell["timing"] == "iteration" and cell["corrupt"] == 0
    assert cell["iterations"] > 0
    assert 0 < cell["lost"] <= fault.dropped
    # 1 Mbit/s of 500 B; late where the processor was another's.
    assert len(cell["sent_per_s"]) == 3 and 0 < max(cell["sent_per_s"]) <= 250.5


def test_datagrams_of_a_steady_stream_may_overtake_each_other(net_probe: Path) -> None:
    fault = OvertakeEvery(5, 500)
    visits = ("--sweeps", "3", "--visit-us", "80000")
    with server(net_probe) as (_, port), proxy(port, udp_there=fault) as near:
        cell = cells(run(client(net_probe, near, "udp_stream:1", "500", *visits)))[500]
    assert fault.overtaken > 0
    # Three times of 4 ms lie between the departures of one that was overtaken and of the one that comes next.
    assert 1_000_000 < cell["max_ns"] < TIMEOUT_S * 1e9


def test_bursts_say_how_fast_they_were_sent(net_probe: Path) -> None:
    with server(net_probe) as (_, port):
        cell = cells(run(client(net_probe, port, "udp_burst:40", "500", *SHORT)))[500]
    assert len(cell["sent_per_s"]) == len(cell["batch_medians_ns"])
    # A burst is sent before it has arrived whole, and the fastest one no later than the one that took the longest.
    assert all(40 / rate * 1e9 < cell["max_ns"] for rate in cell["sent_per_s"])


def test_a_rate_that_cannot_be_reached_keeps_visits_short(net_probe: Path) -> None:
    with server(net_probe) as (process, port):
        run(client(net_probe, port, "udp_stream:100000", "64", *SHORT))
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    assert lines_of(rest)[-1]["elapsed_s"] < 60  # minutes, if iterations were those of the rate


def test_sees_what_a_stream_spoils(net_probe: Path) -> None:
    shim = compiled("corrupting_send.so", "cc", "-shared", "-fPIC", HERE / "corrupting_send.c", "-ldl")
    with server(net_probe) as (_, port):
        spoiled = ["env", f"LD_PRELOAD={shim}", *client(net_probe, port, "tcp_streams:2", "4096", *SHORT)]
        cell = cells(run(spoiled))[4096]
    assert cell["corrupt"] == 3


def test_fixed_work_takes_what_was_asked_for_where_nobody_disturbs(net_probe: Path) -> None:
    for work_us in (20, 500):
        cell = cells(run([net_probe, "--op", f"noise:{work_us}", "--sizes", "0", *SHORT]))[0]
        assert 0.2 < cell["min_ns"] / (1000 * work_us) < 5


def test_fixed_work_is_made_on_the_cpu_that_is_named(sanitized_probe: Path) -> None:
    own = os.sched_getaffinity(0)
    for cpu in sorted(own):
        lines = run([sanitized_probe, "--op", f"noise_on:{cpu}", "--sizes", "0", *SHORT])
        assert cells(lines)[0]["timing"] == "iteration"
        assert 20_000 < cells(lines)[0]["min_ns"] < 500_000
        assert lines[0]["cpus"] == [sorted(own)]


def test_a_cpu_that_a_process_may_not_use_is_refused(sanitized_probe: Path) -> None:
    missing = max(os.sched_getaffinity(0)) + 1
    (*_, error) = run([sanitized_probe, "--op", f"noise_on:{missing}", "--sizes", "0", *SHORT], 3)
    assert error["code"] == "system"
    assert f"CPU {missing} is not there, or this process may not run on it" in error["message"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two CPUs")
def test_a_cpu_that_was_not_given_is_not_taken(sanitized_probe: Path) -> None:
    given, other = sorted(os.sched_getaffinity(0))[:2]
    bound = ["taskset", "-c", str(given), sanitized_probe, "--sizes", "0", *SHORT, "--op"]
    assert cells(run([*bound, f"noise_on:{given}"]))[0]["iterations"] > 0
    (*_, error) = run([*bound, f"noise_on:{other}"], 3)
    assert "may not run on it" in error["message"]


@pytest.mark.parametrize("sleep_us", mostly_thorough([10, 200_000], 200_000))
def test_how_late_a_sleep_ends(net_probe: Path, sleep_us: int) -> None:
    lines = run([net_probe, "--op", f"wake:{sleep_us}", "--sizes", "0", *SHORT])
    # It is what comes on top that is recorded: the sleep itself only makes the visits longer, and fewer.
    assert 0 < cells(lines)[0]["min_ns"] < 200_000_000
    assert cells(lines)[0]["batch_iterations"] < 1000


@pytest.mark.parametrize("percent", mostly_thorough([0, 50], 50))
def test_requests_are_timed_beside_a_stream(net_probe: Path, percent: int) -> None:
    with server(net_probe) as (process, port):
        cell = cells(run(client(net_probe, port, f"tcp_loaded:{percent}", "64", *SHORT)))[64]
        rest, _ = process.communicate(timeout=TIMEOUT_S)
    assert lines_of(rest)[-1]["type"] == "end"
    assert cell["corrupt"] == 0 and cell["timing"] == "iteration"
    assert cell["min_ns"] > 1_000


def test_says_meanwhile_what_a_stream_has_moved(net_probe: Path) -> None:
    with server(net_probe) as (_, port):
        long = ("--sweeps", "8", "--visit-us", "30000", "--reference-us", "0")
        lines = run(client(net_probe, port, "tcp_stream", "4096", *long))
    progress = [line for line in lines if line["type"] == "progress"]
    assert len(progress) >= 2
    assert [line["at_us"] for line in progress] == sorted({line["at_us"] for line in progress})
    visit = 4096 * cells(lines)[4096]["batch_iterations"]
    for before, after in pairwise(progress):
        if before["visits_done"] > 0:
            visits = after["visits_done"] - before["visits_done"]
            assert after["moved_bytes"] - before["moved_bytes"] == visits * visit


@pytest.mark.parametrize("op", ["udp_flows", "tcp_flows"])
def test_tells_what_each_flow_meets(net_probe: Path, op: str) -> None:
    with server(net_probe) as (_, port):
        lines = run(client(net_probe, port, f"{op}:6", "64,4000", *SHORT))
    assert list(cells(lines)) == [64, 4000]
    visits = [line for line in lines if line["type"] == "flows"]
    assert len(visits) >= 2 * 3
    for visit in visits:
        assert len(set(visit["ports"])) == len(visit["ports"]) == 6
        assert visit["port"] not in visit["ports"]
        assert visit["sent"] == visit["answered"] == visit["arrived"]
        assert all(median > 0 for median in visit["medians_ns"])
    # The same flows each time, and in the next launch: what one of them meets can be seen again.
    assert len({tuple(visit["ports"]) for visit in visits}) == 1


@pytest.mark.parametrize("op", ["tcp_incast", "udp_incast"])
def test_several_send_to_one_at_once(net_probe: Path, op: str) -> None:
    with server(net_probe) as (_, one), server(net_probe) as (_, other):
        argv = client(net_probe, one, op, "64,20000", *SHORT)
        place = argv.index("--connect") + 1
        argv[place] = f"{argv[place]},127.0.0.1:{other}"
        lines = run(argv)
    assert len(lines[0]["hosts"]) == 3
    found = cells(lines)
    assert list(found) == [64, 20000]
    assert all(cell["corrupt"] == 0 for cell in found.values())
    visits = [line for line in lines if line["type"] == "incast"]
    assert {line["senders"] for line in visits} == {2}
    for visit in visits:
        assert all(time > 0 for time in visit["times_ns"])
        if op == "udp_incast":
            assert visit["arrived"] == [2 * visit["size"]] * len(visit["times_ns"])
        else:
            assert len(visit["again"]) == 2


def test_an_operation_of_a_pair_takes_one_server(net_probe: Path) -> None:
    with server(net_probe) as (_, one), server(net_probe) as (_, other):
        argv = client(net_probe, one, "tcp_rr", "64", *SHORT)
        place = argv.index("--connect") + 1
        argv[place] = f"{argv[place]},127.0.0.1:{other}"
        lines = run(argv, expected_code=3)
    assert "tcp_rr takes one server, not 2" in lines[-1]["message"]


def test_a_flow_has_the_port_that_is_asked_for(net_probe: Path) -> None:
    with server(net_probe) as (_, port):
        lines = run(client(net_probe, port, "udp_flows:1", "64", "--port", "29876", *SHORT))
    assert {tuple(line["ports"]) for line in lines if line["type"] == "flows"} == {(29876,)}


@pytest.mark.parametrize("protocol", [[], ["--tcp"]])
def test_a_way_without_switches_has_none(net_probe: Path, protocol: list[str]) -> None:
    here = ["--bind", "127.0.0.1", "--to", "127.0.0.1", "--flows", "29001:29101,29002:29101"]
    said = run([net_probe, "--trace", *here, *protocol])
    traces = [line for line in said if line["type"] == "trace"]
    assert [(line["from_port"], line["hops"]) for line in traces] == [(29001, []), (29002, [])]
    assert all(line["reached"] for line in traces)


@pytest.mark.parametrize("flows", ["", "1", "0:5", "5:70000", "1:2,", "a:b", "1:2;3:4"])
def test_a_trace_refuses_what_are_no_ports(net_probe: Path, flows: str) -> None:
    argv = [net_probe, "--trace", "--bind", "127.0.0.1", "--to", "127.0.0.1", "--flows", flows]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 2
    assert b"--flows" in done.stderr
