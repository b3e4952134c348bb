"""Every command of wulf that a page, a message or a document prints is one that the program's own parser takes."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from tests.cli.command import wulf
from tests.unit import sources, subjects
from wulf.face.cli.main import app
from wulf.node.cluster import inventory
from wulf.page.document import Heading, document
from wulf.page.parts import Table

pytestmark = pytest.mark.xdist_group(sources.GROUP)
ROOT = Path(__file__).parents[2]
#: Written by `make docs` from the parser itself; decisions and results tell of verbs as they were.
GENERATED = ("docs/reference/commands.md", "docs/reference/json.md", "docs/adr/")
#: Where a command ends: what a shell goes on with, and what prose does.
_END = re.compile(r"\s(?:&&|\|\|?|;|>|2>|#)(?:\s|$)|;(?:\s|$)|\s#|\s>|\s\(|&&")
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_IN_PROSE = re.compile(r"(?<![\w/.-])wulf ((?:[a-z]|--)[^`\"\n]*)")
#: What CONTRIBUTING shows how to add.
EXAMPLES = ("wulf bench goodput",)
#: A word of an f-string that is only known when it runs.
_UNKNOWN = "PLACE"


class Printed(NamedTuple):
    where: str
    text: str


def documents() -> Iterator[Printed]:
    for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = str(file.relative_to(ROOT))
        if name.startswith(GENERATED):
            continue
        text = file.read_text(encoding="utf-8")
        fenced = "\n".join(_FENCE.findall(text)).replace("\\\n", " ")
        prose = _FENCE.sub("", text)
        for line in [*fenced.splitlines(), *_CODE.findall(prose)]:
            yield from commands_of(name, line)


def strings(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield every string of a program, docstrings and what is put together of parts, too."""
    inner = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else _UNKNOWN for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.value


def messages() -> Iterator[Printed]:
    for file, nodes in sources.nodes().items():
        for text in strings(nodes):
            for quoted in re.findall(r"'(wulf [^'\n]*)'", " ".join(text.split())):
                yield from commands_of(str(file.relative_to(ROOT)), quoted)
    for file in sorted((ROOT / "src/wulf/data").rglob("*.toml")):
        for quoted in re.findall(r"['\"`](wulf [^'\"`\n]*)", file.read_text(encoding="utf-8")):
            yield from commands_of(str(file.relative_to(ROOT)), quoted)


def pages() -> Iterator[Printed]:
    """Yield what pages print, with names of nodes and knobs in it."""
    for name, place in subjects.CASES:
        for basic in document(subjects.page(name, subjects.sample(name, place))):
            texts = (
                [item.text for row in basic.rows for item in row]
                if isinstance(basic, Table)
                else [basic.text if hasattr(basic, "text") else "\n".join(basic.lines)]
            )
            for text in texts if not isinstance(basic, Heading) else []:
                for line in text.splitlines():
                    yield from commands_of(f"page of {name}", line, whole=line.startswith("wulf "))


def commands_of(where: str, line: str, *, whole: bool = True) -> Iterator[Printed]:
    """Yield the commands that a line begins, or has after `&&` and the like."""
    if not whole:
        for quoted in re.findall(r"'(wulf [^']*)'", line):
            yield from commands_of(where, quoted)
        return
    for part in re.split(r"\s(?:&&|\|\|?)\s|;\s", line.strip().removeprefix("$ ")):
        found = re.match(r"(?:[A-Z_]+=\S+ )*(wulf .+)", part.strip())
        if found:
            yield Printed(where, found[1])


@cache
def root() -> Any:
    return typer.main.get_command(app)


def words(text: str) -> list[str]:
    """Return the words of a command, without what a shell or a sentence goes on with."""
    found = _END.search(text)
    cut = text[: found.start()] if found else text
    try:
        return shlex.split(cut)[1:]
    except ValueError:  # an open quote
        return cut.split()[1:]


def parsed(text: str) -> None:
    """Have a command taken apart as the program does it; fails with the parser's own words."""
    command, rest = root(), words(text)
    context: Any = typer.Context(command, info_name="wulf")
    while rest and hasattr(command, "get_command"):
        found = command.get_command(context, rest[0]) if re.fullmatch(r"[a-z][a-z0-9-]*", rest[0]) else None
        if found is None:
            break
        command, rest = found, rest[1:]
        context = typer.Context(command, info_name="wulf", parent=context)
    own = _of_its_own(command, context)
    if own is None:
        own = command
        assert not rest or rest[0].startswith("-"), f"no verb {rest[0]!r}"
    _taken(own, typer.Context(own, info_name="wulf"), rest)


def _of_its_own(command: Any, context: Any) -> Any:
    """Return what a verb does where none of those within it is named; None where it then does nothing."""
    if not hasattr(command, "get_command"):
        return command
    own = getattr(command, "_own", None)
    # 'wulf program trace -- COMMAND' is short for 'wulf program trace record'.
    return own if own is not None else command.commands.get("record")


def _taken(command: Any, context: Any, rest: list[str]) -> None:
    try:
        command.make_parser(context).parse_args(list(rest))
    except typer.BadParameter as error:
        raise AssertionError(str(error)) from None
    except Exception as error:
        # Prose names an option without a value: 'wulf measure --suite'.
        if not (rest and rest[-1] in str(error) and "requires an argument" in str(error)):
            raise AssertionError(str(error)) from None


@cache
def printed() -> list[Printed]:
    every = dict.fromkeys([*documents(), *messages(), *pages()])
    return [one for one in every if one.text not in EXAMPLES and not re.match(rf"wulf {_UNKNOWN}", one.text)]


def test_commands_are_found_everywhere() -> None:
    every = printed()
    assert sum(one.where.endswith(".md") for one in every) > 200
    assert sum(one.where.startswith("src/wulf") for one in every) > 100
    of_pages = [one.text for one in every if one.where.startswith("page of")]
    assert any("--pairs node" in text or "rollback" in text for text in of_pages)


def test_every_command_that_is_printed_is_one() -> None:
    wrong = []
    for where, text in printed():
        try:
            parsed(text)
        except Exception as error:
            wrong.append(f"{where}: {text}: {error}")
    assert not wrong, "\n".join(wrong)


def test_pairs_that_are_printed_are_pairs() -> None:
    named = [found[1] for one in printed() if (found := re.search(r"--pairs[ =]([^ ]+:[^ ]+)", one.text))]
    assert any(re.fullmatch(r"node\d+:node\d+", pair) for pair in named)
    for pair in named:
        ends = [end.strip("{}") for one in pair.split(",") for end in one.split(":")]
        assert inventory.pairs(pair.replace("{", "").replace("}", ""), list(dict.fromkeys(ends)))


@pytest.mark.parametrize("text", ["wulf mesure", "wulf measure --pair n1:n2", "wulf settings gett"])
def test_what_is_no_command_is_told(text: str) -> None:
    with pytest.raises(Exception, match=r"No such option|no verb|No such command"):
        parsed(text)


#: Commands that only look something up.
CHEAP = re.compile(
    r"wulf (?:.* --(?:list|template)\b|settings (?:list|show \w)|config schema\b|study [a-z-]+ --dry-run)"
)


def test_the_cheap_ones_of_documents_are_run(tmp_path: Path) -> None:
    cheap = dict.fromkeys(
        tuple(words(one.text))
        for one in documents()
        if CHEAP.match(one.text) and not re.search(r"[A-Z]{3,}|[<>…]|\.toml", one.text)
    )
    assert len(cheap) >= 4
    for command in cheap:
        done = wulf(tmp_path, *command)
        assert done.returncode in (0, 3), (command, done.stderr)
