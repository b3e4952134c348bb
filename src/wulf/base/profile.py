"""What a cluster is to be good at, and how bad a finding is."""

from __future__ import annotations

from typing import Literal, get_args

#: ``hpc`` is both of the others.
Profile = Literal["latency", "throughput", "hpc"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
Severity = Literal["fail", "warn", "info"]
#: The worst first.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
