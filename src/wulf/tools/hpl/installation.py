"""Find HPL on the nodes, and the MPI library that it was built with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wulf.base.contracts import Launcher, Say, Transport
from wulf.base.errors import UsageError
from wulf.base.native import build
from wulf.base.nodeset import fold, reasons_text
from wulf.base.records import NodeRecord
from wulf.node.cluster.inventory import ClusterConfig
from wulf.node.cluster.launcher import families
from wulf.node.cluster.launcher.srun import Srun
from wulf.node.fleet import preparation as cluster_site
from wulf.tools.hpl import program as hpl
from wulf.tools.hpl.launching import ASK_S, HplSite
from wulf.tools.hpl.record import HplPlan

#: Below the user's home, a path that other users cannot write to: a directory for each run.
DIRECTORY = ".cache/wulf/hpl"
#: Launches are in a directory of their own: a path that begins here is made a whole one.
_FIND = """
for name in "$@"; do
    path=$(command -v "$name") || continue
    case $path in
        /*) ;;
        */*) path=$PWD/$path ;;
    esac
    printf '%s\\n' "$path"
    exit
done
exit 1
"""


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
    run_id: str,
    say: Say,
) -> HplSite:
    """Return how launches are made.

    Parameters
    ----------
    run_id
        Name of the directory that they run in.

    Raises
    ------
    UsageError
        The first node has no home directory, srun is to start the jobs and this is no allocation, or the program is
        built with another MPI library than the one that was asked for.
    BuildError
        There is no MPI library that was asked for.
    """
    first = plan.nodes[0]
    answer = transport.run(["sh", "-c", "cd && pwd"], [first], timeout_s=ASK_S)[first]
    if answer.status != "ok":
        raise UsageError(f"{first}: cannot tell its home directory: {answer.reason}")
    home = answer.stdout.decode(errors="replace").strip().rstrip("/")
    return HplSite(
        transport=transport,
        launcher=_launcher(config, transport, plan, say),
        program=plan.program,
        kind=plan.kind,
        nodes=plan.nodes,
        addresses={node: config.address(node) for node in plan.nodes},
        directory=f"{home}/{DIRECTORY}/{run_id}",
        interface=config.interface,
        subnet=cluster_site.subnet(records),
        shared_cpu=config.shares_cpu(*plan.nodes),
        env=plan.env,
    )


def _launcher(config: ClusterConfig, transport: Transport, plan: HplPlan, say: Say) -> Launcher:
    """Return the way to start jobs: of the library that is asked for, or else the program was built with."""
    library = _library(config, transport, plan)
    return cluster_site.mpi_launcher(config, library, transport, plan.nodes, say)


def _library(config: ClusterConfig, transport: Transport, plan: HplPlan) -> build.MpiLibrary:
    asked = plan.mpi or config.mpi.compiler
    linked = _family(transport, plan)
    if asked:
        library = build.find_mpi(asked)[0]
        if linked and linked != library.family:
            raise UsageError(
                f"{plan.program} is built with {linked}: {library.family} cannot start its ranks; "
                f"name one that is built with {library.family} with --program"
            )
        return library
    launcher = config.mpi.launcher
    family = families(launcher)[0] if launcher and launcher != Srun.name else linked or "openmpi"
    # A library without its compiler can start jobs all the same.
    alone = build.MpiLibrary(compiler="mpicc", family=family, version=family)
    return next((library for library in build.find_mpi() if library.family == family), alone)


def _family(transport: Transport, plan: HplPlan) -> str | None:
    """Return which family the program is linked with; None where the linker does not say."""
    first = plan.nodes[0]
    answer = transport.run(["ldd", plan.program], [first], timeout_s=ASK_S)[first]
    return build.family_of(answer.stdout.decode(errors="replace"))
