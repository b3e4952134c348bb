"""What networks are worth, in words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wulf.base.units import format_change, format_spread
from wulf.tools.worth.record import NetworkWorth, Worth
from wulf.tools.worth.value import SURE


def conclusion(of: Worth) -> Iterator[str]:
    """Say what it comes to: the answer first, then each network with its reasons."""
    ordered = sorted(of.networks, key=lambda one: -one.net.value)
    yield _answer(ordered)
    tuned = of.tuned_change
    if tuned is not None and tuned.high is not None and tuned.high < 1:
        yield (
            f"Tune first: {of.tuned} changes the node-hours of the mix by {format_change(tuned)} and costs no parts "
            "(wulf tune)."
        )
    for one in ordered:
        yield f"{_DO[one.verdict]} {one.network}: {_reason(one, of.years)}"
        yield from _against_nodes(one)
        yield from _against_tuned(one, of.tuned)
    yield (
        f"No network is worth more than {format_spread(of.bound_port)} a port to these jobs: that is where their "
        "messages take no time at all."
    )


def _answer(ordered: Sequence[NetworkWorth]) -> str:
    paying = [one for one in ordered if one.verdict == "pays"]
    after_tuning = [one for one in paying if one.pays_after_tuning is None or one.pays_after_tuning >= SURE]
    if after_tuning:
        best = after_tuning[0]
        others = f"; of those asked about its net value is highest in {best.leads:.0%} of the samples"
        return f"Buy {best.network}: it pays{others if len(ordered) > 1 else ''}."
    if paying:
        return "Tune what there is, and measure again: beyond that none of these networks is sure to pay."
    if all(one.verdict == "does not pay" for one in ordered):
        return "Buy none of these networks: none pays."
    if any(one.refused for one in ordered):
        return "The traces cannot answer the question: see below what they lack."
    return "Cannot tell whether any of these networks pays."


_DO = {"pays": "It pays to buy", "does not pay": "Do not buy", "cannot be told": "It cannot be told of"}


def _reason(one: NetworkWorth, years: float) -> str:
    text = (
        f"over {years:g} years its net value is {format_spread(one.net)}; it saves "
        f"{format_spread(one.saved_node_hours)} of node-hours a year ({_by_job(one)}), and pays at up to "
        f"{format_spread(one.break_even_port)} a port"
    )
    if one.refused:
        return f"{text}; {one.refused}."
    if one.verdict == "cannot be told":
        strongest = one.influences[0].what if one.influences else "nothing"
        text += f"; in {one.pays:.0%} of the samples it pays. What decides most is the {strongest}"
    return f"{text}."


def _by_job(one: NetworkWorth) -> str:
    return ", ".join(f"{job.trace} {format_change(job.change)}" for job in one.jobs)


def _against_nodes(one: NetworkWorth) -> Iterator[str]:
    if one.nodes_for_it is None or one.verdict == "does not pay":
        return
    better = "more than" if one.worth_nodes.value > one.nodes_for_it.value else "less than"
    yield (
        f"The same money buys {format_spread(one.nodes_for_it)}; {one.network} is worth {better} that, as much as "
        f"{format_spread(one.worth_nodes)}. More nodes make no job faster: they only let more jobs run."
    )


def _against_tuned(one: NetworkWorth, tuned: str) -> Iterator[str]:
    if one.beyond_tuned is None or one.net_after_tuning is None or one.verdict == "does not pay":
        return
    pays = one.pays_after_tuning or 0.0
    then = (
        "still pays"
        if pays >= SURE
        else "does not pay any more"
        if pays <= 1 - SURE
        else "may not pay any more"
    )
    yield (
        f"Beyond {tuned}, {one.network} changes the node-hours by {format_change(one.beyond_tuned)}, and {then}: net "
        f"value {format_spread(one.net_after_tuning)}."
    )
