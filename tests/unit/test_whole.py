"""What mending and tuning brought together: the sum of both, its interval, what cannot be told, and how it is said."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.unit import tuning_fixture, whole_fixture
from tests.unit.pages import keys, verdict
from tests.unit.test_report_text import console, printed
from tests.unit.whole_fixture import PAIRS, effect, mending, ratio, workload
from wulf.base.records import Change, ChangeOutcome, Mending, TuneManifest, Whole
from wulf.base.store.tuning import TuningRun
from wulf.node.trials import prepare
from wulf.node.trials.experiment import objective
from wulf.node.trials.experiment.power import estimate as as_record
from wulf.page.page import html
from wulf.page.terminal import print_page
from wulf.stats import estimate
from wulf.stats.core.linear import fit
from wulf.stats.core.paired import paired_shift
from wulf.stats.estimate.overall import together
from wulf.tools.mend import work as procedure
from wulf.tools.tune.page import TuningReport, build, headline
from wulf.tools.tune.report import REPORT


@pytest.fixture(scope="module")
def report() -> TuningReport:
    return whole_fixture.make()


def changes(found: Whole | None) -> dict[str, tuple[str, str | None, str]]:
    """Return metric → verdicts of mending, tuning and both."""
    assert found is not None
    return {
        one.metric: (one.mending.verdict, one.tuning.verdict if one.tuning else None, one.whole.verdict)
        for one in found.figures
    }


def known(value: float, low: float, high: float) -> Change:
    return Change(ratio=ratio(value, low, high), verdict="better")


def test_two_effects_make_their_product_with_an_interval_that_is_wider_than_either() -> None:
    both = together(known(0.5, 0.45, 0.6), known(0.8, 0.7, 0.9), 1, 0.02).ratio
    assert both is not None and both.low is not None and both.high is not None
    assert both.value == pytest.approx(0.4)
    low, high = (
        math.hypot(math.log(0.5 / 0.45), math.log(0.8 / 0.7)),
        math.hypot(math.log(1.2), math.log(1.125)),
    )
    assert (both.low, both.high) == pytest.approx((0.4 * math.exp(-low), 0.4 * math.exp(high)))
    # The bounds multiplied would hold too much.
    assert 0.45 * 0.7 < both.low < 0.4 * 0.45 / 0.5


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(20261126)
    truth, hits, times = math.log(0.2) + math.log(0.64), 0, 400
    for _ in range(times):
        mended = as_record(paired_shift(math.log(0.2) + rng.standard_t(4, 9) * 0.05).ratio)
        logs = math.log(0.64) + rng.normal(0, 0.1, 8)
        tuned = as_record(fit(np.ones((8, 1)), logs).contrast([1.0]).shift(0.95, 8).ratio)
        both = together(
            Change(ratio=mended, verdict="better"), Change(ratio=tuned, verdict="better"), 1, 0.02
        ).ratio
        assert both is not None and both.low is not None and both.high is not None
        hits += math.log(both.low) <= truth <= math.log(both.high)
    assert 0.92 <= hits / times <= 0.985


def test_useless_parts_are_seldom_called_something() -> None:
    rng = np.random.default_rng(7)
    called = 0
    for _ in range(100):
        for _ in range(6):
            mended, tuned = (as_record(paired_shift(rng.normal(0, 0.2, 9)).ratio) for _ in range(2))
            both = together(
                Change(ratio=mended, verdict="no decision"),
                Change(ratio=tuned, verdict="no decision"),
                6,
                0.02,
            )
            called += both.verdict in ("better", "worse")
    assert called <= 7


def test_what_helps_some_is_told_from_what_nobody_can_tell(report: TuningReport) -> None:
    assert report.whole is not None
    found = changes(report.whole)
    assert found["mpi_pingpong 1 B"] == ("no decision", "better", "better")
    assert found["mpi_pingpong 8 KiB"] == ("better", "better", "better")
    # What is no figure of both is not made up.
    [other] = [one for one in report.whole.figures if one.metric == "mpi_bcast 1 KiB"]
    assert other.whole.ratio is None
    assert other.whole.reason == "it was not measured with and without the mending"


def test_without_a_mending_there_is_nothing_to_be_put_together() -> None:
    tuned = tuning_fixture.make()
    back = ChangeOutcome(change="", kept=False, reason="worse with it", nodes=[])
    for mended in (None, mending(outcome=None), mending(outcome=back)):
        assert estimate.whole(mended, workload(PAIRS), tuned.plan, tuned.trials, tuned.tuning) is None


def test_where_the_tuning_kept_nothing_the_mending_is_all() -> None:
    shown = whole_fixture.report(tuning_fixture.nothing(), mending())
    assert shown.whole is not None
    for one in shown.whole.figures:
        assert one.tuning is None
        assert one.whole == one.mending
    title, flag = headline(shown), verdict(build(shown)).flag
    assert (
        title
        == "Time from as found to as left: mpi_pingpong 8 KiB −80.0 % (−81.0 to −79.0); tuning kept nothing"
    )
    assert flag == "good"
    assert any(
        point.startswith("Tuning: nothing kept: no setting is proven")
        for point in verdict(build(shown)).lines
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"effects": [], "unmeasured": "there is no other node to measure with"}, "there is no other node"),
        ({"effects": [], "failed_before": 9, "failures": ["lost"]}, "as found nothing could be measured"),
    ],
)
def test_a_part_that_was_not_measured_is_said_to_be_unknown(fields: dict[str, object], reason: str) -> None:
    shown = whole_fixture.report(tuning_fixture.make(), mending(**fields))
    assert shown.whole is not None
    assert all(one.whole.ratio is None and one.whole.verdict == "no decision" for one in shown.whole.figures)
    assert "cannot tell" in headline(shown)
    view = verdict(build(shown))
    assert view.flag == "warning"
    assert reason in view.lines[0]


def test_other_pairs_are_not_mixed_with_those_that_were_mended() -> None:
    tuned = tuning_fixture.make()
    elsewhere = estimate.whole(
        mending(), workload([("node01", "node02")]), tuned.plan, tuned.trials, tuned.tuning
    )
    assert elsewhere is not None
    assert {one.tuning.reason for one in elsewhere.figures if one.tuning} == {
        "the tuning did not measure between the same pairs"
    }


def test_of_more_pairs_those_that_were_mended_are_taken() -> None:
    tuned = tuning_fixture.make()
    factors = {"node[01,03]": 1.0, "node[02,04]": 1.0, "node[01-02]": 5.0}
    trials = [
        msgspec.structs.replace(
            trial,
            by_place={
                place: {
                    name: value * (factor if trial.setting else 1.0) for name, value in trial.values.items()
                }
                for place, factor in factors.items()
            },
        )
        for trial in tuned.trials
    ]
    found = estimate.whole(
        mending(), workload([*PAIRS, ("node01", "node02")]), tuned.plan, trials, tuned.tuning
    )
    assert found is not None and tuned.tuning.confirmation is not None
    of_all = tuned.tuning.confirmation.metrics["mpi_pingpong 1 B"]
    [small] = [one for one in found.figures if one.metric == "mpi_pingpong 1 B"]
    assert small.tuning is not None and small.tuning.ratio is not None
    assert small.tuning.ratio.value == pytest.approx(of_all.value, rel=0.02)
    assert small.tuning.verdict == "better"


def test_the_headline_speaks_of_all_that_was_done(report: TuningReport) -> None:
    title = headline(report)
    assert re.fullmatch(
        r"Time from as found to as left: mpi_pingpong 1 B −5\d % \(−5\d to −4\d\), "
        r"mpi_pingpong 8 KiB −90[.\d]* % \(−9[.\d]+ to −8[.\d]+\)",
        title,
    )
    view = verdict(build(report))
    assert view.flag == "good"
    assert view.lines[0].startswith(
        "Mending between node01–node03, node02–node04: mpi_pingpong 1 B cannot tell: −2 %"
    )
    assert view.lines[1].startswith("Tuning: 3 settings kept: small-message time −5")
    assert keys(build(report))[0].name == "mpi_pingpong 1 B, from as found to as left"


def test_means_of_one_operation_are_named_by_their_size() -> None:
    effects = [
        effect("mpi_pingpong 1 B mean", ratio(0.64, 0.6, 0.7), "better"),
        effect("mpi_pingpong 1 B p99", ratio(0.1, 0.05, 0.2), "better"),
    ]
    shown = whole_fixture.report(tuning_fixture.nothing(), mending(effects=effects))
    assert headline(shown).startswith(
        "mpi_pingpong, mean time from as found to as left: 1 B −36 % (−40 to −30)"
    )


def test_what_got_worse_is_not_called_good() -> None:
    effects = [effect("mpi_pingpong 1 B", ratio(1.2, 1.1, 1.3), "worse")]
    shown = whole_fixture.report(tuning_fixture.nothing(), mending(effects=effects))
    assert headline(shown).endswith("; worse: mpi_pingpong 1 B")
    assert verdict(build(shown)).flag == "warning"


def test_page_and_terminal_have_the_table(report: TuningReport) -> None:
    text = html(build(report))
    assert "Effect of the whole procedure" in text
    assert text.count("<table") == html(build(tuning_fixture.make())).count("<table") + 1
    on = console(200)
    print_page(build(report), on)
    said = printed(on)
    assert "Effect of the whole procedure" in said
    assert "cannot tell" in said


def test_the_data_have_it(report: TuningReport, tmp_path: Path) -> None:
    manifest = msgspec.convert(
        {
            "schema_version": report.tuning.schema_version,
            "id": "tune-1121",
            "created_at": "2026-11-21T08:00:00Z",
            "updated_at": "2026-11-21T08:00:00Z",
            "wulf_version": "0",
            "command_line": [],
            "status": "complete",
            "cluster": "",
            "operations": [],
            "software": {},
            "plan": msgspec.to_builtins(report.plan),
            "workload": msgspec.to_builtins(workload(PAIRS)),
            "profile": "latency",
            "nodes": ["node01"],
            "records": [],
        },
        TuneManifest,
    )
    run = TuningRun(
        path=tmp_path,
        manifest=manifest,
        trials=list(report.trials),
        result=report.tuning,
        mended=report.mended,
    )
    whole = json.loads(REPORT.data(run, "json"))["whole"]
    assert whole["pairs"] == [list(pair) for pair in PAIRS]
    assert {"mending", "tuning", "whole"} < set(whole["figures"][0])


def test_nodes_with_different_mistakes_need_no_pair_of_their_own() -> None:
    nodes = ["a", "b", "c", "d"]
    assert procedure.pairs_with(["c", "d"], nodes, [{"c"}, {"d"}]) == [("a", "c"), ("b", "d")]
    assert ("c", "d") in procedure.pairs_with(["c", "d"], nodes, [{"c", "d"}])


def test_a_search_measures_the_pairs_that_were_mended() -> None:
    goal = objective.application("true", "", "lower", "s")
    goal = msgspec.structs.replace(goal, probes={"mpi_pingpong": [1]}, commands=[])
    choice = prepare.Choice(candidates=[], left_out={})
    nodes = ["node01", "node02", "node03", "node04"]
    assert prepare.workload(goal, nodes, choice, PAIRS).parts[0].places == PAIRS
    some = prepare.workload(goal, nodes, choice, PAIRS[:1]).parts[0].places
    assert some[0] == PAIRS[0]
    assert {node for place in some for node in place} == set(nodes)


def test_old_runs_are_read_without_it() -> None:
    found = msgspec.convert({"findings": [], "refused": []}, Mending)
    assert found.outcome is None
