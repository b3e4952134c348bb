"""What is imported to say how wulf is used: what declares options, and nothing that does work."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import pytest
import typer

from wulf.base.importing.formats import FORMATS
from wulf.base.request import fields_of
from wulf.face.cli import help_words
from wulf.face.cli.main import VERBS, app
from wulf.node.lab.planted_faults import MISTAKES
from wulf.node.lab.vm import machine
from wulf.node.probe import ladder, suites
from wulf.tools.measure.request import LADDERS, MeasureRequest

#: Packages that take long to import.
SLOW = (
    "ClusterShell",
    "altair",
    "google_crc32c",
    "jinja2",
    "msgspec",
    "numpy",
    "pydantic",
    "rich",
    "rustworkx",
    "scipy",
    "vl_convert",
)
#: Of ours, beside wulf.face.cli.
QUICK = {
    "wulf",
    "wulf.base",
    "wulf.face",
    "wulf.node",
    "wulf.node.fleet",
    "wulf.node.programs",
    "wulf.node.programs.batch",
    "wulf.base.defaults",
    "wulf.base.profile",
    "wulf.base.request",
    "wulf.base.tool",
    "wulf.node.replay",
    "wulf.base.errors",
    "wulf.base.must_see",
    "wulf.base.nodeset",
    "wulf.base.user_files",
    "wulf.base.locations",
    "wulf.base.signals",
    "wulf.base.text",
    "wulf.base.units",
}
#: Asks for the list of verbs, for what a shell offers instead of a verb, and for the help of every verb and of theirs;
#: prints which modules each of these has added.
ASK = """
import io, json, sys
from contextlib import redirect_stdout
import typer
from wulf.face.cli import main

found, known = {}, set()

def added(name):
    found[name] = sorted(set(sys.modules) - known)
    known.update(sys.modules)

def ask(words, command):
    with redirect_stdout(io.StringIO()) as said:
        root.main([*words, "--help"], prog_name="wulf", standalone_mode=False)
    assert "Usage: " + " ".join(["wulf", *words]) in said.getvalue()
    added(" ".join(words))
    for name, inner in getattr(command, "commands", {}).items():
        ask([*words, name], inner)

root = typer.main.get_command(main.app)
ask([], None)
context = typer.Context(root, info_name="wulf")
assert len(root.shell_complete(context, "")) == len(main.VERBS)
added("TAB")
for verb in [*main.VERBS, *main.HIDDEN]:
    ask([verb], root.get_command(context, verb))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """Verb, or verb and verb within → what its help imports that those before it did not; '' is the list of verbs."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ASK], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def _declares(name: str) -> bool:
    """Whether a module only says what a tool is and what is asked of it."""
    parts = name.split(".")
    return name.endswith((".request", ".fields")) or (parts[1] == "tools" and len(parts) < 4)


def test_a_help_imports_nothing_that_works(imported: dict[str, list[str]]) -> None:
    assert {"", "TAB", "measure", "lab up", "tune collectives", "runs list", "replay-piece"} <= set(imported)
    for verb, names in imported.items():
        slow = [name for name in names if name.partition(".")[0] in SLOW]
        ours = [name for name in names if name.startswith("wulf") and not name.startswith("wulf.face.cli")]
        working = [*slow, *(name for name in ours if name not in QUICK and not _declares(name))]
        assert not working, f"wulf {verb} --help: let the function that needs it import it: {working}"


def test_the_list_of_verbs_imports_no_verb(imported: dict[str, list[str]]) -> None:
    modules = {verb.module for verb in VERBS.values()}
    assert not modules.intersection([*imported[""], *imported["TAB"]])
    assert "wulf.face.cli.measure" in modules and "wulf.face.cli.measure" in imported["measure"]


def test_the_list_of_verbs_has_the_first_line_of_their_help() -> None:
    root = typer.main.get_command(app)
    context = typer.Context(root, info_name="wulf")
    for name, verb in VERBS.items():
        said = root.get_command(context, name).help.strip()
        assert verb.summary == said.partition("\n")[0], name


def test_words_of_helps_are_those_of_the_work() -> None:
    assert get_args(help_words.Nic) == get_args(machine.Nic)
    assert tuple(MISTAKES) == help_words.MISTAKE_NAMES
    assert tuple(known.title for known in FORMATS) == help_words.FORMAT_TITLES
    assert suites.VISIT in next(
        field.option.help for field in fields_of(MeasureRequest) if field.name == "visit_s"
    )
    assert LADDERS[0] == ladder.ADAPTIVE
    assert ladder.NAMES == LADDERS
