"""Every page of `subjects.py` with figures of any size and intervals of any shape, in every form.

None raises, and none writes a value outside its own interval.
"""

from __future__ import annotations

import dataclasses
import math
import re
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit import subjects
from tests.unit.test_pages import every_form, terminal
from wulf.base.records import Estimate
from wulf.page import formats

#: Of figures that are tried at once; `make test-all` tries many, and shrinks what fails.
SEEDS = 3
#: Shares and chances stay what they are: no record can have others.
BOUNDED = re.compile(r"p_value|p_adjusted|confidence|share|portion|chance|pays|leads|alarm|budget|margin")
UNITS = {
    "ns": ("time", 1e-9), "µs": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0),
    "B/s": ("rate", 1.0), "kB/s": ("rate", 1e3), "MB/s": ("rate", 1e6), "GB/s": ("rate", 1e9),
    "GFLOPS": ("flops", 1.0), "TFLOPS": ("flops", 1e3),
    "B": ("bytes", 1.0), "KiB": ("bytes", 1024.0),
    "%": ("change", 0.01), "×": ("times", 1.0),
}  # fmt: skip
_NUMBER = r"([+−-]?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
_UNIT = rf"(?: ({'|'.join(sorted(map(re.escape, UNITS), key=len, reverse=True))}))?"
SPREAD = re.compile(rf"(?<![\w.]){_NUMBER}{_UNIT} \({_NUMBER}{_UNIT} to {_NUMBER}{_UNIT}\)")
PLUS_MINUS = re.compile(rf"(?<![\w.]){_NUMBER} ± {_NUMBER}")


def magnitude(random: Random) -> float:
    return 10.0 ** random.uniform(-9, 9)


def shaped(one: Estimate, random: Random) -> Estimate:
    """Return an estimate of any size with an interval of any shape."""
    value = random.choice([one.value, magnitude(random), 0.0])
    side = value or 1.0
    low, high, n = random.choice(
        [
            (None, None, 1),
            (value, value, one.n),
            (value * (1 - random.random()), value + side * magnitude(random), one.n),
            (value * magnitude(random) * 1e-9, value * (1 + magnitude(random)), one.n),
            (value * random.random(), value * (1 + 3 * random.random()), one.n),
            (0.0, value, one.n),
            (value, math.inf, 2),
            (value * 0.97, value * 1.04, one.n),
        ]
    )
    return msgspec.structs.replace(one, value=value, low=low, high=high, n=n)


def extreme(value: Any, random: Random, name: str = "") -> Any:
    """Return records with other figures, all that is said of names and words being as it was."""
    if isinstance(value, msgspec.Struct):
        fields = {one: extreme(getattr(value, one), random, one) for one in value.__struct_fields__}
        return shaped(value, random) if isinstance(value, Estimate) else type(value)(**fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value,
            **{
                one.name: extreme(getattr(value, one.name), random, one.name)
                for one in dataclasses.fields(value)
                if one.init
            },
        )
    if isinstance(value, dict):
        return {key: extreme(one, random, name) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(extreme(one, random, name) for one in value)
    if isinstance(value, float) and value > 0 and not BOUNDED.search(name):
        return random.choice([value, value, value, magnitude(random), 1.0])
    return value


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def amount(text: str, unit: str | None, of: str | None) -> float:
    """Return what is written, in the unit of the value; a multiple among changes is one."""
    kind, scale = UNITS.get(unit or of or "", ("", 1.0))
    if kind == "times":
        return number(text) - 1
    return number(text) * scale


def outside(text: str) -> list[str]:
    """Return all that is written with a value outside of its interval, or as nothing ± much."""
    wrong = []
    for found in SPREAD.finditer(text):
        first, unit, low, low_unit, high, high_unit = found.groups()
        change = unit in ("%", "×") or "%" in (low_unit, high_unit)
        of = "%" if change else unit
        value = amount(first, unit, of)
        slack = 1e-9 * max(abs(value), 1e-3)
        if not amount(low, low_unit, of) - slack <= value <= amount(high, high_unit, of) + slack:
            wrong.append(found[0])
    wrong += [
        found[0] for found in PLUS_MINUS.finditer(text) if number(found[1]) == 0 and number(found[2]) >= 100
    ]
    return wrong


@pytest.mark.parametrize(("name", "place"), subjects.CASES)
def test_any_figure_is_written_within_its_interval(name: str, place: int) -> None:
    for seed in range(SEEDS):
        page = subjects.page(name, extreme(tuple(subjects.sample(name, place)), Random(seed)))
        assert outside(terminal(page, 120, boundless=True)) == []
        assert all(write(page) for write in (formats.markdown, formats.latex, formats.csv))


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "place"), subjects.CASES)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=True))
def test_any_of_many_figures_is_written_within_its_interval(name: str, place: int, random: Random) -> None:
    page = subjects.page(name, extreme(tuple(subjects.sample(name, place)), random))
    assert outside(terminal(page, 120, boundless=True)) == []
    assert all(every_form(page).values())


@pytest.mark.parametrize(
    "text",
    ["8.2 µs (9.1 µs to 4.0 ms)", "−12.3 % (−11.1 to −11.5)", "0 ± 4000", "0.21 % (0.19 to 0.20)"],
)
def test_what_is_outside_is_seen(text: str) -> None:
    assert outside(f"it takes {text} here") == [text.rpartition(" s")[0] or text]


@pytest.mark.parametrize(
    "text", ["8.2 µs (7.6 µs to 4.00 ms)", "−57 % (−100 to 350 ×)", "11.92 ± 0.07 µs", "63 % (58 to 67 %)"]
)
def test_what_is_inside_is_not(text: str) -> None:
    assert outside(f"it takes {text} here") == []
