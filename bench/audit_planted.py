"""Faults planted in a virtual cluster, one at a time: each is found on the right node, and nothing else is.

Every fault is real: the command that plants it is what a careless administrator (or a broken cable's stand-in)
would do on that node. Before the first and after each, the cluster is clean. A finding counts as found when its
check names exactly the node with the fault; any finding that was not there before and that the fault does not
explain counts as extra.

Nodes of the virtual cluster share the host's clock, so the wrong clock is a `date` that is five seconds ahead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from bench.common import Figure, finish
from wulf.base.contracts import Transport
from wulf.base.records import Audit
from wulf.node import lab
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet.look import judge, look

NODES = ("node01", "node02", "node03", "node04")
COMMAND_TIMEOUT_S = 60.0
RULES = (
    "nft add table inet planted; nft add chain inet planted input "
    "'{ type filter hook input priority 0 ; policy accept ; }'; "
)


class Fault(msgspec.Struct, frozen=True):
    """What is done to one node, how it is undone, and which checks must and may notice it."""

    title: str
    node: str
    plant: str
    undo: str
    must: Sequence[str]
    may: Sequence[str] = ()
    #: Program without which it cannot be planted.
    needs: str = "sh"


FAULTS = (
    Fault(
        "smaller MTU on one node",
        "node02",
        "ip link set host0 mtu 1400",
        "ip link set host0 mtu 1500",
        ["same.mtu"],
        ["settings.unkept"],
    ),
    Fault(
        "larger MTU on one node than the path takes",
        "node03",
        "ip link set host0 mtu 9000",
        "ip link set host0 mtu 1500",
        ["nic.mtu_path", "same.mtu"],
        ["settings.unkept"],
    ),
    Fault(
        "300-rule firewall on one node",
        "node03",
        RULES
        + "for i in $(seq 300); do echo add rule inet planted input tcp dport $((20000 + i)) drop; done | nft -f -",
        "nft delete table inet planted",
        ["firewall.long_rules", "same.firewall"],
    ),
    Fault(
        "connection tracking on one node",
        "node02",
        RULES + "nft add rule inet planted input ct state established accept",
        "nft delete table inet planted",
        ["firewall.conntrack", "same.firewall"],
        ["same.knobs"],
    ),
    Fault(
        "irqbalance enabled on one node",
        "node04",
        "systemctl enable --now irqbalance",
        "systemctl disable --now irqbalance",
        ["svc.irqbalance_state", "same.services"],
        # It ends by itself where there are no interrupts to balance.
        ["system.stopped_units", "system.failed_units"],
        needs="irqbalance",
    ),
    Fault(
        "a different sysctl on one node",
        "node01",
        "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
        "sysctl -w net.ipv4.tcp_slow_start_after_idle=1",
        ["same.knobs", "settings.unkept"],
    ),
    Fault(
        "TCP timestamps off (folklore)",
        "node04",
        "sysctl -w net.ipv4.tcp_timestamps=0",
        "sysctl -w net.ipv4.tcp_timestamps=1",
        ["tcp.timestamps_folklore", "same.knobs"],
        ["settings.unkept"],
    ),
    Fault(
        "a service enabled at boot but stopped",
        "node03",
        "printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' "
        ">/etc/systemd/system/planted.service && systemctl daemon-reload && systemctl enable --now planted "
        "&& systemctl stop planted",
        "systemctl disable planted; rm /etc/systemd/system/planted.service; systemctl daemon-reload",
        ["system.stopped_units", "same.services"],
    ),
    Fault(
        "a file that contradicts the live value",
        "node02",
        "echo 'net.ipv4.tcp_sack = 0' >/etc/sysctl.d/99-planted.conf",
        "rm /etc/sysctl.d/99-planted.conf",
        ["settings.contradicted"],
        ["settings.reboot"],
    ),
    Fault(
        "ethtool is missing",
        "node04",
        "mv /usr/sbin/ethtool /usr/sbin/ethtool.away",
        "mv /usr/sbin/ethtool.away /usr/sbin/ethtool",
        ["facts.ethtool"],
        ["same.driver", "same.hardware", "same.link", "same.knobs"],
    ),
    Fault(
        "an unreachable node",
        "node04",
        "(sleep 40; ip link set host0 up) >/dev/null 2>&1 & ip link set host0 down",
        "true",
        ["unreachable"],
    ),
    Fault(
        "a full disk",
        "node01",
        "mkdir -p /var/tmp && mount -t tmpfs -o size=1m tmpfs /var/tmp && head -c 2m /dev/zero >/var/tmp/full; true",
        "umount /var/tmp",
        ["node.full_disk"],
    ),
    Fault(
        "wrong clock (5 s ahead)",
        "node03",
        "printf '#!/bin/sh\\ncase $1 in +%%s.%%N) t=$(/bin/date +%%s.%%N); echo $((${t%%.*} + 5)).${t#*.} ;; "
        '*) exec /bin/date "$@" ;; esac\\n\' >/usr/local/bin/date && chmod 755 /usr/local/bin/date',
        "rm /usr/local/bin/date",
        ["time.offset"],
    ),
    Fault(
        "a name that means another address",
        "node02",
        "cp /etc/hosts /etc/hosts.away; sed -i 's/^198.18.0.12 .*/198.18.0.13 node03/' /etc/hosts",
        "cat /etc/hosts.away >/etc/hosts; rm /etc/hosts.away",
        ["same.names"],
    ),
    Fault(
        "two interfaces in one subnet",
        "node01",
        "ip link add planted0 type veth peer name planted1 && ip addr add 198.18.0.99/15 dev planted0 noprefixroute "
        "&& ip link set planted0 up",
        "ip link del planted0",
        ["network.shared_subnet"],
        ["mpi.free_choice", "same.files"],
    ),
    Fault(
        "docker0 that MPI may choose",
        "node02",
        "ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up",
        "ip link del docker0",
        ["mpi.free_choice"],
        ["same.files"],
    ),
    Fault(
        "a shaped interface",
        "node03",
        "tc qdisc add dev host0 root tbf rate 900mbit burst 256kb latency 20ms",
        "tc qdisc del dev host0 root",
        ["nic.qdisc_shapes", "same.knobs"],
    ),
    Fault(
        "segmentation offload off on one node",
        "node04",
        "ethtool -K host0 tso off",
        "ethtool -K host0 tso on",
        ["nic.tso_gso", "same.knobs"],
    ),
    Fault(
        "another MPI parameter file on one node",
        "node02",
        "cp /etc/openmpi/openmpi-mca-params.conf /var/tmp/away; "
        "echo 'btl_tcp_eager_limit = 1024' >>/etc/openmpi/openmpi-mca-params.conf",
        "cat /var/tmp/away >/etc/openmpi/openmpi-mca-params.conf; rm /var/tmp/away",
        ["same.mpi"],
    ),
)


#: Checks of the moment: the machine that holds all nodes may be busy with something else.
MOMENT = ("node.busy", "cpu.steal", "nic.drops", "tcp.retransmits")


def found(audit: Audit) -> set[tuple[str, str]]:
    """(check, node) of all findings, unreachable nodes and what has become unknown included."""
    pairs = {
        (finding.id, node) for finding in audit.findings if finding.id not in MOMENT for node in finding.nodes
    }
    pairs |= {("unreachable", node) for node in audit.unreachable}
    return pairs


class Cluster:
    """The virtual cluster, its clean audit, and commands on its nodes."""

    def __init__(self, config: inventory.ClusterConfig, transport: Transport) -> None:
        self._config = config
        self._transport = transport
        self.first = self.audit()
        self.clean = found(self.first)

    def audit(self) -> Audit:
        """Look and judge."""
        return judge(look(self._config, list(NODES)), "hpc")

    def has(self, program: str) -> bool:
        """Whether the nodes have a program."""
        argv = ["sh", "-c", f"command -v {program}"]
        return self._transport.run(argv, NODES[:1], timeout_s=COMMAND_TIMEOUT_S)[NODES[0]].status == "ok"

    def run(self, node: str, text: str) -> None:
        """Run shell text on a node."""
        answer = self._transport.run(["sh", "-c", text], [node], timeout_s=COMMAND_TIMEOUT_S)[node]
        if answer.status not in ("ok", "unreachable", "timeout"):
            raise SystemExit(f"bench: {answer.reason}\n{answer.stderr.decode(errors='replace')}")


def try_fault(cluster: Cluster, fault: Fault) -> tuple[bool, set[tuple[str, str]]]:
    """Plant one fault, look, undo it; return whether it was found, and what else was."""
    cluster.run(fault.node, fault.plant)
    try:
        new = found(cluster.audit()) - cluster.clean
    finally:
        cluster.run(fault.node, fault.undo)
    wanted = {(check, fault.node) for check in fault.must}
    explained = wanted | {(check, fault.node) for check in fault.may}
    if "unreachable" in fault.must:
        wait_for(cluster, fault.node)
    return wanted <= new, new - explained


def wait_for(cluster: Cluster, node: str) -> None:
    """Wait until a node answers again."""
    for _ in range(12):
        if ("unreachable", node) not in found(cluster.audit()):
            return
    raise SystemExit(f"bench: {node} did not come back")


def main(arguments: list[str]) -> int:
    """Entry point."""
    print(__doc__)
    faults = FAULTS[::4] if "--quick" in arguments else FAULTS
    was_up = lab.current() is not None
    raised = lab.current() or lab.up(len(NODES))[0]
    config = inventory.parse(raised.cluster_toml(), "lab")
    transport = open_transport(config)
    missed = extra = 0
    try:
        cluster = Cluster(config, transport)
        print(f"clean cluster: {len(cluster.clean)} findings, on all nodes alike\n")
        print("| planted | node | found by | also reported |\n|---|---|---|---|")
        for fault in faults:
            if not cluster.has(fault.needs):
                print(f"| {fault.title} | {fault.node} | not tried: {fault.needs} is not installed | |")
                continue
            ok, others = try_fault(cluster, fault)
            missed += not ok
            extra += len(others)
            said = ", ".join(f"`{check}`" for check in fault.must) if ok else "**missed**"
            rest = ", ".join(f"`{check}` on {node}" for check, node in sorted(others)) or "nothing"
            print(f"| {fault.title} | {fault.node} | {said} | {rest} |", flush=True)
        left = found(cluster.audit()) ^ cluster.clean
        print(
            f"\nafter all was undone: {len(left)} findings differ from the clean cluster {sorted(left) or ''}\n"
        )
    finally:
        transport.close()
        if not was_up:
            raised.down()
    return finish(
        "audit-planted",
        [
            Figure(name=f"missed-of-{len(faults)}", value=missed, goal=0),
            Figure(name="else-reported", value=extra, goal=0),
            Figure(name="left-behind", value=len(left), goal=0),
        ],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
