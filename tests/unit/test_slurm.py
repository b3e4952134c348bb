"""What Slurm says of jobs (captured from 22.05), what that leaves of a budget, and what is submitted."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import get_type_hints

import pytest

import wulf
from wulf.base.errors import SchedulerError, UsageError
from wulf.face.cli import submitting as cli
from wulf.node.cluster import slurm
from wulf.node.fleet import allocation
from wulf.node.fleet.clusters import cluster
from wulf.node.measuring import submitting

RUNNING = (
    "JobId=1 JobName=j.sh UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 Nice=0 "
    "Account=(null) QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 "
    "BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:10 TimeLimit=00:05:00 TimeMin=N/A "
    "SubmitTime=2026-11-23T12:59:41 EligibleTime=2026-11-23T12:59:41 AccrueTime=2026-11-23T12:59:41 "
    "StartTime=2026-11-23T12:59:41 EndTime=2026-11-23T13:04:41 Deadline=N/A SuspendTime=None SecsPreSuspend=0 "
    "LastSchedEval=2026-11-23T12:59:41 Scheduler=Main Partition=lab AllocNode:Sid=head:0 ReqNodeList=(null) "
    "ExcNodeList=(null) NodeList=n[1-3] BatchHost=n1 NumNodes=3 NumCPUs=3 NumTasks=3 CPUs/Task=1 "
    "ReqB:S:C:T=0:0:*:* TRES=cpu=3,node=3,billing=3 Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=* "
    "MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0 Features=(null) DelayBoot=00:00:00 OverSubscribe=NO "
    "Contiguous=0 Licenses=(null) Network=(null) Command=/tmp/ms/j.sh WorkDir=/tmp/ms StdErr=/tmp/ms/out 2 "
    "StdIn=/dev/null StdOut=/tmp/ms/out 2 Power= "
)
HELD = (
    RUNNING.replace("RUNNING Reason=None", "PENDING Reason=JobHeldUser")
    .replace("RunTime=00:00:10 TimeLimit=00:05:00", "RunTime=00:00:00 TimeLimit=UNLIMITED")
    .replace("StartTime=2026-11-23T12:59:41", "StartTime=Unknown")
    .replace("NodeList=n[1-3] BatchHost=n1", "NodeList=")
)
MPI = (
    "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
    "specific pmix plugin versions available: pmix_v4\n"
)


def test_a_job_that_runs_and_one_that_waits() -> None:
    job = slurm.parse(RUNNING)
    assert (job.id, job.state, job.reason, job.nodes) == ("1", "RUNNING", "", ("n1", "n2", "n3"))
    assert (job.run_s, job.limit_s, job.left_s) == (10, 300, 290)
    assert job.output == Path("/tmp/ms/out 2")
    assert not job.over
    job = slurm.parse(HELD)
    assert (job.state, job.reason, job.nodes, job.start) == ("PENDING", "JobHeldUser", (), "")
    assert job.left_s is None
    assert not job.over
    ended = slurm.parse(RUNNING.replace("RUNNING", "FAILED").replace("ExitCode=0:0", "ExitCode=3:0"))
    assert (ended.over, ended.exit_code, ended.signal) == (True, 3, 0)
    # An allocation without a script prints to no file.
    assert slurm.parse(RUNNING[: RUNNING.index("Command=")]).output is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:05:00", 300),
        ("2-01:00:00", 176400),
        ("05:30", 330),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
    ],
)
def test_time_limits(text: str, seconds: float | None) -> None:
    assert slurm.parse(RUNNING.replace("TimeLimit=00:05:00", f"TimeLimit={text}")).limit_s == seconds


def test_what_is_no_job() -> None:
    with pytest.raises(SchedulerError, match="scontrol says no ExitCode"):
        slurm.parse("slurm_load_jobs: something else")
    with pytest.raises(SchedulerError, match="is not the number of a Slurm job"):
        slurm.look("1; reboot")


def test_kinds_of_mpi() -> None:
    assert slurm.mpi_plugins(MPI) == {"pmix", "none", "cray_shasta", "pmi2"}
    assert slurm.mpi_plugins("srun: MPI types are...\nsrun: none\nsrun: pmi2\n") == {"none", "pmi2"}
    assert slurm.mpi_plugins("") == frozenset()


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that says what scontrol did; the job is 7."""
    answer = tmp_path / "answer"
    program = tmp_path / "bin" / "scontrol"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {answer}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    return answer


