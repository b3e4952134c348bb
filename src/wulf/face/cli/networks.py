"""The networks that predictions know by name, as people read them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wulf.base.text import printable
from wulf.base.user_files import whose
from wulf.face.cli.options import print_json, show_table

if TYPE_CHECKING:
    from wulf.base.networks import Bounds, NamedNetwork, Stretch

#: How a claim is known → how far it can be trusted, in the list.
_MEMORY = "general knowledge, unverified"


def show_list(own: Sequence[Path], *, json: bool) -> None:
    """Print all networks with their parameters and where these are from; a user's own last.

    Raises
    ------
    ConfigError
        A file cannot be read, or does not say all.
    """
    from rich.table import Table

    from wulf.base import networks

    mine = {one.id: one for path in own for one in networks.read(path)}
    every = list((networks.networks() | mine).values())
    if json:
        print_json(every)
        return
    table = Table(
        "name",
        "year",
        "latency [µs]",
        "bandwidth [Gbit/s]",
        "CPU to send, receive 0 B [µs]",
        "eager up to [B]",
        "a port costs",
        "power [W]",
        box=None,
    )
    for one in every:
        table.add_row(*_row(one))
    show_table(table)
    lines = [line for one in every for line in _sources(one, one.id in mine, whose("networks", one.id))]
    sys.stdout.write("\n" + "".join(f"{line}\n" for line in lines))
    sys.stdout.write(
        "\nLikely values with the bounds between which they lie. Latency: half the round trip of the smallest MPI "
        "message, less what both calls take.\n'wulf program predict --show NAME' prints a file to begin with; "
        "put your own into "
        "~/.config/wulf/networks, or name them with --network FILE.\n"
    )


def _row(one: NamedNetwork) -> tuple[str, ...]:
    between, costs = one.between, one.costs
    port, power = "unknown", "unknown"
    if costs is not None:
        parts = (costs.nic, costs.switch_port, costs.cable)
        port = f"{_sum(parts)} {printable(costs.currency, 8)} ({costs.year})"
        power = _bounds(costs.power_w)
    return (
        one.id,
        str(one.year),
        _bounds(between.latency_us),
        _rate(between.wire),
        f"{_bounds(between.send[0].base_us)}, {_bounds(between.receive[0].base_us)}",
        str(between.eager_bytes),
        port,
        power,
    )


def _bounds(one: Bounds) -> str:
    return f"{one.value:.3g} ({one.low:.3g}–{one.high:.3g})"


def _sum(parts: Iterable[Bounds]) -> str:
    value, low, high = (sum(getattr(one, end) for one in parts) for end in ("value", "low", "high"))
    return f"{value:.3g} ({low:.3g}–{high:.3g})"


def _rate(wire: Sequence[Stretch]) -> str:
    """Return the bandwidth of large messages."""
    each = wire[-1].ns_per_byte
    if each.low <= 0:
        return "unbounded"
    return f"{8 / each.value:.3g} ({8 / each.high:.3g}–{8 / each.low:.3g})"


def _sources(one: NamedNetwork, is_named: bool, file: str) -> Iterable[str]:
    whose_file = " (your own)" if is_named or file else ""
    yield f"{one.id}: {printable(one.title, 100)}{whose_file}" + (
        f" [{file}]" if file and not is_named else ""
    )
    for evidence in one.evidence:
        how = _MEMORY if evidence.how_known == "memory" else evidence.how_known
        figure = f": {printable(evidence.figure, 300)}" if evidence.figure else ""
        yield f"  {how}: {printable(evidence.source, 200)}{figure}"
    if one.costs is not None:
        yield f"  prices: {printable(one.costs.source, 200)}"
