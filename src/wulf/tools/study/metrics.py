"""Metrics of a study file: operations, commands, HPL, and mixes of jobs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from wulf.base import toml
from wulf.base.errors import UsageError
from wulf.base.text import nearest
from wulf.base.units import parse_duration, parse_size
from wulf.node.probe import ladder
from wulf.tools.study.record import OF_JOBS, StudyFactor, StudyJob, StudyLevel, StudyMetric, StudyProblem
from wulf.tools.study.sections import HplSection, MetricSection, StudyFile, Value, parsed, require_once

#: Sizes that a line takes.
FEWEST_POINTS = 3
#: What a metric is by → what that is called, the keys that it takes, and the keys of its short form.
_KINDS: Mapping[str, tuple[str, frozenset[str], frozenset[str]]] = {
    "op": ("an operation", frozenset({"sizes", "quantity", "line", "ranks"}), frozenset({"sizes"})),
    "command": (
        "a command",
        frozenset({"match", "unit", "better", "ranks", "energy", "takes"}),
        frozenset({"command"}),
    ),
    "hpl": ("HPL", frozenset({"takes"}), frozenset({"n"})),
    "job": ("a mix of jobs", frozenset({"gap", "takes"}), frozenset({"count"})),
}
#: Keys of every metric.
_ALWAYS = {"name", "short", *_KINDS}
#: Where a command names a factor; ``${NAME}`` is the shell's.
_PLACE = re.compile(r"(?<!\$)\{([A-Za-z][A-Za-z0-9_ -]*)\}")


def read_metric(
    document: toml.Document[StudyFile], number: int, said: MetricSection, *, short: bool
) -> StudyMetric:
    """Return a metric, in the short form where that is wanted."""
    path = f"metric[{number}]"
    given = [key for key in ("op", "command", "hpl", "job") if getattr(said, key)]
    if len(given) != 1:
        document.fail(
            path,
            f"metric {said.name!r} takes one of op, command, hpl, job; it has {', '.join(given) or 'none'}",
        )
    _require_known(document, path, said, given[0])
    takes_s = parsed(document, f"{path}.takes", parse_duration, said.takes) if said.takes else None
    if said.op:
        return _operation(document, path, said, short=short)
    if said.job:
        return _mix(document, path, said, takes_s, short=short)
    if said.hpl is not None:
        return _hpl(said, said.hpl, takes_s, short=short)
    if said.match:
        _require_group(document, f"{path}.match", said.match)
    elif said.unit:
        document.fail(f"{path}.unit", "unit is that of the number that match finds; the run time is in s")
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


def _require_known(document: toml.Document[StudyFile], path: str, said: MetricSection, kind: str) -> None:
    """Refuse keys that say something about another kind of metric: nothing would come of them."""
    what, keys, short = _KINDS[kind]
    for section, place, known in ((said, path, keys | _ALWAYS), (said.short, f"{path}.short", short)):
        for field in msgspec.structs.fields(section):
            key = field.name
            if key in known or getattr(section, key) == field.default:
                continue
            others = [name for name, *sets in _KINDS.values() if key in sets[section is said.short]]
            about = f"; {key} is about {' or '.join(others)}"
            gives = f": it gives {', '.join(OF_JOBS)}" if kind == "job" else ""
            document.fail(f"{place}.{key}", f"{what} has no {key}{gives}{about}")


def _mix(
    document: toml.Document[StudyFile],
    path: str,
    said: MetricSection,
    takes_s: float | None,
    *,
    short: bool,
) -> StudyMetric:
    require_once(document, f"{path}.job", [job.name for job in said.job])
    for number, job in enumerate(said.job):
        parsed(document, f"{path}.job[{number}].options", options_of, job.options)
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
        gap_s=parsed(document, f"{path}.gap", parse_duration, said.gap) if said.gap else 0.0,
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


def _sizes(document: toml.Document[StudyFile], path: str, said: str | list[Value]) -> list[int]:
    def parse(sizes: str | list[Value]) -> list[int]:
        if isinstance(sizes, str) and sizes not in ladder.NAMES:
            names = ", ".join(ladder.NAMES)
            raise UsageError(
                f"there is no ladder {sizes!r}{nearest(sizes, ladder.NAMES)}; there are: {names}; or a list of sizes"
            )
        if isinstance(sizes, str):
            return ladder.base_sizes(sizes)
        found = sorted({size if isinstance(size, int) else parse_size(size) for size in sizes})
        if found and found[0] < 0:
            raise UsageError(f"{found[0]} is not a size: 0 B or more")
        return found

    found: list[int] = parsed(document, path, parse, said)
    return found


def _require_group(document: toml.Document[StudyFile], path: str, regex: str) -> None:
    try:
        groups = re.compile(regex).groups
    except re.error as error:
        document.fail(path, f"it is not a regular expression: {error}")
    if groups != 1:
        document.fail(path, "one group (in parentheses) around the number")


def require_places(
    document: toml.Document[StudyFile], factors: Sequence[StudyFactor], metrics: Sequence[StudyMetric]
) -> None:
    """Refuse a command that names a factor which there is not, and a command of a factor that none names."""
    names = {factor.name for factor in factors}
    used: set[str] = set()
    for number, metric in enumerate(metrics):
        for key, text in _texts(metric).items():
            for name in _PLACE.findall(text):
                if name not in names:
                    document.fail(
                        f"metric[{number}].{key}",
                        f"{{{name}}}: there is no factor {name!r}{nearest(name, names)}; "
                        f"where it is none, write a space: '{{ {name} }}'",
                    )
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
