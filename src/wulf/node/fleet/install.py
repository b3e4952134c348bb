"""Put the probes on the nodes; a node on which one does not run is left out, and says why."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from wulf.base.contracts import Launcher, MpiJob, NodeResult, Say, Transport
from wulf.base.native.build import Probe
from wulf.base.text import count
from wulf.node.cluster.config import ClusterConfig

PUT_TIMEOUT_S = 60.0
ASK_TIMEOUT_S = 20.0
#: Directory of the probes below the user's home on the nodes: a path that other users cannot write to.
PROBE_DIRECTORY = ".cache/wulf/probe"

#: Node → why not, in words that name it.
Reasons = dict[str, str]


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Where the probes are."""

    #: Node → path of the socket probe there.
    net: dict[str, str]
    #: Path of the MPI probe, the same on all nodes that have it; None without MPI.
    mpi: str | None
    #: Nodes without a socket probe that runs.
    lacks_net: Reasons
    #: Nodes that cannot take part in an MPI job.
    lacks_mpi: Reasons


def install(
    config: ClusterConfig,
    transport: Transport,
    probes: Sequence[Probe],
    launcher: Launcher | None,
    nodes: Sequence[str],
    say: Say,
) -> Places:
    """Put every probe on every node that does not have it.

    Parameters
    ----------
    probes
        The socket probe, that with MPI if it is wanted, or another program with MPI alone; none where only commands
        are measured.
    launcher
        How the MPI job is started; None without MPI.
    nodes
        Those that answer.
    """
    if not probes:
        return Places(net={}, mpi=None, lacks_net={}, lacks_mpi={})
    net = next((probe for probe in probes if probe.mpi is None), None)
    mpi = next((probe for probe in probes if probe.mpi is not None), None)
    if config.transport == "local":
        here = dict.fromkeys(nodes, str(net.path)) if net is not None else {}
        return Places(net=here, mpi=str(mpi.path) if mpi else None, lacks_net={}, lacks_mpi={})
    say(f"putting the probe on {count(len(nodes), 'node')}")
    homes, homeless = _homes(transport, nodes)
    places, lacks_net = _everywhere(transport, net, homes) if net is not None else ({}, Reasons())
    if mpi is None or launcher is None:
        return Places(net=places, mpi=None, lacks_net=homeless | lacks_net, lacks_mpi={})
    target, lacks_mpi = _same_path(transport, mpi, homes)
    lacks_mpi |= _without_launcher(transport, launcher, [node for node in homes if node not in lacks_mpi])
    return Places(net=places, mpi=target, lacks_net=homeless | lacks_net, lacks_mpi=homeless | lacks_mpi)


def install_program(
    config: ClusterConfig, transport: Transport, program: Probe, nodes: Sequence[str]
) -> tuple[str | None, Reasons]:
    """Put a program on every node that does not have it, at the same path everywhere.

    Returns
    -------
    tuple
        The path, None where no node can take it; and the nodes on which it does not run, with the reasons.
    """
    if config.transport == "local":
        return str(program.path), {}
    homes, homeless = _homes(transport, nodes)
    target, lacking = _same_path(transport, program, homes)
    return target, homeless | lacking


def _homes(transport: Transport, nodes: Sequence[str]) -> tuple[dict[str, str], Reasons]:
    answers = transport.run(["sh", "-c", "cd && pwd"], nodes, timeout_s=ASK_TIMEOUT_S)
    lost = _failed(answers, "cannot tell its home directory")
    homes = {
        node: answer.stdout.decode("utf-8", "replace").strip().rstrip("/")
        for node, answer in answers.items()
        if node not in lost
    }
    return homes, lost


def _everywhere(
    transport: Transport, probe: Probe, homes: Mapping[str, str]
) -> tuple[dict[str, str], Reasons]:
    """Put a probe on all nodes, below the home directory that each of them has."""
    groups: dict[str, list[str]] = defaultdict(list)
    for node, home in homes.items():
        groups[_target(home, probe)].append(node)
    places: dict[str, str] = {}
    lost = Reasons()
    for target, nodes in groups.items():
        lost |= _put(transport, probe, target, nodes)
        places |= dict.fromkeys(nodes, target)
    return places, lost


def _same_path(transport: Transport, probe: Probe, homes: Mapping[str, str]) -> tuple[str | None, Reasons]:
    """Put a probe where all ranks of an MPI job find it: below the home directory that most nodes have."""
    if not homes:
        return None, {}
    usual = Counter(homes.values()).most_common(1)[0][0]
    lost = {
        node: f"{node}: its home directory is {home}, that of other nodes {usual}: MPI needs the same path everywhere"
        for node, home in homes.items()
        if home != usual
    }
    target = _target(usual, probe)
    return target, lost | _put(transport, probe, target, [node for node in homes if node not in lost])


def _target(home: str, probe: Probe) -> str:
    return f"{home}/{PROBE_DIRECTORY}/{probe.path.name}-{probe.digest}"


def _put(transport: Transport, probe: Probe, target: str, nodes: Sequence[str]) -> Reasons:
    """Put a probe where it is missing and try it; return the nodes on which it does not run."""
    digest = _digest(probe.path)
    there = transport.run(["sha256sum", target], nodes, timeout_s=ASK_TIMEOUT_S)
    lacking = [node for node in nodes if not there[node].stdout.startswith(digest.encode())]
    lost = Reasons()
    if lacking:
        lost = _failed(
            transport.put(probe.path, target, lacking, timeout_s=PUT_TIMEOUT_S), f"cannot write {target}"
        )
    tried = [node for node in nodes if node not in lost]
    hint = "; is the MPI library the same as on this machine?" if probe.mpi else ""
    answers = transport.run(_trial(target), tried, timeout_s=ASK_TIMEOUT_S)
    return lost | _failed(answers, f"{probe.path.name} does not run there{hint}")


def _trial(target: str) -> list[str]:
    """Return a command that succeeds where a program runs, or a library can be loaded into one."""
    if ".so" not in target:
        return [target, "--version"]
    # The loader goes on without a library that it cannot load, and says so.
    return ["sh", "-c", 'said=$(LD_PRELOAD=$1 true 2>&1); echo "$said" >&2; [ -z "$said" ]', "sh", target]


def _without_launcher(transport: Transport, launcher: Launcher, nodes: Sequence[str]) -> Reasons:
    """Return the nodes that cannot start an MPI job."""
    if not nodes:
        return {}
    job = MpiJob(
        program="true",
        arguments=[],
        hosts=[(nodes[0], nodes[0])],
        interface=None,
        subnet=None,
        shared_cpu=False,
        env={},
    )
    program = launcher.argv(job)[0]
    look = ["sh", "-c", 'command -v "$1" >/dev/null', "sh", program]
    answers = transport.run(look, nodes, timeout_s=ASK_TIMEOUT_S)
    return _failed(answers, f"there is no {program} that starts MPI jobs")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _failed(answers: Mapping[str, NodeResult], what: str) -> Reasons:
    return {node: f"{answer.reason}: {what}" for node, answer in answers.items() if answer.status != "ok"}
