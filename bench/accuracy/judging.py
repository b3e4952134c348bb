"""Predicted against measured, of what was stored."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from bench.accuracy import calibrating
from bench.accuracy.launching import Launch
from bench.accuracy.networks import BASE, DELAYED, SAID
from bench.common import Figure
from wulf.base import store
from wulf.base.records import Estimate, Predicted, Prediction
from wulf.base.text import count
from wulf.node.replay import asking, predicting
from wulf.stats.core import intervals

INSIDE, ERROR = 0.93, 0.03
#: A launch in so much of whose time some process waited for a processor was disturbed: it is shown, and counts.
DISTURBED = 0.1

LAUNCHES, PINGS = "launches.jsonl", "pings.jsonl"


class Ping(msgspec.Struct, frozen=True, kw_only=True):
    """What pings say of a network."""

    round: int
    network: str
    one_way_s: float


class Measured(msgspec.Struct, frozen=True):
    """All that a directory holds."""

    directory: Path
    launches: list[Launch]
    runs: dict[str, store.Run]
    pings: list[Ping]

    def of(self, program: str, network: str) -> list[Launch]:
        return [one for one in self.launches if (one.program, one.network) == (program, network)]

    @property
    def programs(self) -> list[str]:
        return list(dict.fromkeys(one.program for one in self.launches))

    @property
    def changed(self) -> list[str]:
        """Networks but the one as it is."""
        return [name for name in self.runs if name != BASE]

    @property
    def said(self) -> dict[str, str]:
        """Changed network → the same as a change of the calibrated one, where one can say it."""
        found = {network: how for network, how in SAID.items() if network in self.changed}
        one_way = {
            network: statistics.median(one.one_way_s for one in self.pings if one.network == network)
            for network in {one.network for one in self.pings}
        }
        if {BASE, DELAYED} <= one_way.keys():
            found[DELAYED] = f"latency=+{1e6 * (one_way[DELAYED] - one_way[BASE]):.1f}us"
        return found


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction beside its measurement."""

    program: str
    how: str
    predicted: Predicted
    launches: list[Launch]

    @property
    def times(self) -> list[float]:
        return [one.time_s for one in self.launches]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def error(self) -> float:
        """Predicted ÷ measured, less one."""
        return self.predicted.time.value / self.median - 1

    @property
    def own_noise(self) -> float:
        """How far the median of these launches may be from that of many: half its 95 % interval, relative."""
        half = intervals.median(self.times).half_width_ratio
        return float("nan") if half is None else half

    @property
    def median_inside(self) -> bool:
        """Whether the measured median's interval meets that of the prediction."""
        far = 0.0 if np.isnan(self.own_noise) else self.own_noise * self.median
        low, high = _bounds(self.predicted.time)
        return low <= self.median + far and self.median - far <= high

    @property
    def launches_inside(self) -> int:
        low, high = _bounds(self.predicted.launch or self.predicted.time)
        return sum(low <= time <= high for time in self.times)


def _bounds(one: Estimate) -> tuple[float, float]:
    return one.low or one.value, one.high or one.value


def load(directory: Path) -> Measured:
    """Read what was measured."""
    launches = msgspec.json.Decoder(Launch).decode_lines((directory / LAUNCHES).read_bytes())
    # Data that is older than the pings has none.
    said = (directory / PINGS).read_bytes() if (directory / PINGS).exists() else b""
    pings = msgspec.json.Decoder(Ping).decode_lines(said)
    paths: dict[str, list[Path]] = {}
    for path in sorted((directory / "runs").iterdir(), key=lambda one: int(one.name.rpartition("-")[2])):
        paths.setdefault(path.name.rpartition("-")[0], []).append(path)
    runs = {name: calibrating.joined(some, directory / "joined" / name) for name, some in paths.items()}
    return Measured(directory, launches, runs, pings)


