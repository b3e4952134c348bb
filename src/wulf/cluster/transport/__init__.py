"""Ways to run commands on nodes. One module per transport, found by name."""

from __future__ import annotations

from typing import Protocol

from wulf.cluster.config import ClusterConfig
from wulf.cluster.transport.local import LocalTransport
from wulf.cluster.transport.ssh import SshTransport
from wulf.errors import ConfigError
from wulf.ports import Transport

_TRANSPORTS: dict[str, type[LocalTransport] | type[SshTransport]] = {
    transport.name: transport for transport in (LocalTransport, SshTransport)
}


class ClosableTransport(Transport, Protocol):
    """A transport that may keep connections open."""

    def close(self) -> None:
        """End what is kept open; the transport is not used afterwards."""


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
    return _TRANSPORTS[config.transport](config)
