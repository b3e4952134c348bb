"""What the installed MPI libraries do with files of rules, their traps, and whether we notice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.native.conftest import probe_of
from tests.native.programs import required
from tests.tiers import mostly_thorough
from wulf.node.cluster import inventory
from wulf.node.cluster.launcher import launcher_for
from wulf.node.cluster.transport import open_transport
from wulf.node.probe.start import Site
from wulf.tools.collectives import effect
from wulf.tools.collectives.bench import Bench, LaunchError
from wulf.tools.collectives.rules.decision import Found, decide
from wulf.tools.collectives.rules.halving import Candidate
from wulf.tools.collectives.rules.installed import Library
from wulf.tools.collectives.rules.rules import Block, Rule, Rules

pytestmark = pytest.mark.mpi
RANKS, SIZE = 8, 64
#: Those of MPICH are fewer: they take a processor also while they wait.
FEW = 4
#: What a test is about.
OPENMPI = pytest.mark.parametrize("bench", ["openmpi"], indirect=True)
MPICH = pytest.mark.parametrize("bench", ["mpich"], indirect=True)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    mpi_probe = probe_of(request.param)
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


@pytest.fixture
def openmpi(bench: Bench) -> Library:
    return bench.library(required("openmpi"))


@pytest.fixture
def mpich(bench: Bench) -> Library:
    return bench.library(required("mpich"))


def way(library: Library, name: str, collective: str = "bcast") -> Candidate:
    return next(
        Candidate(number=one.number, name=one.name)
        for one in library.algorithms[collective]
        if one.name == name
    )


def rules(one: Candidate, ranks: int = RANKS) -> Rules:
    return {"bcast": (Block(ranks=ranks, rules=(Rule(from_bytes=0, algorithm=one.number, fanout=4),)),)}


def at_one_size(library: Library, collective: str, one: Candidate, size: int = SIZE) -> Rules:
    """Return rules that say an algorithm for one size and number of ranks alone."""
    found = [Found(size_bytes=size, choice=one)]
    return decide({collective: {ranks_of(library): found}}, library.fanout, library.counted)


def ranks_of(library: Library) -> int:
    return FEW if library.family == "mpich" else RANKS


def state(bench: Bench, library: Library, text: str, one: Candidate, path: str = "") -> str:
    env = library.uses(path or bench.put(text, "rules"))
    ranks = ranks_of(library)
    return effect.prove(bench, library, rules(one, ranks), [("bcast", ranks, SIZE, one)], env)[0].state


def peers(bench: Bench, env: dict[str, str]) -> int:
    return sum(source == 0 for source, _ in bench.pattern("bcast", RANKS, SIZE, env))


@OPENMPI
def test_messages_tell_the_algorithm(bench: Bench, openmpi: Library) -> None:
    assert peers(bench, {}) == 4
    assert peers(bench, openmpi.forced("bcast", way(openmpi, "basic_linear").number, 0)) == 7


@OPENMPI
def test_a_file_of_version_1_is_in_effect(bench: Bench, openmpi: Library) -> None:
    linear = way(openmpi, "basic_linear")
    assert state(bench, openmpi, effect.text_of(openmpi, rules(linear), {}), linear) == "in effect"


@OPENMPI
@pytest.mark.thorough
def test_a_file_that_says_what_is_done_anyway_is_seen_by_another(bench: Bench, openmpi: Library) -> None:
    usual = way(openmpi, "binomial")
    assert state(bench, openmpi, effect.text_of(openmpi, rules(usual), {}), usual) == "in effect"


@pytest.mark.parametrize(
    "wrong",
    mostly_thorough(
        ["rule-file-version-2\n1\n7\n1\n2\n1\n0 1 0 0\n", '{"rule_file_version": 3}', None], None
    ),
)
@OPENMPI
def test_what_this_version_ignores_is_said_not_to_be_in_effect(
    bench: Bench, openmpi: Library, wrong: str | None
) -> None:
    if not openmpi.version.startswith("Open MPI 4."):
        pytest.skip("later versions read these")
    linear = way(openmpi, "basic_linear")
    path = "" if wrong is not None else "/nowhere/rules"
    assert state(bench, openmpi, wrong or "", linear, path) == "not in effect"


@OPENMPI
def test_the_first_block_serves_smaller_communicators(bench: Bench, openmpi: Library) -> None:
    linear = way(openmpi, "basic_linear")
    path = bench.put(effect.text_of(openmpi, rules(linear, ranks=64), {}), "first-block")
    assert peers(bench, openmpi.uses(path)) == 7


@pytest.mark.parametrize("collective", ["allgather", "allgatherv", "gather", "scatter"])
@OPENMPI
@pytest.mark.thorough
def test_rules_of_one_size_are_in_effect_at_that_size_alone(
    bench: Bench, openmpi: Library, collective: str
) -> None:
    """What is written is what the library compares; no call of the probe's own hides what is done."""
    default = {size: bench.pattern(collective, RANKS, size, {}) for size in (SIZE // 2, SIZE, SIZE * 2)}
    for one in openmpi.algorithms[collective]:
        forced = openmpi.forced(collective, one.number, 0)
        candidate = Candidate(number=one.number, name=one.name)
        try:
            seen = bench.pattern(collective, RANKS, SIZE, forced)
        except LaunchError:
            continue  # for two ranks alone
        if seen != default[SIZE]:
            break
    else:
        pytest.skip("all algorithms send the same messages")
    said = at_one_size(openmpi, collective, candidate)
    env = openmpi.uses(bench.put(effect.text_of(openmpi, said, {}), "one-size"))
    (found,) = effect.prove(bench, openmpi, said, [(collective, RANKS, SIZE, candidate)], env)
    assert found.state == "in effect", found.evidence
    for size in (SIZE // 2, SIZE * 2):
        assert bench.pattern(collective, RANKS, size, env) == default[size]


@OPENMPI
@pytest.mark.thorough
def test_a_scan_is_not_told_by_its_size(bench: Bench, openmpi: Library) -> None:
    """The size of its type and the ranks are compared, not the count: what is said acts on every size."""
    assert not openmpi.tells_sizes("scan")
    (linear, other) = openmpi.algorithms["scan"]
    block = Block(
        ranks=RANKS,
        rules=(
            Rule(from_bytes=0, algorithm=linear.number),
            Rule(from_bytes=8 * RANKS, algorithm=other.number),
        ),
    )
    env = openmpi.uses(bench.put(effect.text_of(openmpi, {"scan": (block,)}, {}), "scan"))
    for size in (8, 4096):
        forced = {
            one.name: bench.pattern("scan", RANKS, size, openmpi.forced("scan", one.number, 0))
            for one in (linear, other)
        }
        assert forced[linear.name] != forced[other.name]
        assert bench.pattern("scan", RANKS, size, env) == forced[other.name]


@OPENMPI
def test_the_file_wins_over_an_algorithm_that_is_forced(bench: Bench, openmpi: Library) -> None:
    if not openmpi.version.startswith("Open MPI 4."):
        pytest.skip("later versions take what is forced")
    linear, usual = way(openmpi, "basic_linear"), way(openmpi, "binomial")
    env = openmpi.uses(bench.put(effect.text_of(openmpi, rules(linear), {}), "wins"))
    assert peers(bench, env | openmpi.forced("bcast", usual.number, 0)) == 7


@MPICH
def test_the_library_has_its_whole_tree_inside(mpich: Library) -> None:
    assert mpich.format == "mpich-tree"
    assert {"binomial", "scatter_ring_allgather"} <= {one.name for one in mpich.algorithms["bcast"]}


@MPICH
def test_a_whole_tree_is_in_effect(bench: Bench, mpich: Library) -> None:
    ring = way(mpich, "scatter_ring_allgather")
    assert state(bench, mpich, effect.text_of(mpich, rules(ring, FEW), {}), ring) == "in effect"


@MPICH
@pytest.mark.thorough
def test_a_rule_that_is_not_reached_is_not_in_effect(bench: Bench, mpich: Library) -> None:
    ring = way(mpich, "scatter_ring_allgather")
    binomial = way(mpich, "binomial")
    said = rules(ring, FEW)
    env = mpich.uses(bench.put(effect.text_of(mpich, said, {}), "not-reached"))
    # What is forced wins over the tree, which is read all the same.
    forced = env | mpich.forced("bcast", binomial.number, 0)
    assert effect.prove(bench, mpich, said, [("bcast", FEW, SIZE, ring)], forced)[0].state == "not in effect"


@pytest.mark.parametrize("collective", ["allgather", "bcast"])
@MPICH
@pytest.mark.thorough
def test_a_tree_of_one_size_is_in_effect(bench: Bench, mpich: Library, collective: str) -> None:
    sizes = (SIZE // 2, SIZE, SIZE * 2)
    for one in mpich.algorithms[collective]:
        candidate = Candidate(number=one.number, name=one.name)
        if not effect.smoke(bench, [(collective, FEW, SIZE)], mpich.forced(collective, one.number, 0)):
            break
    said = at_one_size(mpich, collective, candidate)
    env = mpich.uses(bench.put(effect.text_of(mpich, said, {}), "one-size"))
    assert not effect.smoke(bench, [(collective, FEW, size) for size in sizes], env)
    (found,) = effect.prove(bench, mpich, said, [(collective, FEW, SIZE, candidate)], env)
    assert found.state == "in effect", found.evidence
    # In its very place: at other sizes what cannot be done is not chosen.
    broken = effect.misfit(mpich, said, (collective, FEW, SIZE, candidate), FEW)
    others = [(collective, FEW, size) for size in (SIZE // 2, SIZE * 2)]
    assert not effect.smoke(bench, others, mpich.uses(bench.put(broken, "beside")))


@MPICH
@pytest.mark.thorough
def test_trees_that_end_a_job_are_refused(bench: Bench, mpich: Library) -> None:
    assert mpich.tree is not None
    partial = {"collective=bcast": mpich.tree["collective=bcast"]}
    unknown = mpich.tree | {"collective=gossip": {}}
    own = mpich.tree["collective=allgather"]
    asks = mpich.tree | {"collective=allgather": {"avg_msg_size<=8": own, "avg_msg_size=any": own}}
    for text in (json.dumps(partial), json.dumps(unknown), "{", json.dumps(asks)):
        env = mpich.uses(bench.put(text, "tree"))
        # A partial tree is missed by the collective that it lacks, the mean size by one that has none.
        cells = [(one, 2, SIZE) for one in ("bcast", "allreduce", "allgather")]
        assert effect.smoke(bench, cells, env)
    assert effect.smoke(bench, [("bcast", 2, SIZE)], mpich.uses("/nowhere/tree"))


@OPENMPI
def test_wrong_calls_are_said(bench: Bench, openmpi: Library) -> None:
    with pytest.raises(LaunchError, match="sizes from 0"):
        bench.calls("bcast", 2, 1 << 40, {})
