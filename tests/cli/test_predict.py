"""``wulf predict`` on traces made record by record, with the replay that comes with this package."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import wulf
from tests.unit.predict_fixture import BETWEEN, WITHIN, calibrated_run, ping_pong, ring, round_trip
from wulf.probe import build
from wulf.wtrace.layout import Kind, Unsound
from wulf.wtrace.writer import StreamWriter, write_container


@pytest.fixture
def place(tmp_path):
    (tmp_path / "runs").mkdir()
    calibrated_run(tmp_path / "runs" / "cal")
    return tmp_path


def predicted(place, *words, code=0):
    done = wulf(place, "predict", *words, "--on", "cal", "--samples", "40", "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


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
    assert any("Do not buy bandwidth=x2" in line for line in found["conclusion"])
    assert found["gap"]["value"] == pytest.approx(1, abs=0.01)


def test_another_calibrated_run_is_a_network_to_ask_about(place):
    calibrated_run(place / "runs" / "again", places=(BETWEEN, WITHIN))
    trace = ping_pong(place / "p.wtrace", 1, run_ns=int(40 * round_trip(1) * 1e9))
    (same,) = predicted(place, str(trace), "--what-if", "@again")["scenarios"]
    assert same["change"]["low"] < 1 < same["change"]["high"]
    assert same["change"]["value"] == pytest.approx(1, abs=1e-6)
    assert "no run 'none'" in refused(place, str(trace), "--on", "cal", "--what-if", "@none")


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
    done = wulf(place, "predict", trace, "--on", "cal", "--samples", "20", "--html", "p.html")
    assert done.returncode == 0, done.stderr
    for said in ("./ring --steps 50", "25gbe-roce", "λ", "It bears a latency of", "allreduce"):
        assert said in done.stdout
    page = (place / "p.html").read_text()
    for said in ("predict-changes", "predict-curve", "predict-shares", "What must be known"):
        assert said in page


@pytest.mark.mpi
def test_the_program_is_launched_again_and_held_against_the_interval(place):
    """A real program; of its trace only the note and the time count here, which is far off."""
    library = build.find_mpi("openmpi")[0]
    heat = build.build_program("wulf-heat", library).path
    line = f"{library.mpirun} --oversubscribe --allow-run-as-root --mca mpi_yield_when_idle 1 -np 2 {heat} --steps 50"
    assert wulf(
        place, "app", "--cluster", "local", "--run", "app", "--repeat", "1", "--", "true"
    ).returncode in (0, 3)
    path = place / "runs" / "cal" / "manifest.json"
    own = json.loads(path.read_text())
    of_app = json.loads((place / "runs" / "app" / "manifest.json").read_text())
    operations = own["operations"] + of_app["operations"]
    both = own | {"cluster": of_app["cluster"], "plan": of_app["plan"], "operations": operations}
    path.write_text(json.dumps(both))
    ping_pong(place / "p.wtrace", 8, count=1, compute_ns=3_000_000_000, run_ns=3_000_000_000, command=line)
    words = ("predict", "p.wtrace", "--on", "cal", "--verify", "--samples", "20")
    far_off = wulf(place, *words, "--json")
    assert far_off.returncode == 3, far_off.stderr
    checked = json.loads(far_off.stdout)["checked"]
    assert checked["inside"] is False and checked["network"] == "as it is"
    assert 0 < checked["time"]["low"] <= checked["time"]["value"] <= checked["time"]["high"] < 3
    assert checked["ratio"] == pytest.approx(checked["time"]["value"] / 3, rel=0.01)
    assert "an interval takes 6" in wulf(place, *words, "--launches", "2").stderr


def test_networks_are_listed_and_shown(place):
    listed = wulf(place, "predict", "--list")
    assert listed.returncode == 0
    assert "25gbe-roce" in listed.stdout and "(published)" in listed.stdout
    assert "[between]" in wulf(place, "predict", "--show", "ib-hdr").stdout


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
    done = wulf(place, "predict", *words)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_cannot_be_predicted_is_refused_by_name(place):
    assert "one-sided communication" in refused(place, str(unsound(place / "u.wtrace")), "--on", "cal")
    assert "a message that nobody sends" in refused(place, str(cut(place / "c.wtrace")), "--on", "cal")
    assert "--on RUN" in refused(place, "x.wtrace")
    assert "wulf trace -o" in refused(place, "x.wtrace", "--on", "cal")
    (place / "no.wtrace").write_text("nothing")
    assert "not a trace" in refused(place, "no.wtrace", "--on", "cal")


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
