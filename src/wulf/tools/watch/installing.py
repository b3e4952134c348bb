"""Let a watch run by itself, and take that away again exactly: units of systemd, or lines of a crontab."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from wulf.base.errors import EXIT_FINDINGS, ConfigError, StoreError, UsageError
from wulf.base.store.files import decode_file, write_atomically
from wulf.base.text import last_line, printable
from wulf.tools.watch.environment import INSTALLED
from wulf.tools.watch.timer import crontab, units
from wulf.tools.watch.timer.times import Times, calendar, cron

How = Literal["systemd", "cron"]
#: What a command that starts by itself does not have, and programs are found by.
CARRIED = (
    "PATH",
    "LD_LIBRARY_PATH",
    "WULF_LAB_DIR",
    "WULF_SITE_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
_SYSTEM_UNITS = Path("/etc/systemd/system")
_CRONS = frozenset({"cron", "crond", "fcron"})
_PATIENCE_S = 60.0
#: Beside the budget, for all that comes before and after [s].
_BESIDE_S = 1800.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is written to let a watch run by itself; it is kept to take exactly that away again."""

    name: str
    how: How
    #: Units of the user, not of the system.
    user: bool = False
    #: Path → text of the units.
    files: dict[str, str] = {}
    #: Directories that were made for them, the outermost first.
    made: list[str] = []
    #: Lines of the crontab.
    lines: list[str] = []
    #: Whether there was a crontab before.
    had_crontab: bool = True

    @property
    def timer(self) -> str:
        """Name of the timer."""
        return f"{_unit(self.name)}.timer"

    @property
    def commands(self) -> list[list[str]]:
        """What is run after the files are written."""
        if self.how == "cron":
            return [["crontab", "-"]]
        return [_systemctl(self, "daemon-reload"), _systemctl(self, "enable", "--now", self.timer)]


def plan(
    name: str,
    how: How | None,
    times: Times,
    command: Sequence[str],
    budget_s: float,
    window_s: float = 0.0,
) -> Plan:
    """Return what would be written here.

    Parameters
    ----------
    how
        None for systemd where it runs, else cron.
    command
        What is run, each word as it is.
    budget_s, window_s
        Of a run; how long it may wait for nodes to become idle.

    Raises
    ------
    UsageError
        There is neither here, or not the one that is wanted; or cron takes no line that is so long.
    """
    environment = {key: os.environ[key] for key in CARRIED if os.environ.get(key)}
    user = os.geteuid() != 0
    if how is None:
        how = "systemd" if _has_systemd(user) else "cron"
    if how == "cron":
        before = _crontab()
        return Plan(
            name=name,
            how=how,
            lines=crontab.lines(name, cron(times), command, environment),
            had_crontab=before is not None,
        )
    if not _has_systemd(user):
        raise UsageError(
            "--with systemd: it does not run here, or not for this user; --with cron writes a crontab line"
        )
    service = units.service(name, command, environment, budget_s + window_s + _BESIDE_S, EXIT_FINDINGS)
    return _units_of(name, units.timer(name, calendar(times)), service, user)


def _units_of(name: str, timer: str, service: str, user: bool) -> Plan:
    directory = _units_directory(user)
    return Plan(
        name=name,
        how="systemd",
        user=user,
        files={
            str(directory / f"{_unit(name)}.timer"): timer,
            str(directory / f"{_unit(name)}.service"): service,
        },
        made=[str(path) for path in _missing(directory)],
    )