def test_the_end_of_the_allocation_caps_the_budget(scontrol: Path) -> None:
    said: list[str] = []
    scontrol.write_text(RUNNING)
    assert allocation.capped(100, said.append) == 100
    assert said == []
    assert allocation.capped(1000, said.append) == 290 - allocation.RESERVE_S
    assert said == [
        "Slurm job 7 ends in 290 s: the budget is 230 s instead of 1000 s, 60 s are kept to put everything back"
    ]
    scontrol.write_text(HELD)
    assert allocation.capped(1e6, said.append) == 1e6
    scontrol.write_text(RUNNING.replace("RunTime=00:00:10", "RunTime=00:04:10"))
    with pytest.raises(SchedulerError, match="Slurm job 7 ends in 50 s: 60 s of that are kept"):
        allocation.capped(10, said.append)


def test_without_an_answer_the_budget_stays_and_that_is_said(scontrol: Path) -> None:
    said: list[str] = []
    scontrol.with_name("bin").joinpath("scontrol").write_text(
        "#!/bin/sh\necho 'Invalid job id' >&2\nexit 1\n"
    )
    assert allocation.capped(100, said.append) == 100
    assert said == ["when Slurm job 7 ends is not known and not taken into account: scontrol: Invalid job id"]


def test_rounds_end_with_the_allocation(scontrol: Path) -> None:
    said: list[str] = []
    scontrol.write_text(RUNNING)
    allocation.rounds_left(1000.0, time.monotonic(), "the study", said.append)
    (capped,) = said
    assert "the budget is 230 s instead of 1000 s" in capped


def test_outside_of_slurm_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("PATH", "/nonesuch")
    assert allocation.capped(100, pytest.fail) == 100


def requests() -> list[tuple[str, str]]:
    """Return the module and the name of everything that can be asked for with a budget."""
    modules = [
        importlib.import_module(one.name)
        for one in pkgutil.walk_packages(wulf.__path__, "wulf.")
        if one.name.startswith(("wulf.node", "wulf.tools", "wulf.compose"))
    ]
    return [
        (module.__name__, name)
        for module in modules
        for name, kind in vars(module).items()
        if name.endswith("Request")
        and getattr(kind, "__module__", "") == module.__name__
        and {"budget_s", "time_s"} & set(get_type_hints(kind))
    ]


@pytest.mark.parametrize(("module", "name"), requests())
def test_no_verb_forgets_the_end_of_the_allocation(module: str, name: str) -> None:
    """What is asked for is capped where it begins, or by every verb that asks for it."""
    capped = re.compile(r"allocation\.(capped|rounds_left)\(")
    package, _, leaf = module.rpartition(".")
    if leaf == "request":
        # What it becomes is capped in its turn.
        handed_on = re.compile(r"(Measure|Interleave|Tune)Request\(")
        works = [path.read_text(encoding="utf-8") for path in place_of(package).rglob("*.py")]
        assert any(capped.search(text) or handed_on.search(text) for text in works), module
        return
    imported = re.compile(rf"^ *from {re.escape(package)} import .*\b{leaf}\b", re.MULTILINE)
    verbs = [path.read_text(encoding="utf-8") for path in Path(cli.__file__).parent.glob("*.py")]
    asking = [text for text in verbs if imported.search(text) and f"{leaf}.{name}(" in text]
    begins = inspect.getsource(sys.modules[module])
    assert capped.search(begins) or (asking and all(map(capped.search, asking))), f"{leaf}.{name}"


def place_of(package: str) -> Path:
    """Return the directory of a package."""
    return Path(str(sys.modules[package].__file__)).parent


FILE = """
[cluster]
nodes = "node[01-04]"
interface = "eth1"
shared_cpus = [["node01", "node02", "node03"]]
[addresses]
node01 = "10.0.0.1"
node04 = "10.0.0.4"
"""


@pytest.fixture
def allocated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    program = tmp_path / "srun"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[01-02]")
    monkeypatch.chdir(tmp_path)
    return monkeypatch


def test_an_allocation_has_the_settings_of_the_cluster_file_and_none_of_its_other_nodes(
    allocated: pytest.MonkeyPatch,
) -> None:
    Path("cluster.toml").write_text(FILE)
    config = cluster(None)
    assert (config.name, config.nodes, config.interface) == ("slurm-7", ("node01", "node02"), "eth1")
    assert config.addresses == {"node01": "10.0.0.1"}
    assert config.shared_cpus == (("node01", "node02"),)
    assert config.mpi.launcher == "srun"
    assert cluster("slurm") == config
    # A file that one is named is another matter.
    assert len(cluster("cluster.toml").nodes) == 4
    allocated.setenv("SLURM_JOB_NODELIST", "node[01-02],gpu1")
    config = cluster(None)
    assert (set(config.nodes), config.interface) == ({"node01", "node02", "gpu1"}, None)


def test_nodes_outside_of_the_allocation_are_refused(allocated: pytest.MonkeyPatch) -> None:
    config = cluster(None)
    allocation.require_inside(config, ["node01"])
    with pytest.raises(UsageError, match="node03: not in the allocation of Slurm job 7"):
        allocation.require_inside(config, ["node01", "node03"])
    allocated.delenv("SLURM_JOB_ID")
    allocation.require_inside(config, ["node03"])


