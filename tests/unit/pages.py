"""What is on a page, for tests."""

from __future__ import annotations

from wulf.page.blocks import Change, Changes, Key, Keys, Notes, Operations, Page, Paragraph, Verdict, Warnings
from wulf.page.parts import Figure, OperationResult, Table, Warning


def tables(page: Page) -> list[Table]:
    return [block for block in page.blocks if isinstance(block, Table)]


def table(page: Page, title: str) -> Table:
    """Return the table whose title begins so."""
    (found,) = [one for one in tables(page) if one.title.startswith(title)]
    return found


def figure(page: Page, id_: str) -> Figure:
    (found,) = [one for one in page.figures if one.id == id_]
    return found


def said(page: Page) -> list[str]:
    """Return all sentences."""
    lines = [page.title, page.lede]
    for block in page.blocks:
        lines += [block.text] if isinstance(block, Paragraph) else []
        lines += block.lines if isinstance(block, Verdict | Notes) else []
    return lines


def verdict(page: Page) -> Verdict:
    """Return the verdict above the first heading."""
    (found,) = [block for block in page.head if isinstance(block, Verdict)]
    return found


def keys(page: Page) -> list[Key]:
    return [key for block in page.blocks if isinstance(block, Keys) for key in block.keys]


def changes(page: Page) -> list[Change]:
    return [change for block in page.blocks if isinstance(block, Changes) for change in block.changes]


def operations(page: Page) -> tuple[OperationResult, ...]:
    return tuple(one for block in page.blocks if isinstance(block, Operations) for one in block.results)


def warnings(page: Page) -> tuple[Warning, ...]:
    return tuple(one for block in page.blocks if isinstance(block, Warnings) for one in block.warnings)
