"""Root's rights by way of sudo: how a guard is called, what sudo's refusals mean, and the rules it needs.  Pure."""

from __future__ import annotations

import base64
import re

from wulf import __version__
from wulf.change import grants
from wulf.errors import UsageError
from wulf.text import printable

RULES = "/etc/sudoers.d/wulf"
#: Exit code where sudo is missing.
_NO_SUDO = 91
#: Names that mean something else in sudoers(5): aliases are of capital letters.
_NAME = re.compile(r"(?![A-Z0-9_]+$)[A-Za-z_][A-Za-z0-9_.-]*")
#: Calls the guard; who is root already needs no sudo. Messages in English: they are read below.
_RUN = (
    'if [ "$(id -u)" = 0 ]; then exec sh "$0" "$@"; fi; '
    f"command -v sudo >/dev/null || exit {_NO_SUDO}; "
    'LC_ALL=C exec sudo -n -- "$0" "$@"'
)
_AGAIN = "the administrator runs there what 'wulf sudoers --install' prints"
#: Where there is a guard, and a rule that lets it say which one it is.
OTHER_GUARD = f"the guard there is not the one of this wulf: {_AGAIN} (again after every update of wulf)"
#: What sudo says → what that means, and what to do.
_REFUSALS = {
    "command not found": f"wulf's guard is not installed there: {_AGAIN}",
    "must have a tty": f"sudo there wants a terminal (requiretty), which wulf's own rules lift: {_AGAIN}",
    "a password is required": f"sudo there has no rule for the guard of this wulf, and asks for a password: {_AGAIN}",
    "is not allowed to execute": f"sudo there has no rule for the guard of this wulf: {_AGAIN}",
    "may not run sudo": f"this user may not use sudo there: {_AGAIN}",
    "not in the sudoers file": f"this user may not use sudo there: {_AGAIN}",
    "unknown user": "sudo there does not know this user",
}


def argv(place: str, words: tuple[str, ...]) -> list[str]:
    """Return the command that calls the guard at `place`."""
    return ["sh", "-c", _RUN, place, *words]


def refusal(code: int | None, stderr: bytes) -> str:
    """Return why sudo did not call the guard, and what to do; empty when it did."""
    if code == _NO_SUDO:
        return (
            "sudo is not installed there: install it, or let root change settings ([change] in cluster.toml)"
        )
    said = stderr.decode(errors="replace")
    return next((meaning for words, meaning in _REFUSALS.items() if code == 1 and words in said), "")


def rules(user: str, place: str, digest: str) -> str:
    """Return the text of a file of sudoers.d: `user` may call this very guard, with the verbs that changes need.

    Raises
    ------
    UsageError
        The name would mean something else to sudo.
    """
    if not _NAME.fullmatch(user):
        raise UsageError(
            f"{printable(user, 60)!r} cannot be written into sudo's rules as the name of a user: --user names another"
        )
    called = (f"{verb} *" if words else verb for verb, words in grants.VERBS.items())
    commands = ", \\\n    ".join(f"sha256:{digest} {place} {verb}" for verb in called)
    return f"""\
# Written by `wulf sudoers` {__version__}, for {RULES}: {user} may change, through wulf's guard, the settings
# that wulf knows, and keep them over reboots, on this node. The guard refuses anything else, and sudo any guard that is
# not this very one. It may also undo what others have changed with wulf.
Cmnd_Alias WULF_GUARD = {commands}, \\
    {place} {grants.VERSION}
Defaults!WULF_GUARD !requiretty, !setenv, env_reset
{user} ALL = (root) NOPASSWD: NOSETENV: WULF_GUARD
"""


def installer(rules_text: str, place: str, guard: str) -> str:
    """Return a script that root runs on a node: it installs the guard and the rules, or changes nothing."""
    content = "\n".join(re.findall(".{1,100}", base64.b64encode(guard.encode()).decode()))
    directory = place.rpartition("/")[0]
    return f"""\
#!/bin/sh
# Installs wulf's guard and sudo's rules for it on this node. Run as root, once, and again after wulf was updated.
# To take them away again: rm {RULES} {place}
set -eu
umask 077
[ "$(id -u)" = 0 ] || {{ echo "this takes root" >&2; exit 1; }}
command -v visudo >/dev/null || PATH=$PATH:/usr/sbin:/sbin
command -v visudo >/dev/null || {{ echo "sudo is not installed (no visudo)" >&2; exit 1; }}
mkdir -p {directory} && chown 0:0 {directory} && chmod 700 {directory}
guard=$(mktemp {place}.XXXXXX)
rules=$(mktemp {directory}/sudoers.XXXXXX)
trap 'rm -f "$guard" "$rules"' EXIT
base64 -d >"$guard" <<'END'
{content}
END
cat >"$rules" <<'END'
{rules_text}END
chmod 440 "$rules"
visudo -cqf "$rules"
# A guard of another version ends what it has begun before it is replaced.
[ ! -e {place} ] || sh {place} lock install 0
chmod 700 "$guard"
mv -f "$guard" {place}
mv -f "$rules" {RULES}
echo "installed on $(uname -n): {place}, {RULES}"
"""
