"""Outputs of other benchmarks, as they really are, become times with the statistic that they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from wulf.base import store
from wulf.base.errors import ImportFormatError, UsageError
from wulf.base.importing import formats
from wulf.base.importing.series import MEAN
from wulf.node.measuring.imported import import_run, read_files
from wulf.page.page import html
from wulf.page.terminal import page_text
from wulf.tools.measure.page import build

OUTPUTS = Path(__file__).parents[1] / "golden" / "imports"


def read(name: str):
    (launch,) = formats.read((OUTPUTS / name).read_text(encoding="utf-8"), name)
    return {series.name: series for series in launch}


@pytest.mark.parametrize(
    ("file", "name", "size", "seconds", "quantity"),
    [
        ("imb.txt", "IMB PingPong", 0, 0.31e-6, "half round trip"),
        ("imb.txt", "IMB Sendrecv", 4096, 4.10e-6, "time of a call"),
        ("imb.txt", "IMB Barrier", 0, 0.34e-6, "time of a call"),
        ("osu.txt", "OSU Latency", 0, 0.33e-6, "half round trip"),
        ("osu-bw.txt", "OSU Bandwidth", 1, 1 / 22.19e6, "time per message"),
        ("osu-allreduce.txt", "OSU Allreduce Latency", 4, 0.46e-6, "time of a call"),
        ("osu-barrier.txt", "OSU Barrier Latency", 0, 0.44e-6, "time of a call"),
        ("netpipe.out", "NetPIPE", 1, 24.61e-6, "half round trip"),
        ("netpipe-printed.txt", "NetPIPE", 1, 24.61e-6, "half round trip"),
        ("sockperf.txt", "sockperf, TCP, p50", 0, 30.77e-6, "half round trip"),
        ("iperf3.json", "iperf3 TCP", 131072, 42.99798e-6, "time per block"),
        ("hpcc.txt", "HPCC AvgPingPongLatency", 8, 0.301986e-6, "half round trip"),
        ("hpcc.txt", "HPCC AvgPingPongBandwidth", 2_000_000, 2e6 / 16.259e9, "half round trip"),
        ("hpcc.txt", "HPCC HPL_time N 300", 0, 0.00268407, "run time"),
        ("hpl.txt", "HPL WR11C2R4 N 1500 NB 80 grid 1x2", 0, 0.21, "run time"),
    ],
)
def test_what_an_output_says(file, name, size, seconds, quantity):
    series = read(file)[name]
    assert series.times_s[size] == pytest.approx(seconds, rel=1e-4)
    assert series.quantity == quantity


def test_a_statistic_stays_what_it_is():
    assert read("imb.txt")["IMB Allreduce"].statistic == f"{MEAN}, of the slowest rank"
    assert read("netpipe.out")["NetPIPE"].statistic == "least time of the trials of one launch"
    assert read("sockperf.txt")["sockperf, TCP, p99"].statistic == "p99 of the iterations of one launch"


def test_qperf_says_its_size():
    latency = read("qperf.txt")["qperf tcp_lat"]
    assert list(latency.times_s) == [1] and 1e-6 < latency.times_s[1] < 1e-3
    text = (OUTPUTS / "qperf.txt").read_text(encoding="utf-8").replace("msg_size", "size")
    with pytest.raises(ImportFormatError, match="run qperf with -vvu"):
        formats.read(text, "q")


def test_what_another_version_prints_is_read_too():
    osu = "# OSU MPI Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n1            1.50\n"
    ((series,),) = formats.read(osu, "osu7")
    assert series.name == "OSU Latency" and series.times_s == {1: pytest.approx(1.5e-6)}
    mpptest = "#p0\tp1\tdist\tlen\tave time (us)\trate\n0\t1\t1\t0\t55.3\t0.0\n0\t1\t1\t4\t55.9\t7e4\n"
    ((series,),) = formats.read(mpptest, "mpptest")
    assert series.times_s == {0: pytest.approx(55.3e-6), 4: pytest.approx(55.9e-6)}
    netperf = (
        "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0 AF_INET to node02 () port 0 AF_INET\n"
        "Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\nSend   Recv   Size     Size    Time     Rate\n"
        "bytes  Bytes  bytes    bytes   secs.    per sec\n\n"
        "16384  131072 1        1       10.00    20000.00\n16384  131072\n"
    )
    ((series,),) = formats.read(netperf, "netperf")
    assert series.name == "netperf TCP_RR" and series.times_s == {1: pytest.approx(50e-6)}


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        (
            "imb.txt",
            "            1           50         0.32",
            "            1           50         0.3x",
            "line 40: expected numbers",
        ),
        (
            "osu.txt",
            "1                         0.33",
            "1.5                       0.33",
            "a size in whole bytes",
        ),
        ("netpipe-printed.txt", "24.61 usec", "0.00 usec", r"line 5: expected a time \[usec\] above 0"),
        ("iperf3.json", '"blksize"', '"block"', r"not an output of a known benchmark|blksize"),
        ("hpl.txt", "PASSED", "FAILED", "passed their check"),
        ("hpcc.txt", "End of Summary section.", "", "the summary has no end"),
    ],
)
def test_an_error_names_the_file_and_the_line(file, old, new, complaint):
    text = (OUTPUTS / file).read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ImportFormatError, match=complaint) as caught:
        formats.read(text.replace(old, new, 1), file)
    assert file in str(caught.value)


def test_text_of_iperf3_lacks_what_makes_a_time_of_a_rate():
    with pytest.raises(ImportFormatError, match="run iperf3 with -J"):
        read("iperf3.txt")


def test_what_is_no_output_is_refused(tmp_path):
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(ImportFormatError, match=r"not an output of a known benchmark; these are: .*Intel"):
        read_files([tmp_path / "x"])
    with pytest.raises(ImportFormatError, match=r"missing\.txt: No such file"):
        read_files([tmp_path / "missing.txt"])


def test_files_are_launches_of_a_run_that_is_analysed_and_shown(tmp_path):
    text = (OUTPUTS / "osu.txt").read_text(encoding="utf-8")
    files = []
    for number in range(7):
        files.append(tmp_path / f"osu{number}.txt")
        files[-1].write_text(text.replace("0.33", f"0.3{number}"))
    run, analysis = import_run(read_files(files), ["c1", "c2"], tmp_path / "run")
    first = next(cell for cell in analysis.cells if cell.cell.size_bytes == 0)
    assert (first.cell.place, first.time.n) == (("c1", "c2"), 7)
    assert first.time.low is not None and first.time.value == pytest.approx(0.33e-6, rel=1e-3)
    assert first.quantiles_s == {}, "nobody knows the quantiles of its iterations"
    assert analysis.models[0].zero_byte_latency is not None
    shown = page_text(build(run.manifest, run.nodes, run.launches, analysis))
    assert "mean over the iterations of one launch" in shown and "c1 → c2" in shown
    assert "<html" in html(build(run.manifest, run.nodes, run.launches, analysis))
    assert store.load(tmp_path / "run").manifest.status == "complete"


def test_one_file_and_no_nodes(tmp_path):
    run, analysis = import_run(read_files([OUTPUTS / "hpcc.txt"]), [], tmp_path / "run")
    assert {cell.time.n for cell in analysis.cells} == {1}
    assert all(cell.time.low is None for cell in analysis.cells)
    html(build(run.manifest, run.nodes, run.launches, analysis))


def test_ranks_that_nodes_cannot_share(tmp_path):
    text = (OUTPUTS / "imb.txt").read_text(encoding="utf-8").replace("#processes = 2", "#processes = 3")
    (tmp_path / "imb.txt").write_text(text)
    with pytest.raises(UsageError, match="3 ranks, which 2 nodes cannot share evenly"):
        import_run(read_files([tmp_path / "imb.txt"]), ["c1", "c2"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_result_that_hpl_has_not_checked_is_said_to_be_unchecked():
    text = (OUTPUTS / "hpl.txt").read_text(encoding="utf-8")
    unchecked = "\n".join(line for line in text.splitlines() if "||Ax-b||" not in line)
    left_out: list[str] = []
    assert formats.read(unchecked, "hpl.txt", left_out) == formats.read(text, "hpl.txt")
    assert left_out and all("HPL has not checked this result" in words for words in left_out)
    checked: list[str] = []
    formats.read(text, "hpl.txt", checked)
    assert not checked
