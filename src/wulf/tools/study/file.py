"""Study files: TOML that says what is varied, what is measured, and how the levels are put together."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from wulf.base import catalogue, toml, user_files
from wulf.base.errors import ConfigError, UsageError
from wulf.base.records import Values
from wulf.base.text import count, is_interface, nearest
from wulf.base.units import parse_duration, parse_size
from wulf.node.change import steps
from wulf.node.probe import ladder
from wulf.tools.study import design as designs
from wulf.tools.study.record import (
    OF_JOBS,
    KnownStudy,
    StudyFactor,
    StudyJob,
    StudyLevel,
    StudyMetric,
    StudyPrice,
    StudyProblem,
    StudyPublished,
)

#: A level of a knob that leaves it as it is.
ORIGINAL = "original"
#: Sizes that a line takes.
FEWEST_POINTS = 3
#: Pairs that a level may name: those with and without a direct link, or what ``--pairs`` takes.
CABLED, SWITCHED = "cabled", "switched"
PAIRS = (CABLED, SWITCHED, "all", "ring")
_PAIR = re.compile(r"\s*[^\s:]+\s*:\s*[^\s:]+\s*$")
#: Where a command names a factor.
_PLACE = re.compile(r"\{([A-Za-z][A-Za-z0-9_ -]*)\}")
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_ -]*$", max_length=40)]
#: Figures of a metric are its name and a size; commands do not name it.
_MetricName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_, -]*$", max_length=40)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
_Value = str | int
#: Keys of a factor whose values are the levels.
_KINDS = ("mpi", "blas", "interface", "cluster", "pairs", "command", "ranks", "ranks_per_node")


class _Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has keys that are all known."""


class LevelSection(_Written, frozen=True, kw_only=True):
    """A level that makes several things different."""

    name: _Text
    set: dict[str, _Value] = {}
    mpi: str = ""
    blas: str = ""
    environment: dict[str, str] = {}
    interface: str = ""
    cluster: str = ""
    pairs: str = ""
    ranks: Annotated[int, msgspec.Meta(ge=2)] | None = None
    ranks_per_node: _Count | None = None
    command: str = ""
    build: str = ""


class FactorSection(_Written, frozen=True, kw_only=True):
    """A factor: values of one thing, or levels of several."""

    name: _Name
    about: str = ""
    #: The level that others are compared with; the first where it is not said.
    base: str = ""
    knob: str = ""
    values: list[_Value] = []
    mpi: list[_Text] = []
    blas: list[_Text] = []
    interface: list[_Text] = []
    cluster: list[_Text] = []
    pairs: list[_Text] = []
    command: list[_Text] = []
    ranks: list[Annotated[int, msgspec.Meta(ge=2)]] = []
    ranks_per_node: list[_Count] = []
    level: list[LevelSection] = []


class HplSection(_Written, frozen=True, kw_only=True):
    """A problem of HPL; the grid is as square as the ranks allow where it is not said."""

    n: Annotated[int, msgspec.Meta(ge=64)]
    nb: Annotated[int, msgspec.Meta(ge=1)] = 128
    grid: Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]*x[1-9][0-9]*$")] = ""
    program: str = ""


class ShortSection(_Written, frozen=True, kw_only=True):
    """What of a metric is less in the short form."""

    sizes: str | list[_Value] = ""
    n: int = 0
    command: str = ""
    #: Jobs of each kind in a mix.
    count: Annotated[int, msgspec.Meta(ge=0)] = 0


