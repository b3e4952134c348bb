"""Mistakes of real administrators, to be planted in a virtual cluster and found by the audit and the tuning.

They are as lasting as in real life: the firewall and the sysctl are in files and outlive a reboot, the MTU and the
offload were set by hand and do not.
"""

from __future__ import annotations

import msgspec

_RULES = 300
#: Nobody in the closed network sends to these ports; every packet is compared with all rules before it is accepted.
_FIREWALL = f"""\
set -e
{{
    echo 'flush ruleset'
    echo 'table inet filter {{'
    echo '    chain input {{'
    echo '        type filter hook input priority filter; policy accept;'
    i=0
    while [ $i -lt {_RULES} ]; do
        echo "        ip saddr 203.0.113.$((i % 250)) tcp dport $((30000 + i)) drop"
        i=$((i + 1))
    done
    echo '        ct state invalid drop'
    echo '    }}'
    echo '}}'
}} >/etc/nftables.conf
systemctl enable --quiet nftables
systemctl restart nftables
"""


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake, and on which nodes it is made."""

    text: str
    #: Shell script that makes it.
    script: str
    #: Numbers of the nodes, from 1.
    nodes: tuple[int, ...]
    #: Whether it takes the driver of a real NIC, which only virtual machines have.
    of_driver: bool = False


MISTAKES = {
    "firewall": Mistake(
        text=f"a firewall of {_RULES} rules with connection tracking",
        script=_FIREWALL,
        nodes=(1, 2),
    ),
    "mtu": Mistake(text="an MTU of 1400 B", script="ip link set dev host0 mtu 1400", nodes=(3,)),
    "offload": Mistake(
        text="segmentation offload switched off", script="ethtool -K host0 tso off gso off", nodes=(4,)
    ),
    "sysctl": Mistake(
        text="receive buffers of 16 KiB",
        script="echo 'net.ipv4.tcp_rmem = 4096 8192 16384' >/etc/sysctl.d/60-memory.conf && "
        "sysctl -q -p /etc/sysctl.d/60-memory.conf",
        nodes=(4,),
    ),
    "moderation": Mistake(
        text="interrupts held back for 1 ms",
        script="ethtool -C host0 rx-usecs 1000",
        nodes=(1, 2),
        of_driver=True,
    ),
}
