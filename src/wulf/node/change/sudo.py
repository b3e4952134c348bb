"""Root's rights by way of sudo: how a command gets them, what its rules are, and what sudo's refusals mean.  Pure.

A user either may do everything with sudo, and then is root to the guard; or an administrator has run what
``wulf settings sudoers --install`` prints, and sudo runs the guard alone for him, which grants what it has in its table
(docs/adr/0016-sudo.md).
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
import textwrap
from collections.abc import Sequence

from wulf.base.errors import UsageError
from wulf.base.text import printable

#: Where sudo's rules are, and what the guard grants to those who are not root.
RULES, GRANT = "/etc/sudoers.d/wulf", "/etc/wulf/grant"
#: Exit code where sudo is missing.
_NO_SUDO = 91
#: Runs a command as root; who is root already needs no sudo. Messages in English: they are read below.
_RUN = (
    'if [ "$(id -u)" = 0 ]; then exec "$@"; fi; '
    f"command -v sudo >/dev/null || exit {_NO_SUDO}; "
    # Who may do everything is root to the guard, too.
    'LC_ALL=C exec sudo -n -- env -u SUDO_UID "$@"'
)
#: Writes stdin to a file that is root's alone, whole or not at all. $1 path, $2 SHA-256 of what it must be.
_WRITE = (
    'umask 077; mkdir -p "${1%/*}" && cat >"$1.new" && [ "$(sha256sum <"$1.new")" = "$2  -" ] && '
    'chmod 700 "$1.new" && mv -f "$1.new" "$1"'
)
_EVERYTHING = (
    "must let this user do everything without a password (NOPASSWD: ALL), or run the guard "
    "('wulf settings sudoers --install' prints what an administrator runs there), or root changes settings"
)
#: What sudo says → what that means, and what to do.
_REFUSALS = {
    "must have a tty": f"sudo there wants a terminal (requiretty): it {_EVERYTHING}, without requiretty",
    "a password is required": f"sudo there asks for a password: it {_EVERYTHING}",
    "is not allowed to execute": f"sudo there {_EVERYTHING}",
    "may not run sudo": f"this user may not use sudo there: it {_EVERYTHING}",
    "not in the sudoers file": f"this user may not use sudo there: it {_EVERYTHING}",
    "unknown user": "sudo there does not know this user",
}
#: Why a guard is not replaced by a user for whom sudo runs nothing else.
OTHER = (
    "the guard there is not that of this wulf, and sudo lets this user run nothing else: an administrator puts it "
    "there with what 'wulf settings sudoers --install' prints"
)
_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,14}")


def argv(words: Sequence[str]) -> list[str]:
    """Return the command that runs `words` as root."""
    return ["sh", "-c", _RUN, "wulf", *words]


def calling(place: str, run: str, words: Sequence[str]) -> list[str]:
    """Return the command that lets the guard at `place` do something; `run` is how root's shell starts it."""
    alone = f'if [ "$(id -u)" != 0 ] && [ -e {GRANT} ]; then LC_ALL=C exec sudo -n -- "$0" "$@"; fi; '
    rest = f'set -- sh -c {shlex.quote(run)} "$0" "$@"; {_RUN}'
    return ["sh", "-c", alone + rest, place, *words]


def looking(place: str) -> list[str]:
    """Return the command that prints the digest of the guard at `place`; the guard's own word is behind it."""
    alone = f'if [ "$(id -u)" != 0 ] && [ -e {GRANT} ]; then LC_ALL=C exec sudo -n -- "$0" version; fi; '
    return ["sh", "-c", f'{alone}set -- sha256sum "$0"; {_RUN}', place]


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


def rules(user: str, place: str, program: bytes) -> str:
    """Return sudo's rules: this very program, with any words, as it checks them itself.

    Raises
    ------
    UsageError
        No user can have that name.
    """
    if not _USER.fullmatch(user):
        raise UsageError(f"{printable(user, 60)!r} is not the name of a user")
    digest = hashlib.sha256(program).hexdigest()
    return (
        f"# What wulf needs to change settings: {GRANT} says what it grants. Removed with this file.\n"
        f"Defaults!{place} !requiretty, env_reset\n"
        # Without a digest, so that a guard of another version can say that it is one.
        f"{user} ALL = (root) NOPASSWD: sha256:{digest} {place}, {place} version\n"
    )


def installation(user: str, interfaces: Sequence[str], place: str, program: bytes) -> str:
    """Return the shell script that an administrator runs on every node.

    Raises
    ------
    UsageError
        A name that none can have, or no interface.
    """
    strange = [name for name in interfaces if not _INTERFACE.fullmatch(name)]
    if strange or not interfaces:
        raise UsageError(
            f"{printable(strange[0], 60)!r} is not the name of an interface"
            if strange
            else "say which interfaces may be changed: --interface NAME"
        )
    named = {
        "user": user,
        "place": place,
        "digest": hashlib.sha256(program).hexdigest(),
        "interfaces": " ".join(interfaces),
        "rules": rules(user, place, program),
        "program": "\n".join(textwrap.wrap(base64.b64encode(program).decode(), 120)),
    }
    return _INSTALL.format(**named)


_INSTALL = f"""\
#!/bin/sh
# Lets {{user}} change settings of this node with wulf. To be run as root; `rm -f {RULES} {GRANT}` takes it back.
set -eu
umask 077
[ "$(id -u)" = 0 ] || {{{{ echo "this is for root" >&2; exit 1; }}}}
uid=$(id -u {{user}})
# What a guard that is there has begun, it ends.
[ ! -x {{place}} ] || {{place}} lock wulf-install 0 ||
    {{{{ echo "somebody is changing settings here: try again later" >&2; exit 1; }}}}
mkdir -p {{place}}.d
trap 'rm -rf {{place}}.d' EXIT
base64 -d >{{place}}.d/guard <<'END_OF_PROGRAM'
{{program}}
END_OF_PROGRAM
[ "$(sha256sum <{{place}}.d/guard)" = "{{digest}}  -" ] || {{{{ echo "the program came here damaged" >&2; exit 1; }}}}
chmod 700 {{place}}.d/guard
mv -f {{place}}.d/guard {{place}}
{{place}} version || {{{{ echo "the program does not run here (is /var mounted noexec?)" >&2; exit 1; }}}}
mkdir -p {GRANT.rpartition("/")[0]}
chmod 755 {GRANT.rpartition("/")[0]}
printf 'users\\t%s\\ninterfaces\\t%s\\n' "$uid" '{{interfaces}}' >{GRANT}.new
chmod 644 {GRANT}.new
mv -f {GRANT}.new {GRANT}
cat >{{place}}.d/rules <<'END_OF_RULES'
{{rules}}END_OF_RULES
! command -v visudo >/dev/null || visudo -q -c -f {{place}}.d/rules
chmod 440 {{place}}.d/rules
mv -f {{place}}.d/rules {RULES}
"""