class JobSection(_Written, frozen=True, kw_only=True):
    """Jobs of a mix that are alike."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)]
    command: _Text
    count: _Count = 1
    options: str = ""


class MetricSection(_Written, frozen=True, kw_only=True):
    """A metric: an operation at sizes, a command, HPL, or a mix of jobs under Slurm."""

    name: _MetricName
    op: str = ""
    sizes: str | list[_Value] = ""
    quantity: Literal["time", "bandwidth"] = "time"
    line: bool = False
    command: str = ""
    match: str = ""
    unit: str = ""
    better: Literal["lower", "higher"] = "lower"
    ranks: Annotated[int, msgspec.Meta(ge=0)] = 0
    #: Of a command: the energy of its runs, too.
    energy: Literal["", "cpu", "node"] = ""
    hpl: HplSection | None = None
    job: list[JobSection] = []
    gap: str = ""
    takes: str = ""
    short: ShortSection = ShortSection()


class DesignSection(_Written, frozen=True, kw_only=True):
    """How levels are put together."""

    kind: Literal["full", "one at a time", "fractional"] = "full"
    replications: _Count = 8
    short_replications: _Count = 2
    #: Of a fractional design: how many combinations it has at most.
    runs: _Count | None = None
    sweeps: Annotated[int, msgspec.Meta(ge=3, le=1000)] = 12
    visit: str = "1ms"


class PublishedSection(_Written, frozen=True, kw_only=True):
    """Values that somebody has published: one of a metric, or one for each size."""

    metric: str
    levels: dict[str, _Value] = {}
    of: str = ""
    value: float | None = None
    sizes: list[int] = []
    values: list[float] = []
    unit: str = ""
    note: str = ""


class PriceSection(_Written, frozen=True, kw_only=True):
    """A price."""

    name: _Text
    price: Annotated[float, msgspec.Meta(gt=0)]


class StudyFile(_Written, frozen=True, kw_only=True):
    """A study as it is written."""

    title: _Text
    source: str = ""
    factor: list[FactorSection] = []
    metric: Annotated[list[MetricSection], msgspec.Meta(min_length=1)]
    design: DesignSection = DesignSection()
    published: list[PublishedSection] = []
    price: list[PriceSection] = []
    watts: Annotated[float, msgspec.Meta(gt=0)] | None = None


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
    factors = [_factor(document, number, one) for number, one in enumerate(said.factor)]
    _require_once(document, "factor", [factor.name for factor in factors])
    _require_apart(document, factors)
    metrics = [_metric(document, number, one, short=short) for number, one in enumerate(said.metric)]
    named = [name for metric in metrics for name in (metric.name, metric.energy_figure) if name]
    _require_once(document, "metric", named)
    _require_places(document, factors, metrics)
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
        round(_parsed(document, "design.visit", parse_duration, said.design.visit) * 1e6),
        document,
    )


def _design(
    document: toml.Document[StudyFile], factors: Sequence[StudyFactor], *, short: bool
) -> DesignSection:
    """Return the design, which combines the factors; in the short form with fewer replications."""
    design = document.value.design
    _parsed(
        document,
        "design.runs" if design.runs else "design.kind",
        lambda kind: designs.combinations(factors, kind, design.runs),
        design.kind,
    )
    if not short:
        return design
    return msgspec.structs.replace(design, replications=min(design.short_replications, design.replications))


def _parsed(document: toml.Document[StudyFile], path: str, parse: Any, text: Any) -> Any:
    try:
        return parse(text)
    except UsageError as error:
        document.fail(path, str(error))


def _require_once(document: toml.Document[StudyFile], kind: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            document.fail(f"{kind}[{number}].name", f"there is another {kind} {name!r}")


def _factor(document: toml.Document[StudyFile], number: int, said: FactorSection) -> StudyFactor:
    path = f"factor[{number}]"
    levels = list(_levels(document, path, said))
    if len(levels) < 2:
        document.fail(path, f"factor {said.name!r} takes two levels or more")
    names = [level.name for level in levels]
    for name, times in Counter(names).items():
        if times > 1:
            document.fail(path, f"factor {said.name!r} has the level {name!r} twice")
    if said.base and said.base not in names:
        document.fail(f"{path}.base", f"there is no level {said.base!r}; there are: {', '.join(names)}")
    first = said.base or names[0]
    ordered = sorted(levels, key=lambda level: level.name != first)
    return StudyFactor(name=said.name, about=said.about, levels=ordered)


def _levels(document: toml.Document[StudyFile], path: str, said: FactorSection) -> Iterator[StudyLevel]:
    given = [key for key in ("knob", "level", *_KINDS) if getattr(said, key)]
    if len(given) != 1:
        allowed = ", ".join(("knob and values", "level", *_KINDS))
        document.fail(
            path, f"factor {said.name!r} takes one of: {allowed}; it has {', '.join(given) or 'none'}"
        )
    (kind,) = given
    if said.values and kind != "knob":
        document.fail(f"{path}.values", "values are those of a knob")
    if kind == "knob":
        for value in said.values:
            text = str(value)
            settings = _settings(document, f"{path}.values", {said.knob: text}, f"{path}.knob")
            yield StudyLevel(name=text, set=settings)
    elif kind == "level":
        for number, level in enumerate(said.level):
            yield _level(document, f"{path}.level[{number}]", level)
    else:
        for value in getattr(said, kind):
            _require_form(document, f"{path}.{kind}", kind, value)
            yield StudyLevel(**{"name": str(value), kind: value})


def _require_form(document: toml.Document[StudyFile], path: str, kind: str, said: object) -> None:
    """Refuse what names no pairs or interface of any cluster."""
    if kind == "interface" and not is_interface(str(said)):
        document.fail(path, f"{said!r} is not the name of a network interface")
    if kind == "pairs":
        _require_pairs(document, path, str(said))


def _require_pairs(document: toml.Document[StudyFile], path: str, said: str) -> None:
    if said not in PAIRS and not all(_PAIR.match(item) for item in said.split(",")):
        document.fail(
            path,
            f"{said!r} is not one of {', '.join(PAIRS)}, or pairs like node01:node02{nearest(said, PAIRS)}",
        )


def _level(document: toml.Document[StudyFile], path: str, said: LevelSection) -> StudyLevel:
    settings = _settings(document, f"{path}.set", {key: str(value) for key, value in said.set.items()})
    others = {
        key: value
        for key in said.__struct_fields__
        if key not in ("name", "set") and (value := getattr(said, key))
    }
    for kind, value in others.items():
        _require_form(document, f"{path}.{kind}", kind, value)
    return StudyLevel(name=said.name, set=settings, **others)


def _settings(
    document: toml.Document[StudyFile], path: str, said: Mapping[str, str], named: str = ""
) -> Values:
    """Return settings whose knobs there are, without those that stay as they are.

    Parameters
    ----------
    named
        Where the knob is named, if not beside the value.
    """
    found: Values = {}
    for name, value in said.items():
        knob = _parsed(document, named or path, catalogue.knob, name)
        if value != ORIGINAL:
            _parsed(document, path, lambda text, knob=knob: steps.check(knob, text), value)
            found[knob.id] = value
    return found


def _require_apart(document: toml.Document[StudyFile], factors: Sequence[StudyFactor]) -> None:
    """Refuse two factors that set the same thing: their levels could not be put together."""
    owner: dict[str, str] = {}
    for number, factor in enumerate(factors):
        for thing in {thing for level in factor.levels for thing in _things(level)}:
            if thing in owner:
                document.fail(
                    f"factor[{number}]",
                    f"{factor.name!r} and {owner[thing]!r} both set {thing}: one factor must",
                )
            owner[thing] = factor.name


def _things(level: StudyLevel) -> Iterator[str]:
    yield from level.set
    yield from level.environment
    yield from (key for key in _KINDS if key != "command" and getattr(level, key))


def _metric(
    document: toml.Document[StudyFile], number: int, said: MetricSection, *, short: bool
) -> StudyMetric:
    path = f"metric[{number}]"
    given = [key for key in ("op", "command", "hpl", "job") if getattr(said, key)]
    if len(given) != 1:
        document.fail(
            path,
            f"metric {said.name!r} takes one of op, command, hpl, job; it has {', '.join(given) or 'none'}",
        )
    takes_s = _parsed(document, f"{path}.takes", parse_duration, said.takes) if said.takes else None
    if said.energy and not said.command:
        document.fail(f"{path}.energy", "energy is about a command")
    if said.op:
        return _operation(document, path, said, short=short)
    for key in ("sizes", "line"):
        if getattr(said, key):
            document.fail(f"{path}.{key}", f"{key} is about an operation (op)")
    if said.gap and not said.job:
        document.fail(f"{path}.gap", "gap is about a mix of jobs (job)")
    if said.job:
        return _mix(document, path, said, takes_s, short=short)
    if said.hpl is not None:
        return _hpl(said, said.hpl, takes_s, short=short)
    if said.match:
        _require_group(document, f"{path}.match", said.match)
    return StudyMetric(
        name=said.name,
        kind="command",
        unit=said.unit or ("" if said.match else "s"),
        better=said.better,
        command=said.short.command if short and said.short.command else said.command,
        ranks=said.ranks,
        match=said.match,
        energy=said.energy,
        takes_s=takes_s,
    )


def _mix(
    document: toml.Document[StudyFile],
    path: str,
    said: MetricSection,
    takes_s: float | None,
    *,
    short: bool,
) -> StudyMetric:
    for key in ("match", "unit", "ranks"):
        if getattr(said, key):
            document.fail(f"{path}.{key}", f"a mix of jobs has no {key}: it gives {', '.join(OF_JOBS)}")
    _require_once(document, f"{path}.job", [job.name for job in said.job])
    for number, job in enumerate(said.job):
        _parsed(document, f"{path}.job[{number}].options", options_of, job.options)
    most = said.short.count if short else 0
    return StudyMetric(
        name=said.name,
        kind="jobs",
        jobs=[
            StudyJob(
                name=job.name,
                command=job.command,
                count=min(most or job.count, job.count),
                options=job.options,
            )
            for job in said.job
        ],
        gap_s=_parsed(document, f"{path}.gap", parse_duration, said.gap) if said.gap else 0.0,
        takes_s=takes_s,
    )


def options_of(text: str) -> list[str]:
    """Return options of ``sbatch`` as a shell takes them apart; raises UsageError where it cannot."""
    try:
        options = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None
    if any(option.startswith(("--array", "-a")) for option in options):
        raise UsageError(f"{text!r}: no arrays: count says how many jobs there are")
    return options


def _hpl(said: MetricSection, hpl: HplSection, takes_s: float | None, *, short: bool) -> StudyMetric:
    less = short and bool(said.short.n)
    # A smaller problem is for fewer nodes, too.
    p, q = map(int, hpl.grid.split("x")) if hpl.grid and not less else (0, 0)
    n = said.short.n if less else hpl.n
    return StudyMetric(
        name=said.name,
        kind="hpl",
        unit="GFLOPS",
        better="higher",
        hpl=StudyProblem(n=n, nb=min(hpl.nb, n), p=p, q=q),
        program=hpl.program,
        takes_s=takes_s,
    )


def _operation(
    document: toml.Document[StudyFile], path: str, said: MetricSection, *, short: bool
) -> StudyMetric:
    sizes = said.short.sizes if short and said.short.sizes else said.sizes
    found = _sizes(document, f"{path}.sizes", sizes) if sizes else [0]
    if said.line and len(found) < FEWEST_POINTS and not short:
        document.fail(f"{path}.line", f"a line takes {FEWEST_POINTS} sizes or more")
    wide = said.quantity == "bandwidth"
    return StudyMetric(
        name=said.name,
        kind="operation",
        unit="B/s" if wide else "s",
        better="higher" if wide else "lower",
        op=said.op,
        sizes_bytes=found,
        bandwidth=wide,
        line=said.line and len(found) >= FEWEST_POINTS,
        ranks=said.ranks,
    )


def _sizes(document: toml.Document[StudyFile], path: str, said: str | list[_Value]) -> list[int]:
    def parse(sizes: str | list[_Value]) -> list[int]:
        if isinstance(sizes, str):
            return ladder.base_sizes(sizes)
        found = sorted({size if isinstance(size, int) else parse_size(size) for size in sizes})
        if found and found[0] < 0:
            raise UsageError(f"{found[0]} is not a size: 0 B or more")
        return found

    found: list[int] = _parsed(document, path, parse, said)
    return found


def _require_group(document: toml.Document[StudyFile], path: str, regex: str) -> None:
    try:
        groups = re.compile(regex).groups
    except re.error as error:
        document.fail(path, f"it is not a regular expression: {error}")
    if groups != 1:
        document.fail(path, "one group (in parentheses) around the number")


def _require_places(
    document: toml.Document[StudyFile], factors: Sequence[StudyFactor], metrics: Sequence[StudyMetric]
) -> None:
    """Refuse a command that names a factor which there is not, and a command of a factor that none names."""
    names = {factor.name for factor in factors}
    used: set[str] = set()
    for number, metric in enumerate(metrics):
        for key, text in _texts(metric).items():
            for name in _PLACE.findall(text):
                if name not in names:
                    document.fail(f"metric[{number}].{key}", f"{{{name}}}: there is no factor {name!r}")
                used.add(name)
    for number, factor in enumerate(factors):
        if any(level.command for level in factor.levels) and factor.name not in used:
            document.fail(
                f"factor[{number}]",
                f"no metric's command has {{{factor.name}}} in it, where this factor's commands go",
            )


def _texts(metric: StudyMetric) -> dict[str, str]:
    """Return what of a metric may name factors, by its key."""
    texts = {"command": metric.command}
    for place, job in enumerate(metric.jobs):
        texts |= {f"job[{place}].command": job.command, f"job[{place}].options": job.options}
    return texts


def named_in(metric: StudyMetric) -> set[str]:
    """Return the factors that a metric's commands name."""
    return {name for text in _texts(metric).values() for name in _PLACE.findall(text)}


