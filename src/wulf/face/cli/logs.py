"""What is done, in detail: on standard error (``--verbose``), and in a file (``--log-file``).

These options, and ``--explain``, stand before the verb or after it. What is logged is what the modules say to the
logger ``wulf``.
"""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wulf import __version__
from wulf.base import defaults
from wulf.base.errors import ConfigError, WulfError
from wulf.base.text import printable
from wulf.face.cli.defaults import called

VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        help="Log to standard error what is done: every command on the nodes and how long it took. Also accepted after "
        "the verb.",
    ),
]
LogFileOption = Annotated[
    Path | None,
    typer.Option(
        "--log-file",
        metavar="FILE",
        help="Append the same, with time stamps, to a file. Also accepted after the verb.",
    ),
]
ExplainOption = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Print warnings in full on a terminal: every case, and what to do about it. Also accepted after the verb.",
    ),
]

_LOG = logging.getLogger("wulf")
# Where nobody wants to know, nobody is told.
_LOG.addHandler(logging.NullHandler())
_begun: set[str] = set()


class _OneLine(logging.Formatter):
    """Lines that are safe to show, whatever a node has said."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), 20_000)


def begin(*, verbose: bool, path: Path | None, explain: bool = False) -> None:
    """Begin to log, and to explain, as the options before the verb or the defaults say.

    Raises
    ------
    ConfigError
        The file cannot be written, or a default cannot be.
    """
    if verbose or defaults.is_true(defaults.common("verbose")):
        _to_terminal()
    if explain or defaults.is_true(defaults.common("explain")):
        from wulf.page.terminal import Printer

        Printer.explained = True
    setting = defaults.common("log-file")
    if path is None and setting is not None:
        path = Path(str(setting.value)).expanduser()
    if path is not None:
        _to_file(path)


def accept_after_verb(command: Any, words: Sequence[str]) -> None:
    """Let these options stand after a verb, and after the one within it that is named; no help repeats them."""
    within = getattr(command, "commands", {})
    for name in called(within, words):
        accept_after_verb(within[name], words[1:])
    if hasattr(command, "commands") and not command.params:
        return
    taken = {name for option in command.params for name in option.opts}
    for option in _made_by_typer():
        if not taken.intersection(option.opts):
            command.params.append(option)


def ended(error: BaseException) -> None:
    """Log how it ended."""
    if isinstance(error, SystemExit):
        _LOG.info("ended with exit code %s", error.code or 0)
    elif isinstance(error, WulfError):
        _LOG.info("ended with exit code %s: %s", error.exit_code, error)
    else:
        _LOG.error("ended by an internal error of wulf", exc_info=error)


def _made_by_typer() -> list[Any]:
    def options(
        verbose: VerboseOption = False, log_file: LogFileOption = None, explain: ExplainOption = False
    ) -> None:
        pass

    single = typer.Typer(add_completion=False)
    single.command()(options)
    found = []
    for option in typer.main.get_command(single).params:
        if option.name in ("verbose", "log_file", "explain"):
            option.hidden = True  # type: ignore[attr-defined]
            option.expose_value = False
            option.callback = _given
            found.append(option)
    return found


def _given(ctx: Any, option: Any, value: Any) -> Any:
    if value and not ctx.resilient_parsing:
        begin(
            verbose=option.name == "verbose",
            path=Path(value) if option.name == "log_file" else None,
            explain=option.name == "explain",
        )
    return value


def _to_terminal() -> None:
    if "terminal" in _begun:
        return
    handler = logging.StreamHandler(sys.stderr)
    # What a person sees anyway is not said twice.
    handler.addFilter(lambda record: not getattr(record, "shown", False))
    _add("terminal", handler, "%(message)s")


def _to_file(path: Path) -> None:
    if "file" in _begun:
        return
    try:
        handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ConfigError(f"--log-file: cannot write {path}: {error.strerror}") from None
    _add("file", handler, "%(asctime)s %(process)d %(levelname)s %(message)s")
    _LOG.info("wulf %s: %s", __version__, shlex.join(sys.argv))
    for file in defaults.files():
        _LOG.debug("defaults of %s", file.path)


def _add(name: str, handler: logging.Handler, form: str) -> None:
    _begun.add(name)
    handler.setFormatter(_OneLine(form))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.DEBUG)
