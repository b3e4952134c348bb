"""``wulf program predict`` on traces made record by record, with the replay that comes with this package."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import wulf
from tests.unit.predict_fixture import BETWEEN, PER_BYTE, WITHIN, calibrated_run, ping_pong, ring, round_trip
from wulf.base.native import build
from wulf.base.trace.layout import Flag, Kind, Unsound
from wulf.base.trace.writer import StreamWriter, write_container


@pytest.fixture
def place(tmp_path):
    (tmp_path / "runs").mkdir()
    calibrated_run(tmp_path / "runs" / "cal")
    return tmp_path


def predicted(place, *words):
    done = wulf(place, "program", "predict", *words, "--on", "cal", "--samples", "40", "--json")
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    untold = any(is_untold(one) for one in (found if isinstance(found, list) else [found]))
    assert done.returncode == (3 if untold else 0), done.stderr
    return found


def is_untold(found):
    """Whether nothing firm can be said: most traces here took a time that no model has."""
    explained = found["gap"] is None or 1 / 1.5 < found["gap"]["value"] < 1.5
    return not explained or any(one["verdict"] == "cannot be told" for one in found["scenarios"])


@pytest.mark.parametrize("size", [1, 4096, 65536, 262144])
def test_a_ping_pong_takes_the_round_trips_that_were_measured(place, size):
    found = predicted(place, str(ping_pong(place / "p.wtrace", size)))
    assert found["base"]["model_s"] == pytest.approx(40 * round_trip(size), rel=0.01)
    hops = 40 * (1 if size <= 65536 else 3)
    assert found["base"]["path"]["hops"] == hops
    assert sum(one["hops"] for one in found["hops"]) == hops


def test_within_a_node_all_takes_what_was_measured_there(place):
    found = predicted(place, str(ping_pong(place / "p.wtrace", 1024, hosts=("node01", "node01"))))
    assert found["nodes"] == 1
    assert found["base"]["model_s"] == pytest.approx(4 * round_trip(1024), rel=0.02)
    apart = predicted(place, str(place / "p.wtrace"), "--ranks-per-node", "1")
    assert apart["base"]["model_s"] == pytest.approx(40 * round_trip(1024), rel=0.02)


def test_changes_are_paired_and_the_programs_own_time_is_what_changes(place):
    trace = ping_pong(place / "p.wtrace", 1, run_ns=int(40 * round_trip(1) * 1e9))
    found = predicted(place, str(trace), "--what-if", "latency=x1,latency=x2,bandwidth=x2")
    same, slower, wider = found["scenarios"]
    assert same["change"]["low"] == pytest.approx(1) and same["change"]["high"] == pytest.approx(1)
    assert same["verdict"] == wider["verdict"] == "no difference"
    assert slower["change"]["value"] == pytest.approx((round_trip(1) + 30e-6) / round_trip(1), rel=0.01)
    assert slower["verdict"] == "slower"
    assert slower["time"]["value"] == pytest.approx(40 * (round_trip(1) + 30e-6), rel=0.01)
    assert found["gap"]["value"] == pytest.approx(1, abs=0.01)


def test_another_calibrated_run_is_a_network_to_ask_about(place):
    calibrated_run(place / "runs" / "again", places=(BETWEEN, WITHIN))
    trace = ping_pong(place / "p.wtrace", 1, run_ns=int(40 * round_trip(1) * 1e9))
    (same,) = predicted(place, str(trace), "--what-if", "@again")["scenarios"]
    assert same["change"]["low"] < 1 < same["change"]["high"]
    assert same["change"]["value"] == pytest.approx(1, abs=1e-6)
    assert "no run 'none'" in refused(place, str(trace), "--on", "cal", "--what-if", "@none")


def test_several_traces_of_a_program_tell_how_its_launches_differ(place):
    own = 40 * round_trip(1)
    traces = [
        str(ping_pong(place / f"p{number}.wtrace", 1, run_ns=int(own * factor * 1e9)))
        for number, factor in enumerate((1.1, 0.9, 1.0, 0.95, 1.05))
    ]
    several = [traces[0], *(word for one in traces[1:] for word in ("--again", one))]
    found = predicted(place, *several, "--what-if", "latency=x2")
    (slower,) = found["scenarios"]
    assert found["traces"] == 5 and found["own_s"] == pytest.approx(own, rel=1e-3)
    one, usual = slower["launch"], slower["time"]
    assert one["low"] < usual["low"] < usual["value"] < usual["high"] < one["high"]
    assert one["low"] < 0.9 * usual["value"] and one["high"] > 1.1 * usual["value"]
    (single,) = predicted(place, traces[0], "--what-if", "latency=x2")["scenarios"]
    assert single["launch"] is None
    shown = wulf(
        place, "program", "predict", *several, "--on", "cal", "--samples", "40", "--what-if", "latency=x2"
    )
    assert "one launch" in shown.stdout and "median of 5 runs" in shown.stdout
    other = str(ping_pong(place / "other.wtrace", 1, run_ns=1000, command="./other"))
    assert "these differ in command or ranks" in refused(place, traces[0], "--again", other, "--on", "cal")
    assert "is given twice" in refused(place, traces[0], "--again", traces[0], "--on", "cal")


def test_a_seed_gives_the_same_again(place):
    trace = str(ring(place / "ring.wtrace"))
    first, again = (predicted(place, trace, "--seed", "3") for _ in range(2))
    assert first == again
    assert predicted(place, trace, "--seed", "4")["scenarios"] != first["scenarios"]


def test_tolerance_is_exact(place):
    """Forty latencies one after the other: 1 % of the time, divided among them."""
    found = predicted(place, str(ping_pong(place / "p.wtrace", 1)))
    one_percent = found["tolerance"][0]
    base = found["base"]["model_s"]
    assert one_percent["latency"]["value"] == pytest.approx(30e-6 + 0.01 * base / 40, rel=0.02)


def test_words_and_a_page(place):
    trace = str(ring(place / "ring.wtrace", run_ns=20_000_000))
    done = wulf(place, "program", "predict", trace, "--on", "cal", "--samples", "20", "--html", "p.html")
    assert done.returncode == 0, done.stderr
    for said in (
        "./ring --steps 50",
        "25gbe-roce",
        "λ",
        "How much latency it bears",
        "bandwidth alone",
        "computing alone",
        "in MPI_Allreduce, messages of 8 B",
        "Event by event",
    ):
        assert said in " ".join(done.stdout.split())
    # The answer stands before all figures.
    said = " ".join(done.stdout.split())
    assert said.index("A faster network helps: ") < said.index("Run time by network")
    page = (place / "p.html").read_text()
    for said in (
        "predict-changes",
        "predict-curve",
        "predict-by-bandwidth",
        "predict-timeline",
        "What must be known",
    ):
        assert said in page


def test_bandwidth_that_a_program_bears_is_that_of_its_formula(place):
    """Each of forty messages of 64 KiB takes the interface for its size: 1 % of the run more, divided among them."""
    found = predicted(place, str(ping_pong(place / "p.wtrace", 65536)), "--what-if", "bandwidth=x2")
    assert found["bandwidth"] == pytest.approx(1 / PER_BYTE, rel=0.02)
    each = PER_BYTE + 0.01 * found["base"]["model_s"] / (40 * 65536)
    need = found["bandwidth_need"][0]["bandwidth"]
    assert need["value"] == pytest.approx(1 / each, rel=0.01)
    assert need["low"] < need["value"] < need["high"]
    times = [one["time_s"] for one in found["bandwidth_curve"]]
    assert times == sorted(times, reverse=True)
    by_factor = {one["factor"]: one["time_s"] for one in found["bandwidth_curve"]}
    assert by_factor[2] == pytest.approx(found["scenarios"][0]["model_s"])
    # All but computing, of which there is none, is of messages.
    assert found["bound"]["change"]["value"] == pytest.approx(0, abs=1e-9)


def test_a_page_has_where_the_time_goes_on_the_network_that_is_named(place):
    trace = str(ring(place / "ring.wtrace", ranks=6, run_ns=24_000_000, ranks_per_node=2))
    found = predicted(
        place, trace, "--html", "p.html", "--timeline", "10gbe", "--what-if", "10gbe,25gbe-roce"
    )
    lines = found["timelines"]
    assert [(one["network"], one["part"]) for one in lines] == [
        ("as it is", "whole"), ("as it is", "middle"), ("10gbe", "whole"), ("10gbe", "middle"),
    ]  # fmt: skip
    assert lines[0]["for_s"] == pytest.approx(found["base"]["model_s"])
    assert lines[2]["for_s"] == pytest.approx(found["scenarios"][0]["model_s"])
    whole = lines[0]["rows"]
    assert [(row["first_rank"], row["last_rank"]) for row in whole] == [(rank, rank) for rank in range(6)]
    computing = sum(whole[0]["computing"]) / len(whole[0]["computing"]) * lines[0]["for_s"]
    assert computing == pytest.approx(50 * 300e-6 + 50 * 3 * 997e-9, rel=0.01)
    # By agreement of both: no rank computes less on another network.
    assert sum(lines[2]["rows"][0]["waiting"]) < sum(whole[0]["waiting"])
    assert "--timeline none: is not among" in refused(
        place, trace, "--on", "cal", "--html", "p.html", "--timeline", "none"
    )


def test_several_traces_at_once_are_what_each_is_alone(place):
    traces = [str(ring(place / f"{ranks}.wtrace", ranks=ranks, run_ns=24_000_000)) for ranks in (3, 4)]
    both = predicted(place, *traces, "--what-if", "10gbe")
    assert both == [predicted(place, one, "--what-if", "10gbe") for one in traces]
    done = wulf(place, "program", "predict", *traces, "--on", "cal", "--samples", "20", "--html", "pages")
    assert done.returncode == (3 if any(map(is_untold, both)) else 0), done.stderr
    assert sorted(path.name for path in (place / "pages").iterdir()) == ["3.wtrace.html", "4.wtrace.html"]
    assert "need a single trace" in refused(place, *traces, "--on", "cal", "--verify")
    (place / "file").write_text("")
    assert "it is a file" in refused(place, *traces, "--on", "cal", "--html", "file")


def test_receives_from_anybody_are_said(place):
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2, host=f"node0{rank + 1}")
        for _ in range(5):
            if rank:
                stream.add(Kind.SEND, peer=0, bytes=8)
            else:
                stream.add(Kind.RECV, peer=1, bytes=8, flags=Flag.WILD)
        streams.append(stream.finish(1_000_000))
    write_container(place / "w.wtrace", {}, streams)
    found = predicted(place, "w.wtrace")
    assert found["wildcards"] == 5
    assert any("5 receives take a message from any source" in note for note in found["notes"])


#: Of a trace of which only the note and the time count: far longer than any launch takes.
LONG = {"count": 1, "compute_ns": 300 * 10**9, "run_ns": 300 * 10**9}
VERIFY = ("program", "predict", "p.wtrace", "--on", "cal", "--verify", "--samples", "20")


@pytest.fixture
def heat(place):
    """A program, which can be launched again where the calibrated run was made: here."""
    assert wulf(
        place, "program", "run", "--cluster", "local", "--run", "app", "--repeat", "1", "--", "true"
    ).returncode in (0, 3)
    path = place / "runs" / "cal" / "manifest.json"
    own = json.loads(path.read_text())
    of_app = json.loads((place / "runs" / "app" / "manifest.json").read_text())
    operations = own["operations"] + of_app["operations"]
    both = own | {"cluster": of_app["cluster"], "plan": of_app["plan"], "operations": operations}
    path.write_text(json.dumps(both))
    return build.build_program("wulf-heat", build.find_mpi("openmpi")[0]).path


@pytest.mark.mpi
def test_the_program_is_launched_again_and_held_against_the_interval(place, heat):
    mpirun = build.find_mpi("openmpi")[0].mpirun
    line = f"{mpirun} --oversubscribe --allow-run-as-root --mca mpi_yield_when_idle 1 -np 2 {heat} --steps 50"
    ping_pong(place / "p.wtrace", 8, command=line, **LONG)
    far_off = wulf(place, *VERIFY, "--json")
    assert far_off.returncode == 3, far_off.stderr
    checked = json.loads(far_off.stdout)["checked"]
    assert checked["inside"] is False and checked["network"] == "as it is"
    assert 0 < checked["time"]["low"] <= checked["time"]["value"] <= checked["time"]["high"] < 300
    assert checked["ratio"] == pytest.approx(checked["time"]["value"] / 300, rel=0.01)
    assert "an interval needs 6" in wulf(place, *VERIFY, "--launches", "2").stderr


@pytest.mark.thorough
@pytest.mark.mpi
def test_a_program_is_launched_again_with_the_ranks_that_its_trace_has(place, heat):
    # As 'wulf program trace --ranks 2' writes it down: the program alone, and how many ranks of it are started.
    ping_pong(place / "p.wtrace", 8, ranks="2", command=f"{heat} --steps 50", **LONG)
    assert wulf(place, *VERIFY, "--json").returncode == 3
    ping_pong(place / "p.wtrace", 8, command=f"{heat} --steps 50", **LONG)
    assert "ran with 1 rank, and the trace has 2" in wulf(place, *VERIFY).stderr


def test_event_by_event_stands_beside_messages_in_their_order(place):
    trace = str(ring(place / "ring.wtrace", run_ns=20_000_000))
    words = (trace, "--what-if", "latency=x2")
    found = predicted(place, *words)
    assert found["engine"] == "static"
    of = found["contention"]
    # Each rank has an interface of its own, and nobody chooses: both engines say the same.
    assert of["base"]["gap"]["value"] == pytest.approx(1, abs=0.02)
    assert of["samples"] == 40 and of["scenarios"][0]["name"] == "latency=x2"
    assert any("Contention does not matter" in line for line in found["conclusion"])
    assert predicted(place, *words, "--engine", "static")["contention"] is None
    by_events = predicted(place, *words, "--engine", "events")
    assert by_events["engine"] == "events"
    assert by_events["scenarios"][0]["time"] == by_events["contention"]["scenarios"][0]["time"]
    assert predicted(place, *words, "--engine", "events") == by_events


def test_a_program_beside_it_slows_it(place):
    size = 4 << 20
    first = ping_pong(place / "p.wtrace", size, run_ns=int(40 * round_trip(size) * 1e9))
    ping_pong(place / "q.wtrace", size)
    found = predicted(place, str(first), "--beside", "q.wtrace", "--what-if", "latency=x1")
    assert found["engine"] == "events"
    base = found["contention"]["base"]
    assert 1.2 < base["slowed"]["value"] < 2.1
    assert base["time"]["value"] == pytest.approx(base["slowed"]["value"] * 40 * round_trip(size), rel=0.02)
    assert base["beside"][0]["trace"] == "q.wtrace"
    assert found["contention"]["scenarios"][0]["change"]["value"] == pytest.approx(
        base["slowed"]["value"], rel=0.01
    )
    (place / "nodes").write_text("0 1 2 3")
    apart = predicted(place, str(first), "--beside", "q.wtrace", "--placement", "nodes")
    assert apart["contention"]["base"]["slowed"]["value"] == pytest.approx(1)
    (place / "nodes").write_text("0 1")
    assert "the placement has 2 ranks, the traces have 4" in refused(
        place, str(first), "--on", "cal", "--beside", "q.wtrace", "--placement", "nodes"
    )


def test_a_buffer_that_is_full_decides(place):
    senders = 5
    # The last rank receives from all others, which begin together.
    streams = []
    for rank in range(senders + 1):
        stream = StreamWriter(rank, senders + 1, host=f"node{rank:02d}")
        peers = range(senders) if rank == senders else [senders]
        kind = Kind.RECV if rank == senders else Kind.SEND
        for peer in peers:
            stream.add(kind, peer=peer, bytes=40 << 10)
        streams.append(stream.finish(20_000_000))
    write_container(place / "gather.wtrace", {"command": "gather"}, streams)
    asked = "buffer=64KiB,buffer=1MiB,buffer=64KiB+rto=5ms"
    found = predicted(place, "gather.wtrace", "--what-if", asked)
    assert found["engine"] == "events"
    of = found["contention"]
    # One goes through while it comes, one has room, three do not.
    assert [one["timeouts"] for one in (of["base"], *of["scenarios"])] == [None, 3, 0, 3]
    small, large, soon = (one["model_s"] for one in of["scenarios"])
    assert large == of["base"]["model_s"] and of["scenarios"][1]["lossy"] == 1
    assert small == pytest.approx(0.2, rel=0.1) and soon == pytest.approx(small - 0.195, rel=0.01)
    assert (
        "losses decide"
        in wulf(place, "program", "predict", "gather.wtrace", "--on", "cal", "--what-if", asked).stdout
    )
    assert "leave it out" in refused(
        place, "gather.wtrace", "--on", "cal", "--what-if", asked, "--engine", "static"
    )


def test_uplinks_limit_what_is_between_switches(place):
    trace = str(ping_pong(place / "p.wtrace", 1 << 20))
    leaf = "SwitchName=a Nodes=node01 LinkSpeed={0}\nSwitchName=b Nodes=node02 LinkSpeed={0}\n"
    conf = place / "topology.conf"
    conf.write_text(leaf.format("100G") + "SwitchName=core Switches=a,b\n")
    wide = predicted(place, trace, "--topology", "topology.conf")["contention"]
    assert wide["base"]["gap"]["value"] == pytest.approx(1, abs=0.001) and wide["topology"] == "topology.conf"
    conf.write_text(leaf.format("100Mbit/s") + "SwitchName=core Switches=a,b\n")
    narrow = predicted(place, trace, "--topology", "topology.conf")
    assert narrow["contention"]["base"]["gap"]["value"] > 5
    words = (trace, "--on", "cal", "--topology", "topology.conf")
    assert "leave it out" in refused(place, *words, "--engine", "static")
    assert "'auto', 'static', 'events', 'both'" in refused(place, *words, "--engine", "fast")
    conf.write_text("SwitchName=a Nodes=node01 LinkSpeed=x\n")
    assert "topology.conf:1: LinkSpeed=x" in refused(place, *words)
    conf.write_text("SwitchName=a Nodes=node01\n")
    assert "topology.conf: node node02 is at no switch" in refused(place, *words)
    assert "cannot read none.conf" in refused(place, trace, "--on", "cal", "--topology", "none.conf")


def test_networks_are_listed_and_shown(place):
    listed = wulf(place, "program", "predict", "--list")
    assert listed.returncode == 0
    for said in ("25gbe-roce", "latency [µs]", "published: ", "general knowledge, unverified: ", "prices: "):
        assert said in listed.stdout, said
    shown = wulf(place, "program", "predict", "--show", "ib-hdr").stdout
    assert "[between]" in shown
    # One's own are found where they are kept, and listed.
    kept = place / "config" / "wulf" / "networks"
    kept.mkdir(parents=True)
    (kept / "ours.toml").write_text(shown.replace('"ib-hdr"', '"ours"'))
    own = {"XDG_CONFIG_HOME": str(place / "config")}
    listed = wulf(place, "program", "predict", "--list", **own)
    assert "ours: InfiniBand HDR, 200 Gbit/s (your own)" in listed.stdout
    assert {
        one["id"] for one in json.loads(wulf(place, "program", "predict", "--list", "--json", **own).stdout)
    } >= {
        "ours",
        "1gbe",
    }
    trace = str(ping_pong(place / "p.wtrace", 8, run_ns=3_000_000))
    done = wulf(
        place, "program", "predict", trace, "--on", "cal", "--what-if", "ours,ib-hdr", "--json", **own
    )
    assert len(json.loads(done.stdout)["scenarios"]) == 2, done.stderr
    (kept / "ours.toml").write_text(shown.replace("latency_us", "latenz_us"))
    said = " ".join(wulf(place, "program", "predict", "--list", **own).stderr.split())
    assert "ours.toml:7: between.latenz_us: unknown key; did you mean 'latency_us'?" in said


def test_a_pattern_of_the_gallery_is_predicted_by_its_name(place):
    done = wulf(
        place,
        "program",
        "predict",
        "token-ring",
        "--on",
        "cal",
        "--what-if",
        "latency=x2",
        "--samples",
        "20",
        "--json",
    )
    found = json.loads(done.stdout)
    assert found["ranks"] == found["nodes"] > 1, done.stderr
    assert any("A pattern does not say which ranks share a node" in note for note in found["notes"])


def test_a_model_that_explains_little_says_so_first(place):
    trace = str(ping_pong(place / "p.wtrace", 8, run_ns=3_000_000_000))
    done = wulf(
        place,
        "program",
        "predict",
        trace,
        "--on",
        "cal",
        "--what-if",
        "latency=x2",
        "--samples",
        "20",
        "--json",
    )
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert told["conclusion"][0].startswith("Cannot tell what another network does to this program: ")
    assert {one["verdict"] for one in (*told["scenarios"], told["bound"])} == {"cannot be told"}
    assert not any("buy" in line or "brings" in line or "bears" in line for line in told["conclusion"])
    near = str(ring(place / "near.wtrace", run_ns=20_000_000))
    done = wulf(
        place,
        "program",
        "predict",
        near,
        "--on",
        "cal",
        "--what-if",
        "latency=x2",
        "--samples",
        "20",
        "--json",
    )
    assert not json.loads(done.stdout)["conclusion"][0].startswith("Take"), done.stderr


def unsound(path):
    streams = []
    for rank in (0, 1):
        stream = StreamWriter(rank, 2)
        stream.add(Kind.BARRIER)
        stream.mark(Unsound.ONE_SIDED)
        streams.append(stream.finish(1000))
    write_container(path, {}, streams)
    return path


def cut(path):
    stream = StreamWriter(0, 2)
    stream.add(Kind.RECV, peer=1, bytes=8)
    write_container(path, {}, [stream.finish(1000), StreamWriter(1, 2).finish(1000)])
    return path


def refused(place, *words):
    done = wulf(place, "program", "predict", *words)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_cannot_be_predicted_is_refused_by_name(place):
    assert "one-sided communication" in refused(place, str(unsound(place / "u.wtrace")), "--on", "cal")
    assert "a message that nobody sends" in refused(place, str(cut(place / "c.wtrace")), "--on", "cal")
    assert "--on RUN" in refused(place, "x.wtrace")
    assert "wulf program trace -o" in refused(place, "x.wtrace", "--on", "cal")
    (place / "no.wtrace").write_text("nothing")
    assert "not a trace" in refused(place, "no.wtrace", "--on", "cal")
    path = ping_pong(place / "d.wtrace", 8)
    bent = bytearray(path.read_bytes())
    bent[-8] ^= 1  # a time of the last record
    path.write_bytes(bent)
    assert "rank 1: damaged: its checksum differs" in refused(place, "d.wtrace", "--on", "cal")


def test_a_run_that_lacks_what_is_within_a_node_is_told_so(place):
    calibrated_run(place / "runs" / "apart", places=(BETWEEN,))
    trace = str(ping_pong(place / "p.wtrace", 8, hosts=("node01", "node01")))
    assert "within a node: measure with" in refused(place, trace, "--on", "apart")
    calibrated_run(place / "runs" / "inside", places=(WITHIN,))
    assert "between nodes: measure with" in refused(place, trace, "--on", "inside")


def test_a_placement_of_other_ranks_is_refused(place):
    trace = str(ping_pong(place / "p.wtrace", 8))
    (place / "nodes").write_text("0 1 1")
    assert "the placement has 3 ranks, the trace 2" in refused(
        place, trace, "--on", "cal", "--placement", "nodes"
    )
    (place / "nodes").write_text("0 one")
    assert "of rank 1, is 'one'" in refused(place, trace, "--on", "cal", "--placement", "nodes")
