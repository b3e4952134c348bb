"""Ways to run commands on nodes. One module per transport, found by name."""

from __future__ import annotations

import logging

from wulf.base.errors import ConfigError
from wulf.node.cluster.config import ClusterConfig
from wulf.node.cluster.transport.local import LocalTransport
from wulf.node.cluster.transport.logged import LOG, ClosableTransport, LoggedTransport
from wulf.node.cluster.transport.ssh import SshTransport

__all__ = ["ClosableTransport", "open_transport"]

_TRANSPORTS: dict[str, type[LocalTransport] | type[SshTransport]] = {
    transport.name: transport for transport in (LocalTransport, SshTransport)
}


def open_transport(config: ClusterConfig) -> ClosableTransport:
    """Return the transport the cluster file names.

    Raises
    ------
    ConfigError
        When there is none of that name.
    """
    if config.transport not in _TRANSPORTS:
        known = ", ".join(_TRANSPORTS)
        raise ConfigError(f"{config.origin}: unknown transport '{config.transport}' (allowed: {known})")
    transport = _TRANSPORTS[config.transport](config)
    return LoggedTransport(transport) if LOG.isEnabledFor(logging.DEBUG) else transport
