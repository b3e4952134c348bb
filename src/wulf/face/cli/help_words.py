"""Words in the helps of verbs that are defined where the work is done.

They stand here again, because to import that takes longer than all the rest of a help; `tests/unit/test_startup.py`
says that they are the same.
"""

from __future__ import annotations

from typing import Literal

#: `wulf.node.lab.vm.machine.Nic`.
Nic = Literal["igb", "e1000e", "virtio"]
#: Names of `wulf.node.lab.planted_faults.MISTAKES`.
MISTAKE_NAMES = ("firewall", "mtu", "offload", "sysctl", "moderation")
#: Titles of `wulf.base.importing.formats.FORMATS`.
FORMAT_TITLES = (
    "HPC Challenge",
    "HPL",
    "Intel MPI Benchmarks",
    "OSU Micro-Benchmarks",
    "mpptest",
    "sockperf",
    "qperf",
    "netperf",
    "iperf3",
    "NetPIPE",
    "nccl-tests",
    "perftest",
)
