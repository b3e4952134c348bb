"""What HPL prints: outputs of HPL 2.3, of that within HPCC, one that failed its check, one that was refused."""

from pathlib import Path

import pytest

from wulf.base import hpl_output

OUTPUTS = Path(__file__).parents[1] / "golden" / "hpl"


def output(name):
    return hpl_output.parse((OUTPUTS / name).read_text(encoding="utf-8"))


def test_every_field_is_read():
    found = output("progress.txt")
    assert (found.version, found.epsilon, found.threshold) == ("2.3", 1.110223e-16, 16.0)
    assert found.parameters == {
        "N": "1000 2000",
        "NB": "128",
        "PMAP": "Row-major process mapping",
        "P": "1",
        "Q": "2",
        "PFACT": "Right",
        "NBMIN": "4",
        "NDIV": "2",
        "RFACT": "Crout",
        "BCAST": "1ringM",
        "DEPTH": "1",
        "SWAP": "Mix (threshold = 64)",
        "L1": "transposed form",
        "U": "transposed form",
        "EQUIL": "yes",
        "ALIGN": "8 double precision words",
    }
    assert (found.tests, found.passed, found.failed, found.skipped) == (2, 2, 0, 0)
    assert found.errors == [] and found.unfinished == []
    first, second = found.rows
    assert (second.n, second.nb, second.p, second.q, second.time_s, second.gflops) == (
        2000,
        128,
        1,
        2,
        0.12,
        44.629,
    )
    assert [residual.value for residual in second.residuals] == [3.679001330e-03] and second.passed
    assert second.timings_s["update"] == 0.11 and set(second.timings_s) == {
        "rfact",
        "pfact",
        "mxswp",
        "update",
        "laswp",
        "up tr sv",
    }
    assert second.started == second.ended == "Mon Nov 23 12:55:05 2026"
    assert len(first.progress) == 7 and len(second.progress) == 15
    assert second.progress[-1] == hpl_output.Progress(column=1920, fraction=0.96, gflops=44.97)


def test_a_short_time_is_taken_from_the_rate():
    first = output("progress.txt").rows[0]
    assert first.time_s == 0.03
    assert first.seconds == pytest.approx((2 / 3 * 1e9 + 1.5e6) / 22.393e9)


def test_hpl_within_hpcc_is_read_as_well():
    found = output("hpcc.txt")
    assert found.version == "2.0" and found.parameters["N"] == "1000"
    (row,) = found.rows
    assert (row.variant, row.gflops, row.passed, row.progress) == ("WR11C2R4", 46.98, True, [])


def test_a_result_that_fails_its_check_is_told_with_its_norms():
    found = output("failed.txt")
    assert (found.passed, found.failed) == (0, 1)
    (row,) = found.rows
    assert not row.passed and row.residuals[0].value == 3.47532332e-03
    assert row.norms["||A||_oo"] == 262.773468 and len(row.norms) == 6


def test_what_it_complains_of_is_told():
    found = output("too-few.txt")
    assert found.errors[0] == "Need at least 2 processes for these tests" and found.rows == []


def test_a_row_without_a_check_has_not_passed():
    text = (OUTPUTS / "failed.txt").read_text(encoding="utf-8")
    unchecked = "\n".join(line for line in text.splitlines() if "FAILED" not in line)
    assert not hpl_output.parse(unchecked).rows[0].passed


def test_values_may_go_on_in_the_next_line():
    text = "N      :    1000     2000 \n            3000 \nNB     :     128 \n"
    assert hpl_output.parse(text).parameters == {"N": "1000 2000 3000", "NB": "128"}


def test_an_output_that_was_cut_says_how_far_it_came():
    text = (OUTPUTS / "progress.txt").read_text(encoding="utf-8")
    begun = text.partition("Column=000000512")[0]
    assert [step.column for step in hpl_output.parse(begun).unfinished] == [128, 256, 384]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("WR11C2R4", (0, 1, 1, 1, 2, 2, 4)),
        ("WC05L4C16", (1, 0, 5, 0, 4, 1, 16)),
        ("WR103R2L8", (0, 10, 3, 2, 2, 0, 8)),
    ],
)
def test_the_variant_says_the_parameters(text, meaning):
    found = hpl_output.variant(text)
    assert (
        found.pmap,
        found.depth,
        found.bcast,
        found.rfact,
        found.ndiv,
        found.pfact,
        found.nbmin,
    ) == meaning


def test_another_word_is_no_variant():
    assert hpl_output.variant("WR19C2R4") is None
