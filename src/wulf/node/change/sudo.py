"""Root's rights by way of sudo: how a command gets them, and what sudo's refusals mean.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

#: Where rules that earlier versions printed were put.
RULES = "/etc/sudoers.d/wulf"
#: Why there are no rules for a user who may not do everything.
WITHDRAWN = (
    "'wulf settings sudoers' is withdrawn: whoever its rules name can become root with them. Remove what "
    "earlier versions "
    f"installed, on every node: rm -f {RULES}. Settings can be changed by root, or by a user whom sudo lets do "
    "everything without a password (docs/howto/tune.md, 'Without root')"
)
#: Exit code where sudo is missing.
_NO_SUDO = 91
#: Runs a command as root; who is root already needs no sudo. Messages in English: they are read below.
_RUN = (
    'if [ "$(id -u)" = 0 ]; then exec "$@"; fi; '
    f"command -v sudo >/dev/null || exit {_NO_SUDO}; "
    'LC_ALL=C exec sudo -n -- "$@"'
)
#: Writes stdin to a file that is root's alone, whole or not at all. $1 path, $2 SHA-256 of what it must be.
_WRITE = (
    'umask 077; mkdir -p "${1%/*}" && cat >"$1.new" && [ "$(sha256sum <"$1.new")" = "$2  -" ] && '
    'chmod 700 "$1.new" && mv -f "$1.new" "$1"'
)
_EVERYTHING = "must let this user do everything without a password (NOPASSWD: ALL), or root changes settings"
#: What sudo says → what that means, and what to do.
_REFUSALS = {
    "must have a tty": f"sudo there wants a terminal (requiretty): it {_EVERYTHING}, without requiretty",
    "a password is required": f"sudo there asks for a password: it {_EVERYTHING}",
    "is not allowed to execute": f"sudo there {_EVERYTHING}",
    "may not run sudo": f"this user may not use sudo there: it {_EVERYTHING}",
    "not in the sudoers file": f"this user may not use sudo there: it {_EVERYTHING}",
    "unknown user": "sudo there does not know this user",
}


def argv(words: Sequence[str]) -> list[str]:
    """Return the command that runs `words` as root."""
    return ["sh", "-c", _RUN, "wulf", *words]


def writing(place: str, digest: str) -> list[str]:
    """Return the command that writes its stdin, of this SHA-256, to `place` as root's."""
    return argv(["sh", "-c", _WRITE, "wulf", place, digest])


def refusal(code: int | None, stderr: bytes) -> str:
    """Return why sudo did not run a command, and what to do; empty when it did."""
    if code == _NO_SUDO:
        return (
            "sudo is not installed there: install it, or let root change settings ([change] in cluster.toml)"
        )
    said = stderr.decode(errors="replace")
    return next((meaning for words, meaning in _REFUSALS.items() if code == 1 and words in said), "")
