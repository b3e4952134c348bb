"""Outputs of many pairs are one run, and where ranks were is what the outputs and the user say, never a guess."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from wulf.base.errors import ImportFormatError, UsageError
from wulf.node.measuring.imported import NOT_SAID, import_run, read_files
from wulf.node.measuring.imported_from import placed
from wulf.page.terminal import page_text
from wulf.tools.diagnose.work import diagnose
from wulf.tools.measure.page import build

FIELD = Path(__file__).parents[1] / "golden/imports/field"
NODES = [f"c{number}" for number in range(1, 7)]


def write_pairs(folder: Path, slow: str) -> list[Path]:
    """Write an output of OSU's latency test for each pair; those of one node take four times as long."""
    files = []
    for number, (one, other) in enumerate(itertools.combinations(NODES, 2)):
        scale = (4 if slow in (one, other) else 1) * (1 + 0.001 * (number % 5))
        rows = "".join(f"{size}  {scale * (20 + size / 100):.2f}\n" for size in (8, 1024, 65536))
        files.append(folder / f"lat-{one}-{other}.txt")
        files[-1].write_text(f"# OSU MPI Latency Test v7.4\n# Size  Avg Latency(us)\n{rows}")
    return files


def places(run) -> set[tuple[str, ...]]:
    return {launch.place for launch in run.launches}


def test_a_diagnosis_finds_the_slow_node_of_imported_pairs(tmp_path):
    files = write_pairs(tmp_path, "c4")
    run, analysis = import_run(read_files(placed(files, "lat-{}-{}.txt", [])), [], tmp_path / "run")
    assert len(places(run)) == 15
    (latency, _) = diagnose(run).matrices
    assert [suspect.nodes for suspect in latency.suspects] == [["c4"]]
    assert "c1 → c2" in page_text(build(run.manifest, run.nodes, run.launches, analysis))


def test_a_list_names_nodes_and_files(tmp_path):
    files = write_pairs(tmp_path, "c4")
    lines = [f"{','.join(re.findall('c[0-9]', file.name))}, {file.name}  # a pair" for file in files]
    (tmp_path / "pairs.csv").write_text("\n".join(["# node,node,file", "", *lines]))
    named = placed([], str(tmp_path / "pairs.csv"), [])
    assert named == placed(files, "lat-{}-{}.txt", NODES)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("c1,lat.txt", r"pairs.csv, line 2: expected NODE,NODE,FILE, got 'c1,lat.txt'"),
        ("c1,../c2,lat.txt", r"line 2: expected NODE,NODE,FILE"),
        ("c1,-c2,lat.txt", r"line 2: expected NODE,NODE,FILE"),
        ("c1,c9,lat.txt", r"line 2: c9 is not among --nodes"),
        ("c1,c2,", r"line 2: expected NODE,NODE,FILE"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path, line, said):
    (tmp_path / "pairs.csv").write_text(f"c1,c2,x.txt\n{line}\n")
    with pytest.raises(ImportFormatError, match=said):
        placed([], str(tmp_path / "pairs.csv"), ["c1", "c2"])


def test_a_name_that_can_be_of_several_pairs_is_not_guessed():
    file = Path("node-1-node-2.txt")
    with pytest.raises(ImportFormatError, match=r"can be of node, 1-node-2 or node-1, node-2: say --nodes"):
        placed([file], "{}-{}.txt", [])
    assert placed([file], "{}-{}.txt", ["node-1", "node-2"])[0].nodes == ("node-1", "node-2")
    with pytest.raises(ImportFormatError, match=r"its name is not as in --pairs"):
        placed([Path("other.txt")], "lat-{}-{}.txt", [])
    with pytest.raises(UsageError, match="it names its files itself"):
        placed([file], "list.csv", [])
    with pytest.raises(ImportFormatError, match=r"--pairs .*missing: No such file"):
        placed([], "missing", [])


def test_ranks_that_an_output_does_not_say_are_not_two(tmp_path):
    launches = read_files([FIELD / "15-osu-collective-ranks/alltoall.txt"])
    nodes = [f"c{number}" for number in range(1, 5)]
    run, analysis = import_run(launches, nodes, tmp_path / "four")
    assert places(run) == {tuple(nodes)} and not run.manifest.plan.workload.between_pairs
    assert "c1 → c2" not in page_text(build(run.manifest, run.nodes, run.launches, analysis))
    assert places(import_run(launches, [], tmp_path / "unknown")[0]) == {NOT_SAID}
    assert places(import_run(launches, nodes, tmp_path / "eight", 8)[0]) == {
        ("c1",) * 2 + ("c2",) * 2 + ("c3",) * 2 + ("c4",) * 2
    }
    two, _ = import_run(launches, ["c1", "c2"], tmp_path / "two")
    assert places(two) == {("c1", "c2")} and not two.manifest.plan.workload.between_pairs
    with pytest.raises(UsageError, match="--ranks 0: expected 1 to"):
        import_run(launches, nodes, tmp_path / "none", 0)


def test_tables_of_different_numbers_of_processes_are_apart(tmp_path):
    launches = read_files([FIELD / "16-imb-misc/allreduce.txt"])
    _, analysis = import_run(launches, ["a", "b", "c", "d"], tmp_path / "run")
    times = {cell.cell.place: cell.time.value for cell in analysis.cells if cell.cell.size_bytes == 4}
    assert times == {("a", "b"): pytest.approx(1.2e-6), ("a", "b", "c", "d"): pytest.approx(2.2e-6)}
