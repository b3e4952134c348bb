"""What a reader of figures of files is told: whether they are figures of memory."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.make_cells import cell
from tests.unit.make_records import operation, result, sample
from wulf.base.records import Clock, ProbeInfo
from wulf.stats.estimate import files
from wulf.stats.estimate.cells import _in_memory


def _told(op: str, in_memory: float | None, filesystem: str = "ext4") -> list[str]:
    of_files = msgspec.structs.replace(operation(op), files=True)
    one = msgspec.structs.replace(cell(4096, [1e-3] * 6, op=op), in_memory=in_memory)
    clock = Clock(source="CLOCK_MONOTONIC_RAW", resolution_ns=1.0, cost_ns=20.0)
    probe = ProbeInfo(
        version="1", protocol=1, mpi="MPI", hosts=[], cpus=[], clock=clock, filesystem=filesystem
    )
    done = result(op=op)
    launch = msgspec.structs.replace(done.launch, probe=probe)
    of_launch = msgspec.structs.replace(done, launch=launch)
    return [advice.kind for advice in files.advise([one], [of_launch], [of_files])]


@pytest.mark.parametrize(
    ("op", "in_memory", "kinds"),
    [
        ("mpi_file_read_own", 1.0, ["files_cached"]),
        ("mpi_file_read_own", 0.0, []),
        ("mpi_file_read_own_dropped", 0.0, []),
        ("mpi_file_read_own_dropped", 0.4, ["files_kept"]),
        ("mpi_file_write_shared", 1.0, ["files_cached"]),
        ("mpi_file_write_shared_sync", 1.0, []),
        ("mpi_file_write_shared_sync", None, ["files_unknown"]),
        ("mpi_file_read_own", None, ["files_unknown"]),
    ],
)
def test_a_figure_of_memory_is_told_from_one_of_a_disk(op, in_memory, kinds):
    assert _told(op, in_memory) == kinds


def test_memory_that_is_a_directory_and_other_machines_are_told():
    assert _told("mpi_file_write_own_sync", 1.0, "tmpfs") == ["files_in_memory"]
    assert _told("mpi_file_write_own_sync", 1.0, "nfs") == ["files_remote"]
    assert _told("mpi_file_write_own_sync", 1.0, "0x00001234") == []


def test_what_one_launch_does_not_say_is_not_known_of_all():
    known = msgspec.structs.replace(sample(0), in_memory=[0.5, 0.25])
    unsaid = msgspec.structs.replace(sample(1), in_memory=[0.5, None])
    assert _in_memory([known, known]) == 0.375
    assert _in_memory([known, unsaid]) is None
    assert _in_memory([known, sample(1)]) is None
    assert _in_memory([]) is None
