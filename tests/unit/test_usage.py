"""The usage line of every verb is as in manuals: ``[RUN]`` for what may be left out, ``FILE...`` for one or more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from wulf.face.cli.verbs import VERBS, in_usage, load


def commands() -> Iterator[tuple[str, Any]]:
    """Yield all verbs and those within them, with their names."""
    for name, verb in VERBS.items():
        command = load(name, verb)
        yield name, command
        for inner in verb.within:
            yield f"{name} {inner}", command.commands[inner]


def test_no_usage_has_brackets_in_brackets_or_words_that_are_hidden() -> None:
    said = {
        name: " ".join(command.collect_usage_pieces(typer.Context(command))) for name, command in commands()
    }
    assert said["settings set"] == "[OPTIONS] KNOB=VALUE..."
    assert said["measure"] == "[OPTIONS]"
    assert not {
        name: usage for name, usage in said.items() if "[[" in usage or "{" in usage or "moved" in usage
    }


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("[[RUN]]", "[RUN]"),
        ("[RUN]", "[RUN]"),
        ("{RUN}", "RUN"),
        ("{KNOB=VALUE...}...", "KNOB=VALUE..."),
        ("{RUN}...", "RUN..."),
        ("[[FACT]...]...", "[FACT]..."),
        ("[TRACE...]...", "[TRACE...]"),
        ("[[-- COMMAND…]]...", "[-- COMMAND…]"),
        ("NODE...", "NODE..."),
        ("[ARGS]...", "[ARGS]..."),
    ],
)
def test_a_word_of_a_usage_is_as_in_manuals(word: str, plain: str) -> None:
    assert in_usage(word) == plain
