"""HPC Challenge: what its output says, what is a failure, and how large a problem may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from wulf.apps import hpcc
from wulf.errors import AnalysisError, ImportFormatError, UsageError
from wulf.importing import formats
from wulf.importing import hpcc as output
from wulf.importing.series import Source
from wulf.procedure.hpcc_result import COMPARED, result
from wulf.procedure.importing import import_run, read_files

OUTPUT = Path(__file__).parents[1] / "golden" / "imports" / "hpcc.txt"
TEXT = OUTPUT.read_text(encoding="utf-8")


def summary(text=TEXT):
    return output.summary(Source(text, "hpccoutf.txt"))


def test_every_result_has_its_unit_and_every_other_entry_is_kept():
    found = summary()
    assert not found.failures
    entries = dict(
        line.split("=")
        for line in TEXT.partition(output.BEGIN)[2].partition(output.END)[0].split()
        if "=" in line
    )
    by_name = {figure.name: figure for figure in found.figures}
    assert by_name.keys() | found.settings.keys() == entries.keys()
    for name, figure in by_name.items():
        assert figure.value == float(entries[name])
    units = {name: figure.kind.unit for name, figure in by_name.items()}
    assert units["HPL_Tflops"] == "Tflop/s" and units["PTRANS_GBs"] == "GB/s"
    assert units["StarSTREAM_Triad"] == "GB/s" and units["MPIRandomAccess_GUPs"] == "GUP/s"
    assert units["MaxPingPongLatency_usec"] == "µs" and units["HPL_time"] == "s"
    # What looks like a rate, a latency or a time is no setting.
    assert not [
        name for name in found.settings if name.endswith(("flops", "GUPs", "_usec", "GBytes", "_GBs"))
    ]
    assert set(COMPARED) <= by_name.keys()


def test_what_is_stored_gives_back_the_result():
    found = summary()
    for figure in found.figures:
        assert output.value_of(figure.kind, figure.time_s) == pytest.approx(figure.value)
        assert output.name_of(output.title(figure, found)) == figure.name
    assert output.name_of("IMB PingPong") == ""


def test_only_what_depends_on_the_size_has_it_in_its_name():
    titles = {output.title(figure, summary()) for figure in summary().figures}
    assert "HPCC StarDGEMM_Gflops N 300" in titles and "HPCC AvgPingPongLatency" in titles


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ("Success=1", "Success=0", "Success=0"),
        ("Success=1\n", "", "Success=nothing"),
        ("...... PASSED", "...... FAILED", "HPL's residual is too large"),
        ("0 tests completed and failed", "2 tests completed and failed", "2 tests of PTRANS"),
        ("MPIRandomAccess_ErrorsFraction=0\n", "MPIRandomAccess_ErrorsFraction=0.02\n", "errors in 0.02"),
        ("MPIRandomAccess_LCG_ErrorsFraction=0\n", "MPIRandomAccess_LCG_ErrorsFraction=x\n", "errors in x"),
        ("Node(s) with error 0", "Node(s) with error 3", "StarRandomAccess: 3 ranks had an error"),
        ("MPIFFT_maxErr=", "MPIFFT_maxErr=999999", "MPIFFT: there and back"),
        ("MPIFFT_Gflops=", "MPIFFT_Gflops=-", "MPIFFT_Gflops was not measured"),
        ("PTRANS_GBs=", "PTRANS_GBs=nan ", "PTRANS_GBs was not measured"),
        ("Solution Validates", "Failed Validation on array a[]", "StarSTREAM: the result is wrong"),
    ],
)
def test_a_check_that_did_not_pass_is_a_failure(old, new, failure):
    assert old in TEXT
    found = summary(TEXT.replace(old, new, 1))
    assert [said for said in found.failures if failure in said], found.failures
    with pytest.raises(ImportFormatError, match="passed their checks"):
        formats.read(TEXT.replace(old, new, 1), "hpcc.txt")


def test_an_output_that_ends_early_is_refused():
    for text in (TEXT.partition(output.END)[0], TEXT.partition(output.BEGIN)[0]):
        with pytest.raises(ImportFormatError, match="did HPCC come to its"):
            summary(text)


def test_an_imported_output_says_the_same(tmp_path):
    run, _ = import_run(read_files([OUTPUT]), ["c1"], tmp_path / "run")
    found = result(run)
    values = {figure.name: figure.value.value for figure in found.figures}
    for figure in summary().figures:
        if "PingPong" not in figure.name:  # of two ranks only, for who imports
            assert values[figure.name] == pytest.approx(figure.value, rel=1e-3), figure.name
    assert found.sizes == {"together": 300} and not found.different


def test_another_run_is_no_run_of_hpcc(tmp_path):
    run, _ = import_run(read_files([OUTPUT.with_name("osu.txt")]), [], tmp_path / "run")
    with pytest.raises(AnalysisError, match="it is no run of 'wulf hpcc'"):
        result(run)


def test_the_input_has_as_square_a_grid_as_can_be():
    assert [hpcc.grid(ranks) for ranks in (1, 2, 7, 12, 16, 36)] == [
        *((1, 1), (1, 2), (1, 7), (3, 4), (4, 4), (6, 6)),
    ]
    lines = hpcc.input_file(5000, 12).splitlines()
    assert lines[5].split() == ["5000", "Ns"] and lines[10].split()[0] == "3" and lines[11].split()[0] == "4"


def test_the_size_fits_into_time_and_memory():
    assert hpcc.size_for(10.0, (1000, 10.0, 2.0)) == 1000
    assert hpcc.size_for(8000.0, (1000, 10.0, 8.0)) == pytest.approx(9915, rel=0.01)
    assert hpcc.size_for(0.001, (1000, 10.0, 2.0)) == hpcc.SMALLEST
    size = hpcc.fitting(10**6, 16e9)
    assert size == 31000 and 8 * size**2 <= hpcc.MEMORY_SHARE * 16e9
    assert hpcc.fitting(1234, 16e9) == 1200
    with pytest.raises(UsageError, match="N is from 200"):
        hpcc.check_size(10)
