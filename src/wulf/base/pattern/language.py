"""The language of patterns: what a file may say, and what is wrong with one that says something else.

docs/howto/emulate.md describes it for its users.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal, NoReturn

import msgspec

from wulf.base import toml, toml_lines
from wulf.base.pattern import distributions
from wulf.base.pattern.distributions import Amount
from wulf.base.text import choices, printable

Method = Literal["blocking", "nonblocking", "persistent", "neighborhood", "one-sided"]
#: All send at once along the edges of a graph.
GRAPHS = (
    "ring",
    "halo-1d",
    "halo-2d",
    "halo-3d",
    "hypercube",
    "all-to-all",
    "edges",
)
#: One waits for the other.
ORDERED = ("client-server", "task-farm", "token-ring", "pipeline", "tree")
COLLECTIVES = (
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce-scatter",
    "scan",
    "exscan",
)
ROOTED = ("bcast", "gather", "scatter", "reduce")
#: As many as a stream of a trace can number, and more than anybody waits for.
MOST_ITERATIONS = 10_000_000
#: More ranks than any cluster has, more steps and edges than anybody writes or draws.
MOST_RANKS = 1 << 17
MOST_STEPS = 10_000
MOST_EDGES = 1_000_000
#: Option of a step → which exchanges have it; those with none of them are not named.
_ONLY_OF = {
    "reply": ("client-server", "task-farm", "tree"),
    "think": ("client-server",),
    "servers": ("client-server",),
    "requests": ("client-server",),
    "tasks": ("task-farm",),
    "fan_out": ("tree",),
    "direction": ("tree",),
    "periodic": ("halo-1d", "halo-2d", "halo-3d"),
    "dims": ("halo-1d", "halo-2d", "halo-3d"),
    "edges": ("edges",),
    "method": GRAPHS,
    "overlap": GRAPHS,
}
_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")
#: What msgspec calls them → what a user of the file does.
_WORDS = {
    "Object missing required field": "missing",
    "Object contains unknown field": "unknown key",
}


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of each iteration: computing, messages along a graph, or a collective."""

    compute: Amount | None = None
    exchange: str | None = None
    collective: str | None = None
    size: Amount | None = None
    reply: Amount | None = None
    think: Amount | None = None
    overlap: Amount | None = None
    method: Method | None = None
    periodic: bool | None = None
    dims: list[int] | None = None
    edges: list[list[int | float]] | None = None
    servers: int | None = None
    requests: int | None = None
    tasks: int | None = None
    fan_out: int | None = None
    direction: Literal["down", "up", "both"] | None = None
    root: int | None = None
    groups: Literal["rows", "columns"] | list[list[int]] | None = None
    #: How often in each iteration: 0.1 is in every tenth.
    times: int | float = 1


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ranks that do the same steps again and again."""

    name: str
    iterations: int
    step: list[Step]
    #: So many that no program before it has ('50%': of all); these; all where it is left out.
    ranks: int | str | list[int] | None = None


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Programs that run at the same time."""

    title: str
    program: list[Program]
    what: str = ""
    seed: int = 1
    #: Of all programs together, where a command does not say how many.
    ranks: int | None = None
    #: Times that all of it is done before the clock runs.
    warm_up: int = 1


class Document(msgspec.Struct, frozen=True):
    """A pattern with where it was read."""

    pattern: Pattern
    #: File, or what else a message is to name.
    origin: str
    #: Path of a key → its line.
    lines: dict[str, int]
    text: str

    def fail(self, path: str, complaint: str) -> NoReturn:
        """Refuse what stands at a key.

        Raises
        ------
        ConfigError
            Names the file, the line and the key.
        """
        raise toml.refusal(self.origin, self.lines, path, complaint)


def parse(text: str, origin: str) -> Document:
    """Read the text of a pattern.

    Parameters
    ----------
    origin
        Its file, for messages.

    Raises
    ------
    ConfigError
        It is not a pattern; names the file, the line and the key.
    """
    raw = toml.table(text, origin)
    where = toml_lines.of_keys(text)
    try:
        pattern = msgspec.convert(raw, Pattern)
    except msgspec.ValidationError as error:
        raise toml.refusal(origin, where, *_said(str(error))) from None
    document = Document(pattern, origin, where, text)
    _check(document)
    return document


def _said(message: str) -> tuple[str, str]:
    """Return the path and the complaint of what the validation says."""
    found = _PATH.search(message)
    path = found["path"] if found else ""
    complaint = message[: found.start()] if found else message
    field = re.search(r"(?:unknown|required) field `([^`]*)`", complaint)
    if field:
        path = f"{path}.{field[1]}" if path else field[1]
    for theirs, ours in _WORDS.items():
        complaint = complaint.replace(theirs, ours)
    if field:
        complaint = complaint.replace(f" `{field[1]}`", "")
        if complaint == "unknown key":
            known = _known(path)
            complaint += f"{choices(field[1], known)}"
    return path, toml.in_words(complaint)


def _known(path: str) -> list[str]:
    """Return the keys of the table that a path leads into."""
    if ".step[" in path and path.count(".") == 2:
        return list(Step.__struct_fields__)
    if path.startswith("program[") and path.count(".") == 1:
        return list(Program.__struct_fields__)
    if "." not in path:
        return list(Pattern.__struct_fields__)
    return ["distribution", *distributions.KEYS]


