"""Which message sizes to measure: named ladders, and sizes added where the curve bends.  Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wulf.base.errors import UsageError
from wulf.base.records import Operation
from wulf.base.text import choices

#: The ladder that grows where the curve bends.
ADAPTIVE = "adaptive"
KIB = 1024
MIB = 1024 * KIB

#: Largest size of the adaptive ladder unless told otherwise [B].
ADAPTIVE_MAX = MIB


def _powers_of_two(first: int, last: int) -> list[int]:
    return [1 << k for k in range(first.bit_length() - 1, last.bit_length()) if 1 << k <= last]


#: Named ladders of the field. Sizes in bytes.
#: ``imb``: Intel MPI Benchmarks; ``rfc2544``: Ethernet frame sizes of RFC 2544, section 9.1;
#: ``short`` and ``long``: the ranges that mpptest is used with (Barton, NRC ERB-1102).
NAMED: dict[str, list[int]] = {
    "imb": [0, *_powers_of_two(1, 4 * MIB)],
    "rfc2544": [64, 128, 256, 512, 1024, 1280, 1518],
    "short": [0, 4, *range(64, KIB + 1, 64)],
    "long": list(range(256 * KIB, MIB + 1, 32 * KIB)),
}
NAMES = (ADAPTIVE, *NAMED)


def base_sizes(ladder: str, max_size: int | None = None) -> list[int]:
    """Sizes a run begins with.

    Parameters
    ----------
    ladder
        One of `NAMES`. The adaptive ladder begins with 0 and every power of two n with n − 1 and n + 1.
    max_size
        Largest size [B]; None takes the ladder's own end.

    Returns
    -------
    list of int
        Ascending, without repetition [B].
    """
    if ladder == ADAPTIVE:
        end = ADAPTIVE_MAX if max_size is None else max_size
        around = (p + d for p in _powers_of_two(1, end) for d in (-1, 0, 1))
        return sorted({0, end} | {size for size in around if 0 <= size <= end})
    if ladder not in NAMED:
        raise UsageError(f"--ladder {ladder!r} does not exist{choices(ladder, NAMES)}")
    sizes = [size for size in NAMED[ladder] if max_size is None or size <= max_size]
    if not sizes:
        raise UsageError(f"--max-size {max_size} leaves nothing of the ladder {ladder!r}")
    return sizes


def ever_fewer(sizes: Sequence[int]) -> list[list[int]]:
    """Return the sizes, then fewer: of those between the ends the powers of two, then the powers of four.

    The ends stay: a latency and a bandwidth can still be told.
    """
    ends = {*sizes[:1], *sizes[-1:]}
    found = [list(sizes)]
    for bits in (1, 2):
        fewer = [size for size in sizes if size in ends or _is_power(size, bits)]
        if len(fewer) < len(found[-1]):
            found.append(fewer)
    return found


def _is_power(size: int, bits: int) -> bool:
    """Whether a size is a power of two, or of four for two `bits`."""
    return size > 0 and size & (size - 1) == 0 and (size.bit_length() - 1) % bits == 0


def interpolation_miss(sizes: Sequence[int], times: Sequence[float]) -> float:
    """How far the middle one of three points is from the log-linear interpolation of its neighbours.

    Time is interpolated linearly in log(size + 1) and log(time), in which both a constant and a
    proportional time are straight lines, so that only bends and steps are missed.

    Returns
    -------
    float
        Relative miss (0.02 = 2 %).
    """
    low, middle, high = (math.log(size + 1) for size in sizes)
    first, measured, last = (math.log(time) for time in times)
    expected = first + (last - first) * (middle - low) / (high - low)
    return abs(math.expm1(measured - expected))


def refine(
    times: Mapping[int, float],
    noise: Mapping[int, float],
    tolerance: float = 0.02,
    gap: int = 1,
) -> list[int]:
    """Sizes to add by bisection where interpolation misses by more than the tolerance.

    Parameters
    ----------
    times
        Size [B] → time [s].
    noise
        Size [B] → relative standard error of that time. A miss inside three times the combined
        error is noise and adds nothing.
    tolerance
        Relative miss that is accepted.
    gap
        Neighbours this close [B] are not divided further; what is added is a multiple of it.

    Returns
    -------
    list of int
        New sizes, ascending; empty when the curve is known well enough.
    """
    sizes = sorted(times)
    added = set()
    for index in range(len(sizes) - 1):
        low, high = sizes[index : index + 2]
        if high - low > gap and _is_bent(sizes, index, times, noise, tolerance):
            added.add(_middle(low, high, gap))
    return sorted(added)


def _is_bent(
    sizes: Sequence[int],
    index: int,
    times: Mapping[int, float],
    noise: Mapping[int, float],
    tolerance: float,
) -> bool:
    """Whether the interval after `index` holds a step or bend: no trio that judges it fits a line."""
    trios = _trios(sizes, index)
    return bool(trios) and all(_misses(trio, times, noise, tolerance) for trio in trios)


def _trios(sizes: Sequence[int], index: int) -> list[tuple[int, int, int]]:
    """Return the two trios that judge the interval after `index`: with a size before it, and with one after.

    A step or bend inside the interval shows in both; one outside shows in one of them at most. The third
    size is the nearest that is at least half as far away as the interval is wide (in the logarithm),
    because a size close by says nothing about the slope.
    """
    low, high = sizes[index : index + 2]
    reach = math.sqrt((high + 1) / (low + 1))
    before = next((size for size in reversed(sizes[:index]) if (low + 1) / (size + 1) >= reach), None)
    after = next((size for size in sizes[index + 2 :] if (size + 1) / (high + 1) >= reach), None)
    trios = []
    if before is not None:
        trios.append((before, low, high))
    if after is not None:
        trios.append((low, high, after))
    return trios


def _misses(
    trio: tuple[int, int, int], times: Mapping[int, float], noise: Mapping[int, float], tolerance: float
) -> bool:
    error = math.sqrt(sum(noise.get(size, 0.0) ** 2 for size in trio))
    return interpolation_miss(trio, [times[size] for size in trio]) > max(tolerance, 3 * error)


def _middle(low: int, high: int, step: int) -> int:
    """Return the multiple of `step` that is nearest to the middle in log(size + 1), strictly between the two."""
    middle = round((math.sqrt((low + 1) * (high + 1)) - 1) / step) * step
    return min(max(middle, (low // step + 1) * step), ((high - 1) // step) * step)


def sizes_of(operation: Operation, sizes: Sequence[int]) -> list[int]:
    """Return those of the sizes that an operation can do; its smallest where it can do none of them."""
    able = within(sizes, operation.min_size_bytes, operation.max_size_bytes)
    return [size for size in able if size % operation.size_step_bytes == 0] or [operation.min_size_bytes]


def within(sizes: Sequence[int], smallest: int, largest: int) -> list[int]:
    """Sizes that an operation can do."""
    return [size for size in sizes if smallest <= size <= largest]
