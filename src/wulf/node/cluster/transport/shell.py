"""From argv to the text a node's shell gets, and from what came back to a result. Pure.

A node's login shell may be any shell, may print anything before the command, and ssh's own failures share the
exit code 255 with the command's. So every command is wrapped: a random mark on stdout says where its output
begins, and the same mark with the exit code ends stderr. What has no mark was not printed by the command.

The wrappers contain no newline, backslash, single quote or ``!`` (but ``$!``, which csh knows), so that csh and
fish pass them on unharmed. A command's own arguments may contain them; with ``!`` or a newline csh refuses to run it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base.contracts import NodeResult
from wulf.base.errors import UsageError
from wulf.base.text import last_line, printable

#: What a node may print in one command [B]; more is garbage. A fact tree is a few hundred KiB.
STDOUT_LIMIT = 16 << 20
#: How much of the end of stderr is kept [B].
STDERR_LIMIT = 64 << 10

#: How much of the end of an output is searched for its last line [B].
_WORDS_LIMIT = 1000

#: Exit code with which ssh reports its own failure.
SSH_FAILED = 255
#: What ssh says when somebody is there and refuses.
_REFUSED = (b"Permission denied", b"Host key", b"HOST IDENTIFICATION")

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# $1 mark, $2 seconds; then the command. timeout(1) ends it on the node when nobody is left to wait for it.
_RUN = (
    'n=$1; s=$2; shift 2; command -v timeout >/dev/null && set -- timeout -k 1 "$s" "$@"; '
    'echo "$n"; "$@"; rc=$?; echo "$n $rc" >&2; exit $rc'
)

# $1 mark; then the command, in a session of its own. The end of stdin is the order to end it, so that it also
# ends when the connection or the controller dies. What is left of its process group after it is ended, too.
# Where the command is to get a line, that is the first of stdin; it is in no argument, which everybody can read.
_STREAM = (
    "n=$1; shift; exec 3<&0; {take}"
    "end() {{ kill -TERM -$p || return; i=0; "
    "while [ $i -lt 30 ] && kill -0 -$p; do sleep 0.1; i=$((i+1)); done; kill -KILL -$p; }}; "
    'echo "$n"; {give}3<&- & p=$!; '
    "{{ read x <&3; end; }} >/dev/null 2>&1 & w=$!; exec 3<&-; "
    'wait $p; rc=$?; {{ kill $w; end; }} >/dev/null 2>&1; echo "$n $rc" >&2; exit $rc'
)
_STREAM_ALONE = _STREAM.format(take="", give='setsid "$@" </dev/null ')
_STREAM_FED = _STREAM.format(take="read -r l <&3; ", give='echo "$l" | setsid "$@" ')
#: What a line for a command may have: nothing that echo or a shell could take apart.
_LINE = re.compile(r"[A-Za-z0-9_.,:/@+=][A-Za-z0-9_.,:/@+= -]{0,999}")

# $1 target, $2 SHA-256, $3 mode; the content comes on stdin. A reader sees the old file or the new one.
_PUT = (
    'if [ -d "$1" ]; then echo "$1 is a directory" >&2; exit 1; fi; mkdir -p "${1%/*}/" || exit 1; '
    't="$1.wulf.$(uname -n).$$"; umask 077; '
    'cat >"$t" && s=$(sha256sum <"$t") && '
    '{ [ "${s%% *}" = "$2" ] || { echo "$1: wrong checksum" >&2; false; }; } && '
    'chmod "$3" "$t" && mv -f "$t" "$1" || { rm -f "$t"; exit 1; }'
)


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """What came back from one command, before it is judged."""

    stdout: bytes
    stderr: bytes
    #: Exit code of the local process (ssh or sh); None when it had to be killed.
    code: int | None
    timed_out: bool = False
    #: More came than is kept.
    overflow: bool = False


def command(argv: Sequence[str], env: Mapping[str, str] | None) -> list[str]:
    """Return `argv`, run through env(1) when there are variables to set.

    Raises
    ------
    UsageError
        When there is no command, it could be an option or an assignment, or an argument cannot be passed on.
    """
    if not argv or not argv[0] or argv[0].startswith("-") or "=" in argv[0]:
        raise UsageError(f"not a command: {printable(shlex.join(argv), 120) or 'nothing'}")
    variables = []
    for name, value in (env or {}).items():
        if not _ENV_NAME.fullmatch(name):
            raise UsageError(f"'{printable(name, 80)}' is not the name of an environment variable")
        variables.append(f"{name}={value}")
    whole = ["env", *variables, *argv] if variables else list(argv)
    if any("\0" in word for word in whole):
        raise UsageError(f"an argument of {printable(argv[0], 80)} contains a NUL character")
    return whole


def run_words(argv: Sequence[str], env: Mapping[str, str] | None, mark: str, seconds: float) -> list[str]:
    """Words that run the command to its end, and no longer than `seconds` [s]."""
    return ["/bin/sh", "-c", _RUN, "wulf", mark, str(int(seconds) + 2), *command(argv, env)]


def stream_words(
    argv: Sequence[str], env: Mapping[str, str] | None, mark: str, line: str | None = None
) -> list[str]:
    """Words that run the command until it ends or stdin does.

    Parameters
    ----------
    line
        What the command shall read from its own stdin; whoever starts the words writes it there first.
    """
    if line is not None and not _LINE.fullmatch(line):
        raise UsageError(f"the line for {printable(argv[0], 80)} has characters that cannot be passed on")
    script = _STREAM_ALONE if line is None else _STREAM_FED
    return ["/bin/sh", "-c", script, "wulf", mark, *command(argv, env)]


def put_words(target: str, sha256: str, mode: int) -> list[str]:
    """Words that write stdin to `target` atomically after checking it.

    Raises
    ------
    UsageError
        When `target` is not an absolute path of a file.
    """
    if not target.startswith("/") or target.endswith("/"):
        raise UsageError(f"'{printable(target, 120)}' is not the absolute path of a file")
    return ["/bin/sh", "-c", _PUT, "wulf", target, sha256, f"{mode & 0o7777:o}"]


def remote_text(words: Sequence[str]) -> str:
    """Text for a login shell that runs exactly these words."""
    return "exec " + shlex.join(words)


def split_end(stderr: bytes, mark: str) -> tuple[bytes, int | None]:
    """Take the closing mark off stderr: (the command's stderr, its exit code or None when it did not end)."""
    found = list(re.finditer(rb"%b (\d{1,3})\n" % mark.encode(), stderr))
    if not found:
        return stderr, None
    return stderr[: found[-1].start()], int(found[-1][1])


def split_begin(stdout: bytes, mark: str) -> tuple[bytes, bool]:
    """Take all up to the opening mark off stdout: (the command's stdout, whether the mark was there)."""
    before, found, after = stdout.partition(mark.encode() + b"\n")
    return (after, True) if found else (before, False)


def judge(node: str, raw: Raw, mark: str, timeout_s: float) -> NodeResult:
    """Decide what a node's answer is."""
    stdout, began = split_begin(raw.stdout, mark)
    stderr, code = split_end(raw.stderr, mark)
    refused = any(words in stderr for words in _REFUSED)

    def result(status: str, reason: str, exit_code: int | None = None) -> NodeResult:
        return msgspec.convert(
            {
                "node": node,
                "status": status,
                "exit_code": exit_code,
                "stdout": stdout,
                "stderr": stderr,
                "reason": f"{node}: {reason}" if reason else "",
                "silent": status in ("timeout", "unreachable") and not began and not refused,
            },
            NodeResult,
        )

    if raw.overflow:
        return result("garbage", f"printed more than {STDOUT_LIMIT >> 20} MiB")
    if raw.timed_out:
        return result(
            "timeout", f"no answer within {timeout_s:g} s" if not began else f"not done in {timeout_s:g} s"
        )
    if code is None:
        return result(*_no_end(raw, stdout, stderr, began))
    if not began or not _is_text(stdout):
        return result("garbage", "printed something that is not UTF-8 text", code)
    if code != 0:
        return result("exit", _exit_reason(code, stderr), code)
    return result("ok", "", code)


def _no_end(raw: Raw, stdout: bytes, stderr: bytes, began: bool) -> tuple[str, str]:
    if raw.code == SSH_FAILED or began:
        said = last_words(stderr)
        what = "connection lost while the command ran" if began else "ssh could not connect"
        return "unreachable", f"{what}: {said}" if said else what
    said = last_words(stdout) or last_words(stderr) or "nothing"
    return "garbage", f"the login shell did not run the command; it printed: {said} (exit code {raw.code})"


def last_words(output: bytes) -> str:
    """Return the last line that says anything, safe to show, without tabs and the like.

    ssh ends its lines like a terminal's.
    """
    return " ".join(last_line(output[-_WORDS_LIMIT:].replace(b"\r", b"")).split())


def _exit_reason(code: int, stderr: bytes) -> str:
    said = last_words(stderr)
    return f"exit code {code}: {said}" if said else f"exit code {code}"


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
