"""What a node's guard does for somebody who is not root and calls it by way of sudo.  Pure.

A step that is not of the catalogue, or a file that `wulf settings persist` would not have written, is refused by
the guard, which looks things up in the tables made here (`guard_parts/grant.sh`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from wulf.base import catalogue
from wulf.base.catalogue import Knob
from wulf.node.change import persist, script
from wulf.node.change.persist import INTERFACE

#: Verb → the forms of its words (`is_granted_word` in `grant.sh`). What is not here cannot be called through sudo.
VERBS = {
    "lock": "owner number",
    "unlock": "owner",
    "begin": "change owner number",
    "apply": "change",
    "swap": "change change owner number",
    "part": "change steps",
    "alternate": "change steps steps",
    "extend": "change number",
    "confirm": "change",
    "undo": "change why",
    "rollback": "change owner number change",
    "leaves": "change",
    "abandon": "change",
    "status": "",
    "where": "",
}
#: What the values of a knob are made of, as an extended regular expression.
# Not `@` first: that is the state that a change has saved.
_WORDS = "[A-Za-z0-9_.,:;=/+][A-Za-z0-9_.,:;=/+@ -]*"
_VALUES = {"tuned": "[A-Za-z0-9_-][A-Za-z0-9_.-]*", "module": "[A-Za-z0-9_.,:;=/+-]*", "route": "[a-z0-9]+"}


def table() -> str:
    """Return the shell functions that print what is granted."""
    return "\n".join(
        [
            _function("granted_verbs", (f"{verb} {words}".strip() for verb, words in VERBS.items())),
            _function("granted_steps", _steps()),
            _function("granted_files", ("\t".join(row) for row in _files())),
            _function("granted_boot", [script.boot_text()]),
        ]
    )


def _function(name: str, lines: Iterator[str] | list[str]) -> str:
    text = "\n".join(line.rstrip("\n") for line in lines)
    return f"{name}() {{\n\tcat <<'END_OF_GRANTED'\n{text}\nEND_OF_GRANTED\n}}\n"


def _steps() -> Iterator[str]:
    """Kind, target and regular expression of the values of all that can be set."""
    for knob in catalogue.knobs().values():
        if not catalogue.unsettable(knob):
            target = knob.access.target.replace("{interface}", INTERFACE)
            yield "\t".join((knob.access.kind, target, _values(knob)))
            if knob.access.kind == "service":
                yield "\t".join(("unit", target, "enabled|disabled"))


def _values(knob: Knob) -> str:
    if knob.access.kind in _VALUES:
        return _VALUES[knob.access.kind]
    if knob.type == "int":
        return "|".join(["-?[0-9]+", *(re.escape(value) for value in knob.values or () if value.isalpha())])
    if knob.type in ("bool", "service", "enum") and knob.values:
        return "|".join(re.escape(value).replace("\\-", "-") for value in knob.values)
    return _WORDS


def _files() -> Iterator[tuple[str, str]]:
    """Path, as a regular expression, and what may be there, of all that is written to keep settings."""
    for path, what in persist.places():
        if isinstance(what, str):
            yield (path, what)
        else:
            yield (path, "text:" + "|".join(_digest(text) for text in what))


def _digest(text: str) -> str:
    """Return the digest of a text without the line that says whose it is, whatever the interface's name."""
    plain = text.replace(persist.marker("") + "\n", "").replace(f"'{INTERFACE} up'", INTERFACE)
    return hashlib.sha256(plain.encode()).hexdigest()
