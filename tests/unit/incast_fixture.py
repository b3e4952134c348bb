"""Incast as `wulf diagnose incast` finds it, of simulated ports (`bench.incast`)."""

from __future__ import annotations

import functools

import msgspec
import numpy as np

from bench import incast as world
from wulf.base.records import SCHEMA_VERSION
from wulf.tools.incast import judging
from wulf.tools.incast.record import Incast, SenderCounts
from wulf.tools.incast.remedies import remedies


def port(*, clean: bool = False) -> world.Port:
    """Return a port with seven senders and a queue of 100 KiB."""
    return world.Port(
        random=np.random.default_rng(7),
        senders=7,
        rate=1.25e8,
        base_s=100e-6,
        queue_bytes=1e12 if clean else 100 * 1024,
        window_bytes=1 << 30,
        noise=0.03,
        stalls=0.5,
    )


@functools.cache
def made(*, clean: bool) -> Incast:
    """Return what is found of a port."""
    one = port(clean=clean)
    cells, rate = judging.cells([one.round() for _ in range(world.ROUNDS)])
    cliffs, deep = judging.cliffs(cells), one.depth()
    return Incast(
        schema_version=SCHEMA_VERSION,
        receiver="node01",
        senders=[f"node{number:02d}" for number in range(2, 9)],
        rounds=world.ROUNDS,
        rate=rate,
        cells=cells,
        cliffs=cliffs,
        depth=deep,
        evidence=[
            SenderCounts(
                senders=7, transfers=1000, retransmitted=0 if clean else 321, timeouts=0 if clean else 54
            )
        ],
        remedies=remedies(cells, cliffs, deep),
        missing=[],
    )


def broken() -> Incast:
    """Return a port whose queue is too small, and a node that does not answer."""
    return msgspec.structs.replace(made(clean=False), missing=["node09: does not answer"])


def clean() -> Incast:
    """Return a port at which nothing is lost."""
    return made(clean=True)


def nothing() -> Incast:
    """Return what is said where too little was measured."""
    return msgspec.structs.replace(
        made(clean=True),
        rounds=2,
        rate=None,
        cells=[],
        cliffs=[],
        depth=judging.depth([], "the receiver does not say what it has lost itself"),
        evidence=[],
        missing=["2 rounds were measured, and judging takes 5: a larger --budget"],
    )
