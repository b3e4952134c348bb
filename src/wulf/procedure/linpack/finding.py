"""Find HPL on the nodes, and the MPI library that it was built with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wulf.apps import hpl
from wulf.cluster.inventory import ClusterConfig
from wulf.cluster.launcher import launcher_for
from wulf.errors import UsageError
from wulf.nodeset import fold, reasons_text
from wulf.ports import Launcher, Transport
from wulf.probe import build
from wulf.procedure.linpack.launching import ASK_S, HplSite
from wulf.procedure.site import subnet
from wulf.records import NodeRecord
from wulf.records.hpl import HplPlan

#: Below the user's home: a path that other users cannot write to.
DIRECTORY = ".cache/wulf/hpl"
_FIND = 'for name in "$@"; do command -v "$name" && exit; done; exit 1'


def program(transport: Transport, nodes: Sequence[str], wanted: str | None) -> str:
    """Return the path of the program on the nodes.

    Parameters
    ----------
    wanted
        A path or a name; None for xhpl, or else hpcc.

    Raises
    ------
    UsageError
        It is not on all nodes at the same path; says where it is missing, and how to get one.
    """
    words = ["sh", "-c", _FIND, "sh", *([wanted] if wanted else ["xhpl", "hpcc"])]
    answers = transport.run(words, nodes, timeout_s=ASK_S)
    lost = {node: answer.reason for node, answer in answers.items() if answer.status not in ("ok", "exit")}
    if lost:
        raise UsageError(f"HPL: {reasons_text(lost)}")
    places = {
        node: answer.stdout.decode(errors="replace").strip()
        for node, answer in answers.items()
        if answer.status == "ok" and answer.stdout.strip()
    }
    without = [node for node in nodes if node not in places]
    if len(without) == len(nodes):
        raise UsageError(
            hpl.HOW_TO_GET if wanted is None else f"--program {wanted}: it is on none of the nodes"
        )
    if without:
        raise UsageError(
            f"{fold(without)}: no {wanted or 'xhpl and no hpcc'}; all nodes need it at the same path"
        )
    usual, _ = Counter(places.values()).most_common(1)[0]
    others = [node for node, path in places.items() if path != usual]
    if others:
        raise UsageError(
            f"{fold(others)}: it is at {places[others[0]]}, elsewhere at {usual}: name one that all have with --program"
        )
    return usual


def site(
    config: ClusterConfig,
    transport: Transport,
    plan: HplPlan,
    records: Sequence[NodeRecord],
    mpi: str | None,
) -> HplSite:
    """Return how launches are made."""
    first = plan.nodes[0]
    answer = transport.run(["sh", "-c", "cd && pwd"], [first], timeout_s=ASK_S)[first]
    if answer.status != "ok":
        raise UsageError(f"{first}: cannot tell its home directory: {answer.reason}")
    home = answer.stdout.decode(errors="replace").strip().rstrip("/")
    return HplSite(
        transport=transport,
        launcher=_launcher(config, transport, plan, mpi),
        program=plan.program,
        kind=plan.kind,
        nodes=plan.nodes,
        addresses={node: config.address(node) for node in plan.nodes},
        directory=f"{home}/{DIRECTORY}",
        interface=config.interface,
        subnet=subnet(records),
        shared_cpu=config.shares_cpu(*plan.nodes),
        env=plan.env,
    )


def _launcher(config: ClusterConfig, transport: Transport, plan: HplPlan, mpi: str | None) -> Launcher:
    """Return the way to start jobs of the library that the program was built with."""
    family = config.mpi.launcher or _family(transport, plan)
    if mpi or config.mpi.compiler:
        libraries = build.find_mpi(mpi or config.mpi.compiler)
    else:
        libraries = [library for library in build.find_mpi() if library.family == family]
    command = libraries[0].mpirun if libraries and family != "srun" else None
    return launcher_for(family or libraries[0].family, command, config.mpi.arguments)


def _family(transport: Transport, plan: HplPlan) -> str:
    first = plan.nodes[0]
    answer = transport.run(["ldd", plan.program], [first], timeout_s=ASK_S)[first]
    return build.family_of(answer.stdout.decode(errors="replace")) or "openmpi"
