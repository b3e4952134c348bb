"""Which of this machine's packages a virtual machine needs.  Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

#: What a node has beside what is essential: to boot, to be logged in to, and what the audit and the tuning look at.
WANTED = (
    "cron",
    "dbus",
    "ethtool",
    "iproute2",
    "iputils-ping",
    "irqbalance",
    "libpam-modules",
    "login",
    "mount",
    "mpich",
    "nftables",
    "openmpi-bin",
    "openssh-client",
    "openssh-server",
    "passwd",
    "procps",
    "sudo",
    "systemd",
    "udev",
)
#: For `dpkg-query --show --showformat`.
FORMAT = (
    "${Package}\t${Version}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\t${db:Status-Status}\n"
)
_NAME = re.compile(r"[^ :(]+")


def needed(listing: str, wanted: Iterable[str] = WANTED) -> dict[str, str]:
    """Return the installed packages that the wanted and the essential ones need, themselves among them.

    Parameters
    ----------
    listing
        What dpkg-query prints with `FORMAT`.

    Returns
    -------
    dict
        Name → version.
    """
    versions: dict[str, str] = {}
    depends: dict[str, list[list[str]]] = {}
    providers: dict[str, list[str]] = defaultdict(list)
    begin = list(wanted)
    for line in listing.splitlines():
        name, version, essential, needs, provides, status = line.split("\t")
        if status != "installed":
            continue
        versions[name] = version
        depends[name] = [_names(group, "|") for group in needs.split(",")]
        for provided in _names(provides, ","):
            providers[provided].append(name)
        if essential == "yes":
            begin.append(name)
    found: dict[str, str] = {}
    while begin:
        name = begin.pop()
        if name not in versions or name in found:
            continue
        found[name] = versions[name]
        for group in depends[name]:
            known = [one for one in group if one in versions]
            known += [provider for one in group for provider in providers.get(one, ())]
            begin += known[:1]
    return dict(sorted(found.items()))


def _names(text: str, separator: str) -> list[str]:
    return [found[0] for part in text.split(separator) if (found := _NAME.match(part.strip()))]
