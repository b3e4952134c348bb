"""Write what a package has beside the program, from the program itself: manual pages, completions, JSON Schemas.

tools/manual.py DIR     below DIR: man/man1, bash-completion, zsh, fish, wulf/schemas
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
from typer.completion import get_completion_script

from wulf import __version__
from wulf.face.cli.main import app
from wulf.face.cli.outputs import OUTPUTS
from wulf.face.cli.schema import text_of

#: Shell → where its completions are looked for below share/.
COMPLETIONS = {
    "bash": "bash-completion/completions/wulf",
    "zsh": "zsh/site-functions/_wulf",
    "fish": "fish/vendor_completions.d/wulf.fish",
}
PARAGRAPH = ".PP\n"
#: What roff prints nothing for, where there must be a line.
NOTHING = r"\&"
FILES = """\
.TP
.I /etc/wulf/config.toml, ~/.config/wulf/config.toml
Defaults of options, of the site and of the user; see
.BR wulf-config (1).
.TP
.I /etc/wulf/KIND, ~/.config/wulf/KIND
Knobs, checks, signatures, suites, networks and launchers beside wulf's own.
.TP
.I ./cluster.toml
The cluster, as
.BR wulf-init (1)
writes it.
.TP
.I ./runs
Where runs are stored.
.TP
.I ~/.cache/wulf
Programs that were built on first use."""
ENVIRONMENT = """\
.TP
.B WULF_OPTION, WULF_VERB_OPTION
The default of an option.
.TP
.B WULF_SITE_DIR
Directory of the site instead of
.IR /etc/wulf .
.TP
.B XDG_CONFIG_HOME, XDG_CACHE_HOME, XDG_STATE_HOME
As other programs use them."""
EXIT = """\
.TP
.B 0
All is well.
.TP
.B 1
An error.
.TP
.B 2
Wrong usage.
.TP
.B 3
Done, but with findings: see the output.
.TP
.B 130
Interrupted."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield all manual pages: their names, and their texts."""
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="wulf")
    verbs = {name: root.get_command(context, name) for name in root.list_commands(context)}
    yield "wulf", _page(["wulf"], root, list(verbs))
    for name, command in verbs.items():
        yield from _of_command(["wulf", name], command)


def _of_command(path: list[str], command: Any) -> Iterator[tuple[str, str]]:
    within = getattr(command, "commands", {})
    yield "-".join(path), _page(path, command, list(within))
    for name, inner in within.items():
        yield from _of_command([*path, name], inner)


def _page(path: list[str], command: Any, within: list[str]) -> str:
    name = "-".join(path)
    context = typer.Context(command, info_name=" ".join(path))
    text = inspect.cleandoc(command.help or "")
    short, _, _ = text.partition("\n\n")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f'.TH {name.upper()} 1 "{_date()}" "wulf {__version__}" "wulf"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(' '.join(short.split()).rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_roff(' '.join(path))}",
        _roff(usage),
        ".SH DESCRIPTION",
        *_paragraphs(text),
        *_listed("ARGUMENTS", _parameters(command, context, "argument")),
        *_listed("OPTIONS", _parameters(command, context, "option")),
    ]
    if within:
        parts += [".SH COMMANDS", *(f".TP\n.BR {_roff(name)}-{_roff(one)} (1)" for one in within)]
    if len(path) == 1:
        parts += [".SH FILES", FILES, ".SH ENVIRONMENT", ENVIRONMENT]
    parts += [".SH EXIT STATUS", EXIT]
    if len(path) > 1:
        parts += [".SH SEE ALSO", f".BR {'-'.join(path[:-1])} (1)"]
    return "\n".join(parts) + "\n"


def _date() -> str:
    """Return a date that is the same for equal sources: of the last commit, where one builds reproducibly."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(seconds), UTC) if seconds else datetime.now(UTC)
    return moment.strftime("%Y-%m-%d")


def _parameters(command: Any, context: Any, kind: str) -> list[tuple[str, str]]:
    found = []
    for parameter in command.get_params(context):
        if parameter.param_type_name != kind or parameter.name in ("install_completion", "show_completion"):
            continue
        if getattr(parameter, "hidden", False):
            continue
        record = parameter.get_help_record(context)
        if record is not None:
            found.append((record[0], record[1]))
        elif kind == "argument":
            found.append((parameter.make_metavar(context), getattr(parameter, "help", None) or ""))
    return found


def _listed(title: str, entries: list[tuple[str, str]]) -> list[str]:
    if not entries:
        return []
    return [
        f".SH {title}",
        *(f".TP\n.B {_roff(name)}\n{_roff(' '.join(text.split())) or NOTHING}" for name, text in entries),
    ]


def _paragraphs(text: str) -> list[str]:
    parts = [_roff(" ".join(part.split())) for part in re.split(r"\n\s*\n", text) if part.strip()]
    return [f"{PARAGRAPH if number else ''}{part}" for number, part in enumerate(parts)]


def _roff(text: str) -> str:
    """Return text so that roff shows it as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def main() -> int:
    """Entry point."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.stderr.write(f"{(__doc__ or '').strip()}\n")
        return 2
    share = Path(sys.argv[1])
    for name, text in pages():
        _write(share / "man" / "man1" / f"{name}.1", text)
    for shell, place in COMPLETIONS.items():
        _write(
            share / place, get_completion_script(prog_name="wulf", complete_var="_WULF_COMPLETE", shell=shell)
        )
    for name in OUTPUTS:
        _write(share / "wulf" / "schemas" / f"{name}.json", text_of(name))
    return 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