def install(wanted: Plan, directory: Path) -> None:
    """Write what is planned, and keep what that was.

    Raises
    ------
    UsageError
        The watch is installed already, or somebody else's unit has its name.
    StoreError
        Something cannot be written.
    """
    if (directory / INSTALLED).exists():
        raise UsageError(f"watch {wanted.name} is installed already: 'wulf watch remove' takes it away")
    there = [path for path in wanted.files if Path(path).exists()]
    if there:
        raise UsageError(
            f"{there[0]} is there already, and was not written by this watch: choose another --name"
        )
    if wanted.how == "cron" and crontab.found(_crontab() or "", wanted.name) is not None:
        raise UsageError(
            f"the crontab has lines of a watch {wanted.name} already, of other --watches: choose another --name"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make {directory}: {error.strerror}") from None
    # First: what is written must be known, whatever happens then.
    write_atomically(directory / INSTALLED, msgspec.json.format(msgspec.json.encode(wanted), indent=1))
    try:
        if wanted.how == "cron":
            _write_crontab(crontab.added(_crontab() or "", wanted.lines))
        else:
            for path in wanted.made:
                Path(path).mkdir()
            for path, text in wanted.files.items():
                write_atomically(Path(path), text.encode())
            for command in wanted.commands:
                _run(command)
    except BaseException:
        _take_away(wanted)
        _forget(directory)
        raise


def installed(directory: Path) -> Plan | None:
    """Return what was written for a watch; None where nothing was."""
    path = directory / INSTALLED
    return decode_file(path, Plan) if path.exists() else None


def changed_since(wanted: Plan) -> list[str]:
    """Return what is not as it was written, in words; what is gone is no change."""
    if wanted.how == "cron":
        found = crontab.found(_crontab() or "", wanted.name)
        return ["its lines in the crontab"] if found is not None and found != wanted.lines else []
    return [
        path
        for path, text in wanted.files.items()
        if Path(path).exists() and Path(path).read_bytes() != text.encode()
    ]


def remove(directory: Path, *, force: bool = False) -> Plan:
    """Take away what was written: afterwards all is as before, byte for byte.

    Raises
    ------
    UsageError
        Nothing was written, or it has been changed since (`force` takes that away, too).
    """
    written = installed(directory)
    if written is None:
        raise UsageError(f"watch {directory.name} is not installed")
    edited = changed_since(written)
    if edited and not force:
        raise UsageError(
            f"{', '.join(edited)}: changed since it was installed, so it is left alone; "
            "--force takes it away all the same"
        )
    _take_away(written)
    _forget(directory)
    return written


def _forget(directory: Path) -> None:
    """Take away what says what was written, and the watch's directory where there is nothing else in it."""
    (directory / INSTALLED).unlink()
    if not any(directory.iterdir()):
        directory.rmdir()


def _take_away(written: Plan) -> None:
    if written.how == "cron":
        _take_lines_away(written)
        return
    timer = Path(next(path for path in written.files if path.endswith(".timer")))
    if timer.exists():
        _run(_systemctl(written, "disable", "--now", written.timer))
    for path in written.files:
        Path(path).unlink(missing_ok=True)
    for made in reversed(written.made):
        # Somebody may have put something else there since.
        if Path(made).is_dir() and not any(Path(made).iterdir()):
            Path(made).rmdir()
    _run(_systemctl(written, "daemon-reload"))


def _take_lines_away(written: Plan) -> None:
    there = _crontab() or ""
    lines = crontab.found(there, written.name)
    if lines is None:
        return
    left = crontab.without(there, lines)
    if left or written.had_crontab:
        _write_crontab(left)
    else:
        _run(["crontab", "-r"])


def lingers() -> bool:
    """Whether this user's units run when the user is not logged in."""
    done = subprocess.run(
        ["loginctl", "show-user", str(os.geteuid()), "--property=Linger", "--value"],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    return done.stdout.strip() == "yes"


def cron_runs() -> bool:
    """Whether somebody reads crontabs here."""
    for file in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if file.read_text().strip() in _CRONS:
                return True
    return False


def next_run(written: Plan) -> str:
    """Return when the timer fires next, as systemd says it; empty where it does not say."""
    if written.how == "cron":
        return ""
    command = _systemctl(written, "show", "--property=NextElapseUSecRealtime", "--value", written.timer)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    return printable(done.stdout.strip(), 60)


def _unit(name: str) -> str:
    return f"wulf-watch-{name}"


def _systemctl(written: Plan, *words: str) -> list[str]:
    return ["systemctl", *(["--user"] if written.user else []), *words]


def _has_systemd(user: bool) -> bool:
    if not Path("/run/systemd/system").is_dir() or shutil.which("systemctl") is None:
        return False
    if not user:
        return True
    probe = ["systemctl", "--user", "show", "--property=Version"]
    return subprocess.run(probe, capture_output=True, timeout=_PATIENCE_S, check=False).returncode == 0


def _units_directory(user: bool) -> Path:
    if not user:
        return _SYSTEM_UNITS
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "systemd" / "user"


def _missing(directory: Path) -> list[Path]:
    """Return the directories that are not there yet, the outermost first."""
    return [path for path in reversed([directory, *directory.parents]) if not path.exists()]


def _crontab() -> str | None:
    """Return the crontab of this user; None where there is none.

    Raises
    ------
    UsageError
        There is no cron here, or it does not let this user have one.
    """
    try:
        done = subprocess.run(["crontab", "-l"], capture_output=True, timeout=_PATIENCE_S, check=False)
    except FileNotFoundError:
        raise UsageError(
            "neither systemd nor cron is here: run 'wulf watch run' by what the site has (scrontab, a daemon)"
        ) from None
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "surrogateescape")
    why = last_line(done.stderr)
    if "no crontab" in why:
        return None
    raise UsageError(f"crontab -l: {why or f'exit code {done.returncode}'}")


def _write_crontab(text: str) -> None:
    done = subprocess.run(
        ["crontab", "-"],
        input=text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode != 0:
        raise ConfigError(f"crontab -: {last_line(done.stderr) or f'exit code {done.returncode}'}")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    if done.returncode != 0:
        raise ConfigError(f"{' '.join(command)}: {last_line(done.stderr) or f'exit code {done.returncode}'}")