def filled(command: str, levels: Mapping[str, StudyLevel]) -> str:
    """Return a command with what the levels put where it names their factors."""
    return _PLACE.sub(
        lambda found: levels[found[1]].command or levels[found[1]].name if found[1] in levels else found[0],
        command,
    )


def _published(
    document: toml.Document[StudyFile],
    number: int,
    said: PublishedSection,
    factors: Sequence[StudyFactor],
    metrics: Sequence[StudyMetric],
) -> Iterator[StudyPublished]:
    path = f"published[{number}]"
    names = {one.name for one in metrics if one.kind != "jobs"}
    names |= {figure for one in metrics for figure, _ in one.figures}
    if said.metric not in names:
        document.fail(f"{path}.metric", f"there is no metric {said.metric!r}")
    known = {factor.name: {level.name for level in factor.levels} for factor in factors}
    levels = {name: str(level) for name, level in said.levels.items()}
    for name, level in levels.items():
        if level not in known.get(name, ()):
            document.fail(f"{path}.levels", f"there is no level {level!r} of a factor {name!r}")
    if (said.value is None) == (not said.values):
        document.fail(path, "one of value, or sizes and values")
    if len(said.sizes) != len(said.values):
        document.fail(
            f"{path}.values", f"{count(len(said.values), 'value')} of {count(len(said.sizes), 'size')}"
        )
    factor = _UNITS.get(said.unit)
    if said.unit and factor is None:
        document.fail(f"{path}.unit", f"it is none of {', '.join(_UNITS)}")
    pairs = zip(said.sizes, said.values, strict=True) if said.values else [(0, said.value or 0.0)]
    for size, value in pairs:
        yield StudyPublished(
            figure=f"{said.metric} {size} B" if said.sizes else said.metric,
            levels=levels,
            of=said.of,
            value=value * (factor or 1.0),
            note=said.note,
        )


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
