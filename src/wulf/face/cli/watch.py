"""``wulf watch``: short measured runs and audits again and again, and what has changed since."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wulf.base.errors import EXIT_FINDINGS, BuildError, UsageError
from wulf.base.nodeset import fold
from wulf.base.request import Option
from wulf.base.text import printable
from wulf.base.units import parse_duration
from wulf.face.cli import complete
from wulf.face.cli.declared import flat
from wulf.face.cli.measure_progress import MeasureProgress
from wulf.face.cli.options import JsonOption, console, print_json
from wulf.face.cli.progress import note
from wulf.node.fleet.fields import ClusterField, MpiField, NodesField

if TYPE_CHECKING:
    from wulf.base.records.watched import WatchReport
    from wulf.base.store.history import History
    from wulf.face.logged import Logged
    from wulf.node.cluster.inventory import ClusterConfig
    from wulf.node.fleet import exclusive_nodes
    from wulf.tools.watch import environment, installing
    from wulf.tools.watch.timer.times import Window

BUDGET = "5m"
EVERY = "1d"
#: A command for an alarm that has not ended by then is ended [s].
_COMMAND_PATIENCE_S = 300.0

app = typer.Typer(
    help="Measure and audit idle nodes regularly, and show what has changed and what else changed at that time.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

OneOption = Annotated[str | None, typer.Option("--name", help="Name of the watch. Default: the only one.")]
WatchesOption = Annotated[
    Path | None,
    typer.Option(
        "--watches",
        envvar="WULF_WATCHES",
        metavar="DIR",
        help="Directory of all watches. Default: /var/lib/wulf/watch for root, else ~/.local/state/wulf/watch.",
    ),
]


@dataclass(frozen=True)
class Watched:
    """What each run of a watch does."""

    budget: Annotated[str, Option("Time for measuring, each time.")] = BUDGET
    window: Annotated[
        str | None,
        Option("Only at this time of the day, such as 02:00-05:00, in local time.", metavar="FROM-TO"),
    ] = None
    cluster: ClusterField = None
    nodes: NodesField = None
    name: Annotated[str | None, Option("Name of the watch. Default: that of the cluster.")] = None
    mpi: MpiField = None
    scheduler: Annotated[
        str,
        Option(
            "How idle nodes are found: slurm (a job of low priority holds them meanwhile), none (by what runs on "
            "them), or auto: slurm where it manages these nodes.",
            complete=("auto", "slurm", "none"),
        ),
    ] = "auto"
    slurm_options: Annotated[
        str, Option("More options for salloc, such as '--qos=low'.", metavar="OPTIONS")
    ] = ""
    on_alarm: Annotated[
        str,
        Option(
            "Shell command to run on a new alarm; it gets the output of --json on its standard input.",
            metavar="COMMAND",
        ),
    ] = ""


@dataclass(frozen=True)
class Outputs:
    """Where what a watch says goes, beside the terminal."""

    metrics: Annotated[
        Path | None,
        Option(
            "Write metrics to this file (*.prom), for the node exporter's textfile collector.", metavar="FILE"
        ),
    ] = None
    junit: Annotated[Path | None, Option("Also write JUnit XML to this file.", metavar="FILE")] = None
    html: Annotated[Path | None, Option("Write a page to this file.", metavar="FILE")] = None

    def write(self, report: WatchReport, history: History) -> None:
        """Write all files, each as a whole."""
        from wulf.base.store import write_atomically
        from wulf.page.page import html
        from wulf.tools.watch import judging
        from wulf.tools.watch import page as shown
        from wulf.tools.watch.page import metrics as told

        series = judging.series(history, [*report.open, *report.closed])
        if self.metrics is not None:
            write_atomically(self.metrics, told.render(report, series).encode())
        if self.junit is not None:
            write_atomically(self.junit, shown.junit(report).encode())
        if self.html is not None:
            write_atomically(self.html, html(shown.build(report, history.runs(), series)).encode())


@app.command()
@flat
def install(
    *,
    every: Annotated[str, typer.Option(metavar="TIME", help="How often: 7d, 1d, 12h, 6h, 1h, 30m.")] = EVERY,
    asked: Watched,
    outputs: Outputs,
    how: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="systemd (a system timer for root, else a user timer) or cron. Default: whichever runs here.",
            autocompletion=complete.one_of(("systemd", "cron")),
        ),
    ] = None,
    watches: WatchesOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
) -> None:
    """Start 'wulf watch run' automatically: by a systemd timer where systemd runs, else by a line of the crontab.

    Shows what it will write before it does; 'wulf watch remove' removes exactly that. Without --window a run starts
    at 02:30 each day. With it, busy nodes are checked again every ten minutes until the window closes.
    """
    from wulf.base.text import count
    from wulf.tools.watch import installing
    from wulf.tools.watch.timer.times import MINUTES_A_DAY, times

    config, chosen, directory = _where(asked, watches)
    open_window = _window(asked)
    _require_time(every, asked.budget)
    _require_places((outputs.metrics, outputs.junit, outputs.html))
    _require_mpi(asked.mpi)
    command = _command(asked, outputs, config, directory)
    starts = times(every, open_window)
    if open_window is not None and len(starts.minutes) * parse_duration(every) / 60 < MINUTES_A_DAY:
        note(f"within --window {asked.window} that is {count(len(starts.minutes), 'run')} a day")
    wanted = installing.plan(
        directory.name,
        _how(how),
        starts,
        command,
        parse_duration(asked.budget),
        open_window.minutes * 60.0 if open_window is not None else 0.0,
    )
    _show_plan(wanted, directory, count(len(chosen), "node"))
    if dry_run:
        sys.stdout.write("nothing was written (--dry-run)\n")
        return
    installing.install(wanted, directory)
    next_run = installing.next_run(wanted)
    sys.stdout.write(f"installed{f', runs next: {next_run}' if next_run else ''}\n")
    _note_dead_timers(wanted)


def _note_dead_timers(wanted: installing.Plan) -> None:
    """Say what keeps the timer from starting a run."""
    from wulf.tools.watch import installing

    if wanted.how == "cron" and not installing.cron_runs():
        note("no cron daemon is running: nothing will start until one does")
    if wanted.how == "systemd" and wanted.user and not installing.lingers():
        note(
            "this user's timers run only while the user is logged in: 'loginctl enable-linger' lets them run always"
        )


@app.command()
@flat
def run(
    asked: Watched,
    outputs: Outputs,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing unless there is a new alarm.")
    ] = False,
    json: JsonOption = False,
    watches: WatchesOption = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="Take this for the time (ISO 8601), to try a watch out.", hidden=True
        ),
    ] = None,
) -> None:
    """Find the idle nodes, audit and briefly measure them, and show what has changed.

    A busy node is left out, and the history records why. With fewer than two idle nodes nothing is measured, which
    is not an error. Pairs of nodes take turns, so that all are measured in the course of time; a few are in every
    run.

    Exit code 3 when there is a new alarm; 'wulf watch show' lists all open ones.
    """
    from wulf.base.store.history import History
    from wulf.node.fleet import allocation
    from wulf.tools.watch import running

    config, chosen, directory = _where(asked, watches)
    request = running.WatchRequest(
        name=directory.name,
        directory=directory,
        config=config,
        nodes=chosen,
        budget_s=allocation.capped(parse_duration(asked.budget), note),
        mpi=asked.mpi or config.mpi.compiler,
        window=_window(asked),
        scheduler=_scheduler(asked.scheduler),
        slurm_options=tuple(asked.slurm_options.split()),
    )
    with _progress(quiet) as progress:
        report = running.run(request, _clock(at), progress)
    with History(directory) as history:
        outputs.write(report, history)
        _say(report, history, json=json, quiet=quiet)
    new = [alarm for alarm in report.open if alarm.id in report.new]
    if new:
        if asked.on_alarm:
            _tell(asked.on_alarm, report)
        raise typer.Exit(EXIT_FINDINGS)


@app.command()
@flat
def show(
    outputs: Outputs,
    name: OneOption = None,
    json: JsonOption = False,
    watches: WatchesOption = None,
) -> None:
    """Show what has changed and what else changed then, what would be found, what was measured and what skipped.

    Exit code 3 when an alarm is open, or when it cannot tell whether anything has changed: too few runs, no recent
    measurement, or runs that scatter so much that a change that matters would go unseen.
    """
    from wulf.base.store.history import History
    from wulf.tools.watch import environment, judging

    directory = environment.only(watches or environment.home(), name)
    with History(directory) as history:
        report = judging.report(
            history, directory.name, history.nodes(), environment.SystemClock().now(), None
        )
        outputs.write(report, history)
        _say(report, history, json=json, quiet=False)
    if report.open or report.untold:
        raise typer.Exit(EXIT_FINDINGS)


@app.command()
def accept(
    alarms: Annotated[
        list[int] | None, typer.Argument(metavar="ALARM...", help="Numbers of alarms.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All open alarms.")] = False,
    said: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why: kept with the alarm.")] = "",
    name: OneOption = None,
    watches: WatchesOption = None,
) -> None:
    """Accept a change as the new normal: its alarm is closed.

    An alarm that nobody accepts is closed when the old level returns, or after 30 days.
    """
    from wulf.base.store.history import History
    from wulf.base.text import count
    from wulf.tools.watch import environment
    from wulf.tools.watch.history import alarms as alarming

    if bool(alarms) == every:
        raise UsageError("name alarms by their numbers (wulf watch show), or --all")
    directory = environment.only(watches or environment.home(), name)
    with History(directory, writing=True) as history:
        there = {alarm.id: alarm for alarm in history.alarms() if alarm.state == "open"}
        strange = [number for number in alarms or [] if number not in there]
        if strange:
            known = f"open are: {', '.join(map(str, there))}" if there else "none is open"
            raise UsageError(f"there is no open alarm {strange[0]}; {known}")
        chosen = [there[number] for number in alarms] if alarms else list(there.values())
        history.put_alarms(alarming.accept(chosen, environment.SystemClock().now(), said))
    sys.stdout.write(f"accepted: {count(len(chosen), 'alarm')}\n")


@app.command()
def remove(
    name: OneOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also remove what was changed by hand since it was installed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    watches: WatchesOption = None,
) -> None:
    """Remove exactly what 'wulf watch install' has written. The history is kept."""
    from wulf.base.store.history import NAME as HISTORY
    from wulf.tools.watch import environment, installing

    directory = environment.only(watches or environment.home(), name)
    written = installing.installed(directory)
    if written is None:
        raise UsageError(f"watch {directory.name} is not installed")
    taken = [*written.files, *(f"crontab: {line}" for line in written.lines)]
    if dry_run:
        sys.stdout.write("".join(f"would be removed: {printable(what, 4000)}\n" for what in taken))
        edited = installing.changed_since(written)
        sys.stdout.write("".join(f"changed since, needs --force: {what}\n" for what in edited))
        sys.stdout.write("nothing was removed (--dry-run)\n")
        return
    installing.remove(directory, force=force)
    sys.stdout.write("".join(f"taken away: {printable(what, 4000)}\n" for what in taken))
    if (directory / HISTORY).is_file():
        sys.stdout.write(f"the history is kept: {directory / HISTORY}\n")


def _where(asked: Watched, watches: Path | None) -> tuple[ClusterConfig, list[str], Path]:
    """Return the cluster, its nodes that are watched, and the directory of the watch."""
    from wulf.node.fleet.clusters import config_of
    from wulf.tools.watch import environment

    config = config_of(asked.cluster)
    chosen = config.select(asked.nodes)
    if len(chosen) < 2 and config.transport != "local":
        raise UsageError(f"a watch measures between nodes, and {fold(chosen)} is only one: name at least two")
    return config, chosen, environment.directory(watches or environment.home(), asked.name or config.name)


@contextmanager
def _progress(quiet: bool) -> Iterator[MeasureProgress | Logged]:
    """Show where the measuring stands; to the log alone, and nothing of it, where nobody looks."""
    from wulf.face.logged import Logged

    if quiet:
        logging.getLogger("wulf").setLevel(logging.ERROR)
        yield Logged()
        return
    with MeasureProgress() as progress:
        yield progress


def _say(report: WatchReport, history: History, *, json: bool, quiet: bool) -> None:
    from wulf.tools.watch import page as shown

    if json:
        print_json(report)
    elif not quiet or report.new:
        from wulf.page.terminal import print_page

        print_page(shown.build(report, history.runs(), []), console())


def _tell(command: str, report: WatchReport) -> None:
    """Run a person's command; that it fails is said, and changes nothing."""
    import msgspec

    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=msgspec.json.encode(report),
            timeout=_COMMAND_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        note(f"--on-alarm: stopped, as it had not ended after {_COMMAND_PATIENCE_S:.0f} s")
        return
    if done.returncode != 0:
        note(f"--on-alarm: ended with exit code {done.returncode}")


