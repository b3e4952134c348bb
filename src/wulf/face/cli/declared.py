"""Commands of declared requests (`wulf.base.request`): each field is an option, as typer takes it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from wulf.base.errors import UsageError
from wulf.base.request import Argument, Elsewhere, Field, fields_of
from wulf.face.cli import complete

_Request = TypeVar("_Request")
#: What the command line takes as it is.
_PLAIN = (bool, int, float, str, Path)
#: What a command that can go on with a run has beside its options.
_CONTEXT = "context"
#: Of several kinds that Python takes, the command line takes the last of these.
_RICHER: list[Any] = [list[int], str, Path, list[str], list[Path]]


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command of options for a function of records: the fields of its dataclasses are the options.

    What a function takes beside records is declared as typer wants it, and stays; a record that is `Asked` for is made
    where the function calls it. The help is its docstring, or else that of its first record.
    """
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    records = {name: record for name, kind in hints.items() if (record := _record_of(kind)) is not None}
    plain = inspect.signature(command).parameters
    parameters = [
        made
        for name, kind in hints.items()
        for made in (_parameters(records[name]) if name in records else [_plain(plain[name], kind)])
    ]

    goes_on = "resume" in {parameter.name for parameter in parameters}
    if goes_on:
        parameters.append(
            inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        )

    @functools.wraps(command)
    def called(**given: Any) -> None:
        if goes_on and given["resume"] is not None:
            _require_as_begun(given.pop(_CONTEXT), records.values())
        built = {
            name: Asked(record, given) if get_origin(hints[name]) is Asked else _built(record, given)
            for name, record in records.items()
        }
        command(**built, **{name: given[name] for name in hints if name in given and name not in records})

    # Arguments keep their order; what typer reads is the signature, and in older versions the annotations.
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__doc__ = command.__doc__ or next(iter(records.values())).__doc__
    del called.__wrapped__
    return called


def _require_as_begun(context: typer.Context, records: Iterable[Any]) -> None:
    """Raise UsageError where an option is given that a run which goes on has from its beginning."""
    fields = [field for record in records for field in map(_Field, fields_of(record))]
    others = [
        field.shown if isinstance(field.option, Argument) else field.names[0].partition("/")[0]
        for field in fields
        if field.name != "resume" and not field.option.goes_on and _is_given(context, field)
    ]
    if others:
        raise UsageError(f"--resume with {', '.join(others)}: a run goes on as it was begun")


def _is_given(context: typer.Context, field: _Field) -> bool:
    source = context.get_parameter_source(field.name)
    return source is not None and source.name == "COMMANDLINE"


def instead(show: Callable[[Any], None], help_: str, *names: str, **more: Any) -> Any:
    """Return an option that prints something and does nothing else, whatever is missing beside it."""

    def printed(value: Any) -> None:
        if value:
            show(value)
            raise typer.Exit

    return typer.Option(*names, help=help_, callback=printed, is_eager=True, **more)


class Asked(Generic[_Request]):
    """A request that is made where it is called for: what goes without one is looked at before."""

    def __init__(self, record: Callable[..., _Request], given: Mapping[str, Any]) -> None:
        self._record, self._given = record, given

    def __call__(self) -> _Request:
        """Return it; raises UsageError where something is missing or no value."""
        made: _Request = _built(self._record, self._given)
        return made

    def value(self, name: str) -> Any:
        """Return the value of one field."""
        field = next(field for field in map(_Field, fields_of(self._record)) if field.name == name)
        return field.parsed(self._given.get(name))


def _record_of(kind: Any) -> Any:
    """Return the record of a parameter; None where it is declared as typer wants it."""
    kind = get_args(kind)[0] if get_origin(kind) is Asked else kind
    return kind if dataclasses.is_dataclass(kind) else None


def _plain(parameter: inspect.Parameter, kind: Any) -> inspect.Parameter:
    return parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY)


