"""The catalogue: knobs and checks, as data under ``data/``, validated when it is read.

Adding a knob or a check is adding a file there; nothing else has to know of it.
"""

from __future__ import annotations

import fnmatch
import functools
import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar

import msgspec

from wulf.base import access, toml, toml_lines, user_files
from wulf.base import locations as places
from wulf.base.errors import ConfigError, UsageError
from wulf.base.profile import PROFILES, Profile, Severity
from wulf.base.records import FactValue, Record
from wulf.base.text import count, nearest, printable

#: What a wrong setting costs.
Cost = Literal["latency", "bandwidth", "stability", "security"]
HowKnown = Literal["read", "summary read", "checked", "measured", "published", "memory"]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
#: A value of the type int; beyond 18 digits none is meant.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_Id = Annotated[str, msgspec.Meta(pattern=r"^[a-z]+(\.[A-Za-z0-9_]+)+$")]


class Data(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is read from ``data/``: a key that nobody knows is an error."""


class Evidence(Data, frozen=True, kw_only=True):
    """Where a claim comes from."""

    #: Publication, documentation, source code or machine.
    source: _Text
    #: ``memory`` is general knowledge that nobody has verified.
    how_known: HowKnown
    #: What it says, with its numbers.
    figure: str = ""


class Access(Data, frozen=True, kw_only=True):
    """How a knob is reached on a node."""

    #: A kind of `wulf.base.access`: which reader (`wulf.node.facts.readers.knobs`) and which writer.
    kind: _Text
    #: What of that kind: a sysctl's name, a path (``*`` and ``{interface}`` are filled in), a unit …
    target: _Text
    #: Which part of a file's text is the value.
    select: Literal["whole", "bracketed", "mask"] = "whole"
    #: How a person reads it.
    read: _Text
    #: The command that changes it now; ``{interface}`` and ``{value}`` are filled in.
    set: _Text
    #: How the old state is put back.
    revert: _Text


class Persist(Data, frozen=True, kw_only=True):
    """What keeps a value over a reboot."""

    #: The file or mechanism, in a few words.
    file: _Text
    debian: _Text
    rhel: _Text


class Special(Data, frozen=True, kw_only=True):
    """A number that does not mean what it says: a mode, which is no point on the knob's scale."""

    value: _Text
    #: In a few words.
    meaning: _Text
    #: Drivers of the interface that take it so, ``*`` matches; none for all.
    drivers: tuple[str, ...] = ()
    #: What these drivers begin with.
    default: bool = False


class Knob(Data, frozen=True, kw_only=True):
    """One setting of a node, an interface or a job."""

    id: _Id
    title: _Text
    layer: Literal["cpu_power", "irq", "nic", "kernel_net", "services", "mpi", "application"]
    what: _Text
    type: Literal["int", "bool", "enum", "vector", "text", "service"]
    #: Empty where the value has none.
    unit: str = ""
    #: Smallest and largest value.
    range: tuple[int, int] | None = None
    #: Of a vector the smallest and largest value of each of its numbers.
    ranges: tuple[tuple[int, int], ...] = ()
    #: Of a vector, whether none of its numbers is smaller than the one before it.
    rising: bool = False
    #: The kernel's own value, where it is the same in all versions; empty where not.
    default: str = ""
    #: Values worth trying; of numbers the smallest and the largest say how far it is swept.
    values: tuple[str, ...] = ()
    #: Values with a meaning of their own.
    special: tuple[Special, ...] = ()
    scope: Literal["node", "cpu", "interface", "queue", "route", "cluster", "job"]
    status: Literal["current", "audit only", "report only", "folklore", "obsolete"]
    #: Since when, and what replaces it.
    obsolete_since: str = ""
    #: Kernel or driver it needs.
    needs: str = ""
    notes: str = ""
    #: Which way it moves latency or bandwidth.
    direction: _Text
    #: Why there is no recommended value (for some profiles), or what to weigh before taking it.
    measure: str = ""
    risk: _Text
    #: What a change can do to the connection of the node.
    lockout: Literal["none", "link blip", "link down", "connectivity", "reboot"]
    #: Other programs that set the same thing.
    owners: tuple[str, ...] = ()
    #: Knobs that it makes anew, takes away or holds back: they are set, and put back, after it.
    affects: tuple[str, ...] = ()
    #: How its effect on the wire is proven after a change (see `wulf.node.change.live`).
    live: Literal["", "mtu", "tracking", "interrupts"] = ""
    #: Acts on connections that there are already, so that it may be switched while a probe measures; one without acts
    #: on new ones, on new processes, or only after the link was down.
    established: bool = False
    #: Of such a knob, two values between which established connections may break: they are compared between launches.
    severing: tuple[tuple[str, str], ...] = ()
    access: Access
    persist: Persist
    #: Expected effect of the recommended value, as a share of the metric; orders what is worth trying.
    effect: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    #: Where a recommendation makes sense (see `wulf.base.predicate`); empty for everywhere.
    when: str = ""
    #: Profile → what is right there: a value, ``a|b``, ``<=n`` or ``>=n``.
    recommend: dict[Profile, str] = msgspec.field(default_factory=dict)
    evidence: Annotated[list[Evidence], msgspec.Meta(min_length=1)]


class Check(Data, frozen=True, kw_only=True):
    """A predicate over the facts of a node that says what is wrong there."""

    id: _Id
    title: _Text
    severity: Severity
    costs: list[Cost]
    #: Expected effect of mending it, as a share of the metric (0.5 = halves it); orders the findings.
    effect: Annotated[float, msgspec.Meta(ge=0, le=1)]
    #: Where the check makes sense; empty for everywhere.
    when: str = ""
    #: True on a node where all is well. See `wulf.base.predicate`.
    holds: _Text
    #: The state found, with ``{fact}`` filled in.
    found: _Text
    #: The state wanted, with ``{fact}`` filled in.
    wanted: _Text
    #: What it costs, in words, with the evidence.
    why: _Text
    #: Command that mends it now; ``{interface}`` and ``{fact}`` are filled in. Empty: nothing one command does.
    fix: str = ""
    #: File or mechanism that keeps it so.
    keep: str = ""
    #: Knobs that change what it speaks of, where `holds` names other facts: with these it can be tried.
    knobs: tuple[str, ...] = ()
    #: Knob → value that is right whatever the cluster is to be good at; empty where that depends, or is not known.
    mend: dict[str, str] = msgspec.field(default_factory=dict)
    risk: _Text
    profiles: tuple[Profile, ...] = PROFILES
    evidence: Annotated[list[Evidence], msgspec.Meta(min_length=1)]


class Consistency(Data, frozen=True, kw_only=True):
    """Facts that should be the same on all nodes."""

    id: _Id
    title: _Text
    severity: Severity
    costs: list[Cost]
    effect: Annotated[float, msgspec.Meta(ge=0, le=1)]
    #: Names of facts, ``*`` matches; a fact belongs to the first rule that names it.
    facts: Annotated[list[str], msgspec.Meta(min_length=1)]
    #: Facts that these patterns also match but that belong to a node alone.
    but: tuple[str, ...] = ()
    #: Numbers that differ by no more than this share count as equal.
    tolerance: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    #: Only the newest version is right, however few have it.
    newest: bool = False
    #: What most of the nodes have is right on the others, too: they are made like them.
    mend: bool = False
    why: _Text
    advice: _Text
    risk: _Text


class Signature(Data, frozen=True, kw_only=True):
    """What a known cause does to the figures of a pair of nodes, or of one node by itself."""

    id: _Id
    title: _Text
    #: True of figures that look like it. See `wulf.base.predicate`; its names are those of
    #: `wulf.stats.estimate.features`, of one node by itself of `wulf.stats.estimate.host_signatures`.
    when: _Text
    #: What shows it, with ``{feature}`` filled in.
    evidence: _Text
    #: How the cause does that.
    why: _Text
    #: The next step as a command; ``{nodes}``, ``{one}`` and (of a pair) ``{other}`` are filled in.
    next: _Text
    #: Where it is described.
    sources: Annotated[list[str], msgspec.Meta(min_length=1)]


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_Identified)


