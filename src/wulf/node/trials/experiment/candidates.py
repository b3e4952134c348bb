"""Which knobs a tuning run tries, with which values, in which order.  Pure.

The experiment decides, not the recommendation: a knob is tried also where it has the value that the catalogue
recommends. What the catalogue says only orders: which value comes first, and how much is expected of it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from wulf.base.catalogue import Knob, accepts, fits, preferred, shown, specials
from wulf.base.errors import UsageError
from wulf.base.nodeset import fold
from wulf.base.profile import Profile
from wulf.base.records import Candidate, FactValue, NodeRecord
from wulf.base.text import nearest, printable

#: What one change costs, by what it does to the connection [s].
_TOGGLE_S = {"none": 0.3, "link blip": 3.0, "link down": 8.0, "connectivity": 1.0, "reboot": 0.0}
#: What a change may do to the connection without being named.
_HARMLESS = ("none", "link blip")
#: Expected effect of a knob about which the catalogue says "measure it".
_OPEN_EFFECT = 0.01
#: Of a knob that is as recommended everywhere: this share of what the recommended value is expected to bring.
_LIKED_SHARE = 0.1
#: A value that other nodes have is worth more than a guess.
_MIXED_EFFECT = 0.1
#: Values of one knob that are tried without being named: each costs trials.
_MAX_VALUES = 4
#: Of a knob that is as recommended everywhere, or about which nothing is known.
_MAX_UNLIKELY = 3
#: Words in the catalogue that stand for values, and are none.
_PLACEHOLDERS = ("default", "CIDR")

#: Knob → why it is not tried.
LeftOut = dict[str, str]


class Rules(Protocol):
    """What may be set, as those who change nodes say."""

    def may_have(self, knob: Knob, value: str) -> bool:
        """Whether a knob can be given a value."""

    def has(self, knob: Knob, value: str, now: FactValue) -> bool:
        """Whether a node on which the knob is now so needs no change to have the value."""


class _Present(msgspec.Struct, frozen=True, kw_only=True):
    """One knob as the nodes have it."""

    knob: Knob
    #: What is right, as the catalogue says for the profile; None where it does not say.
    wanted: str | None
    #: Node → value; None where it is not set.
    values: dict[str, str | None]
    #: Node → driver of its interface.
    drivers: dict[str, FactValue]

    @property
    def known(self) -> list[str]:
        """Values that nodes have, without repetition."""
        return list(dict.fromkeys(value for value in self.values.values() if value is not None))

    @property
    def by_count(self) -> list[str]:
        """The same, what most nodes have first."""
        every = list(self.values.values())
        return sorted(self.known, key=lambda value: -every.count(value))

    @property
    def modes(self) -> dict[str, str]:
        """Value → meaning, of those that are modes of the driver on some node."""
        found: dict[str, str] = {}
        for driver in dict.fromkeys(self.drivers.values()):
            found |= {value: one.meaning for value, one in specials(self.knob, driver).items()}
        return found

    @property
    def defaults(self) -> list[str]:
        """What the kernel, or the driver on some node, begins with."""
        own = [
            value
            for driver in dict.fromkeys(self.drivers.values())
            for value, one in specials(self.knob, driver).items()
            if one.default
        ]
        return [value for value in (self.knob.default, *own) if value]

    @property
    def as_wanted(self) -> bool:
        """Whether every node has what is recommended."""
        return self.wanted is not None and all(
            value is None or fits(self.knob, self.wanted, value, self.drivers[node])
            for node, value in self.values.items()
        )


def choose(
    records: Sequence[NodeRecord],
    knobs: Mapping[str, Knob],
    profile: Profile,
    refusals: Mapping[str, str],
    rules: Rules,
    named: Sequence[str] = (),
) -> tuple[list[Candidate], LeftOut]:
    """Return the candidates, the most promising first, and why other knobs are left out.

    Without `named`, every knob is tried that has numbers to sweep or values to choose from; whether the catalogue
    likes its present value says how early. Left out are knobs that must not be set (`refusals`), that could cut
    a node off or are known to be no good unless they are not as they should be, and those of which only a person
    can say which values make sense.

    Parameters
    ----------
    refusals
        Knob → why it must not be set on some node.
    named
        Patterns of knob ids that the user names; only those are tried, and those that would not be without.
        ``KNOB=A,B`` also gives the values.

    Raises
    ------
    UsageError
        A pattern matches no knob.
    """
    found: list[Candidate] = []
    left_out: LeftOut = {}
    drivers = {record.node: record.facts.get("nic.driver") for record in records}
    for name, given in _named(knobs, named).items():
        knob = knobs[name]
        if name in refusals:
            left_out[name] = refusals[name]
            continue
        now = {record.node: record.facts.get(name) for record in records}
        present = _Present(
            knob=knob,
            wanted=knob.recommend.get(profile),
            values={node: _text(value) for node, value in now.items()},
            drivers=drivers,
        )
        tried = _tried(knob, given or _values(present, named=bool(named)), now, rules)
        if tried:
            found.append(_candidate(present, tried))
        else:
            left_out[name] = _reason_of_given(knob, given, rules) if given else _reason(present)
    found.sort(key=lambda candidate: (-candidate.effect, candidate.knob))
    return found, left_out


def _tried(
    knob: Knob, values: Iterable[str], now: Mapping[str, FactValue], rules: Rules
) -> dict[str, list[str]]:
    """Return which values would change something, and the nodes where."""
    tried: dict[str, list[str]] = {}
    for value in values:
        changed = [node for node, before in now.items() if not rules.has(knob, value, before)]
        if changed and rules.may_have(knob, value):
            tried[value] = changed
    return tried


def _named(knobs: Mapping[str, Knob], patterns: Sequence[str]) -> dict[str, list[str]]:
    """Return the knobs to look at, each with the values that the user gave."""
    if not patterns:
        return {name: [] for name in knobs}
    found: dict[str, list[str]] = {}
    for word in patterns:
        pattern, _, values = word.partition("=")
        matching = [
            name for name in knobs if fnmatch.fnmatchcase(name, pattern) or name.endswith(f".{pattern}")
        ]
        if not matching:
            hint = nearest(pattern, knobs)
            raise UsageError(f"--knobs: no knob is called {pattern!r}{hint} ('wulf settings list' names all)")
        for name in matching:
            found[name] = [value.strip() for value in values.split(",")] if values else []
    return found


def _reason_of_given(knob: Knob, given: Sequence[str], rules: Rules) -> str:
    """Return why no value that the user gave is tried."""
    cannot = [value for value in given if not rules.may_have(knob, value)]
    if cannot:
        return f"it cannot be {', '.join(map(printable, cannot))} ('wulf settings show {knob.id}' says what it can)"
    return f"all nodes have {', '.join(map(printable, given))} already"


def _reason(present: _Present) -> str:
    """Return why no value of a knob is tried."""
    knob = present.knob
    if knob.status != "current":
        return f"{knob.status}: {knob.direction}; name it with --knobs to try it"
    if knob.lockout not in _HARMLESS:
        return f"a change may cost the connection ({knob.lockout}); name it with --knobs to try it"
    if not _choices(knob):
        return f"which values make sense depends on the node; give some with --knobs: {knob.measure or knob.direction}"
    if set(_choices(knob)) <= set(present.known):
        return "the catalogue knows no other value"
    return f"name it with --knobs to try it: {knob.measure or knob.direction}"


def _values(present: _Present, *, named: bool) -> list[str]:
    """Return the values worth trying, the most promising first; none where the knob is best left alone."""
    knob = present.knob
    if named:
        recommended = [] if present.wanted is None or present.as_wanted else [preferred(present.wanted)]
        return _unique([*recommended, *_choices(knob), *present.modes])
    if knob.status != "current" or knob.lockout not in _HARMLESS:
        return _settled(present)
    if knob.type == "int":
        return _sweep(present)
    if present.wanted is None and knob.type != "bool":
        return _settled(present)
    first = [] if present.wanted is None or present.as_wanted else [preferred(present.wanted)]
    choices = [value for value in _choices(knob) if not (knob.type == "bool" and _is_liked(present, value))]
    return _few(present, [*first, *_others(present), *choices])


def _is_liked(present: _Present, value: str) -> bool:
    """Whether a value is only another word for what all nodes have: ``0`` for ``false``."""
    return present.as_wanted and present.wanted is not None and accepts(present.wanted, value)


def _settled(present: _Present) -> list[str]:
    """Return what makes nodes right, or alike, and nothing else."""
    if present.wanted is not None and not present.as_wanted:
        return [preferred(present.wanted)]
    others = _others(present)
    counts = [list(present.values.values()).count(value) for value in others]
    return [value for value, count in zip(others, counts, strict=True) if count == counts[0]]


def _others(present: _Present) -> list[str]:
    """Return what some nodes have and others do not, where nodes differ; what most have first."""
    if len(present.known) < 2 or (present.wanted is None and present.knob.access.kind == "service"):
        return []
    return present.by_count


def _choices(knob: Knob) -> list[str]:
    return [value for value in knob.values if value not in _PLACEHOLDERS]


def _sweep(present: _Present) -> list[str]:
    """Return values over the range of a knob that is a number, the most promising first.

    What is recommended, one step beyond it (or short of it, where the scale ends there), what other nodes have, the
    least, what kernel or driver begin with, and the other end of the scale. The scale are the numbers that the
    catalogue has; modes of a driver are no points on it, they come after the numbers.
    """
    modes = present.modes
    scale = _scale(present, modes)
    if present.wanted is None:
        tried = [*_others(present), *present.defaults, *_spread(scale, _MAX_UNLIKELY)]
    else:
        wanted = preferred(present.wanted)
        ends = [scale[0], scale[-1]] if scale else []
        tried = [wanted, *_beyond(scale, present.wanted), *_others(present), *ends[:1], *present.defaults]
        tried += [*modes, *ends[1:]]
    return _few(present, tried)


def _scale(present: _Present, modes: Mapping[str, str]) -> list[str]:
    """Return the numbers that the catalogue knows of a knob, ascending."""
    known = [*present.knob.values, *([preferred(present.wanted)] if present.wanted is not None else [])]
    return sorted({value for value in known if _is_number(value) and value not in modes}, key=int)


def _beyond(scale: Sequence[str], wanted: str) -> list[str]:
    """Return the number beyond the recommended one, as the recommendation points; at the scale's end the one before."""
    value = preferred(wanted)
    if value not in scale:
        return []
    at = scale.index(value)
    down, up = list(scale[max(at - 1, 0) : at]), list(scale[at + 1 : at + 2])
    return (down or up) if wanted.startswith("<=") else (up or down)


