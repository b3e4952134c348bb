"""The command of a tool that declares itself (`wulf.base.tool`): request, work, and the record as JSON or as a page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wulf.base.request import JsonField, Option
from wulf.base.tool import Tool
from wulf.face.cli.declared import flat, instead


@dataclass(frozen=True)
class Shown:
    """How the result is shown."""

    html: Annotated[Path | None, Option("Write a page to this file.", metavar="FILE", goes_on=True)] = None
    json: JsonField = False


def command_of(tool: Tool) -> Callable[..., None]:
    """Return the command of a tool, as typer takes it."""

    def command(request: Any, shown: Shown, template: Any = None) -> None:  # noqa: ARG001 - answered before
        from wulf.face.cli.progress import Display, staging

        with _telling(tool, shown), Display() if tool.is_long else staging() as progress:
            record = tool.part(tool.work)(request, progress)
        show_record(record, tool.part(tool.page)(record), shown)
        code = tool.part(tool.exit_code)(record) if tool.exit_code else 0
        if code:
            raise typer.Exit(code)

    request = tool.part(tool.request)
    template = {"template": _template(tool)} if tool.templates else {}
    command.__annotations__ = {"request": request, "shown": Shown, **template}
    return flat(command)


def _telling(tool: Tool, shown: Shown) -> AbstractContextManager[None]:
    from wulf.face.cli.set_values import telling_of_nodes

    return telling_of_nodes(json=shown.json) if tool.changes_nodes else nullcontext()


def _template(tool: Tool) -> Any:
    """Return the option that prints a text and does nothing else."""

    def show(name: str) -> None:
        sys.stdout.write(tool.part(tool.templates[name]))

    option = instead(show, "Print an example file with all its keys explained.")
    return Annotated[Literal[tuple(tool.templates)] | None, option]


def show_record(record: Any, page: Any, shown: Shown) -> None:
    """Show a record as its page, or print it as JSON."""
    from wulf.base.store import write_atomically
    from wulf.face.cli.options import console, print_json
    from wulf.page.page import html
    from wulf.page.terminal import print_page

    if shown.html is not None:
        write_atomically(shown.html, html(page).encode())
        sys.stderr.write(f"written: {shown.html}\n")
    if shown.json:
        print_json(record)
    else:
        print_page(page, console())
