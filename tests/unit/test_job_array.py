"""Questions in pieces: what is cut, what a piece is named by, and what is put together again."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.predict_fixture import ring
from wulf.base.errors import SchedulerError, StoreError, TraceError
from wulf.node.cluster import slurm
from wulf.node.replay import job_array, replaying
from wulf.node.replay.job_array import Array, Spec
from wulf.node.replay.replaying import Work
from wulf.stats.prediction import network
from wulf.stats.prediction.network import Link, Network, Piece

LINK = Link(15_000, 65_536, (Piece(0, 4_000, 0.2),), (Piece(0, 4_500, 0.2),), (Piece(0, 0.0, 8.5),))


def networks(count, eager=65_536):
    links = [Link(15_000 + 100 * n, eager, LINK.send, LINK.receive, LINK.wire) for n in range(count)]
    return [Network(link, None) for link in links]


def work(tmp_path, count=40, together=5, **changes):
    trace = tmp_path / "ring.wtrace"
    if not trace.exists():
        ring(trace, steps=5)
    return Work(trace=trace, networks=networks(count), nodes=[0, 1, 2, 3], together=together, **changes)


def test_pieces_are_whole_vectors_and_the_first_has_what_is_of_the_first_networks(tmp_path):
    one = work(tmp_path, count=100, curve_ns=1e6, timelines="5:16:200:1000", together=20)
    pieces = one.pieces(7)
    assert [piece.count for piece in pieces] == [24, 24, 24, 24, 4]
    assert "".join(piece.networks for piece in pieces).count("latency between") == 100
    assert (
        "--path" in pieces[0].options and "--timeline" in pieces[0].options and pieces[0].curve == "0:1000000"
    )
    assert all("--path" not in piece.options and not piece.curve for piece in pieces[1:])
    assert len(one.pieces(1)) == 1


def test_every_piece_knows_the_smallest_eager_limit_of_all(tmp_path):
    mixed = [*networks(8), *networks(8, eager=1024)]
    pieces = Work(trace=work(tmp_path).trace, networks=mixed, nodes=[]).pieces(2)
    assert [piece.options[:2] for piece in pieces] == [["--eager", "1024"]] * 2


def test_pieces_together_are_the_whole(tmp_path):
    """Each by a run of its own of the real program."""
    one = work(tmp_path, curve_ns=1e5, timelines="2:4:10:1000")
    (whole,) = replaying.here([one], lambda _: None)
    parts = [job_array.replayed.read(replaying.printed(piece), piece.count, "t") for piece in one.pieces(4)]
    assert len(parts) > 2
    together = job_array.replayed.joined(parts)
    assert [one.time_ns for one in together.results] == [one.time_ns for one in whole.results]
    assert (together.plan, together.curve, together.hops) == (whole.plan, whole.curve, whole.hops)
    assert together.rank_times == whole.rank_times and len(whole.rank_times) == 2 * 2 * 4


def names(of):
    return [job_array._spec(piece).result for piece in of.pieces(4)]


def test_a_result_is_named_by_all_that_it_depends_on(tmp_path):
    one = work(tmp_path)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    copy = moved / "copy.wtrace"
    copy.write_bytes(one.trace.read_bytes())
    same = Work(trace=copy, networks=one.networks, nodes=one.nodes, together=5)
    assert names(same) == names(one)
    assert len(set(names(one))) == len(names(one))
    assert names(Work(trace=one.trace, networks=one.networks, nodes=[0, 0, 1, 1], together=5)) != names(one)
    assert not set(names(Work(trace=one.trace, networks=networks(40, eager=1), nodes=one.nodes))) & set(
        names(one)
    )
    ring(copy, steps=6)
    job_array._content.cache_clear()
    assert not set(names(same)) & set(names(one))
    with pytest.raises(TraceError, match="cannot read"):
        job_array._spec(msgspec.structs.replace(one.pieces(1)[0], trace=str(tmp_path / "none")))


def test_a_task_leaves_its_result_or_why_there_is_none(tmp_path):
    (piece,) = work(tmp_path, count=3, together=1).pieces(1)
    place = tmp_path / "array"
    place.mkdir()
    (place / "0.json").write_bytes(msgspec.json.encode(Spec(piece=piece, result="r.jsonl")))
    job_array.do(place, 0)
    assert (place / "r.jsonl").read_bytes() == replaying.printed(piece)
    wrong = msgspec.structs.replace(piece, trace=str(tmp_path / "none.wtrace"))
    (place / "1.json").write_bytes(msgspec.json.encode(Spec(piece=wrong, result="s.jsonl")))
    with pytest.raises(TraceError):
        job_array.do(place, 1)
    assert "none.wtrace" in (place / "1.failed").read_text()
    assert not (place / "s.jsonl").exists()
    with pytest.raises(StoreError, match="task 2 cannot be read"):
        job_array.do(place, 2)


def test_what_is_there_is_not_submitted_and_the_directory_goes_at_the_end(tmp_path, monkeypatch):
    one = work(tmp_path, count=150)
    pieces = one.pieces(job_array._tasks_of(one))
    assert len(pieces) == 2
    said = []
    array = Array(options=[], directory=tmp_path / "runs", watch=said.append)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SchedulerError, match="there is no sbatch here"):
        array([one], lambda _: None)
    (place,) = (tmp_path / "runs").iterdir()
    assert "#SBATCH --array=0,1\n" in (place / "array.sbatch").read_text()
    monkeypatch.undo()
    job_array.do(place, 0)
    job_array.do(place, 1)
    monkeypatch.setenv("PATH", "")
    (found,) = array([one], lambda _: None)
    assert len(found.results) == 150 and said == []
    assert not place.exists()


def test_tasks_that_left_nothing_are_named_with_their_nodes_and_last_words(tmp_path):
    (tmp_path / "3.out").write_text("a line\nslurmstepd: error: *** JOB 7 CANCELLED DUE TO TIME LIMIT ***\n")
    ended = slurm.Job(
        id="9", state="TIMEOUT", reason="", nodes=("node02",), run_s=60, limit_s=60, start="", exit_code=0,
        signal=0, output=None, task="3",
    )  # fmt: skip
    error = job_array._failed("7", [ended], tmp_path, [3, 4])
    assert isinstance(error, SchedulerError)
    assert "job 7: 2 of its tasks left no result: task 3 timeout on node02 (slurmstepd: error:" in str(error)
    assert "; task 4 ended." in str(error)
    (tmp_path / "4.failed").write_text("x.wtrace: one-sided communication")
    assert isinstance(job_array._failed("7", [ended], tmp_path, [3, 4]), TraceError)


def test_a_script_runs_its_tasks_by_number(tmp_path):
    text = job_array.script(tmp_path / "50% of it", [0, 4, 7])
    assert "#SBATCH --array=0,4,7\n" in text
    assert "50%% of it/%a.out'" in text
    assert text.splitlines()[-1].startswith("exec ") and "replay-piece" in text


def test_networks_say_their_smallest_eager_limit():
    near = Link(0, 4096, (), (), ())
    assert Network(LINK, near).surely_eager == 4096
    assert network.free(LINK).eager_bytes == LINK.eager_bytes
    assert network.bandwidth(LINK) == pytest.approx(1e9 / 8.5)
    assert network.bandwidth(network.free(LINK)) is None
