"""The field's words: no message, heading, help or page has a phrase for which the field has another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit import sources

pytestmark = pytest.mark.xdist_group(sources.GROUP)
ROOT = Path(__file__).parents[2]
#: What must not be said → what the field says.
BANNED = {
    r"sends? much again": "high retransmission rate",
    r"looks? in vain": "unsuccessful polls",
    r"taken by (?:another|others|the guard|a person)": "locked by, held by",
    r"(?:than|as) their like": "comparable nodes",
    r"(?:for|to|left to) a person\b": "manual",
    r"set otherwise": "differs from",
    r"foreign load": "other load",
    r"not at its end": "stopped early, unfinished",
    r"(?:came|come|comes) to (?:its|their) end": "finished",
    r"(?<!here )is no operation": "is not an operation; needs MPI",
    r"launch do not": "1 launch does not",
    r"(?<!here )\bis no (?:number|knob|kind|text|shape|speed|feature)\b": "is not a",
    r"that nobody knows": "unknown",
    r"(?:not|are) like the others": "differ from the others",
    r"wrong for certain": "certainly wrong",
    r"hardly talks": "communicates",
}
#: Words that messages use and that are not plain English: each is in the glossary.
TERMS = (
    "probe",
    "launch",
    "visit",
    "cell",
    "reference",
    "guard",
    "contaminated",
    "knob",
    "finding",
    "trial",
    "margin",
    "λ",
)


def strings() -> Iterator[tuple[str, str]]:
    """Yield what the program can say: every string but docstrings, and the docstrings of commands, which are helps."""
    for file, nodes in sources.nodes().items():
        helps = "face/cli" in str(file) or file.name == "request.py"
        docs = {
            node.body[0].value
            for node in nodes
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in nodes:
            said = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if said and (helps or node not in docs):
                yield str(file.relative_to(ROOT)), " ".join(node.value.split())
    for file in sorted((ROOT / "src/wulf/data").rglob("*.toml")):
        lines = file.read_text(encoding="utf-8").splitlines()
        yield from (
            (str(file.relative_to(ROOT)), line)
            for line in lines
            if not re.match(r"id =|when =|holds =|#", line)
        )


def documents() -> Iterator[tuple[str, str]]:
    for file in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = str(file.relative_to(ROOT))
        if not name.startswith("docs/adr"):  # they tell what was said then
            yield name, " ".join(file.read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    """All that the program and its documents say; finding it takes seconds."""
    return [*strings(), *documents()]


@pytest.mark.parametrize("phrase", BANNED)
def test_no_text_has_a_phrase_that_the_field_does_not_use(phrase: str, texts: list[tuple[str, str]]) -> None:
    found = [
        f"{where}: …{text[max(hit.start() - 40, 0) : hit.end() + 40]}…: {BANNED[phrase]}"
        for where, text in texts
        for hit in re.finditer(phrase, text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_the_glossary_has_each_term_once() -> None:
    text = (ROOT / "docs/explanation/glossary.md").read_text(encoding="utf-8")
    defined = re.findall(r"^\| \*\*([^*]+)\*\* \|", text, re.MULTILINE)
    assert len(set(defined)) == len(defined)
    assert set(TERMS) <= {*defined, *re.findall(r"\*\*(\w+)\*\*", text)}


def test_a_message_has_two_lines_at_most():
    """80 columns each; a value in it counts as 8. What lists commands has a line for each."""
    long = [
        f"{file}:{line}: {text}"
        for file, line, text in messages()
        if len(text) > 2 * 80 and max(map(len, text.splitlines())) > 100
    ]
    assert not long, "\n".join(long)


def messages() -> Iterator[tuple[str, int, str]]:
    """Yield what exceptions say."""
    for file, nodes in sources.nodes().items():
        for node in nodes:
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                for text in _said(node.exc.args[0]):
                    yield str(file.relative_to(ROOT)), node.lineno, text


def _said(node: ast.expr) -> Iterator[str]:
    """Yield the text of an expression, with 8 characters for what is put into it; of a choice both."""
    if isinstance(node, ast.IfExp):
        yield from (*_said(node.body), *_said(node.orelse))
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else "_" * 8 for one in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
