"""Which settings are tried together: balanced designs of many knobs, each row followed by its complement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from wulf.base.records import Values

#: Knob → the values of it that take part.
Levels = Mapping[str, Sequence[str]]
#: A pair of settings, measured one right after the other: what the first one sets the second does not.
Fold = tuple[Values, Values]


def screening(levels: Levels, rng: np.random.Generator) -> list[Fold]:
    """Return a design in which every knob is set in half of the trials, independently of all others.

    The columns of a Hadamard matrix are knobs (Plackett and Burman 1946, Biometrika 33, 305–325); every row is folded
    over, which frees the effects of single knobs from those of pairs (Box and Wilson 1951). Neighbours that differ
    in everything cancel a drift.

    Returns
    -------
    list
        As many pairs as the smallest matrix with a column for every knob has rows, in random order.
    """
    matrix = _hadamard(len(levels) + 1)
    order = len(matrix)
    columns = 1 + rng.permutation(order - 1)[: len(levels)]
    draws = {knob: _rotation(values, rng) for knob, values in levels.items()}
    folds = []
    for row in rng.permutation(order):
        signs = matrix[row, columns] * rng.choice((-1, 1))
        folds.append(_fold([knob for knob, sign in zip(levels, signs, strict=True) if sign > 0], draws))
    return folds


def factorial(levels: Levels, rng: np.random.Generator) -> Iterator[Fold]:
    """Yield pairs for few knobs without end: all combinations are equally frequent before any comes again."""
    draws = {knob: _rotation(values, rng) for knob, values in levels.items()}
    knobs = list(levels)
    half = 1 << max(len(knobs) - 1, 0)
    while True:
        for row in rng.permutation(half):
            chosen = [knob for bit, knob in enumerate(knobs) if row >> bit & 1]
            fold = _fold(chosen, draws)
            yield fold if rng.random() < 0.5 else (fold[1], fold[0])


def _hadamard(least: int) -> NDArray[np.int8]:
    """Return the smallest known Hadamard matrix of at least so many rows: doubled from 1, or from one of Paley's.

    Paley (1933), Journal of Mathematics and Physics 12, 311–320, for primes that are 3 modulo 4.
    """
    found = []
    for prime in (1, 11, 19, 23, 43, 59):
        small = np.ones((1, 1), dtype=np.int8) if prime == 1 else _paley(prime)
        doublings = max(math.ceil(math.log2(least / len(small))), 0)
        found.append(np.kron(scipy.linalg.hadamard(1 << doublings, dtype=np.int8), small))
    return min(found, key=len)


def _paley(prime: int) -> NDArray[np.int8]:
    squares = {number**2 % prime for number in range(1, prime)}
    characters = [0] + [1 if number in squares else -1 for number in range(1, prime)]
    matrix = np.ones((prime + 1, prime + 1), dtype=np.int8)
    matrix[1:, 1:] = scipy.linalg.circulant(characters) + np.eye(prime)
    matrix[1:, 0] = -1
    return matrix


def _fold(chosen: Sequence[str], draws: Mapping[str, Iterator[str]]) -> Fold:
    first = {knob: next(draw) for knob, draw in draws.items() if knob in chosen}
    second = {knob: next(draw) for knob, draw in draws.items() if knob not in chosen}
    return first, second


def _rotation(values: Sequence[str], rng: np.random.Generator) -> Iterator[str]:
    """Yield the values in random order, each once before any comes again."""
    while True:
        yield from (values[index] for index in rng.permutation(len(values)))
