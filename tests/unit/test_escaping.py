"""What nodes, files and runs said leaves the program as data, in every form."""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table as RichTable
from rich.text import Text

from wulf.page import escaping, markup
from wulf.page.parts import Column, Item, Table

HOSTILE = (
    '=HYPERLINK("http://x")</script><img src=x onerror=alert(2)>\x1b[31m\x1b]0;t\x07'
    "\\input{/etc/passwd}\n|x|`y`\u202e&#60;"
)
TEXTS = st.text(max_size=60) | st.sampled_from([HOSTILE, "=1+1", "-2", "@a", "\t=1", "%\n\\input{x}", "a\rb"])


def table(text: str) -> Table:
    return Table(
        title=text,
        columns=(Column(text), Column("n", numeric=True)),
        rows=((Item(text), Item("1")),),
        note=f"note {text}",
    )


def printed(what: object) -> str:
    out = io.StringIO()
    escaping.CleanConsole(file=out, width=200, color_system=None).print(what, markup=False)
    return out.getvalue()


@given(TEXTS)
def test_a_terminal_gets_no_control_characters(text):
    drawn = RichTable()
    drawn.add_column(text)
    drawn.add_row(Text(text))
    for what in (text, Text(text, style="red"), drawn):
        assert not any(unicodedata.category(char)[0] == "C" for char in printed(what) if char not in "\n\t")


def test_a_terminal_keeps_its_own_colours():
    out = io.StringIO()
    escaping.CleanConsole(file=out, force_terminal=True, color_system="standard").print(
        Text("a\x1b[32mb", style="red")
    )
    assert "\x1b[31m" in out.getvalue() and "\x1b[32m" not in out.getvalue()


@given(TEXTS)
def test_a_spreadsheet_gets_no_formula(text):
    out = io.StringIO()
    csv.writer(out).writerow(escaping.csv([text, -1.5, None]))
    (first, number, nothing), *_ = csv.reader(io.StringIO(out.getvalue()))
    assert not first.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert (number, nothing) == ("-1.5", "")


@given(TEXTS)
def test_markdown_shows_text_as_it_is(text):
    lines = markup.markdown(table(text)).splitlines()
    assert len(lines) == 7
    assert not any(mark in line for line in lines for mark in "<>")
    assert all(line.replace("\\|", "").count("|") == 3 for line in lines[2:5])


@given(TEXTS)
def test_latex_has_no_command_of_a_text(text):
    lines = markup.latex(table(text)).splitlines()
    commands = [line for line in lines if not line.startswith("%")]
    assert len(commands) == 7 and len(lines) - len(commands) <= 1 + len(table(text).note.splitlines())
    assert "\\input{" not in "".join(commands)


@pytest.mark.parametrize("text", [HOSTILE, "a\nb\rc"])
def test_a_line_stays_one(text):
    assert len(escaping.line(text).splitlines()) == 1
