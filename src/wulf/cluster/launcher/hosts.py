"""Where the ranks of a job go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wulf.errors import UsageError


def by_address(hosts: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Address → number of ranks there, in rank order (on one machine several nodes share an address).

    Raises
    ------
    UsageError
        When there are no hosts, or an address would mean something else in a list of hosts.
    """
    if not hosts:
        raise UsageError("an MPI job needs at least one host")
    for node, address in hosts:
        if not address or set(address) & set(",: \t\n") or address.startswith("-"):
            raise UsageError(
                f"{node}: '{address}' cannot be in a host list; MPI launchers take IPv4 or a name"
            )
    return dict(Counter(address for _, address in hosts))