class _Field:
    """A field of a request, as the command line has it."""

    def __init__(self, field: Field) -> None:
        self.name, self.kind, self.option, self.required, self.value = field

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the option, with dashes."""
        suffix = self.option.unit.suffix if self.option.unit is not None else ""
        name = self.name.removesuffix(suffix).replace("_", "-")
        return self.option.names or (f"--{name}/--no-{name}" if self.value is True else f"--{name}",)

    @property
    def shown(self) -> str:
        """How messages name it."""
        metavar = self.option.metavar or self.name.upper()
        return metavar if isinstance(self.option, Argument) else f"{self.names[0]} {metavar}"

    @property
    def is_negated(self) -> bool:
        """Whether the option turns off what is on without it."""
        return self.value is True and "/" not in self.names[0]

    @property
    def default(self) -> Any:
        """The default as it is written on the command line."""
        if self.is_negated:
            return False
        if self.value is None or self.value == ():
            return None
        if not self.is_text:
            return list(self.value) if isinstance(self.value, tuple) else self.value
        return self.option.separator.join(
            map(self._spelled, self.value if self.option.separator else [self.value])
        )

    @property
    def is_text(self) -> bool:
        """Whether its value is a text on the command line, whatever it is in Python."""
        return bool(self.option.unit or self.option.separator)

    def parsed(self, given: Any) -> Any:
        """Return the field's value; raise UsageError that names the option."""
        if self.is_negated:
            return not given
        if given is None or not self.is_text:
            return self.value if given is None else given
        try:
            return self._several(given) if self.option.separator else self._one(given)
        except UsageError as error:
            raise UsageError(f"{self.names[0]}: {error}") from None

    def _several(self, given: str) -> list[Any]:
        words = [word.strip() for word in given.split(self.option.separator)]
        if "" in words or (self.option.unit is None and len(set(words)) < len(words)):
            raise UsageError(f"{given!r}: values separated by '{self.option.separator}', each once")
        return [self._one(word) for word in words]

    def _one(self, word: str) -> Any:
        return self.option.unit.parse(word) if self.option.unit is not None else word

    def _spelled(self, value: Any) -> str:
        return self.option.unit.spell(value) if self.option.unit is not None else str(value)


def _parameters(record: Any) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=Annotated[_typed(field), _as_typer(field)],
        )
        for field in map(_Field, fields_of(record))
        if not isinstance(field.option, Elsewhere)
    ]


def _built(record: Any, given: Mapping[str, Any]) -> Any:
    """Return the request; raise UsageError where something is missing or no value."""
    fields = [_Field(field) for field in fields_of(record)]
    missing = [field for field in fields if field.required and not given.get(field.name, True)]
    if missing:
        what = f": {missing[0].option.help.removesuffix('.')}" if len(missing) == 1 else ""
        raise UsageError(f"give {', '.join(field.shown for field in missing)}{what}")
    return record(**{field.name: field.parsed(given.get(field.name)) for field in fields})


def option_of(field: Any, name: str) -> Any:
    """Return typer's option of a field that requests share, for a verb that is declared as typer wants it."""
    kind, said = get_args(field)
    return _as_typer(_Field(Field(name, kind, said, required=False, default=None)))


def _as_typer(field: _Field) -> Any:
    option = field.option
    more: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if option.complete:
        more["autocompletion"] = _completion(option.complete)
    if field.kind in (int, float, int | None, float | None) and option.unit is None:
        more |= {"min": option.least, "max": option.most}
    if option.default:
        more["show_default"] = option.default
    if isinstance(option, Argument):
        return typer.Argument(**more, show_default=False)
    return typer.Option(*field.names, **more)


def _completion(offered: str | Sequence[str]) -> Callable[..., list[str]]:
    found: Callable[..., list[str]] = (
        getattr(complete, offered) if isinstance(offered, str) else complete.one_of(offered)
    )
    return found


def _typed(field: _Field) -> Any:
    kind = field.option.typed or (str if field.is_text else _kind(field.kind))
    return kind | None if field.default is None else kind


def _kind(kind: Any) -> Any:
    """Return the type that the command line takes for one that Python takes."""
    origin, inner = get_origin(kind), [one for one in get_args(kind) if one is not NoneType]
    if origin in (Union, UnionType):
        return _kind(inner[0]) if len(inner) == 1 else max(map(_kind, inner), key=_RICHER.index)
    if origin is Literal or kind in _PLAIN:
        return kind
    return list[_kind(inner[0])] if origin in (Sequence, list, tuple) else str  # type: ignore[misc]
