"""CONTRIBUTING shows real files as diffs: they are as it shows them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: Path → the lines that a diff adds there; a path that begins with b/ is an example and no file.
SHOWN = re.findall(r"^\+\+\+ (?!b/)(\S+)\n((?:\+.*\n)+)", TEXT, re.MULTILINE)


def line(text: str) -> str:
    """Return a line without its comment and without the spaces between words."""
    return " ".join(re.split(r"\s(?://|/\*)", text)[0].split())


@pytest.mark.parametrize(("path", "lines"), SHOWN, ids=[path for path, _ in SHOWN])
def test_a_diff_shows_the_file(path: str, lines: str) -> None:
    real = iter([line(text) for text in (ROOT / path).read_text(encoding="utf-8").splitlines()])
    for shown in (line(text[1:]) for text in lines.splitlines()):
        assert "…" in shown or shown in real, f"{path} has not, or not there: {shown}"


def test_there_are_diffs_of_tool_knob_check_pair_and_group() -> None:
    assert {Path(path).parent.name for path, _ in SHOWN} == {"goodput", "knobs", "checks", "mpi"}
    assert len(SHOWN) == 9


def test_the_places_that_it_names_exist() -> None:
    named = set(re.findall(r"`((?:src|tests|native|docs|tools|bench)/[\w./-]+)`", TEXT))
    assert len(named) > 8
    assert not [path for path in named if not (ROOT / path).exists() and "NAME" not in path]
