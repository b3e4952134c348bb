"""Write docs/reference from the program itself; with --check only say whether it is current."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
import typer

from wulf import catalogue, lab, records
from wulf.cli import knob, listing, verify
from wulf.cli.main import app
from wulf.records import blas, collectives, diagnosed, hpcc, hpl, profiled, traced
from wulf.report.run import export

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

#: What each `--json` prints: command → type.
OUTPUTS: dict[str, Any] = {
    "wulf report --json": export.Export,
    "wulf analyze --json": records.Analysis,
    "wulf compare --json": list[records.Comparison],
    "wulf diagnose --json": diagnosed.Diagnosis,
    "wulf characterise --json": profiled.Characters,
    "wulf trace show --json": traced.TraceSummary,
    "wulf predict --json": records.Prediction,
    "wulf worth --json": records.Worth,
    "wulf mpi parameters --json": list[records.MpiParameter],
    "wulf blas --json": blas.BlasComparison,
    "wulf hpcc --json": hpcc.HpccResult,
    "wulf hpl --json, wulf report --json (of a run of HPL), RUN/result.json": hpl.HplResult,
    "wulf list --json": list[listing.Entry],
    "wulf mpi tune --json, RULES.json": collectives.CollectiveTuning,
    "wulf mpi compare --json": list[records.Comparison],
    "wulf topology --json": records.LinkTopology,
    "wulf topology --embed SHAPE --json": records.Embedding,
    "wulf lab status --json": list[lab.VirtualNode],
    "wulf facts --json": list[records.NodeRecord],
    "wulf audit --json": records.Audit,
    "wulf mend --json": records.Mending,
    "wulf knob list --json": list[catalogue.Knob],
    "wulf knob show --json": catalogue.Knob,
    "wulf knob get --json": list[knob.Reading],
    "wulf set --json, wulf rollback --json, wulf persist --json": records.ChangeOutcome,
    "wulf topology --routes K --json": records.ChangeOutcome,
    "wulf status --json": list[records.NodeStatus],
    "wulf verify --json": verify.Verification,
    "wulf report --json (of a tuning run), RUN/result.json": records.Tuning,
    "RUN/tuning.json": records.TuneManifest,
    "RUN/trials.jsonl (one object a line)": records.Trial,
    "RUN/hpl.json": hpl.HplManifest,
    "RUN/launches.jsonl (one object a line)": hpl.HplLaunch,
    "RUN/manifest.json": records.Manifest,
    "RUN/records.jsonl (one object a line)": records.NodeRecord | records.LaunchResult,
    "RUN/analysis.json": records.Analysis,
}


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
    return parameter.name in ("install_completion", "show_completion", "help")


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
    for output, kind in OUTPUTS.items():
        parts.append(f"* `{output}`: {_type(kind, structs)}")
    done: set[str] = set()
    while pending := [name for name in structs if name not in done]:
        for name in pending:
            done.add(name)
            parts += _struct(structs[name], structs)
    return "\n".join(parts).rstrip() + "\n"


def _struct(kind: type, structs: dict[str, type]) -> list[str]:
    comments = _comments(kind)
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


def _comments(kind: type) -> dict[str, str]:
    """Field → its ``#:`` comment in the source, of the records that it extends, too."""
    result: dict[str, str] = {}
    collected: list[str] = []
    extended = [base for base in reversed(kind.__mro__) if base.__module__.startswith("wulf.")]
    for line in (line for base in extended for line in inspect.getsource(base).splitlines()):
        text = line.strip()
        if text.startswith("#:"):
            collected.append(text.removeprefix("#:").strip())
        elif ":" in text and collected:
            result[text.partition(":")[0]] = " ".join(collected)
            collected = []
    return result


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