def test_the_batch_script() -> None:
    text = submitting.script(["wulf", "measure", "a b"], "wulf-x", Path("/runs/50%.out"))
    assert text.splitlines()[0] == "#!/bin/sh"
    assert text.splitlines()[-1] == "exec wulf measure 'a b'"
    assert "#SBATCH --output=/runs/50%%.out" in text


def test_a_template(tmp_path: Path) -> None:
    template = tmp_path / "job.sh"
    template.write_text("#!/bin/bash\n#SBATCH --account=x\nmodule load mpi\nexec {wulf}\n")
    text = submitting.from_template(template, ["wulf", "measure"])
    assert text.endswith("module load mpi\nexec wulf measure\n")
    template.write_text("#!/bin/sh\n")
    with pytest.raises(UsageError, match=r"has no \{wulf\} where the command goes"):
        submitting.from_template(template, ["wulf"])
    with pytest.raises(UsageError, match=r"options of sbatch begin with '-'"):
        submitting.from_template(tmp_path / "none", ["wulf"])


def test_the_command_of_the_job() -> None:
    words = ["measure", "--ops", "x", "--submit", "--time=5 --nodes=2", "--budget", "1m"]
    assert cli.words(words, "r") == ["measure", "--run", "r", "--ops", "x", "--budget", "1m"]
    assert cli.words(["measure", "--run", "r", "--submit=", "--dry-run"], "") == ["measure", "--run", "r"]


class Seen:
    """Keeps what a follower is told."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.text = ""
        self.silences: list[str] = []

    def looked(self, job: slurm.Job) -> None:
        self.states.append(job.state)

    def printed(self, text: str) -> None:
        self.text += text

    def unanswered(self, why: str) -> None:
        self.silences.append(why)


def test_a_job_is_followed_to_the_last_thing_that_it_says(
    scontrol: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    output.write_bytes(b"one\ntw")
    scontrol.write_text(RUNNING.replace("/tmp/ms/out 2", str(output)))
    seen = Seen()

    def a_second_later(_: float) -> None:
        assert seen.text == "one\n"
        output.write_bytes(b"one\ntwo\nthree")
        scontrol.write_text(scontrol.read_text().replace("RUNNING", "COMPLETED"))

    # Not the sleep of the module for all: waiting for a process sleeps, too.
    monkeypatch.setattr(submitting, "time", SimpleNamespace(sleep=a_second_later))
    assert submitting.follow("7", seen, known=False).over
    assert seen.states == ["RUNNING", "COMPLETED"]
    assert seen.text == "one\ntwo\nthree"


class Controller:
    """Slurm's controller and the clock: it says of the job what is next in a list; None is no answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *states: str | None) -> None:
        self.asked_at: list[float] = []
        self._now = 0.0
        self._states = list(states)
        clock = SimpleNamespace(sleep=self._sleep, monotonic=lambda: self._now)
        monkeypatch.setattr(submitting, "time", clock)
        monkeypatch.setattr(slurm, "look", self._look)

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    def _look(self, _: str) -> slurm.Job:
        self.asked_at.append(self._now)
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if state is None:
            raise SchedulerError("scontrol: Socket timed out on send/recv operation")
        return slurm.parse(RUNNING.replace("JobState=RUNNING", f"JobState={state}"))


def test_a_controller_that_does_not_answer_for_a_while_ends_no_following(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Controller(monkeypatch, None, "RUNNING", None, None, None, "RUNNING", "COMPLETED")
    seen = Seen()
    assert submitting.follow("7", seen, known=True).over
    assert seen.states == ["RUNNING", "RUNNING", "COMPLETED"]
    # Once each time.
    assert seen.silences == ["scontrol: Socket timed out on send/recv operation"] * 2


def test_a_controller_that_does_not_answer_any_more_does(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller(monkeypatch, "RUNNING", None)
    with pytest.raises(
        SchedulerError, match=r"Socket timed out .*job 7 may go on: 'wulf measure --follow 7'"
    ):
        submitting.follow("7", Seen(), known=False)
    assert submitting.PATIENCE_S <= controller.asked_at[-1] <= submitting.PATIENCE_S + 10
    controller = Controller(monkeypatch, None)
    with pytest.raises(SchedulerError):
        submitting.follow("8", Seen(), known=False)
    assert controller.asked_at == [0]


def test_a_long_job_is_asked_for_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    controller = Controller(monkeypatch, *["RUNNING"] * 6, "COMPLETED")
    submitting.follow("7", Seen(), known=True)
    assert controller.asked_at == [0, 1, 3, 7, 15, 23, 31]
