"""From traces, a calibrated run, jobs and prices to what networks are worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from wulf.errors import ConfigError, UsageError
from wulf.predict import money, worth
from wulf.predict.draws import Sample
from wulf.predict.money import Job, JobMix, Prices
from wulf.procedure import predicting
from wulf.procedure.predicting import Evaluated, PredictRequest, Say
from wulf.records import SCHEMA_VERSION, Worth
from wulf.store import Run


class WorthRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Whose jobs, at which prices, on which networks."""

    traces: list[Path]
    run: Run
    jobs: Path
    prices: Path
    #: Names of networks, as `--what-if` takes them.
    what_if: str
    #: What the network as it is becomes when it is tuned; empty: not asked about.
    tuned: str
    own: list[Path] = []
    ranks_per_node: int = 0
    rules: Path | None = None
    samples: int = 200
    seed: int = 1


def value(request: WorthRequest, say: Say) -> Worth:
    """Return what networks are worth.

    Raises
    ------
    UsageError
        A trace cannot carry the question; says why.
    ConfigError
        Jobs or prices are not whole; names file and key.
    TraceError
        A trace cannot be replayed soundly.
    """
    mix = money.read_jobs(_bytes(request.jobs), str(request.jobs))
    prices = money.read_prices(_bytes(request.prices), str(request.prices))
    names = request.what_if + (f",{request.tuned}" if request.tuned else "")
    if request.tuned and request.tuned in request.what_if.split(","):
        names = request.what_if
    found = {
        job.trace: _evaluated(request, job, path, names, say)
        for job, path in _traces(mix, request.traces, request.jobs)
    }
    draws = [Sample(request.seed, number) for number in range(request.samples)]
    offers = _offers(request, mix, prices, found)
    tuned = next((one for one in offers if one.name == request.tuned), None)
    tuned_mix = worth.mixed(tuned, mix) if tuned is not None else None
    networks = [worth.worth(one, mix, prices, draws, tuned_mix) for one in offers if one is not tuned]
    tuned_change = worth.figure(tuned_mix, "ratio") if tuned_mix is not None else None
    return Worth(
        schema_version=SCHEMA_VERSION,
        run=request.run.manifest.id,
        nodes=mix.nodes,
        hours_a_year=mix.hours_a_year,
        years=prices.years,
        currency=prices.currency,
        samples=request.samples,
        seed=request.seed,
        tuned=request.tuned,
        tuned_change=tuned_change,
        networks=networks,
        conclusion=list(worth.conclusion(networks, request.tuned, tuned_change, prices.years)),
        notes=_notes(mix, found),
    )


def _traces(mix: JobMix, given: Sequence[Path], origin: Path) -> list[tuple[Job, Path]]:
    """Return each job with its trace."""
    by_name = {name: path for path in given for name in (str(path), path.name)}
    asked = {job.trace for job in mix.job}
    for job in mix.job:
        if job.trace not in by_name:
            raise UsageError(
                f"{origin} has jobs of {job.trace}, which is not among the traces on the command line"
            )
    for path in given:
        if not {str(path), path.name} & asked:
            raise UsageError(f"{origin} says of no job that it is like {path}: add a [[job]] with its share")
    return [(job, by_name[job.trace]) for job in mix.job]


def _evaluated(request: WorthRequest, job: Job, path: Path, names: str, say: Say) -> Evaluated:
    """Replay one trace on all networks; refuse where it cannot tell of its jobs."""
    asked = PredictRequest(
        source=path,
        run=request.run,
        what_if=names,
        own=request.own,
        ranks=job.ranks,
        ranks_per_node=request.ranks_per_node
        or (-(-job.ranks // job.nodes) if path.suffix == ".toml" else 0),
        rules=request.rules,
        samples=request.samples,
        seed=request.seed,
    )
    found = predicting.evaluate(asked, say)
    nodes = len(set(found.nodes))
    if found.trace.ranks != job.ranks:
        raise UsageError(
            f"{path} is of {found.trace.ranks} ranks, the jobs are of {job.ranks}: how a program scales is not in a "
            f"trace; trace it with {job.ranks} ranks"
        )
    if nodes != job.nodes:
        raise UsageError(
            f"{path} is of {nodes} nodes, the jobs are of {job.nodes}: trace it there, or say with --ranks-per-node "
            "how ranks are placed"
        )
    if nodes == 1:
        raise UsageError(
            f"{path} is of one node: no message of it goes through a network, so none is worth anything to it"
        )
    if found.figures.own_s is None:
        raise UsageError(
            f"{path} does not say how long the program ran: changes of its run time have no scale"
        )
    return found


def _offers(
    request: WorthRequest, mix: JobMix, prices: Prices, found: dict[str, Evaluated]
) -> list[worth.Offer]:
    offers = []
    for place, one in enumerate(next(iter(found.values())).scenarios):
        if len(one.of) != 1:
            raise UsageError(
                f"--what-if {one.name}: only networks by name have prices; your own: --network FILE.toml"
            )
        network = one.of[0]
        if one.name == request.tuned:
            ports, source = money.nothing(), "tuning buys no parts"
        else:
            ports, source = money.ports(prices, network.id, network.costs, str(request.prices))
        changes = {
            job.trace: np.array([found[job.trace].likely(place), *found[job.trace].changes(place)])
            for job in mix.job
        }
        offers.append(worth.Offer(one.name, one.title, ports, source, changes))
    return offers


def _notes(mix: JobMix, found: dict[str, Evaluated]) -> list[str]:
    rest = 1 - sum(job.share for job in mix.job)
    notes = [note for name, one in found.items() for note in (f"{name}: {text}" for text in one.notes())]
    if rest > 1e-9:
        notes.append(f"{rest:.0%} of the node-hours belong to no trace: they are taken to gain nothing.")
    notes.append(
        "A node-hour that is saved is worth what it costs, which is true where the nodes have other work to do. "
        "Work of people, and what the old parts bring, are not counted."
    )
    return list(dict.fromkeys(notes))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}; 'wulf worth --template jobs' and 'prices' print one"
        ) from None
