"""sockperf: ping-pong, under load, throughput; the size of messages is only said by the last."""

from __future__ import annotations

from wulf.base.importing.grammar import Column, Grammar, Means, Qualifier, Test
from wulf.base.importing.series import MEAN, NUMBER

GRAMMAR = Grammar(
    title="sockperf",
    prefix="",
    recognises=r"^sockperf: Summary: ",
    begins=r"^(?P<title>sockperf): +== version",
    tests=(Test(r"", "ping-pong", "half round trip", 2),),
    qualifiers=(
        Qualifier(r"PORT\s*=\s*\d+ # (?P<protocol>TCP|UDP)", "{protocol}"),
        Qualifier(r"using msg-size=(?P<size>\d+)"),
        # Under load messages are sent when it is time, not when an answer has come: by a thread that a signal ends.
        Qualifier(r"Test end \(interrupted by signal", "under load or interrupted"),
        Qualifier(r"Summary: (Latency|Round trip) of burst of (?P<n>\d+) messages", "burst of {n}"),
        Qualifier(r"====> avg-(rtt)=", "round trips", quantity="round trip"),
    ),
    rows=(
        rf"^sockperf: Summary: Latency(?: of burst of \d+ messages)? is (?P<half>{NUMBER}) usec",
        rf"^sockperf: Summary: Round trip(?: of burst of \d+ messages)? is (?P<whole>{NUMBER}) usec",
        rf"^sockperf: ---> percentile (?P<p>{NUMBER}) =\s*(?P<percentile>{NUMBER})\s*$",
        rf"^sockperf: Summary: Message Rate is (?P<rate>{NUMBER}) \[msg/sec\]",
    ),
    columns=(
        Column("half", Means.TIME, 1e-6, "mean"),
        Column("whole", Means.TIME, 1e-6, "mean"),
        Column("percentile", Means.TIME, 1e-6, "p{p}", "p{p} of the iterations of one launch"),
        Column("rate", Means.PER_S, label="throughput", quantity="time per message", pattern="stream"),
    ),
    statistic=MEAN,
)