@functools.cache
def knobs() -> dict[str, Knob]:
    """Knob id → knob, in alphabetical order.

    Raises
    ------
    ConfigError
        A file of the catalogue is not valid; names it.
    """
    found = load("knobs", Knob)
    targets: dict[tuple[str, str], str] = {}
    for knob in found.values():
        for fault in (*_faults(knob, found), *_faults_of_values(knob), *_faults_of_access(knob, targets)):
            raise ConfigError(f"{file_of('knobs', knob.id)}: {fault}")
    in_order(found)
    return found


def _faults(knob: Knob, known: Mapping[str, Knob]) -> Iterator[str]:
    """Say what is wrong with a knob by itself and with the knobs that it names."""
    if not knob.recommend and not knob.measure:
        yield "give 'recommend', or say in 'measure' why not"
    if knob.when and not knob.recommend:
        yield "'when' says where a recommendation makes sense: give 'recommend', or leave 'when' out"
    if knob.status == "obsolete" and not knob.obsolete_since:
        yield "obsolete since when?"
    for other in knob.affects:
        if other not in known:
            yield f"it affects {other}, which is not a knob"
    for value in (value for pair in knob.severing for value in pair):
        if not knob.established or value not in knob.values:
            yield f"severing has {value!r}: it is for 'values' of a knob that is 'established'"


