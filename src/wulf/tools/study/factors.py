"""Factors of a study file: the levels of each, and what they set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from wulf.base import catalogue, toml
from wulf.base.records import Values
from wulf.base.text import is_interface, nearest
from wulf.node.change import steps
from wulf.tools.study.record import StudyFactor, StudyLevel
from wulf.tools.study.sections import FactorSection, LevelSection, StudyFile, parsed

#: A level of a knob that leaves it as it is.
ORIGINAL = "original"
#: Pairs that a level may name: those with and without a direct link, or what ``--pairs`` takes.
CABLED, SWITCHED = "cabled", "switched"
PAIRS = (CABLED, SWITCHED, "all", "ring")
_PAIR = re.compile(r"\s*[^\s:]+\s*:\s*[^\s:]+\s*$")
#: Keys of a factor whose values are the levels.
_KINDS = ("mpi", "blas", "interface", "cluster", "pairs", "command", "ranks", "ranks_per_node")


def read_factor(document: toml.Document[StudyFile], number: int, said: FactorSection) -> StudyFactor:
    """Return a factor with its levels, that of the base first."""
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
        knob = parsed(document, named or path, catalogue.knob, name)
        if value != ORIGINAL:
            parsed(document, path, lambda text, knob=knob: steps.check(knob, text), value)
            found[knob.id] = value
    return found


def require_apart(document: toml.Document[StudyFile], factors: Sequence[StudyFactor]) -> None:
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
