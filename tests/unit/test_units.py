import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wulf.base import units
from wulf.base.errors import UsageError
from wulf.base.records import Estimate


def estimate(value, low, high, unit="s"):
    return Estimate(value=value, low=low, high=high, confidence=0.95, unit=unit, n=6, method="test")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1500", 1500),
        ("64KiB", 65536),
        ("64k", 65536),
        ("1 MiB", 1 << 20),
        ("1.5KiB", 1536),
        ("1MB", 10**6),
    ],
)
def test_sizes(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("5m", 300), ("90s", 90), ("2ms", 0.002), ("1h", 3600), ("7", 7)),
        *(("2m30s", 150), ("1h30m", 5400), ("1h 30min 5s", 5405), (" 1.5h30m ", 7200), ("1s500ms", 1.5)),
    ],
)
def test_durations(text, seconds):
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_size, "1.5"),
        (units.parse_size, "10 apples"),
        (units.parse_size, ""),
        (units.parse_size, "-5"),
        (units.parse_duration, "0s"),
        (units.parse_duration, "5 fortnights"),
        (units.parse_duration, "soon"),
        (units.parse_duration, "2m30"),
        (units.parse_duration, "30s2m"),
        (units.parse_duration, "1m1m"),
        (units.parse_duration, "1m1min"),
        (units.parse_duration, "2m-30s"),
        (units.parse_duration, "x2m30s"),
        (units.parse_duration, "0m0s"),
        (units.parse_duration, "1h30fortnights"),
        (units.parse_percent, "2"),
        (units.parse_percent, "0%"),
        (units.parse_percent, "100%"),
    ],
)
def test_errors_name_the_text(parse, text):
    with pytest.raises(UsageError) as error:
        parse(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "1" + "0" * 306])
@pytest.mark.parametrize("unit", ["", "h", "h30m", "GiB", "%", "gbit", "x" * 5000])
def test_numbers_beyond_all_sense_are_refused_in_short(number, unit):
    for parse in (units.parse_size, units.parse_duration, units.parse_percent):
        try:
            assert math.isfinite(parse(number + unit))
        except UsageError as error:
            assert len(str(error)) < 300


@given(st.integers(0, 1 << 40))
def test_sizes_are_shown_exactly(size):
    assert units.parse_size(units.format_bytes(size)) == size


@given(st.text(max_size=20) | st.from_regex(r"([0-9]{1,3}(\.[0-9])?[hmsun%]{0,2} ?){1,4}", fullmatch=True))
def test_parsers_only_ever_refuse(text):
    for parse in (units.parse_size, units.parse_duration, units.parse_percent):
        with contextlib.suppress(UsageError):
            parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (estimate(11.92e-6, 11.85e-6, 11.99e-6), "11.92 ± 0.07 µs"),
        (estimate(9.996e-6, 9.5e-6, 10.6e-6), "10.0 ± 0.6 µs"),
        (estimate(1.2e-3, None, None), "1.20 ms (no interval)"),
        (estimate(117.3e6, 116e6, 118.5e6, "B/s"), "117.3 ± 1.3 MB/s"),
        (estimate(1.003, 0.99, 1.016, "ratio"), "1.003 ± 0.013"),
        (estimate(8.5e-9, 8.4e-9, 8.6e-9, "s/B"), "8.50 ± 0.10 µs/kB"),
        (estimate(123456e-9, 100e-6, 146912e-9), "120 ± 20 µs"),
        (estimate(5e-6, 5e-6, 5e-6), "5.00000 ± 0.00001 µs"),
        (estimate(-61.6e-12, None, None, "s/B"), "−61.6 ns/kB (no interval)"),
        (estimate(-8.5e-9, -8.6e-9, -8.4e-9, "s/B"), "−8.50 ± 0.10 µs/kB"),
        (estimate(3678794, 205640, 13214688), "3700000 s (200000 s to 13200000 s)"),
        (estimate(3e-6, -1e-6, 8e-6), "3.0 µs (−1.0 µs to 8.0 µs)"),
        (estimate(1e-6, 0, 2e-6), "1.0 ± 1.0 µs"),
    ],
)
def test_estimates_show_no_more_digits_than_the_interval_supports(value, text):
    assert units.format_estimate(value) == text


@given(st.floats(1e-9, 1e3), st.floats(1e-4, 0.5))
def test_shown_estimate_contains_the_value(value, relative):
    shown = units.format_estimate(estimate(value, value * (1 - relative), value * (1 + relative)))
    number, _, rest = shown.partition(" ± ")
    half, unit = rest.split(" ")
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert abs(float(number) * scale - value) <= 0.51 * float(half) * scale + 1e-15
    assert float(half) * scale == pytest.approx(value * relative, rel=0.5)


