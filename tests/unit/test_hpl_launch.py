"""How launches of HPL are ended, and what is said of them; scripts stand for the program."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wulf.base import hpl_output
from wulf.node.cluster import inventory
from wulf.node.cluster.transport import open_transport
from wulf.tools.hpl import launching
from wulf.tools.hpl.launching import HplSite, Limit
from wulf.tools.hpl.record import HplSetting

CHOSEN = HplSetting(nb=128, p=1, q=2, threads=1, bcast=1, depth=1, swap=2)
#: Rate of the best at 30 % of its columns [GFLOPS].
BEST = 50.0


class Directly:
    """Starts the program itself, once."""

    name = "directly"

    def argv(self, job):
        return [job.program, *job.arguments]

    def env(self, job):
        return job.env


@pytest.fixture
def site(tmp_path):
    transport = open_transport(inventory.local())
    yield HplSite(
        transport=transport,
        launcher=Directly(),
        program=str(tmp_path / "xhpl"),
        kind="xhpl",
        nodes=["local1"],
        addresses={},
        directory=str(tmp_path / "work"),
        interface=None,
        subnet=None,
        shared_cpu=True,
        env={},
    )
    transport.close()


def launch(site, gflops, limit):
    """Launch a program that stands still after 30 % of its columns, with a rate up to there, or before all of them."""
    said = "" if gflops is None else f"echo 'Column=000000600 Fraction=30.0% Gflops={gflops:.3e}'\n"
    Path(site.program).write_text(f"#!/bin/sh\n{said}exec sleep 60\n", encoding="utf-8")
    Path(site.program).chmod(0o755)
    begin = time.monotonic()
    with launching.workplace(site):
        return launching.launch(site, 0, "search", 2000, CHOSEN, limit), time.monotonic() - begin


@pytest.mark.parametrize("gflops", [None, BEST / 1.2, BEST, 2 * BEST])
def test_one_that_stands_still_is_slower_than_the_best_whatever_its_first_panels_were(site, gflops):
    limit = Limit(time_s=0.6, beside_s=0.1, best=[(0.3, BEST)], factor=1.5)
    found, took_s = launch(site, gflops, limit)
    assert (found.status, found.reason) == ("cut", "it took 1.5 × as long as the best")
    assert found.time_s >= limit.time_s and took_s < 30
    assert found.gflops == pytest.approx(hpl_output.operations(2000) / found.time_s / 1e9)


@pytest.mark.parametrize(("gflops", "time_s"), [(BEST / 3, 3 * 40.0), (0.0, 60.0)])
def test_one_that_falls_behind_is_expected_to_stay_behind(site, gflops, time_s):
    # The best takes 40 s.
    limit = Limit(time_s=60.0, beside_s=60.0, best=[(0.3, BEST)], factor=1.5)
    found, took_s = launch(site, gflops, limit)
    assert found.status == "cut" and "slower than the best at 30% of its columns" in found.reason
    assert found.time_s == pytest.approx(time_s, rel=1e-3) and took_s < 30


def test_one_that_nothing_is_compared_with_ends_too(site):
    found, took_s = launch(site, BEST, 0.7)
    assert (found.status, found.reason) == ("failed", "it has not ended in 1 s")
    assert found.time_s is None and took_s < 30
