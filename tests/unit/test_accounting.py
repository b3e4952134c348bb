"""Shares of node-hours from what sacct prints; jobs of known answer, made up."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from wulf.base.errors import ConfigError, UsageError
from wulf.tools.worth import accounting, money
from wulf.tools.worth.accounting import Traced

HEAD = "JobID|JobName|NNodes|NTasks|ElapsedRaw|Start|End|NodeList\n"
CFD = Traced("cfd.wtrace", "mpirun -np 16 /opt/bin/solver --case wing", 16, 4)
MD = Traced("md.wtrace", "srun ./lmp -in in.lj", 8, 2)
#: 4 × 3600 s of cfd by its step, 2 × 7200 s of md by its name, 4 × 1800 s of solver with other tasks; others.
JOBS = (
    HEAD
    + """\
101|sbatch_run|4||3600|2026-11-01T00:00:00|2026-11-01T01:00:00|node[01-04]
101.batch|batch|1|1|3600|2026-11-01T00:00:00|2026-11-01T01:00:00|node01
101.extern|extern|4|4|3600|2026-11-01T00:00:00|2026-11-01T01:00:00|node[01-04]
101.0|solver|4|16|3590|2026-11-01T00:00:10|2026-11-01T01:00:00|node[01-04]
102|lmp|2||7200|2026-11-01T00:00:00|2026-11-01T02:00:00|node[05-06]
102.0|orted|2|2|7200|2026-11-01T00:00:00|2026-11-01T02:00:00|node[05-06]
103|other|4||1800|2026-11-01T02:00:00|2026-11-01T02:30:00|node[01-04]
103.0|solver|4|64|1800|2026-11-01T02:00:00|2026-11-01T02:30:00|node[01-04]
104|lmp|8||1800|2026-11-01T09:30:00|2026-11-01T10:00:00|node[01-08]
105|lmp|2||0|Unknown|Unknown|None assigned
"""
)


def mix(text, *programs):
    return money.read_jobs(accounting.jobs_text(text, "month.txt", programs).encode(), "jobs").value


def test_shares_are_those_of_node_hours():
    whole = 4 * 3600 + 2 * 7200 + 4 * 1800 + 8 * 1800
    found = mix(JOBS, CFD, MD)
    assert [one.trace for one in found.job] == ["cfd.wtrace", "md.wtrace"]
    assert [one.share for one in found.job] == pytest.approx([4 * 3600 / whole, 2 * 7200 / whole])
    assert found.nodes == 8
    # Ten hours of the clock, 50400 node-seconds of eight nodes.
    assert found.hours_a_year == pytest.approx(whole / 8 / 36000 * 8760)


@pytest.mark.parametrize("seed", range(20))
def test_any_accounting_adds_up(seed):
    """Jobs at random of two programs and of others: each share is what was made."""
    rng = random.Random(seed)
    lines, made = [HEAD], {CFD.trace: 0, MD.trace: 0, "": 0}
    for number in range(60):
        program = rng.choice([CFD, MD, None])
        nodes = program.nodes if program else rng.randint(1, 8)
        seconds = rng.randint(1, 90_000)
        name = rng.choice(sorted(program.names)) if program else f"job {number}"
        begin = f"2026-10-{rng.randint(1, 28):02d}T00:00:00"
        lines.append(f"{number}|{name}|{nodes}||{seconds}|{begin}|2026-11-01T00:00:00|node[1-{nodes}]\n")
        if program and rng.random() < 0.5:
            lines.append(
                f"{number}.0|{name}|{nodes}|{program.ranks}|{seconds}|{begin}|2026-11-01T00:00:00|n\n"
            )
        made[program.trace if program else ""] += nodes * seconds
    found = mix("".join(lines), CFD, MD)
    for job in found.job:
        assert job.share == pytest.approx(made[job.trace] / sum(made.values()))


@pytest.mark.parametrize("name", ["a|b", "|", "a||b|", "a\x85b\x1cc\u2028d", '"a', "a\rb"])
def test_a_job_may_have_any_name(name):
    """sacct prints names as users gave them, and quotes nothing."""
    odd = JOBS.replace("|other|", f"|{name}|").replace("103.0|solver|", f"103.0|{name}|")
    assert mix(odd, CFD, MD) == mix(JOBS, CFD, MD)
    assert mix(odd.replace("\n", "\r\n"), CFD, MD) == mix(JOBS, CFD, MD)
    # `--parsable` ends each line with a separator.
    assert mix(odd.replace("\n", "|\n"), CFD, MD) == mix(JOBS, CFD, MD)


def test_a_trace_without_a_job_is_named_with_what_there_is():
    with pytest.raises(
        UsageError, match=r"month.txt has no job like cfd.wtrace \(32 ranks.*lmp on 8 nodes \(4 node"
    ):
        mix(JOBS, Traced("cfd.wtrace", "solver", 32, 4))


def test_two_traces_of_the_same_jobs_are_named():
    again = Traced("wing.wtrace", "/opt/bin/solver", 16, 4)
    with pytest.raises(UsageError, match=r"jobs like wing.wtrace are like cfd.wtrace, too: .* leave one out"):
        mix(JOBS, CFD, again)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOBS.replace("|NTasks", "|Tasks"), "lacks NTasks"),
        (
            JOBS.replace(
                "|3600|2026-11-01T00:00:00|2026-11-01T01:00:00|node[01-04]\n101.b", "|long|x|y|n\n101.b"
            ),
            ":2:",
        ),
        (
            JOBS.replace("node[01-04]\n103.0", "node[01-04]|more\n103.0").replace(
                "103|other|4|", "103|ot|her|4|"
            ),
            ":8:",
        ),
        (HEAD, "no job in it has taken any time"),
        (HEAD + "1|a|4||100|2026-11-01T00:00:00|2026-11-01T01:00:00|None assigned\n", ":2: job 1: it ran"),
        (HEAD + "1|a|4||100|2026-11-01T00:00:00|2026-11-01T01:00:00\n", ":2: job 1: 7 fields of 8"),
        (HEAD + "1|a|-4||100|2026-11-01T00:00:00|2026-11-01T01:00:00|n\n", ":2: job 1"),
    ],
)
def test_what_is_no_accounting_is_refused_with_its_line(text, said):
    with pytest.raises(ConfigError, match=said):
        mix(text, CFD)


def test_accounting_is_told_from_a_file_of_jobs():
    assert accounting.is_accounting(JOBS.encode())
    assert not accounting.is_accounting(b"nodes = 4\n")


@pytest.mark.parametrize("page", ["docs/howto/predict.md", "docs/reference/commands.md"])
def test_the_command_that_is_written_is_the_one_that_is_read(page):
    """The help has it in its own words, as it loads none of this: from there it comes into the reference."""
    assert accounting.COMMAND in " ".join((Path(__file__).parents[2] / page).read_text().split())
