"""Rings, meshes, tori and hypercubes as graphs.  Pure.

All of them are grids: a ring is a torus of one dimension, a hypercube a mesh of two ranks in every dimension. Ranks are
numbered as ``MPI_Cart_create`` does, the last dimension first: in ``mesh:2x3`` rank 4 is at (1, 1).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from wulf.base.errors import UsageError
from wulf.base.text import nearest, printable

Kind = Literal["ring", "mesh", "torus", "hypercube"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: How each kind is written.
FORMS: dict[Kind, str] = {
    "ring": "ring:N with N from 3",
    "mesh": "mesh:AxB or mesh:AxBxC with sizes from 2",
    "torus": "torus:AxB or torus:AxBxC with sizes from 2",
    "hypercube": "hypercube:D with D from 1",
}
_SIZES = re.compile(r"[0-9]{1,5}(x[0-9]{1,5}){0,2}")
#: More than any cluster has nodes.
_MOST_RANKS = 100_000


class Shape(msgspec.Struct, frozen=True):
    """A planned topology, such as ``torus:4x2``."""

    kind: Kind
    #: Ranks in every dimension; of a hypercube the number of its dimensions.
    sizes: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind}:{'x'.join(map(str, self.sizes))}"

    @property
    def extents(self) -> tuple[int, ...]:
        """Ranks in every dimension."""
        return (2,) * self.sizes[0] if self.kind == "hypercube" else self.sizes

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return math.prod(self.extents)

    @property
    def has_odd_rings(self) -> bool:
        """Whether a way round in it has an odd length."""
        return self.kind in ("ring", "torus") and any(extent > 2 and extent % 2 for extent in self.extents)

    def edges(self) -> list[tuple[int, int]]:
        """Return the pairs of ranks that are neighbours, each pair once, the lower rank first."""
        found: dict[tuple[int, int], None] = {}
        strides = [math.prod(self.extents[place + 1 :]) for place in range(len(self.extents))]
        for rank, position in enumerate(itertools.product(*map(range, self.extents))):
            for at, extent, stride in zip(position, self.extents, strides, strict=True):
                if at + 1 < extent:
                    found[rank, rank + stride] = None
                elif self.kind in ("ring", "torus") and extent > 2:
                    found[rank - at * stride, rank] = None
        return list(found)


def parse(text: str) -> Shape:
    """Return the shape that a user writes, such as ``torus:4x2``.

    Raises
    ------
    UsageError
        It is none; says how shapes are written.
    """
    name, _, sizes = text.partition(":")
    if name not in KINDS:
        forms = ", ".join(FORMS.values())
        raise UsageError(f"{printable(text, 60)!r} is not a shape{nearest(name, KINDS)} (allowed: {forms})")
    kind: Kind = name
    numbers = tuple(int(word) for word in sizes.split("x")) if _SIZES.fullmatch(sizes) else ()
    if not _is_shape(kind, numbers):
        raise UsageError(f"{printable(text, 60)!r} is no {kind}: write {FORMS[kind]}")
    shape = Shape(kind, numbers)
    if (kind == "hypercube" and numbers[0] > 16) or shape.ranks > _MOST_RANKS:
        raise UsageError(f"{printable(text, 60)!r} has more than {_MOST_RANKS} ranks")
    return shape


def _is_shape(kind: Kind, sizes: tuple[int, ...]) -> bool:
    if kind == "ring":
        return len(sizes) == 1 and sizes[0] >= 3
    if kind == "hypercube":
        return len(sizes) == 1 and sizes[0] >= 1
    return len(sizes) >= 2 and min(sizes) >= 2


def of_kind(kind: Kind, most: int) -> Iterator[list[Shape]]:
    """Yield the shapes of a kind with at most so many ranks: those of one size together, the largest size first.

    The longest dimension comes first, and of one size those come first whose longest dimension is the shortest. A torus
    has at least three ranks in its longest dimension; with two it would be a mesh.
    """
    for ranks in range(most, 1, -1):
        found = sorted(_of_size(kind, ranks), key=lambda shape: shape.sizes)
        if found:
            yield found


def _of_size(kind: Kind, ranks: int) -> list[Shape]:
    if kind == "ring":
        return [Shape(kind, (ranks,))] if ranks >= 3 else []
    if kind == "hypercube":
        dimensions = ranks.bit_length() - 1
        return [Shape(kind, (dimensions,))] if ranks == 1 << dimensions else []
    least = 3 if kind == "torus" else 2
    return [Shape(kind, sizes) for sizes in _factors(ranks) if sizes[0] >= least]


def _factors(number: int) -> Iterator[tuple[int, ...]]:
    """Yield the two or three factors from 2 whose product it is, the largest first."""
    for last in range(2, math.isqrt(number) + 1):
        rest, remainder = divmod(number, last)
        if remainder:
            continue
        yield (rest, last)
        for middle in range(last, math.isqrt(rest) + 1):
            if rest % middle == 0:
                yield (rest // middle, middle, last)
