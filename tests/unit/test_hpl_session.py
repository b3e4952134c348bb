"""What a run of HPL does next, by the launches that it made."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from tests.unit.test_hpl_result import CHOSEN, OTHER, launch, manifest
from wulf.base.errors import UsageError
from wulf.face.cli import hpl as cli
from wulf.node.cluster import inventory
from wulf.tools.hpl import session
from wulf.tools.hpl.launching import HplSite, Limit
from wulf.tools.hpl.record import HplLaunch
from wulf.tools.hpl.request import HplRequest
from wulf.tools.hpl.store import HplRun, HplWriter

#: What every launch takes to start [s].
START_S = 0.5


def took(index, phase, n, setting=CHOSEN):
    """Return a launch whose rate is nearly the same at every order, and that takes a while to start."""
    made = launch(index, phase, n, 50.0 + 0.1 * (index % 3), setting)
    return msgspec.structs.replace(made, wall_s=made.time_s + START_S)


def launches():
    found = [took(0, "size", 1024), took(1, "size", 1536), took(2, "search", 2048)]
    found += [took(place, "large", 3264) for place in (3, 4)]
    return [*found, took(5, "size", 2048)]


def made(before: list[HplLaunch], **more) -> session._Run:
    """Return a run that goes on after some launches."""
    writer = SimpleNamespace(manifest=manifest(**more), append=lambda _: None)
    site = HplSite(
        transport=None,
        launcher=None,
        program="/usr/bin/xhpl",
        kind="xhpl",
        nodes=["node01", "node02"],
        addresses={},
        directory="/nonexistent",
        interface=None,
        subnet=None,
        shared_cpu=False,
        env={},
    )
    return session._Run(writer, before, site, SimpleNamespace(launched=lambda *_: None))


@pytest.fixture
def limits(monkeypatch):
    """Return what ends each launch; none is really made."""
    found = []

    def fake(_site, index, phase, n, chosen, limit):
        found.append(limit)
        return took(index, phase, n, chosen)

    monkeypatch.setattr(session.launching, "launch", fake)
    return found


def test_the_order_is_what_the_time_allows():
    run = made(launches(), time_s=600.0, repeats=6)
    n = session._order(run, CHOSEN, 2048)
    solution_s = 2 / 3 * n**3 / 50e9
    assert 0.75 * 600 / 6 < solution_s < 600 / 6


def test_what_grows_with_the_order_beside_the_solution_counts():
    slow = [msgspec.structs.replace(one, wall_s=one.time_s + 1e-7 * one.n**2) for one in launches()]
    n = session._order(made(slow, time_s=600.0, repeats=6), CHOSEN, 2048)
    assert 0.75 * 100 < 2 / 3 * n**3 / 50e9 + 1e-7 * n**2 < 100


@pytest.mark.parametrize(
    ("before", "n", "time_s", "longest_s"),
    [
        ([], 1024, 600.0, 660.0),
        (launches(), 3264, 600.0, 660.0),
        # Nothing is left of the time.
        (launches(), 3264, 1.0, 10 * (took(3, "large", 3264).time_s + START_S) + 60),
        (launches(), 32640, 1.0, 10 * 1000 * (took(3, "large", 3264).time_s + START_S) + 60),
    ],
)
def test_no_launch_may_take_for_ever(limits, before, n, time_s, longest_s):
    made(before, time_s=time_s).launch("size", n, CHOSEN, None)
    assert limits == [pytest.approx(longest_s, rel=0.02)]


def test_one_that_is_slow_may_take_less(limits):
    made(launches()).launch("large", 3264, OTHER, 0.7)
    (limit,) = limits
    assert isinstance(limit, Limit)
    assert (limit.time_s, limit.beside_s) == (0.7, pytest.approx(2 * START_S + 2.0))


def test_fresh_launches_that_failed_are_made_again_when_the_run_goes_on(limits):
    failed = [
        msgspec.structs.replace(took(6 + place, "confirm", 4096), status="failed", time_s=None, gflops=None)
        for place in range(6)
    ]
    run = made([*launches(), *failed], time_s=6000.0)
    assert session._confirm(run, 4096, CHOSEN) == "complete" and len(limits) == 6


def test_fresh_launches_that_fail_are_not_made_for_ever(limits, monkeypatch):
    real = session.launching.launch

    def fails(*given):
        return msgspec.structs.replace(real(*given), status="failed", time_s=None, gflops=None)

    monkeypatch.setattr(session.launching, "launch", fails)
    assert session._confirm(made(launches(), time_s=6000.0), 4096, CHOSEN) == "failed" and len(limits) == 6


def test_the_peak_is_that_of_the_cores_that_hpl_uses():
    text = '[cluster]\nnodes = "node[01-04]"\nshared_cpus = [["node01", "node02"], ["node03", "node04"]]\n'
    config = inventory.parse(text, "cluster.toml")
    nodes = [f"node0{number}" for number in (1, 2, 3, 4)]
    assert session._cores(config, nodes, 32) == {"node01": 32, "node02": 0, "node03": 32, "node04": 0}


@pytest.mark.parametrize(("status", "code"), [("ok", None), ("failed", 3)])
def test_a_wrong_result_is_no_success(tmp_path, capsys, status, code):
    fresh = [took(6 + place, "confirm", 4096) for place in range(6)]
    fresh[2] = msgspec.structs.replace(fresh[2], status=status, reason="the result is wrong: residual 99")
    run = HplRun(path=tmp_path, manifest=manifest(), launches=[*launches(), *fresh], result=None)
    try:
        cli._show(run, json=True)
        found = None
    except typer.Exit as error:
        found = error.exit_code
    assert found == code and '"status": "complete"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--repeat", "3", "--mpi", "mpich"), "--resume with --launches, --mpi"),
        (("--seed", "0"), "--resume with --seed"),
    ],
)
def test_a_run_goes_on_as_it_was_begun(more, said):
    app = typer.Typer(rich_markup_mode=None)
    app.command()(cli.command)
    refused = CliRunner().invoke(app, ["--resume", "one", "--budget", "1m", *more])
    assert isinstance(refused.exception, UsageError)
    assert said in str(refused.exception)


@pytest.fixture
def given(monkeypatch):
    """Return the plans that are carried out; a Slurm job ends in 100 s."""
    found = []
    monkeypatch.setattr(session.cluster_site, "connect", lambda *_: nullcontext((None, [])))
    monkeypatch.setattr(session.installation, "site", lambda *_: None)
    monkeypatch.setattr(session.allocation, "capped", lambda left_s, _say: min(left_s, 100.0))
    monkeypatch.setattr(session, "_carry_out", lambda writer, *_: found.append(writer.manifest.plan))
    return found


WATCHER = SimpleNamespace(stage=lambda _: None, note=lambda _: None, begun=lambda *_: None)


def test_the_end_of_the_allocation_ends_a_run(tmp_path, monkeypatch, given):
    monkeypatch.setattr(session, "_manifest", lambda request, *_: manifest(time_s=request.budget_s))
    config = inventory.parse('[cluster]\nnodes = "node[01-02]"\n', "cluster.toml")
    request = HplRequest(config, tmp_path / "run", budget_s=600.0, seed=1)
    session.start(request, WATCHER)
    assert [plan.time_s for plan in given] == [100.0]


def test_the_end_of_the_allocation_ends_a_run_that_goes_on(tmp_path, given):
    head = msgspec.structs.replace(
        manifest(), status="interrupted", cluster='[cluster]\nnodes = "node[01-02]"\n'
    )
    with HplWriter.create(tmp_path / "run", head) as writer:
        for one in launches():
            writer.append(one)
    spent_s = sum(one.wall_s for one in launches())
    session.go_on(tmp_path / "run", 3600.0, WATCHER)
    session.go_on(tmp_path / "run", spent_s + 20.0, WATCHER)
    assert [plan.time_s for plan in given] == [
        pytest.approx(spent_s + 100.0),
        pytest.approx(spent_s + 20.0),
    ]
