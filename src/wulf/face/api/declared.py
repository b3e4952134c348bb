"""Functions of declared requests (`wulf.base.request`): each field is an argument."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, get_type_hints

from wulf.base.errors import UsageError
from wulf.base.request import Field, Option, fields_of
from wulf.base.tool import Progress
from wulf.face.api.arguments import is_of, words_of
from wulf.face.api.common import LOGGED

_Arguments = ParamSpec("_Arguments")
_Request = TypeVar("_Request")
_Record = TypeVar("_Record")


def function(
    request: Callable[_Arguments, _Request], work: Callable[[_Request, Progress], _Record], name: str = ""
) -> Callable[_Arguments, _Record]:
    """Return what takes the fields of a request as arguments, and does the work.

    Parameters
    ----------
    request
        Its class.
    name
        Of the function; that of the class without "Request" where none is given.
    """
    fields = {field.name: field for field in fields_of(request)}
    signature = inspect.signature(request)
    shown = [
        parameter.replace(annotation=fields[name].kind) for name, parameter in signature.parameters.items()
    ]

    earlier = {spelled: field.name for field in fields.values() for spelled in _earlier_names(field)}

    def called(*values: _Arguments.args, **given: _Arguments.kwargs) -> _Record:
        named: Any = {earlier.get(argument, argument): value for argument, value in given.items()}
        for argument, value in signature.bind(*values, **named).arguments.items():
            _require(fields[argument], value)
        return work(request(*values, **named), LOGGED)

    called.__name__ = called.__qualname__ = name or request.__name__.removesuffix("Request").lower()
    called.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=shown, return_annotation=get_type_hints(work).get("return", Any)
    )
    called.__doc__ = "\n".join([inspect.cleandoc(request.__doc__ or ""), *_parameters(request)])
    return called


def _earlier_names(field: Field) -> Iterator[str]:
    """Yield what the argument was called when the option had an earlier name."""
    suffix = field.option.unit.suffix if field.option.unit is not None else ""
    for name in field.option.names[1:]:
        yield name.lstrip("-").replace("-", "_") + suffix


def _require(field: Field, value: object) -> None:
    """Raise UsageError where a value is not of the field's type, or beyond its bounds; names the argument."""
    said = f"{field.name}={value!r:.80}"
    if not is_of(value, field.kind):
        raise UsageError(f"{said}: {words_of(field.kind)}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        _require_within(field.option, value, said)


def _require_within(option: Option, value: float, said: str) -> None:
    unit, least, most = option.unit, option.least, option.most
    if unit is not None and not unit.above < value < unit.below:
        raise UsageError(f"{said}: {unit.words}")
    if least is not None and not value >= least:
        raise UsageError(f"{said}: {least:g} or more")
    if most is not None and not value <= most:
        raise UsageError(f"{said}: {most:g} or less")


def _parameters(request: Any) -> Iterator[str]:
    """Yield the lines of the section of a docstring that says what the arguments are."""
    yield from ("", "Parameters", "----------")
    for field in fields_of(request):
        yield field.name
        yield textwrap.fill(field.option.help, 100, initial_indent="    ", subsequent_indent="    ")
