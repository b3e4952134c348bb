"""HPC Challenge: what its output says, what is a failure, and how large a problem may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.site import local_cluster
from wulf.base.contracts import NodeResult
from wulf.base.errors import AnalysisError, BuildError, ImportFormatError, ProbeError, UsageError
from wulf.base.importing import challenge as output
from wulf.base.importing import formats
from wulf.base.importing.series import Source
from wulf.base.native import build
from wulf.base.records import NodeRecord
from wulf.node.cluster.inventory import parse
from wulf.node.cluster.transport import open_transport
from wulf.node.fleet import preparation
from wulf.node.measuring.imported import import_run, read_files
from wulf.tools.hpcc import program as hpcc
from wulf.tools.hpcc import work as procedure
from wulf.tools.hpcc.request import SMALLEST, HpccRequest
from wulf.tools.hpcc.result import COMPARED, result

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
    # What looks like a rate, a latency or a time is not a setting.
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
        with pytest.raises(ImportFormatError, match="did HPCC finish"):
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
    with pytest.raises(AnalysisError, match="it is not a run of 'wulf bench hpcc'"):
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
    assert hpcc.size_for(0.001, (1000, 10.0, 2.0)) == SMALLEST
    size = hpcc.fitting(10**6, 16e9)
    assert size == 31000 and 8 * size**2 <= hpcc.MEMORY_SHARE * 16e9
    assert hpcc.fitting(1234, 16e9) == 1200


def cluster(more="", mpi=""):
    return parse(f'[cluster]\nnodes = "node[01-04]"\n{more}\n[mpi]\n{mpi}\n', "test")


def nodes(memory=16 * 2**30, **facts):
    facts = {"cpu.allowed": "0-3", "node.container": "none", "memory.total_bytes": memory} | facts
    return [
        NodeRecord(
            node=f"node{number:02d}",
            reachable=True,
            facts={name: value for name, value in facts.items() if value},
        )
        for number in range(1, 5)
    ]


CONTAINED = {"node.container": "systemd-nspawn"}
SHARED = 'shared_cpus = [["node01", "node02"], ["node03", "node04"]]'


@pytest.mark.parametrize(
    ("more", "facts", "together", "alone"),
    [
        ("", {}, [64], [16]),
        # Virtual nodes have one memory, all of them at the same time.
        ("", CONTAINED, [16], [4]),
        (SHARED, CONTAINED, [16], [8, 8]),
        (SHARED, {}, [16], [16, 16]),
    ],
)
def test_nodes_of_one_host_have_its_memory_once(more, facts, together, alone):
    config, records = cluster(more), nodes(**facts)
    request = HpccRequest(cluster=config, budget_s=60.0, launches=6)
    jobs = procedure._jobs(request, records, 2, "openmpi", ("directory", "/usr/bin/hpcc"))
    assert [job.memory_bytes / 2**30 for job in jobs if job.nodes > 1] == together
    assert [job.memory_bytes / 2**30 for job in jobs if job.nodes == 1] == alone
    # So quick that time is no limit.
    scouted = [procedure._Scouted(job=job, summary=summary(), took_s=1e-6) for job in jobs]
    for job in procedure._sized(request, scouted, 1e6):
        assert 8 * job.size**2 <= hpcc.MEMORY_SHARE * job.memory_bytes
    assert sum(len(job.places) for job in jobs if job.nodes == 1) == 4


def test_unknown_memory_is_said_where_no_size_is_given():
    config, records = cluster(), nodes()
    records[2] = NodeRecord(node="node03", reachable=True, facts={"cpu.allowed": "0-3"})
    assert preparation.memory_bytes(config, records) is None
    request = HpccRequest(cluster=config, budget_s=60.0, launches=6)
    with pytest.raises(UsageError, match=r"node03: the memory is not known .* with --size"):
        procedure._require_memory(request, records)
    given = HpccRequest(cluster=config, budget_s=60.0, launches=6, size=2000)
    procedure._require_memory(given, records)
    jobs = procedure._jobs(given, records, 2, "openmpi", ("directory", "/usr/bin/hpcc"))
    scouted = [procedure._Scouted(job=job, summary=summary(), took_s=1.0) for job in jobs]
    assert [job.size for job in procedure._sized(given, scouted, 10.0)] == [2000, 1000]


def test_a_relative_path_is_that_of_where_it_was_looked_up(tmp_path, monkeypatch):
    program = tmp_path / "my hpcc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    transport = open_transport(local_cluster())
    try:
        assert procedure._program(transport, ["node01"], "./my hpcc") == (f"{tmp_path}/./my hpcc", None)
        assert procedure._program(transport, ["node01"], str(program)) == (str(program), None)
        with pytest.raises(ProbeError, match=r"node01: there is no \./nonesuch"):
            procedure._program(transport, ["node01"], "./nonesuch")
    finally:
        transport.close()


class Nodes:
    """Nodes that have found the program at some path."""

    def __init__(self, **paths):
        self.paths = paths

    def run(self, _argv, names, **_):
        said = {name: f"{self.paths[name]}\n\tlibmpi.so.12 => /opt/libmpi.so.12\n".encode() for name in names}
        return {
            name: NodeResult(node=name, status="ok", exit_code=0, stdout=out, stderr=b"")
            for name, out in said.items()
        }


def test_a_program_may_be_elsewhere_on_another_node_if_its_name_finds_it():
    apart = Nodes(node01="/usr/bin/hpcc", node02="/opt/bin/hpcc")
    assert procedure._program(apart, ["node01", "node02"], "hpcc") == ("hpcc", "mpich")
    with pytest.raises(ProbeError, match="--program bin/hpcc: it is at /usr/bin/hpcc, /opt/bin/hpcc"):
        procedure._program(apart, ["node01", "node02"], "bin/hpcc")
    alike = Nodes(node01="/usr/bin/hpcc", node02="/usr/bin/hpcc")
    assert procedure._program(alike, ["node01", "node02"], "hpcc") == ("/usr/bin/hpcc", "mpich")


def test_the_library_that_starts_it_is_the_one_that_the_site_names(monkeypatch):
    known = [
        build.MpiLibrary(compiler=f"/usr/bin/mpicc.{family}", family=family, version=family)
        for family in ("openmpi", "mpich")
    ]

    def find(wanted=None):
        return [one for one in known if wanted in (None, one.family, one.compiler)]

    monkeypatch.setattr(procedure.build, "find_mpi", find)
    assert procedure._library(cluster(), "mpich").family == "mpich"
    assert procedure._library(cluster(), None).family == "openmpi"
    named = cluster(mpi='compiler = "/usr/bin/mpicc.openmpi"')
    assert procedure._library(named, "mpich").family == "openmpi"
    known.pop()
    with pytest.raises(BuildError, match=r"there is no mpich here .*\[mpi\] compiler"):
        procedure._library(cluster(), "mpich")
