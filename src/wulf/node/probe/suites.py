"""Plans of several experiments: suites of the field, and the user's own files.  Pure but for reading them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from wulf.base import toml, user_files
from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import choices
from wulf.base.units import parse_duration, parse_size
from wulf.node.probe import ladder

#: ``ranks`` of an experiment that is made with more and more of them.
DOUBLING = re.compile(r"doubling from ([1-9][0-9]*)")
#: Where the name of an experiment says how many ranks take part.
RANKS = "{ranks}"
#: … and how many of them each node has.
PER_NODE = "{per_node}"
#: Where the name of an experiment says on which CPU it is made.
CPU = "{cpu}"
#: CPUs that an experiment is made on at most, of all that the nodes have.
MOST_CPUS = 64
#: What is added to the name of an operation beside foreign traffic that is given none.
BESIDE = "_beside_traffic"
#: Length of a visit that is usual.
VISIT = "1ms"
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_.{}-]*$", max_length=40)]


#: Whether other nodes stream meanwhile, and who to whom where it is not two by two.
Foreign = bool | Literal["incast", "all-to-all"]


def beside(foreign: Foreign) -> str:
    """Return what is added to the name of an operation that is given none."""
    return f"_beside_{foreign.replace('-', '_')}" if isinstance(foreign, str) else BESIDE


class Company(NamedTuple):
    """Who makes an experiment."""

    #: What it is called so; None where that is as its operation.
    name: str | None
    #: How many ranks take part; 0 for all.
    ranks: int
    #: How many of them each node has.
    per_node: int = 1


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
    #: Ranks of each node, where all nodes can take part: an experiment for each.
    per_node: list[Annotated[int, msgspec.Meta(ge=1)]] = []
    #: Between two ranks of a node instead of two nodes.
    inside: bool = False
    #: An experiment for every CPU of the nodes, of an operation that takes the number of one; its name has ``{cpu}``.
    each_cpu: bool = False
    #: While the nodes that it leaves free stream to each other: two by two, all to one of them, or each to each.
    foreign: Foreign = False
    #: At so many pairs, or nodes, at most, of an operation between two ranks: they are taken for alike; 0 for all.
    places: Annotated[int, msgspec.Meta(ge=0)] = 0

    def sizes_bytes(self) -> list[int]:
        """Return the sizes, ascending; raises UsageError for one that is none."""
        if isinstance(self.sizes, str):
            if self.sizes == ladder.ADAPTIVE:
                raise UsageError("sizes: a plan's sizes are fixed, so 'adaptive' is none of its ladders")
            return ladder.base_sizes(self.sizes)
        return sorted({size if isinstance(size, int) else parse_size(size) for size in self.sizes})

    def companies(self, nodes: int, per_node: int = 1) -> Iterator[Company]:
        """Yield who makes each of the experiments that it stands for.

        Parameters
        ----------
        nodes
            How many there are.
        per_node
            Ranks of each of them, where the experiment does not say it.

        Raises
        ------
        UsageError
            It wants more ranks than there are, or says in no known way how many.
        """
        for each in self.per_node or [per_node]:
            for ranks in self._ranks(nodes * each):
                yield Company(self._called(ranks or nodes * each, each), ranks, each)

    def _ranks(self, most: int) -> Iterator[int]:
        if isinstance(self.ranks, int):
            if self.ranks > most:
                raise UsageError(f"ranks: it takes {self.ranks}, and there are {most}")
            yield self.ranks
        elif found := DOUBLING.fullmatch(self.ranks):
            number = int(found[1])
            while number < most:
                yield number
                number *= 2
            yield 0
        elif self.ranks == "all":
            yield 0
        else:
            raise UsageError(f"ranks: {self.ranks!r} is neither a number, 'all' nor 'doubling from N'")

    def _called(self, ranks: int, per_node: int) -> str | None:
        if self.inside:
            return self.name or f"{self.op}_inside"
        if self.name is not None:
            return self.name.replace(RANKS, str(ranks)).replace(PER_NODE, str(per_node))
        return f"{self.op}_{per_node}_per_node" if self.per_node else None

    def on_cpu(self, cpu: int) -> tuple[str, str]:
        """Return the name that it has on a CPU, and how the probe is asked for it."""
        return (self.name or "").replace(CPU, str(cpu)), f"{self.op}:{cpu}"

    def require_whole(self) -> None:
        """Raise UsageError where what it says is nothing known, or does not go together."""
        self.sizes_bytes()
        if isinstance(self.ranks, str):
            list(self.companies(2))
        named = CPU in (self.name or "")
        if self.each_cpu and not named:
            raise UsageError(f"each_cpu: its name must have {CPU} in it, to tell one CPU from another")
        if self.each_cpu and ":" in self.op:
            raise UsageError("each_cpu: every CPU has its turn, so the operation is named without one")
        if named and not self.each_cpu:
            raise UsageError(f"name: {CPU} takes each_cpu = true")


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Experiments that belong together."""

    title: Annotated[str, msgspec.Meta(min_length=1)]
    #: Where they come from.
    source: str = ""
    #: Length of a visit, where the user asks for none.
    visit: str = VISIT
    #: Time that is enough for four nodes, where the user says none; empty for the usual one.
    budget: str = ""
    #: No experiment says anything without the others: each gets fewer launches before any gets none.
    all_needed: bool = False
    experiment: Annotated[list[Experiment], msgspec.Meta(min_length=1)]


@functools.cache
def names() -> tuple[str, ...]:
    """Names of the suites that come with wulf, and of those of the site and the user."""
    return tuple(source.id for source in user_files.sources("suites"))


def named(name: str) -> Suite:
    """Return a suite by its name; raises UsageError where there is none of this name."""
    source = user_files.source("suites", name)
    if source is None:
        raise UsageError(f"--suite: there is no suite {name!r}{choices(name, names())}")
    return parse(source.text, f"suite {name}" if source.owner == "wulf" else source.name)


def from_file(path: Path) -> Suite:
    """Return the plan in a file.

    Raises
    ------
    ConfigError
        It cannot be read, or is not a plan; names the file and the experiment.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path}: {reason}") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> Suite:
    """Return the plan of a TOML text; raises ConfigError that names its `source` and the experiment."""
    document = toml.read(text.encode(), source, Suite)
    suite = document.value
    for key, duration in (("visit", suite.visit), ("budget", suite.budget)):
        try:
            parse_duration(duration or suite.visit)
        except UsageError as error:
            document.fail(key, str(error))
    for number, experiment in enumerate(suite.experiment):
        try:
            experiment.require_whole()
        except UsageError as error:
            document.fail(f"experiment[{number}]", f"{experiment.op}: {error}")
    return suite


def chosen_cpus(of_nodes: Iterable[Iterable[int]]) -> list[int]:
    """Return the CPUs that experiments are made on, ascending: all that some node has, of very many some, evenly."""
    every = sorted({cpu for cpus in of_nodes for cpu in cpus})
    count = min(len(every), MOST_CPUS)
    return [every[index * len(every) // count] for index in range(count)]


def require_different(names_of: Sequence[str], source: str) -> None:
    """Raise UsageError where two experiments have the same name."""
    twice = sorted({name for name in names_of if names_of.count(name) > 1})
    if twice:
        raise UsageError(f"{source}: two experiments are called {twice[0]}: give one of them another 'name'")
