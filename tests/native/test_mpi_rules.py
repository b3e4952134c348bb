"""What the installed MPI libraries do with files of rules, their traps, and whether we notice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.native.conftest import MpiProbe
from wulf.cluster import inventory
from wulf.cluster.launcher import launcher_for
from wulf.cluster.transport import open_transport
from wulf.collectives.halving import Candidate
from wulf.collectives.installed import Library
from wulf.collectives.rules import Block, Rule, Rules
from wulf.probe import build
from wulf.probe.start import Site
from wulf.procedure.mpi_tuning import effect
from wulf.procedure.mpi_tuning.bench import Bench, LaunchError

pytestmark = pytest.mark.mpi
RANKS, SIZE = 8, 64


@pytest.fixture
def bench(mpi_probe: MpiProbe) -> Iterator[Bench]:
    config = inventory.local()
    transport = open_transport(config)
    where = Site(
        transport=transport,
        addresses=dict.fromkeys(config.nodes, "127.0.0.1"),
        net_probes={},
        mpi_probe=str(mpi_probe.path),
        launcher=launcher_for(mpi_probe.family, mpi_probe.launch[0]),
        mpi_env={},
        interface=None,
        subnet=None,
        shares_cpu=lambda *_: True,
    )

    def never(_: object) -> object:
        raise AssertionError("nothing is timed here")

    found = Bench(never, where, config.nodes, {}, seed=1)  # type: ignore[arg-type]
    yield found
    found.clean()
    transport.close()


def mpi(mpi_probe: MpiProbe) -> build.MpiLibrary:
    library = build.identify(mpi_probe.launch[0].replace("mpirun", "mpicc"))
    assert library is not None
    return library


@pytest.fixture
def openmpi(bench: Bench, mpi_probe: MpiProbe) -> Library:
    if mpi_probe.family != "openmpi":
        pytest.skip("about Open MPI")
    return bench.library(mpi(mpi_probe))


@pytest.fixture
def mpich(bench: Bench, mpi_probe: MpiProbe) -> Library:
    if mpi_probe.family != "mpich":
        pytest.skip("about MPICH")
    return bench.library(mpi(mpi_probe))


def way(library: Library, name: str) -> Candidate:
    return next(
        Candidate(number=one.number, name=one.name) for one in library.algorithms["bcast"] if one.name == name
    )


def rules(one: Candidate, ranks: int = RANKS) -> Rules:
    return {"bcast": (Block(ranks=ranks, rules=(Rule(from_bytes=0, algorithm=one.number, fanout=4),)),)}


def state(bench: Bench, library: Library, text: str, one: Candidate, path: str = "") -> str:
    env = library.uses(path or bench.put(text, "rules"))
    return effect.prove(bench, library, text, [("bcast", RANKS, SIZE, one)], env)[0].state


def peers(bench: Bench, env: dict[str, str]) -> int:
    return sum(source == 0 for source, _ in bench.pattern("bcast", RANKS, SIZE, env))


def test_messages_tell_the_algorithm(bench: Bench, openmpi: Library) -> None:
    assert peers(bench, {}) == 4
    assert peers(bench, openmpi.forced("bcast", way(openmpi, "basic_linear").number, 0)) == 7


def test_a_file_of_version_1_is_in_effect(bench: Bench, openmpi: Library) -> None:
    linear = way(openmpi, "basic_linear")
    assert state(bench, openmpi, effect.text_of(openmpi, rules(linear), {}), linear) == "in effect"


def test_a_file_that_says_what_is_done_anyway_is_seen_by_another(bench: Bench, openmpi: Library) -> None:
    usual = way(openmpi, "binomial")
    assert state(bench, openmpi, effect.text_of(openmpi, rules(usual), {}), usual) == "in effect"


@pytest.mark.parametrize(
    "wrong", ["rule-file-version-2\n1\n7\n1\n2\n1\n0 1 0 0\n", '{"rule_file_version": 3}', None]
)
def test_what_this_version_ignores_is_said_not_to_be_in_effect(
    bench: Bench, openmpi: Library, wrong: str | None
) -> None:
    if not openmpi.version.startswith("Open MPI 4."):
        pytest.skip("later versions read these")
    linear = way(openmpi, "basic_linear")
    path = "" if wrong is not None else "/nowhere/rules"
    assert state(bench, openmpi, wrong or "", linear, path) == "not in effect"


def test_the_first_block_serves_smaller_communicators(bench: Bench, openmpi: Library) -> None:
    linear = way(openmpi, "basic_linear")
    path = bench.put(effect.text_of(openmpi, rules(linear, ranks=64), {}), "first-block")
    assert peers(bench, openmpi.uses(path)) == 7


def test_the_library_has_its_whole_tree_inside(mpich: Library) -> None:
    assert mpich.format == "mpich-tree"
    assert {"binomial", "scatter_ring_allgather"} <= {one.name for one in mpich.algorithms["bcast"]}


def test_a_whole_tree_is_in_effect(bench: Bench, mpich: Library) -> None:
    ring = way(mpich, "scatter_ring_allgather")
    assert state(bench, mpich, effect.text_of(mpich, rules(ring), {}), ring) == "in effect"


def test_trees_that_end_a_job_are_refused(bench: Bench, mpich: Library) -> None:
    assert mpich.tree is not None
    partial = {"collective=bcast": mpich.tree["collective=bcast"]}
    unknown = mpich.tree | {"collective=gossip": {}}
    for text in (json.dumps(partial), json.dumps(unknown), "{"):
        env = mpich.uses(bench.put(text, "tree"))
        # A partial tree is missed by the collective that it lacks.
        assert effect.smoke(bench, [("bcast", 2, SIZE), ("allreduce", 2, SIZE)], env)
    assert effect.smoke(bench, [("bcast", 2, SIZE)], mpich.uses("/nowhere/tree"))


def test_wrong_calls_are_said(bench: Bench, openmpi: Library) -> None:
    with pytest.raises(LaunchError, match="sizes from 0"):
        bench.calls("bcast", 2, 1 << 40, {})
