"""A virtual cluster on one machine: real systemd, sshd, kernel settings and reboots per node, in a closed network."""

from wulf.lab.cluster import Lab, NodeStatus, current, remains, up
from wulf.lab.support import supported

__all__ = ["Lab", "NodeStatus", "current", "remains", "supported", "up"]
