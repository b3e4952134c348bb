"""Published results, fitted again."""

import csv
from pathlib import Path

import pytest

from tests.unit.make_cells import estimate
from wulf.base.units import format_estimate
from wulf.stats.core import regression

TABLE = Path(__file__).parent / "latency_sales.csv"


def columns():
    with TABLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    sizes = [int(row["size"]) for row in rows]
    return sizes, {name: [float(row[name]) / 1e3 for row in rows] for name in rows[0] if name != "size"}


#: Column → α [µs] and 1/β [µs/kB] of the line through its first two values, worked out by hand.
LINES = {
    "linux_tcp": (273.835, 336.0),
    "aix_udp": (925.607, 615.0),
    "aix_tcp": (894.871, 636.0),
    "sp2_udp": (1735.390, 677.0),
    "sp2_tcp": (2977.304, 409.0),
}


@pytest.mark.parametrize("name", LINES)
def test_the_published_table_refits_to_its_line(name):
    sizes, times = columns()
    fit = regression.least_squares(sizes, times[name])
    alpha_us, per_kb = LINES[name]
    assert fit.r_squared == pytest.approx(1, abs=1e-9)
    assert fit.intercept.value * 1e6 == pytest.approx(alpha_us, abs=0.01)
    assert fit.slope.value * 1e9 == pytest.approx(per_kb, abs=0.01)
    robust = regression.theil_sen(sizes, times[name], scale=times[name])
    assert robust.intercept == pytest.approx(fit.intercept.value, rel=1e-5)
    assert robust.slope == pytest.approx(fit.slope.value, rel=1e-5)


def test_parameters_are_printed_with_units(capsys):
    sizes, times = columns()
    for name in LINES:
        fit = regression.least_squares(sizes, times[name])
        alpha, inverse_beta = estimate(fit.intercept, "s"), estimate(fit.slope, "s/B")
        print(f"{name}: α = {format_estimate(alpha)}, 1/β = {format_estimate(inverse_beta)}")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("linux_tcp: α = 273.835")
    assert all("µs" in line or "ms" in line for line in printed)
    assert all("/kB" in line for line in printed)


def test_with_the_printed_size_of_the_last_row_the_line_is_not_exact():
    sizes, times = columns()
    wrong = [*sizes[:-1], 1580]
    assert regression.least_squares(wrong, times["linux_tcp"]).r_squared < 0.9999
