"""``wulf settings sudoers``: what lets a user who is not root change settings through sudo."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated

import typer

from wulf.face.cli.options import ClusterOption


def command(
    user: Annotated[
        str | None, typer.Option(help="The user on the nodes. Default: that of [change] or [ssh].")
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(help="An interface that may be changed. May be repeated. Default: that of the cluster."),
    ] = None,
    cluster: ClusterOption = None,
    install: Annotated[
        bool, typer.Option("--install", help="Print the script that an administrator runs on every node.")
    ] = False,
) -> None:
    """Print sudo's rules for a user who is not root, or the script that installs them on a node.

    They let the user run the guard and nothing else. The guard permits what is in the catalogue, on these
    interfaces, and writes no file that belongs to the user. An administrator runs the script as root on every node:
    'wulf settings sudoers --install | ssh root@NODE sh -s'.
    """
    from wulf.base.interfaces import by_interface
    from wulf.node.change import sudo
    from wulf.node.change.guard import PLACE, program
    from wulf.node.fleet.clusters import cluster as resolve

    config = resolve(cluster).for_changes()
    named = user or config.ssh.user or getpass.getuser()
    interfaces = interface or [name for name in by_interface(config.interface, config.nodes) if name]
    text = (
        sudo.installation(named, interfaces, PLACE, program())
        if install
        else sudo.rules(named, PLACE, program())
    )
    sys.stdout.write(text)
