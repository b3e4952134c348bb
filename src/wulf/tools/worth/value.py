"""What a network is worth to a mix of jobs: node-hours saved against what it costs.  Pure.

Every input is drawn once in each sample: the changes of the jobs by their predictions, prices from their bounds. An
interval is that of the samples, the figure that of the likely inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from wulf.base.networks import Bounds
from wulf.base.records import Estimate
from wulf.base.units import format_change
from wulf.stats.prediction.draws import Sample, bounded
from wulf.stats.prediction.uncertainty import estimate
from wulf.tools.worth.money import YEAR_H, JobMix, Ports, Prices, nothing
from wulf.tools.worth.record import Influence, JobEffect, NetworkWorth

Numbers = NDArray[np.float64]
_METHOD = "samples of predictions and prices"
#: Part of the samples that must agree for a verdict.
SURE = 0.975
#: How many inputs of the sensitivity are shown.
_INFLUENCES = 10


@dataclass(frozen=True)
class Offer:
    """A network, with what it changes of each job: the likely change first, then that of each sample."""

    name: str
    title: str
    ports: Ports
    source: str
    #: By trace.
    changes: Mapping[str, Numbers]


@dataclass(frozen=True)
class Noise:
    """How far what a traced program computes varies by itself: half a 95 % interval ÷ all of it, by trace."""

    of: Mapping[str, float]

    def of_mix(self, mix: JobMix) -> float:
        """Return the same of the node-hours of all jobs, where all vary in the same direction."""
        return sum(job.share * self.of[job.trace] for job in mix.job)


@dataclass(frozen=True)
class Inputs:
    """All that the money depends on; the first number of each is the likely one, then one of each sample."""

    changes: Mapping[str, Numbers]
    nic: Numbers
    switch_port: Numbers
    cable: Numbers
    power_w: Numbers
    node_hour: Numbers
    kwh: Numbers
    node: Numbers | None
    node_power_w: Numbers | None
    node_idle_w: Numbers | None


@dataclass(frozen=True)
class Money:
    """What follows from the inputs."""

    saved: Numbers
    value: Numbers
    price: Numbers
    power: Numbers
    net: Numbers
    break_even: Numbers
    worth_nodes: Numbers
    nodes_for_it: Numbers | None
    energy: Numbers | None
    years: float

    def after(self, tuned_saves: Numbers, of: Inputs) -> Numbers:
        """Return the net value of what is saved beyond what tuning saves, which costs nothing [node-hours a year]."""
        return self.net - self.years * tuned_saves * of.node_hour


def inputs(offer: Offer, prices: Prices, draws: Sequence[Sample]) -> Inputs:
    """Draw all inputs; what is of no network in particular is the same for all."""

    def drawn(name: str, bounds: Bounds) -> Numbers:
        return np.array([bounds.value, *(bounded(bounds, draw.of(f"price {name}")) for draw in draws)])

    own = offer.ports
    return Inputs(
        changes=offer.changes,
        nic=drawn(f"{offer.name} nic", own.nic),
        switch_port=drawn(f"{offer.name} port", own.switch_port),
        cable=drawn(f"{offer.name} cable", own.cable),
        power_w=drawn(f"{offer.name} power", own.power_w),
        node_hour=drawn("node hour", prices.node_hour),
        kwh=drawn("kwh", prices.power_per_kwh),
        node=drawn("node", prices.node) if prices.node else None,
        node_power_w=drawn("node power", prices.node_power_w) if prices.node_power_w else None,
        node_idle_w=drawn("idle node power", prices.node_idle_w) if prices.node_idle_w else None,
    )


def money(of: Inputs, mix: JobMix, years: float) -> Money:
    """Return what follows from the inputs, for each of their numbers."""
    share_saved = sum((job.share * (1 - of.changes[job.trace]) for job in mix.job), np.zeros(len(of.nic)))
    saved = mix.nodes * mix.hours_a_year * share_saved
    value = saved * of.node_hour
    price = mix.nodes * (of.nic + of.switch_port + of.cable)
    power = mix.nodes * of.power_w / 1e3 * YEAR_H * of.kwh
    running = years * (value - power)
    nodes_for_it = None
    if of.node is not None and of.node_power_w is not None:
        each = of.node + years * of.node_power_w / 1e3 * YEAR_H * of.kwh
        nodes_for_it = np.maximum(price + years * power, 0) / each
    return Money(
        saved=saved,
        value=value,
        price=price,
        power=power,
        net=running - price,
        break_even=running / mix.nodes,
        worth_nodes=saved / mix.hours_a_year,
        nodes_for_it=nodes_for_it,
        energy=_energy(of, mix, saved),
        years=years,
    )


def _energy(of: Inputs, mix: JobMix, saved: Numbers) -> Numbers | None:
    """Return what the same jobs take less, less what NICs and switches take more [kWh/year]; None without watts."""
    if of.node_power_w is None:
        return None
    spared = of.node_power_w if of.node_idle_w is None else of.node_power_w - of.node_idle_w
    return (saved * spared - mix.nodes * of.power_w * YEAR_H) / 1e3


def valued(
    offers: Sequence[Offer],
    mix: JobMix,
    prices: Prices,
    draws: Sequence[Sample],
    tuned: Numbers | None,
    noise: Noise,
) -> list[NetworkWorth]:
    """Return what each network is worth, and how surely it is the best of them; arguments as of `worth`."""
    nets = np.array([money(inputs(one, prices, draws), mix, prices.years).net[1:] for one in offers])
    best = np.argmax(nets, axis=0)
    return [
        structs.replace(worth(one, mix, prices, draws, tuned, noise), leads=float(np.mean(best == place)))
        for place, one in enumerate(offers)
    ]


def worth(
    offer: Offer,
    mix: JobMix,
    prices: Prices,
    draws: Sequence[Sample],
    tuned: Numbers | None,
    noise: Noise,
) -> NetworkWorth:
    """Return what a network is worth.

    Parameters
    ----------
    tuned
        Run time of the mix on the tuned network ÷ now, likely and of each sample; None where not asked about.
    noise
        Of the traces: what is saved must be more than that.
    """
    of = inputs(offer, prices, draws)
    found = money(of, mix, prices.years)
    pays = float(np.mean(found.net[1:] > 0))
    refused = _refused(mixed(offer, mix), noise.of_mix(mix)) if pays > 1 - SURE else ""
    after = (
        None if tuned is None else found.after(mix.nodes * mix.hours_a_year * (1 - np.minimum(tuned, 1)), of)
    )
    return NetworkWorth(
        network=offer.name,
        title=offer.title,
        jobs=[
            JobEffect(trace=job.trace, share=job.share, change=figure(of.changes[job.trace], "ratio"))
            for job in mix.job
        ],
        saved_node_hours=figure(found.saved, "h"),
        value=figure(found.value, f"{prices.currency}/year"),
        price=figure(found.price, prices.currency),
        power=figure(found.power, f"{prices.currency}/year"),
        net=figure(found.net, prices.currency),
        break_even_port=figure(found.break_even, prices.currency),
        pay_back_years=_pay_back(found),
        pays=pays,
        worth_nodes=figure(found.worth_nodes, "nodes"),
        nodes_for_it=None if found.nodes_for_it is None else figure(found.nodes_for_it, "nodes"),
        energy=None if found.energy is None else figure(found.energy, "kWh/year"),
        beyond_tuned=None if tuned is None else figure(mixed(offer, mix) / tuned, "ratio"),
        net_after_tuning=None if after is None else figure(after, prices.currency),
        pays_after_tuning=None if after is None else float(np.mean(after[1:] > 0)),
        leads=0.0,
        source=offer.source,
        verdict=_verdict(pays, refused),
        refused=refused,
        influences=influences(of, mix, prices.years),
    )


def _verdict(pays: float, refused: str) -> Literal["pays", "does not pay", "cannot be told"]:
    if pays <= 1 - SURE:
        return "does not pay"
    return "cannot be told" if refused or pays < SURE else "pays"


def _refused(changes: Numbers, noise: float) -> str:
    """Say why the traces cannot carry that a network pays; nothing where they can."""
    saved = 1 - float(changes[0])
    if saved > noise:
        return ""
    return (
        f"what the programs compute varies by ±{noise:.1%} of itself within their own traces, and the network changes "
        f"the node-hours by {format_change(figure(changes, 'ratio'))}: trace longer runs"
    )


def bound_port(
    changes: Mapping[str, Numbers], mix: JobMix, prices: Prices, draws: Sequence[Sample]
) -> Estimate:
    """Return the most that a port of any network is worth: messages take no time, and parts no power."""
    best = Offer("", "", nothing(), "", changes)
    return figure(money(inputs(best, prices, draws), mix, prices.years).break_even, prices.currency)


def mixed(offer: Offer, mix: JobMix) -> Numbers:
    """Return the node-hours of the whole mix on a network ÷ now; what no job speaks of is taken to stay."""
    return 1 - sum(
        (job.share * (1 - offer.changes[job.trace]) for job in mix.job),
        np.zeros(len(next(iter(offer.changes.values())))),
    )


def figure(numbers: Numbers, unit: str) -> Estimate:
    """Return the likely number, with the interval of those of the samples."""
    return estimate(float(numbers[0]), numbers[1:], unit, _METHOD)


def _pay_back(found: Money) -> Estimate | None:
    """Return when it has paid; samples in which it never does count as never."""
    yearly = found.value - found.power
    if yearly[0] <= 0:
        return None
    with np.errstate(divide="ignore"):
        years = np.where(yearly > 0, found.price / np.maximum(yearly, 1e-300), np.inf)
    low, high = (float(np.quantile(years[1:], part, method="nearest")) for part in (0.025, 0.975))
    value = float(years[0])
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value) if np.isfinite(high) else None,
        confidence=0.95,
        unit="years",
        n=len(years) - 1,
        method=f"{_METHOD}; no upper bound where it may never pay",
    )


def influences(of: Inputs, mix: JobMix, years: float) -> list[Influence]:
    """Return what moves the net value most: each input at both ends of its interval, all others as likely."""
    likely = _only_likely(of)

    def net(changed: Inputs) -> float:
        return float(money(changed, mix, years).net[0])

    found = []
    for what, numbers, put in _one_by_one(of, likely):
        low, high = (np.array([end]) for end in np.percentile(numbers[1:], [2.5, 97.5]))
        found.append(Influence(what=what, at_low=net(put(low)), at_high=net(put(high))))
    found.sort(key=lambda one: -abs(one.at_high - one.at_low))
    return found[:_INFLUENCES]


def _only_likely(of: Inputs) -> Inputs:
    def first(numbers: Numbers | None) -> Numbers | None:
        return None if numbers is None else numbers[:1]

    plain = {one.name: first(getattr(of, one.name)) for one in fields(of) if one.name != "changes"}
    return Inputs(changes={trace: one[:1] for trace, one in of.changes.items()}, **plain)  # type: ignore[arg-type]


def _one_by_one(of: Inputs, likely: Inputs) -> Iterator[tuple[str, Numbers, Callable[[Numbers], Inputs]]]:
    """Yield what each input is, its numbers, and the likely inputs with another value of it."""
    for trace, numbers in of.changes.items():
        yield (
            f"run time of {trace}",
            numbers,
            lambda value, trace=trace: replace(likely, changes={**likely.changes, trace: value}),  # type: ignore[misc]
        )
    names = {
        "nic": "price of a NIC",
        "switch_port": "price of a switch port",
        "cable": "price of a cable",
        "power_w": "power of a port",
        "node_hour": "price of a node-hour",
        "kwh": "price of power",
    }
    for name, what in names.items():
        yield what, getattr(of, name), lambda value, name=name: replace(likely, **{name: value})  # type: ignore[misc]
