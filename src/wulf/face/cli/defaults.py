"""Defaults of the options of a verb.

An option that is not on the command line is taken from, in this order::

    WULF_VERB_OPTION, WULF_OPTION                    environment
    [VERB] option, [defaults] option                 ~/.config/wulf/config.toml
    [VERB] option, [defaults] option                 /etc/wulf/config.toml

where only the options of `wulf.base.defaults.COMMON` are for all verbs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from wulf.base import defaults
from wulf.base.defaults import COMMON, Setting, plain, variable_of
from wulf.base.errors import ConfigError, UsageError
from wulf.base.text import nearest, printable

_T = TypeVar("_T")

#: Options that belong to one call, or that permit something: nobody should have given them without knowing.
_NEVER = (
    "abandon",
    "allow-missing",
    "dry-run",
    "follow",
    "force",
    "help",
    "leave-as-is",
    "relax-firewall-facing-outside",
    "resume",
    "take-over",
    "version",
    "yes",
)
#: Variables that are no option's.
_OTHER_VARIABLES = ("WULF_SITE_DIR", "WULF_LAB_DIR", "WULF_TRACE", "WULF_TRACE_LIMIT", "WULF_PROFILE")
#: Option → what it was given here instead of on the command line.
_used: dict[str, Setting] = {}


def of_command(path: Sequence[str], command: Any, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Return the defaults of a verb, and of the verbs that it has, as typer takes them: parameter → value.

    Parameters
    ----------
    path
        The verb, and the one within it.
    chosen
        The words after the verb: of verbs within it that they do not name nothing is imported.

    Raises
    ------
    ConfigError
        A file has a key that is not an option of it, or a value that the option does not take; names file and line.
    """
    options = options_of(command)
    within = getattr(command, "commands", {})
    refuse_unknown(path, spellings(options), list(within))
    found: dict[str, Any] = {}
    for name, option in options.items():
        setting = setting_of(path, name, option)
        if setting is not None:
            _used[name] = setting
            found[option.name] = setting.value
    return found | {
        name: of_command([*path, name], within[name], chosen[1:]) for name in called(within, chosen)
    }


def called(within: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    """Return the verbs within a verb that words after it call; all of them, where all have been imported anyway."""
    return list(within) if isinstance(within, dict) else [word for word in words[:1] if word in within]


def options_of(command: Any) -> dict[str, Any]:
    """Long name of an option, without its dashes → the option, of all that can have a default."""
    found = {}
    for option in command.params:
        names = [name for name in option.opts if name.startswith("--")]
        if option.param_type_name == "option" and names and plain(names[0]) not in _NEVER:
            found[plain(names[0])] = option
    return found


def spellings(options: Mapping[str, Any]) -> list[str]:
    """Return all long names of options, without their dashes: earlier ones go on to be keys of files, too."""
    return [plain(name) for option in options.values() for name in option.opts if name.startswith("--")]


def setting_of(path: Sequence[str], name: str, option: Any) -> Setting | None:
    """Return what an option of a verb is to be where it is not on the command line; None for its own default.

    Raises
    ------
    ConfigError
        It is what the option does not take.
    """
    setting = next(_candidates(path, dict.fromkeys([name, *spellings({name: option})])), None)
    if setting is None:
        return None
    try:
        return setting._replace(value=_taken(option, setting.value))
    except ValueError as error:
        raise ConfigError(f"{setting.source}: {name}: {error}") from None


def refuse_unknown(path: Sequence[str], options: Sequence[str], within: Sequence[str] = ()) -> None:
    """Raise ConfigError where a file has a key for a verb that is not an option of it; names file and line.

    Parameters
    ----------
    within
        Verbs of this verb, whose options stand in tables of their own.
    """
    known = [*options, *within]
    for file in defaults.files():
        for key, value in defaults.section(file.table, path).items():
            if plain(key) in within and not isinstance(value, dict):
                place = ".".join([*path, key])
                raise ConfigError(
                    f"{file.where([*path, key])}: '{key}' is a verb: its options belong below [{place}]"
                )
            if plain(key) in known:
                continue
            hint = nearest(plain(key), known) or f" ('wulf {' '.join(path)} --help' names them)"
            if plain(key) in _NEVER:
                hint = ": it is for a single call and must be given on the command line"
            name = printable(key, 60)
            raise ConfigError(f"{file.where([*path, key])}: [{'.'.join(path)}] has no '{name}'{hint}")


def unknown_variables(verbs: Sequence[str]) -> list[str]:
    """Return the variables of the environment that look like an option's, and begin with no verb or common option."""
    whole = [*_OTHER_VARIABLES, *map(variable_of, COMMON)]
    beginnings = tuple(f"{variable_of(verb)}_" for verb in verbs)
    return sorted(
        name
        for name in os.environ
        if name.startswith("WULF_") and name not in whole and not name.startswith(beginnings)
    )


def blaming(work: Callable[[], _T]) -> _T:
    """Do some work; a message about wrong usage says where a value is from that is not on the command line.

    Raises
    ------
    UsageError
        As the work, with that addition.
    """
    try:
        return work()
    except UsageError as error:
        text = str(error)
        about = [
            f"{name} is from {setting.source}"
            for name, setting in _used.items()
            if f"--{name}" in text or repr(setting.value) in text
        ]
        raise UsageError(f"{text} ({'; '.join(about)})" if about else text) from None
    except Exception as error:
        # What typer says of a value that an option does not take.
        option: Any = getattr(error, "param", None)
        names = [plain(name) for name in getattr(option, "opts", ())]
        given = next((_used[name] for name in names if name in _used), None)
        if given is not None and hasattr(error, "message"):
            error.message = f"{error.message} (it is from {given.source})"
        raise


def _candidates(path: Sequence[str], names: Iterable[str]) -> Iterator[Setting]:
    """Yield what is given for an option, what counts most first; `names` are all its spellings."""
    places = [place for name in names for place in _places(path, name)]
    variables = [variable_of(" ".join([*keys, name])) for keys, name in places]
    yield from (Setting(os.environ[variable], variable) for variable in variables if os.environ.get(variable))
    for file in defaults.files():
        for keys, name in places:
            setting = file.setting(keys or (defaults.SECTION,), name)
            if setting is not None:
                yield setting


def _places(path: Sequence[str], name: str) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the verb that a default may be given for, and no verb where it may be for all."""
    yield path, name
    # Which cluster is meant where none is named depends on where one is: `wulf.node.fleet.clusters`.
    if name in COMMON and name != "cluster":
        yield (), name


def _taken(option: Any, value: Any) -> Any:
    """Return a value as the option takes it; raise ValueError that says what it must be."""
    if option.is_flag:
        value = defaults.WORDS.get(value.lower(), value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise ValueError(f"{printable(str(value), 60)!r}: true or false")
        return value
    if option.multiple:
        values = value.split() if isinstance(value, str) else value if isinstance(value, list) else [value]
        return [_text(one) for one in values]
    text = _text(value)
    return os.path.expanduser(text) if text.startswith("~") else text  # noqa: PTH111 - it need not be a path


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{printable(str(value), 60)!r}: a text or a number")
    return str(value)
