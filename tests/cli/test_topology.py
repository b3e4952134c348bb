"""`wulf audit topology` as a user types it; what it does to nodes is in tests/unit/test_routing.py and tests/lab."""

import json

import pytest

from tests.cli.command import wulf

#: Eight nodes, a torus of four by two.
RING = [(1, 2), (2, 3), (3, 4), (4, 1), (5, 6), (6, 7), (7, 8), (8, 5), (1, 5), (2, 6), (3, 7), (4, 8)]


@pytest.fixture
def cluster(tmp_path):
    links = "".join(f'  ["node{one:02d}", "node{other:02d}"],\n' for one, other in RING)
    (tmp_path / "cluster.toml").write_text(f'[cluster]\nnodes = "node[01-09]"\nlinks = [\n{links}]\n')
    return tmp_path


def links_between(placement, pairs):
    there = {frozenset((f"node{one:02d}", f"node{other:02d}")) for one, other in RING}
    return all(frozenset((placement[one], placement[other])) in there for one, other in pairs)


def test_the_links_and_the_largest_shapes_are_shown(cluster):
    done = wulf(cluster, "audit", "topology")
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 direct links between 8 of 9 nodes:\n  node01 – node02\n" in done.stdout
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if ":" in line.split()[0]}
    assert {"ring:8", "mesh:4x2", "mesh:2x2x2", "torus:4x2", "hypercube:3"} <= set(rows)
    assert all(len(rows[shape]) == 9 for shape in ("ring:8", "torus:4x2"))


def test_as_json(cluster):
    found = json.loads(wulf(cluster, "audit", "topology", "--json").stdout)
    assert len(found["links"]) == 12
    ring = next(one for one in found["embeddings"] if one["shape"] == "ring:8")
    assert ring["state"] == "found"
    assert links_between(ring["placement"], [(rank, (rank + 1) % 8) for rank in range(8)])


def test_a_placement_is_a_hostfile(cluster):
    done = wulf(cluster, "audit", "topology", "--embed", "torus:4x2")
    assert (done.returncode, done.stderr) == (0, "")
    placement = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert sorted(placement) == [f"node{number:02d}" for number in range(1, 9)]
    pairs = [(2 * x, 2 * x + 1) for x in range(4)] + [
        (2 * x + y, (2 * x + 2) % 8 + y) for x in range(4) for y in range(2)
    ]
    assert links_between(placement, pairs)


def test_why_there_is_none(cluster):
    done = wulf(cluster, "audit", "topology", "--embed", "torus:3x3")
    assert (done.returncode, done.stdout) == (3, "")
    assert "torus:3x3: it has 9 ranks, and direct links join 8 nodes" in done.stderr
    done = wulf(cluster, "audit", "topology", "--embed", "ring:7", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["state"] == "none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--embed", "star:4"], "'star:4' is not a shape"),
        (["--embed", "ring:4", "--routes", "1"], "one at a time"),
        (["--dry-run"], "--dry-run belongs to --routes"),
        (["--routes", "1", "--dry-run", "--json"], "has no --json"),
        (["--routes", "0"], "--routes 0: how many links"),
        (["--routes", "1", "--confirm-within", "1s"], "from 5s to 1h"),
        (["--within", "soon"], "'soon'"),
    ],
)
def test_wrong_usage_is_explained(cluster, words, said):
    done = wulf(cluster, "audit", "topology", *words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_cluster_without_links_says_where_they_are_named(tmp_path):
    (tmp_path / "cluster.toml").write_text('[cluster]\nnodes = "node[01-02]"\n')
    done = wulf(tmp_path, "audit", "topology")
    assert done.returncode == 2
    assert "cluster.toml has no direct links: [cluster] links names them" in " ".join(done.stderr.split())


def test_routes_are_not_for_sudo(cluster):
    text = (cluster / "cluster.toml").read_text()
    (cluster / "cluster.toml").write_text(f'{text}[change]\nuser = "hpc"\nbecome = "sudo"\n')
    done = wulf(cluster, "audit", "topology", "--routes", "1")
    assert done.returncode == 1
    assert "routes are not set through sudo" in " ".join(done.stderr.split())
