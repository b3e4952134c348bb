"""The data of the charts of what networks are worth, and the words beside them."""

from __future__ import annotations

from msgspec import structs

from wulf.records import Estimate, NetworkWorth, Worth
from wulf.report.parts import Columns, Figure, Variant, rounded
from wulf.report.words import count
from wulf.report.worth import charts
from wulf.units import format_spread, format_value


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
                caption="Points are what is likely, lines 95 % intervals; right of zero it pays.",
            ),
        ),
    )


def by_price(found: Worth) -> Figure:
    """Return the net value of each network by the price of a port: a straight line that is zero at its break-even."""
    ports = {one.network: _port(one, found) for one in found.networks}
    high = 1.15 * max(
        *(max(one.break_even_port.high or 0.0, 0.0) for one in found.networks),
        *(port.high or port.value for port in ports.values()),
    )
    ends = (0.0, high)
    each = [(one, price) for one in found.networks for price in ends]

    def net(one: NetworkWorth, bound: float | None, price: float) -> float:
        return found.nodes * ((one.break_even_port.value if bound is None else bound) - price)

    main: Columns = {
        "network": [one.network for one, _ in each],
        "price": rounded([price for _, price in each]),
        "net": rounded([net(one, None, price) for one, price in each]),
        "low": rounded([net(one, one.break_even_port.low, price) for one, price in each]),
        "high": rounded([net(one, one.break_even_port.high, price) for one, price in each]),
    }
    now: Columns = {
        "network": list(ports),
        "price": rounded([port.value for port in ports.values()]),
        "cheapest": rounded([port.low for port in ports.values()]),
        "dearest": rounded([port.high for port in ports.values()]),
        "net": rounded([net(one, None, ports[one.network].value) for one in found.networks]),
        "shown": [
            f"a port costs {format_spread(ports[one.network])}, and pays at up to {format_spread(one.break_even_port)}"
            for one in found.networks
        ],
    }
    return Figure(
        id="by-price",
        chart=charts.BY_PRICE,
        title="Net value by the price of a port",
        x_title=f"price of a port: NIC, switch port and cable [{found.currency}]",
        y_title=f"net value over {found.years:g} years [{found.currency}]",
        variants=(
            Variant(
                label="",
                datasets={"main": main, "now": now},
                summary="; ".join(
                    f"{one.network} pays at up to {format_spread(one.break_even_port)} a port"
                    for one in found.networks
                )
                + ".",
                caption="A line crosses zero where a port just pays, its band is the 95 % interval of value and power; "
                "points with bars are what a port costs today.",
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
