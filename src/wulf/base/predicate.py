"""The small language of checks: what must hold of a node's facts. Pure, and without ``eval``.

A predicate is an expression over names of facts, in Python's syntax::

    nic.duplex == "full" and nic.speed_bits_per_s >= nic.speed_max_bits_per_s
    not has(network.foreign_interfaces, "docker0") or known(ompi.btl_tcp_if_include)

There are: names of facts, numbers, strings, ``True``, ``False``, lists, ``and or not``, comparisons, ``in``,
``+ - * /``, and the functions

``known(fact)``
    Whether the fact has a value.
``missing(fact)``
    Whether it is absent or unsupported: there is nothing to have a value.
``unknown(fact)``
    Whether the node does not tell it.
``has(text, word)``
    Whether a word is in a text of words.
``number(text)``
    A text as a number.
``fact("name")``
    A fact whose name is no Python name.
``special(knob)``
    Whether the value of a knob is a mode of the interface's driver, not the number that it looks like.

The value of a sysctl or a knob is a text. Beside a number, and where an order is asked for, a text counts as the
number that it says: ``sysctl.net.ipv4.tcp_sack != 0``, ``nic.mtu >= 9000``. A text that says none is not a number's
equal, and has no order.

Logic has three values. A fact that is unknown makes what needs it unknown, but ``False and …`` is false and
``True or …`` is true whatever the rest is. A fact that is absent or unsupported makes what needs it not
applicable.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from wulf.base import catalogue
from wulf.base.errors import ConfigError
from wulf.base.records import FactValue, NodeRecord
from wulf.base.text import count

#: The fact on which the meaning of a value may depend.
DRIVER = "nic.driver"
_LONGEST = 2000


class Gap(msgspec.Struct, frozen=True):
    """In place of a value: why there is none."""

    kind: Literal["unknown", "not applicable"]
    reason: str


Value = FactValue | Gap | list["Value"]
State = tuple[str, FactValue]
_Node = Callable[[NodeRecord], Value]


def _number(value: Any) -> float:
    """Return a value as a number; raises what `_lift` takes for an answer."""
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a number")
    try:
        return int(value)
    except ValueError:
        return float(value)


def _of_numbers(function: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    return lambda left, right: function(_number(left), _number(right))


def _equal(left: Any, right: Any) -> bool:
    text, other = (left, right) if isinstance(left, str) else (right, left)
    if not isinstance(text, str) or isinstance(other, str):
        return bool(left == right)
    if isinstance(other, bool):
        raise TypeError(f"the text {text!r} is neither True nor False")
    try:
        return bool(_number(text) == other)
    except ValueError:
        return False


def _within(item: Any, container: Any) -> bool:
    if isinstance(container, list):
        return any(_equal(item, one) for one in container)
    return item in container


_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: _equal,
    ast.NotEq: lambda left, right: not _equal(left, right),
    ast.Lt: _of_numbers(operator.lt),
    ast.LtE: _of_numbers(operator.le),
    ast.Gt: _of_numbers(operator.gt),
    ast.GtE: _of_numbers(operator.ge),
    ast.In: _within,
    ast.NotIn: lambda item, container: not _within(item, container),
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], float]] = {
    ast.Add: _of_numbers(operator.add),
    ast.Sub: _of_numbers(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
}


class Predicate:
    """A compiled expression.

    Parameters
    ----------
    source
        Where it stands, for messages.

    Raises
    ------
    ConfigError
        When it is not an expression of this language; says where.
    """

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self.names: set[str] = set()
        if len(text) > _LONGEST:
            raise ConfigError(f"{source}: the predicate is too long")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(f"{source}: {text!r} is not a predicate: {error}") from None
        self._run = self._compile(tree.body)

    def __call__(self, node: NodeRecord) -> bool | Gap:
        """Whether it holds on a node, or why that cannot be told."""
        value = self._run(node)
        return value if isinstance(value, Gap) else bool(value)

    def value(self, node: NodeRecord) -> Value:
        """Return what the expression is on a node."""
        return self._run(node)

    def _compile(self, node: ast.expr) -> _Node:  # noqa: PLR0911 - one return for each kind of expression
        match node:
            case ast.Constant(value=(bool() | int() | float() | str()) as constant):
                return lambda _: constant
            case ast.List():
                return _each([self._compile(item) for item in node.elts])
            case ast.Name() | ast.Attribute():
                return self._fact(self._dotted(node))
            case ast.BoolOp():
                parts = [self._compile(part) for part in node.values]
                return _all(parts) if isinstance(node.op, ast.And) else _any(parts)
            case ast.UnaryOp(op=ast.Not()):
                return _lift(operator.not_, [self._compile(node.operand)])
            case ast.UnaryOp(op=ast.USub()):
                return _lift(lambda value: -_number(value), [self._compile(node.operand)])
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                both = [self._compile(node.left), self._compile(node.right)]
                return _lift(_ARITHMETIC[type(node.op)], both)
            case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self._call(name, node.args)
        raise self._error(node)

    def _comparison(self, node: ast.Compare) -> _Node:
        terms = [self._compile(term) for term in (node.left, *node.comparators)]
        return _all(
            [
                _lift(_COMPARE[type(op)], [left, right])
                for op, left, right in zip(node.ops, terms, terms[1:], strict=False)
            ]
        )

    def _call(self, name: str, arguments: list[ast.expr]) -> _Node:
        match name, arguments:
            case (("known" | "missing" | "unknown"), [argument]):
                fact = self._fact(self._dotted(argument))
                return {"known": _known, "missing": _missing, "unknown": _unknown}[name](fact)
            case "has", [text, word]:
                both = [self._compile(text), self._compile(word)]
                return _lift(lambda words, one: str(one) in str(words).replace(",", " ").split(), both)
            case "number", [text]:
                return _lift(lambda value: float(str(value)), [self._compile(text)])
            case "fact", [ast.Constant(value=str() as wanted)]:
                return self._fact(wanted)
            case "special", [argument]:
                return self._special(self._dotted(argument))
        raise ConfigError(
            f"{self._source}: there is no function {name}() with {count(len(arguments), 'argument')}"
        )

    def _dotted(self, node: ast.expr) -> str:
        match node:
            case ast.Name():
                return node.id
            case ast.Attribute():
                return f"{self._dotted(node.value)}.{node.attr}"
            case ast.Call(func=ast.Name(id="fact"), args=[ast.Constant(value=str() as name)]):
                return name
        raise self._error(node)

    def _fact(self, name: str) -> _Node:
        self.names.add(name)
        return lambda node: look_up(node, name)

    def _special(self, name: str) -> _Node:
        knob = catalogue.knobs().get(name)
        if knob is None:
            raise ConfigError(f"{self._source}: special({name}): there is no such knob")
        self.names |= {name, DRIVER}

        def run(node: NodeRecord) -> Value:
            value = look_up(node, name)
            if isinstance(value, Gap):
                return value
            return str(value) in catalogue.specials(knob, node.facts.get(DRIVER))

        return run

    def _error(self, node: ast.AST) -> ConfigError:
        return ConfigError(f"{self._source}: {ast.unparse(node)!r} is not allowed in a predicate")


def state(node: NodeRecord, name: str) -> State:
    """Return (``value``, value), or (``absent``, ``unsupported`` or ``unknown``, reason)."""
    if name in node.facts:
        return "value", node.facts[name]
    if name in node.unsupported:
        return "unsupported", node.unsupported[name]
    if name in node.unknown:
        return "unknown", node.unknown[name]
    return "absent", node.absent.get(name)


def look_up(node: NodeRecord, name: str) -> Value:
    """Return a fact's value, or why it has none."""
    kind, value = state(node, name)
    if kind == "value":
        return value
    if kind == "unknown":
        return Gap("unknown", f"{name}: {value}")
    return Gap("not applicable", f"{name}: {kind}" + (f" ({value})" if value else ""))


