"""nccl-tests and rccl-tests 2.0 to 2.19 (``src/common.cu``, ``src/util.cu``): collectives between GPUs."""

from __future__ import annotations

from wulf.base.importing.grammar import Column, Grammar, Means, Qualifier, Test
from wulf.base.importing.series import MEAN

GRAMMAR = Grammar(
    title="nccl-tests",
    prefix="NCCL",
    recognises=r"^#\s+size\s+count(\s+type)?.*\btime\s+algbw\s+busbw",
    begins=r"^# (?:Collective test starting: (?P<title>\S+)|Using devices)",
    tests=(
        Test(r"^(\S*/)?(?P<what>\w+?)(_perf)?$", "collective", "time of a call", name="{what}"),
        Test(r"^$", "collective", "time of a call", name="test without a name"),
    ),
    qualifiers=(
        Qualifier(r"^#\s+(?P<rank>Rank)\s+\d+ "),
        Qualifier(r"^# nThread .*\bagg iters: (?P<n>\d+)", "{n} calls together", usual="1 calls together"),
        Qualifier(r"^# nThread .*\bgraph: (?P<n>[1-9]\d*)", "{n} graph launches"),
        Qualifier(r"^# nThread .*\bunalign: (?P<n>[1-9]\d*)", "unaligned by {n}"),
        Qualifier(r"^# Blocking Enabled: (?P<how>.+?)\s*$", "blocking, {how}"),
        Qualifier(r"^# Per-Iteration Report: .*?(?P<how>CUDA event timing)", "{how}"),
    ),
    remarks=(
        r"^#\s*$",
        r"^# nThread (?!.*\bagg iters: )",
        r"^# (Using devices|nccl-tests version|Reducing maxBytes|Writing JSON|skipping json|Parallel Init)",
        r"^#?\s*rccl-tests: ",
        r"^#\s+out-of-place .*in-place",
        r"^#\s+\(B\)\s+\(elements\)\s+(\(us\)\s+\(GB/s\)\s+\(GB/s\)\s*)+$",
        r"^# (Out of bounds values|Avg bus bandwidth|Collective test concluded|GPU memory usage)",
    ),
    comment=r"^#",
    heading=r"^#\s+size\s+count",
    columns=(
        Column(r"#\s+size", Means.SIZE),
        Column(r"time", Means.TIME, 1e-6),
        Column(r"type", Means.QUALIFIES),
        Column(r"redop", Means.QUALIFIES),
        Column(r"root", Means.QUALIFIES, label="root {}", usual="-1"),
        Column(r"#wrong", Means.CHECK),
        *(Column(one) for one in ("count", "algbw", "busbw", "error")),
    ),
    repeats=("out of place", "in place"),
    passed=frozenset({"0", "0e+00", "N/A"}),
    statistic=MEAN,
)
