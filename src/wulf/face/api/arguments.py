"""Arguments of the functions: of the wrong kind or out of their range they are refused before anything is done."""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union

from wulf.base.errors import UsageError

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")
#: Arguments that are shares of one.
_SHARES = frozenset({"precision", "margin"})
_NUMBERS: dict[object, type] = {int: Integral, float: Real}
_WORDS: dict[object, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Path: "a path",
}


def checked(verb: Callable[_Arguments, _Returned]) -> Callable[_Arguments, _Returned]:
    """Have a function refuse what its annotations do not allow, by a UsageError that names the argument."""
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def called(*values: _Arguments.args, **named: _Arguments.kwargs) -> _Returned:
        kinds = typing.get_type_hints(verb)
        for name, value in signature.bind(*values, **named).arguments.items():
            _require(name, value, kinds[name])
        return verb(*values, **named)

    return called


def _require(name: str, value: object, kind: Any) -> None:
    said = f"{name}={value!r:.80}"
    if not is_of(value, kind):
        raise UsageError(f"{said}: {words_of(kind)}")
    if not isinstance(value, Real):
        return
    if name.endswith("_s") and not 0 < float(value) < math.inf:
        raise UsageError(f"{said}: seconds, more than 0")
    if name in _SHARES and not 0 < float(value) < 1:
        raise UsageError(f"{said}: a share between 0 and 1, such as 0.02")


def is_of(value: object, kind: Any) -> bool:
    """Whether a value is of a kind that annotations name."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_of(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is Sequence:
        # A text is a sequence of letters, which nobody means.
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        return is_list and all(is_of(one, inner[0]) for one in typing.cast("Sequence[object]", value))
    found = isinstance(value, _NUMBERS.get(kind, origin or kind))
    return found and isinstance(value, bool) == (kind is bool)


def words_of(kind: Any) -> str:
    """Return what a value of a kind is, for a message."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(words_of(one) for one in inner)
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is Sequence:
        return f"a list, each of it {words_of(inner[0])}"
    return _WORDS.get(kind) or str(getattr(kind, "__name__", kind))
