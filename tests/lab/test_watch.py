"""A watch on virtual nodes: by a real timer of systemd, in a real job of Slurm, by a real crontab; and gone again."""

from __future__ import annotations

import json

import pytest

from tests.lab.host import wait_until
from tests.lab.test_nodes import on
from tests.lab.test_slurm import submitted, words
from wulf.base.errors import EXIT_FINDINGS

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.thorough]

NODES = "node[01-03]"
WATCH = "--watches /root/watches"
RUN = f"--cluster /shared/cluster.toml --budget 40s {WATCH}"
UNITS = "/etc/systemd/system/wulf-watch-lab"
#: Everything below a directory: kinds, names, owners, contents.
STATE = "find /etc/systemd -printf '%y %m %u %p %l\\n' | sort; find /etc/systemd -type f -exec sha256sum {} + | sort"
CRONTAB = r"# mine\nMAILTO=root\n1 1 * * 1 true 100\\%%\n"


@pytest.fixture
def cluster(slurm_lab):
    """Three nodes with Slurm; wulf runs on the first."""
    return slurm_lab


def shown(cluster):
    """Return what the watch says, and its exit code."""
    done = submitted(cluster, f"wulf watch show --json {WATCH}")
    return json.loads(done.stdout), done.returncode


def test_a_watch_by_timer_and_by_crontab_measures_idle_nodes_and_goes_without_a_trace(cluster):
    before = on(cluster, "node01", STATE)
    installed = submitted(cluster, f"wulf watch install --every 1d --window 02:00-05:00 {RUN}")
    assert installed.returncode == 0, installed.stderr
    assert "OnCalendar=*-*-* 02:00:00" in installed.stdout and f"{UNITS}.timer" in installed.stdout
    assert on(cluster, "node01", "systemctl is-active wulf-watch-lab.timer") == "active"
    again = submitted(cluster, f"wulf watch install {RUN}")
    assert again.returncode == 2 and "is installed already" in again.stderr

    # Fired by hand, without the window that is not open now.
    on(cluster, "node01", f"sed -i 's/ --window [^ ]*//' {UNITS}.service && systemctl daemon-reload")
    on(cluster, "node01", "systemctl start wulf-watch-lab.service", timeout_s=400)
    report, code = shown(cluster)
    assert report["runs"] == {"measured": 1}, json.dumps(report)
    # One run tells no change from noise yet.
    assert (code, report["untold"]) == (EXIT_FINDINGS, [report["learning"]])
    assert report["last"]["pairs"] == 3 and report["nodes"] == ["node01", "node02", "node03"]
    assert report["coverage"] == {"pairs": 3, "measured": 3, "oldest_days": report["coverage"]["oldest_days"]}
    # What Slurm has lent is given back.
    assert on(cluster, "node01", "squeue -h; sinfo -h -N -t idle -o %N").split() == [
        "node01",
        "node02",
        "node03",
    ]

    # Edited since: not taken away without a word.
    refused = submitted(cluster, f"wulf watch remove {WATCH}")
    assert refused.returncode == 2 and f"{UNITS}.service: changed since it was installed" in words(
        refused.stderr
    )
    assert submitted(cluster, f"wulf watch remove --force {WATCH}").returncode == 0
    assert on(cluster, "node01", STATE) == before

    # Beside a user's job nothing is measured.
    on(cluster, "node01", "cd /shared && sbatch --quiet --nodes=2 --exclusive --wrap 'sleep 300'")
    wait_until(lambda: on(cluster, "node01", "squeue -h -t running -o %t") == "R", 240)
    skipped = submitted(cluster, f"wulf watch run {RUN}")
    assert skipped.returncode == 0, skipped.stderr
    report, _ = shown(cluster)
    assert report["runs"] == {"measured": 1, "skipped": 1}
    assert "only node03 is idle" in report["last"]["reason"] and "Slurm says" in report["last"]["reason"]
    on(cluster, "node01", "scancel --user=root")

    # Without systemd: lines of the crontab among others.
    on(cluster, "node01", f"printf '{CRONTAB}' | crontab -")
    before = on(cluster, "node01", "crontab -l | sha256sum")
    assert submitted(cluster, f"wulf watch install --with cron --scheduler none {RUN}").returncode == 0
    line = on(cluster, "node01", "crontab -l | grep '^30 2 '").removeprefix("30 2 * * * ").replace("\\%", "%")
    on(cluster, "node01", line, timeout_s=400)
    report, _ = shown(cluster)
    assert report["runs"] == {"measured": 2, "skipped": 1}, report["last"]
    assert submitted(cluster, f"wulf watch remove {WATCH}").returncode == 0
    assert on(cluster, "node01", "crontab -l | sha256sum") == before
    on(cluster, "node01", "crontab -r")
    assert submitted(cluster, f"wulf watch install --with cron {RUN}").returncode == 0
    assert submitted(cluster, f"wulf watch remove {WATCH}").returncode == 0
    assert "no crontab" in on(cluster, "node01", "crontab -l 2>&1 || true")
