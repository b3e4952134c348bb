"""CPU, memory, kernel, disks and time of a node. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from wulf.base.output_values import Absent, Unknown, cpu_list, is_count, number, optional, shown, whole
from wulf.base.records import FactValue
from wulf.node.facts.node import Facts, NodeCapture
from wulf.node.facts.tree import Tree

_CPU = "/sys/devices/system/cpu"
#: Seconds of one clock tick in /proc: USER_HZ is 100 on every Linux that this runs on.
_TICK_S = 0.01
#: Columns of /proc/stat's cpu line.
_STEAL = 8
#: A file system that is fuller than this may refuse the next file.
_FULL = 0.95

Read = Callable[[NodeCapture], FactValue]


def add(facts: Facts, capture: NodeCapture) -> None:
    """Collect what a node is, beside its network."""
    for name, read in _FACTS.items():
        facts.read(name, lambda read=read: read(capture))  # type: ignore[misc]


def field(tree: Tree, source: str, key: str, what: str = "") -> str:
    """Return the value of a ``key: value`` or ``key=value`` line.

    Raises
    ------
    Unknown
        When there is no such line.
    """
    for line in tree.lines(source):
        name, mark, value = line.strip().partition(
            ":" if ":" in line and "=" not in line.split(":")[0] else "="
        )
        if mark and name.strip() == key and value.strip().strip('"'):
            return value.strip().strip('"')
    raise Unknown(f"{what or source} does not say")


def one_line(name: str) -> Read:
    """Return the reader of a short file or output."""

    def read(capture: NodeCapture) -> FactValue:
        text = " ".join(capture.tree.text(name).split())
        if not text:
            raise Unknown("empty")
        return text

    return read


def _field(source: str, key: str, what: str = "") -> Read:
    return lambda capture: field(capture.tree, source, key, what)


def _count(source: str, key: str) -> Read:
    return lambda capture: whole(field(capture.tree, source, key), key)


def _kilobytes(source: str, key: str) -> Read:
    return lambda capture: whole(field(capture.tree, source, key).removesuffix("kB"), key, 1024)


def _word(source: str, index: int) -> Read:
    def read(capture: NodeCapture) -> FactValue:
        words = capture.tree.text(source).split()
        if len(words) <= index:
            raise Unknown("empty")
        return number(words[index], source)

    return read


def _hypervisor(capture: NodeCapture) -> FactValue:
    lines = capture.tree.lines("lscpu")
    for line in lines:
        if line.strip().startswith("Hypervisor vendor:"):
            return line.partition(":")[2].strip() or "unnamed"
    if any(line.strip().startswith("CPU(s):") for line in lines):
        return "none"
    raise Unknown("lscpu does not say")


def _cpus_allowed(capture: NodeCapture) -> FactValue:
    text = field(capture.tree, "/proc/self/status", "Cpus_allowed_list", "the kernel")
    cpu_list(text)
    return text


#: Vector instructions for double precision, the widest first: flags of lscpu that must all be there.
_VECTORS = (("avx512f",), ("avx2", "fma"), ("fma4",), ("avx",), ("sve",), ("sse2",), ("asimd",))


def _vector(capture: NodeCapture) -> FactValue:
    """Return the widest vector instructions that a CPU has."""
    flags = set(field(capture.tree, "lscpu", "Flags").split())
    for wanted in _VECTORS:
        if flags.issuperset(wanted):
            return " ".join(wanted)
    raise Unknown("lscpu shows no vector instructions that are known")


def _nominal(capture: NodeCapture) -> FactValue:
    """Return the clock of the time stamp counter [Hz], of x86 CPUs the one that they are sold with.

    The kernel shows twice as many BogoMIPS as it has MHz.
    """
    if "constant_tsc" not in field(capture.tree, "lscpu", "Flags").split():
        raise Unknown("this CPU has no time stamp counter of constant rate")
    return number(field(capture.tree, "lscpu", "BogoMIPS"), "BogoMIPS") / 2 * 1e6


def _container(capture: NodeCapture) -> FactValue:
    return " ".join(capture.tree.text("container").split()) or "none"


def _same(pattern: str, unit: float = 1.0) -> Read:
    """Return the reader of a number that all CPUs should share; the smallest counts."""

    def read(capture: NodeCapture) -> FactValue:
        return min(number(text, path) * unit for path, text in capture.tree.matching(pattern))

    return read


def _idle_states(capture: NodeCapture) -> list[tuple[str, float]]:
    """Return (name, exit latency [µs]) of the idle states that CPU 0 may enter, from the lightest."""
    states = []
    for path, name in capture.tree.matching(f"{_CPU}/cpu0/cpuidle/state*/name"):
        place = path.rpartition("/")[0]
        try:
            forbidden = capture.tree.text(f"{place}/disable") == "1"
        except Unknown:
            forbidden = False
        if not forbidden:
            states.append((name, number(capture.tree.text(f"{place}/latency"), "the exit latency")))
    if not states:
        raise Unknown("the kernel shows no idle state")
    return sorted(states, key=lambda state: state[1])


def _idle_exit(capture: NodeCapture) -> FactValue:
    """Return the exit latency of the deepest idle state that may be entered now [µs]."""
    deepest = _idle_states(capture)[-1][1]
    try:
        return min(deepest, float(pm_qos_us(capture.tree)))
    except Unknown:
        return deepest


def pm_qos_us(tree: Tree) -> int:
    """Return the exit latency that some process allows at most [µs] (/dev/cpu_dma_latency).

    Raises
    ------
    Unknown
        When it cannot be read.
    """
    return whole(tree.text("pm_qos"), "the latency limit")


def _vulnerabilities(capture: NodeCapture) -> FactValue:
    """Return the names of the vulnerabilities against which nothing is done."""
    found = capture.tree.matching(f"{_CPU}/vulnerabilities/*")
    open_ones = [path.rpartition("/")[2] for path, text in found if text.startswith("Vulnerable")]
    return " ".join(open_ones) or "none"


def _steal(capture: NodeCapture) -> FactValue:
    rows = []
    for n in (1, 2):
        words = field_words(capture.tree, f"stat.{n}", "cpu")
        rows.append([number(word, "a counter") for word in words])
    if min(map(len, rows)) < _STEAL:
        raise Unknown("/proc/stat does not say")
    total = sum(rows[1][:_STEAL]) - sum(rows[0][:_STEAL])
    if total <= 0:
        raise Unknown("no time passed between the two readings")
    return max(0.0, rows[1][_STEAL - 1] - rows[0][_STEAL - 1]) / total


def field_words(tree: Tree, source: str, key: str) -> list[str]:
    """Return the words behind `key` on its line.

    Raises
    ------
    Unknown
        When there is no such line.
    """
    for line in tree.lines(source):
        words = line.split()
        if words[0] == key:
            return words[1:]
    raise Unknown(f"{source} does not say")


def _online(capture: NodeCapture) -> FactValue:
    """Return how many CPUs are online: what lscpu counts as CPU(s) has those that are offline, too."""
    try:
        return len(cpu_list(capture.tree.text(f"{_CPU}/online")))
    except Unknown:
        pass  # then lscpu may say
    try:
        return len(cpu_list(field(capture.tree, "lscpu", "On-line CPU(s) list")))
    except Unknown:
        pass  # an lscpu that prints a mask, or all are online
    cpus = whole(field(capture.tree, "lscpu", "CPU(s)"), "CPU(s)")
    if cpus == 0:
        raise Unknown("lscpu shows no CPU")
    return cpus


def _offline(capture: NodeCapture) -> FactValue:
    """Return how many CPUs are there but offline: switched off, or the second threads with nosmt."""
    present = whole(field(capture.tree, "lscpu", "CPU(s)"), "CPU(s)")
    return max(0, present - int(str(_online(capture))))


def _load_per_cpu(capture: NodeCapture) -> FactValue:
    cpus = int(str(_online(capture)))
    return number(capture.tree.text("/proc/loadavg").split(" ")[0], "the load") / cpus


def booted_at(tree: Tree) -> float:
    """Return when the node's first process started [s since 1970]: in a container, not when the kernel did.

    Raises
    ------
    Unknown
        When the node does not say.
    """
    boot = number((field_words(tree, "stat.1", "btime") or [""])[0], "the boot time")
    # The name of the process, in parentheses, may contain anything.
    words = tree.text("/proc/1/stat").rpartition(")")[2].split()
    if len(words) < 20:
        raise Unknown("/proc/1/stat does not say")
    return boot + number(words[19], "the start time") * _TICK_S


def _up_for(capture: NodeCapture) -> FactValue:
    return max(0.0, now(capture.tree) - booted_at(capture.tree))


def now(tree: Tree) -> float:
    """Return the node's own time at the end of the look [s since 1970].

    Raises
    ------
    Unknown
        When the node does not say.
    """
    # A date(1) without %N prints it as it is.
    return number(tree.text("date").replace(".%N", "").replace(".N", ""), "the time")


def _disks(capture: NodeCapture) -> dict[str, float]:
    """Mount point → how full it is (0–1)."""
    found = {}
    for line in capture.tree.output("disks")[0].splitlines():
        words = line.split()
        if len(words) >= 6 and all(map(is_count, words[1:4])):
            used, free = int(words[2]), int(words[3])
            if used + free > 0:
                found[words[5]] = used / (used + free)
    if not found:
        raise Unknown("df shows no file system")
    return found


def _full(capture: NodeCapture) -> FactValue:
    full = [f"{place} {ratio:.0%}" for place, ratio in sorted(_disks(capture).items()) if ratio >= _FULL]
    return "; ".join(full) or "none"


def _clock(capture: NodeCapture) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in capture.tree.lines("clock_sync") if "=" in line)


def _synchronized(capture: NodeCapture) -> FactValue:
    try:
        return field(capture.tree, "chrony", "Leap status") == "Normal"
    except Unknown:
        said = _clock(capture).get("NTPSynchronized")
        if said is None:
            raise Unknown("timedatectl does not say") from None
        return said == "yes"


def _clock_offset(capture: NodeCapture) -> FactValue:
    text = optional(lambda: field(capture.tree, "chrony", "System time"))
    found = re.match(r"([0-9.]+) seconds (slow|fast)", text)
    if not found:
        raise Unknown("chronyc does not say")
    return number(found[1], "the offset")


def _release(capture: NodeCapture) -> FactValue:
    return field(capture.tree, "/etc/os-release", "PRETTY_NAME")


def _newest_kernel(capture: NodeCapture) -> FactValue:
    """Return the newest kernel under /boot, by the time it was written."""
    found = []
    for line in capture.tree.output("changed")[0].splitlines():
        when, _, path = line.partition(" ")
        if path.startswith("/boot/vmlinuz-") and is_count(when) and "rescue" not in path:
            found.append((int(when), path.removeprefix("/boot/vmlinuz-")))
    if not found:
        raise Absent("there is no kernel in /boot")
    return shown(max(found)[1], 100)


def _has_ethtool(capture: NodeCapture) -> FactValue:
    try:
        capture.tree.require("ethtool")
    except Unknown:
        return False
    return True


_FACTS: dict[str, Read] = {
    "system.has_ethtool": _has_ethtool,
    "node.hostname": one_line("hostname"),
    "node.vendor": one_line("/sys/class/dmi/id/sys_vendor"),
    "node.product": one_line("/sys/class/dmi/id/product_name"),
    "node.firmware": one_line("/sys/class/dmi/id/bios_version"),
    "node.container": _container,
    "node.up_s": _up_for,
    "node.load1": _word("/proc/loadavg", 0),
    "node.load_per_cpu": _load_per_cpu,
    "node.full_disks": _full,
    "kernel.release": one_line("kernel"),
    "kernel.newest": _newest_kernel,
    "kernel.arch": one_line("arch"),
    "kernel.os": _release,
    "kernel.libc": one_line("libc"),
    "kernel.cmdline": one_line("/proc/cmdline"),
    "cpu.model": _field("lscpu", "Model name"),
    "cpu.vendor": _field("lscpu", "Vendor ID"),
    "cpu.family": _count("lscpu", "CPU family"),
    "cpu.model_number": _count("lscpu", "Model"),
    "cpu.vector": _vector,
    "cpu.nominal_hz": _nominal,
    "cpu.count": _online,
    "cpu.offline": _offline,
    "cpu.sockets": _count("lscpu", "Socket(s)"),
    "cpu.numa_nodes": _count("lscpu", "NUMA node(s)"),
    "cpu.threads_per_core": _count("lscpu", "Thread(s) per core"),
    "cpu.allowed": _cpus_allowed,
    "cpu.hypervisor": _hypervisor,
    "cpu.frequency_driver": one_line(f"{_CPU}/cpu0/cpufreq/scaling_driver"),
    "cpu.frequency_limit_hz": _same(f"{_CPU}/cpu*/cpufreq/scaling_max_freq", 1000.0),
    "cpu.frequency_max_hz": _same(f"{_CPU}/cpu*/cpufreq/cpuinfo_max_freq", 1000.0),
    "cpu.idle_driver": one_line(f"{_CPU}/cpuidle/current_driver"),
    "cpu.idle_state": lambda capture: _idle_states(capture)[-1][0],
    "cpu.idle_exit_us": _idle_exit,
    "cpu.unmitigated": _vulnerabilities,
    "cpu.steal_ratio": _steal,
    "memory.total_bytes": _kilobytes("/proc/meminfo", "MemTotal"),
    "memory.swap_bytes": _kilobytes("/proc/meminfo", "SwapTotal"),
    "memory.ksm": one_line("/sys/kernel/mm/ksm/run"),
    "time.synchronized": _synchronized,
    "time.offset_s": _clock_offset,
    "time.zone": lambda capture: _clock(capture).get("Timezone", "unknown"),
}