def _worst(gaps: list[Gap]) -> Gap:
    return next((gap for gap in gaps if gap.kind == "unknown"), gaps[0])


def _lift(function: Callable[..., object], parts: list[_Node]) -> _Node:
    """Apply a function where all its arguments have values."""

    def run(node: NodeRecord) -> Value:
        values = [part(node) for part in parts]
        gaps = [value for value in values if isinstance(value, Gap)]
        if gaps:
            return _worst(gaps)
        try:
            return function(*values)  # type: ignore[return-value]
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            return Gap("unknown", f"the facts do not fit the check: {error}")

    return run


def _each(parts: list[_Node]) -> _Node:
    def run(node: NodeRecord) -> Value:
        values = [part(node) for part in parts]
        gaps = [value for value in values if isinstance(value, Gap)]
        return _worst(gaps) if gaps else values

    return run


def _all(parts: list[_Node]) -> _Node:
    return _fold(parts, decisive=False)


def _any(parts: list[_Node]) -> _Node:
    return _fold(parts, decisive=True)


def _fold(parts: list[_Node], *, decisive: bool) -> _Node:
    def run(node: NodeRecord) -> Value:
        gaps = []
        for part in parts:
            value = part(node)
            if isinstance(value, Gap):
                gaps.append(value)
            elif bool(value) is decisive:
                return decisive
        return _worst(gaps) if gaps else not decisive

    return run


def _known(fact: _Node) -> _Node:
    return lambda node: not isinstance(fact(node), Gap)


def _missing(fact: _Node) -> _Node:
    def run(node: NodeRecord) -> Value:
        value = fact(node)
        if isinstance(value, Gap):
            return True if value.kind == "not applicable" else value
        return False

    return run


def _unknown(fact: _Node) -> _Node:
    def run(node: NodeRecord) -> Value:
        value = fact(node)
        return isinstance(value, Gap) and value.kind == "unknown"

    return run
