"""Networks that a program may be predicted for: those of ``data/networks``, and a user's own files.

A parameter has the value that is likely and the bounds between which it lies; a prediction carries them on. Nothing is
filled in: what a file does not say is asked for by its name.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from wulf.base import catalogue, toml, user_files
from wulf.base.catalogue import Data, Evidence
from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import choices, printable

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
_Number = Annotated[float, msgspec.Meta(ge=0, le=1e15)]  # inf is none

#: Parameter, as messages name it → how it is measured.
_HOW_TO_MEASURE = {
    "latency_us": "half the round trip of the smallest message, less what both calls take",
    "eager_bytes": "the largest message that MPI_Send does not wait for a late receiver with (mpi_late_receiver)",
    "send": "what MPI_Send takes by itself, at several sizes (mpi_send_overhead)",
    "receive": "what MPI_Recv takes of a message that has arrived, at several sizes (mpi_recv_overhead)",
    "wire": "the gap between messages of a train, at several sizes (mpi_rate:1 and mpi_rate:16)",
}


class Bounds(Data, frozen=True, kw_only=True):
    """A number that is known to lie between two others."""

    value: _Number
    low: _Number
    high: _Number

    def __post_init__(self) -> None:
        """Require an order."""
        if not self.low <= self.value <= self.high:
            raise ValueError("low, value and high must be in this order")


class Stretch(Data, frozen=True, kw_only=True):
    """What something takes from a size on: ``base_us`` and ``ns_per_byte`` of all bytes of the message."""

    from_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    base_us: Bounds
    ns_per_byte: Bounds


Stretches: TypeAlias = Annotated[tuple[Stretch, ...], msgspec.Meta(min_length=1)]


class Between(Data, frozen=True, kw_only=True):
    """What messages between nodes take. All of it is of MPI, as a program sees it."""

    #: Of the smallest message on its way, without what both calls take [µs].
    latency_us: Bounds
    #: Messages up to that size do not wait for their receiver [B].
    eager_bytes: Annotated[int, msgspec.Meta(ge=0)]
    #: The CPU's time to send.
    send: Stretches
    #: The CPU's time to receive.
    receive: Stretches
    #: How long the network interface is taken.
    wire: Stretches

    def __post_init__(self) -> None:
        """Require that stretches begin at 0 bytes and ascend."""
        for name in ("send", "receive", "wire"):
            begins = [one.from_bytes for one in getattr(self, name)]
            if begins[0] != 0 or begins != sorted(set(begins)):
                raise ValueError(f"'{name}': from_bytes begins at 0 and ascends")


class Costs(Data, frozen=True, kw_only=True):
    """What it costs, per port."""

    currency: _Text
    year: int
    #: Of each node; one that comes with every mainboard costs nothing.
    nic: Bounds
    switch_port: Bounds
    cable: Bounds
    #: Of NIC and switch port together [W].
    power_w: Bounds
    #: Where the prices are from; ``estimate`` where nobody has asked a seller.
    source: _Text


class NamedNetwork(Data, frozen=True, kw_only=True):
    """A network by its name."""

    id: _Id
    title: _Text
    what: _Text
    #: Of which year the parameters are.
    year: int
    #: Speed of the links [bit/s] of which this says what TCP should reach (`reach`); 0 of none.
    reach_of_bits_per_s: Annotated[int, msgspec.Meta(ge=0)] = 0
    between: Between
    costs: Costs | None = None
    evidence: Annotated[list[Evidence], msgspec.Meta(min_length=1)]


@functools.cache
def networks() -> dict[str, NamedNetwork]:
    """Network id → network, of the package, the site and the user.

    Raises
    ------
    ConfigError
        A file is not valid: names it and the key, and how the key is measured.
    """
    try:
        return catalogue.load("networks", NamedNetwork)
    except ConfigError as error:
        raise ConfigError(f"{error}{_advice(str(error))}") from None


class Reach(NamedTuple):
    """What nodes with a link of some speed should reach over TCP."""

    #: Half of the round trip of a small message [s].
    latency_s: tuple[float, float]
    #: Messages that one process sends in a second.
    messages_per_s: tuple[float, float]
    #: Networks that say so, by id.
    networks: tuple[str, ...]


def reach(bits_per_s: float) -> Reach | None:
    """Return what links of this speed should reach, from all networks that are of it; a site's own count alone.

    Half of a round trip is what sending, the way and receiving take together; a process sends a message in each time
    that sending takes it.
    """
    fitting = [one for one in networks().values() if one.reach_of_bits_per_s == bits_per_s > 0]
    chosen = [one for one in fitting if user_files.whose("networks", one.id)] or fitting
    if not chosen:
        return None
    parts = [
        (one.between.send[0].base_us, one.between.latency_us, one.between.receive[0].base_us)
        for one in chosen
    ]
    sends = [send for send, _, _ in parts]
    return Reach(
        latency_s=(
            min(sum(part.low for part in of) for of in parts) * 1e-6,
            max(sum(part.high for part in of) for of in parts) * 1e-6,
        ),
        messages_per_s=(
            1e6 / max(send.high for send in sends),
            1e6 / min(max(send.low, 1e-3) for send in sends),
        ),
        networks=tuple(one.id for one in chosen),
    )


def named(name: str, others: dict[str, NamedNetwork]) -> NamedNetwork:
    """Return the network of a name; a user's own come before those of the catalogue.

    Raises
    ------
    UsageError
        There is none; names all.
    """
    known = networks() | others
    if name not in known:
        raise UsageError(
            f"there is no network '{printable(name, 80)}'{choices(name, known)}; "
            "your own: --network FILE.toml, or a file in ~/.config/wulf/networks"
        )
    return known[name]


def read(path: Path) -> list[NamedNetwork]:
    """Return the networks of a user's file, or of all ``.toml`` files of a directory.

    Raises
    ------
    ConfigError
        It cannot be read, or does not say all that is needed: names file and key, and how the key is measured.
    """
    if path.is_dir():
        files = sorted(path.glob("*.toml"))
        if not files:
            raise ConfigError(f"{path}: there is no .toml file in this directory")
        return [_read(file) for file in files]
    return [_read(path)]


def _read(path: Path) -> NamedNetwork:
    try:
        return toml.read(path.read_bytes(), str(path), NamedNetwork).value
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except ConfigError as error:
        raise ConfigError(f"{error}{_advice(str(error))}") from None


def _advice(problem: str) -> str:
    missing = re.search(r"(\w+): missing$", problem)
    if missing is None:
        return ""
    how = _HOW_TO_MEASURE.get(missing[1])
    if how is None:
        return "; 'wulf program predict --show 1gbe' prints a whole file"
    return (
        f"; it is {how}; 'wulf measure --suite calibrate' on such a network measures it. It is not guessed: "
        "'wulf program predict --show 1gbe' prints a whole file"
    )


def text(name: str) -> str:
    """Return the file of a network of the catalogue, to begin one's own with.

    Raises
    ------
    UsageError
        There is none of this name.
    """
    found = user_files.source("networks", named(name, {}).id)
    assert found is not None, "it is named"
    return found.text
