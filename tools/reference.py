"""Write docs/reference from the program itself; with --check only say whether it is current."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import typer

from wulf.base import records
from wulf.face.cli.main import app
from wulf.face.cli.outputs import OUTPUTS
from wulf.face.cli.schema import comments as comments_of

#: Fields that mean the same in every record.
COMMON = {
    "schema_version": "Version of the schema.",
    "op": "Operation.",
    "size_bytes": "Message size.",
    "pair": "The two nodes; the first measures.",
    "setting": "Name of the setting that was in force; `default` when none was changed.",
    "node": "Name of the node.",
    "launch": "Id of the launch.",
    "id": "Name, unique within the run.",
    "index": "Number in time order, from 0.",
    "cell": "Operation, size, pair and setting.",
    "lost": "Datagrams that were lost.",
    "corrupt": "Messages that arrived changed.",
    "notes": "What else must be known.",
    "address": "Address on the measured network.",
    "cpus": "CPUs it may run on.",
    "mtu": "MTU [B]; null for the default.",
    "rate": "Speed of the link; null when not limited.",
    "title": "In a few words.",
    "severity": "`fail` breaks or cripples, `warn` costs, `info` is worth trying or knowing.",
    "nodes": "Names of the nodes.",
    "group": "First word of the names of the facts.",
    "state": "How it is.",
    "status": "How it is.",
    "layer": "Part of the system it belongs to.",
    "what": "What it is.",
    "type": "What kind of value it has.",
    "scope": "What one value of it is for.",
    "debian": "How, on Debian and its kin.",
    "rhel": "How, on Red Hat Enterprise Linux and its kin.",
    "access": "How it is reached.",
    "persist": "What keeps it.",
    "evidence": "Where the claim comes from.",
    "risk": "What may go wrong.",
    "delay": "One-way delay of the link; null when none was added.",
}

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "<!-- Written by `make docs`; change the program, not this file. -->\n"


def commands() -> str:
    """Return the page of all commands, from their own help."""
    root = typer.main.get_command(app)
    parts = ["# Commands\n", NOTE, *_command(root, ["wulf"])]
    return "\n".join(parts).rstrip() + "\n"


def _command(command: Any, path: list[str]) -> list[str]:
    context = typer.Context(command, info_name=" ".join(path))
    parts = [f"## {' '.join(path)}\n", f"{inspect.cleandoc(command.help or '')}\n"]
    rows = [_parameter(parameter, context) for parameter in command.params if not _hidden(parameter)]
    if rows:
        parts += ["| option | meaning |", "|---|---|", *rows, ""]
    for name in command.list_commands(context) if hasattr(command, "list_commands") else []:
        parts += _command(command.get_command(context, name), [*path, name])
    return parts


def _hidden(parameter: Any) -> bool:
    completes = parameter.name in ("install_completion", "show_completion", "help")
    return completes or bool(getattr(parameter, "hidden", False))


def _parameter(parameter: Any, context: Any) -> str:
    record = parameter.get_help_record(context)
    if record is None:
        return f"| `{parameter.make_metavar(context)}` | {_cell(getattr(parameter, 'help', None) or '')} |"
    return f"| `{_cell(record[0])}` | {_cell(record[1])} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def json_fields() -> str:
    """Return the page of every field of every JSON output."""
    parts = ["# JSON fields\n", NOTE, f"Schema version {records.SCHEMA_VERSION}.\n"]
    structs: dict[str, type] = {}
    for name, output in OUTPUTS.items():
        parts.append(f"* `{output.where}`: {_type(output.type, structs)} (`wulf config schema {name}`)")
    done: set[str] = set()
    while pending := [name for name in structs if name not in done]:
        for name in pending:
            done.add(name)
            parts += _struct(structs[name], structs)
    return "\n".join(parts).rstrip() + "\n"


def _struct(kind: type, structs: dict[str, type]) -> list[str]:
    comments = comments_of(kind)
    parts = [f"\n## {kind.__name__}\n", f"{inspect.cleandoc(kind.__doc__ or '')}\n"]
    parts += ["| field | type | meaning |", "|---|---|---|"]
    tag = kind.__struct_config__.tag  # type: ignore[attr-defined]
    if tag is not None:
        parts.append(f"| `type` | always `{tag}` | |")
    for field in msgspec.structs.fields(kind):
        parts.append(
            f"| `{field.encode_name}` | {_type(field.type, structs)} | {_cell(comments.get(field.name, ''))} |"
        )
    return parts


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Any: "any"}


def _type(kind: Any, structs: dict[str, type]) -> str:  # noqa: PLR0911 - one for each kind of type
    """Return how JSON has a type; the records it is made of are added to `structs`."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if structs.setdefault(kind.__name__, kind) is not kind:
            raise SystemExit(f"two records are called {kind.__name__}: one of them would not be described")
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    arguments = get_args(kind)
    if not arguments:
        return _PLAIN[kind]
    origin = get_origin(kind)
    if origin is Annotated:
        return _type(arguments[0], structs)
    if origin is Literal:
        return " \\| ".join(f"`{argument}`" for argument in arguments)
    inner = [_type(argument, structs) for argument in arguments if argument is not ...]
    if origin is dict:
        return f"object: string → {inner[1]}"
    if origin in (list, Sequence):
        return f"array of {inner[0]}"
    if origin is tuple and arguments[-1] is ...:
        return f"array of {inner[0]}"
    return "[" + ", ".join(inner) + "]" if origin is tuple else " \\| ".join(inner)


PAGES = {"commands.md": commands, "json.md": json_fields}


def main() -> int:
    """Entry point."""
    check = "--check" in sys.argv[1:]
    status = 0
    for name, make in PAGES.items():
        path, text = REFERENCE / name, make()
        if check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                sys.stdout.write(f"{path} is not what the program says: run 'make docs'\n")
                status = 1
        else:
            REFERENCE.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"written: {path}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
