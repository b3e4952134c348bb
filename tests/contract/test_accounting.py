"""Slurm's own accounting: jobs of known answer in a database of slurmdbd, as ``sacct`` prints them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.unit.test_accounting import CFD, HEAD, JOBS, MD
from wulf.tools.worth import accounting

PATH = f"{os.environ['PATH']}:/usr/sbin"
NEEDED = ("mariadbd", "mariadb", "slurmdbd", "sacct", "sacctmgr")
LACKING = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
pytestmark = [
    pytest.mark.root,
    pytest.mark.thorough,
    pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own takes root"),
    pytest.mark.skipif(bool(LACKING), reason=f"not installed: {', '.join(LACKING)} (tools/bootstrap all)"),
]

#: Numbers of Slurm's database.
STEPS = {"batch": -5, "extern": -4}
PENDING, RUNNING, COMPLETED = 0, 1, 3
#: Where what is asked for ends: a job that still runs has run until then.
END = "2026-11-01T12:00:00"
#: Columns of a job that say nothing of these.
ZERO = (
    *("id_assoc", "id_resv", "id_wckey", "id_user", "id_group", "het_job_id", "het_job_offset"),
    *("state_reason_prev", "priority"),
)
DATABASE = """
AuthType=auth/none
DbdHost=localhost
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StorageUser=root
LogFile={place}/slurmdbd.log
PidFile={place}/slurmdbd.pid
"""
CLUSTER = """
ClusterName=made
SlurmctldHost=localhost
SlurmUser=root
AuthType=auth/none
CredType=cred/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
NodeName=node[01-08] CPUs=16
PartitionName=all Nodes=ALL Default=YES
"""
#: In a network of its own, whose ports are nobody else's; all programs end with the shell. An address that is not the
#: loopback's lets names be looked up (getaddrinfo, AI_ADDRCONFIG).
SCRIPT = r"""
set -eu
ip link set lo up
ip addr add 10.99.9.9/32 dev lo
sql() { mariadb --no-defaults --socket="$1/socket" "${2:-}"; }
await() { for _ in $(seq 120); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.5; done; "$@"; }
# Of a new database slurmdbd 22.05 may answer the first time with "Unspecified error".
added() {
    timeout 60 sacctmgr -i add cluster made >"$1/cluster.log" 2>&1 || :
    timeout 5 sacctmgr -n -P show cluster format=cluster | grep -qx made
}
mkdir "$1/data"
mariadbd --no-defaults --user=root --datadir="$1/data" --socket="$1/socket" --bind-address=127.0.0.1 \
    --skip-grant-tables --skip-networking=0 --innodb-buffer-pool-size=16M >"$1/mariadbd.log" 2>&1 &
await mariadb --no-defaults --socket="$1/socket" -e 'select 1'
slurmdbd -D >"$1/slurmdbd.out" 2>&1 &
await timeout 5 sacctmgr -n show cluster
await added "$1"
sql "$1" slurm_acct_db <"$1/jobs.sql"
shift
exec timeout 60 "$@"
"""


def seconds(text: str) -> int:
    """Return a time of the accounting, which is in UTC here, as Slurm stores it."""
    return 0 if text == "Unknown" else int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def inserted(table: str, **values: int | str) -> str:
    """Return the statement that puts a row into a table."""
    names = ", ".join(f"`{name}`" for name in values)
    return f"insert into {table} ({names}) values ({', '.join(map(repr, values.values()))});"


def statements(text: str) -> Iterator[str]:
    """Yield what puts jobs into the database, of the lines that ``sacct`` is to print."""
    for line in text.splitlines()[1:]:
        identifier, name, nodes, tasks, _, begin, end, hosts = line.split("|")
        job, _, step = identifier.partition(".")
        times = {"time_start": seconds(begin), "time_end": seconds(end)}
        begun = bool(times["time_start"])
        state = (COMPLETED if times["time_end"] else RUNNING) if begun else PENDING
        row: dict[str, int | str] = {
            "job_db_inx": int(job),
            "nodelist": hosts,
            "nodes_alloc": int(nodes) if begun else 0,
            "state": state,
            **times,
        }
        if step:
            number = STEPS[step] if step in STEPS else int(step)
            yield inserted("made_step_table", **row, id_step=number, step_name=name, task_cnt=int(tasks))
            continue
        eligible = times["time_start"] or seconds("2026-11-01T10:00:00")
        resources = f"1={nodes},4={nodes}"
        yield inserted(
            "made_job_table",
            **row,
            **dict.fromkeys(ZERO, 0),
            id_job=int(job),
            job_name=name,
            partition="all",
            cpus_req=int(nodes),
            time_submit=eligible,
            time_eligible=eligible,
            tres_alloc=resources if begun else "",
            tres_req=resources,
        )


def sacct(place: Path, jobs: str, begin: str) -> str:
    """Return what ``sacct`` prints of the jobs from some time to ``END``, as the program asks for it."""
    (place / "slurmdbd.conf").write_text(DATABASE.format(place=place))
    (place / "slurmdbd.conf").chmod(0o600)
    (place / "slurm.conf").write_text(CLUSTER)
    (place / "jobs.sql").write_text("\n".join(statements(jobs)))
    asked = accounting.COMMAND.replace("now-30days", f"{begin} --endtime {END}").split()
    env = {**os.environ, "PATH": PATH, "SLURM_CONF": str(place / "slurm.conf"), "TZ": "UTC"}
    ran = subprocess.run(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", SCRIPT, "sh", str(place), *asked],
        capture_output=True,
        text=True,
        env=env,
        timeout=600,
        check=False,
    )
    logs = "\n".join(log.read_text(errors="replace")[-2000:] for log in place.glob("*.log"))
    assert ran.returncode == 0, f"{ran.stderr}\n{logs}"
    return ran.stdout


def test_jobs_of_a_real_accounting_have_their_share(tmp_path: Path) -> None:
    told = sacct(tmp_path, JOBS, "2026-10-01")
    waiting = [line for line in told.splitlines() if line.startswith("105|")]
    assert told.startswith(HEAD)
    assert sorted(told.splitlines()) == sorted([*JOBS.splitlines()[:-1], *waiting])
    assert accounting.is_accounting(told.encode())
    assert accounting.jobs_text(told, "x", [CFD, MD]) == accounting.jobs_text(JOBS, "x", [CFD, MD])


def test_of_a_job_that_began_before_or_still_runs_the_part_within_counts(tmp_path: Path) -> None:
    """What ran beside its other part is not listed: whole, it would be given more than its share."""
    jobs = (
        JOBS
        + """\
106|lmp|2||615600|2026-10-25T00:00:00|2026-11-01T03:00:00|node[07-08]
107|other|2||3600|2026-11-01T11:00:00|Unknown|node[05-06]
"""
    )
    within = jobs.replace("106|lmp|2||615600|2026-10-25", "106|lmp|2||10800|2026-11-01").replace(
        "11:00:00|Unknown", f"11:00:00|{END}"
    )
    told = sacct(tmp_path, jobs, "2026-11-01")
    assert accounting.jobs_text(told, "x", [CFD, MD]) == accounting.jobs_text(within, "x", [CFD, MD])
    assert accounting.jobs_text(told, "x", [CFD, MD]) != accounting.jobs_text(jobs, "x", [CFD, MD])
