"""The data of the charts of what networks are worth, and the words beside them."""

from __future__ import annotations

from msgspec import structs

from wulf.base.records import Estimate
from wulf.base.text import count
from wulf.base.units import format_spread, format_value
from wulf.page.parts import Columns, Figure, Variant, rounded
from wulf.page.words import lines_drawn
from wulf.tools.worth.page import charts
from wulf.tools.worth.record import NetworkWorth, Worth


def net(found: Worth) -> Figure:
    """Return the net value of every network, with its interval."""
    ordered = found.networks
    main: Columns = {
        "network": [one.network for one in ordered],
        "net": rounded([one.net.value for one in ordered]),
        "low": rounded([one.net.low for one in ordered]),
        "high": rounded([one.net.high for one in ordered]),
        "verdict": [one.verdict for one in ordered],
        "shown": [format_spread(one.net) for one in ordered],
    }
    best = max(ordered, key=lambda one: one.net.value)
    return Figure(
        id="net",
        chart=charts.NET,
        title=f"Net value over {found.years:g} years",
        x_title=f"value of saved node-hours − power − price [{found.currency}]",
        y_title="network",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Net value of {count(len(ordered), 'network')}; highest: {best.network}, "
                f"{format_spread(best.net)}.",
                caption=f"Points are what is likely{lines_drawn(one.net for one in ordered)}; right of zero it pays.",
            ),
        ),
    )


def ports(found: Worth) -> Figure:
    """Return up to what price of a port each network pays, and what a port costs today."""
    told = [
        (one.network, of, price)
        for one in found.networks
        for of, price in zip(charts.PRICES, (one.break_even_port, _port(one, found)), strict=True)
    ]
    main: Columns = {
        "network": [network for network, _, _ in told],
        "of": [of for _, of, _ in told],
        "price": rounded([price.value for _, _, price in told]),
        "low": rounded([price.value if price.low is None else price.low for _, _, price in told]),
        "high": rounded([price.value if price.high is None else price.high for _, _, price in told]),
        "shown": [format_spread(price) for _, _, price in told],
    }
    return Figure(
        id="ports",
        chart=charts.PORTS,
        title="What a port may cost, and what it costs",
        x_title=f"price of a port: NIC, switch port and cable [{found.currency}]",
        y_title="network",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary="; ".join(
                    f"{one.network} pays at up to {format_spread(one.break_even_port)} a port"
                    for one in found.networks
                )
                + ".",
                caption="A network pays where what a port costs lies left of what it may cost"
                f"{lines_drawn(price for _, _, price in told)}. Left of zero it does not pay as a gift: its power "
                "costs more than it saves.",
            ),
        ),
    )


def _port(one: NetworkWorth, found: Worth) -> Estimate:
    """Return what a port costs, as the whole does."""

    def each(value: float | None) -> float | None:
        return None if value is None else value / found.nodes

    return structs.replace(
        one.price, value=one.price.value / found.nodes, low=each(one.price.low), high=each(one.price.high)
    )


def tornado(found: Worth) -> Figure:
    """Return what the net value of the best network depends on."""
    best = max(found.networks, key=lambda one: one.net.value)
    causes = best.influences
    main: Columns = {
        "input": [one.what for one in causes for _ in range(2)],
        "end": [end for _ in causes for end in ("lower end", "upper end")],
        "net": rounded([value for one in causes for value in (one.at_low, one.at_high)]),
        "likely": rounded([best.net.value for _ in causes for _ in range(2)]),
        "shown": [
            format_value(value, found.currency) for one in causes for value in (one.at_low, one.at_high)
        ],
    }
    return Figure(
        id="tornado",
        chart=charts.TORNADO,
        title=f"What the net value of {best.network} depends on",
        x_title=f"net value [{found.currency}]",
        y_title="input",
        variants=(
            Variant(
                label="",
                datasets={"main": main},
                summary=f"Net value of {best.network} at both ends of {count(len(causes), 'input')}."
                f" It depends most on the {causes[0].what}.",
                caption="Each input at the ends of its 95 % interval, all others as is likely; the line is where all "
                "are as is likely, zero where it just pays.",
            ),
        ),
    )