def _clock(at: str | None) -> environment.Clock:
    from wulf.tools.watch import environment

    if at is None:
        return environment.SystemClock()
    try:
        return environment.SetClock(datetime.fromisoformat(at).astimezone())
    except ValueError:
        raise UsageError(f"--at {printable(at, 60)!r}: write it as 2026-11-24T02:30:00+01:00") from None


def _window(asked: Watched) -> Window | None:
    from wulf.tools.watch.timer.times import parse_window

    if asked.window is None:
        return None
    window = parse_window(asked.window)
    if window.minutes * 60 < parse_duration(asked.budget):
        raise UsageError(f"--window {asked.window} is shorter than --budget {asked.budget}")
    return window


def _require_time(every: str, budget: str) -> None:
    if parse_duration(budget) >= parse_duration(every):
        raise UsageError(
            f"--budget {budget} is not shorter than --every {every}: runs would follow each other without a pause"
        )


def _require_mpi(mpi: str | None) -> None:
    from wulf.base.native.build import find_mpi

    try:
        if mpi is not None:
            find_mpi(mpi)
    except BuildError as error:
        raise UsageError(f"--mpi: {error}") from None


def _require_places(files: Sequence[Path | None]) -> None:
    """Refuse now what could not be written at night."""
    for file in files:
        if file is not None and not os.access(file.absolute().parent, os.W_OK):
            raise UsageError(f"{file}: there is no directory {file.absolute().parent} that can be written to")


