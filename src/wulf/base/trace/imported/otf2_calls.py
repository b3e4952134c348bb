"""What calls of MPI are, by the names that regions of OTF2 have.  Pure."""

from __future__ import annotations

import re

from wulf.base.trace.layout import Kind, Unsound

_SENDS = {"Ssend": Kind.SSEND, "Bsend": Kind.BSEND, "Issend": Kind.ISSEND, "Ibsend": Kind.IBSEND}
_ENDS = {"Waitany": Kind.WAIT_SOME, "Waitsome": Kind.WAIT_SOME}
_COLLECTIVES = (
    "barrier|bcast|(all)?gatherv?|scatterv?|alltoall[vw]?|(all)?reduce|reduce_scatter(_block)?|(ex)?scan"
)
_MESSAGE = re.compile(
    r"I?[sbr]?send(recv(_replace)?)?|I?recv|I?mrecv|Start(all)?|" + _COLLECTIVES + "|I(" + _COLLECTIVES + ")",
    re.IGNORECASE,
)
#: Calls that begin a send; one without a request was recorded so that nobody knows when it ended.
_BEGINS = re.compile(r"I[sbr]?send(recv(_replace)?)?|Start(all)?")
_LOOKS = re.compile(r"Test(all|any|some)?|Im?probe|Request_get_status(_all|_any|_some)?")
_LOCAL = re.compile(
    r"(Abi|Attr|Comm_(attach|call|compare|create_(errhandler|keyval)|delete|free_keyval|get|group|rank|remote|set|size"
    r"|test_inter)|Errhandler|Error|Graph_(get|map|neighbors)|Group|Info|Keyval|Op|Pack|Unpack|Status|Type|Address|Get_"
    r"|Cart_(coords|get|map|rank|shift|sub_)|Topo_test|Dims_create|Wtime|Wtick|Initialized|Finalized|Query_thread"
    r"|Is_thread_main|Pcontrol|Alloc_mem|Free_mem|Buffer|Aint|Register|Grequest_complete|Test_cancelled"
    r"|(S|B|R)?send_init|Recv_init|Dist_graph_neighbors)"
)
_MARKS = (
    (re.compile(r"Win_|R?(Put|Get|(Get_)?Accumulate)$|Fetch_and_op|Compare_and_swap"), Unsound.ONE_SIDED),
    (re.compile(r"Comm_(spawn|accept|connect|join|disconnect)|Open_port|Lookup_name"), Unsound.PROCESSES),
    (re.compile(r"File_"), Unsound.FILES),
    (re.compile(r"Intercomm_"), Unsound.INTER),
)


def base(region: str) -> str:
    """Return the name of a call without MPI_, and that of the call whose counts are small."""
    return region.removeprefix("MPI_").removesuffix("_c")


def send_kind(call: str, usual: Kind) -> Kind:
    """Return the kind of a send that a call made."""
    return _SENDS.get(call, usual)


def end_kind(call: str) -> Kind:
    """Return the kind of a completion that a call made."""
    return Kind.TEST if call.startswith("Test") else _ENDS.get(call, Kind.WAIT)


def begins(call: str) -> bool:
    """Whether a call only begins a send."""
    return _BEGINS.fullmatch(call) is not None


def moves(call: str) -> bool:
    """Whether a call sends or receives, so that there has to be a record of it."""
    return _MESSAGE.fullmatch(call) is not None


def looks(call: str) -> bool:
    """Whether a call without a record looked in vain."""
    return _LOOKS.fullmatch(call) is not None


def is_local(call: str) -> bool:
    """Whether a call waits for no other rank."""
    return _LOCAL.match(call) is not None


def marks(call: str) -> Unsound | None:
    """Return what a replay cannot follow of a call."""
    return next((mark for pattern, mark in _MARKS if pattern.match(call)), None)
