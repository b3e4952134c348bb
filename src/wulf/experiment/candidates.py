"""Which knobs a tuning run tries, with which values, in which order.  Pure."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence

from wulf.catalogue import Knob, Profile, accepts, preferred
from wulf.errors import UsageError
from wulf.records import Candidate, FactValue, NodeRecord

#: What one change costs, by what it does to the connection [s].
_TOGGLE_S = {"none": 0.3, "link blip": 3.0, "link down": 8.0, "connectivity": 1.0, "reboot": 0.0}
#: Expected effect of a knob about which the catalogue says "measure it".
_OPEN_EFFECT = 0.01
#: A value that other nodes have is worth more than a guess.
_MIXED_EFFECT = 0.1
#: Values of one knob that are tried without being named.
_MAX_VALUES = 3

#: Knob → why it is not tried.
LeftOut = dict[str, str]


def choose(
    records: Sequence[NodeRecord],
    knobs: Mapping[str, Knob],
    profile: Profile,
    refusals: Mapping[str, str],
    may_have: Callable[[Knob, str], bool],
    wanted: Sequence[str] = (),
) -> tuple[list[Candidate], LeftOut]:
    """Return the candidates, the most promising first, and why other knobs are left out.

    Without `wanted`, a knob is tried when it is not as recommended on some node, when the nodes differ in it, or
    when the catalogue recommends measuring it.

    Parameters
    ----------
    refusals
        Knob → why it must not be set on some node.
    may_have
        Whether a knob can be given a value.
    wanted
        Patterns of knob ids that the user names; only those are tried, and those that would not be without.
        ``KNOB=A,B`` also gives the values.

    Raises
    ------
    UsageError
        A pattern matches no knob.
    """
    chosen = _wanted(knobs, wanted)
    found: list[Candidate] = []
    left_out: LeftOut = {}
    for name, given in chosen.items():
        knob = knobs[name]
        if name in refusals:
            left_out[name] = refusals[name]
            continue
        values = {record.node: _text(record.facts.get(name)) for record in records}
        tried = given or _values(knob, profile, values, named=bool(wanted))
        tried = [
            value
            for value in tried
            if may_have(knob, value) and any(value != before for before in values.values())
        ]
        if not tried:
            left_out[name] = _reason(knob, profile)
            continue
        found.append(_candidate(knob, profile, values, tried))
    found.sort(key=lambda candidate: (-candidate.effect, candidate.knob))
    return found, left_out


def _reason(knob: Knob, profile: Profile) -> str:
    if profile in knob.recommend:
        return "it is as recommended everywhere"
    return (
        f"name it with --knobs to try it: {knob.measure}"
        if knob.measure
        else "no other value is worth trying"
    )


def _wanted(knobs: Mapping[str, Knob], patterns: Sequence[str]) -> dict[str, list[str]]:
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
            raise UsageError(f"--knobs: no knob is called {pattern!r} ('wulf knob list' names all)")
        for name in matching:
            found[name] = [value.strip() for value in values.split(",")] if values else []
    return found


def _values(knob: Knob, profile: Profile, values: Mapping[str, str | None], *, named: bool) -> list[str]:
    """Return the values worth trying; empty when the knob is best left alone."""
    recommended = knob.recommend.get(profile)
    present = list(dict.fromkeys(value for value in values.values() if value is not None))
    plain = [value for value in knob.values if value not in ("default", "CIDR")]
    tried: list[str] = []
    if recommended is not None and not all(accepts(recommended, value) for value in present):
        tried.append(preferred(recommended))
    elif len(present) > 1 and (recommended is not None or knob.access.kind != "service"):
        tried += _most(list(values.values()))
    if named or (len(present) == 1 and _is_open(knob, recommended)):
        tried += plain if named else _spread([value for value in plain if value not in present])
    return list(dict.fromkeys(tried))


def _most(values: Sequence[str | None]) -> list[str]:
    """Return the value that most nodes have, or those that equally many have."""
    known = [value for value in values if value is not None]
    counts = {value: known.count(value) for value in dict.fromkeys(known)}
    return [value for value, count in counts.items() if count == max(counts.values())]


def _is_open(knob: Knob, recommended: str | None) -> bool:
    """Whether only an experiment can tell, and nothing speaks against one without being asked."""
    return recommended is None and knob.type in ("int", "bool") and knob.lockout == "none"


def _spread(values: Sequence[str]) -> list[str]:
    """Return a few of the values, the first and the last among them."""
    if len(values) <= _MAX_VALUES:
        return list(values)
    last = len(values) - 1
    return [values[round(index * last / (_MAX_VALUES - 1))] for index in range(_MAX_VALUES)]


def _candidate(
    knob: Knob, profile: Profile, values: Mapping[str, str | None], tried: Sequence[str]
) -> Candidate:
    present = [value for value in values.values() if value is not None]
    recommended = knob.recommend.get(profile)
    effect = knob.effect if recommended is not None and tried else _OPEN_EFFECT
    if len(set(present)) > 1:
        effect = max(effect, _MIXED_EFFECT)
    return Candidate(
        knob=knob.id,
        original=_folded(values),
        values=list(tried),
        numeric=knob.type == "int" and _is_sweep(tried),
        effect=effect,
        toggle_s=_TOGGLE_S[knob.lockout],
        risk=knob.risk,
    )


def _folded(values: Mapping[str, str | None]) -> str:
    """Return ``a``, or ``a (2×), b`` where nodes differ."""
    words = ["not set" if value is None else value for value in values.values()]
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    if len(counts) == 1:
        return words[0]
    return ", ".join(f"{word} ({count}×)" if count > 1 else word for word, count in counts.items())


def _is_sweep(values: Sequence[str]) -> bool:
    return len(values) > 2 and all(value.isdigit() for value in values)


def _text(value: FactValue) -> str | None:
    return None if value is None else " ".join(str(value).split())
