"""BLAS libraries that HPL can use, and how they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wulf.base.contracts import Transport
from wulf.base.errors import ProbeError, UsageError
from wulf.base.nodeset import fold
from wulf.base.records.libraries import BlasLibrary, BlasRank
from wulf.node.programs import blas_libraries as apps
from wulf.node.programs import blas_runs
from wulf.stats.estimate import ranking
from wulf.tools.hpl.record import HplLaunch, HplPlan

#: Rates that differ by less do not matter.
MARGIN = 0.02
ALL = "all"


def libraries_of(
    transport: Transport, nodes: Sequence[str], program: str, wanted: str, env: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Return the libraries that a program is proven to use on all nodes, and why others are left out.

    Parameters
    ----------
    wanted
        ``all``, the name of one, or the path of any.
    env
        Variables of every launch; the libraries' own stay beside them.

    Raises
    ------
    UsageError
        There is none that the program can use; says why.
    """
    known, left_out = _known(transport, nodes, wanted)
    found: dict[str, dict[str, str]] = {}
    for library in known:
        try:
            found[library.name] = _proven(transport, nodes, program, library, env)
        except ProbeError as error:
            left_out[library.name] = str(error)
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UsageError(f"--blas {wanted}: {program} can use none of them: {reasons or 'none is installed'}")
    return found, left_out


def _known(
    transport: Transport, nodes: Sequence[str], wanted: str
) -> tuple[list[BlasLibrary], dict[str, str]]:
    if wanted.startswith("/"):
        answers = transport.run(["test", "-e", wanted], nodes, timeout_s=blas_runs.ASK_TIMEOUT_S)
        without = [node for node, answer in answers.items() if answer.status != "ok"]
        if without:
            raise UsageError(f"--blas {wanted}: it is not there on {fold(without)}")
        return apps.named([(wanted, False)]), {}
    known, left_out = blas_runs.installed(transport, nodes)
    if wanted != ALL:
        known = [library for library in known if library.name == wanted]
        if not known:
            raise UsageError(
                f"--blas {wanted}: no library that all nodes have is called so ('wulf bench blas' names them)"
            )
    return known, left_out


def _proven(
    transport: Transport, nodes: Sequence[str], program: str, library: BlasLibrary, env: Mapping[str, str]
) -> dict[str, str]:
    variables: dict[str, str] = {}
    for node in nodes:
        variables = blas_runs.proven(transport, node, program, library, env)
    return variables


def ranked(plan: HplPlan, launches: Sequence[HplLaunch]) -> list[BlasRank]:
    """Return how the libraries compare, round by round, the fastest first; one that has failed is not among them."""
    names = {tuple(sorted({**plan.env, **own}.items())): name for name, own in plan.libraries.items()}
    compared = [launch for launch in launches if launch.phase == "blas"]
    rates: dict[str, list[dict[str, float]]] = {name: [] for name in plan.libraries}
    failed = set()
    for launch in compared:
        name = names[tuple(sorted(launch.env.items()))]
        rates[name].append({"": launch.gflops} if launch.gflops is not None else {})
        if launch.status != "ok":
            failed.add(name)
    whole = min(map(len, rates.values()), default=0)
    sound = {name: rounds[:whole] for name, rounds in rates.items() if name not in failed}
    return ranking.rank(sound, MARGIN) if whole and sound else []