def test_times_and_bandwidths():
    assert units.format_time(11.9e-6) == "11.9 µs"
    assert units.format_time(0) == "0 ns"
    assert units.format_time(300) == "300 s"
    assert units.format_bandwidth(1.25e9) == "1.25 GB/s"
    assert units.format_bytes(65537) == "65537 B"


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.9, 0.892, 0.908, "−10.0 % (−10.8 to −9.2)"),
        (0.5231, 0.50, 0.54, "−48 % (−50 to −46)"),
        (1.41, 1.38, 1.44, "+41 % (+38 to +44)"),
        (7.0, 3.0, 11.0, "+600 % (+200 to +1000)"),
        (1.5, None, None, "+50 % (no interval)"),
        (0.98, 0.5, float("inf"), "−2.0 % (no interval)"),
        (1.0, 1.0, 1.0, "0 % (0 to 0)"),
    ],
)
def test_changes_show_their_interval(value, low, high, text):
    estimate = Estimate(value=value, low=low, high=high, confidence=0.95, unit="ratio", n=8, method="test")
    assert units.format_change(estimate) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.634, 0.582, 0.671, "63 % (58 to 67 %)"),
        (-0.021, -0.034, 0.004, "−2.1 % (−3.4 to 0.4 %)"),
        (0.99995, 0.9999, 1.0, "99.995 % (99.990 to 100.000 %)"),
        (0.634, None, None, "63 % (no interval)"),
    ],
)
def test_shares_of_a_whole_show_their_interval(value, low, high, text):
    estimate = Estimate(value=value, low=low, high=high, confidence=0.95, unit="ratio", n=8, method="test")
    assert units.format_portion(estimate) == text


def test_what_may_go_unseen_is_as_likely_either_way():
    assert units.format_unseen(0.2) == "between −20 % and +25 %"
    assert units.format_unseen(0.029) == "between −2.9 % and +3.0 %"


@pytest.mark.parametrize("share", [1.0, 1.2, math.nan, math.inf])
def test_where_no_decrease_would_be_shown_changes_of_any_size_may_go_unseen(share: float) -> None:
    assert units.format_unseen(share) == "of any size"
    assert units.format_changes(0.891, 0.908) == "−10.9 to −9.2 %"
    assert units.format_changes(1.08, 1.08) == "+8.0 %"


def test_sizes_are_ranges_of_what_was_measured():
    measured = [0, 1, 2, 4, 8, 16, 1024]
    assert units.format_sizes([0, 1, 2, 8, 16, 1024], measured) == "0 B to 2 B, 8 B to 1 KiB"
    assert units.format_sizes([4], measured) == "4 B"
    assert units.format_sizes([0, 2, 8, 1024], measured) == "0 B, 2 B, 8 B and 1 more size"
    assert units.format_sizes([], measured) == ""


def test_values_of_any_unit():
    assert units.format_value(47.92e-6, "s") == "47.9 µs"
    assert units.format_value(112.4e6, "B/s") == "112 MB/s"
    assert units.format_value(11.451, "GFLOPS") == "11.5 GFLOPS"
    assert units.format_value(0.5, "") == "0.500"


def test_a_column_has_one_unit_and_one_number_of_decimals():
    assert units.format_column([0.99e-3, 1.01e-3, 1.5e-3], "s", 0.03e-3) == (["0.99", "1.01", "1.50"], "ms")
    assert units.format_column([47.2e-6, float("nan")], "s", 0.3e-6) == (["47.2", "nan"], "µs")
    assert units.format_column([], "s", 1.0) == ([], "s")


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "text"),
    [
        (0.0021, 0.0019, 0.0025, "ratio", "0.21 % (0.19 to 0.25)"),
        (12.4, 8.1, 17.3, "1/s", "12 1/s (8 to 17)"),
        (0.0, 0.0, 3.07, "1/s", "0.0 1/s (0.0 to 3.1)"),
        (268.4, 167.4, 407.8, "1/s", "270 1/s (170 to 410)"),
        (0.0, 0.0, 0.0, "ratio", "0 % (0 to 0)"),
        (0.5, None, None, "ratio", "50.0 % (no interval)"),
    ],
)
def test_bounds_that_do_not_lie_evenly(value, low, high, unit, text):
    assert units.format_spread(estimate(value, low, high, unit)) == text
