"""The messages of collectives, as the replay has them, against those that Open MPI counts itself."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.programs import HERE, compiled, required, sanitized
from tests.tiers import mostly_thorough

#: [B]; doubles that halves and thirds do not cut, as the replay does not know where one ends.
SIZES = (8, 16, 64, 768, 1536, 3072, 7680, 21504, 61440, 144384, 307200, 614400, 1228800)
#: Above this an exchange of all with all may be by persistent requests, which the library does not count.
COUNTED_ALLTOALL = 8192
#: Of all ranks together [B]: the program's buffers.
MOST = 4 << 20
ROOTED = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")
PARTS_DIFFER = ("gatherv", "scatterv", "allgatherv", "reduce_scatter")
OTHERS = (
    "barrier",
    "allreduce",
    "allgather",
    "alltoall",
    "allgatherv",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)
MONITORED = {"enable": "2", "enable_output": "3"}

#: (from, to) → messages, bytes.
Messages = dict[tuple[int, int], tuple[int, int]]


def calls(ranks: int) -> Iterator[tuple[str, int, int, int, list[int]]]:
    """Yield collective, whether it is only begun, root, bytes, and those of each rank where they differ."""
    for name in (*ROOTED, *OTHERS):
        for begun in (0, 1):
            for size in SIZES if name != "barrier" else (0,):
                is_counted = name != "alltoall" or begun or size < COUNTED_ALLTOALL
                if size * ranks > MOST or not is_counted:
                    continue
                parts = [size + 8 * (rank % 3) for rank in range(ranks)] if name in PARTS_DIFFER else []
                for root in (0, ranks - 1) if name in ROOTED else (0,):
                    yield name, begun, root, size, parts


def replayed(text: str, ranks: int) -> Messages:
    """Return what the replay sends in some calls."""
    argv = [sanitized("replay_moves"), "Open MPI v4.1.4, as it calls itself", str(ranks)]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True, timeout=60)
    messages, bytes_ = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for word in done.stdout.split():
        pair, count, size = word.split(":")
        source, target = map(int, pair.split(">"))
        messages[source, target] += int(count)
        bytes_[source, target] += int(size)
    return {pair: (messages[pair], bytes_[pair]) for pair in messages}


def counted(place: Path, text: str, ranks: int) -> Messages:
    """Return what the library counts of its own messages while the program makes some calls."""
    place.mkdir()
    (place / "calls").write_text(text)
    mpi = required("openmpi")
    program = compiled("collectives", mpi.compiler, "-O1", HERE / "collectives.c")
    options = {"btl": "self,vader", "mpi_yield_when_idle": "1"}
    options |= {f"pml_monitoring_{name}": value for name, value in MONITORED.items()}
    options["pml_monitoring_filename"] = str(place / "counted")
    words = [word for name, value in options.items() for word in ("--mca", name, value)]
    argv = [mpi.mpirun, "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), *words]
    subprocess.run([*argv, program, place / "calls"], check=True, capture_output=True, timeout=300)
    found: Messages = {}
    for file in place.glob("counted.*.prof"):
        for line in file.read_text().splitlines():
            # I: messages of the library's own.
            if line.startswith("I\t"):
                _, source, target, size, _, count, *_ = line.split()
                found[int(source), int(target)] = (int(count), int(size))
    return found


@pytest.mark.parametrize("ranks", mostly_thorough((2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17), 4, 5))
def test_collectives_are_made_of_the_messages_that_open_mpi_sends(tmp_path: Path, ranks: int) -> None:
    text = "".join(
        f"{name} {begun} {root} {size} {' '.join(map(str, parts))}\n"
        for name, begun, root, size, parts in calls(ranks)
    )
    before = counted(tmp_path / "none", "", ranks)  # what it sends when it begins and ends
    everything = counted(tmp_path / "all", text, ranks)
    nothing = (0, 0)
    found = {
        pair: (count - before.get(pair, nothing)[0], size - before.get(pair, nothing)[1])
        for pair, (count, size) in everything.items()
    }
    assert {pair: of for pair, of in found.items() if of != nothing} == replayed(text, ranks)
