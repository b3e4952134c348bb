"""A command in a batch script that a queue runs."""

from __future__ import annotations

import re
import shlex

from wulf.errors import ConfigError

#: What hands a script to Slurm and waits for its end.
SUBMIT = "sbatch --wait --output=$output $script"

# The script is a file beside its output, where the job can read it, and both are taken away.
_JOB = """\
script=$(mktemp ./wulf-job.XXXXXX) && output=$script.out || exit 1
cat >"$script" <<'END-OF-WULF-JOB'
{script}
END-OF-WULF-JOB
chmod +x "$script"
{submit} >&2
code=$?
cat "$output"
rm -f "$script" "$output"
exit $code
"""
#: Says how long the command ran, without the time in the queue.
_TIMED = """\
begin=$(date +%s%N)
sh -c {command}
code=$?
printf '\\n{mark} %s\\n' $(($(date +%s%N) - begin))
(exit $code)"""


def job(template: str, origin: str, command: str, submit: str, mark: str) -> str:
    """Return for a shell how a command is run by a queue, and waited for.

    Parameters
    ----------
    template
        The batch script; ``$command`` stands where the command belongs.
    origin
        What it is called in errors.
    submit
        Hands ``$script`` over, lets its output go to ``$output``, and ends with it and with its exit code.
    mark
        What the line begins with that says how long the command ran [ns].

    Raises
    ------
    ConfigError
        The template or `submit` lacks a place; says which.
    """
    if not template.startswith("#!"):
        raise ConfigError(f"{origin}: a batch script begins with its interpreter, such as #!/bin/sh")
    _require(template, origin, "command")
    for name in ("script", "output"):
        _require(submit, f"--submit {submit!r}", name)
    timed = _TIMED.format(command=shlex.quote(command), mark=mark)
    script = _place("command").sub(lambda _: timed, template).rstrip("\n")
    return _JOB.format(script=script, submit=submit)


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"\$(?:{name}\b|\{{{name}\}})")


def _require(text: str, where: str, name: str) -> None:
    if not _place(name).search(text):
        raise ConfigError(f"{where}: ${name} stands nowhere in it")
