"""Archives of OTF2 for tests, written by OTF2's own writer as Score-P would write them."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from wulf.base.trace.imported.otf2_sizes import KINDS
from wulf.base.trace.layout import Kind
from wulf.base.trace.reader import Entry, Trace, communicator

WRITER = Path(__file__).with_name("otf2_writing.py")
REAL = Path(__file__).parents[1] / "golden/traces/otf2/eztrace_log.otf2"
NONE = 0xFFFFFFFF


@cache
def python() -> str:
    """Return a Python that has the library; the test is left out where there is none."""
    for one in (sys.executable, "/usr/bin/python3"):
        command = [one, "-c", "import _otf2"]
        if Path(one).exists() and not subprocess.run(command, capture_output=True, check=False).returncode:
            return one
    pytest.skip("OTF2's library is not installed: apt-get install python3-otf2")


def write(directory: Path, records: list, **said) -> Path:
    """Write an archive of records (rank, thread, name, time, the rest); returns its anchor file."""
    usual = {
        "ranks": 2,
        "threads": 1,
        "resolution": 10**9,
        "creator": "Score-P 8.4",
        "gpu": False,
        "comms": [["MPI_COMM_WORLD", list(range(said.get("ranks", 2)))]],
    }
    text = json.dumps({**usual, **said, "records": records})
    done = subprocess.run(
        [python(), str(WRITER), str(directory)], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return directory / "traces.otf2"


def call(rank, name, begin, end, *records, thread=0):
    """Return the records of a call of MPI."""
    return [
        [rank, thread, "enter", begin, f"MPI_{name}"],
        *([rank, thread, kind, begin, *rest] for kind, *rest in records),
        [rank, thread, "leave", end, f"MPI_{name}"],
    ]


def as_score_p(kind: Kind, rank: int, ranks: int, own: int, total: int, root: int) -> tuple[int, int]:
    """Return what Score-P says that a rank sent and received: its own part, and the sum of all ranks' parts."""
    is_root = rank == root
    return {
        Kind.BARRIER: (0, 0),
        Kind.BCAST: (ranks * own if is_root else 0, own),
        Kind.SCATTER: (ranks * own if is_root else 0, own),
        Kind.SCATTERV: (total if is_root else 0, own),
        Kind.GATHER: (own, ranks * own if is_root else 0),
        Kind.REDUCE: (own, ranks * own if is_root else 0),
        Kind.GATHERV: (own, total if is_root else 0),
        Kind.ALLGATHERV: (ranks * own, total),
        Kind.ALLTOALLV: (own, own),
        Kind.ALLTOALLW: (own, own),
        Kind.REDUCE_SCATTER: (total, ranks * own),
        Kind.SCAN: ((ranks - rank) * own, (rank + 1) * own),
        Kind.EXSCAN: ((ranks - rank - 1) * own, rank * own),
    }.get(kind, (ranks * own, ranks * own))


class _Recorder:
    """Says of a rank's records what Score-P records of the same calls."""

    def __init__(self, trace: Trace, rank: int, comms: list) -> None:
        self.trace, self.rank, self.comms = trace, rank, comms
        self.time = 0
        self.records: list = []
        self.numbers = {0: 0, 1: 1}
        self.receives: dict[int, list] = {}

    def record(self, entries: list[Entry]) -> None:
        """Record the entries of one call."""
        first = entries[0]
        self.time += first.compute_ns
        begin, self.time = self.time, self.time + first.call_ns
        said = [self.said(one) for one in entries]
        self.records += call(self.rank, self.name(first), begin, self.time, *said)

    def name(self, entry: Entry) -> str:
        return {Kind.WAIT_SOME: "Waitsome", Kind.TEST: "Test"}.get(entry.kind, entry.kind.name.capitalize())

    def said(self, entry: Entry) -> list:
        message = [entry.peer, self.numbers[entry.comm], entry.tag, entry.bytes]
        if entry.kind in (Kind.SEND, Kind.SSEND, Kind.BSEND, Kind.SENDRECV):
            return ["mpi_send", *message]
        if entry.kind in (Kind.RECV, Kind.RECV_PART):
            return ["mpi_recv", *message]
        if entry.kind in (Kind.ISEND, Kind.ISSEND, Kind.IBSEND):
            return ["mpi_isend", *message, entry.request]
        if entry.kind is Kind.IRECV:
            self.receives[entry.request] = ["mpi_irecv", *message, entry.request]
            return ["mpi_irecv_request", entry.request]
        if entry.kind in (Kind.WAIT, Kind.WAIT_SOME, Kind.TEST):
            return self.receives.pop(entry.request, ["mpi_isend_complete", entry.request])
        return ["mpi_collective_end", *self.collective(entry, self.numbers[entry.comm])]

    def collective(self, entry: Entry, comm: int) -> list:
        members = self.comms[comm][1]
        ranks, own = max(len(members), 1), members.index(self.rank) if members else 0
        sizes = entry.sizes().tolist()
        part = sum(sizes) if entry.kind in (Kind.ALLTOALLV, Kind.ALLTOALLW) else entry.bytes
        sent = as_score_p(entry.kind, own, ranks, part, sum(sizes), entry.peer)
        return [KINDS.index(entry.kind), comm, entry.peer if entry.peer >= 0 else NONE, *sent]


def of_trace(trace: Trace, directory: Path) -> Path:
    """Write what Score-P would have recorded of a traced program: of messages, requests and collectives."""
    comms = [["MPI_COMM_WORLD", list(range(trace.ranks))], ["MPI_COMM_SELF", []]]
    found = []
    for rank, stream in enumerate(trace.streams):
        recorder = _Recorder(trace, rank, comms)
        together: list[Entry] = []
        recorder.records += call(rank, "Init", 0, 0)
        for entry in [*stream.records(), None]:
            if entry is None or not (entry.kind is Kind.RECV_PART or entry.flags & 16):
                if together:
                    recorder.record(together)
                together = []
            if entry is not None and entry.kind is Kind.COMMUNICATOR:
                members = list(communicator(entry.payload, trace.ranks, "").members)
                place = next((at for at, one in enumerate(comms) if one[1] == members and at > 1), len(comms))
                if place == len(comms):
                    comms.append([f"comm {place}", members])
                recorder.numbers[entry.comm] = place
            elif entry is not None and entry.kind is not Kind.PHASE:
                together.append(entry)
        end = max(stream.run_ns, recorder.time)
        recorder.records += call(rank, "Finalize", end, end)
        found += recorder.records
    return write(directory, found, ranks=trace.ranks, comms=comms)
