"""Jobs and prices as users write them.  Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from wulf.base import toml
from wulf.base.catalogue import Data
from wulf.base.errors import ConfigError
from wulf.base.networks import Bounds, Costs
from wulf.base.text import count
from wulf.base.toml import Document

_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]  # inf is none
_Count = Annotated[int, msgspec.Meta(ge=1)]
_ADVICE = "'wulf program worth --template {}' prints an example"
#: Hours of a year.
YEAR_H = 8760.0


class Job(Data, frozen=True, kw_only=True):
    """Jobs that are alike."""

    #: File of the trace of one of them, as it is named on the command line.
    trace: str
    #: Of the cluster's node-hours.
    share: _Share
    #: As they run; a trace of other numbers does not tell of them.
    ranks: _Count
    nodes: _Count


class JobMix(Data, frozen=True, kw_only=True):
    """What a cluster is used for."""

    #: Of the cluster.
    nodes: _Count
    #: In which they work, of the 8760 hours of a year.
    hours_a_year: Annotated[float, msgspec.Meta(gt=0, le=YEAR_H)]
    job: Annotated[list[Job], msgspec.Meta(min_length=1)]


class Ports(Data, frozen=True, kw_only=True):
    """What a network costs, per port."""

    nic: Bounds
    switch_port: Bounds
    cable: Bounds
    #: More than now, of NIC and switch port [W].
    power_w: Bounds


class Prices(Data, frozen=True, kw_only=True):
    """What things cost."""

    currency: str
    #: How long network and nodes are used.
    years: _Positive
    #: What an hour of a node costs in all.
    node_hour: Bounds
    power_per_kwh: Bounds
    #: One more node with its port; left out, nodes are not compared with.
    node: Bounds | None = None
    node_power_w: Bounds | None = None
    #: Of a node without work; left out, one that is not needed is taken to be off.
    node_idle_w: Bounds | None = None
    #: Units of this currency for one of another: of prices of the catalogue.
    rates: dict[str, _Positive] = msgspec.field(default_factory=dict)
    #: By the network's name.
    network: dict[str, Ports] = msgspec.field(default_factory=dict)


def read_jobs(text: bytes, origin: str) -> Document[JobMix]:
    """Return a mix of jobs, with where it says what.

    Raises
    ------
    ConfigError
        It is none; names the file, the line and the key.
    """
    document = toml.read(text, origin, JobMix, _ADVICE.format("jobs"))
    mix = document.value
    whole = 0.0
    names: set[str] = set()
    for place, job in enumerate(mix.job):
        whole += job.share
        if whole > 1 + 1e-9:
            document.fail(
                f"job[{place}].share", f"the shares add up to {whole:.3g} with this one; all node-hours are 1"
            )
        if job.trace in names:
            document.fail(f"job[{place}].trace", "a trace is there twice: give it one share")
        if job.nodes > mix.nodes:
            document.fail(
                f"job[{place}].nodes",
                f"{job.trace} runs on {count(job.nodes, 'node')}, of a cluster of {mix.nodes}",
            )
        names.add(job.trace)
    return document


def read_prices(text: bytes, origin: str) -> toml.Document[Prices]:
    """Return prices, with where they are; raises as `read_jobs`."""
    document = toml.read(text, origin, Prices, _ADVICE.format("prices"))
    found = document.value
    if (found.node is None) != (found.node_power_w is None):
        document.fail("node" if found.node else "node_power_w", "give 'node' and 'node_power_w', or neither")
    idle, busy = found.node_idle_w, found.node_power_w
    if idle is not None and (busy is None or idle.high > busy.low):
        document.fail("node_idle_w", "a node without work takes no more than 'node_power_w': give both")
    return document


def ports(prices: Prices, network: str, known: Costs | None, origin: str) -> tuple[Ports, str]:
    """Return what a port costs, and where that is from: the user's prices first, else the catalogue's.

    Raises
    ------
    ConfigError
        Nobody says, or in a currency without a rate; says which key is missing.
    """
    if network in prices.network:
        return prices.network[network], origin
    if known is None:
        raise ConfigError(f"{origin}: there are no prices of {network}: add [network.{network}]")
    rate = 1.0 if known.currency == prices.currency else prices.rates.get(known.currency)
    if rate is None:
        raise ConfigError(
            f"{origin}: prices of {network} are known in {known.currency}: add 'rates = {{ {known.currency} = … }}', "
            f"{prices.currency} for one {known.currency}, or [network.{network}] with your own"
        )
    nic, port, cable = (_times(one, rate) for one in (known.nic, known.switch_port, known.cable))
    found = Ports(nic=nic, switch_port=port, cable=cable, power_w=known.power_w)
    return found, f"{known.source} ({known.year})"


def nothing() -> Ports:
    """Return the price of what needs no parts."""
    zero = Bounds(value=0, low=0, high=0)
    return Ports(nic=zero, switch_port=zero, cable=zero, power_w=zero)


def _times(bounds: Bounds, rate: float) -> Bounds:
    return Bounds(value=bounds.value * rate, low=bounds.low * rate, high=bounds.high * rate)


JOBS = """\
# What the cluster is used for. Shares are of all node-hours; what they leave is taken to gain nothing.
nodes = 32
hours_a_year = 7900        # in which nodes work, of 8760

[[job]]
trace = "cfd.wtrace"       # as on the command line
share = 0.55
ranks = 64                 # of such a job: those of the trace
nodes = 8

[[job]]
trace = "md.wtrace"
share = 0.25
ranks = 32
nodes = 4
"""

PRICES = """\
# Numbers with the bounds between which they surely lie; equal bounds where a price is fixed.
currency = "EUR"
years = 4                  # how long the network is used
# What an hour of a node costs in all: price over its life, power, room, people.
node_hour = { value = 0.30, low = 0.22, high = 0.45 }
power_per_kwh = { value = 0.25, low = 0.18, high = 0.35 }
# One more node with its port; leave both out, and nodes are not compared with.
node = { value = 4500, low = 3500, high = 6000 }
node_power_w = { value = 350, low = 250, high = 450 }
# Of a node without work; leave it out where nodes are switched off: for the energy that is saved.
node_idle_w = { value = 120, low = 90, high = 160 }
# Prices of the catalogue are in USD, and estimates: EUR for one USD.
rates = { USD = 0.92 }

# Your own, by the name of the network; power is what NIC and switch port take more than those of now.
[network.25gbe-roce]
nic = { value = 240, low = 200, high = 300 }
switch_port = { value = 150, low = 110, high = 220 }
cable = { value = 45, low = 30, high = 60 }
power_w = { value = 18, low = 12, high = 25 }
"""
