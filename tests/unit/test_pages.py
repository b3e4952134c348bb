"""Every page in every form: at any width, with any values.  What there is, is in `subjects.py`."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import re
import typing
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len

from tests.unit import subjects
from wulf.base.records import Estimate
from wulf.page import blocks, formats
from wulf.page.document import _LOWERED
from wulf.page.escaping import CleanConsole
from wulf.page.page import _kept, html
from wulf.page.parts import Figure, Table
from wulf.page.terminal import Printer

CASES = subjects.CASES
WIDTHS = (120, 80, 60)
LONG = 300


def terminal(page: blocks.Page, width: int, *, boundless: bool = False) -> str:
    """Return what is on a terminal of this width; `boundless` is a pipe, where nothing is folded."""
    out = io.StringIO()
    console = CleanConsole(
        file=out,
        width=width,
        force_terminal=not boundless,
        color_system=None,
        highlight=False,
        legacy_windows=False,
    )
    printer = Printer(console)
    printer.explained = True  # all of every warning, too
    printer.page(page)
    return out.getvalue()


def marks(text: str) -> Counter[str]:
    """Count what is printed, wherever lines break; rules under headings are as long as there is room."""
    return Counter(mark for mark in text if not mark.isspace() and mark != "─")


def tables(page: blocks.Page) -> list[Table]:
    """Return the tables that a terminal shows, those of operations, too."""
    shown: list[Table] = []
    for block in (*page.head, *(block for section in page.sections for block in section.blocks)):
        if isinstance(block, Table):
            shown.append(block)
        elif isinstance(block, blocks.Operations) and not block.brief:
            for one in block.results:
                shown += [one.pairs, *(detail.sizes for detail in one.details)]
    return shown


def test_every_page_is_a_subject() -> None:
    assert set(subjects.makers()) == set(subjects.SUBJECTS)


def test_every_block_has_a_form_in_documents() -> None:
    assert set(_LOWERED) == set(typing.get_args(blocks.Block))


#: What has figures.
FIGURES = (Table, Figure, blocks.Keys, blocks.KeyFigures, blocks.Operations, blocks.Matrices, blocks.Changes)


@pytest.mark.parametrize(("name", "place"), CASES)
def test_the_answer_comes_first_then_figures_then_warnings(name: str, place: int) -> None:
    page = subjects.page(name, subjects.sample(name, place))
    every = [*page.head, *(block for section in page.sections for block in section.blocks)]
    warned = [number for number, block in enumerate(every) if isinstance(block, blocks.Warnings)]
    figures = [number for number, block in enumerate(every) if isinstance(block, FIGURES)]
    assert page.title
    assert not warned or (figures and figures[0] < warned[0])
    text = terminal(page, 80)
    assert text.index(page.title.split()[0]) < 40
    for block in (every[number] for number in warned):
        heads = [f"{one.severity}: {one.kind}" for one in block.warnings]
        assert all(figure_before(text, head) for head in heads)
    shown = html(page)
    assert shown.count("<details open><summary><strong>error") == shown.count("<summary><strong>error")
    assert "<details open><summary><strong>warning" not in shown


@pytest.mark.parametrize(("name", "place"), CASES)
def test_charts_keep_to_the_schema_of_vega_lite(name: str, place: int) -> None:
    for figure in subjects.page(name, subjects.sample(name, place)).figures:
        for drawing in filter(None, (figure.chart.wide, figure.chart.narrow)):
            assert drawing.draw(figure).to_dict(validate=True)


def figure_before(text: str, head: str) -> bool:
    """Whether a number with a unit stands before a warning."""
    return re.search(r"\d (ns|µs|ms|s|MB/s|GB/s|%|GFLOPS)\b", text[: text.index(head)]) is not None


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("name", "place"), CASES)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(name: str, place: int, width: int) -> None:
    page = subjects.page(name, subjects.sample(name, place))
    text = terminal(page, width)
    assert max(map(cell_len, text.splitlines())) <= width
    # A table that becomes a list repeats its heads, but for that of what each paragraph is about.
    heads = Counter[str]()
    for table in tables(page):
        heads += marks(table.columns[0].name) if table.rows else Counter[str]()
    assert not marks(terminal(page, width, boundless=True)) - marks(text) - heads
    words = " ".join(text.split())
    for table in tables(page):
        left_out = [column.name for column in table.columns if not column.narrow]
        assert not table.rows or all(column in words for column in left_out)


#: Names and texts as hostile as a node can make them: escapes, marks of a direction, markup, other scripts, lines.
HOSTILE = (
    "\x1b[31mred\x1b[0m\u202e<script>alert(1)</script>[bold]|`$x$ 漢字かな " + "x" * LONG + "\nnext line"
)
NODE = re.compile(r"(node|compute)\d+")


def changed(value: Any, number: Callable[[float], float], text: Callable[[str], str]) -> Any:
    """Return records in which estimates have other numbers, and names of nodes and sentences are others."""
    if isinstance(value, Estimate):
        return msgspec.structs.replace(
            value,
            value=number(value.value),
            low=None if value.low is None else number(value.low),
            high=None if value.high is None else number(value.high),
        )
    if isinstance(value, msgspec.Struct):
        hints = {field.name: str(field.type) for field in msgspec.structs.fields(value)}
        fields = {
            name: getattr(value, name) if "Literal" in hint else changed(getattr(value, name), number, text)
            for name, hint in hints.items()
        }
        return type(value)(**fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {
            one.name: changed(getattr(value, one.name), number, text)
            for one in dataclasses.fields(value)
            if one.init
        }
        return dataclasses.replace(value, **named)
    if isinstance(value, dict):
        return {changed(key, number, text): changed(one, number, text) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(changed(one, number, text) for one in value)
    return text(value) if isinstance(value, str) and (" " in value or NODE.fullmatch(value)) else value


def same(value: Any) -> Any:
    return value


NUMBERS = {
    "zero": lambda _: 0.0,
    "tiny": lambda _: 5e-324,
    "huge": lambda _: 1e300,
    "below zero": lambda value: -abs(value),
    "without end": lambda _: math.inf,
}


def safe(text: str) -> bool:
    return all(mark == "\n" or unicodedata.category(mark)[0] != "C" for mark in text)


def every_form(page: blocks.Page) -> dict[str, str]:
    return {
        "text": terminal(page, min(WIDTHS)),
        "html": html(page),
        "markdown": formats.markdown(page),
        "latex": formats.latex(page),
        "csv": formats.csv(page),
    }


@pytest.mark.parametrize(
    "extreme",
    [pytest.param(one, marks=() if one in ("zero", "huge") else pytest.mark.thorough) for one in NUMBERS],
)
@pytest.mark.parametrize(("name", "place"), CASES)
def test_any_number_has_a_page(name: str, place: int, extreme: str) -> None:
    records = changed(tuple(subjects.sample(name, place)), NUMBERS[extreme], same)
    made = every_form(subjects.page(name, records))
    assert max(map(cell_len, made["text"].splitlines())) <= min(WIDTHS)


@pytest.mark.parametrize(("name", "place"), CASES)
def test_any_text_has_a_page(name: str, place: int) -> None:
    records = changed(tuple(subjects.sample(name, place)), same, lambda text: text + HOSTILE)
    made = every_form(subjects.page(name, records))
    assert max(map(cell_len, made["text"].splitlines())) <= min(WIDTHS)
    assert "<script>alert" not in made["html"]
    assert all(safe(shown) for form, shown in made.items() if form != "html")
    assert not re.search("[\x1b\u202e]", made["html"])
    prose = [line for line in made["markdown"].splitlines() if not line.startswith("    ")]
    assert "<script>" not in "\n".join(prose).replace("\\<script\\>", "")


def test_what_draws_charts_is_put_together_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    made = []

    def make() -> str:
        made.append("é\r\n")
        return made[-1]

    def bundles(place: Path) -> list[str]:
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        made.clear()
        return [_kept("charts.js", make) for _ in range(2)]

    assert (bundles(cache), len(made)) == (["é\r\n"] * 2, 1)
    # Of somebody else, cut off anywhere, or in a place that is none: it is made.
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert (bundles(cache), len(made)) == (["é\r\n"] * 2, 2)
    kept = cache / "wulf/page/charts.js"
    whole = kept.read_bytes()
    for length in range(len(whole)):
        kept.write_bytes(whole[:length])
        assert (bundles(cache), len(made), kept.read_bytes()) == (["é\r\n"] * 2, 1, whole)
    assert (bundles(Path("/dev/null")), len(made)) == (["é\r\n"] * 2, 2)
