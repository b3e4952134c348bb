"""``wulf sudoers``: what sudo needs on the nodes, so that a user who is not root can change settings."""

from __future__ import annotations

import getpass
import hashlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from wulf.change import sudo
from wulf.change.guard import PLACE, program
from wulf.cli.options import ClusterOption
from wulf.errors import UsageError
from wulf.procedure.clusters import cluster as resolve

_HOW = f"""\
# The guard must be there, too. As root on every node, once and after every update of wulf:
#   wulf sudoers --install | ssh root@NODE sh        installs {PLACE} and {sudo.RULES}
# or give that script to what installs your nodes. Then, in cluster.toml:
#   [change]
#   become = "sudo"
"""


def command(
    user: Annotated[
        str | None,
        typer.Option(
            help="Who may change settings. Default: [change] user, [ssh] user, or who you are here."
        ),
    ] = None,
    cluster: ClusterOption = None,
    install: Annotated[
        bool,
        typer.Option(
            "--install", help="Print a script for root on a node: it installs the guard and the rules."
        ),
    ] = False,
) -> None:
    """Print sudo's rules for changing settings as a user who is not root; nothing is changed.

    They let the user call wulf's guard of this very version (sudo checks its SHA-256) with the verbs that changes need.
    The guard, which belongs to root, then sets what the catalogue names and writes the files of 'wulf persist', and
    refuses all else: no rule here gives a root shell. Measuring needs none of this.
    """
    guard = program()
    rules = sudo.rules(user or _user(cluster), PLACE, hashlib.sha256(guard.encode()).hexdigest())
    sys.stdout.write(sudo.installer(rules, PLACE, guard) if install else rules + _HOW)


def _user(cluster: str | None) -> str:
    """Return who changes settings on the nodes, as far as it is said anywhere."""
    if cluster is None and not Path("cluster.toml").exists():
        return getpass.getuser()
    config = resolve(cluster)
    name = config.for_changes().ssh.user or getpass.getuser()
    if name == "root":
        raise UsageError(
            f"{config.origin}: root changes settings there and needs no sudo: --user names another"
        )
    return name
