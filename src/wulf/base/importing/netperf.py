"""netperf 2.4 to 2.7: the classic tests (headings of ``src/nettest_bsd.c``), and what ``-k`` and ``-o`` print."""

from __future__ import annotations

from wulf.base.importing.grammar import GIB, KIB, MIB, Column, Grammar, Layout, Means, Qualifier, Test, Unit
from wulf.base.importing.series import NUMBER

#: What ``-f`` chooses; capitals are powers of two. Truncated to eight letters and "/s" where ``-c`` is given.
_UNITS = {
    f"{name}/{second}": unit
    for second in ("s", "sec")
    for name, unit in (
        ("10^3bits", Unit(Means.BYTES_PER_S, 1e3 / 8)),
        ("10^6bits", Unit(Means.BYTES_PER_S, 1e6 / 8)),
        ("10^9bits", Unit(Means.BYTES_PER_S, 1e9 / 8)),
        ("KBytes", Unit(Means.BYTES_PER_S, KIB)),
        ("MBytes", Unit(Means.BYTES_PER_S, MIB)),
        ("GBytes", Unit(Means.BYTES_PER_S, GIB)),
        ("Trans", Unit(Means.PER_S, 1.0)),
    )
}
_UNIT = r"(?P<unit>\S+)"
_CPU = r"% ?\S? % ?\S?"
_ANY = Column(NUMBER)
_SIZE = Column("message size", Means.SIZE)
_RATE = Column("throughput", Means.BY_UNIT)
_TRANSACTIONS = Column("transactions", Means.PER_S)
_ASKED, _ANSWERED = Column("request", Means.SIZE), Column("response", Means.ANSWER)
#: Socket sizes at the other end, in a line of their own.
_PEER = (_ANY, _ANY)
_LAYOUTS = (
    Layout(
        "Recv Send Send\nSocket Socket Message Elapsed\nSize Size Size Time Throughput\n"
        rf"bytes bytes bytes secs\. {_UNIT}",
        (_ANY, _ANY, _SIZE, _ANY, _RATE),
    ),
    Layout(
        "Recv Send Send Utilization Service Demand\n"
        "Socket Socket Message Elapsed (?:Send Recv Send Recv|Recv Send Recv Send)\n"
        "Size Size Size Time Throughput local remote local remote\n"
        rf"bytes bytes bytes secs\. {_UNIT} {_CPU} us/KB us/KB",
        (_ANY, _ANY, _SIZE, _ANY, _RATE, _ANY, _ANY, _ANY, _ANY),
    ),
    Layout(
        "Local /Remote\nSocket Size Request Resp\\. Elapsed Trans\\.\nSend Recv Size Size Time Rate\n"
        r"bytes [Bb]ytes bytes bytes secs\. per sec",
        (_ANY, _ANY, _ASKED, _ANSWERED, _ANY, _TRANSACTIONS),
        (_PEER,),
    ),
    Layout(
        "Local /Remote\nSocket Size Request Resp\\. Elapsed Trans\\. CPU CPU S\\.dem S\\.dem\n"
        "Send Recv Size Size Time Rate local remote local remote\n"
        rf"bytes [Bb]ytes bytes bytes secs\. per sec {_CPU} us/Tr us/Tr",
        (_ANY, _ANY, _ASKED, _ANSWERED, _ANY, _TRANSACTIONS, _ANY, _ANY, _ANY, _ANY),
        (_PEER,),
    ),
    # The second line is of the receiver: what arrived.
    Layout(
        "Socket Message Elapsed Messages\nSize Size Time Okay Errors Throughput\n"
        rf"bytes bytes secs # # {_UNIT}",
        (_ANY, _SIZE, _ANY, _ANY, _ANY, _RATE._replace(label="sent")),
        ((_ANY, _ANY, _ANY, _RATE),),
    ),
    Layout(
        "Socket Message Elapsed Messages CPU Service\nSize Size Time Okay Errors Throughput Util Demand\n"
        rf"bytes bytes secs # # {_UNIT} % \S{{0,2}} us/KB",
        (_ANY, _SIZE, _ANY, _ANY, _ANY, _RATE._replace(label="sent"), _ANY, _ANY),
        ((_ANY, _ANY, _ANY, _RATE, _ANY, _ANY),),
    ),
)
_TIME_OF = "time of a transaction"
GRAMMAR = Grammar(
    title="netperf",
    prefix="netperf",
    recognises=r"^(MIGRATED )?[A-Z][A-Z0-9_]* \S+(?: \S+)? TEST (from|to) ",
    begins=r"^(?:MIGRATED )?(?P<title>[A-Z][A-Z0-9_]* \S+(?: \S+)?) TEST (?:from|to) (?P<rest>.*)$",
    tests=(
        Test(
            r"^(?P<p>\w+) (?P<k>STREAM|MAERTS|SENDFILE|MSENDFILE)$",
            "stream",
            "time per message",
            2,
            name="{p}_{k}",
        ),
        Test(r"^(?P<p>\w+) REQUEST/RESPONSE$", "ping-pong", "round trip", 2, name="{p}_RR"),
        Test(
            r"^(?P<p>\w+) Connect/Request/Response$",
            "connection each time",
            _TIME_OF,
            2,
            moves_bytes=False,
            name="{p}_CRR",
        ),
        Test(
            r"^(?P<p>\w+) Connect/Close$",
            "connection each time",
            _TIME_OF,
            2,
            moves_bytes=False,
            name="{p}_CC",
        ),
        Test(r"^OMNI (?P<way>Send\|Recv)$", "ping-pong", "round trip", 2, name="OMNI {way}"),
        Test(r"^OMNI (?P<way>Send|Receive)$", "stream", "time per message", 2, name="OMNI {way}"),
    ),
    only_known=True,
    in_title=(
        Qualifier(
            r" : (?P<other>(?!demo\b|histogram\b|first burst 0\b|cpu bind\b|\+/-|interval\b)[^:]*?[^:\s])\s*(?= : |$)",
            "{other}",
        ),
    ),
    remarks=(
        r"^Interim result:",
        r"^!!!",
        r"^(netperf|netserver|alloc_|recv_response|send_\w+|establish_control)\b.*:",
    ),
    layouts=_LAYOUTS,
    entry=r"^(?P<heading>[A-Z][A-Z0-9_]+)=(?P<value>.*)$",
    heading=r"^[A-Z][\w ()/%]*(,[A-Z][\w ()/%]*)+$",
    separator=",",
    columns=(
        Column(r"THROUGHPUT|Throughput", Means.BY_UNIT),
        Column(r"THROUGHPUT_UNITS|Throughput Units", Means.UNIT),
        Column(r"LOCAL_SEND_SIZE|Local Send Size|REQUEST_SIZE|Request Size Bytes", Means.SIZE),
        Column(r"RESPONSE_SIZE|Response Size Bytes", Means.ANSWER),
        Column(r"PROTOCOL|Protocol", Means.QUALIFIES),
        Column(r"DIRECTION|Direction", Means.QUALIFIES),
        Column(
            r"P(?P<p>50|90|99)_LATENCY",
            Means.TIME,
            1e-6,
            "p{p}",
            "p{p} of the transactions of one launch",
            "round trip",
        ),
        Column(r"(RT|MEAN|MIN|MAX|STDDEV)_LATENCY"),
        Column(
            r"(LSS|LSR|RSS|RSR)_SIZE(_END|_REQ)?|(Local|Remote) (Send|Recv) Socket Size (Final|Initial|Requested)"
        ),
        Column(r"ELAPSED_TIME|Elapsed Time \(sec\)"),
    ),
    units=_UNITS,
    statistic="mean over one launch",
    sized_by="expected the size of messages: run netperf -- -k with LOCAL_SEND_SIZE or REQUEST_SIZE",
    advice=" (headings: without -f for transactions, without -P 0; of omni tests -- -k)",
    ends=True,
)