def _check(document: Document) -> None:
    pattern = document.pattern
    if not pattern.program:
        document.fail("program", "there is none: a pattern has at least one [[program]]")
    if pattern.ranks is not None and not 1 <= pattern.ranks <= MOST_RANKS:
        document.fail("ranks", f"{pattern.ranks}: from 1 to {MOST_RANKS}")
    if not 0 <= pattern.warm_up <= 1000:
        document.fail("warm_up", f"{pattern.warm_up}: times from 0 to 1000")
    if not 0 <= pattern.seed < 2**63:
        document.fail("seed", f"{pattern.seed}: from 0 to {2**63 - 1}")
    if sum(len(program.step) for program in pattern.program) > MOST_STEPS:
        document.fail("program", f"more than {MOST_STEPS} steps in all programs together")
    names = [program.name for program in pattern.program]
    for number, program in enumerate(pattern.program):
        _check_program(document, program, f"program[{number}]", is_again=program.name in names[:number])


def _check_program(document: Document, program: Program, path: str, *, is_again: bool) -> None:
    if is_again:
        document.fail(f"{path}.name", f"{program.name!r} is the name of another program, too")
    if not program.name or printable(program.name) != program.name:
        document.fail(f"{path}.name", "a name is a text that can be shown")
    if not 1 <= program.iterations <= MOST_ITERATIONS:
        document.fail(f"{path}.iterations", f"{program.iterations}: from 1 to {MOST_ITERATIONS}")
    _check_ranks(document, program.ranks, f"{path}.ranks")
    if not program.step:
        document.fail(f"{path}.step", "there is none: a program has at least one [[program.step]]")
    for place, step in enumerate(program.step):
        _check_step(step, _at(document, f"{path}.step[{place}]"))


def _check_ranks(document: Document, said: int | str | list[int] | None, path: str) -> None:
    """Refuse numbers of ranks that no cluster has; `operations` says the rest, when it knows how many there are."""
    highest = max(said, default=0) if isinstance(said, list) else said
    if isinstance(highest, int) and highest > MOST_RANKS:
        document.fail(path, f"{highest}: at most {MOST_RANKS}")


def _at(document: Document, path: str) -> Callable[[str, str], NoReturn]:
    def fail(key: str, why: str) -> NoReturn:
        document.fail(f"{path}.{key}", why)

    return fail


def _within(fail: Callable[[str, str], NoReturn], key: str) -> Callable[[str, str], NoReturn]:
    return lambda within, why: fail(key + within, why)


def _check_step(step: Step, fail: Callable[[str, str], NoReturn]) -> None:
    kinds = [*GRAPHS, *ORDERED]
    if step.exchange is not None and step.collective is not None:
        fail("collective", "a step has an exchange or a collective, not both: write two steps")
    if step.exchange is not None and step.exchange not in kinds:
        fail("exchange", f"{step.exchange!r}{choices(step.exchange, kinds)}")
    if step.collective is not None and step.collective not in COLLECTIVES:
        fail("collective", f"{step.collective!r}{choices(step.collective, COLLECTIVES)}")
    if step.exchange is None and step.collective is None and step.compute is None:
        fail("compute", "a step has compute, an exchange or a collective; this one has none of them")
    _check_owners(step, fail)
    _check_size(step, fail)
    _check_numbers(step, fail)


def _check_owners(step: Step, fail: Callable[[str, str], NoReturn]) -> None:
    for key, owners in _ONLY_OF.items():
        if getattr(step, key) is not None and step.exchange not in owners:
            fail(key, f"only an exchange {' or '.join(repr(one) for one in owners)} has it")
    if step.root is not None and step.collective not in ROOTED:
        fail("root", f"only a collective {' or '.join(repr(one) for one in ROOTED)} has it")
    if step.groups is not None and step.collective is None:
        fail("groups", "only a collective has them")


def _check_size(step: Step, fail: Callable[[str, str], NoReturn]) -> None:
    if step.size is not None and (step.exchange or step.collective) in (None, "barrier"):
        fail("size", "nothing is sent in this step")
    if step.size is None and (step.exchange or step.collective) not in (None, "barrier"):
        fail("size", "missing: how many bytes a message has")
    if step.exchange == "edges" and step.edges is None:
        fail("edges", "missing: a list of [from, to], numbers of ranks within the program")
    if step.method == "blocking" and step.overlap is not None:
        fail("overlap", "nothing overlaps with blocking messages")


def _check_numbers(step: Step, fail: Callable[[str, str], NoReturn]) -> None:
    if not 0 < step.times < math.inf:
        fail("times", f"{step.times}: above 0; 0.1 is in every tenth iteration")
    for key in ("servers", "requests", "tasks", "fan_out"):
        number = getattr(step, key)
        if number is not None and not 1 <= number <= MOST_ITERATIONS:
            fail(key, f"{number}: from 1 to {MOST_ITERATIONS}")
    if len(step.edges or ()) > MOST_EDGES:
        fail("edges", f"more than {MOST_EDGES}")
    for key, is_time in distributions.OF_STEP.items():
        amount = getattr(step, key)
        if amount is not None:
            distributions.check(amount, _within(fail, key), is_time=is_time)
