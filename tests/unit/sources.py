"""The sources of the program, read once for all tests that look into them (one group of pytest-xdist: ``GROUP``)."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUP = "sources"


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Return what each file of the program says, parsed."""
    return {file: ast.parse(file.read_text("utf-8")) for file in sorted((ROOT / "src/wulf").rglob("*.py"))}
