"""The text of a service and its timer for systemd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SERVICE = """\
# Written by 'wulf watch install'; 'wulf watch remove' takes it away.
[Unit]
Description=wulf watch {name}: a short measured run and an audit
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
ExecStart={command}
{environment}Nice=10
# An alarm is no failure of the service: --on-alarm and --metrics tell of it.
SuccessExitStatus={findings}
TimeoutStartSec={patience}
# What ends it early lets it put everything back.
KillMode=mixed
TimeoutStopSec=120
"""
_TIMER = """\
# Written by 'wulf watch install'; 'wulf watch remove' takes it away.
[Unit]
Description=When wulf watch {name} runs

[Timer]
{calendar}
# A run that was missed is not made up for: what is measured at another time is another thing.
Persistent=false
AccuracySec=1min

[Install]
WantedBy=timers.target
"""


def service(
    name: str, command: Sequence[str], environment: Mapping[str, str], patience_s: float, findings: int
) -> str:
    """Return the text of the service.

    Parameters
    ----------
    patience_s
        Time after which a run is ended [s].
    findings
        Exit code that is no failure.
    """
    return _SERVICE.format(
        name=name,
        command=" ".join(map(quoted, command)),
        environment="".join(
            f"Environment={quoted(f'{key}={value}', in_command=False)}\n"
            for key, value in environment.items()
        ),
        patience=f"{patience_s:.0f}",
        findings=findings,
    )


def timer(name: str, calendar: Sequence[str]) -> str:
    """Return the text of the timer."""
    return _TIMER.format(name=name, calendar="\n".join(f"OnCalendar={one}" for one in calendar))


def quoted(word: str, *, in_command: bool = True) -> str:
    """Return a word as systemd reads it back: in quotes, and with its ``%`` and ``$`` as they are."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    if in_command:
        escaped = escaped.replace("$", "$$")
    plain = escaped.replace("$$", "").replace("%%", "")
    simple = bool(plain) and all(letter.isalnum() or letter in "/._-=:,@+" for letter in plain)
    return escaped if simple else f'"{escaped}"'
