"""The table for a paper: its figures against a plain computation, and its forms."""

from __future__ import annotations

import csv
import io
import statistics

import numpy as np
import pytest

from tests.unit import tuning_fixture
from wulf.tools.tune.page import (
    TuningReport,
    paper_table,
    published_csv,
    published_latex,
    published_markdown,
    published_table,
)


@pytest.fixture(scope="module")
def report() -> TuningReport:
    return tuning_fixture.make()


def test_figures_are_those_of_the_trials(report: TuningReport) -> None:
    rows = {(row.metric, row.setting): row for row in published_table(report)}
    row = rows["mpi_pingpong 64 B", "nic.rx_usecs = 0"]
    values = [
        trial.values["mpi_pingpong 64 B"]
        for trial in report.trials
        if trial.setting == {"nic.rx_usecs": "0"} and trial.status == "ok"
    ]
    assert row.n == len(values) > 8
    assert row.mean == pytest.approx(statistics.fmean(values))
    assert row.deviation == pytest.approx(statistics.stdev(values))
    expected = np.percentile(values, [0, 5, 25, 50, 75, 95, 100])
    assert list(row.quantiles.values()) == pytest.approx(list(expected))


def test_settings_are_original_each_alone_and_kept(report: TuningReport) -> None:
    settings = list(dict.fromkeys(row.setting for row in published_table(report)))
    assert settings[0] == "original" and settings[-1] == "kept"
    assert "nic.gro = off" in settings
    assert "nic.mtu = 9000" not in settings, "nothing was measured under it"
    metrics = {row.metric for row in published_table(report)}
    assert metrics == {metric.name for metric in report.plan.metrics if metric.weight}


def test_kept_is_measured_by_trials_that_had_no_part_in_the_choice(report: TuningReport) -> None:
    kept = [row for row in published_table(report) if row.setting == "kept"]
    assert {row.n for row in kept} == {tuning_fixture.BLOCKS}


def test_one_value_has_no_deviation() -> None:
    report = tuning_fixture.application()
    single = TuningReport(plan=report.plan, trials=report.trials[:1], tuning=report.tuning)
    (row,) = published_table(single)
    assert row.deviation is None and row.n == 1
    assert set(row.quantiles.values()) == {row.mean}
    assert published_csv([row]).splitlines()[1].split(",")[5] == ""
    assert "–" in published_markdown(single)


def test_csv_has_all_digits_in_base_units(report: TuningReport) -> None:
    rows = published_table(report)
    read = list(csv.DictReader(io.StringIO(published_csv(rows))))
    assert len(read) == len(rows)
    assert [float(line["mean"]) for line in read] == [row.mean for row in rows]
    assert [float(line["p95"]) for line in read] == [row.quantiles["p95"] for row in rows]
    assert {line["unit"] for line in read} == {"s"}


def test_a_table_has_one_unit_and_the_digits_of_its_deviation(report: TuningReport) -> None:
    table = paper_table.tables(report)[0]
    assert table.title == "mpi_pingpong 1 B [µs]"
    means = [row[2].text for row in table.rows]
    assert all(len(mean.partition(".")[2]) == 2 for mean in means)
    assert float(means[0]) == pytest.approx(47.2, rel=0.02)


def test_markdown_and_latex_are_whole_tables(report: TuningReport) -> None:
    markdown = [line for line in published_markdown(report).splitlines() if line.startswith("|")]
    assert {line.count("|") for line in markdown} == {12}
    latex = published_latex(report)
    assert latex.count(r"\begin{tabular}{lrrrrrrrrrr}") == latex.count(r"\end{tabular}") == 4
    assert r"nic.rx\_usecs = 0" in latex
    assert all(line.count(" & ") == 10 for line in latex.splitlines() if line.endswith(r"\\"))


def test_no_text_leaves_its_cell() -> None:
    report = tuning_fixture.hostile()
    assert "\\<" in published_markdown(report) or "<script" not in published_markdown(report)
    assert "\x1b" not in published_latex(report)
