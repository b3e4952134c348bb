"""netperf 2.4 to 2.7: the classic tests (headings of ``src/nettest_bsd.c``), and what ``-k`` and ``-o`` print."""

from __future__ import annotations

from wulf.base.importing.grammar import GIB, KIB, MIB, Column, Grammar, Layout, Means, Qualifier, Test, Unit
from wulf.base.importing.series import NUMBER

#: What ``-f`` chooses; capitals are powers of two. Where ``-c`` is given it is cut to eight letters, without the
#: second or with "/s".
_UNITS = {
    f"{name}{second}": unit
    for second in ("/s", "/sec", "")
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
    # With ``-f``: bytes of requests and responses together.
    Layout(
        "Local /Remote\nSocket Size Request Resp\\. Elapsed\nSend Recv Size Size Time Throughput\n"
        rf"bytes [Bb]ytes bytes bytes secs\. {_UNIT}",
        (_ANY, _ANY, _ASKED, _ANSWERED, _ANY, _RATE),
        (_PEER,),
    ),
    Layout(
        "Local /Remote\nSocket Size Request Resp\\. Elapsed Tput CPU CPU S\\.dem S\\.dem\n"
        rf"Send Recv Size Size Time {_UNIT} local remote local remote\n"
        rf"bytes [Bb]ytes bytes bytes secs\. per sec {_CPU} us/KB us/KB",
        (_ANY, _ANY, _ASKED, _ANSWERED, _ANY, _RATE, _ANY, _ANY, _ANY, _ANY),
        (_PEER,),
    ),
    Layout(
        "Local /Remote\nSocket Size Request Resp\\. Elapsed Latency CPU CPU S\\.dem S\\.dem\n"
        "Send Recv Size Size Time usecs local remote local remote\n"
        rf"bytes [Bb]ytes bytes bytes secs\. per tran {_CPU} us/Tr us/Tr",
        (
            _ANY,
            _ANY,
            _ASKED,
            _ANSWERED,
            _ANY,
            Column("latency", Means.TIME, 1e-6),
            _ANY,
            _ANY,
            _ANY,
            _ANY,
        ),
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
#: What omni tests say besides (``print_omni_init_list`` of ``src/nettest_omni.c``), by its own names and as headings.
_OF_NO_USE = (
    r"(RT|MEAN|MIN|MAX|STDDEV)_LATENCY|(Minimum|Maximum|Mean|Stddev) Latency Microseconds",
    r"Round Trip Latency usec/tran",
    r"TRANSACTION_RATE|Transaction Rate Tran/s",
    r"(LSS|LSR|RSS|RSR)_SIZE(_END|_REQ)?",
    r"ELAPSED_TIME|Elapsed Time \(sec\)",
    r"(LOCAL|REMOTE)_(?!SEND_SIZE\b)[A-Z0-9_]+",
    r"(Local|Remote) (?!Send Size(,|$))[^,]+",
    r"(SOURCE|DEST)_(PORT|ADDR|FAMILY)|(Source|Destination) (Port|Address|Family)",
    r"SOCKET_TYPE|Socket Type|COMMAND_LINE|Command Line|UUID|Test UUID|RESULT_BRAND|Result Tag",
    r"CONFIDENCE_(LEVEL|INTERVAL|ITERATION)|Confidence (Level Percent|Width Target|Iterations Run)",
    r"THROUGHPUT_CONFID|Throughput Confidence Width \(%\)",
    r"TRANSPORT_MSS|Transport MSS bytes|SD_UNITS|Service Demand Units",
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
    heading=r"^[A-Z][\w ()/%]*(,(\d+th )?[A-Z][\w ()/%]*)+$",
    separator=",",
    stacked=4,
    columns=(
        Column(r"THROUGHPUT|Throughput", Means.BY_UNIT),
        Column(r"THROUGHPUT_UNITS|Throughput Units", Means.UNIT),
        # What a test does not have is -1; the order is that in which one of several counts.
        Column(r"REQUEST_SIZE|Request Size Bytes", Means.SIZE),
        Column(r"LOCAL_SEND_SIZE|Local Send Size", Means.SIZE),
        Column(r"REMOTE_SEND_SIZE|Remote Send Size", Means.SIZE),
        Column(r"RESPONSE_SIZE|Response Size Bytes", Means.ANSWER),
        Column(r"PROTOCOL|Protocol", Means.QUALIFIES),
        Column(r"DIRECTION|Direction", Means.QUALIFIES),
        Column(r"BURST_SIZE|Initial Burst Requests", Means.QUALIFIES, label="first burst {}", usual="0"),
        Column(
            r"P(?P<p>50|90|99)_LATENCY|(?P<q>50|90|99)th Percentile Latency Microseconds",
            Means.TIME,
            1e-6,
            "p{p}{q}",
            "p{p}{q} of the transactions of one launch",
            only="ping-pong",  # of streams it is a call's
        ),
        *(Column(one) for one in _OF_NO_USE),
    ),
    units=_UNITS,
    statistic="mean over one launch",
    absent=r"-1(\.0+)?",
    sized_by="expected the size of messages: run netperf -- -k with LOCAL_SEND_SIZE or REQUEST_SIZE",
    advice=" (headings: without -P 0)",
    ends=True,
)
