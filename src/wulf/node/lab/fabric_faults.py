"""Faults of one switch of a virtual fabric, as a user writes them.  Pure."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from wulf.base.errors import UsageError
from wulf.base.text import printable
from wulf.base.units import parse_duration, parse_percent
from wulf.node.lab.topology import Fabric, link

FORMS = "spine3:loss=1%, spine3:delay=50us, spine3:rate=100mbit, spine3>leaf2:loss=1% (one direction), spine3:none"
_FAULT = re.compile(
    r"(?P<switch>(leaf|spine)\d{1,2})(>(?P<to>(leaf|spine)\d{1,2}))?:(?P<what>none|(loss|delay|rate)=.+)"
)
_PER_MILLE = 1000


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What a switch does wrong with the packets that it sends on."""

    kind: Literal["none", "loss", "delay", "rate"]
    #: Switch and the switch that it sends to, for each exit with the fault.
    exits: tuple[tuple[str, str], ...]
    per_mille: int = 0
    delay_ns: int = 0
    #: As `tc` writes it.
    rate: str = ""


def is_fault(text: str) -> bool:
    """Whether a word is written as a fault of a fabric."""
    return _FAULT.fullmatch(text) is not None


def parse(text: str, fabric: Fabric) -> Fault:
    """Return the fault that a user writes, such as ``spine3:loss=1%``.

    Raises
    ------
    UsageError
        It is none, or of no switch of this fabric.
    """
    match = _FAULT.fullmatch(text)
    if match is None:
        raise UsageError(f"{printable(text, 60)!r} is not a fault of a switch; write for example {FORMS}")
    switch, towards = match["switch"], match["to"]
    others = fabric.neighbours(switch)
    for name, there in ((switch, fabric.switches()), (towards, others)):
        if name is not None and name not in there:
            raise UsageError(f"{text!r}: there is no {name} there; there are {', '.join(there)}")
    kind, _, value = match["what"].partition("=")
    exits = tuple((switch, other) for other in ([towards] if towards else others))
    if kind == "loss":
        per_mille = round(parse_percent(value) * _PER_MILLE)
        if per_mille < 1:
            raise UsageError(f"{text!r}: the smallest loss is 0.1%")
        return Fault(kind="loss", exits=exits, per_mille=per_mille)
    if kind == "delay":
        return Fault(
            kind="delay", exits=exits, delay_ns=round(parse_duration(str(link(delay=value).delay)) * 1e9)
        )
    if kind == "rate":
        return Fault(kind="rate", exits=exits, rate=str(link(rate=value).rate))
    return Fault(kind="none", exits=exits)


def numbers(switch: str, towards: str) -> tuple[int, int]:
    """Return the number of the leaf and that of the spine at the ends of a link."""
    by_kind = {name.rstrip("0123456789"): int(re.sub(r"\D", "", name)) for name in (switch, towards)}
    return by_kind["leaf"], by_kind["spine"]