def _faults_of_values(knob: Knob) -> Iterator[str]:
    """Say which values a knob cannot have that its file names."""
    words = access.kinds()[knob.access.kind].words
    named = [("values", value) for value in knob.values] + [("default", knob.default)]
    for profile, wanted in knob.recommend.items():
        try:
            accepts(wanted, "0")
        except ValueError as error:
            yield str(error)
            continue
        named += [(f"recommend.{profile}", value) for value in wanted.lstrip("<>=").split("|")]
        chosen = preferred(wanted)
        if knob.type in ("bool", "enum", "service") and knob.values and chosen not in knob.values:
            yield f"recommend.{profile} is {chosen!r}, which is none of 'values'"
    named += [("special", one.value) for one in knob.special]
    yield from _faults_of_vector(knob, named)
    if knob.type != "int":
        if knob.range is not None:
            yield "'range' is for knobs of the type int"
        return
    low, high = knob.range or (-math.inf, math.inf)
    if low > high:
        yield "'range' has the smallest value first, then the largest"
    for key, value in named:
        if value and value not in words and not (_WHOLE.fullmatch(value) and low <= int(value) <= high):
            limits = f" from {low} to {high}, as 'range' says" if knob.range is not None else ""
            yield f"{key} has {value!r}: of the type int it must be a whole number{limits}"


