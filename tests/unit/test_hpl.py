"""HPL's settings, its input, the verdict on a launch, time model, theoretical peak, Top500."""

from pathlib import Path

import numpy as np
import pytest

from wulf.base.errors import AnalysisError, UsageError
from wulf.base.records import NodeRecord
from wulf.tools.hpl import peak, program, run_time, top500
from wulf.tools.hpl.record import HplSetting

OUTPUTS = Path(__file__).parents[1] / "golden" / "hpl"
CHOSEN = HplSetting(nb=128, p=1, q=2, threads=1, bcast=1, depth=1, swap=2)


def test_every_layout_uses_all_cpus_and_has_the_same_ranks_on_every_node():
    found = program.layouts(4, 6)
    assert {one.threads for one in found} == {1, 2, 3, 6}
    assert all(one.p * one.q * one.threads == 24 for one in found)
    assert all(one.p * one.q % 4 == 0 and one.p <= one.q <= 8 * one.p for one in found)


def test_two_ranks_have_both_grids_and_a_prime_number_its_only_one():
    assert [(one.p, one.q) for one in program.layouts(1, 2) if one.threads == 1] == [(1, 2), (2, 1)]
    assert [(one.p, one.q) for one in program.layouts(13, 1)] == [(1, 13)]


def test_the_input_has_every_field_in_its_line():
    lines = program.hpl_dat([1000, 2000], CHOSEN).splitlines()
    assert len(lines) == 31
    assert [line.split()[0] for line in lines[3:5]] == ["6", "2"]
    assert lines[5].split()[:2] == ["1000", "2000"]
    values = {
        4: "2",
        7: "128",
        10: "1",
        11: "2",
        12: "16.0",
        14: "2",
        16: "4",
        18: "2",
        20: "1",
        22: "1",
        24: "1",
    }
    values |= {25: "2", 26: "64", 27: "0", 28: "0", 29: "1", 30: "8"}
    assert {number: lines[number].split()[0] for number in values} == values


def test_the_order_fills_most_of_the_memory_in_whole_blocks():
    n = program.largest_order(32 * 2**30)
    assert n % 384 == 0 and 0.97 * 0.8 < n**2 * 8 / (32 * 2**30) <= 0.8
    with pytest.raises(UsageError, match="too little"):
        program.largest_order(2**20)


def outcome(name, n=2000, chosen=CHOSEN, change=lambda text: text):
    return program.outcome(change((OUTPUTS / name).read_text(encoding="utf-8")), n, chosen)


def test_a_launch_that_is_right_counts():
    found = outcome("progress.txt")
    assert (found.status, found.row.gflops) == ("ok", 44.629)


@pytest.mark.parametrize(
    ("name", "n", "change", "reason"),
    [
        ("failed.txt", 1000, str, "the result is wrong: residual 0.00347532"),
        ("too-few.txt", 1000, str, "HPL: Need at least 2 processes"),
        ("progress.txt", 2000, lambda text: text[:2000], "no result"),
        ("progress.txt", 4000, str, "N 2000 for 4000"),
        ("progress.txt", 2000, lambda text: text.replace("WR11C", "WR01C"), "depth 0 for 1"),
        (
            "progress.txt",
            2000,
            lambda text: text.replace("3.67900133e-03", "nan").replace("PASSED", "FAILED"),
            "wrong",
        ),
    ],
)
def test_a_launch_that_is_not_right_failed(name, n, change, reason):
    found = outcome(name, n, change=change)
    assert found.status == "failed" and reason in found.reason


def timings(rng, orders, scatter=0.02):
    return [(n, (8e-9 * n**2 + 1e-11 * n**3) * float(rng.lognormal(0, scatter))) for n in orders]


def test_the_predicted_time_of_a_large_problem_holds():
    rng = np.random.default_rng(7)
    inside = 0
    for _ in range(300):
        model = run_time.fit(timings(rng, [1000, 1500, 2000, 2000, 3000, 3000]))
        found = run_time.forecast(model, 10_000).time
        ((_, seconds),) = timings(rng, [10_000])
        inside += found.low <= seconds <= found.high
    assert inside >= 0.92 * 300


def test_the_largest_order_is_predicted_to_fit_and_the_next_is_not():
    model = run_time.fit(timings(np.random.default_rng(1), [1000, 1500, 2000, 2000, 3000, 3000]))
    n = run_time.largest_within(model, 20.0, 10**6, 128)
    assert n % 128 == 0
    assert run_time.forecast(model, n).time.high <= 20 < run_time.forecast(model, n + 128).time.high
    assert run_time.largest_within(model, 20.0, 4000, 128) == 3968


