"""A virtual cluster on one machine: real systemd, sshd, kernel settings and reboots per node, in a closed network."""

from wulf.node.lab.cluster import Lab, VirtualNode, current, remains, up
from wulf.node.lab.support import supported

__all__ = ["Lab", "VirtualNode", "current", "remains", "supported", "up"]