def _scheduler(text: str) -> exclusive_nodes.Scheduler:
    known: tuple[exclusive_nodes.Scheduler, ...] = ("auto", "slurm", "none")
    found = next((one for one in known if one == text), None)
    if found is None:
        raise UsageError(f"--scheduler: there is no '{printable(text, 40)}'; there are: {', '.join(known)}")
    return found


def _how(text: str | None) -> Literal["systemd", "cron"] | None:
    known: tuple[Literal["systemd", "cron"], ...] = ("systemd", "cron")
    found = next((one for one in known if one == text), None)
    if text is not None and found is None:
        raise UsageError(f"--with: there is no '{printable(text, 40)}'; there are: {', '.join(known)}")
    return found


def _lasting(named: str, config: ClusterConfig) -> str:
    """Return how a cluster is named from any directory."""
    if config.origin.startswith("Slurm allocation"):
        raise UsageError(
            "an allocation ends: name a file of all nodes with --cluster; Slurm is asked which are idle"
        )
    path = Path(named)
    return str(path.absolute()) if path.is_file() else "local" if config.transport == "local" else named


def _absolute(path: Path | None) -> str | None:
    return str(path.absolute()) if path is not None else None


def _command(asked: Watched, outputs: Outputs, config: ClusterConfig, directory: Path) -> list[str]:
    """Return the command that a timer starts: 'wulf watch run' with what was asked."""
    scheduler = _scheduler(asked.scheduler)
    if scheduler == "slurm" and shutil.which("squeue") is None:
        raise UsageError("--scheduler slurm: there is no squeue here; run this where Slurm's commands are")
    options = {
        "--cluster": _lasting(str(asked.cluster or config.origin), config),
        "--name": directory.name,
        "--budget": asked.budget,
        "--nodes": asked.nodes,
        "--window": asked.window,
        "--mpi": asked.mpi,
        "--scheduler": scheduler,
        "--slurm-options": asked.slurm_options,
        "--metrics": _absolute(outputs.metrics),
        "--junit": _absolute(outputs.junit),
        "--html": _absolute(outputs.html),
        "--on-alarm": asked.on_alarm,
        "--watches": str(directory.parent.absolute()),
    }
    given = [word for option, value in options.items() if value for word in (option, value)]
    return [sys.executable, "-P", "-m", "wulf.start", "watch", "run", "--quiet", *given]


def _show_plan(wanted: installing.Plan, directory: Path, who: str) -> None:
    """Show a person what is written where, before it is."""
    from wulf.base.store.history import NAME as HISTORY

    for path, text in wanted.files.items():
        sys.stdout.write(f"{path}:\n{_indented(text)}")
    if wanted.lines:
        sys.stdout.write(f"at the end of the crontab:\n{_indented(chr(10).join(wanted.lines))}")
    for command in wanted.commands:
        sys.stdout.write(f"then: {' '.join(command)}\n")
    sys.stdout.write(f"watches {who}; history: {directory / HISTORY}\n")


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" if line else "\n" for line in printable(text, 20_000).splitlines())
