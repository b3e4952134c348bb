"""What is changed: settings of every kind of access that a virtual node has, and which kinds it has not."""

from __future__ import annotations

import base64
import random

import msgspec

from wulf.base import access
from wulf.node.change.steps import NOTHING, Step

INTERFACE = "host0"
#: Files that stand for those of a kernel with frequencies and idle states, and for its device of latencies.
PLANTED = "/var/lib/planted"
#: Kinds that a virtual node cannot have, and why.
NOT_COVERED = {
    "module": "a virtual interface has no driver that is a module of its own",
    "irq_affinity": "a virtual interface has no interrupts",
}
#: Kinds whose real program works on planted files, as the kernel of a virtual machine has none of them.
ON_PLANTED_FILES = ("turbo", "idle_states", "pm_qos")
#: Settings in a change: mostly one, as one thing is changed at a time; 0 is one of every kind.
_SIZES, _SIZE_WEIGHTS = (1, 2, 3, 5, 0), (60, 20, 12, 6, 2)


class Setting(msgspec.Struct, frozen=True):
    """Something that can be changed, and the values that it may get."""

    kind: str
    target: str
    values: tuple[str, ...]
    interface: str = NOTHING
    #: How often it is taken, beside the others.
    weight: float = 1.0

    def step(self, value: str) -> Step:
        """Return the step that gives it a value."""
        knob = f"{self.kind}.{self.target.rpartition('/')[2]}".replace(" ", "+")
        return Step(knob=knob, kind=self.kind, interface=self.interface, target=self.target, value=value)


def _file(text: str) -> str:
    return "file:644:" + base64.b64encode(text.encode()).decode()


_TSO = "feature.tcp-segmentation-offload feature.generic-segmentation-offload"
_QUEUES = f"/sys/class/net/{INTERFACE}/queues"
POOL = (
    # The daemon takes seconds for each profile.
    Setting("tuned", "/etc/tuned/active_profile", ("network-latency", "powersave"), weight=0.05),
    Setting("service", "planted.service", ("off",)),
    Setting("service", "nftables.service", ("off",), weight=0.5),
    Setting("ethtool", "channels", ("rx 2 tx 2", "rx 1 tx 2"), INTERFACE),
    Setting("ethtool", _TSO, ("off off", "on off"), INTERFACE),
    Setting("ethtool", "feature.generic-receive-offload", ("on", "off"), INTERFACE),
    Setting("link", "mtu", ("1400", "1280"), INTERFACE),
    Setting("route", "rto_min", ("5ms", "20ms"), INTERFACE),
    Setting("host_route", "198.18.0.77", (f"dev {INTERFACE} src 198.18.0.10",)),
    Setting("host_route", "198.18.0.78", (f"via 198.18.0.77 dev {INTERFACE} src 198.18.0.10",)),
    Setting("sysctl", "net.ipv4.tcp_slow_start_after_idle", ("0",)),
    Setting("sysctl", "net.ipv4.tcp_autocorking", ("0",)),
    Setting("sysctl", "net.ipv4.tcp_rmem", ("4096 262144 8388608", "4096 131072 16777216")),
    Setting("sysctl", "net.ipv4.tcp_notsent_lowat", ("131072", "16384")),
    Setting("file", f"/sys/class/net/{INTERFACE}/gro_flush_timeout", ("20000", "50000")),
    Setting("file", f"{_QUEUES}/rx-*/rps_cpus {_QUEUES}/tx-*/xps_cpus", ("1 2", "3 1")),
    Setting("turbo", f"{PLANTED}/no_turbo {PLANTED}/boost", ("0",)),
    Setting("idle_states", f"{PLANTED}/cpu*/cpuidle/C*/disable", ("disabled: C6", "disabled: C1 C6")),
    Setting("pm_qos", f"{PLANTED}/cpu_dma_latency", ("0", "100"), weight=0.5),
    Setting("firewall", "tracking", ("exempt", "notrack"), INTERFACE),
    Setting("mpi_parameter", "btl_tcp_eager_limit", ("131072", "32768")),
    Setting("mpi_parameter", "btl_tcp_sndbuf btl_tcp_rcvbuf", ("262144 0", "0 default")),
    Setting("stored", "/etc/planted.d/deep/new.conf", (_file("x = 1"), "link:/etc/hosts")),
    Setting("stored", "/etc/sysctl.d/98-planted.conf", (_file("net.ipv4.tcp_fin_timeout = 33\n"), "absent")),
    Setting(
        "stored", "/etc/systemd/system/planted-new.service", (_file("[Service]\nExecStart=/bin/true\n"),)
    ),
    Setting("unit", "planted.service", ("disabled",)),
)


def covered() -> list[str]:
    """Return the kinds of access that are changed, in the order in which they are set.

    Raises
    ------
    ValueError
        A kind is neither changed nor said to be not covered.
    """
    settable = [name for name, kind in access.kinds().items() if kind.settable]
    known = {setting.kind for setting in POOL}
    unknown = sorted(set(settable) ^ (known | set(NOT_COVERED)))
    if unknown:
        raise ValueError(
            f"bench/soak/settings.py says nothing of {', '.join(unknown)}, or there is no such kind"
        )
    return [name for name in settable if name in known]


def draw(rng: random.Random) -> list[Step]:
    """Return the steps of a change: mostly of a few settings, sometimes of one of every kind."""
    size = rng.choices(_SIZES, _SIZE_WEIGHTS)[0]
    order = covered()
    if size:
        chosen: list[Setting] = []
        while len(chosen) < size:
            setting = rng.choices(POOL, [one.weight for one in POOL])[0]
            if setting not in chosen:
                chosen.append(setting)
    else:
        # TuneD takes longer than all others together.
        kinds = [kind for kind in order if kind != "tuned"]
        chosen = [rng.choice([one for one in POOL if one.kind == kind]) for kind in kinds]
    chosen.sort(key=lambda one: order.index(one.kind))
    return [one.step(rng.choice(one.values)) for one in chosen]