def predict(measured: Measured, program: str, what_if: Sequence[str]) -> Prediction:
    """Predict from all traces of a program on the network as it is."""
    traces = [measured.directory / one.trace for one in measured.of(program, BASE)]
    request = asking.PredictRequest(
        source=traces[0],
        again=traces[1:],
        run=measured.runs[BASE],
        what_if=",".join(what_if) or None,
        find_run=measured.runs.__getitem__,
    )
    return predicting.predict(request, lambda _: None)


def rows(measured: Measured) -> Iterator[tuple[Row, bool]]:
    """Yield predictions beside measurements, and whether the changed network was calibrated, too."""
    said = measured.said
    for program in measured.programs:
        found = predict(measured, program, [*(f"@{name}" for name in measured.changed), *said.values()])
        for network, one in zip([*measured.changed, *said], found.scenarios, strict=True):
            row = Row(program=program, how=one.name, predicted=one, launches=measured.of(program, network))
            yield row, one.name.startswith("@")


def as_it_is(measured: Measured) -> Iterator[tuple[Row, Launch]]:
    """Yield for each trace what the model alone says of that very launch."""
    for program in measured.programs:
        for launch in measured.of(program, BASE):
            request = asking.PredictRequest(
                source=measured.directory / launch.trace, run=measured.runs[BASE], what_if="bandwidth=x1"
            )
            base = predicting.predict(request, lambda _: None).base
            yield Row(program=program, how="as it is", predicted=base, launches=[launch]), launch


def judged(found: Sequence[Row], label: str) -> list[Figure]:
    """Return how many lie outside, and the median error."""
    if not found:
        return []
    launches = sum(len(one.times) for one in found)
    outside = {
        "launches-outside": 1 - sum(one.launches_inside for one in found) / launches,
        "medians-outside": 1 - sum(one.median_inside for one in found) / len(found),
    }
    error = statistics.median(abs(one.error) for one in found)
    return [
        *(Figure(name=f"{name}{label}", value=value, goal=1 - INSIDE) for name, value in outside.items()),
        Figure(name=f"median-error{label}", value=error, goal=ERROR),
    ]


def apart(found: Sequence[Row]) -> Iterator[str]:
    """Say how launches on a calm machine are predicted, and how disturbed ones: a model knows of no third program."""
    for name, is_disturbed in (("calm", False), ("disturbed", True)):
        parts = [
            msgspec.structs.replace(row, launches=some)
            for row in found
            if (some := [one for one in row.launches if (one.waited > DISTURBED) == is_disturbed])
        ]
        if not parts:
            continue
        launches, inside = sum(len(one.launches) for one in parts), sum(one.launches_inside for one in parts)
        error = statistics.median(abs(one.error) for one in parts)
        noise = [one.own_noise for one in parts if not np.isnan(one.own_noise)]
        own = f"{statistics.median(noise):.1%}" if noise else "not known"
        yield (
            f"  {name}: {inside} of {count(launches, 'launch', 'launches')} inside ({inside / launches:.1%}), median "
            f"error {error:.1%}, own noise {own}"
        )


def line(row: Row) -> str:
    """Return a line of the table."""
    low, high = _bounds(row.predicted.time)
    one = row.predicted.launch
    launch = (
        f", a launch {1e3 * (one.low or 0):.1f} to {1e3 * (one.high or 0):.1f}" if one is not None else ""
    )
    disturbed = sum(one.waited > DISTURBED for one in row.launches)
    noise = "" if np.isnan(row.own_noise) else f" ± {row.own_noise:.1%}"
    return (
        f"  {row.program:10s} {row.how:15s} predicted {1e3 * row.predicted.time.value:7.1f} ms "
        f"({1e3 * low:.1f} to {1e3 * high:.1f}{launch}); measured {1e3 * row.median:7.1f}"
        f"{noise} ({1e3 * min(row.times):.1f} to {1e3 * max(row.times):.1f}): {row.error:+.1%}, "
        f"{row.launches_inside} of {len(row.times)} launches, median {'inside' if row.median_inside else 'OUTSIDE'}"
        + (f"; {disturbed} disturbed" if disturbed else "")
    )
