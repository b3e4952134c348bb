"""The layout of a trace, as ``native/trace/format.h`` says it: types of numpy and the numbers in them."""

from __future__ import annotations

import enum

import numpy as np

VERSION = 2
HEADER_BYTES = 4096
SLOT_BYTES = 32
STREAM_MAGIC = b"wulfrank"
CONTAINER_MAGIC = b"wulftrce"

#: Numbers of communicators; others of a rank from 2 on.
WORLD, SELF = 0, 1
#: In ``peer``; ANY also in ``tag``.
NOBODY, ANY = -1, -2

#: No time of a program is longer, nor the sum of a rank's: thirty years.
MOST_NS = 10**18

RECORD = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        ("comm", "<u2"),
        ("peer", "<i4"),
        ("tag", "<i4"),
        ("request", "<u4"),
        ("bytes", "<u8"),
        ("compute_ns", "<u4"),
        ("call_ns", "<u4"),
    ]
)

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("header_bytes", "<u4"),
        ("slot_bytes", "<u4"),
        ("rank", "<i4"),
        ("ranks", "<i4"),
        ("state", "<u4"),
        ("slots", "<u8"),
        ("lost", "<u8"),
        ("run_ns", "<u8"),
        ("unsound", "<u8"),
        ("passed", "<u8"),
        ("checksum", "<u4"),
        ("header_checksum", "<u4"),
        ("host", "S256"),
        ("library", "S256"),
        ("program", "S1024"),
    ]
)

#: Behind the header: which threads called MPI, and how far at the same time.
THREADS_OFFSET = 2048
THREAD = np.dtype([("name", "S16"), ("calls", "<u8"), ("overlapping", "<u8"), ("overlapping_ns", "<u8")])
THREADS = np.dtype(
    [
        ("threads", "<u4"),
        ("checksum", "<u4"),
        ("overlap_ns", "<u8"),
        ("overlapping_ns", "<u8"),
        ("of", THREAD, (16,)),
    ]
)
#: Calls at the same time that take less than this part of a run are replayed one after the other.
OVERLAP_PART = 1000

CONTAINER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("ranks", "<u4"),
        ("note_offset", "<u8"),
        ("note_bytes", "<u8"),
    ]
)

PART = np.dtype([("offset", "<u8"), ("bytes", "<u8")])

#: What a communicator's payload begins with; members, sources and targets follow as ``<i4``.
COMMUNICATOR = np.dtype(
    [("members", "<u4"), ("sources", "<u4"), ("targets", "<u4"), ("inter", "<u4"), ("rank", "<i4")]
)


class State(enum.IntEnum):
    """How far the program came."""

    RUNNING = 0
    FINISHED = 1
    FULL = 2


class Unsound(enum.IntEnum):
    """What a replay cannot follow soundly: places of bits."""

    THREADS = 0
    ONE_SIDED = 1
    PROCESSES = 2
    INTER = 3
    FILES = 4
    CANCELLED = 5
    PASSED = 6


class Flag(enum.IntFlag):
    """Of a record."""

    PAYLOAD = 1
    IN_PLACE = 2
    NONBLOCKING = 4
    FIRST = 8
    NEXT = 16
    WILD = 32
    FAILED = 64


class Kind(enum.IntEnum):
    """What a record is."""

    COMMUNICATOR = 0
    TIME = 1
    PHASE = 2

    SEND = 8
    SSEND = 9
    BSEND = 10
    RECV = 11
    ISEND = 12
    ISSEND = 13
    IBSEND = 14
    IRECV = 15
    SENDRECV = 16
    RECV_PART = 17
    SEND_INIT = 18
    SSEND_INIT = 19
    BSEND_INIT = 20
    RECV_INIT = 21
    START = 22
    FREE = 23
    PROBE = 24
    MRECV = 25
    IMRECV = 26

    WAIT = 32
    WAIT_SOME = 33
    TEST = 34
    CANCEL = 35

    BARRIER = 64
    BCAST = 65
    GATHER = 66
    GATHERV = 67
    SCATTER = 68
    SCATTERV = 69
    ALLGATHER = 70
    ALLGATHERV = 71
    ALLTOALL = 72
    ALLTOALLV = 73
    ALLTOALLW = 74
    REDUCE = 75
    ALLREDUCE = 76
    REDUCE_SCATTER = 77
    REDUCE_SCATTER_BLOCK = 78
    SCAN = 79
    EXSCAN = 80
    NEIGHBOR_ALLGATHER = 81
    NEIGHBOR_ALLGATHERV = 82
    NEIGHBOR_ALLTOALL = 83
    NEIGHBOR_ALLTOALLV = 84
    NEIGHBOR_ALLTOALLW = 85
    MAKE_COMMUNICATOR = 86

    WINDOW = 96
    FENCE = 97
    PUT = 98
    WINDOW_FREE = 99

    OTHER = 127


class Mark(enum.IntEnum):
    """Of a pattern's `PHASE`, in `request`: what the next records belong to."""

    NONE = 0
    ITERATION = 1
    SERVE = 2
    FARM = 3
    DONE = 4
    END = 5
