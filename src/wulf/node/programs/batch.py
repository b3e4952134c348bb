"""A command in a batch script that a queue runs."""

from __future__ import annotations

import re

from wulf.base.errors import ConfigError
from wulf.base.text import count

#: What hands a script to Slurm, says the number of the job, and waits for its end.
SUBMIT = "sbatch --parsable --wait --output=$output $script"

# What stands for $command in the script is one word, a script of its own, that says in a file how long the command ran
# and how it ended: whatever becomes of its output, and of what the batch script does after it. All files are beside
# each other, where the job can read them, and are taken away. Ended from outside, it ends the job.
_JOB = """\
base=$(mktemp "$PWD/wulf-job.XXXXXX") || exit 1
script=$base.sh output=$base.out
trap 'rm -f "$base" "$base".*' EXIT
trap 'scancel "$(head -n 1 "$base.id")" 2>/dev/null; exit 143' TERM INT HUP
cat >"$base.command" <<'END-OF-WULF-COMMAND'
{command}
END-OF-WULF-COMMAND
cat >"$base.run" <<END-OF-WULF-RUN
#!/bin/sh
begin=\\$(date +%s%N)
sh "$base.command"
code=\\$?
echo \\$((\\$(date +%s%N) - begin)) \\$code >>"$base.time"
exit \\$code
END-OF-WULF-RUN
chmod +x "$base.run"
cat >"$base.template" <<'END-OF-WULF-JOB'
{script}
END-OF-WULF-JOB
sed "s|@WULF-COMMAND@|$base.run|g" "$base.template" >"$script" && chmod +x "$script"
( {submit} ) >"$base.id" &
wait $!
code=$?
cat "$output" || echo "the job has left no output at $output: is that a directory of all nodes?" >&2
if [ "$(cat "$base.time" 2>/dev/null | wc -l)" -ne 1 ]; then
    echo "the command ran $(cat "$base.time" 2>/dev/null | wc -l) times in the job (exit code $code), and not once" >&2
    exit 1
fi
read -r ns own <"$base.time"
echo
echo "{mark} $ns"
[ "$own" -eq 0 ] || exit "$own"
exit $code
"""
_PLACE = "@WULF-COMMAND@"


def job(template: str, origin: str, command: str, submit: str, mark: str) -> str:
    """Return for a shell how a command is run by a queue, and waited for.

    Parameters
    ----------
    template
        The batch script; ``$command`` stands where the command belongs, and is run once.
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
    used = [
        line for line in template.splitlines() if _word("command").search(line) and not line.startswith("#")
    ]
    if len(used) != 1:
        raise ConfigError(f"{origin}: $command stands on {count(len(used), 'line')} of it, and not on one")
    for name in ("script", "output"):
        if not _word(name).search(submit):
            raise ConfigError(f"--submit {submit!r}: ${name} stands nowhere in it")
    script = _word("command").sub(_PLACE, template).rstrip("\n")
    quoted = _word("script").sub('"$script"', _word("output").sub('"$output"', submit))
    return _JOB.format(command=command, script=script, submit=quoted, mark=mark)


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"\$(?:{name}\b|\{{{name}\}})")
