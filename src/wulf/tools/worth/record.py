"""What another network is worth to a mix of jobs."""

from __future__ import annotations

from typing import Literal

from wulf.base.records.base import Estimate, Record


class JobEffect(Record, frozen=True, kw_only=True):
    """What a network changes of the jobs of one trace."""

    trace: str
    #: Part of the cluster's node-hours (0–1).
    share: float
    #: Run time there ÷ run time now.
    change: Estimate


class Influence(Record, frozen=True, kw_only=True):
    """How far the net value moves when one input goes from one end of its interval to the other, all else as likely."""

    what: str
    #: Net value at the lower and at the upper end of the input [currency].
    at_low: float
    at_high: float


class NetworkWorth(Record, frozen=True, kw_only=True):
    """What one network is worth over its life."""

    network: str
    title: str
    jobs: list[JobEffect]
    #: Node-hours a year that the jobs take less; negative where they take more [h].
    saved_node_hours: Estimate
    #: What these node-hours cost [currency/year].
    value: Estimate
    #: Price of all ports [currency].
    price: Estimate
    #: What NICs and switches take more, a year [currency/year].
    power: Estimate
    #: Value less power over the life, less the price [currency].
    net: Estimate
    #: Price of a port at which it pays exactly [currency].
    break_even_port: Estimate
    #: Until value less power is the price [year]; null where it never is, with the likely numbers.
    pay_back_years: Estimate | None
    #: Part of the samples in which it has paid by the end of its life (0–1).
    pays: float
    #: Nodes that give as many node-hours as are saved.
    worth_nodes: Estimate
    #: Nodes that the same money buys and runs for the same life; null without a price of nodes.
    nodes_for_it: Estimate | None
    #: Energy that the same jobs take less, less what NICs and switches take more, with the watts of the file of prices
    #: [kWh/year]; null without the power of a node.
    energy: Estimate | None = None
    #: Run time of the mix ÷ that on the tuned network; null where none was asked about.
    beyond_tuned: Estimate | None
    #: Net value of what it brings beyond the tuned network [currency], and the part of the samples in which that has
    #: paid (0–1); null where none was asked about.
    net_after_tuning: Estimate | None
    pays_after_tuning: float | None
    #: Part of the samples in which its net value is the highest of all (0–1).
    leads: float
    #: Where prices are from.
    source: str
    verdict: Literal["pays", "does not pay", "cannot be told"]
    #: Why the traces cannot carry an answer; empty where they can.
    refused: str = ""
    influences: list[Influence]


class Worth(Record, frozen=True, kw_only=True):
    """What networks are worth to a mix of jobs."""

    schema_version: int
    run: str
    nodes: int
    hours_a_year: float
    years: float
    currency: str
    samples: int
    seed: int
    #: The network as it is, tuned; empty where none was asked about.
    tuned: str
    #: Run time of the mix on it ÷ now.
    tuned_change: Estimate | None
    #: Price of a port at which a network pays exactly on which messages take no time: none is worth more [currency].
    bound_port: Estimate
    networks: list[NetworkWorth]
    conclusion: list[str]
    notes: list[str]
