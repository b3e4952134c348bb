"""Files of rules: what is written is read again, the library's traps, what a decision says of sizes between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.tools.collectives import effect
from wulf.tools.collectives.rules import classic, installed, json3, mpich_tree
from wulf.tools.collectives.rules.decision import Found, decide, for_all_sizes
from wulf.tools.collectives.rules.halving import Candidate, halve
from wulf.tools.collectives.rules.rules import Block, Rule, RuleFileError, Rules, chosen, counted_bytes

GOLDEN = Path(__file__).parents[1] / "golden" / "mpi"


def text(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8")


def rule(most_requests: int) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        from_bytes=st.just(0),
        algorithm=st.integers(0, 9),
        fanout=st.integers(0, 8),
        segment_bytes=st.integers(0, 1 << 20),
        max_requests=st.integers(0, most_requests),
    )


@st.composite
def rule_sets(draw: st.DrawFn, most_requests: int = 0) -> Rules:
    found = {}
    for name in draw(st.lists(st.sampled_from(classic.COLLECTIVES), unique=True, max_size=3)):
        blocks = []
        for ranks in sorted(draw(st.sets(st.integers(1, 4096), min_size=1, max_size=3))):
            sizes = sorted({0, *draw(st.sets(st.integers(1, 1 << 24), max_size=3))})
            rules = [draw(rule(most_requests)) for _ in sizes]
            blocks.append(
                Block(
                    ranks=ranks,
                    rules=tuple(
                        Rule(
                            from_bytes=size,
                            algorithm=one.algorithm,
                            fanout=one.fanout,
                            segment_bytes=one.segment_bytes,
                            max_requests=one.max_requests,
                        )
                        for size, one in zip(sizes, rules, strict=True)
                    ),
                )
            )
        found[name] = tuple(blocks)
    return found


@given(rule_sets())
def test_version_1_reads_as_it_was_written(rules: Rules) -> None:
    assert classic.read(classic.write(rules, 1)) == rules


@given(rule_sets(most_requests=64))
def test_version_2_reads_as_it_was_written(rules: Rules) -> None:
    assert classic.read(classic.write(rules, 2)) == rules


@given(rule_sets(most_requests=64))
def test_json_reads_as_it_was_written(rules: Rules) -> None:
    assert json3.read(json3.write(rules), {}) == rules


def test_version_1_cannot_limit_requests() -> None:
    rules = {"alltoall": (Block(ranks=2, rules=(Rule(from_bytes=0, algorithm=4, max_requests=8),)),)}
    with pytest.raises(RuleFileError, match="version 1"):
        classic.write(rules, 1)


def test_the_example_of_version_1_is_read() -> None:
    found = classic.read(text("ompi_rules_v1_bcast.conf"))
    assert found == {
        "bcast": (
            Block(
                ranks=2,
                rules=(
                    Rule(from_bytes=0, algorithm=1),
                    Rule(from_bytes=65536, algorithm=3, segment_bytes=8192),
                ),
            ),
        )
    }


def test_the_example_of_version_2_is_read() -> None:
    found = classic.read(text("ompi_rules_v2.conf"))
    assert [block.ranks for block in found["allreduce"]] == [2, 16]
    assert found["alltoall"][0].rules[1] == Rule(from_bytes=4096, algorithm=4, max_requests=8)


def test_the_example_of_version_3_is_read() -> None:
    found = json3.read(text("ompi_rules_v3.json"), {"bcast": {"binomial": 6, "pipeline": 3}})
    assert found["bcast"][0].rules == (
        Rule(from_bytes=0, algorithm=6),
        Rule(from_bytes=65536, algorithm=3, segment_bytes=8192),
    )
    assert chosen(found, "bcast", 65, 8) == Rule(from_bytes=0, algorithm=0), "no rule above 64 ranks"
    assert found["alltoall"][0].rules == (
        Rule(from_bytes=0, algorithm=0),
        Rule(from_bytes=4096, algorithm=4, max_requests=8),
    )
    with pytest.raises(RuleFileError, match="binomial"):
        json3.read(text("ompi_rules_v3.json"), {"bcast": {"pipeline": 3}})


def test_the_first_block_serves_smaller_communicators() -> None:
    found = classic.read(text("two_block.conf"))
    assert [chosen(found, "bcast", ranks, 64) for ranks in (1, 2, 8, 16, 64)] == [
        *[Rule(from_bytes=0, algorithm=1)] * 3,
        *[Rule(from_bytes=0, algorithm=6)] * 2,
    ]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("1\n7\n1\n2\n1\n0 1 0", "segment size"),
        ("1\n7\n1\n2\n1\n0 x 0 0", "line 6"),
        ("1\n99\n", "line 2"),
        ("1\n7\n1\n2\n1\n0 1 0 0\n5", "line 7"),
        ("1\n7\n1\n2\n1\n0 1 0 0 8", "line 6"),
        ("1\n7\n1\n2\n1\n8 1 0 0", "begin with 0"),
        ("1\n7\n2\n4\n1\n0 1 0 0\n2\n1\n0 1 0 0", "ascending"),
    ],
)
def test_what_is_wrong_is_named(wrong: str, line: str) -> None:
    with pytest.raises(RuleFileError, match=line):
        classic.read(wrong)


def test_openmpi_says_its_algorithms() -> None:
    found = installed.openmpi("Open MPI 4.1.4", text("openmpi-4.1.4.txt"))
    assert found.format == "classic-1"
    assert [way.name for way in found.algorithms["allreduce"]] == [
        *("basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring", "rabenseifner")
    ]
    assert "bcast" in found.segmented
    assert "alltoallv" not in found.segmented
    assert found.fanout["bcast"] == 4
    assert not found.in_the_way
    assert found.forced("bcast", 3, 8192) == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_bcast_algorithm": "3",
        "OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize": "8192",
    }
    assert found.forced("bcast", 3, 0)["OMPI_MCA_coll_tuned_bcast_algorithm_segmentsize"] == "0"


@pytest.mark.parametrize(
    ("version", "format_"),
    [("4.1.4", "classic-1"), ("5.0.6", "classic-1"), ("5.0.7", "classic-2"), ("6.0.0rc1", "json-3")],
)
def test_each_version_has_its_format(version: str, format_: str) -> None:
    assert installed.openmpi(f"Open MPI {version}", text("openmpi-4.1.4.txt")).format == format_


def test_han_stands_in_the_way_of_version_5() -> None:
    listing = text("openmpi-4.1.4.txt").replace("coll_han_priority:value:0", "coll_han_priority:value:35")
    found = installed.openmpi("Open MPI 5.0.9", listing)
    assert found.in_the_way == {"han": 35}
    assert found.taken == set(found.algorithms), "nothing is said of which it takes"
    more = "mca:coll:han:param:coll_han_bcast_segsize:value:65536\n"
    assert installed.openmpi("Open MPI 5.0.9", listing + more).taken == {"bcast"}


def test_a_file_of_rules_that_jobs_read_already_is_seen() -> None:
    listing = text("openmpi-4.1.4.txt")
    assert not installed.openmpi("Open MPI 4.1.4", listing).rules_file
    more = "mca:coll:tuned:param:coll_tuned_dynamic_rules_filename:value:/etc/rules.conf\n"
    found = installed.openmpi("Open MPI 4.1.4", listing + more)
    assert found.rules_file == "/etc/rules.conf"


def test_a_library_without_tuned_says_so() -> None:
    with pytest.raises(installed.LibraryError, match="coll/tuned"):
        installed.openmpi("Open MPI 4.1.4", "")
    with pytest.raises(installed.LibraryError, match="inside"):
        installed.mpich("MPICH 4.0.2", [])


TREE: dict[str, Any] = {
    "collective=bcast": {
        "comm_type=intra": {
            "comm_size<8": {"avg_msg_size=any": {"algorithm=MPIR_Bcast_intra_binomial": {}}},
            "comm_size=any": {
                "avg_msg_size<=12288": {"algorithm=MPIR_Bcast_intra_binomial": {}},
                "avg_msg_size=any": {"algorithm=MPIR_Bcast_intra_scatter_ring_allgather": {}},
            },
        },
        "comm_type=inter": {"algorithm=MPIR_Bcast_inter_remote_send_local_bcast": {}},
    },
    "collective=ibcast": {"algorithm=MPIR_Ibcast_intra_sched_auto": {}},
    "collective=alltoallw": {"algorithm=MPIR_Alltoallw_intra_scattered": {}},
    "collective=allgather": {
        "comm_type=intra": {
            "total_msg_size<524288": {"algorithm=MPIR_Allgather_intra_brucks": {}},
            "total_msg_size=any": {"algorithm=MPIR_Allgather_intra_ring": {}},
        }
    },
    "collective=scan": {"comm_type=intra": {"algorithm=MPIR_Scan_intra_recursive_doubling": {}}},
}
TEXTS = [
    "algorithm=MPIR_Bcast_intra_binomial",
    "algorithm=MPIR_Bcast_intra_scatter_ring_allgather",
    "algorithm=MPIR_Bcast_allcomm_nb",
    "algorithm=MPIR_Bcast_inter_remote_send_local_bcast",
    "algorithm=MPIR_Allgather_intra_brucks",
    "algorithm=MPIR_Allgather_intra_ring",
    "algorithm=MPIR_Scan_intra_recursive_doubling",
    "algorithm=MPIR_Scan_intra_smp",
    '{"collective=bcast":{}}',
    json.dumps(TREE),
]


def test_mpich_says_its_algorithms_and_its_tree() -> None:
    found = installed.mpich("MPICH 4.0.2", TEXTS)
    assert [way.name for way in found.algorithms["bcast"]] == ["binomial", "nb", "scatter_ring_allgather"]
    assert found.tree == TREE
    assert found.format == "mpich-tree"
    assert installed.mpich("MPICH 3.3", TEXTS[:3]).format == "cvars"


@given(
    st.integers(1, 40), st.integers(0, 100_000), st.integers(2, 20), st.integers(1, 50_000), st.integers(1, 3)
)
def test_a_tree_chooses_what_the_rules_say(
    ranks: int, size: int, tuned: int, begin: int, algorithm: int
) -> None:
    library = installed.mpich("MPICH 4.0.2", TEXTS)
    own = (Rule(from_bytes=0, algorithm=0),)
    rules = {
        "bcast": (
            Block(ranks=1, rules=own),
            Block(ranks=tuned, rules=(*own, Rule(from_bytes=begin, algorithm=algorithm))),
            Block(ranks=tuned + 1, rules=own),
        )
    }
    written = mpich_tree.write(TREE, rules, library.keys)
    expected = mpich_tree.walk(TREE, "bcast", ranks, size)
    if ranks == tuned and size >= begin:
        expected = library.keys["bcast"][algorithm]
    assert mpich_tree.decide(written, "bcast", ranks, size) == expected
    assert json.loads(written)["collective=ibcast"] == TREE["collective=ibcast"], "all else is as it was"


def test_a_tree_asks_for_what_the_library_knows_of_a_collective() -> None:
    library = installed.mpich("MPICH 4.0.2", TEXTS)
    ring = next(one.number for one in library.algorithms["allgather"] if one.name == "ring")
    way = Candidate(number=ring, name="ring")
    found = [Found(size_bytes=64, choice=way), Found(size_bytes=1024, choice=way)]
    rules = decide({"allgather": {4: found}}, {}, library.counted)
    written = mpich_tree.write(TREE, rules, library.keys)
    assert "total_msg_size<=255" in written
    assert "avg_msg_size<=255" not in written
    taken = [mpich_tree.decide(written, "allgather", 4, size) for size in (63, 64, 1024, 1025)]
    assert [key == library.keys["allgather"][ring] for key in taken] == [False, True, True, False]
    assert effect.text_of(library, rules, {}) == written


def test_a_tree_refuses_sizes_that_end_a_job() -> None:
    library = installed.mpich("MPICH 4.0.2", TEXTS)
    assert not library.tells_sizes("scan")
    two = (Rule(from_bytes=0, algorithm=0), Rule(from_bytes=64, algorithm=1))
    with pytest.raises(RuleFileError, match="cannot tell"):
        mpich_tree.write(TREE, {"scan": (Block(ranks=4, rules=two),)}, library.keys)
    large = (Rule(from_bytes=0, algorithm=0), Rule(from_bytes=1 << 32, algorithm=1))
    with pytest.raises(RuleFileError, match="cannot say"):
        mpich_tree.write(TREE, {"bcast": (Block(ranks=4, rules=large),)}, library.keys)
    asks = {"collective=allgather": {"avg_msg_size<=8": {}, "avg_msg_size=any": {}}}
    with pytest.raises(RuleFileError, match="avg_msg_size"):
        mpich_tree.walk(asks, "allgather", 4, 64)


def test_a_misfit_is_in_the_very_place_of_a_rule() -> None:
    library = installed.mpich("MPICH 4.0.2", TEXTS)
    way = Candidate(number=3, name="scatter_ring_allgather")
    own = Rule(from_bytes=0, algorithm=0)
    rules = {
        "bcast": (
            Block(ranks=1, rules=(own,)),
            Block(ranks=4, rules=(own, Rule(from_bytes=64, algorithm=3), Rule(from_bytes=1025, algorithm=0))),
            Block(ranks=6, rules=(own,)),
        )
    }
    text_ = effect.text_of(library, rules, {})
    for place in (4, 5):
        broken = effect.misfit(library, rules, ("bcast", 4, 512, way), place)
        changed = {
            (ranks, size)
            for ranks in range(1, 9)
            for size in (8, 63, 64, 512, 1024, 1025, 1 << 20)
            if mpich_tree.decide(broken, "bcast", ranks, size)
            != mpich_tree.decide(text_, "bcast", ranks, size)
        }
        assert changed == {(place, size) for size in (64, 512, 1024)}
    with pytest.raises(RuleFileError, match="no rule"):
        effect.misfit(library, rules, ("bcast", 4, 8, way), 4)


def test_an_algorithm_of_mpich_is_forced_without_a_way_out() -> None:
    library = installed.mpich("MPICH 4.0.2", TEXTS)
    assert library.forced("bcast", 1, 0) == {
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial",
        "MPIR_CVAR_COLLECTIVE_FALLBACK": "error",
    }


def test_a_tree_refuses_what_it_does_not_know() -> None:
    rules = {"gossip": (Block(ranks=1, rules=(Rule(from_bytes=0, algorithm=1),)),)}
    with pytest.raises(RuleFileError, match="gossip"):
        mpich_tree.write(TREE, rules, {})


RING = Candidate(number=4, name="ring", segment_bytes=8192)
TREE_WAY = Candidate(number=6, name="binomial")
COUNTED = installed.openmpi("Open MPI 4.1.4", text("openmpi-4.1.4.txt")).counted


def taken(rules: Rules, ranks: int, size: int, collective: str = "bcast") -> int:
    counted = counted_bytes(COUNTED.get(collective, "message"), size, ranks)
    found = chosen(rules, collective, ranks, counted)
    return found.algorithm if found else 0


def test_nothing_is_said_of_what_was_not_measured() -> None:
    found = [
        Found(size_bytes=64, choice=RING, holds_at=frozenset({1024})),
        Found(size_bytes=1024, choice=None),
        Found(size_bytes=16384, choice=TREE_WAY, holds_at=frozenset()),
    ]
    rules = decide({"bcast": {4: found}}, {"bcast": 4}, counted={})
    assert [taken(rules, 4, size) for size in (0, 63, 64, 255, 256, 1024)] == [0, 0, 4, 4, 0, 0]
    assert [taken(rules, 4, size) for size in (1025, 16383, 16384, 16385)] == [0, 0, 6, 0], (
        "for its own size alone"
    )
    assert [taken(rules, ranks, 64) for ranks in (1, 2, 3, 5, 64)] == [0] * 5
    assert chosen(rules, "bcast", 4, 64) == Rule(from_bytes=64, algorithm=4, fanout=4, segment_bytes=8192)
    assert classic.read(classic.write(rules, 1)) == rules


def test_a_choice_of_two_neighbours_holds_between_them() -> None:
    found = [Found(size_bytes=64, choice=RING), Found(size_bytes=1024, choice=RING)]
    rules = decide({"bcast": {4: found}}, {}, counted={})
    assert [taken(rules, 4, size) for size in (63, 64, 500, 1024, 1025)] == [0, 4, 4, 4, 0]


def test_sizes_are_counted_as_the_library_does() -> None:
    found = [Found(size_bytes=64, choice=RING), Found(size_bytes=1024, choice=RING)]
    rules = decide({"allgather": {4: found}}, {}, COUNTED)
    assert rules["allgather"][1].rules[1].from_bytes == 256
    assert taken(rules, 4, 64, "allgather") == 4
    barrier = decide({"barrier": {4: [Found(size_bytes=0, choice=RING)]}}, {}, COUNTED)["barrier"][1]
    assert barrier.rules == (Rule(from_bytes=0, algorithm=4, segment_bytes=8192),)


def test_where_the_library_sees_no_size_one_choice_is_for_all() -> None:
    holds = Found(size_bytes=64, choice=TREE_WAY, holds_at=frozenset({1024}))
    none = Found(size_bytes=1024, choice=None)
    rules = decide({"scan": {4: [holds, none]}}, {}, COUNTED)
    assert rules["scan"][1].rules == (Rule(from_bytes=0, algorithm=6),)
    hurts = Found(size_bytes=64, choice=TREE_WAY)
    assert decide({"scan": {4: [hurts, none]}}, {}, COUNTED) == {}


def test_what_is_counted_depends_on_the_version() -> None:
    now, before = (
        installed.openmpi(f"Open MPI {version}", text("openmpi-4.1.4.txt")) for version in ("4.1.0", "4.0.5")
    )
    assert [now.counted.get(one) for one in ("gather", "scan", "allgatherv", "bcast")] == [
        *("all ranks", "no size", None, None)
    ]
    assert not before.tells_sizes("gather")
    assert not before.tells_sizes("allgatherv")
    assert not now.tells_sizes("scan")
    assert now.tells_sizes("gather")


def test_collectives_without_a_gain_are_left_out() -> None:
    assert decide({"bcast": {4: [Found(size_bytes=64, choice=None)]}}, {}, counted={}) == {}


def test_one_choice_for_all_sizes_must_hurt_nowhere() -> None:
    good = Found(size_bytes=64, choice=RING, holds_at=frozenset({1024}))
    none = Found(size_bytes=1024, choice=None)
    assert for_all_sizes({"bcast": {4: [good, none]}}) == {"bcast": RING}
    bad = Found(size_bytes=64, choice=RING)
    assert for_all_sizes({"bcast": {4: [bad, none]}}) == {}


def test_the_better_half_goes_on() -> None:
    ways = [Candidate(number=n, name=str(n)) for n in range(5)]
    ratios = {8: {way: [1.0 + way.number, 0.9 + way.number] for way in ways[:4]}}
    assert halve({8: ways}, ratios) == {8: ways[:2]}, "who gave nothing is out"
    assert halve({8: ways[:1]}, ratios) == {8: ways[:1]}
