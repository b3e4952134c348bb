"""What figures of files are figures of: memory, this node's disk, or another machine.  Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from wulf.base.records import Advice, CellEstimate, LaunchResult, Operation
from wulf.base.units import format_sizes

#: File systems that are memory.
MEMORY = frozenset({"tmpfs", "ramfs"})
#: … and those of which another machine has the files, and a memory of its own.
REMOTE = frozenset(
    {"nfs", "cifs", "smb2", "9p", "lustre", "beegfs", "gpfs", "ceph", "orangefs", "gfs2", "ocfs2"}
)
#: A figure with more than this share in memory is one of memory.
MUCH = 0.5
#: What was to be forgotten may stay to this share: pages at the ends of a piece belong to its neighbours, too.
LEFT = 0.1
#: How the probe calls what reads from the disk, and what writes until it is there.
_FORGOTTEN = "_dropped"
_WRITTEN = "_sync"


def advise(
    cells: Sequence[CellEstimate], results: Iterable[LaunchResult], operations: Sequence[Operation]
) -> Iterator[Advice]:
    """Yield what a reader of figures of files must know: what they are figures of.

    Parameters
    ----------
    cells
        Estimates of the run.
    results
        Its launches, which say what the directory is on.
    operations
        What each operation does.
    """
    asked = {one.name: one.asked.partition(":")[0] or one.name for one in operations if one.files}
    by_op: dict[str, list[CellEstimate]] = defaultdict(list)
    for cell in cells:
        if cell.cell.op in asked:
            by_op[cell.cell.op].append(cell)
    if by_op:
        yield from _filesystem(results)
    for op, group in by_op.items():
        yield from _of_operation(op, asked[op], group)


def _filesystem(results: Iterable[LaunchResult]) -> Iterator[Advice]:
    seen = {result.launch.probe.filesystem for result in results if result.launch.probe is not None} - {""}
    if found := seen & MEMORY:
        yield Advice(
            kind="files_in_memory",
            severity="warning",
            subject=", ".join(sorted(found)),
            text="the directory of the files is memory, not a disk",
            advice="These figures say nothing of storage: name a directory on it with --dir.",
        )
    elif found := seen & REMOTE:
        yield Advice(
            kind="files_remote",
            severity="note",
            subject=", ".join(sorted(found)),
            text="the files are on another machine, whose own cache cannot be seen from here",
            advice="Read figures of files as those of the network and that machine together; its memory may serve "
            "more than its disks could.",
        )


def _of_operation(op: str, asked: str, cells: Sequence[CellEstimate]) -> Iterator[Advice]:
    if unknown := [cell for cell in cells if cell.in_memory is None]:
        yield Advice(
            kind="files_unknown",
            severity="warning",
            subject=op,
            text=f"it cannot be told how much was in memory ({_sizes(unknown, cells)})",
            advice="Take the figures for ones of memory, unless they end with the disk (…_sync).",
        )
    most = LEFT if asked.endswith(_FORGOTTEN) else MUCH
    inside = [cell for cell in cells if cell.in_memory is not None and cell.in_memory > most]
    if not inside or asked.endswith(_WRITTEN):
        return
    if asked.endswith(_FORGOTTEN):
        yield Advice(
            kind="files_kept",
            severity="warning",
            subject=op,
            text=f"the nodes kept in memory what they were asked to drop ({_sizes(inside, cells)})",
            advice="These are figures of memory: this file system has another cache than the kernel's.",
        )
    elif "_write_" in asked:
        yield Advice(
            kind="files_cached",
            severity="note",
            subject=op,
            text=f"what was written was in memory when the call returned ({_sizes(inside, cells)})",
            advice=f"It need not be on a disk: {asked}{_WRITTEN} waits for that.",
        )
    else:
        yield Advice(
            kind="files_cached",
            severity="note",
            subject=op,
            text=f"what was read was in memory already ({_sizes(inside, cells)})",
            advice=f"These are figures of memory: {asked}{_FORGOTTEN} reads what the nodes were asked to drop.",
        )


def _sizes(some: Sequence[CellEstimate], measured: Sequence[CellEstimate]) -> str:
    return format_sizes(*({cell.cell.size_bytes for cell in cells} for cells in (some, measured)))
