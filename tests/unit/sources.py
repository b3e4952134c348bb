"""The sources of the program, read once for all tests that look into them (one group of pytest-xdist: ``GROUP``)."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUP = "sources"


@functools.cache
def nodes() -> dict[Path, list[ast.AST]]:
    """Return all nodes of the syntax tree of each file of the program."""
    files = sorted((ROOT / "src/wulf").rglob("*.py"))
    return {file: list(ast.walk(ast.parse(file.read_text("utf-8")))) for file in files}
