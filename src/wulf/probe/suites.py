"""Plans of several experiments: suites of the field, and the user's own files.  Pure but for reading them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec

from wulf.errors import ConfigError, UsageError
from wulf.probe import ladder
from wulf.text import nearest
from wulf.units import parse_duration, parse_size

#: ``ranks`` of an experiment that is made with more and more of them.
DOUBLING = re.compile(r"doubling from ([1-9][0-9]*)")
#: Where the name of an experiment says how many ranks take part.
RANKS = "{ranks}"
#: What is added to the name of an operation beside foreign traffic that is given none.
BESIDE = "_beside_traffic"
#: Length of a visit that is usual.
VISIT = "1ms"
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.{}-]*$", max_length=40)]


class Experiment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation at some sizes; the same operation may be in several."""

    #: What it is called in the run; that of the operation unless given.
    name: _Name | None = None
    #: As ``--ops`` takes it.
    op: str
    #: Name of a ladder, or sizes such as ``4KiB``.
    sizes: str | list[str | int] = "imb"
    #: How many take part, where all nodes can; ``doubling from 4``: 4, 8, … and all, an experiment for each.
    ranks: Annotated[int, msgspec.Meta(ge=2)] | str = "all"
    #: While the nodes that it leaves free stream to each other, two by two.
    foreign: bool = False

    def sizes_bytes(self) -> list[int]:
        """Return the sizes, ascending; raises UsageError for one that is none."""
        if isinstance(self.sizes, str):
            if self.sizes == ladder.ADAPTIVE:
                raise UsageError("sizes: a plan's sizes are fixed, so 'adaptive' is none of its ladders")
            return ladder.base_sizes(self.sizes)
        return sorted({size if isinstance(size, int) else parse_size(size) for size in self.sizes})

    def with_ranks(self, most: int) -> Iterator[tuple[str | None, int]]:
        """Yield the name and the number of ranks of each experiment that it stands for; 0 ranks are all.

        Raises
        ------
        UsageError
            It wants more ranks than there are, or says in no known way how many.
        """
        if isinstance(self.ranks, int):
            if self.ranks > most:
                raise UsageError(f"ranks: it takes {self.ranks}, and there are {most}")
            yield self._called(self.ranks), self.ranks
        elif found := DOUBLING.fullmatch(self.ranks):
            number = int(found[1])
            while number < most:
                yield self._called(number), number
                number *= 2
            yield self._called(most), 0
        elif self.ranks == "all":
            yield self._called(most), 0
        else:
            raise UsageError(f"ranks: {self.ranks!r} is neither a number, 'all' nor 'doubling from N'")

    def _called(self, ranks: int) -> str | None:
        return None if self.name is None else self.name.replace(RANKS, str(ranks))


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Experiments that belong together."""

    title: Annotated[str, msgspec.Meta(min_length=1)]
    #: Where they come from.
    source: str = ""
    #: Length of a visit, where the user asks for none.
    visit: str = VISIT
    experiment: Annotated[list[Experiment], msgspec.Meta(min_length=1)]


@functools.cache
def names() -> tuple[str, ...]:
    """Names of the suites that come with wulf."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in _directory().iterdir()))


def named(name: str) -> Suite:
    """Return a suite that comes with wulf; raises UsageError where there is none of this name."""
    if name not in names():
        raise UsageError(
            f"--suite: there is no suite {name!r}{nearest(name, names())}; there are: {', '.join(names())}"
        )
    return parse(_directory().joinpath(f"{name}.toml").read_text(encoding="utf-8"), f"suite {name}")


def from_file(path: Path) -> Suite:
    """Return the plan in a file.

    Raises
    ------
    ConfigError
        It cannot be read, or is no plan; names the file and the experiment.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return parse(text, str(path))


def parse(text: str, source: str) -> Suite:
    """Return the plan of a TOML text; raises ConfigError that names its `source` and the experiment."""
    try:
        suite = msgspec.toml.decode(text, type=Suite)
    except msgspec.DecodeError as error:
        raise ConfigError(f"{source}: {error}") from error
    _require_duration(suite.visit, source)
    for number, experiment in enumerate(suite.experiment, 1):
        try:
            experiment.sizes_bytes()
            if isinstance(experiment.ranks, str):
                list(experiment.with_ranks(2))
        except UsageError as error:
            raise ConfigError(f"{source}: experiment {number} ({experiment.op}): {error}") from error
    return suite


def _require_duration(visit: str, source: str) -> None:
    try:
        parse_duration(visit)
    except UsageError as error:
        raise ConfigError(f"{source}: visit: {error}") from error


def require_different(names_of: Sequence[str], source: str) -> None:
    """Raise UsageError where two experiments have the same name."""
    twice = sorted({name for name in names_of if names_of.count(name) > 1})
    if twice:
        raise UsageError(f"{source}: two experiments are called {twice[0]}: give one of them another 'name'")


def _directory() -> resources.abc.Traversable:
    return resources.files("wulf") / "data" / "suites"
