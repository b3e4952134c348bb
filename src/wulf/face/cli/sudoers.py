"""``wulf settings sudoers``: withdrawn, and says so."""

from __future__ import annotations

from typing import Annotated

import typer

from wulf.base.errors import WulfError
from wulf.face.cli.options import ClusterOption


def command(
    user: Annotated[str | None, typer.Option(help="Not used: nothing is printed.")] = None,  # noqa: ARG001
    cluster: ClusterOption = None,  # noqa: ARG001
    install: Annotated[bool, typer.Option("--install", help="Not used: nothing is printed.")] = False,  # noqa: ARG001
) -> None:
    """Withdrawn: the rules that earlier versions printed let the user whom they name become root.

    Remove them from every node: rm -f /etc/sudoers.d/wulf. Settings can be changed by root, or with become = "sudo" by
    a user whom sudo lets do everything without a password.
    """
    from wulf.node.change import sudo

    raise WulfError(sudo.WITHDRAWN)
