"""Problems of HPL as they are asked for: words of the command line, and whole HPL.dat files."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_hpl_result import manifest
from wulf.base.errors import ConfigError, UsageError
from wulf.tools.hpl import given_problems
from wulf.tools.hpl import program as hpl
from wulf.tools.hpl.page import build
from wulf.tools.hpl.record import HplAsked, HplLaunch, HplSetting
from wulf.tools.hpl.request import HplRequest
from wulf.tools.hpl.result import conclude

#: The file that comes with HPL, with more values than one.
SEVERAL = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
2            # of problems sizes (N)
29 30        Ns
2            # of NBs
1 2          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
3            # of process grids (P x Q)
2 1 4        Ps
2 4 1        Qs
16.0         threshold
3            # of panel fact
0 1 2        PFACTs (0=left, 1=Crout, 2=Right)
2            # of recursive stopping criterium
2 4          NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
3            # of recursive panel fact.
0 1 2        RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
0            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
0            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""
SETTINGS = st.builds(
    HplSetting,
    nb=st.integers(1, 1 << 14),
    p=st.integers(1, 99),
    q=st.integers(1, 99),
    threads=st.just(1),
    bcast=st.integers(0, 5),
    depth=st.integers(0, 3),
    swap=st.integers(0, 2),
    swap_threshold=st.integers(0, 999),
    pmap=st.integers(0, 1),
    pfact=st.integers(0, 2),
    nbmin=st.integers(1, 99),
    ndiv=st.integers(2, 9),
    rfact=st.integers(0, 2),
    l1=st.integers(0, 1),
    u=st.integers(0, 1),
    equil=st.integers(0, 1),
    align=st.integers(1, 64),
)


@given(orders=st.lists(st.integers(1, 99_999), min_size=1, max_size=20), chosen=SETTINGS)
def test_what_is_written_is_what_is_read(orders: list[int], chosen: HplSetting) -> None:
    found = given_problems.parse(hpl.hpl_dat(orders, chosen), "HPL.dat")
    assert found == ([HplAsked(n=n, setting=chosen) for n in orders], hpl.THRESHOLD)


def test_all_values_are_made_with_each_other():
    found = given_problems.parse(SEVERAL, "HPL.dat").problems
    assert len(found) == 2 * 2 * 3 * 3 * 2 * 3 and len(set(map(msgspec.json.encode, found))) == len(found)
    assert {(one.setting.p, one.setting.q) for one in found} == {(2, 2), (1, 4), (4, 1)}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("29 30  ", "29     ", "line 6: n 'Ns'"),
        ("29 30  ", "29 3_0 ", "line 6"),
        ("29 30  ", "29 -30 ", "line 6"),
        ("2            # of NBs", "21           # of NBs", "line 7"),
        ("2            # of NBs", "             # of NBs", "line 7"),
        ("16.0         threshold", "right        threshold", "line 13"),
        ("16.0         threshold", "nan          threshold", "line 13"),
        ("8            memory", "0            memory", "line 31: align '0'"),
        ("2            SWAP", "3            SWAP", "line 26"),
    ],
)
def test_what_is_wrong_names_its_line(old: str, new: str, complaint: str) -> None:
    assert SEVERAL.count(old) == 1
    with pytest.raises(ConfigError, match=r"HPL\.dat") as raised:
        given_problems.parse(SEVERAL.replace(old, new), "HPL.dat")
    assert complaint in str(raised.value)


def test_a_file_that_ends_early_says_where():
    for end in range(len(SEVERAL.splitlines())):
        text = "\n".join(SEVERAL.splitlines()[:end])
        with pytest.raises(ConfigError, match=rf"ends after line {end}|line {end}"):
            given_problems.parse(text, "HPL.dat")


def test_a_file_has_bounds(tmp_path):
    many = SEVERAL.replace("2            # of problems sizes (N)", "20           # of problems sizes (N)")
    many = many.replace("29 30  ", " ".join(map(str, range(100, 120))))
    with pytest.raises(ConfigError, match="2160 problems"):
        given_problems.parse(many, "HPL.dat")
    (tmp_path / "large").write_bytes(b"1\n" * (1 << 16))
    with pytest.raises(ConfigError, match="larger than"):
        given_problems.read(tmp_path / "large")
    with pytest.raises(ConfigError, match="No such file"):
        given_problems.read(tmp_path / "none")


def test_words_of_the_command_line_are_one_problem():
    request = HplRequest(n=37326, nb=168, grid="15x16")
    (problem,) = given_problems.given(request, nodes=32, cpus=8).problems
    chosen = problem.setting
    assert (problem.n, chosen.nb, chosen.p, chosen.q, chosen.threads) == (37326, 168, 15, 16, 1)
    (threaded,) = given_problems.given(HplRequest(n=100, nb=8, grid="2x2"), nodes=2, cpus=8).problems
    assert threaded.setting.threads == 4
    with pytest.raises(UsageError, match="240 ranks, and the nodes have 16 cores"):
        given_problems.given(request, nodes=2, cpus=8)
    with pytest.raises(UsageError, match="36000 is the largest"):
        given_problems.require_room([problem], 36_000)
    assert given_problems.given(HplRequest(), nodes=2, cpus=8) == ([], None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"n": 5}, "--nb, --grid too"),
        ({"nb": 5, "grid": "1x1"}, "--n too"),
        ({"n": 5, "nb": 1, "grid": "1x1", "dat": "HPL.dat"}, "--dat says what is run"),
        ({"dat": "HPL.dat", "blas_library": "all"}, "--blas all"),
        ({"prices": ["then"]}, "NAME=PRICE"),
        ({"prices": ["a=1", "a=2"]}, "each name once"),
        ({"prices": ["a=inf"]}, "NAME=PRICE"),
    ],
)
def test_what_does_not_go_together_is_refused(words, complaint):
    with pytest.raises(UsageError, match=complaint):
        HplRequest(**words)


def test_a_grid_is_rows_by_columns():
    for text in ("15", "0x4", "4x", "4*4", "x"):
        with pytest.raises(UsageError, match="--grid"):
            given_problems.grid(text)


def _launch(index: int, problem: HplAsked, gflops: float | None) -> HplLaunch:
    return HplLaunch(
        index=index,
        phase="confirm",
        n=problem.n,
        setting=problem.setting,
        started_at="2026-11-23T13:00:00+00:00",
        wall_s=2.0,
        status="ok" if gflops else "failed",
        reason="" if gflops else "no result",
        time_s=1.0 if gflops else None,
        gflops=gflops,
        residual=0.01 if gflops else None,
    )


def test_every_problem_has_its_figure_and_the_fastest_is_the_headline():
    first, second = given_problems.parse(SEVERAL, "HPL.dat").problems[:2]
    head = manifest(asked=[first, second], values={}, prices={"then": 2490.0, "today": 2063.0})
    rates = {0: (first, 10.0), 1: (second, 20.0), 2: (first, 11.0), 3: (second, 22.0), 4: (second, None)}
    result = conclude(head, [_launch(index, *one) for index, one in rates.items()])
    assert [one.problem for one in result.figures] == [second, first]
    assert [one.failed for one in result.figures] == [1, 0]
    assert result.setting == second.setting and result.gflops is not None
    assert result.gflops.value == pytest.approx(21) and result.gflops.n == 2
    assert {name: one.value for name, one in result.prices_per_gflops.items()} == pytest.approx(
        {"then": 2490 / 21, "today": 2063 / 21}
    )
    assert any("fastest of 2 problems" in note for note in result.notes)
    text = str(build(head, [_launch(index, *one) for index, one in rates.items()], result))
    assert "Problems as asked" in text and "How the search" not in text


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ("16.0", ""),
        (
            "-1.0",
            "threshold of -1, with which HPL checks nothing, was not used: results were checked against 16",
        ),
        ("0", "threshold of 0, which no result passes, was not used"),
        ("1e9", "threshold of 1e+09 was not used"),
    ],
)
def test_a_threshold_that_is_not_used_is_said(threshold: str, said: str) -> None:
    found = given_problems.parse(SEVERAL.replace("16.0 ", f"{threshold} "), "HPL.dat")
    head = manifest(asked=found.problems[:1], values={}, asked_threshold=found.threshold)
    notes = [
        note for note in conclude(head, [_launch(0, found.problems[0], 10.0)]).notes if "threshold" in note
    ]
    assert (said in notes[0]) if said else not notes
