"""How a request is declared: a dataclass whose fields say of themselves what they are.

A field is ``name: Annotated[type, Option("What it is.")] = default``. From it come the option of the command line with
its help, default and completion, the key of ``config.toml`` and of the environment, the argument of the function in
Python with its check, and the reference page::

    @dataclass(frozen=True)
    class Compare:
        \"\"\"Compare runs: the change at every size with its interval, and a verdict.\"\"\"

        base: Annotated[AnyRun, Argument("The run that others are held against.", metavar="RUN")]
        margin: Annotated[float, Option("Change that does not matter.", unit=SHARE)] = 0.02

What belongs together is checked by ``__post_init__``, which raises `UsageError`. Nothing that takes long to import is
imported by a module that declares a request: the list of verbs and every help read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from wulf.base.units import parse_duration, parse_percent, parse_size

if TYPE_CHECKING:
    from wulf.base.store import Run

    #: A run, its path, or its name as the command line takes it.
    AnyRun = Run | Path | str
else:  # importing what it is takes long; who opens it says what is none
    AnyRun = Any


@dataclass(frozen=True)
class Unit:
    """How a value that is no plain number or word is written on the command line and in files."""

    #: What the field's name ends in, and the option's does not: ``budget_s`` is ``--budget``.
    suffix: str
    #: Raises UsageError.
    parse: Callable[[str], Any]
    spell: Callable[[Any], str]
    #: Bounds of the number, neither of which it may reach.
    above: float = float("-inf")
    below: float = float("inf")
    #: What Python says of a number beyond them.
    words: str = ""


def _spelled_duration(seconds: float) -> str:
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.15g}{unit}"
    return f"{seconds * 1e3:.15g}ms"


def _spelled_size(size: int) -> str:
    for unit, length in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= length and size % length == 0:
            return f"{size // length}{unit}"
    return f"{size}B"


SECONDS = Unit("_s", parse_duration, _spelled_duration, 0, float("inf"), "seconds, more than 0")
BYTES = Unit("_bytes", parse_size, _spelled_size, -1, float("inf"), "bytes, 0 or more")
SHARE = Unit(
    "", parse_percent, lambda share: f"{100 * share:g}%", 0, 1, "a share between 0 and 1, such as 0.02"
)


@dataclass(frozen=True)
class Option:
    """What an option of the command line is beyond its type and its default.

    Attributes
    ----------
    help
        What it is, in a sentence.
    names
        As the command line has it; from the field's name where there are none. ``--no-check`` of a field that is True.
    metavar
        What stands for its value in the help.
    least, most
        Bounds of a number that has no unit.
    unit
        Of a number that has one, or how else the value is written.
    separator
        Between the values of a list that is one word on the command line.
    complete
        What a shell offers: a function of `wulf.face.cli.complete`, or the words.
    default
        What the help says of the default instead of the value.
    typed
        Its type on the command line, where that does not follow from the field's.
    goes_on
        Whether it counts for a run that goes on, too (``--resume``): all others are as the run was begun with.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    unit: Unit | None = None
    separator: str = ""
    complete: str | Sequence[str] = ""
    default: str = ""
    typed: Any = None
    goes_on: bool = False


class Argument(Option):
    """As an option, but given by its place on the command line."""


class Elsewhere(Option):
    """An argument of the function in Python that the command line has in another form, and fills in itself."""


#: Fields of many requests.
RunsField = Annotated[Path, Option("Directory that holds the runs.", goes_on=True)]
RUNS = Path("runs")
PathField = Annotated[
    Path | str | None,
    Option("Name of the new run. Default: date and time.", names=("--run",), metavar="NAME", typed=str),
]
JsonField = Annotated[bool, Option("Print JSON (see docs/reference/json.md).", goes_on=True)]
DryRunField = Annotated[bool, Option("Print every command for every node, and change nothing.")]


class Field(NamedTuple):
    """A field of a request."""

    name: str
    #: Its type, as Python takes it.
    kind: Any
    option: Option
    required: bool
    #: None where it is required.
    default: Any


def fields_of(request: Any) -> Iterator[Field]:
    """Yield the fields of a request's class.

    Raises
    ------
    TypeError
        One does not say what it is.
    """
    hints = get_type_hints(request, include_extras=True)
    for field in fields(request):
        hint = hints[field.name]
        kind, *said = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        options = [one for one in said if isinstance(one, Option)]
        if len(options) != 1:
            raise TypeError(f"{request.__name__}.{field.name}: a field is Annotated[type, Option(…)]")
        required = field.default is MISSING and field.default_factory is MISSING
        made = field.default_factory() if field.default_factory is not MISSING else field.default
        yield Field(field.name, kind, options[0], required, None if required else made)
