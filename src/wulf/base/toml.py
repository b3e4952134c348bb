"""TOML files that people write, as records: what is wrong in them is named by file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
import msgspec.inspect

from wulf.base import toml_lines
from wulf.base.errors import ConfigError
from wulf.base.text import nearest, printable

_Kind = TypeVar("_Kind")
#: No file is longer.
MOST_CHARACTERS = 16 << 20
#: Where in what was read the validation stands.
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_FIELD = re.compile(r"(?:unknown|required) field `([^`]*)`")
#: How the validation names what may be of several kinds.
_UNION = re.compile(r"`(\w+(?: \| \w+)+)`")
#: How the validation names kinds of values → how people who write TOML do.
_KINDS = {
    "`object`": "a table",
    "`array`": "a list",
    "`str`": "text in quotes",
    "`int`": "a whole number",
    "`float`": "a number",
    "`bool`": "true or false",
}
#: How the validation writes any key of a table whose keys are free.
_ANY = "[...]"


@dataclass(frozen=True)
class Document(Generic[_Kind]):
    """What a file says, with where it says it."""

    value: _Kind
    #: The file, for messages.
    origin: str
    #: Path of a key → its line.
    lines: Mapping[str, int]

    def fail(self, path: str, complaint: str) -> NoReturn:
        """Refuse what stands at a key.

        Raises
        ------
        ConfigError
            Names the file, the line and the key.
        """
        raise refusal(self.origin, self.lines, path, complaint)


def refusal(origin: str, where: Mapping[str, int], path: str, complaint: str) -> ConfigError:
    """Return the error that names a file, the line of a key, the key, and what is wrong with it."""
    line = toml_lines.nearest(path, where)
    at = f":{line}" if line else ""
    path, complaint = printable(path, 200), printable(complaint, 1000)
    return ConfigError(f"{origin}{at}: {path}: {complaint}" if path else f"{origin}{at}: {complaint}")


def read(text: bytes, origin: str, kind: type[_Kind], advice: str = "") -> Document[_Kind]:
    """Read the text of a file.

    Parameters
    ----------
    advice
        What helps, at the end of every message.

    Raises
    ------
    ConfigError
        It is not TOML, or not of the kind; names the file, the line and the key.
    """
    more = f"; {advice}" if advice else ""
    try:
        words = text.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{origin}: it is not UTF-8 text{more}") from None
    raw = table(words, origin, more)
    where = toml_lines.of_keys(words)
    try:
        return Document(msgspec.convert(raw, kind), origin, where)
    except msgspec.ValidationError as error:
        path, complaint = said(raw, kind, str(error))
        raise refusal(origin, where, path, f"{complaint}{more}") from None


def table(text: str, origin: str, more: str = "") -> dict[str, Any]:
    """Return a TOML text as a table.

    Parameters
    ----------
    more
        What stands at the end of every message.

    Raises
    ------
    ConfigError
        It is none, or larger and deeper than a person writes; names the file and, where it is known, the line.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{origin}: more than {MOST_CHARACTERS >> 20} MiB: no hand-written file is so large{more}"
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        line = int(place[1]) if place else max(1, len(text.splitlines()))
        raise ConfigError(f"{origin}:{line}: not TOML: {printable(str(error), 200)}{more}") from None
    except RecursionError:
        raise ConfigError(f"{origin}: lists or tables nested too deeply{more}") from None
    except ValueError as error:
        # Python converts no number of thousands of digits, and says nothing of the line.
        raise ConfigError(f"{origin}: a value out of range: {printable(str(error), 200)}{more}") from None


def said(raw: dict[str, Any], kind: type, message: str) -> tuple[str, str]:
    """Return the path of a key and the complaint, of what the validation says of a table that is not of a kind."""
    found = _PATH.search(message)
    path, complaint = (found["path"], message[: found.start()]) if found else ("", message)
    if path.count(_ANY) == 1:
        path = _with_key(raw, kind, path, message)
    if complaint.startswith("Invalid enum value"):
        choices = ", ".join(map(str, _choices(kind, path)))
        complaint += f": one of {choices}" if choices else ""
    field = _FIELD.search(complaint)
    if field is not None:
        known = _keys(kind, path)
        complaint = "missing" if "required" in complaint else f"unknown key{_instead(field[1], known)}"
        path = f"{path}.{field[1]}" if path else field[1]
    return path, in_words(complaint)


def _instead(key: str, known: Sequence[str]) -> str:
    """Return a half sentence that says which key may be meant, or which there are."""
    return nearest(key, known) or (f"; there are: {', '.join(known)}" if known else "")


def _alternatives(found: re.Match[str]) -> str:
    """Return kinds of a union, each as the validation names one; nobody writes null in TOML."""
    return " or ".join(f"`{kind}`" for kind in found[1].split(" | ") if kind != "null")


def in_words(complaint: str) -> str:
    """Return what the validation complains of without names of Python's types."""
    complaint = _UNION.sub(_alternatives, complaint)
    for kind, plain in _KINDS.items():
        complaint = complaint.replace(kind, plain)
    return complaint[:1].lower() + complaint[1:]


def _choices(kind: type, path: str) -> tuple[object, ...]:
    """Return what may stand at a path."""
    return tuple(getattr(_at(kind, path), "values", ()))


def _keys(kind: type, path: str) -> list[str]:
    """Return the keys of the table at a path."""
    return [field.encode_name for field in getattr(_at(kind, path), "fields", ())]


def _at(kind: type, path: str) -> Any:
    """Return the kind of what stands at a path."""
    found: Any = msgspec.inspect.type_info(kind)
    for part in re.findall(r"[^.\[\]]+", path):
        found = _inner(found, part)
    return found


def _inner(kind: Any, part: str) -> Any:
    """Return the kind of a part: of a field, an element, or what stands at a key."""
    if isinstance(kind, msgspec.inspect.StructType):
        kind = next((field.type for field in kind.fields if field.encode_name == part), None)
    else:
        kind = getattr(kind, "value_type", None) or getattr(kind, "item_type", kind)
    if isinstance(kind, msgspec.inspect.UnionType):
        kinds = [one for one in kind.types if not isinstance(one, msgspec.inspect.NoneType)]
        kind = next((one for one in kinds if isinstance(one, msgspec.inspect.StructType)), kinds[0])
    return kind


def _with_key(raw: dict[str, Any], kind: type, path: str, message: str) -> str:
    """Return a path with the free key in it for which the validation says the same when no other is there."""
    name = path.partition(_ANY)[0]
    for key, value in raw[name].items():
        try:
            msgspec.convert(raw | {name: {key: value}}, kind)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return path.replace(_ANY, f".{key}")
    return name
