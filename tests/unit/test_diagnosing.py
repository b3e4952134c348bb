"""From a stored run of all pairs to a verdict in words."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest
import typer

from tests.unit.make_records import manifest, operation, plan, result, sample
from wulf.base import store
from wulf.base.errors import EXIT_FINDINGS, AnalysisError, ProbeError, TransportError, UsageError
from wulf.base.records import LaunchResult
from wulf.face.cli import diagnose as verb
from wulf.node.cluster import inventory
from wulf.node.fleet import clusters
from wulf.node.measuring.analysis import analyze
from wulf.page import terminal
from wulf.page.page import html
from wulf.page.sections.diagnosis import junit, verdict
from wulf.page.sections.diagnosis import page as diagnosis_page
from wulf.tools.diagnose import all_pairs
from wulf.tools.diagnose.baseline import worse_nodes
from wulf.tools.diagnose.request import fail_if
from wulf.tools.diagnose.work import again, against, diagnose, find
from wulf.tools.measure.page import build

NODES = [f"node{number:02d}" for number in range(1, 9)]


def measured(tmp_path, slow=(), share=1.0, size=262144, pairs=None, seed=1, name="run", planned=None):
    """Store a run of all pairs, 64 B and 256 KiB, six launches each; some nodes are slower at one size."""
    rng = np.random.default_rng(seed)
    pairs = pairs or list(itertools.combinations(NODES, 2))
    wanted = plan(ops=["mpi_pingpong"], pairs=planned or pairs, sizes_bytes=[64, 262144])
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / name
    with store.create(path, manifest(plan=wanted, operations=[operation("mpi_pingpong", "mpi")])) as writer:
        for index, (pair, _) in enumerate(itertools.product(pairs, range(6))):
            made = result(index, pair=pair, op="mpi_pingpong")
            samples = []
            for bytes_, time_us in ((64, 20.0), (262144, 300.0)):
                slower = share ** len(set(slow) & set(pair)) if bytes_ == size else 1.0
                samples.append(
                    sample(
                        index, bytes_, time_us * slower * float(np.exp(0.01 * rng.standard_normal())), pair
                    )
                )
            writer.append(LaunchResult(launch=made.launch, samples=samples))
        writer.update(status="complete")
    return store.load(path)


@pytest.mark.parametrize(("alone", "left"), [(2.0, [["node05"]]), (1.0, [])])
def test_who_is_suspected_is_named_if_it_is_slow_alone(tmp_path, alone, left):
    run = measured(tmp_path, ["node05"], 2.0)
    pairs = again(run)
    assert len(pairs) == 4 + 6 and sum("node05" in pair for pair in pairs) == 4
    measured(tmp_path, ["node05"], alone, pairs=pairs, seed=2, name="run-again")
    found = diagnose(run)
    assert [suspect.nodes for suspect in found.matrices[1].suspects] == left
    assert found.fine is (not left)
    said = "\n".join(verdict(found))
    assert ("node05 seemed slow at 256 KiB while others were being measured" in said) is (not left)


@pytest.fixture
def diagnosed(tmp_path, monkeypatch, capsys):
    """Return what 'wulf diagnose' prints, and its exit code: some nodes are slow, and what is then measured again."""
    cluster = inventory.parse('[cluster]\nnodes = "node[01-08]"\n', "test")
    monkeypatch.setattr(clusters, "cluster", lambda _: cluster)
    monkeypatch.setattr(all_pairs.build, "find_mpi", lambda _: [])

    def diagnosed(slow, again):
        def start(request, path, _):
            if path.name.endswith("-again"):
                return again(request, path), None
            if path.name.endswith("-one-way"):
                raise ProbeError("no streams here")
            return measured(path.parent, slow, 2.0, name=path.name), None

        monkeypatch.setattr(all_pairs.session, "start", start)
        try:
            verb.command(budget="1m", runs=tmp_path, json=False)
            code = 0
        except typer.Exit as end:
            code = end.exit_code
        return code, *capsys.readouterr()

    return diagnosed


@pytest.mark.parametrize("error", [TransportError, ProbeError])
@pytest.mark.parametrize(
    ("slow", "verdict"), [(["node05"], "node05 is slow: 2 × the time of others"), ([], "fine: of 8 nodes")]
)
def test_a_node_that_goes_while_suspects_are_measured_again_leaves_the_verdict_of_before(
    diagnosed, monkeypatch, error, slow, verdict
):
    if not slow:  # suspected, but not so much that they are named
        monkeypatch.setattr(all_pairs.work, "again", lambda _: [("node01", "node02")])

    def gone(request, path):
        raise error("node02: it is gone")

    code, out, said = diagnosed(slow, gone)
    assert code == EXIT_FINDINGS
    assert out.startswith(verdict) and ("node05: slow with all others" in out) is bool(slow)
    assert "not all was measured again, the verdict is that of before: node02: it is gone" in said


def test_suspects_that_are_like_the_others_alone_are_fine(diagnosed):
    def alone(request, path):
        return measured(path.parent, pairs=request.pairs, seed=2, name=path.name)

    code, out, said = diagnosed(["node05"], alone)
    assert code == 0 and out.startswith("fine: of 8 nodes") and "once more, one at a time: 10 pairs" in said


def test_a_slow_node_is_named_with_what_it_costs(tmp_path):
    found = diagnose(measured(tmp_path, ["node05"], 2.0))
    assert [(matrix.size_bytes, [s.nodes for s in matrix.suspects]) for matrix in found.matrices] == [
        (64, []),
        (262144, [["node05"]]),
    ]
    assert found.matrices[1].suspects[0].slower == pytest.approx(1.0, abs=0.05)
    said = list(verdict(found))
    assert said[0] == "node05 is slow: 2 × the time of others at 256 KiB"
    assert said[1] == "of 8 nodes, node[01-08] these are slower than comparable nodes:"
    assert said[2].startswith("  node05: slow with all others, 2 × the time at 256 KiB, 3.49 Gbit/s (chance")
    worst = found.matrices[1].scores[0]
    assert worst.node == "node05" and worst.ratio.low < 2 < worst.ratio.high
    text = terminal.page_text(diagnosis_page(found))
    assert text.splitlines()[-1] == "next: wulf audit --nodes node05"
    assert "node05" in text.split("Time of a message against that of a typical node")[1].splitlines()[2]


def test_where_all_are_alike_it_is_fine(tmp_path):
    found = diagnose(measured(tmp_path))
    assert found.fine
    assert next(verdict(found)).startswith(
        "fine: of 8 nodes, node[01-08] none is slower than the others by more than 10 %"
    )


def test_a_ring_does_not_tell_a_node_from_its_links(tmp_path):
    ring = list(itertools.pairwise([*NODES, NODES[0]]))
    with pytest.raises(AnalysisError, match="wulf measure --pairs all"):
        diagnose(measured(tmp_path, pairs=ring))


@pytest.mark.parametrize("count", [1, 4, 5])
def test_too_few_of_the_planned_pairs_cannot_tell_and_are_counted(tmp_path, count):
    planned = list(itertools.combinations(NODES[:4], 2))
    said = f"cannot tell which node is slow: {count} of 6 pairs were measured.*longer --budget"
    with pytest.raises(AnalysisError, match=said):
        diagnose(measured(tmp_path, pairs=planned[:count], planned=planned))


def test_pairs_that_are_missing_are_counted(tmp_path):
    pairs = list(itertools.combinations(NODES, 2))[1:]
    found = diagnose(measured(tmp_path, pairs=pairs))
    assert {matrix.missing for matrix in found.matrices} == {1}
    assert any("1 pair not measured" in line for line in verdict(found))


def test_a_gate_against_a_baseline(tmp_path):
    good = measured(tmp_path / "a")
    bad = measured(tmp_path / "b", ["node05"], 1.5, seed=2)
    found = against(diagnose(bad), bad, good, 0.05)
    assert found.gate is not None
    assert [(worse.size_bytes, worse.nodes) for worse in found.gate.worse] == [(262144, ["node05"])]
    ratio = found.gate.worse[0].ratio
    assert ratio.low < 1.5 < ratio.high
    text = terminal.page_text(diagnosis_page(found))
    assert "against test: 1 figure proven to be worse by more than 5 %" in text
    same = measured(tmp_path / "c", seed=3)
    quiet = against(diagnose(same), same, good, 0.05)
    assert quiet.gate is not None and not quiet.gate.worse
    cases = ElementTree.fromstring(junit(found))
    assert cases.get("failures") == "2"
    failed = [case.get("name") for case in cases if len(case)]
    assert failed == ["node05 is like the others", "not worse than test"]
    assert ElementTree.fromstring(junit(quiet)).get("failures") == "0"


@pytest.mark.parametrize("text", ["", "worse", "worse > x%", "better > 5%", "worse > 5"])
def test_a_gate_says_how_it_is_written(text):
    with pytest.raises(UsageError, match="worse > 5%"):
        fail_if(text)
    assert fail_if("worse > 5%") == fail_if(" worse>5 % ") == 0.05


def page(run):
    return html(build(run.manifest, run.nodes, run.launches, analyze(run), None, find(run)))


def test_the_page_of_a_run_answers_first(tmp_path):
    shown = page(measured(tmp_path / "a", ["node05"], 2.0))
    first, table = (
        shown.index("node05 is slow: 2 × the time of others"),
        shown.index('<h2 id="diagnosis-title">'),
    )
    assert first < shown.index('<h2 class="sr">Key figures') < table
    assert "Next: <code>wulf audit --nodes node05</code>" in shown


def test_without_enough_pairs_the_page_judges_nobody(tmp_path):
    shown = page(measured(tmp_path / "a", pairs=[("node01", "node02"), ("node02", "node03")]))
    assert "fine: of" not in shown and 'id="diagnosis"' not in shown


def test_nodes_with_too_few_partners_are_left_out_of_the_verdict(tmp_path):
    pairs = [pair for pair in itertools.combinations(NODES, 2) if "node08" not in pair]
    found = diagnose(measured(tmp_path, ["node05"], 2.0, pairs=[*pairs, ("node01", "node08")]))
    large = found.matrices[1]
    assert [suspect.nodes for suspect in large.suspects] == [["node05"]]
    assert {score.node for score in large.scores} == set(NODES[:7])
    assert (large.pairs, large.missing) == (21, 7)


def test_of_four_nodes_one_that_has_become_slow_is_named_as_slow_as_it_is():
    names = NODES[:4]
    before = dict.fromkeys(itertools.combinations(names, 2), 1e-3)
    now = {pair: (2e-3 if "node02" in pair else 1e-3) * (1 + 0.001 * i) for i, pair in enumerate(before)}
    ((node, ratio),) = worse_nodes(before, now, 0.05)
    assert node == "node02" and ratio.value == pytest.approx(2, rel=0.01)