def test_one_order_says_nothing_of_others():
    with pytest.raises(AnalysisError, match="1 order"):
        run_time.fit([(1000, 1.0)] * 6)


def node(name="node01", **facts):
    known = {
        "cpu.vendor": "AuthenticAMD",
        "cpu.family": 26,
        "cpu.model_number": 2,
        "cpu.vector": "avx512f",
        "cpu.nominal_hz": 2.5e9,
        "cpu.model": "AMD EPYC",
    }
    facts = {key.replace("_", ".", 1): value for key, value in facts.items()}
    return NodeRecord(node=name, reachable=True, facts={**known, **facts})


@pytest.mark.parametrize(
    ("facts", "per_cycle"),
    [
        ({}, 32),
        ({"cpu_model_number": 36}, 16),
        ({"cpu_family": 23, "cpu_model_number": 1}, 8),
        ({"cpu_family": 23, "cpu_model_number": 49}, 16),
        ({"cpu_vendor": "GenuineIntel", "cpu_family": 6, "cpu_model_number": 85}, 32),
        ({"cpu_vendor": "GenuineIntel", "cpu_family": 6, "cpu_model_number": 126}, 16),
        (
            {"cpu_vendor": "GenuineIntel", "cpu_family": 6, "cpu_model_number": 63, "cpu_vector": "avx2 fma"},
            16,
        ),
        ({"cpu_vendor": "GenuineIntel", "cpu_family": 6, "cpu_model_number": 45, "cpu_vector": "avx"}, 8),
    ],
)
def test_the_peak_follows_from_cores_units_and_clock(facts, per_cycle):
    found = peak.peak([node("node01", **facts), node("node02", **facts)], {"node01": 8, "node02": 8})
    assert found.gflops == pytest.approx(2 * 8 * per_cycle * 2.5)
    (part,) = found.parts
    assert f"× {per_cycle} operations a cycle" in part.derivation and "2.500 GHz" in part.derivation


def test_nodes_that_differ_are_added_up_and_shared_cpus_count_once():
    nodes = [node("node01"), node("node02", cpu_nominal_hz=2e9), node("node03")]
    found = peak.peak(nodes, {"node01": 2, "node02": 2, "node03": 0})
    assert found.gflops == pytest.approx(2 * 32 * 2.5 + 2 * 32 * 2.0)


def test_an_unknown_cpu_is_no_guess():
    with pytest.raises(AnalysisError, match=r"node01: .*family 99.*--peak"):
        peak.peak([node(cpu_family=99)], {"node01": 2})


@pytest.mark.parametrize(
    ("gflops", "ranks"),
    [
        (14.53, {"June 1993": 8, "June 1998": 431}),
        (60.0, {"June 1993": 1}),
        (5.5, {"June 1993": None}),
        (0.1, {}),
    ],
)
def test_a_rank_is_said_only_between_known_neighbours(gflops, ranks):
    found = {one.edition: one.rank for one in top500.standings(gflops)}
    for edition, rank in ranks.items():
        assert found.get(edition) == rank
    if not ranks:
        assert found == {}


def test_the_published_result_names_its_source():
    published = {one.edition: one for one in top500.standings(14.53)}["June 1998"]
    assert "Eadline" in published.source


def test_the_last_list_that_it_is_fast_enough_for():
    found = top500.last_list(14.53)
    assert (found.name, found.entry_gflops, found.unknown) == ("June 1998", 13.39, [])
    assert top500.last_list(0.1) is None


@pytest.mark.parametrize(
    ("gflops", "name", "unknown"),
    [
        (195.8, "November 2002", ["June 2003", "November 2003", "June 2004", "November 2004"]),
        (1165.9, "November 2002", ["June 2003", "November 2003", "June 2004", "November 2004"]),
        (1166.0, "June 2005", []),
        (40_000.0, "November 2010", ["June 2011"]),
        (51_000.0, "November 2011", []),
        (1e9, "November 2018", ["June 2019 and later"]),
    ],
)
def test_a_list_that_is_not_known_is_not_one_that_it_is_too_slow_for(gflops, name, unknown):
    found = top500.last_list(gflops)
    assert (found.name, found.unknown) == (name, unknown)


def test_every_list_of_the_top500_is_known_or_said_to_be_unknown():
    table = top500._table()
    lists = {f"{month} {year}" for year in range(1993, 2019) for month in ("June", "November")}
    assert {*table.entry, *table.unknown[:-1]} == lists
    assert list(table.entry.values()) == sorted(table.entry.values())
