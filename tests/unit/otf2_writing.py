"""Write an OTF2 archive with OTF2's own writer: a program for the Python that has it, `DIRECTORY`, with JSON as input.

Of what comes in: ``ranks``, ``threads`` of each, ``comms`` (name, members; none is the rank alone), ``records`` (rank,
thread, name, time, the rest as OTF2 has it; regions by name, communicators by their place).
"""

import json
import sys
from pathlib import Path

del sys.path[0]  # our own directory

import _otf2  # noqa: E402
import otf2  # noqa: E402
from otf2.enums import (  # noqa: E402
    CollectiveOp,
    GroupType,
    LocationType,
    MeasurementMode,
    Paradigm,
)


def regions_of(define, records):
    names = sorted({record[4] for record in records if record[2] in ("enter", "leave")})
    paradigm = {True: Paradigm.MPI, False: Paradigm.USER}
    return {name: define.region(name, paradigm=paradigm[name.startswith("MPI_")]) for name in names}


def comms_of(define, given, locations):
    if not given:
        return []
    define.group("MPI", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=locations)
    found = []
    for place, (name, members) in enumerate(given):
        kind = GroupType.COMM_GROUP if members else GroupType.COMM_SELF
        group = define.group(f"group {place}", group_type=kind, paradigm=Paradigm.MPI, members=members)
        found.append(define.comm(name, group))
    return found


def values(name, rest, regions, comms):
    if name in ("enter", "leave"):
        return [regions[rest[0]]]
    if name in ("mpi_send", "mpi_recv", "mpi_isend", "mpi_irecv"):
        return [rest[0], comms[rest[1]], *rest[2:]]
    if name in ("mpi_collective_end", "non_blocking_collective_complete"):
        return [CollectiveOp(rest[0]), comms[rest[1]], *rest[2:]]
    if name == "measurement_on_off":
        return [MeasurementMode(rest[0])]
    return rest


def main(directory):
    said = json.load(sys.stdin)
    with otf2.writer.open(directory, timer_resolution=said["resolution"]) as trace:
        _otf2.Archive_SetCreator(trace._handle, said["creator"])
        define = trace.definitions
        root = define.system_tree_node("machine")
        writers, locations = {}, {}
        for rank in range(said["ranks"]):
            node = define.system_tree_node(f"node{rank // 2:02}", parent=root)
            process = define.location_group(f"MPI Rank {rank}", system_tree_parent=node)
            for thread in range(said["threads"]):
                location = define.location(f"{rank}.{thread}", group=process)
                locations[rank, thread] = location
                writers[rank, thread] = trace.event_writer_from_location(location)
        if said["gpu"]:
            define.location("GPU", type=LocationType.ACCELERATOR_STREAM, group=process)
        comms = comms_of(define, said["comms"], [locations[rank, 0] for rank in range(said["ranks"])])
        regions = regions_of(define, said["records"])
        for rank, thread, name, time, *rest in said["records"]:
            getattr(writers[rank, thread], name)(time, *values(name, rest, regions, comms))


main(str(Path(sys.argv[1])))