def _spread(values: Sequence[str], count: int) -> list[str]:
    """Return a few of the values, the first and the last among them."""
    if len(values) <= count:
        return list(values)
    last = len(values) - 1
    return [values[round(index * last / (count - 1))] for index in range(count)]


def _few(present: _Present, values: Sequence[str]) -> list[str]:
    """Return the first of the values that would change anything; fewer where little is expected of them."""
    everywhere = present.known[0] if len(set(present.values.values())) == 1 and present.known else None
    unlikely = len(present.known) < 2 and (present.wanted is None or present.as_wanted)
    count = _MAX_UNLIKELY if unlikely else _MAX_VALUES
    return [value for value in _unique(values) if value != everywhere][:count]


def _unique(values: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _candidate(present: _Present, tried: Mapping[str, Sequence[str]]) -> Candidate:
    knob, modes = present.knob, present.modes
    first = next(iter(tried.values()))
    points = {*tried, *present.known}
    return Candidate(
        knob=knob.id,
        original=_folded(present),
        values=list(tried),
        numeric=knob.type == "int" and not modes and len(points) > 2 and all(map(_is_number, tried)),
        meanings={value: meaning for value, meaning in modes.items() if value in points},
        nodes="" if len(first) == len(present.values) else fold(first),
        effect=_effect(present),
        toggle_s=_TOGGLE_S[knob.lockout],
        risk=knob.risk,
        local=knob.layer == "cpu_power",
        established=knob.established and not any(points.issuperset(pair) for pair in knob.severing),
    )


def _effect(present: _Present) -> float:
    """Return the expected effect of the best value; never zero, as the catalogue may be wrong."""
    knob = present.knob
    effect = _OPEN_EFFECT
    if present.wanted is not None:
        effect = max(knob.effect * (_LIKED_SHARE if present.as_wanted else 1.0), _OPEN_EFFECT * _LIKED_SHARE)
    return max(effect, _MIXED_EFFECT) if len(present.known) > 1 else effect


def _folded(present: _Present) -> str:
    """Return ``a``, or ``a (2×), b`` where nodes differ."""
    words = [
        "not set" if value is None else _meant(present, node, value) for node, value in present.values.items()
    ]
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    if len(counts) == 1:
        return words[0]
    return ", ".join(f"{word} ({count}×)" if count > 1 else word for word, count in counts.items())


def _meant(present: _Present, node: str, value: str) -> str:
    modes = specials(present.knob, present.drivers[node])
    return shown(present.knob, value, present.drivers[node]) if value in modes else value


def _is_number(value: str) -> bool:
    return value.isdigit()


def _text(value: FactValue) -> str | None:
    return None if value is None else " ".join(str(value).split())
