"""mpptest: a table of lengths and times between commands for a plotting program."""

from __future__ import annotations

from wulf.base.importing.grammar import Column, Grammar, Means, Qualifier, Test

GRAMMAR = Grammar(
    title="mpptest",
    prefix="mpptest",
    recognises=r"^#?\s*p0\s+p1\s+dist\s+len\s+ave time",
    tests=(Test("", "ping-pong", "half round trip", 2),),
    qualifiers=(
        # mpptest's own words for its way to send: blocking, nonblocking, blocking-bisect, …
        Qualifier(r'^\s*(set )?title "?.*\btype (?P<type>[\w-]+)', "{type}", usual="blocking"),
    ),
    comment=r"^# \S",
    remarks=(
        r"^# Model complexity",
        r"^# startup =",
        r"^# Variance in fit",
        r"^\s*#?\s*(set (?!title)|plot|join|new|pause|clear|exit)\b",
    ),
    heading=r"^#?\s*p0\s+p1\s+dist\s+len\s",
    columns=(
        Column(r"len", Means.SIZE),
        Column(r"ave time \(us\)", Means.TIME, 1e-6),
        *(
            Column(one)
            for one in (
                r"#?\s*p0",
                r"p1",
                r"dist",
                r"rate",
                r"min( time)?( \(us\))?",
                r"max( time)?( \(us\))?",
            )
        ),
    ),
    statistic="mean over iterations, the least of several repetitions of one launch",
)
