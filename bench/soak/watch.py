"""Thirty days of the real watch in one process: measured on virtual nodes, on a clock that is set to the next day."""

from __future__ import annotations

import re
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.faults.judge import difference
from bench.faults.node import Site
from bench.soak.node import resident_kib
from bench.soak.progress import DAYS_GOAL, Days
from wulf.base.records.watched import Alarm
from wulf.base.store.history import NAME, History
from wulf.face.logged import Logged
from wulf.node import lab
from wulf.node.cluster import inventory
from wulf.tools.watch import judging, running
from wulf.tools.watch.environment import SetClock
from wulf.tools.watch.observations import REFERENCE

#: Enough for three launches of a pair [s].
BUDGET_S = 20.0
_FIRST = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
#: What a schedule is written to, and all around it.
_STATE = """
find /etc /var/spool/cron -printf '%y %m %u %p %l\\n' 2>/dev/null | sort
find /etc/systemd /var/spool/cron -type f -exec sha256sum {} + | sort
systemctl list-units --all --plain --no-legend | awk '{ print $1, $2, $3 }' | sort
systemctl list-timers --all --no-legend | awk '{ print $(NF - 1) }' | sort
systemctl show -p Environment
crontab -l 2>&1
ls -A /tmp /var/tmp /root /run/systemd/transient
true
"""


def days_of_watch(raised: lab.Lab, directory: Path, days: int = DAYS_GOAL) -> Days:
    """Run a watch once for each day, and install and remove its schedule as often."""
    begin = time.monotonic()
    request = _fresh(raised, directory / "watches")
    site = Site(raised, raised.layout.names()[0])
    schedule: _Schedule | None = None
    database: list[int] = []
    gauges: list[dict[str, float]] = []
    counts: dict[str, int] = {}
    left: list[str] = []
    alarms: list[Alarm] = []
    for day in range(days):
        report = running.run(request, SetClock(_FIRST + timedelta(days=day)), Logged())
        counts, alarms = report.runs, [*report.open, *report.closed]
        database.append((request.directory / NAME).stat().st_size)
        gauges.append(_gauges(request))
        # The first run leaves the probe on the node, which no schedule has put there.
        schedule = schedule or _Schedule(site)
        left += schedule.round(day)
        print(
            f"day {day + 1} of {days}: {report.last.status if report.last else 'nothing'}, "
            f"{len(alarms)} alarms, database {database[-1]} bytes, "
            + ", ".join(f"{name} {value:.0f}" for name, value in gauges[-1].items())
            + f", {(time.monotonic() - begin) / (day + 1) * (days - day - 1):.0f} s left",
            flush=True,
        )
    with History(request.directory) as history:
        shown = judging.report(
            history, "soak", request.nodes, SetClock(_FIRST + timedelta(days=days)).now(), None
        )
    shown_alarms = [*shown.open, *shown.closed]
    return Days(
        days=days,
        measured=counts.get("measured", 0),
        skipped=counts.get("skipped", 0),
        failed=counts.get("failed", 0),
        alarms=[_words(alarm) for alarm in shown_alarms if alarm.op != REFERENCE],
        of_the_machine=[_words(alarm) for alarm in shown_alarms if alarm.op == REFERENCE],
        database_bytes=database,
        gauges=gauges,
        installed=schedule.rounds if schedule else 0,
        left=left,
        seconds=time.monotonic() - begin,
    )


def _fresh(raised: lab.Lab, watches: Path) -> running.WatchRequest:
    """Return what a watch of all virtual nodes is asked, of which nothing is there yet."""
    shutil.rmtree(watches, ignore_errors=True)
    return running.WatchRequest(
        name="soak",
        directory=watches / "soak",
        config=inventory.parse(raised.cluster_toml(), "lab"),
        nodes=raised.layout.names(),
        budget_s=BUDGET_S,
        scheduler="none",
    )


def _gauges(request: running.WatchRequest) -> dict[str, float]:
    """Return what must not grow from day to day."""
    return {
        "descriptors": float(len(list(Path("/proc/self/fd").iterdir()))),
        "memory-KiB": resident_kib(),
        "kept-runs": float(len(list((request.directory / "runs").iterdir()))),
    }


def _words(alarm: Alarm) -> str:
    size = f"{alarm.size_bytes} B"
    return (
        f"{alarm.level} {'–'.join(alarm.nodes)} {alarm.op} {size}: {alarm.change.value:.3f} "
        f"({alarm.change.low:.3f} to {alarm.change.high:.3f}), {alarm.kind}, run {alarm.after_run}, {alarm.state}"
    )


class _Schedule:
    """The schedule of a watch on a node: put there and taken away, in turn by systemd and by cron."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.rounds = 0
        self._before: dict[str, str] = {}
        self.round(0)  # the program's own first start on a node is no part of it
        self._before, self.rounds = self._state(), 0

    def round(self, day: int) -> list[str]:
        """Install and remove it; return what is left."""
        how = ("systemd", "cron")[day % 2]
        where = "--watches /root/watches"
        given = f"--with {how} --cluster /shared/cluster.toml --every 1d --budget 20s --name soak {where}"
        self._site.shell(f"wulf watch install {given}")
        if not difference(self._before, self._state()):
            raise SystemExit(f"bench: installing a watch by {how} changed nothing that is looked at")
        self._site.shell(f"wulf watch remove --name soak {where}")
        self._site.shell("rmdir /root/watches 2>/dev/null; true")
        self.rounds += 1
        found = difference(self._before, self._state())
        return [f"day {day + 1}, {how}: {line}" for line in found]

    def _state(self) -> dict[str, str]:
        text = self._site.shell(_STATE)
        # It runs for a while when somebody asks for the time zone, as a look at a node does.
        lines = [line for line in text.splitlines() if "systemd-timedated" not in line]
        return {re.sub(r"\s+", " ", line): "" for line in lines}
