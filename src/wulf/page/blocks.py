"""What a page is made of.  A subject returns a `Page`; every form (page, terminal) walks its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wulf.page.parts import Card, Figure, Findings, Flag, OperationResult, Table, Warning


@dataclass(frozen=True)
class Verdict:
    """The answer, and what it rests on."""

    flag: Flag | Literal["fair", "poor", "nothing"]
    lines: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Key:
    """A figure that is read first."""

    name: str
    value: str
    #: What it is of, or how sure it is.
    where: str = ""


@dataclass(frozen=True)
class Keys:
    """The figures that are read first, beside each other."""

    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Notes:
    """Sentences, each a point of its own."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Paragraph:
    """Sentences that belong together."""

    text: str
    #: Words of another, to be quoted as they are.
    quoted: bool = False


@dataclass(frozen=True)
class Code:
    """Text that is printed as it is: a file, commands."""

    text: str
    #: What it is, where it is shown only when it is asked for.
    summary: str = ""


@dataclass(frozen=True)
class Command:
    """What a reader can run next."""

    label: str
    text: str


@dataclass(frozen=True)
class Links:
    """Other pages that belong to this one."""

    label: str
    #: (title, relative address).
    pages: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Matrices:
    """Charts that stand beside each other."""

    figures: tuple[Figure, ...]
    #: What the page's style knows them by, beside being matrices.
    kind: str = ""


@dataclass(frozen=True)
class Change:
    """A setting that was changed, what that is worth, and the way back."""

    title: str
    knob: str
    before: str
    after: str
    worth: str
    #: What the worth means, or why it is not known.
    note: str
    #: (label, text, whether it is a command)
    lines: tuple[tuple[str, str, bool], ...]
    #: Whether it survives a reboot.
    stored: bool


@dataclass(frozen=True)
class Changes:
    """Settings that were changed."""

    flag: Flag
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Cards:
    """Causes that the figures look like, each with what to do next."""

    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Warnings:
    """What must be known before figures are used."""

    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class Operations:
    """What was measured, one operation after the other; on a page one is chosen."""

    results: tuple[OperationResult, ...]
    #: Only the figures that are read first.
    brief: bool = False


@dataclass(frozen=True)
class KeyFigures:
    """The figures of each operation that are read first; a terminal has them with the operation."""

    results: tuple[OperationResult, ...]


@dataclass(frozen=True)
class PageOnly:
    """Blocks that a terminal has no room for."""

    blocks: tuple[Block, ...]


Block = (
    Verdict
    | Keys
    | Notes
    | Paragraph
    | Code
    | Command
    | Links
    | Table
    | Figure
    | Matrices
    | Changes
    | Cards
    | Operations
    | KeyFigures
    | Findings
    | Warnings
    | PageOnly
)


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    #: In the address of the page.
    id: str
    title: str
    blocks: tuple[Block, ...]
    #: What the heading is about, in a few words.
    aside: str = ""


@dataclass(frozen=True)
class Page:
    """All that is shown of a subject."""

    #: The answer.
    title: str
    lede: str
    #: What page it is, above its title, and the verb that makes it.
    kind: str
    verb: str
    #: Before the first heading.
    head: tuple[Block, ...]
    sections: tuple[Section, ...]
    #: Downloads are named for it.
    run: str = ""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All that is on the page, without what groups it."""
        grouped = (*self.head, *(block for section in self.sections for block in section.blocks))
        return tuple(inner for block in grouped for inner in _ungrouped(block))

    @property
    def pairs(self) -> dict[str, list[str]]:
        """Operation → the pairs that a reader can choose."""
        shown = [one for block in self.blocks if isinstance(block, Operations) for one in block.results]
        return {one.id: [detail.pair for detail in one.details] for one in shown}

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All charts of the page."""
        return tuple(block for block in self.blocks if isinstance(block, Figure))


def _ungrouped(block: Block) -> Iterator[Block]:
    if isinstance(block, PageOnly):
        for inner in block.blocks:
            yield from _ungrouped(inner)
    elif isinstance(block, Matrices):
        yield from block.figures
    elif isinstance(block, Operations):
        yield block
        for one in block.results:
            yield from (*one.overview, *one.detail)
    else:
        yield block


def known(*blocks: Block | None) -> tuple[Block, ...]:
    """Return the blocks that there are."""
    return tuple(block for block in blocks if block is not None)
