"""Thirty days of a watch with a clock that is set, and no waiting: what is found, named, told and closed."""

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from wulf.base.records.watched import WatchedTime, WatchRun
from wulf.base.store.history import History
from wulf.page.page import html
from wulf.page.terminal import print_page
from wulf.tools.watch import judging, running
from wulf.tools.watch import page as shown
from wulf.tools.watch.environment import SetClock, utc
from wulf.tools.watch.history import alarms as alarming
from wulf.tools.watch.history import rotation
from wulf.tools.watch.page import metrics

NODES = [f"node{number:02}" for number in range(1, 9)]
SIZES = {64: 12e-6, 1 << 20: 9e-3}
#: What changes on the 22nd day: a cable is negotiated anew, at a tenth of its speed.
PLANTED = 22
SLOW = "node05"


class Days:
    """Runs as a cluster would give them, one a day."""

    def __init__(self, history, seed=1):
        self.history = history
        self.clock = SetClock(datetime.fromisoformat("2026-03-02T02:30:00+01:00"))
        self.rng = np.random.default_rng(seed)
        self.slower = 1.25
        self.speed = "1000000000"

    def day(self, number, *, changed):
        """Make the run of a day; return what it brings."""
        suspects, last = self.history.suspects(), self.history.last_measured()
        pairs = rotation.choose(NODES, NODES, last, suspects, rotation.AT_FIRST)
        run = WatchRun(
            number=self.history.next_number(),
            at=utc(self.clock.now()),
            utc_offset_s=running.offset_s(self.clock.now()),
            status="measured",
            seconds=60.0,
            pairs=len(pairs),
        )
        common = 0.01 * self.rng.standard_normal()
        offsets = {node: 0.008 * self.rng.standard_normal() for node in NODES}
        times = [
            WatchedTime(
                op="mpi_pingpong",
                size_bytes=size,
                nodes=pair,
                launches=3,
                time_s=self.time(usual, pair, common, offsets, changed),
            )
            for pair in pairs
            for size, usual in SIZES.items()
        ]
        judged = running.keep(self.history, run, times, self.facts(number, changed), self.clock.now())
        self.clock.sleep(86400)
        return judged

    def time(self, usual, pair, common, offsets, changed):
        noise = common + sum(offsets[node] for node in pair) + 0.008 * self.rng.standard_normal()
        return usual * math.exp(noise) * (self.slower if changed and SLOW in pair else 1.0)

    def facts(self, number, changed):
        found = {
            node: {"kernel.release": "6.1.0-18", "nic.speed_bits_per_s": "10000000000"} for node in NODES
        }
        if changed:
            found[SLOW]["nic.speed_bits_per_s"] = self.speed
            found[SLOW]["finding.nic.slow_link"] = "fail"
        # Something that changes all the time, and so explains nothing.
        found[SLOW]["nic.carrier_changes"] = str(number // 2)
        return {**found, "": {"wulf": "1.0", "mpi": "Open MPI 4.1.4"}}


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """A history of 30 days, with what each of them has brought."""
    directory = tmp_path_factory.mktemp("watch") / "lab"
    with History(directory, writing=True) as history:
        days = Days(history)
        brought = [days.day(number, changed=number >= PLANTED) for number in range(1, 31)]
        report = judging.report(history, "lab", NODES, days.clock.now(), brought[-1])
        series = judging.series(history, [*report.open, *report.closed])
        yield history, days, brought, report, series


def test_the_planted_change_is_found_within_three_runs_and_once(month):
    _, _, brought, report, _ = month
    found = [(day, alarm) for day, judged in enumerate(brought, 1) for alarm in judged.new]
    assert {(alarm.level, tuple(alarm.nodes), alarm.size_bytes) for _, alarm in found} == {
        ("node", (SLOW,), size) for size in SIZES
    }
    assert len(found) == len(SIZES)
    assert all(PLANTED <= day < PLANTED + 3 for day, _ in found)
    assert {(one.before_run, one.after_run) for one in report.open} == {(PLANTED - 1, PLANTED)}
    for one in report.open:
        assert one.change.low < 1.25 < one.change.high


def test_what_changed_beside_it_is_named_the_rarest_first(month):
    *_, report, _ = month
    for alarm in report.open:
        names = [one.fact for one in alarm.changed]
        assert names[-1] == "nic.carrier_changes"
        assert set(names[:2]) == {"finding.nic.slow_link", "nic.speed_bits_per_s"}
        speed = next(one for one in alarm.changed if one.fact == "nic.speed_bits_per_s")
        assert (speed.before, speed.after, speed.nodes) == ("10000000000", "1000000000", [SLOW])


def test_people_read_it_in_words(month):
    history, _, _, report, _ = month
    from wulf.page.terminal import plain

    text = plain(lambda console: print_page(shown.build(report, history.runs(), []), console))
    told = " ".join(text.split())
    assert "2 alarms open" in told
    assert "node05: mpi_pingpong 64 B has stepped by +2" in told
    assert "since Mon 23 Mar 2026 02:30" in told
    assert "nic.speed_bits_per_s: 10 Gbit/s → 1 Gbit/s on node05" in told
    assert "30 measured" in told


def test_the_page_shows_the_history_with_marks(month):
    history, _, _, report, series = month
    figures = {figure.id: figure for figure in shown.build(report, history.runs(), series).figures}
    assert {"cluster", "nodes-0", "nodes-1"} < set(figures)
    drawn = next(figure for name, figure in figures.items() if name.startswith("alarm-"))
    marks = drawn.variants[0].datasets["marks"]
    assert marks["at"] == ["2026-03-23T02:30"] and "nic.speed_bits_per_s" in marks["facts"][0]
    ratios = drawn.variants[0].datasets["main"]["ratio"]
    assert np.median(ratios[: PLANTED - 1]) == pytest.approx(1, abs=0.02)
    assert np.median(ratios[PLANTED - 1 :]) == pytest.approx(1.25, abs=0.04)
    page = html(shown.build(report, history.runs(), series))
    assert "2 alarms open" in page and "node05" in page


@pytest.mark.parametrize("parser", [prometheus, open_metrics], ids=["Prometheus", "OpenMetrics"])
def test_both_kinds_of_metrics_are_read(month, parser):
    *_, report, series = month
    families = {family.name: family for family in parser(metrics.render(report, series))}
    assert {family.type for family in families.values()} == {"gauge"}
    (open_now,) = families["wulf_watch_alarms"].samples
    assert (open_now.value, open_now.labels, open_now.timestamp) == (2, {"watch": "lab"}, None)
    ratios = {sample.labels["size_bytes"]: sample for sample in families["wulf_watch_alarm_ratio"].samples}
    assert {sample.labels["node"] for sample in ratios.values()} == {SLOW}
    nodes = {sample.labels.get("node") for sample in families["wulf_watch_time_ratio"].samples}
    assert set(NODES) < nodes


def test_names_that_metrics_would_read_otherwise_are_escaped(month):
    *_, report, series = month
    import msgspec

    odd = 'a "b" \\ c\nd'
    named = msgspec.structs.replace(report, name=odd)
    for parser in (prometheus, open_metrics):
        families = {family.name: family for family in parser(metrics.render(named, series))}
        assert families["wulf_watch_alarms"].samples[0].labels == {"watch": odd}


def test_junit_has_a_case_for_every_node(month):
    from xml.etree import ElementTree

    *_, report, _ = month
    suite = ElementTree.fromstring(shown.junit(report))
    failed = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failed == {f"{SLOW} has not changed"}
    assert (suite.get("tests"), suite.get("failures")) == (str(len(NODES) + 2), "1")


def test_links_are_covered_and_what_would_be_found_is_said(month):
    *_, report, _ = month
    assert (report.coverage.pairs, report.coverage.measured) == (28, 28)
    assert report.coverage.oldest_days < 10
    levels = {one.level for one in report.shown}
    assert levels == {"cluster", "node", "link"}
    assert all(0.01 < one.smallest < 0.2 for one in report.shown)
    assert report.learning == "" and report.findings == {"fail": 1}


def test_a_watch_says_that_it_is_still_learning(tmp_path):
    with History(tmp_path / "young", writing=True) as history:
        days = Days(history)
        for number in range(1, 6):
            assert days.day(number, changed=False).new == []
        report = judging.report(history, "young", NODES, days.clock.now(), None)
        assert report.learning == "5 of the 15 runs that it takes until a change is told from noise"

        assert report.untold == [report.learning]


def told(history, report):
    from wulf.page.terminal import plain

    return " ".join(
        plain(lambda console: print_page(shown.build(report, history.runs(), []), console)).split()
    )


def test_silence_is_not_fine(tmp_path):
    with History(tmp_path / "silent", writing=True) as history:
        days = Days(history)
        for number in range(1, 22):
            days.day(number, changed=False)
        report = judging.report(history, "silent", NODES, days.clock.now(), None)
        assert report.untold == []
        assert report.unaudited == NODES
        said = told(history, report)
        assert "Nothing has changed: a node of +" in said
        assert "No audit is known of these nodes" in said
        for _ in range(judging.SILENT):
            running._keep_none(
                history, history.next_number(), days.clock.now(), "failed", "no node answers", {}
            )
        report = judging.report(history, "silent", NODES, days.clock.now(), None)
        assert report.untold == ["the last 3 runs have measured nothing (no node answers)"]
        said = told(history, report)
        assert "Cannot tell whether anything has changed" in said
        assert "Nothing has changed" not in said
        assert 'errors="10"' in shown.junit(report)


def test_runs_that_differ_by_half_show_no_step_that_matters(tmp_path):
    with History(tmp_path / "wild", writing=True) as history:
        days = Days(history)
        rng = np.random.default_rng(5)
        days.time = lambda usual, *_: usual * math.exp(0.6 * rng.standard_normal())
        for number in range(1, 22):
            days.day(number, changed=False)
        report = judging.report(history, "wild", NODES, days.clock.now(), None)
        assert any("would be found soon" in doubt for doubt in report.untold), report.shown


def test_what_an_audit_could_not_look_at_is_counted_and_undoes_no_finding():
    from wulf.base.records import Audit, Judgement, NodeRecord
    from wulf.tools.watch import observations

    record = NodeRecord(node="node01", reachable=True, facts={})
    gap = Judgement(
        id="nic.duplex", title="", status="unknown", reason="r", nodes=["node01"], severity="fail"
    )
    found = observations.facts(
        [record],
        Audit(profile="hpc", nodes=["node01"], unreachable={}, findings=[], judgements=[gap], matrix=[]),
        {},
        {"node01": {"finding.nic.duplex": "fail", "finding.other": "warn"}},
        datetime.fromisoformat("2026-03-02T02:30:00+01:00"),
    )
    assert found["node01"] == {"audit.unjudged": "1", "finding.nic.duplex": "fail"}


def test_an_alarm_is_closed_when_the_cable_is_as_before(tmp_path):
    with History(tmp_path / "repaired", writing=True) as history:
        days = Days(history, seed=2)
        for number in range(1, 36):
            days.day(number, changed=PLANTED <= number < 29)
        states = [(alarm.after_run, alarm.direction, alarm.state) for alarm in history.alarms()]
        assert sorted(set(states)) == [(PLANTED, "slower", "returned"), (29, "faster", "noted")]


def test_what_was_accepted_is_not_found_again(tmp_path):
    with History(tmp_path / "accepted", writing=True) as history:
        days = Days(history, seed=3)
        for number in range(1, 27):
            days.day(number, changed=number >= PLANTED)
        history.put_alarms(alarming.accept(history.alarms(), days.clock.now(), "new cable"))
        assert {alarm.state for alarm in history.alarms()} == {"accepted"}
        count = len(history.alarms())
        for number in range(27, 60):
            assert days.day(number, changed=True).new == []
        assert len(history.alarms()) == count
        assert days.clock.now() - timedelta(days=59) == datetime.fromisoformat("2026-03-02T02:30:00+01:00")
