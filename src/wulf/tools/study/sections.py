"""The sections of a study file, and how what stands in one is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from wulf.base import toml
from wulf.base.errors import UsageError

_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_ -]*$", max_length=40)]
#: Figures of a metric are its name and a size; commands do not name it.
_MetricName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_, -]*$", max_length=40)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=1)]
#: A value of a knob, or a size.
Value = str | int


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has keys that are all known."""


class LevelSection(Section, frozen=True, kw_only=True):
    """A level that makes several things different."""

    name: _Text
    set: dict[str, Value] = {}
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


class FactorSection(Section, frozen=True, kw_only=True):
    """A factor: values of one thing, or levels of several."""

    name: _Name
    about: str = ""
    #: The level that others are compared with; the first where it is not said.
    base: str = ""
    knob: str = ""
    values: list[Value] = []
    mpi: list[_Text] = []
    blas: list[_Text] = []
    interface: list[_Text] = []
    cluster: list[_Text] = []
    pairs: list[_Text] = []
    command: list[_Text] = []
    ranks: list[Annotated[int, msgspec.Meta(ge=2)]] = []
    ranks_per_node: list[_Count] = []
    level: list[LevelSection] = []


class HplSection(Section, frozen=True, kw_only=True):
    """A problem of HPL; the grid is as square as the ranks allow where it is not said."""

    n: Annotated[int, msgspec.Meta(ge=64)]
    nb: Annotated[int, msgspec.Meta(ge=1)] = 128
    grid: Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]*x[1-9][0-9]*$")] = ""
    program: str = ""


class ShortSection(Section, frozen=True, kw_only=True):
    """What of a metric is less in the short form."""

    sizes: str | list[Value] = ""
    n: Annotated[int, msgspec.Meta(ge=64)] = 0
    command: str = ""
    #: Jobs of each kind in a mix.
    count: Annotated[int, msgspec.Meta(ge=0)] = 0


class JobSection(Section, frozen=True, kw_only=True):
    """Jobs of a mix that are alike."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=40)]
    command: _Text
    count: _Count = 1
    options: str = ""


class MetricSection(Section, frozen=True, kw_only=True):
    """A metric: an operation at sizes, a command, HPL, or a mix of jobs under Slurm."""

    name: _MetricName
    op: str = ""
    sizes: str | list[Value] = ""
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


class DesignSection(Section, frozen=True, kw_only=True):
    """How levels are put together."""

    kind: Literal["full", "one at a time", "fractional"] = "full"
    replications: _Count = 8
    short_replications: _Count = 2
    #: Of a fractional design: how many combinations it has at most.
    runs: _Count | None = None
    sweeps: Annotated[int, msgspec.Meta(ge=3, le=1000)] = 12
    visit: str = "1ms"


class PublishedSection(Section, frozen=True, kw_only=True):
    """Values that somebody has published: one of a metric, or one for each size."""

    metric: str
    levels: dict[str, Value] = {}
    of: str = ""
    value: float | None = None
    sizes: list[int] = []
    values: list[float] = []
    unit: str = ""
    note: str = ""


class PriceSection(Section, frozen=True, kw_only=True):
    """A price."""

    name: _Text
    price: Annotated[float, msgspec.Meta(gt=0)]


class StudyFile(Section, frozen=True, kw_only=True):
    """A study as it is written."""

    title: _Text
    source: str = ""
    factor: list[FactorSection] = []
    metric: Annotated[list[MetricSection], msgspec.Meta(min_length=1)]
    design: DesignSection = DesignSection()
    published: list[PublishedSection] = []
    price: list[PriceSection] = []
    watts: Annotated[float, msgspec.Meta(gt=0)] | None = None


def parsed(document: toml.Document[StudyFile], path: str, parse: Any, text: Any) -> Any:
    """Return what ``parse`` makes of a text; what it refuses is refused with the file, the line and the key."""
    try:
        return parse(text)
    except UsageError as error:
        document.fail(path, str(error))


def require_once(document: toml.Document[StudyFile], kind: str, names: Sequence[str]) -> None:
    """Refuse a name that two sections of a kind have."""
    for number, name in enumerate(names):
        if name in names[:number]:
            document.fail(f"{kind}[{number}].name", f"there is another {kind} {name!r}")
