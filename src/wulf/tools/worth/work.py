"""From traces, a calibrated run, jobs and prices to what networks are worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from wulf.base.errors import ConfigError, UsageError
from wulf.base.records import SCHEMA_VERSION
from wulf.base.records.predicted import NEAR
from wulf.base.store import Run, opened
from wulf.base.text import count
from wulf.base.toml import Document
from wulf.base.tool import Progress
from wulf.base.trace.reader import read
from wulf.base.trace.summary import command_of
from wulf.base.units import format_time
from wulf.node.replay import calibrated, evaluating, job_array, program_traces
from wulf.node.replay.asking import PredictRequest, placed
from wulf.node.replay.evaluating import Evaluated
from wulf.stats.prediction.draws import WIDTH, Sample
from wulf.tools.worth import accounting, money, words
from wulf.tools.worth import value as worth
from wulf.tools.worth.money import Job, JobMix, Prices
from wulf.tools.worth.record import Worth
from wulf.tools.worth.request import WorthRequest


def value(request: WorthRequest, say: Progress) -> Worth:
    """Return what networks are worth.

    Raises
    ------
    UsageError
        A trace cannot carry the question; says why.
    ConfigError
        Jobs or prices are not whole, or no trace is of the jobs; names file, line and key.
    TraceError
        A trace cannot be replayed soundly.
    """
    run = opened(request.on, request.runs)
    replays = job_array.replayer(request.slurm, request.runs, say.note)
    jobs = _jobs(request)
    prices = _prices(request)
    mix = jobs.value
    paths = _traces(jobs, [Path(trace) for trace in request.traces])
    asked = [_asked(request, run, job, path) for job, path in zip(mix.job, paths, strict=True)]
    evaluated = evaluating.evaluate(asked, say, replays)
    for place, one in enumerate(evaluated):
        _require_carrying(request, jobs, place, one)
    found = {job.trace: one for job, one in zip(mix.job, evaluated, strict=True)}
    valued = _valued(request, run, mix, prices, found)
    return msgspec.structs.replace(valued, conclusion=list(words.conclusion(valued)))


def _jobs(request: WorthRequest) -> Document[JobMix]:
    """Return the jobs: as a file says them, or as the accounting has them."""
    given = _bytes(request.jobs)
    origin = str(request.jobs)
    if accounting.is_accounting(given):
        programs = [_traced(Path(path)) for path in request.traces]
        text = accounting.jobs_text(given.decode(errors="replace"), origin, programs)
        return money.read_jobs(text.encode(), f"jobs of {origin}")
    return money.read_jobs(given, origin)


def _traced(path: Path) -> accounting.Traced:
    if program_traces.is_pattern(path):
        raise UsageError(f"{path}: a pattern is of no job of an accounting: trace a program, or write --jobs")
    trace = read(path)
    (nodes,), _ = placed([trace], 0, ())
    return accounting.Traced(path.name, command_of(trace), trace.ranks, len(set(nodes)))


def _prices(request: WorthRequest) -> Prices:
    """Return the prices; refuse those of networks that nobody knows."""
    named = money.read_prices(_bytes(request.prices), str(request.prices))
    find = calibrated.finder([Path(one) for one in request.own])
    for network in named.value.network:
        try:
            find(network)
        except UsageError as error:
            named.fail(f"network.{network}", str(error))
    return named.value


def _valued(
    request: WorthRequest, run: Run, mix: JobMix, prices: Prices, found: dict[str, Evaluated]
) -> Worth:
    """Return what each network is worth, without a conclusion."""
    draws = [Sample(request.seed, number) for number in range(request.samples)]
    offers = _offers(request, prices, found)
    tuned = next((one for one in offers if one.name == request.tuned_name), None)
    tuned_mix = worth.mixed(tuned, mix) if tuned is not None else None
    noise = worth.Noise({name: WIDTH * one.question.spread for name, one in found.items()})
    return Worth(
        schema_version=SCHEMA_VERSION,
        run=run.manifest.id,
        nodes=mix.nodes,
        hours_a_year=mix.hours_a_year,
        years=prices.years,
        currency=prices.currency,
        samples=request.samples,
        seed=request.seed,
        tuned=request.tuned_name,
        tuned_change=worth.figure(tuned_mix, "ratio") if tuned_mix is not None else None,
        bound_port=worth.bound_port(_changes(found, -1), mix, prices, draws),
        networks=worth.valued(
            [one for one in offers if one is not tuned], mix, prices, draws, tuned_mix, noise
        ),
        conclusion=[],
        notes=_notes(mix, found),
    )


def _traces(jobs: Document[JobMix], given: Sequence[Path]) -> list[Path]:
    """Return the trace of each job."""
    by_name = {name: path for path in given for name in (str(path), path.name)}
    for place, job in enumerate(jobs.value.job):
        if job.trace not in by_name:
            jobs.fail(f"job[{place}].trace", f"{job.trace} is not among the traces on the command line")
    asked = {job.trace for job in jobs.value.job}
    for path in given:
        if not {str(path), path.name} & asked:
            raise UsageError(
                f"{jobs.origin} says of no job that it is like {path}: add a [[job]] with its share"
            )
    return [by_name[job.trace] for job in jobs.value.job]


def _asked(request: WorthRequest, run: Run, job: Job, path: Path) -> PredictRequest:
    names = request.what_if.split(",")
    if request.tuned_name and request.tuned_name not in names:
        names.append(request.tuned_name)
    return PredictRequest(
        source=path,
        run=run,
        what_if=",".join(names),
        own=[Path(one) for one in request.own],
        ranks=job.ranks,
        ranks_per_node=request.ranks_per_node
        or (-(-job.ranks // job.nodes) if program_traces.is_pattern(path) else 0),
        rules=Path(request.rules) if request.rules is not None else None,
        samples=request.samples,
        seed=request.seed,
        scratch=request.runs if request.slurm is not None else None,
    )


def _require_carrying(request: WorthRequest, jobs: Document[JobMix], place: int, found: Evaluated) -> None:
    """Refuse a trace that cannot tell of its jobs."""
    question = found.question
    job, path = jobs.value.job[place], question.request.source
    nodes = len(set(question.nodes))
    if question.trace.ranks != job.ranks:
        jobs.fail(
            f"job[{place}].ranks",
            f"{path} is of {count(question.trace.ranks, 'rank')}, the jobs are of {job.ranks}: how a program scales is "
            f"not in a trace; trace it with {count(job.ranks, 'rank')}",
        )
    if nodes != job.nodes:
        jobs.fail(
            f"job[{place}].nodes",
            f"{path} is of {count(nodes, 'node')}, the jobs are of {job.nodes}: trace it there, or say with "
            "--ranks-per-node how ranks are placed",
        )
    if nodes == 1:
        raise UsageError(
            f"{path} is of one node: no message of it goes through a network, so none is worth anything to it"
        )
    if found.figures.own_s is None:
        raise UsageError(
            f"{path} does not say how long the program ran, or was cut off: changes of its run time have no scale"
        )
    if not 1 / NEAR < found.figures.fit < NEAR:
        own, model = (format_time(one) for one in (found.figures.own_s, float(found.figures.times[0, 0])))
        raise UsageError(
            f"{path}: the program took {own}, the model of {question.request.run.manifest.id} says {model}: "
            "trace it again on quiet nodes of that network, or calibrate again"
        )
    if question.wildcards and not request.as_traced:
        raise UsageError(
            f"{path} has {count(question.wildcards, 'receive')} from any source, which another network may order "
            "otherwise: --as-traced values it as if the order stayed"
        )


def _offers(request: WorthRequest, prices: Prices, found: dict[str, Evaluated]) -> list[worth.Offer]:
    offers = []
    *scenarios, _ = next(iter(found.values())).question.scenarios
    for place, one in enumerate(scenarios):
        if len(one.of) != 1:
            raise UsageError(
                f"--what-if {one.name}: only networks by name have prices; your own: --network FILE.toml"
            )
        network = one.of[0]
        if one.name == request.tuned_name:
            ports, source = money.nothing(), "tuning buys no parts"
        else:
            ports, source = money.ports(prices, network.id, network.costs, str(request.prices))
        offers.append(worth.Offer(one.name, one.title, ports, source, _changes(found, place)))
    return offers


def _changes(found: dict[str, Evaluated], place: int) -> dict[str, worth.Numbers]:
    """Return the change of each trace on one of the networks: the likely one, then that of each sample."""
    of = place % len(next(iter(found.values())).question.scenarios)
    return {name: np.array([one.likely(of), *one.changes(of)]) for name, one in found.items()}


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


def _bytes(path: Path | str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}; 'wulf program worth --template jobs' and 'prices' print one"
        ) from None
