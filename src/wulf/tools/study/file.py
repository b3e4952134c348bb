"""Study files: TOML that says what is varied, what is measured, and how the levels are put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from wulf.base import toml, user_files
from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import count, nearest
from wulf.base.units import parse_duration
from wulf.tools.study import design as designs
from wulf.tools.study.factors import read_factor, require_apart
from wulf.tools.study.metrics import read_metric, require_places
from wulf.tools.study.record import KnownStudy, StudyFactor, StudyMetric, StudyPrice, StudyPublished
from wulf.tools.study.sections import (
    DesignSection,
    PublishedSection,
    StudyFile,
    parsed,
    require_once,
)


class Written(NamedTuple):
    """A study as it was read."""

    name: str
    text: str
    title: str
    source: str
    factors: list[StudyFactor]
    metrics: list[StudyMetric]
    design: DesignSection
    published: list[StudyPublished]
    prices: list[StudyPrice]
    watts: float | None
    visit_us: int
    #: Where each thing stands, for what is refused later.
    document: toml.Document[StudyFile]


def known() -> list[KnownStudy]:
    """Return the studies that come with wulf, and those of the site and the user."""
    found = []
    for source in user_files.sources("studies"):
        written = read(source.text, source.name, source.id)
        own = "" if source.owner == "wulf" else source.name
        found.append(KnownStudy(name=source.id, title=written.title, source=written.source, file=own))
    return found


def named(name: str, *, short: bool = False) -> Written:
    """Return a study by the path of its file, or by its name.

    Raises
    ------
    ConfigError
        It cannot be read, or is not as it should be; names the file, the line and the key.
    UsageError
        There is none of this name.
    """
    path = Path(name)
    if path.suffix == ".toml" or "/" in name:
        try:
            return read(path.read_text(encoding="utf-8"), name, path.stem, short=short)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigError(f"{name}: {reason}") from None
    source = user_files.source("studies", name)
    if source is None:
        names = [one.id for one in user_files.sources("studies")]
        raise UsageError(f"there is no study {name!r}{nearest(name, names)}; there are: {', '.join(names)}")
    return read(source.text, source.name, source.id, short=short)


def read(text: str, origin: str, name: str, *, short: bool = False) -> Written:
    """Return a study from its text.

    Parameters
    ----------
    origin
        The file, for messages.
    short
        Whether the short form is wanted.

    Raises
    ------
    ConfigError
        It is not as it should be; names the file, the line and the key.
    """
    document = toml.read(text.encode(), origin, StudyFile)
    said = document.value
    factors = [read_factor(document, number, one) for number, one in enumerate(said.factor)]
    require_once(document, "factor", [factor.name for factor in factors])
    require_apart(document, factors)
    metrics = [read_metric(document, number, one, short=short) for number, one in enumerate(said.metric)]
    _require_figures_apart(document, metrics)
    require_places(document, factors, metrics)
    return Written(
        name,
        text,
        said.title,
        said.source,
        factors,
        metrics,
        _design(document, factors, short=short),
        [
            one
            for number, part in enumerate(said.published)
            for one in _published(document, number, part, factors, metrics)
        ],
        [StudyPrice(name=one.name, price=one.price) for one in said.price],
        said.watts,
        round(parsed(document, "design.visit", parse_duration, said.design.visit) * 1e6),
        document,
    )


def _require_figures_apart(document: toml.Document[StudyFile], metrics: Sequence[StudyMetric]) -> None:
    """Refuse a metric that is called as another, or as one of its figures: 'x energy', 'x 64 B'."""
    owner: dict[str, str] = {}
    for number, metric in enumerate(metrics):
        for name in dict.fromkeys((metric.name, *(figure for figure, _ in metric.figures))):
            if name not in owner:
                owner[name] = metric.name
                continue
            of = "" if owner[name] == name else f", a figure of metric {owner[name]!r}"
            document.fail(f"metric[{number}].name", f"there is another metric {name!r}{of}")


def _design(
    document: toml.Document[StudyFile], factors: Sequence[StudyFactor], *, short: bool
) -> DesignSection:
    """Return the design, which combines the factors; in the short form with fewer replications."""
    design = document.value.design
    parsed(
        document,
        "design.runs" if design.runs else "design.kind",
        lambda kind: designs.combinations(factors, kind, design.runs),
        design.kind,
    )
    if not short:
        return design
    return msgspec.structs.replace(design, replications=min(design.short_replications, design.replications))


def _published(
    document: toml.Document[StudyFile],
    number: int,
    said: PublishedSection,
    factors: Sequence[StudyFactor],
    metrics: Sequence[StudyMetric],
) -> Iterator[StudyPublished]:
    path = f"published[{number}]"
    names = {one.name: one for one in metrics if one.kind != "jobs"}
    names |= {figure: one for one in metrics for figure, _ in one.figures}
    if said.metric not in names:
        document.fail(
            f"{path}.metric",
            f"there is no metric {said.metric!r}{nearest(said.metric, names)}; there are: {', '.join(names)}",
        )
    metric = names[said.metric]
    levels = {name: str(level) for name, level in said.levels.items()}
    _require_levels(document, path, levels, factors)
    _require_values(document, path, said, metric)
    # The figure of an operation at one size has no size in its name.
    figures = {size: figure for figure, size in metric.figures} if metric.kind == "operation" else {}
    pairs = zip(said.sizes, said.values, strict=True) if said.values else [(0, said.value or 0.0)]
    for size, value in pairs:
        yield StudyPublished(
            figure=figures.get(size, f"{said.metric} {size} B") if said.sizes else said.metric,
            levels=levels,
            of=said.of,
            value=value * _UNITS.get(said.unit, 1.0),
            note=said.note,
        )


def _require_levels(
    document: toml.Document[StudyFile], path: str, levels: Mapping[str, str], factors: Sequence[StudyFactor]
) -> None:
    known = {factor.name: [level.name for level in factor.levels] for factor in factors}
    for name, level in levels.items():
        if name not in known:
            there = ", ".join(known) or "none"
            document.fail(
                f"{path}.levels", f"there is no factor {name!r}{nearest(name, known)}; there are: {there}"
            )
        if level not in known[name]:
            document.fail(
                f"{path}.levels",
                f"there is no level {level!r} of factor {name!r}; there are: {', '.join(known[name])}",
            )


def _require_values(
    document: toml.Document[StudyFile], path: str, said: PublishedSection, metric: StudyMetric
) -> None:
    if (said.value is None) == (not said.values):
        document.fail(path, "one of value, or sizes and values")
    if said.value is not None and said.metric not in {figure for figure, _ in metric.figures}:
        document.fail(f"{path}.value", f"{said.metric!r} is measured at several sizes: sizes and values")
    if len(said.sizes) != len(said.values):
        document.fail(
            f"{path}.values", f"{count(len(said.values), 'value')} of {count(len(said.sizes), 'size')}"
        )
    if said.unit and said.unit not in _UNITS:
        document.fail(f"{path}.unit", f"it is none of {', '.join(_UNITS)}")


#: What published values are in → the unit that figures have.
_UNITS: Mapping[str, float] = {
    "s": 1.0,
    "ms": 1e-3,
    "µs": 1e-6,
    "us": 1e-6,
    "GFLOPS": 1.0,
    "B/s": 1.0,
    "MB/s": 1e6,
}
