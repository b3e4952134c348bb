"""Other people's files have their right values: what `make bench NAME=field` counts, each as a test."""

from __future__ import annotations

import pytest

from bench import field
from wulf.base.errors import ImportFormatError
from wulf.base.importing import formats

CASES = field.cases()


@pytest.mark.parametrize("case", CASES, ids=[case["file"] for case in CASES])
def test_an_output_says_what_is_right(case):
    judged = field.judged(case)
    assert judged.outcome == ("refused" if "refused" in case else "right"), judged.words


@pytest.mark.parametrize("case", field.cases(field.TRACES), ids=lambda case: case["file"])
def test_a_trace_says_what_is_right(case):
    judged = field.judged_trace(case)
    assert judged.outcome == ("refused" if "refused" in case else "right"), judged.words


def test_every_output_has_its_right_value():
    files = {
        path.relative_to(field.IMPORTS).as_posix() for path in field.IMPORTS.glob("*/**/*") if path.is_file()
    }
    assert files == {case["file"] for case in CASES}


def test_a_case_that_is_wrong_is_found():
    wrong = {**CASES[0], "is": [[*CASES[0]["is"][0][:3], 801e6, 2]]}
    assert field.judged(wrong).outcome == "wrong"
    assert field.judged({**CASES[0], "refused": "x"}).outcome == "wrong"
    assert field.judged({**CASES[0], "file": "cases.toml"}).outcome == "wrong"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        # A heading, a unit, a test that nobody knows.
        ("01-osu-validation/bw.txt", "Bandwidth (MB/s)", "Bandwidth (GB/h)", r"line 4: a column that is not known"),
        ("04-osu-datatypes/allreduce.txt", "Avg Latency(us)", "Avg Latency(ms)", r"line 4: a column that is not known"),
        ("07-netperf-units/g.txt", "10^9bits/sec", "furlongs/sec", r"line 7: a unit that is not known, 'furlongs/sec'"),
        ("08-netperf-crr/crr.txt", "Connect/Request/Resp", "Connect/Sing/Resp", r"line 1: expected a test of netperf"),
        ("06-netperf-cpu/stream.txt", "Service Demand", "Wisdom Demand", r"line 5: expected a heading that is known"),
        ("16-imb-misc/biband.txt", "Msg/sec", "Msg/day", r"line 24: a column that is not known, 'Msg/day'"),
        ("12-hpl-gpu/hpl.txt", "Gflops (   per GPU)", "Tflops (   per GPU)", r"line 16: expected the columns"),
        ("31-netpipe-2/np.txt", "0.000120 sec", "0.000120 min", r"line 3: a unit that is not known, 'min'"),
        ("11-iperf3-udp/udp-3.9.json", '"lost_percent":66.4', '"lost_percent":"many"', r"expected lost_percent to be"),
        # Rows without what they need.
        ("02-osu-mbw-mr/mbw.txt", "58000000.00", "", r"line 4: expected numbers: 3 columns"),
        ("16-imb-misc/allreduce.txt", "#processes = 2", "#processes = 99999999999", r"a number of ranks, 1 to"),
        ("02-osu-mbw-mr/mbw.txt", "pairs: 48", "pairs: " + "9" * 5000, r"a number of ranks, 1 to"),
        ("26-imb-failed-samples/mem.txt", "1048576", "9" * 400, r"line 10: expected numbers"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_by_name(file, old, new, said):
    text = (field.IMPORTS / "field" / file).read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ImportFormatError, match=said) as caught:
        formats.read(text.replace(old, new), file)
    assert file in str(caught.value)


def test_a_remark_that_nobody_knows_keeps_tables_apart():
    def output(remark: str) -> str:
        return f"# OSU MPI Latency Test v9\n# {remark}\n# Size  Avg Latency(us)\n8  2.00\n"

    names = [formats.read(output(remark), "f")[0][0].name for remark in ("Colour: red.", "Colour: blue.")]
    assert names == ["OSU Latency, Colour: red", "OSU Latency, Colour: blue"]
    long = [formats.read(output("Colour: " + "x" * 80 + end), "f")[0][0].name for end in "ab"]
    assert long[0] != long[1]


def test_numbers_without_a_heading_are_refused():
    with pytest.raises(ImportFormatError, match="f, line 2: numbers without a heading"):
        formats.read("# OSU MPI Latency Test v7\n8   2.00\n", "f")
    table = "# OSU MPI Latency Test v7\n# Size  Avg Latency(us)\n8  2.00\n"
    with pytest.raises(ImportFormatError, match="line 5: numbers without a heading"):
        formats.read(f"{table}mpirun noticed that rank 1 exited\n16  3.00\n", "f")


def test_outputs_of_two_programs_in_a_file_are_refused():
    osu, imb = (
        (field.IMPORTS / "field" / name).read_text()
        for name in ("14-osu-cuda/host.txt", "26-imb-failed-samples/mem.txt")
    )
    with pytest.raises(
        ImportFormatError, match=r"f: it has outputs of Intel MPI Benchmarks and OSU .*: make a file of each"
    ):
        formats.read(osu + imb, "f")


def test_what_another_system_wrote_is_read():
    text = (field.IMPORTS / "field/14-osu-cuda/host.txt").read_text()
    for raw in (text.encode("utf-16"), text.encode("utf-8-sig"), text.replace("\n", "\r\n").encode()):
        ((series,),) = formats.read(formats.decoded(raw, "f"), "f")
        assert series.times_s[8] == pytest.approx(2e-6)
    with pytest.raises(ImportFormatError, match="f: it is not text"):
        formats.decoded(b"# OSU \0", "f")
    with pytest.raises(ImportFormatError, match="f: it has more than 64 MiB"):
        formats.decoded(b"#" * (65 << 20), "f")
