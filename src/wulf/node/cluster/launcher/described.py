"""Any launcher that a file describes: ``data/launchers``, and those of a site or a user."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec

from wulf.base import catalogue
from wulf.base.catalogue import Data, Evidence
from wulf.base.contracts import MpiJob
from wulf.base.errors import UsageError
from wulf.node.cluster.launcher.hosts import Binding, by_address

Words: TypeAlias = tuple[str, ...]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Variables: TypeAlias = dict[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str]
_FIELD = re.compile(r"\{([a-z_]+)\}")
#: Where hosts stand when the arguments do not say it.
_HOSTS = "{hosts}"


class Added(Data, frozen=True, kw_only=True):
    """What is added under a condition."""

    arguments: Words = ()
    env: _Variables = msgspec.field(default_factory=dict)


class Hosts(Data, frozen=True, kw_only=True):
    """How a command line says where ranks go.

    ``list``: one word, hosts with commas between. ``ranks``: the words again for each rank. ``sets``: for each host the
    words and then the program, with colons between.
    """

    style: Literal["list", "ranks", "sets"]
    #: Of a host: ``{address}`` and ``{ranks}`` are filled in.
    each: Annotated[Words, msgspec.Meta(min_length=1)]


class Description(Data, frozen=True, kw_only=True):
    """A launcher. ``{ranks}`` of its arguments is the number of all ranks, ``{hosts}`` where they go."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    title: _Text
    #: Whose ranks it starts: ``openmpi``, ``mpich`` and what is made of it.
    families: Annotated[tuple[Literal["openmpi", "mpich"], ...], msgspec.Meta(min_length=1)]
    #: Beside the compiler of the library where it is there; else found on the nodes by its name.
    command: _Text
    arguments: Words = ()
    hosts: Hosts
    #: A word before the program for each variable of the job, with ``{name}`` and ``{value}``; none where it passes its
    #: own environment on.
    variable: str = ""
    env: _Variables = msgspec.field(default_factory=dict)
    #: Where the interface is known that the traffic shall take: ``{interface}`` is filled in.
    interface: Added = Added()
    #: Where ranks share CPUs, so that they must give them away while they wait.
    shared_cpu: Added = Added()
    #: What ranks are bound to → how that is said; ``none`` where nobody says anything.
    binding: dict[Binding, Added] = msgspec.field(default_factory=dict)
    evidence: Annotated[list[Evidence], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        """Require that only what is known is filled in."""
        for key, words, known in (
            ("arguments", self.arguments, {"ranks", "hosts"}),
            ("hosts.each", self.hosts.each, {"address", "ranks"}),
            ("variable", (self.variable,), {"name", "value"}),
            ("interface", (*self.interface.arguments, *self.interface.env.values()), {"interface"}),
        ):
            unknown = sorted({name for word in words for name in _FIELD.findall(word)} - known)
            if unknown:
                places = " and ".join(f"{{{name}}}" for name in sorted(known))
                raise ValueError(f"'{key}' has {{{unknown[0]}}}: only {places} are filled in there")
        if self.hosts.style == "list" and len(self.hosts.each) != 1:
            raise ValueError("'hosts.each': of the style 'list' each host is one word")


@functools.cache
def descriptions() -> dict[str, Description]:
    """Name → launcher, of all that files describe.

    Raises
    ------
    ConfigError
        A file is not valid; names it.
    """
    return catalogue.load("launchers", Description)


class Described:
    """A launcher as its file says.

    Parameters
    ----------
    beside
        The compiler of the library, which the command may stand beside.
    """

    def __init__(
        self,
        description: Description,
        beside: str = "",
        arguments: Sequence[str] = (),
        binding: Binding | None = None,
    ) -> None:
        self.name = description.id
        self._description = description
        own = Path(beside).parent / description.command if beside else Path(description.command)
        self._command = str(own) if own.is_file() else description.command
        self._arguments = list(arguments)
        wanted = binding or "none"
        if binding is not None and binding not in description.binding:
            raise UsageError(
                f"[mpi] binding: {self.name} cannot bind ranks to {binding}; "
                f"it can to: {', '.join(description.binding) or 'nothing'}"
            )
        self._binding = description.binding.get(wanted, Added())

    def argv(self, job: MpiJob) -> list[str]:
        """Command line that starts the job on its first host."""
        known = self._description
        words = [self._command, *_filled(known.arguments, {"ranks": str(len(job.hosts))})]
        for added in self._added(job):
            words += _filled(added.arguments, {"interface": job.nic or ""})
        words += self._arguments
        variables = [
            known.variable.format(name=name, value=value)
            for name, value in (self.env(job) if known.variable else {}).items()
        ]
        return list(self._with_hosts(words, job, [*variables, job.program, *job.arguments]))

    def env(self, job: MpiJob) -> dict[str, str]:
        """Environment of that command."""
        variables = dict(self._description.env)
        for added in self._added(job):
            filled = _filled(tuple(added.env.values()), {"interface": job.nic or ""})
            variables |= dict(zip(added.env, filled, strict=True))
        return {**variables, **job.env}

    def _added(self, job: MpiJob) -> Iterator[Added]:
        yield self._binding
        if job.nic is not None:
            yield self._description.interface
        if job.shared_cpu:
            yield self._description.shared_cpu

    def _with_hosts(self, words: Sequence[str], job: MpiJob, program: Sequence[str]) -> Iterator[str]:
        hosts = by_address(job.hosts)
        spec = self._description.hosts
        if spec.style == "sets":
            yield from words
            for number, (address, ranks) in enumerate(hosts.items()):
                yield from ([":"] if number else [])
                yield from _filled(spec.each, {"address": address, "ranks": str(ranks)})
                yield from program
            return
        if spec.style == "ranks":
            said = [
                word
                for _, address in job.hosts
                for word in _filled(spec.each, {"address": address, "ranks": "1"})
            ]
        else:
            said = [
                ",".join(
                    _filled(spec.each, {"address": address, "ranks": str(ranks)})[0]
                    for address, ranks in hosts.items()
                )
            ]
        place = words.index(_HOSTS) if _HOSTS in words else len(words)
        yield from [*words[:place], *said, *words[place + 1 :], *program]


def _filled(words: Words, values: Mapping[str, str]) -> list[str]:
    return [_FIELD.sub(lambda field: values.get(field[1], field[0]), word) for word in words]
