"""What a program of a pattern looks like: how it is best drawn, and its steps in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NoReturn

import msgspec

from wulf.base.pattern import distributions, graph
from wulf.base.pattern.distributions import Amount
from wulf.base.pattern.language import Document, Program, Step

Layout = Literal["circle", "line", "grid", "star", "servers", "tree", "hypercube"]


_LAYOUTS: dict[str, Layout] = {
    "halo-2d": "grid",
    "halo-3d": "grid",
    "hypercube": "hypercube",
    "client-server": "servers",
    "task-farm": "star",
    "pipeline": "line",
    "tree": "tree",
}


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Of one program."""

    layout: Layout = "circle"
    #: Ranks in each direction of a grid.
    dims: tuple[int, ...] = ()
    servers: int = 0
    fan_out: int = 0
    #: One for each step.
    words: tuple[str, ...]


def shape(document: Document, number: int, ranks: int) -> Shape:
    """Return what a program looks like on so many ranks; the first of its exchanges says how it is drawn."""
    program = document.pattern.program[number]
    words = tuple(_words(step) for step in program.step)
    place, step = _first(program)
    if step is None:
        return Shape(words=words)

    def fail(key: str, why: str) -> NoReturn:
        document.fail(f"program[{number}].step[{place}].{key}", why)

    return Shape(
        layout=_layout(step),
        dims=_dims(step, ranks, fail),
        servers=(step.servers or 1) if step.exchange == "client-server" else 0,
        fan_out=(step.fan_out or graph.FAN_OUT) if step.exchange == "tree" else 0,
        words=words,
    )


def _layout(step: Step) -> Layout:
    if step.exchange is None:
        return "grid"
    if step.exchange == "halo-1d" and not step.periodic:
        return "line"
    return _LAYOUTS.get(step.exchange, "circle")


def _dims(step: Step, ranks: int, fail: graph.Fail) -> tuple[int, ...]:
    if step.exchange in ("halo-2d", "halo-3d"):
        return graph.dimensions(step, ranks, fail)
    return graph.balanced(ranks, 2) if step.exchange is None else ()


def _first(program: Program) -> tuple[int, Step | None]:
    """Return the first step with an exchange; else the first collective of rows or columns, which are a mesh."""
    for place, step in enumerate(program.step):
        if step.exchange is not None:
            return place, step
    for place, step in enumerate(program.step):
        if isinstance(step.groups, str):
            return place, step
    return 0, None


def _words(step: Step) -> str:
    return ", ".join(_parts(step))


def _parts(step: Step) -> Iterator[str]:
    if step.times != 1:
        yield (
            f"{step.times:g} times an iteration"
            if step.times > 1
            else f"in every {1 / step.times:g}th iteration"
        )
    if step.think is not None:
        yield f"think {distributions.words(step.think)}"
    if step.compute is not None:
        yield f"compute {distributions.words(step.compute)}"
    if step.exchange is not None:
        yield step.exchange + (", periodic" if step.periodic else "")
    if step.method is not None:
        yield step.method
    if step.collective is not None:
        yield step.collective + (f" of {step.groups}" if isinstance(step.groups, str) else "")
    yield from _amounts(step)


def _amounts(step: Step) -> Iterator[str]:
    amounts: dict[str, Amount | None] = {
        "": step.size,
        "answer ": step.reply,
        "meanwhile compute ": step.overlap,
    }
    for name, amount in amounts.items():
        if amount is not None:
            yield name + distributions.words(amount)