def _faults_of_vector(knob: Knob, named: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Say which numbers a vector cannot have that its file names."""
    if (knob.type == "vector") != bool(knob.ranges) or (knob.rising and not knob.ranges):
        yield "'ranges' is for knobs of the type vector, each of which has it; 'rising' goes with it"
    if any(low >= high for low, high in knob.ranges):
        yield "'ranges' has pairs, the smaller value first"
    for key, value in named:
        if value and knob.ranges and vector_fault(knob, value):
            yield f"{key} has {value!r}: {vector_fault(knob, value)}"


def vector_fault(knob: Knob, value: str) -> str:
    """Return why a knob of the type vector cannot have a value; empty where it can."""
    words = value.split()
    if len(words) != len(knob.ranges) or not all(_WHOLE.fullmatch(word) for word in words):
        return f"{count(len(knob.ranges), 'whole number')}"
    for word, (low, high) in zip(words, knob.ranges, strict=True):
        if not low <= int(word) <= high:
            return f"{word} is not from {low} to {high}"
    if knob.rising and sorted(words, key=int) != words:
        return "none of its numbers may be smaller than the one before it"
    return ""


def _faults_of_access(knob: Knob, targets: dict[tuple[str, str], str]) -> Iterator[str]:
    """Say where the parts of a knob speak of different settings; `targets` collects whose target each is."""
    reach = knob.access
    kind = access.kinds()[reach.kind]
    if kind.id and knob.id != access.filled(kind.id, reach.target):
        yield f"its id must be {access.filled(kind.id, reach.target)}, as access.target is {reach.target}"
    other = targets.setdefault((reach.kind, reach.target), knob.id)
    if kind.settable and other != knob.id:
        yield f"access.target is {reach.target}, which is that of {other}, too"
    for field in kind.names:
        table, key = field.split(".")
        text = getattr(getattr(knob, table), key)
        for word in reach.target.split():
            if not _names(text, word):
                yield f"{field} is {text!r} and does not name access.target, {word}: do they mean the same?"


def _names(text: str, word: str) -> bool:
    """Whether a text names a word of a target: as it is, as a path below /proc/sys, or by its last part."""
    forms = {word, word.replace(".", "/"), word.rsplit("/", 1)[-1], word.removesuffix(".service")}
    return any(re.search(rf"(?<![A-Za-z0-9_]){re.escape(form)}(?![A-Za-z0-9_])", text) for form in forms)


@functools.cache
def ranks() -> dict[str, int]:
    """Knob or kind of access → its place among all when settings are set or put back, from 0."""
    return {name: rank for rank, name in enumerate(in_order(knobs()))}


def in_order(selection: Mapping[str, Knob]) -> list[str]:
    """Return knobs and kinds of access so that what makes others anew comes before them; a kind after its knobs.

    Raises
    ------
    ConfigError
        Knobs affect each other in a circle; names them.
    """
    places = {name: place for place, name in enumerate(access.kinds())}
    keys = {name: (place, 1_000, name) for name, place in places.items()}
    keys |= {name: _key(entry, places) for name, entry in selection.items()}
    waits_for = dict.fromkeys(keys, 0)
    for entry in selection.values():
        for other in entry.affects:
            waits_for[other] += 1
    ready = [keys[name] for name, count in waits_for.items() if not count]
    heapq.heapify(ready)
    found: list[str] = []
    while ready:
        name = heapq.heappop(ready)[2]
        found.append(name)
        for other in selection[name].affects if name in selection else ():
            waits_for[other] -= 1
            if not waits_for[other]:
                heapq.heappush(ready, keys[other])
    if len(found) < len(keys):
        raise ConfigError(f"knobs affect each other in a circle: {sorted(keys.keys() - set(found))}")
    return found


def _key(entry: Knob, places: Mapping[str, int]) -> tuple[int, int, str]:
    groups = access.kinds()[entry.access.kind].groups
    group = re.split(r"[. ]", entry.access.target)[0]
    return places[entry.access.kind], groups.index(group) if group in groups else len(groups), entry.id


@functools.cache
def checks() -> dict[str, Check]:
    """Check id → check; raises as `knobs`."""
    found = load("checks", Check)
    for check in found.values():
        for name in check.knobs:
            if name not in knobs():
                raise ConfigError(
                    f"{file_of('checks', check.id)}: it is tried with {name}, which is not a knob"
                )
        for name in check.mend:
            if name not in knobs():
                raise ConfigError(
                    f"{file_of('checks', check.id)}: it is mended by {name}, which is not a knob"
                )
            if refusal := unsettable(knobs()[name]):
                raise ConfigError(f"{file_of('checks', check.id)}: {name} cannot be set: {refusal}")
    return found


@functools.cache
def consistencies() -> dict[str, Consistency]:
    """Rule id → rule about what is equal on all nodes, in the order in which they apply; raises as `knobs`."""
    return load("consistency", Consistency)


@functools.cache
def signatures() -> dict[str, Signature]:
    """Signature id → signature, in alphabetical order; raises as `knobs`."""
    return load("signatures", Signature)


@functools.cache
def host_signatures() -> dict[str, Signature]:
    """Signature id → signature of what makes a node noisy by itself, in alphabetical order; raises as `knobs`."""
    return load("host_signatures", Signature)


def knob(name: str) -> Knob:
    """Return the knob a user names, by its id or the unambiguous end of it.

    Raises
    ------
    UsageError
        There is none, or several; names them.
    """
    known = knobs()
    if name in known:
        return known[name]
    matching = [key for key in known if key.endswith("." + name)]
    if len(matching) == 1:
        return known[matching[0]]
    near = matching or [key for key in known if name and name in key]
    hint = f"; did you mean {', '.join(near[:6])}?" if near else nearest(name, known)
    raise UsageError(f"there is no knob '{printable(name, 80)}'{hint} ('wulf settings list' names all)")


def unsettable(knob: Knob) -> str:
    """Return why a knob cannot be set on a running node; empty when it can."""
    if knob.status in ("audit only", "report only"):
        return knob.measure or "it is only looked at"
    if knob.status == "obsolete" and knob.access.kind != "module":
        return f"it has no effect any more (obsolete since {knob.obsolete_since})"
    kind = access.kinds()[knob.access.kind]
    if not kind.settable:
        return kind.not_live.format(keep=knob.persist.file, set=knob.access.set)
    if knob.access.kind == "firewall" and knob.access.target != "tracking":
        return "rules of others are not removed; net.conntrack=exempt lets the cluster's traffic pass before them"
    return ""


def accepts(wanted: str, value: str) -> bool:
    """Whether a value is what a recommendation wants.

    Parameters
    ----------
    wanted
        ``<=n``, ``>=n`` (numbers), or values separated by ``|``.

    Raises
    ------
    ValueError
        When the recommendation is malformed.
    """
    limit = re.fullmatch(r"([<>]=)(-?[0-9]+)", wanted)
    if limit is None:
        choices = wanted.split("|")
        if any(not choice or choice != choice.strip() or choice[0] in "<>" for choice in choices):
            raise ValueError(f"not a recommendation: {wanted!r}")
        return value in choices
    try:
        number = float(value)
    except ValueError:
        return False
    bound = int(limit[2])
    return number <= bound if limit[1] == "<=" else number >= bound


def specials(knob: Knob, driver: FactValue) -> dict[str, Special]:
    """Return the values of a knob that have a meaning of their own with this driver of the interface."""
    return {
        one.value: one
        for one in knob.special
        if not one.drivers or any(fnmatch.fnmatchcase(str(driver), pattern) for pattern in one.drivers)
    }


def fits(knob: Knob, wanted: str, value: str, driver: FactValue) -> bool:
    """Whether a node's value is what a recommendation wants; a mode is within no limit, however small its number."""
    is_limit = wanted.startswith(("<=", ">="))
    return accepts(wanted, value) and not (is_limit and value in specials(knob, driver))


def shown(knob: Knob, value: str, driver: FactValue) -> str:
    """Return a value as people read it: with its unit, or with what it means: ``3 (dynamic, conservative)``."""
    special = specials(knob, driver).get(value)
    if special is not None:
        return f"{value} ({special.meaning})"
    return f"{value} {knob.unit}" if knob.unit and value[-1:].isdigit() else value


def preferred(wanted: str) -> str:
    """Return the value to set so that a recommendation holds."""
    return wanted.lstrip("<>=").split("|")[0]


def paths(selection: Sequence[Knob]) -> list[str]:
    """Files that must be read on a node to know these knobs; ``{interface}`` is not filled in."""
    found: dict[str, None] = {}
    for entry in selection:
        if entry.access.kind == "sysctl":
            found[sysctl_path(entry.access.target)] = None
        elif entry.access.kind in ("file", "idle_states", "turbo"):
            found |= dict.fromkeys(entry.access.target.split())
    return list(found)


def of_device(knob: Knob) -> bool:
    """Whether a knob belongs to the network card: of a bond or a VLAN, to what that is made of."""
    access = knob.access
    return access.kind in ("ethtool", "irq_affinity", "module") or (
        access.kind == "file" and "{interface}" in access.target
    )


def sysctl_path(name: str) -> str:
    """Return the file of a kernel parameter."""
    return "/proc/sys/" + name.replace(".", "/")


def parameters(selection: Sequence[Knob]) -> list[str]:
    """Names of the Open MPI parameters that must be asked for to know these knobs."""
    return [
        name
        for entry in selection
        if entry.access.kind == "mpi_parameter"
        for name in entry.access.target.split()
    ]


def file_of(kind: str, name: str) -> str:
    """Return the file of an entry, for messages: ``data/knobs/ID.toml``, or the path of a site's or a user's."""
    found = user_files.source(kind, name)
    return found.name if found is not None else f"data/{kind}/{name}.toml"


def is_own(kind: str, name: str) -> bool:
    """Whether an entry is a site's or a user's: the package's are tried before it is released."""
    found = user_files.source(kind, name)
    return found is not None and found.owner != "wulf"


def load(directory: str, kind: type[_Entry]) -> dict[str, _Entry]:
    """Return what the files of a directory say, of the package and those that take their place, by id.

    Raises
    ------
    ConfigError
        A file is not valid; names it and the key.
    """
    found: dict[str, _Entry] = {}
    for source in user_files.sources(directory):
        table = places.table(source.text, source.name)
        try:
            entry = msgspec.convert(_with_usual(table), kind)
        except msgspec.ValidationError as error:
            where, (path, complaint) = toml_lines.of_keys(source.text), toml.said(table, kind, str(error))
            raise toml.refusal(source.name, where, path, complaint) from None
        if entry.id in found:
            raise ConfigError(f"{source.name}: the id {entry.id} is taken")
        # Rules of consistency have a number before their id: the order in which they apply.
        if re.sub(r"^[0-9]+-", "", source.id) != entry.id:
            raise ConfigError(f"{source.name}: its id is {entry.id}: a file has the name of its id")
        found[entry.id] = entry
    return found


def _with_usual(entry: dict[str, Any]) -> dict[str, Any]:
    """Add what the file of a knob leaves out because the kind of access says it (``data/access.toml``)."""
    match entry:
        case {"access": {"kind": str(name), "target": str(target)}}:
            if name not in access.kinds():
                raise msgspec.ValidationError(
                    f"data/access.toml has no kind {name}{nearest(name, access.kinds())}"
                )
            kind = access.kinds()[name]
            given = {table: entry.get(table, {}) for table in kind.usual}
            # What is no table is left for the validation to name.
            return entry | {
                table: kind.usually(table, target) | fields
                for table, fields in given.items()
                if isinstance(fields, dict)
            }
    return entry
