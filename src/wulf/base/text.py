"""Make text that came from a node or a file safe to show."""

from __future__ import annotations

import difflib
import re
import shlex
import unicodedata
from collections.abc import Iterable

#: Verbs as `count` takes them.
IS, WAS, HAS = ("is", "are"), ("was", "were"), ("has", "have")
_KEPT = {"\n", "\t"}
#: What mpirun says of a job is between two such lines.
_FRAME = re.compile(r"(-{20,}|={20,})")
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
#: No value that belongs into a command is longer [characters].
_LONGEST_WORD = 200


def printable(raw: bytes | str, limit: int = 2000) -> str:
    """Return `raw` without control, bidirectional or escape characters, cut to `limit` characters."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    if len(text) <= limit and text.isprintable():
        return text
    kept = "".join(c if c in _KEPT or unicodedata.category(c)[0] != "C" else "�" for c in text)
    return kept if len(kept) <= limit else kept[:limit] + "…"


def last_line(raw: bytes | str) -> str:
    """Return the last line that has a letter or digit in it, safe to show; empty when there is none."""
    lines = [line.strip(" \t�") for line in printable(raw).splitlines()]
    return next((line for line in reversed(lines) if any(map(str.isalnum, line))), "")


def last_words(raw: bytes | str) -> str:
    """Return why a program ended, by what it printed last; empty when it printed nothing.

    That is the last line. Where mpirun speaks for a job it ends with advice: then it is what the program said before,
    and the first paragraph of what mpirun says.
    """
    lines = [line.strip() for line in printable(raw, 1 << 16).splitlines()]
    frames = [place for place, line in enumerate(lines) if _FRAME.fullmatch(line)]
    if len(frames) < 2:
        return last_line(raw)
    before, framed = lines[: frames[0]], lines[frames[0] + 1 : frames[1]]
    paragraphs = [" ".join(part.split()) for part in "\n".join(framed).split("\n\n")]
    first, *others = [part for part in paragraphs if part] or [""]
    if first.endswith(":"):
        first = " ".join([first, *others[:1]])
    return "; ".join(filter(None, [last_line("\n".join(before)), first]))


def is_interface(name: str) -> bool:
    """Whether `name` can be the name of a network interface (at most 15 characters)."""
    return _INTERFACE.fullmatch(name) is not None


def in_command(text: str, otherwise: str) -> str:
    """Return `text`, which may be anything, as part of one word of a command that people paste into a shell.

    What a shell would take apart is quoted. What quotes do not help against is left out: what would be an option, what
    cannot be seen (escapes, other lines), what is empty or absurdly long.

    Parameters
    ----------
    otherwise
        What stands there instead, for the reader to fill in.
    """
    if not text or text[0] in "-" or len(text) > _LONGEST_WORD or not text.isprintable():
        return otherwise
    return shlex.quote(text)


def interface_in_command(name: object) -> str:
    """Return the name of an interface as part of a command; of what cannot be one, ``INTERFACE``."""
    return str(name) if is_interface(str(name)) else "INTERFACE"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a half sentence that suggests the known word most like `word`; empty when none is."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.65)
    return f"; did you mean '{close[0]}'?" if close else ""


def choices(word: str, known: Iterable[str]) -> str:
    """Return what is added where a word is none of the known ones: which is most like it, and all of them."""
    names = list(known)
    listed = f"are: {', '.join(names)}"
    close = nearest(word, names)
    return f"{close} There {listed}" if close else f"; there {listed}"


def count(number: int, noun: str, plural: str = "", verbs: tuple[str, str] | None = None) -> str:
    """Return a number and what is counted: '1 launch', '2 launches', '1 node has', '0 nodes have'.

    Parameters
    ----------
    plural
        Where it is not regular.
    verbs
        What follows: of one, of several.
    """
    said = f"{number} {noun if number == 1 else plural or _plural(noun)}"
    return said if verbs is None else f"{said} {verbs[number != 1]}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "sh", "s", "x")) else f"{noun}s"
