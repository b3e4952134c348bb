"""A mix of jobs under Slurm: what its file says, what Slurm's times say of throughput, and the order of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base.errors import ConfigError, SchedulerError
from wulf.node.cluster import slurm
from wulf.node.trials.bench import TrialError
from wulf.tools.study import file, mix
from wulf.tools.study.record import StudyJob

EXAMPLE = Path(__file__).parents[2] / "docs/examples/throughput.toml"
#: As both were asked on Slurm 22.05; the accounting of a job that was cancelled and of one that ended.
QUEUE = """\
21|PENDING|2026-11-26T14:20:03|N/A|N/A|2|
20|RUNNING|2026-11-26T14:20:01|2026-11-26T14:20:05|2026-11-26T14:50:05|1|node01
19|COMPLETED|2026-11-26T14:20:00|2026-11-26T14:20:02|2026-11-26T14:20:12|2|node[01-02]
"""
ACCOUNTING = """\
17|CANCELLED by 0|2026-11-26T14:19:00|None|2026-11-26T14:19:30|0|None assigned
18|COMPLETED|2026-11-26T14:19:00|2026-11-26T14:19:10|2026-11-26T14:19:30|1|node03
"""


def test_the_queue_and_the_accounting_tell_the_same() -> None:
    found = slurm.parse_stints(QUEUE, "squeue")
    assert [found[job].over for job in ("19", "20", "21")] == [True, False, False]
    assert (found["21"].started, found["21"].nodes, found["19"].nodes) == (None, (), ("node01", "node02"))
    told = slurm.parse_stints(ACCOUNTING, "sacct")
    assert (told["17"].state, told["17"].over, told["17"].nodes) == ("CANCELLED", True, ())
    ended = told["18"].ended
    assert ended is not None and ended - told["18"].submitted == 30


@pytest.mark.parametrize(
    "line", ["slurm_load_jobs error", "1|COMPLETED|yesterday|N/A|N/A|1|n1", "1|RUNNING|N/A|N/A|N/A|1|n1", "|"]
)
def test_what_is_no_answer_is_told(line: str) -> None:
    with pytest.raises(SchedulerError, match="what squeue says of a job is not understood"):
        slurm.parse_stints(line, "squeue")


def test_throughput_from_the_times_of_jobs() -> None:
    ended = [slurm.parse_stints(QUEUE, "squeue")["19"], slurm.parse_stints(ACCOUNTING, "sacct")["18"]]
    found = mix.figures(ended, cpus=4)
    # From 14:19:00 to 14:20:12; 2 CPUs for 10 s and one for 20 s; 12 s and 30 s.
    assert found["jobs a day"] == pytest.approx(2 * 86400 / 72)
    assert found["utilisation"] == pytest.approx(40 / (4 * 72))
    assert found["turnaround"] == pytest.approx(21)
    with pytest.raises(TrialError, match="does not say when 1 of the jobs"):
        mix.figures([*ended, slurm.parse_stints(ACCOUNTING, "sacct")["17"]], cpus=4)
    short = slurm.parse_stints(
        QUEUE.replace("14:20:12", "14:20:02").replace("14:20:00", "14:20:02"), "squeue"
    )
    with pytest.raises(TrialError, match="whole seconds"):
        mix.figures([short["19"]], cpus=4)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.sampled_from([0.0, 20.0]), st.integers(0, 99))
def test_every_job_comes_once_in_an_order_that_is_the_seeds(
    counts: list[int], gap_s: float, seed: int
) -> None:
    jobs = [StudyJob(name=f"j{place}", command="true", count=count) for place, count in enumerate(counts)]
    found = mix.arrivals(jobs, gap_s, seed)
    assert sorted((one.job.name, one.number) for one in found) == sorted(
        (job.name, number) for job in jobs for number in range(1, job.count + 1)
    )
    times = [one.at_s for one in found]
    assert times == sorted(times) and times[0] == 0
    assert gap_s or not any(times)
    assert found == mix.arrivals(jobs, gap_s, seed)


def test_the_example_is_a_study_of_three_figures() -> None:
    (metric,) = file.named(str(EXAMPLE)).metrics
    assert [name for name, _ in metric.figures] == ["mix jobs a day", "mix utilisation", "mix turnaround"]
    assert [metric.of(name).better for name, _ in metric.figures] == ["higher", "higher", "lower"]
    assert [job.count for job in metric.jobs] == [4, 12]
    assert (metric.gap_s, metric.takes_s) == (20, 1200)
    (short,) = file.named(str(EXAMPLE), short=True).metrics
    assert [job.count for job in short.jobs] == [1, 1]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "small"', 'name = "wide"', r"metric\[0\].job\[1\].name: there is another"),
        ("./solve large.in", "./solve {size}", r"metric\[0\].job\[0\].command: {size}: there is no factor"),
        ("--exclusive --time=30", "'--exclusive", r"metric\[0\].job\[0\].options: .*quotation"),
        ("--exclusive --time=30", "--array=1-4", r"metric\[0\].job\[0\].options: .*count"),
        ('gap = "20s"', 'gap = "20 parsec"', r"metric\[0\].gap: "),
        ('gap = "20s"', 'unit = "s"', r"metric\[0\].unit: a mix of jobs has no unit"),
        ('gap = "20s"', 'op = "tcp_rr"', r"metric\[0\]: .*takes one of op, command, hpl, job"),
        ("count = 12", "count = 0", r"metric\[0\].job\[1\].count"),
        ("[design]", '[[published]]\nmetric = "mix"\nvalue = 3\n[design]', r"there is no metric 'mix'"),
    ],
)
def test_what_is_wrong_in_a_mix_is_named(old: str, new: str, says: str) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    with pytest.raises(ConfigError, match=rf"x.toml:[0-9]+: .*{says}"):
        file.read(text.replace(old, new, 1), "x.toml", "x")
