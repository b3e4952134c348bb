"""The program of benches probe-mpi and ops-cost: an operation of the probe and a bare loop in one launch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from bench import common
from bench.ops_cost import OPS
from bench.probe_mpi import ARMS, PAIRED, SOURCE, Visits, visits
from tests.native.conftest import EACH_FAMILY, MpiProbe, probe_of
from tests.native.probe import TIMEOUT_S
from tests.native.programs import required
from tests.tiers import thorough

# That it still compiles beside the probe is seen in `make test`, too.
pytestmark = pytest.mark.mpi
BLOCKS = 12


@pytest.fixture(scope="module", params=EACH_FAMILY)
def paired(request: pytest.FixtureRequest) -> Iterator[MpiProbe]:
    path = common.build_mpi(SOURCE, PAIRED, required(request.param))
    yield MpiProbe(request.param, path, probe_of(request.param).launch)
    shutil.rmtree(path.parent)


def run(paired: MpiProbe, *words: object, op: str = "mpi_pingpong") -> list[Visits]:
    argv = paired.argv(2, op, *map(str, words))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return visits(done.stdout)


@pytest.mark.thorough
def test_every_block_has_a_visit_of_each_loop_in_random_order(paired: MpiProbe) -> None:
    said = run(paired, 200, BLOCKS, 7, 1, 65536)
    assert [one.size for one in said] == [1, 65536]
    for one in said:
        assert one.corrupt == 0, "the bare loop brings the message back, too"
        assert one.iterations >= 2 and all(value > 0 for _, value in one.visits)
        names = [name for name, _ in one.visits]
        blocks = [tuple(names[begin : begin + 3]) for begin in range(0, len(names), 3)]
        assert len(blocks) == BLOCKS and all(set(block) == set(ARMS) for block in blocks)
        assert {block[0] for block in blocks} == set(ARMS), "each of them comes first now and then"
        assert one.ratio("probe", ("bare", "again")) > 0


@pytest.mark.thorough
@pytest.mark.parametrize("op", OPS)
def test_every_operation_has_a_bare_loop_that_leaves_its_messages_as_they_were(
    paired: MpiProbe, op: str
) -> None:
    said = run(paired, 50, 4, 1, 8, 4096, op=op)
    assert [(one.size, one.corrupt) for one in said] == [(8, 0), (4096, 0)]


@pytest.mark.thorough
def test_another_seed_is_another_order(paired: MpiProbe) -> None:
    orders = [[name for name, _ in run(paired, 50, BLOCKS, seed, 1)[0].visits] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize(
    ("ranks", "words", "message"),
    [
        (2, "200 0 1 1", "0 is not a whole number from 1 to"),
        thorough(2, "200 1 x 1", "x is not a whole number"),
        thorough(2, "200 1 1 16777217", "16777217 is not a whole number from 0 to 16777216"),
        thorough(2, "200 1 1", "usage:"),
        (1, "200 1 1 1", "there are 1 ranks: start it with -np 2"),
    ],
)
def test_bad_arguments_end_the_job(paired: MpiProbe, ranks: int, words: str, message: str) -> None:
    argv = paired.argv(ranks, "mpi_pingpong", *words.split())
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.thorough
def test_it_is_no_operation_of_the_probe(mpi_probe: MpiProbe) -> None:
    said = subprocess.run(
        [mpi_probe.path, "--list"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    ).stdout
    assert "mpi_pingpong" in said
    assert "bare" not in said and "paired" not in said
